// members -- who comes, stays and goes. A trainer waits, pending, for the next epoch; witnesses,
// checkpointers and data providers serve at once. Who is silent longer than its lease is dropped.

#include "actors/coordinator/coordinator.h"
#include "common/base/ensure.h"
#include "common/net/endpoint.h"
#include "common/run/dataset.h"
#include <string.h>

enum {
    ROSTER_DELAY_MS = 50, // Many joins, one roster
    CHANGES_MAX = 20,
    CHANGES_MS = 60000, // Of a member by its own word: each is a record
};

static void roster_change(struct coordinator *self, uint64_t now_ms)
{
    if (!self->roster_changed) self->roster_ms = now_ms + ROSTER_DELAY_MS;
    self->roster_changed = true;
}

static void put_member(struct coordinator *self, const struct wire_member *member, uint64_t now_ms,
                       struct outbox *out)
{
    coordinator_put(self, FRAME_RECORD_MEMBER, member, out);
    roster_change(self, now_ms);
}

void members_tell(struct coordinator *self)
{
    roster_change(self, 0);
    self->roster_ms = 0;
}

void members_set_state(struct coordinator *self, uint32_t index, uint8_t state, struct outbox *out)
{
    struct wire_member member = self->run.roster.members[index];
    member.state = state;
    if (state == MEMBER_DROPPED) member.dropped_round = self->run.round.opened.round;
    put_member(self, &member, self->beat_ms, out);
    members_tell(self); // Somebody must stop waiting for it
    outbox_note(out, "member.%s name=%s index=%u", wire_enum_name(&wire_enum_member_state, state),
                member.name, index);
}

bool members_is_live(const struct coordinator *self, uint32_t index)
{
    return self->run.roster.members[index].state == MEMBER_HEALTHY;
}

// Mail to the name reaches the newer process, so the refusal says which one is meant.
static void refuse_older(const struct msg *in, uint64_t instance, struct outbox *out)
{
    coordinator_refuse(in, REFUSAL_REPLACED, instance, out,
                       "a newer process uses this identity; stop one of "
                       "the two, an identity is for one process");
}

uint32_t members_of(struct coordinator *self, const struct msg *in, struct outbox *out)
{
    uint32_t index = roster_find(&self->run.roster, &in->sender);
    if (index == NO_MEMBER || self->run.roster.members[index].state == MEMBER_DROPPED ||
        self->run.roster.members[index].state == MEMBER_WITHDRAWN) {
        coordinator_refuse(
            in, REFUSAL_NOT_MEMBER, 0, out,
            index == NO_MEMBER
                ? "not a member of this run; JOIN first"
                : "the lease ran out or the member left; JOIN again for the next epoch");
        return NO_MEMBER;
    }
    // mutant: guilt: an ejected member is heard
    if (self->run.roster.members[index].state == MEMBER_EJECTED) {
        coordinator_refuse(in, REFUSAL_EJECTED, 0, out, "this identity was ejected; give up");
        return NO_MEMBER;
    }
    // A member's incarnation is its instance: a late word of the process before this one counts no
    // more.
    if (in->incarnation != 0 && in->incarnation < self->run.roster.members[index].instance) {
        refuse_older(in, in->incarnation, out);
        return NO_MEMBER;
    }
    self->heard_ms[index] = in->now_ms;
    return index;
}

// ---- joining ------------------------------------------------------------------------------------

// Nobody has trained on the run's data, and nobody else has it: it may still become other data. Who
// is here as a provider has what is on record.
static bool is_bound(const struct run *run, uint32_t joiner)
{
    uint32_t others = roster_count(&run->roster, ACTOR_PROVIDER, MEMBER_HEALTHY);
    if (joiner != NO_MEMBER && run->roster.members[joiner].state == MEMBER_HEALTHY) others--;
    // mutant: data: the first to join binds the run for ever
    // mutant: data: what was trained on becomes other data
    return run->pass_samples && (run->round.opened.round > 0 || others > 0);
}

static struct wire_record_data data_of(const struct wire_join *join)
{
    return (struct wire_record_data){ .samples = join->samples,
                                      .data = join->data,
                                      .order = dataset_order(&join->positions, join->samples) };
}

static bool is_the_runs(const struct run *run, const struct wire_record_data *data)
{
    return data->samples == run->pass_samples && hash_equal(&data->data, &run->data) &&
           hash_equal(&data->order, &run->order);
}

