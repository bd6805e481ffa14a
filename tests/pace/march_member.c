// march_member -- the member's half: takes one step after the other, a trainer as far as its MARCH goes, a
// checkpointer as far as STEPS have come. What it lacks it asks for: commits if it is behind, else the march.

#include "tests/pace/march.h"
#include "common/base/ensure.h"
#include "common/member/pace_part.h"
#include "common/member/replica.h"
#include <string.h>

struct march_member {
    struct wire_march
        march; // The furthest known that has the replica's next step; its list lies below
    struct interval samples[TABLE_INTERVALS_MAX], batch[TABLE_INTERVALS_MAX];
    uint64_t epoch; // Of the step that the learner takes
    uint64_t ask_ms;
};

// It has the replica's next step, and no restore has given that up.
static bool leads_on(const struct wire_march *march, const struct member_turn *turn)
{
    const struct replica *replica = turn->replica;
    const struct wire_run *run = &turn->member->now;
    // mutant: march: what a restore gave up leads on
    return replica->holding && march_has(march, replica->step) && march->epoch <= run->epoch &&
           !replica_is_given_up(run, replica->step + 1, march->epoch);
}

static void hear_march(struct march_member *self, const struct member_turn *turn)
{
    const struct wire_march *said = turn->in->body;
    struct member *member = turn->member;
    if (!member->has_round || said->number > member->round) {
        member->has_round = true;
        member->round = said->number;
    }
    const bool committed = turn->in->kind == FRAME_STEPS;
    // mutant: march: a checkpointer runs ahead
    if (!turn->replica || (!committed && member->role != ACTOR_TRAINER)) return;
    const bool further = !leads_on(&self->march, turn) ||
                         said->step + said->steps > self->march.step + self->march.steps;
    if (!leads_on(said, turn) || !further) return;
    memcpy(self->samples, said->samples, said->samples_count * sizeof *said->samples);
    self->march = *said;
    self->march.samples = self->samples;
}

static void hear_stepped(const struct march_member *self, const struct member_turn *turn)
{
    const struct wire_march_stepped *stepped = turn->in->body;
    ensure(stepped->step == turn->replica->step + 1);
    turn->replica->applying = false;
    replica_move(turn->replica, turn->member, stepped->step, &stepped->digest, self->epoch);
}

static void hear(void *state, const struct member_turn *turn)
{
    struct march_member *self = state;
    const uint16_t kind = turn->in->kind;
    if (turn->heard & HEARD_PACE && (kind == FRAME_MARCH || kind == FRAME_STEPS))
        hear_march(self, turn);
    if (kind == FRAME_STEPPED) {
        hear_stepped(self, turn);
        self->ask_ms = 0;
    }
}

static void ask(struct march_member *self, const struct member_turn *turn)
{
    const struct wire_run *run = &turn->member->now;
    const uint64_t step = turn->replica->step;
    const bool behind = run->step > step;
    const bool waits = turn->member->role == ACTOR_TRAINER && run->phase == PHASE_TRAIN;
    if (turn->in->now_ms < self->ask_ms || (!behind && !waits)) return;
    self->ask_ms = turn->in->now_ms + MEMBER_RETRY_MS;
    const struct wire_ask what = { behind ? TOPIC_COMMITS : TOPIC_RUN, behind ? step : 0 };
    outbox_mail(turn->out, "coordinator", FRAME_ASK, &what);
}

static void step(struct march_member *self, const struct member_turn *turn)
{
    struct replica *replica = turn->replica;
    const uint64_t from = replica->step;
    const struct wire_march_step job = {
        .step = from,
        .samples = self->batch,
        .samples_count = march_samples(&self->march, from, from + 1, self->batch),
    };
    self->epoch = self->march.epoch;
    replica->applying = true;
    outbox_job(turn->out, PORT_LEARNER, FRAME_STEP, &job);
}

static void look(void *state, const struct member_turn *turn)
{
    struct march_member *self = state;
    struct replica *replica = turn->replica;
    if (!replica || !replica->ready) return;
    replica_tell(replica, turn->member, turn->in->now_ms, turn->out);
    if (!leads_on(&self->march, turn)) {
        ask(self, turn);
        return;
    }
    const bool first = replica->step == self->march.step;
    // Restores that it has missed gave up what it holds
    if (replica->epoch < (first ? self->march.since : self->march.epoch))
        replica_repair(replica, turn->out);
    else step(self, turn);
}

_Static_assert(sizeof(struct march_member) <= PACE_PART_BYTES, "a role has room for its pace");

const struct member_pace member_pace_march = { "march", FRAME_MARCH_CONFIG, hear, look, NULL };
