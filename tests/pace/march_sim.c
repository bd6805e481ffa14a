// march_sim -- what the simulator must know of marches: one seed in ten has them, without liars; a step hashes
// its samples into the digest; and what must hold, by the records, by the PINGs that this life of the
// coordinator heard, and by what each replica holds.

#include "tests/pace/march.h"
#include "common/base/ensure.h"
#include "tests/sim/sim.h"
#include <inttypes.h>
#include <string.h>

struct ghost_march {
    struct wire_march march; // The newest; its list lies below
    struct interval samples[512];
    // By member, as this life of the coordinator has heard.
    uint64_t held[NODES_MAX], ping_seq[NODES_MAX]; // By their newest PING, and its number
    uint64_t life;                                 // Of the coordinator that has heard those
    bool in_step[NODES_MAX];
};
_Static_assert(sizeof(struct ghost_march) <= GHOST_PACE_BYTES, "it has room in the ghost");

static struct ghost_march *own(struct sim *sim)
{
    return (struct ghost_march *)(void *)sim->ghost.pace;
}

static struct ghost_point *now(struct sim *sim) { return &sim->ghost.points[sim->ghost.records]; }

// ---- the plan and the learner -------------------------------------------------------------------

static void draw(struct sim *self)
{
    struct plan *plan = &self->plan;
    const struct wire_march_config config = { 1 + (uint32_t)aside(self, "steps", 8) };
    rules_set_strategy(&plan->rules, FRAME_MARCH_CONFIG, &config, sizeof config);
    plan->witnesses = plan->liars = plan->lies = 0;
    plan->stubborn = plan->collude = false;
    plan->thin = NOBODY;
}

static struct hash digest_after_step(const struct hash *digest, const struct interval *samples,
                                     uint32_t count)
{
    return hash_of_two(digest, HASH_BYTES, samples, count * sizeof *samples);
}

static uint64_t takes_ms(struct sim *self, uint8_t id)
{
    const bool slow = self->plan.slow == id && faulty(self);
    return between(self, 20, self->plan.train_ms / 4 + 20) * (slow ? 10 : 1);
}

// Joiners fetch the parameters that an epoch begins with. So every member that goes on from them keeps a
// copy. (A member that has not heard of a restore may still pass the step that the restore pinned.)
static void check_pinned(struct sim *sim, uint8_t id, uint64_t step)
{
    const struct ghost *ghost = &sim->ghost;
    const struct hash *digest = &ghost->digest[step];
    const struct learner *learner = &sim->nodes[id].learner;
    if (step != ghost->pin_step || ghost->restores > 0 || check_is_of_before(sim, id)) return;
    hold(!hash_equal(&learner->digest, digest) || pins_have(learner, step, digest),
         "what an epoch begins with is pinned before it is left", "%s leaves step %" PRIu64,
         sim->nodes[id].name, step);
}

static bool learn(struct sim *self, uint8_t id, uint16_t kind, const void *body)
{
    struct learner *learner = &self->nodes[id].learner;
    const struct wire_march_step *job = body;
    if (kind != FRAME_MARCH_STEP) return false;
    ensure(learner->holding && learner->step == job->step);
    check_pinned(self, id, job->step);
    learner->digest = digest_after_step(&learner->digest, job->samples, job->samples_count);
    learner->step++;
    learner_says(self, id, FRAME_MARCH_STEPPED,
                 &(struct wire_march_stepped){ learner->step, learner->digest });
    return true;
}

// ---- records ------------------------------------------------------------------------------------

// A march is over when all of it is committed.
static bool may_enter(const struct sim *sim, uint8_t from, uint8_t to)
{
    return from == PHASE_TRAIN && to == PHASE_COOLDOWN && sim->ghost.ahead == 0;
}

static bool admits(const struct sim *sim)
{
    return check_phase(sim) == PHASE_TRAIN && sim->ghost.ahead > 0;
}

