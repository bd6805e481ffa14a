// SETTLE_GROUP: the members that are left form a window of links of their own and put the state together
// (learner_gather.h): each server sends its share of the parameters and of the moments to all, and the first one how
// many steps its optimizer has taken: that number is the run's, although servers may have applied different pushes.
//
// An attempt that fails leaves the share of each server as it was: a later one may do better.

#include "common/learner/learner_away.h"
#include "common/learner/learner_leases.h"
#include <inttypes.h>
#include <string.h>

// The members of the attempt, in order, and our place among them.
struct attempt {
    struct group_member members[GROUP_MEMBERS_MAX];
    uint32_t count, place;
    uint64_t window;
};

static int list_members(const struct learner *self, const struct wire_close_group *said,
                        struct why *why, struct attempt *ret_attempt)
{
    const struct learner_lease_work *work = self->lease;
    const uint32_t trainers = learner_lease_trainers(self), count = work->said.group_count;
    const uint64_t all = count < 64 ? ((uint64_t)1 << count) - 1 : UINT64_MAX;
    struct attempt attempt = { .place = UINT32_MAX,
                               .window =
                                   work->said.number * LEARNER_LEASE_WINDOWS + said->attempt };
    if (said->attempt == 0 || said->attempt >= LEARNER_LEASE_WINDOWS)
        return why_set(why, FAULT_RANGE, "attempt %" PRIu64 ", allowed 1..%d", said->attempt,
                       LEARNER_LEASE_WINDOWS - 1);
    // mutant: leases: a share that is lost is put together
    if (said->members & ~all || ~said->members & (all >> trainers << trainers))
        return why_set(why, FAULT_RANGE, "a server is not among those that put the state together");
    for (uint32_t i = 0; i < count; i++) {
        if (!(said->members >> i & 1)) continue;
        if (i == work->said.place) attempt.place = attempt.count;
        attempt.members[attempt.count++] = work->members[i];
    }
    if (attempt.place == UINT32_MAX)
        return why_set(why, FAULT_RANGE, "we are not among those that put the state together");
    *ret_attempt = attempt;
    return 0;
}

static int gather(struct learner *self, const struct attempt *attempt, struct why *why)
{
    struct learner_lease_work *work = self->lease;
    struct group_blame blame = { UINT32_MAX, false };
    // mutant: leases: each member has its own count of the steps
    struct learner_gather gather = {
        .group = work->group,
        .members = attempt->count,
        .owners = work->said.servers,
        .part = work->part,
        .alike = true,
        .sum = { .lanes = attempt->count,
                 .batch = attempt->count,
                 .timeout_ms = work->config.settle_ms },
    };
    const int rc = group_form(work->group, attempt->window, attempt->members, attempt->count,
                              attempt->place, work->config.settle_ms, why, &blame);
    return rc < 0 ? rc : learner_gather_state(self, &gather, why, &blame);
}

static int settle(struct learner *self, const struct wire_close_group *said, struct why *why)
{
    struct learner_lease_work *work = self->lease;
    struct attempt attempt;
    if (said->number != work->said.number || work->lost)
        return why_set(why, FAULT_NOT_FOUND, "no part of the state of group %" PRIu64 " is here",
                       said->number);
    int rc = list_members(self, said, why, &attempt);
    if (rc < 0) return rc;
    learner_pin_wait(self); // An attempt before this one may have pinned what it put together
    self->holding = false;
    self->share_only = true;
    work->adds = true;
    rc = gather(self, &attempt, why);
    work->adds = false;
    self->share_only = rc < 0;
    if (rc < 0) return rc;
    self->step = said->step;
    rc = learner_take_digest(self, why);
    self->holding = rc == 0;
    if (rc == 0) learner_offer(self);
    return rc;
}

void learner_lease_settle(struct learner *self, const struct wire_close_group *job)
{
    struct learner_lease_work *work = self->lease;
    const struct wire_close_group said = *job; // Other jobs may come meanwhile
    struct wire_settled settled = { .number = said.number,
                                    .attempt = said.attempt,
                                    .step = said.step };
    struct why why = { 0 };
    learner_lease_drop_task(self);
    if (said.number == work->said.number && work->formed && learner_lease_serves(self))
        learner_lease_end_server(self);
    const int rc = settle(self, &said, &why);
    // Its links are in another window now: no question of this group is answered or asked any more
    if (said.number == work->said.number) work->broken = true, work->formed = false;
    work->suspect_us = 0;
    settled.ok = rc == 0;
    if (settled.ok) settled.digest = self->digest;
    learner_lease_because(settled.because, &why);
    worker_answer(self->worker, FRAME_GROUP_SETTLED, &settled);
}