static bool may_provide(struct coordinator *self, const struct msg *in, struct outbox *out)
{
    const struct wire_join *join = in->body;
    const struct run *run = &self->run;
    const struct wire_record_data data = data_of(join);
    const struct hash digest = dataset_digest(&data.data, &data.order);
    const struct hash *pin = &self->rules.dataset_digest;
    char has[HASH_HEX], wanted[HASH_HEX];
    if (self->rules.frame.data.kind != DATA_SERVER) return true; // Nobody will ask it
    if (join->samples == 0) {
        coordinator_refuse(in, REFUSAL_WRONG_DATA, 0, out,
                           "a data provider without samples; allowed: 1 and more");
        return false;
    }
    // mutant: data: any order of the pinned files is let in
    if (!hash_is_none(pin) && !hash_equal(&digest, pin)) {
        coordinator_refuse(
            in, REFUSAL_WRONG_DATA, 0, out,
            "[data] dataset_digest pins %.16s, this source is %.16s; give it the run's "
            "files and data.toml",
            hash_to_hex(pin, wanted), hash_to_hex(&digest, has));
        return false;
    }
    if (is_bound(run, roster_find(&run->roster, &in->sender)) && !is_the_runs(run, &data)) {
        coordinator_refuse(in, REFUSAL_WRONG_DATA, 0, out,
                           "the run trains on %llu samples a pass, this "
                           "source has %llu, another manifest or another order; give it the run's "
                           "files and data.toml",
                           (unsigned long long)run->pass_samples,
                           (unsigned long long)join->samples);
        return false;
    }
    return true;
}

static bool may_join(struct coordinator *self, const struct msg *in, struct outbox *out)
{
    const struct wire_join *join = in->body;
    const struct run *run = &self->run;
    uint32_t index = roster_find(&run->roster, &in->sender);
    char name[ACTOR_NAME_MAX + 1];
    actor_name(join->role, &in->sender, name);
    if (join->role == ACTOR_COORDINATOR || join->role >= ACTOR_MONITOR ||
        strcmp(name, join->name) != 0) {
        coordinator_refuse(in, REFUSAL_WRONG_ROLE, 0, out,
                           "a %s called %s cannot join; allowed: trainer, "
                           "witness, checkpointer, data-provider, named after their key",
                           wire_enum_name(&wire_enum_role, join->role), join->name);
        return false;
    }
    // mutant: guilt: an ejected member may join again
    if (index != NO_MEMBER && run->roster.members[index].state == MEMBER_EJECTED) {
        coordinator_refuse(in, REFUSAL_EJECTED, 0, out, "this identity was ejected; give up");
        return false;
    }
    if (index != NO_MEMBER && join->instance < run->roster.members[index].instance) {
        refuse_older(in, join->instance, out);
        return false;
    }
    if (index != NO_MEMBER && join->role != run->roster.members[index].role) {
        coordinator_refuse(in, REFUSAL_WRONG_ROLE, 0, out,
                           "this key is a %s of the run; a %s needs a key of its own",
                           wire_enum_name(&wire_enum_role, run->roster.members[index].role),
                           wire_enum_name(&wire_enum_role, join->role));
        return false;
    }
    if (join->endpoint[0] && !endpoint_is_numeric(join->endpoint)) {
        coordinator_refuse(in, REFUSAL_MALFORMED, 0, out,
                           "endpoint %.60s: must be tcp://IPv4:PORT or tcp://[IPv6]:PORT, numbers "
                           "and no name; give --bulk-bind an address of yours",
                           join->endpoint);
        return false;
    }
    return join->role != ACTOR_PROVIDER || may_provide(self, in, out);
}

static bool changes_too_often(struct coordinator *self, const struct msg *in, uint32_t index,
                              struct outbox *out)
{
    if (in->now_ms - self->changes_ms[index] >= CHANGES_MS) {
        self->changes_ms[index] = in->now_ms;
        self->changes[index] = 0;
    }
    if (self->changes[index] < CHANGES_MAX) {
        self->changes[index]++;
        return false;
    }
    coordinator_refuse(in, REFUSAL_NOT_NOW, 0, out,
                       "%d changes of this member within a minute; again when it is over",
                       CHANGES_MAX);
    return true;
}