static void hear_march(struct sim *sim, const struct wire_march *march)
{
    struct ghost *ghost = &sim->ghost;
    struct ghost_march *self = own(sim);
    struct ghost_point *point = now(sim);
    const struct rules *rules = &sim->plan.rules;
    hold(point->phase == PHASE_WARMUP || point->phase == PHASE_TRAIN, "phases move as drawn",
         "%s to RoundTrain", run_phase_name(point->phase));
    hold(march->number == point->round + 1 && march->number < ROUNDS_MAX && ghost->ahead == 0,
         "one march after the other", "%" PRIu64 " after %" PRIu64, march->number, point->round);
    hold(march->step == point->step && march->epoch == point->epoch && march->steps > 0 &&
             march->step + march->steps <= rules->total_steps &&
             march->step + march->steps < ROUNDS_MAX,
         "a march begins at the present step", "%" PRIu64, march->step);
    hold(point->phase == PHASE_TRAIN ||
             check_members(ghost, ACTOR_TRAINER, MEMBER_HEALTHY) >= rules->min_clients,
         "an epoch has min_clients", "march %" PRIu64, march->number);
    const uint64_t dealt = check_dealt(sim, march->samples, march->samples_count);
    hold(dealt == (uint64_t)march->steps * march->batch && march->samples_count <= 512,
         "each step has its samples", "%" PRIu64 " for %u steps", dealt, march->steps);
    self->march = *march;
    self->march.samples = self->samples;
    memcpy(self->samples, march->samples, march->samples_count * sizeof *march->samples);
    for (uint64_t step = march->step; step < march->step + march->steps; step++) {
        struct interval list[512];
        const uint32_t count = march_samples(&self->march, step, step + 1, list);
        ghost->digest[step + 1] = digest_after_step(&ghost->digest[step], list, count);
    }
    ghost->ahead = march->steps;
    ghost->round_record[march->number] = ghost->records;
    memset(self->in_step, 0, sizeof self->in_step);
    point->phase = PHASE_TRAIN;
    point->round = march->number;
}

// Those that were here when it was opened, and those that joined since and have been in step.
static bool counts(struct sim *sim, uint32_t member)
{
    const struct ghost_member *place = &sim->ghost.members[member];
    return place->role == ACTOR_TRAINER && place->state == MEMBER_HEALTHY &&
           (place->joined_number < check_round(sim) || own(sim)->in_step[member]);
}

static void check_held(struct sim *sim, uint64_t end)
{
    uint32_t holders = 0;
    for (uint32_t i = 0; i < sim->ghost.members_count; i++) {
        if (!counts(sim, i)) continue;
        hold(own(sim)->held[i] >= end, "what is committed is held by all that count",
             "member %u holds %" PRIu64 " of %" PRIu64, i, (uint64_t)own(sim)->held[i], end);
        holders++;
    }
    hold(holders > 0, "what is committed is held by all that count", "nobody holds %" PRIu64, end);
}

static void hear_steps(struct sim *sim, const struct wire_march *steps)
{
    struct ghost *ghost = &sim->ghost;
    uint64_t said = 0;
    hold(steps->number == check_round(sim) && steps->step == check_step(sim) && steps->steps > 0 &&
             steps->steps <= ghost->ahead,
         "a commit is of the steps that follow", "%" PRIu64, steps->step);
    check_held(sim, steps->step + steps->steps);
    for (uint32_t k = 0; k < steps->steps; k++) {
        struct interval list[512];
        const uint64_t step = steps->step + k;
        const uint32_t count = march_samples(&own(sim)->march, step, step + 1, list);
        for (uint32_t i = 0; i < count; i++)
            for (uint64_t p = list[i].begin; p < list[i].end; p++, said++) check_done(sim, p);
        now(sim)->step++;
        ghost->ahead--;
    }
    hold(said == interval_list_total(steps->samples, steps->samples_count),
         "a commit counts its samples", "%" PRIu64, said);
}

