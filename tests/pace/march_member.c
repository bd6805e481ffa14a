// march_member -- the member's half: takes one step after the other, a trainer as far as its MARCH goes, a
// checkpointer as far as MARCHED have come. What it lacks it asks for: commits if it is behind, else the march.
// One answer brings many MARCHED, and none is sent twice within 200 ms: so it keeps those that come too early.

#include "tests/pace/march.h"
#include "common/base/ensure.h"
#include "common/member/pace_part.h"
#include "common/member/replica.h"
#include <string.h>

enum { MARCH_AHEAD = 32 };

struct march_member {
    uint64_t beginnings; // The replica's count when these were kept
    struct wire_march
        kept[MARCH_AHEAD]; // MARCH and MARCHED, by their first step modulo; lists below
    struct interval samples[MARCH_AHEAD][TABLE_INTERVALS_MAX], batch[TABLE_INTERVALS_MAX];
    uint64_t epoch; // Of the step that the learner takes
    uint64_t ask_ms;
};

static uint64_t end_of(const struct wire_march *march) { return march->step + march->steps; }

// It has the replica's next step, and no restore has given that up.
static bool leads_on(const struct wire_march *march, const struct member_turn *turn)
{
    const struct replica *replica = turn->replica;
    const struct wire_run *run = &turn->member->now;
    // A march that is done again has the same samples, so no seed can tell whether the last line is
    // here. A pace whose second try differs from the first needs it.
    return replica->holding && march_has(march, replica->step) && march->epoch <= run->epoch &&
           !replica_is_given_up(run, replica->step + 1, march->epoch);
}

// A later epoch's goes before what a restore that was missed may have given up.
static bool is_better(const struct wire_march *march, const struct wire_march *other)
{
    return replica_is_newer(end_of(march), march->epoch, end_of(other), other->epoch);
}

// The best of those that lead on. NULL: none is kept.
static const struct wire_march *way(const struct march_member *self, const struct member_turn *turn)
{
    const struct wire_march *way = NULL;
    for (uint32_t i = 0; i < MARCH_AHEAD; i++) {
        const struct wire_march *march = &self->kept[i];
        if (leads_on(march, turn) && (!way || is_better(march, way))) way = march;
    }
    return way;
}

// Of two that begin with the same step the better stays.
static void keep(struct march_member *self, const struct replica *replica,
                 const struct wire_march *said)
{
    struct wire_march *kept = &self->kept[said->step % MARCH_AHEAD];
    struct interval *samples = self->samples[said->step % MARCH_AHEAD];
    if (!replica->holding || end_of(said) <= replica->step ||
        said->step >= replica->step + MARCH_AHEAD)
        return;
    if (kept->step == said->step && !is_better(said, kept)) return;
    memcpy(samples, said->samples, said->samples_count * sizeof *samples);
    *kept = *said;
    kept->samples = samples;
}

static void hear_march(struct march_member *self, const struct member_turn *turn)
{
    const struct wire_march *said = turn->in->body;
    struct member *member = turn->member;
    if (!member->has_round || said->number > member->round) {
        member->has_round = true;
        member->round = said->number;
    }
    const bool committed = turn->in->kind == FRAME_MARCHED;
    // mutant: march: a checkpointer runs ahead
    if (!turn->replica || (!committed && member->role != ACTOR_TRAINER)) return;
    keep(self, turn->replica, said);
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
    if (turn->replica && self->beginnings != turn->replica->beginnings) { // It has others now
        self->beginnings = turn->replica->beginnings;
        memset(self->kept, 0, sizeof self->kept);
    }
    if (turn->heard & HEARD_PACE && (kind == FRAME_MARCH || kind == FRAME_MARCHED))
        hear_march(self, turn);
    if (kind == FRAME_MARCH_STEPPED) {
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

static void step(struct march_member *self, const struct member_turn *turn,
                 const struct wire_march *march)
{
    struct replica *replica = turn->replica;
    const uint64_t from = replica->step;
    const struct wire_march_step job = {
        .step = from,
        .samples = self->batch,
        .samples_count = march_samples(march, from, from + 1, self->batch),
    };
    self->epoch = march->epoch;
    replica->applying = true;
    outbox_job(turn->out, PORT_LEARNER, FRAME_MARCH_STEP, &job);
}

// Whether it keeps the parameters that it holds for joiners, or the run already pins later ones. MARCH may
// come before the RUN that says which step an epoch begins with: then nobody would keep that one.
static bool has_pinned(const struct member_turn *turn)
{
    const struct replica *replica = turn->replica;
    return replica->pin_step == replica->step || turn->member->now.pin_step > replica->step;
}

static void look(void *state, const struct member_turn *turn)
{
    struct march_member *self = state;
    struct replica *replica = turn->replica;
    if (!replica || !replica->ready) return;
    replica_tell(replica, turn->member, turn->in->now_ms, turn->out);
    const struct wire_march *march = way(self, turn);
    if (!march) {
        ask(self, turn);
        return;
    }
    const bool first = replica->step == march->step;
    // Restores that it has missed gave up what it holds
    if (replica->epoch < (first ? march->since : march->epoch)) replica_repair(replica, turn->out);
    // mutant: march: an epoch begins before its first parameters are pinned
    else if (replica->epoch >= march->epoch || has_pinned(turn)) step(self, turn, march);
}

_Static_assert(sizeof(struct march_member) <= PACE_PART_BYTES, "a role has room for its pace");

const struct member_pace member_pace_march = { "march", FRAME_MARCH_CONFIG, hear, look, NULL };