void members_hear_join(struct coordinator *self, const struct msg *in, struct outbox *out)
{
    const struct wire_join *join = in->body;
    struct run *run = &self->run;
    if (!may_join(self, in, out)) return;
    uint32_t index = roster_find(&run->roster, &in->sender);
    bool known = index != NO_MEMBER;
    if (!known) index = run_free_place(run);
    if (index == NO_MEMBER) {
        coordinator_refuse(in, REFUSAL_FULL, 0, out, "all %d places are taken; try again later",
                           MEMBERS_MAX);
        return;
    }
    uint8_t fresh = join->role == ACTOR_TRAINER ? MEMBER_PENDING : MEMBER_HEALTHY;
    struct wire_member member = { .index = index,
                                  .key = in->sender,
                                  .role = join->role,
                                  .state = fresh,
                                  .instance = join->instance };
    memcpy(member.name, join->name, sizeof member.name);
    memcpy(member.endpoint, join->endpoint, sizeof member.endpoint);
    const bool stays = known && run->roster.members[index].state == MEMBER_HEALTHY;
    if (known) {
        // mutant: guilt: a member that joins again has shown all
        member.unshown = run->roster.members[index].unshown;
        member.owed = run->roster.members[index].owed;
        member.dropped_round = run->roster.members[index].dropped_round;
    }
    member.joined_round = known && run->roster.members[index].instance == join->instance
                              ? run->roster.members[index].joined_round
                              : run->round.opened.round;
    if (stays) member.state = MEMBER_HEALTHY;
    self->heard_ms[index] = in->now_ms;
    const struct wire_record_data data = data_of(join);
    const bool binds = join->role == ACTOR_PROVIDER && self->rules.frame.data.kind == DATA_SERVER &&
                       !is_the_runs(run, &data),
               differs =
                   !known || !wire_equal(FRAME_RECORD_MEMBER, &member, &run->roster.members[index]);
    // mutant: data: a provider changes its mind without end
    // mutant: a member fills the ledger
    if (known && (binds || differs) && changes_too_often(self, in, index, out)) return;
    if (differs) {
        self->holdings[index].known = false; // Another process: what the old one held is gone
        if (index == run->roster.count || !key_equal(&run->roster.members[index].key, &member.key))
            memset(self->testimonies[index], 0,
                   sizeof self->testimonies[index]); // A place handed on
        if (!stays) self->amiss[index] = 0;
        self->step_held[index] = 0;
        put_member(self, &member, in->now_ms, out);
        outbox_note(out, "member.joined name=%s index=%u state=%s endpoint=%s", member.name, index,
                    wire_enum_name(&wire_enum_member_state, member.state), member.endpoint);
    }
    if (binds) coordinator_put(self, FRAME_RECORD_DATA, &data, out);
    // mutant: a member is admitted before it is stored (2)
    outbox_mail(out, in->from, FRAME_ADMITTED,
                &(struct wire_admitted){ .index = index,
                                         .state = member.state,
                                         .instance = join->instance,
                                         .config = self->rules.config,
                                         .born_unix_ms = run->born_unix_ms });
}

// ---- staying and going --------------------------------------------------------------------------

void members_hear_ping(struct coordinator *self, const struct msg *in, struct outbox *out)
{
    const struct wire_ping *ping = in->body;
    uint32_t index = members_of(self, in, out);
    if (index == NO_MEMBER) return;
    if (ping->instance < self->run.roster.members[index].instance) {
        refuse_older(in, ping->instance, out);
        return;
    }
    self->tokens_per_s[index] = ping->tokens_per_s;
    self->loss[index] = ping->loss;
    self->step_held[index] = ping->step <= self->run.step ? ping->step : 0; // Of before a restore
}

static bool is_here(const struct wire_member *member)
{
    return member->state == MEMBER_HEALTHY || member->state == MEMBER_PENDING;
}

bool members_keeps_parameters(const struct wire_member *member)
{
    return is_here(member) && (member->role == ACTOR_TRAINER || member->role == ACTOR_CHECKPOINTER);
}

// The newest commit had one voter, who alone may have its payloads, and nobody else says that it holds
// the step after it: what was committed would go with this member (seed 63409).
static bool is_needed(const struct coordinator *self, uint32_t leaver)
{
    const struct run *run = &self->run;
    bool others = false;
    if (run->step == self->rules.first_step || run->round.last.elected > 1 ||
        round_witness_place(&run->round, leaver) == NO_MEMBER)
        return false;
    for (uint32_t i = 0; i < run->roster.count; i++) {
        const struct wire_member *member = &run->roster.members[i];
        if (i == leaver || !members_keeps_parameters(member)) continue;
        if (self->step_held[i] >= run->step) return false;
        others = true;
    }
    return others;
}

void members_hear_leave(struct coordinator *self, const struct msg *in, struct outbox *out)
{
    const struct wire_leave *leave = in->body;
    uint32_t index = roster_find(&self->run.roster, &in->sender);
    const bool takes_part = index != NO_MEMBER && is_here(&self->run.roster.members[index]) &&
                            leave->instance >= self->run.roster.members[index].instance;
    // mutant: the only holder may go
    if (takes_part && is_needed(self, index)) {
        coordinator_refuse(in, REFUSAL_NOT_NOW, 0, out,
                           "nobody else holds step %llu yet; stay and serve it a moment longer",
                           (unsigned long long)self->run.step);
        return;
    }
    if (takes_part && changes_too_often(self, in, index, out)) return;
    if (takes_part) members_set_state(self, index, MEMBER_WITHDRAWN, out);
    coordinator_ack(in, 0, NULL, out);
}

void members_check_leases(struct coordinator *self, uint64_t now_ms, struct outbox *out)
{
    for (uint32_t i = 0; i < self->run.roster.count; i++) {
        uint8_t state = self->run.roster.members[i].state;
        if (state != MEMBER_HEALTHY && state != MEMBER_PENDING) continue;
        if (now_ms - self->heard_ms[i] > self->rules.lease_ms)
            members_set_state(self, i, MEMBER_DROPPED, out);
    }
}