static void hear_record(struct sim *sim, uint16_t kind, const void *record)
{
    if (kind == FRAME_RECORD_MARCH) hear_march(sim, record);
    if (kind == FRAME_RECORD_MARCHED) hear_steps(sim, record);
}

// ---- words and replicas -------------------------------------------------------------------------

static void said(struct sim *sim, uint8_t id, const struct effect *effect)
{
    if (id != COORDINATOR || (effect->kind != FRAME_MARCH && effect->kind != FRAME_MARCHED)) return;
    const struct wire_march *body =
        unpack(sim, &sim->scratch, effect->kind, effect->body, effect->bytes);
    check_recorded(sim,
                   effect->kind == FRAME_MARCH
                       ? sim->ghost.round_record[body->number]
                       : sim->ghost.commit_of_step[body->step + body->steps - 1],
                   effect);
}

static uint32_t sender_of(const struct sim *sim, const struct msg *in)
{
    for (uint32_t i = 0; i < sim->ghost.members_count; i++)
        if (key_equal(&sim->ghost.members[i].key, &in->sender)) return i;
    return UINT32_MAX;
}

static void heard(struct sim *sim, uint8_t id, const struct msg *in)
{
    struct ghost_march *self = own(sim);
    const uint32_t i = id == COORDINATOR && !sim->disk.behind ? sender_of(sim, in) : UINT32_MAX;
    if (i == UINT32_MAX || (in->kind != FRAME_PING && in->kind != FRAME_JOIN)) return;
    const struct ghost_member *member = &sim->ghost.members[i];
    const bool here = member->state == MEMBER_HEALTHY || member->state == MEMBER_PENDING;
    const struct wire_ping *ping = in->body;
    const struct wire_join *join = in->body;
    // One that has restarted takes the first that comes for the newest
    if (self->life != sim->nodes[COORDINATOR].life)
        memset(self->ping_seq, 0, sizeof self->ping_seq);
    self->life = sim->nodes[COORDINATOR].life;
    if (in->kind == FRAME_JOIN) { // Another process, or one that comes back, begins anew
        if (member->state == MEMBER_HEALTHY && join->instance <= member->instance) return;
        self->held[i] = self->ping_seq[i] = 0;
        self->in_step[i] = false;
    } else if (here && ping->instance >= member->instance && in->seq >= self->ping_seq[i]) {
        self->ping_seq[i] = in->seq;
        self->held[i] = ping->step <= check_step(sim) + sim->ghost.ahead ? ping->step : 0;
        self->in_step[i] |= member->state == MEMBER_HEALTHY && self->held[i] > 0 &&
                            self->held[i] >= check_step(sim);
    }
}

// Trainers alone are ahead of the commits. (What a restore gave up may be the very steps that are taken again.)
static void stepped(struct sim *sim, uint8_t id)
{
    const struct node *node = &sim->nodes[id];
    const struct replica *replica = check_replica(node);
    hold(node->role == ACTOR_TRAINER || replica->step <= check_step(sim) ||
             replica->epoch < now(sim)->epoch,
         "a checkpointer keeps to what is committed", "%s at %" PRIu64, node->name, replica->step);
}

static void rebooted(struct sim *sim, uint8_t id)
{
    if (id != COORDINATOR) return;
    memset(own(sim)->held, 0, sizeof own(sim)->held);
    memset(own(sim)->in_step, 0, sizeof own(sim)->in_step);
}

const struct sim_pace sim_pace_march = { .one_in = 10,
                                         .draw = draw,
                                         .learn = learn,
                                         .takes_ms = takes_ms,
                                         .may_enter = may_enter,
                                         .admits = admits,
                                         .hear_record = hear_record,
                                         .said = said,
                                         .heard = heard,
                                         .stepped = stepped,
                                         .rebooted = rebooted };
