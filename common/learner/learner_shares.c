// learner_shares -- the strategies `sharded` and `server`: each member of a group, or each server of it, holds its share
// of the optimizer's state, and those that compute hold the parameters (ZeRO stage 1; Rajbhandari et al. 2020, section 5.1).
//
//   parameters of all ─▶ gradients of our lanes ─▶ the sum of our share ─▶ HAVE of all ─▶ norm, clip
//        ▲                                                                                   │
//        └──────── gathered when the next step begins ◀──── our parameters, by our moments ──┘
//
// A share is an interval of whole leaves (group_interval), the same that a member saves. The bits are
// those of `allreduce`: the sums, the norm and the arithmetic of each float are the same.
//
// 1. When a window begins, a member takes the share of its place. If that is another share than
//    before, all of the state must be here. Else the moments of a member that is gone are lost: the
//    window is broken, the member says that it holds no step, and the run goes back to its newest save.
// 2. When the group ends, because a member asks for it or knows no further window, all gather the
//    moments, too, one vector after the other, each to the disk (learner_away.c). Then each holds all of the
//    state: it takes the digest, offers the state to joiners, and takes another share in the next group.
//
// So the moments take 8 N / W bytes of N parameters in memory for W members.

#include "common/base/ensure.h"
#include "common/base/log.h"
#include "common/learner/learner_away.h"
#include "common/learner/learner_gather.h"
#include "common/learner/learner_windows.h"
#include "common/learner/state.h"
#include <inttypes.h>
#include <string.h>

bool learner_shares_are_on(const struct learner *self)
{
    return self->window->config.parts == PARTS_MOMENTS;
}

struct learner_owner learner_owner_in(const struct learner *self,
                                      const struct wire_take_window *window)
{
    const uint32_t servers = self->window->config.servers;
    const uint32_t owners = servers ? servers : window->group_count;
    const uint32_t first = window->group_count - owners;
    return (struct learner_owner){ window->place < first ? OWNER_NONE : window->place - first,
                                   owners };
}

struct interval learner_shares_part(const struct learner *self)
{
    const struct learner_window_work *work = self->window;
    if (!learner_shares_are_on(self)) return (struct interval){ 0, self->floats };
    if (work->owner == OWNER_NONE) return (struct interval){ 0, 0 };
    return group_interval(self->floats, work->owner, work->owners);
}

struct learner_shares_memory learner_shares_memory(struct learner *self, uint32_t members)
{
    struct interval share = { 0, 0 };
    const uint32_t servers = self->window->config.servers, owners = servers ? servers : members;
    for (uint32_t i = 0; i < owners; i++) { // They may differ by a leaf
        const struct interval other = group_interval(self->floats, i, owners);
        if (interval_length(other) > interval_length(share)) share = other;
    }
    return (struct learner_shares_memory){
        .moments = learner_away_bytes(self, share),
        .saves = learner_pieces_memory(self, share) + learner_window_copies_memory(self, owners),
    };
}

// The plan has the moments of the smallest group, and this is the group in hand.
static uint64_t memory_of_group(struct learner *self)
{
    const struct learner_shares_memory of = learner_shares_memory(self, self->window->owners);
    const uint64_t planned = learner_shares_memory(self, learner_members_least(self)).moments;
    return self->memory_bytes - planned + of.moments + of.saves + GROUP_MEMORY +
           LEARNER_GATHER_MEMORY;
}

void learner_shares_begin(struct learner *self, const struct wire_take_window *window)
{
    struct learner_window_work *work = self->window;
    if (!learner_shares_are_on(self)) return;
    // mutant: shares: a member goes on with the moments that it had before it loaded a state
    const bool is_here = !self->away || self->has_share;
    const struct learner_owner of = learner_owner_in(self, window);
    const bool same = is_here && work->owner == of.owner && work->owners == of.owners;
    // A trainer of a run with servers owns none, and so can lose none
    // mutant: shares: a share is taken though its moments are not here
    work->lost = self->share_only && !same && of.owner != OWNER_NONE;
    if (work->lost)
        why_set(&work->lost_why, FAULT_NOT_FOUND, "the moments of a member that is gone are lost");
    if (work->lost || same) return;
    work->owner = of.owner, work->owners = of.owners;
    const struct interval part = learner_shares_part(self);
    work->lost = self->away && learner_away_read(self, part, &work->lost_why) < 0;
    if (work->lost) {
        log_line(LOG_ERR, "shares.lost step=%" PRIu64 " reason=\"%s\"", self->step,
                 work->lost_why.text);
        work->owners = 0; // What is in memory is of no use
        return;
    }
    self->has_share = true;
    optimizer_own(self->optimizer, part);
    if (of.owner == OWNER_NONE)
        log_line(LOG_INFO, "shares.none servers=%u memory_mib=%" PRIu64, of.owners,
                 memory_of_group(self) >> 20);
    else
        log_line(LOG_INFO,
                 "shares.taken share=%u of=%u from=%" PRIu64 " to=%" PRIu64 " memory_mib=%" PRIu64,
                 of.owner, of.owners, part.begin, part.end, memory_of_group(self) >> 20);
}

// The norm is that of all shares: each owner has said how long its own is. Of the whole gradient each could measure it.
bool learner_shares_has(const struct learner *self)
{
    const struct learner_window_work *work = self->window;
    if (!learner_shares_are_on(self) || work->owner == OWNER_NONE) return true;
    const uint32_t count = work->now->said.group_count;
    for (uint32_t i = 0; i < count; i++) // Our own we know
        if (i != work->now->said.place && work->squares_left[i] > 0) return false;
    return true;
}

// Nobody else is in the group.
static bool is_alone(const struct learner *self) { return self->window->now->said.group_count < 2; }

void learner_shares_applied(struct learner *self)
{
    if (!learner_shares_are_on(self)) return;
    learner_away_drop(self); // Of an earlier step
    if (is_alone(self)) return;
    if (!self->share_only) learner_away_release(self, learner_shares_part(self));
    // mutant: shares: who holds a share says that it holds all
    self->share_only = true;
}

static int gather_parameters(struct learner *self, struct why *why, struct group_blame *ret_blame)
{
    struct group_sum sum = learner_sum(self, GROUP_GATHER, self->floats); // To those that compute
    sum.result = self->params;
    return group_add(self->window->group, &sum, why, ret_blame);
}

// If they are all here already, they are sent all the same: another member may lack them.
int learner_shares_gather(struct learner *self, struct why *why, struct group_blame *ret_blame)
{
    if (!learner_shares_are_on(self)) return 0;
    learner_pin_wait(self); // Its thread reads what this step changes
    if (is_alone(self)) return 0;
    // mutant: shares: a step is computed by parameters of the one before
    return gather_parameters(self, why, ret_blame);
}

int learner_shares_close(struct learner *self, struct why *why, struct group_blame *ret_blame)
{
    struct learner_window_work *work = self->window;
    if (!learner_shares_are_on(self) || is_alone(self)) return 0;
    if (!work->ends && !work->holder.stopped) return 0;
    const uint32_t members = work->now->said.group_count, servers = work->config.servers;
    struct learner_gather gather = {
        .group = work->group,
        .members = members,
        .owners = servers,
        .part = learner_shares_part(self),
        .alike = servers > 0,
        .sum = learner_sum(self, GROUP_GATHER, self->floats),
    };
    const int rc = learner_gather_state(self, &gather, why, ret_blame);
    work->sums = gather.sum.number;
    return rc;
}
