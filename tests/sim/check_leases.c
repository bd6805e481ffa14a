// check_leases -- what the simulator must know of leases: one seed in five has them, without liars; what must hold of
// their records, and of what the learners did by then.
//
//    L1  a sample is in one lease at a time, and done once a pass   deal, check_done
//    L2  what is done was trained: by that process, and it has      check_task_pushed, end_done
//        pushed all of it to each server of its group
//    L3  a task is told once its lease is on record, to its holder  check_task
//    L4  a process has one lease at a time, and trains none twice   hear_lease, check_task_taken
//    L5  steps are the samples that are trained, batch by batch     go_on
//    L6  a task has so many strikes, one of each process, and no     strike, check_late
//        more; a lease has its time, also after a restart
//    L7  a group begins with what its members hold, and ends when   check_group_taken, hear_settled
//        all of them have put one state together
//    L8  what a group did that nobody put together is given up      entered, is_lost
//    L9  a save on the way is of a step of its own; the run goes   hear_save, hear_close
//        back to it with the data position that it then had        check_restore.c
//   L10  no task is lost: their counts are those of a pass          check_counts, check_table
//   L11  servers copy as they save, and keep one another's shares   hear_copy, hear_kept, check_memory.c
//        (that the run gets on once all is healed: world.c)

#include "common/base/ensure.h"
#include "common/run/leases.h"
#include "tests/sim/leases.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { OUT_MAX = 2 * NODES_MAX, LIST_MAX = 32, STRUCK_MAX = 256 };

struct ghost_lease {
    uint64_t number, instance, task, since_ms;
    uint32_t member, count;
    bool trained;
    struct interval list[LIST_MAX];
};

struct ghost_strike {
    uint64_t task, instance;
    uint32_t member;
};

struct ghost_leases {
    bool open, settled;
    bool went_back; // Since the newest group
    // The newest group has committed steps, and is over before all had put its state together
    bool unsettled;
    uint64_t number, step, dealt_before, rest;
    // The newest step to which a run could go back: what is trained since then is dealt again
    uint64_t since;
    uint64_t save_number, save_step; // The newest save; 0: none
    uint64_t copy_number, copy_step; // The newest that servers were told to copy; 0: none
    uint32_t group_count;
    struct wire_place group[NODES_MAX];
    struct wire_close_group closing; // The newest attempt; 0: none
    uint64_t answered;               // Places that have told the state of that attempt
    struct hash together; // What the first attempt that came to it has put together; none
    struct ghost_lease leases[OUT_MAX];
    uint32_t leases_count, struck_count;
    uint64_t newest, ended; // Lease; and how many have ended in all
    struct ghost_strike struck[STRUCK_MAX];
    uint64_t booted_ms; // When the coordinator began this life
};
_Static_assert(sizeof(struct ghost_leases) <= GHOST_PACE_BYTES, "it has room in the ghost");

static struct ghost_leases *own(struct sim *sim)
{
    return (struct ghost_leases *)(void *)sim->ghost.pace;
}

static const struct ghost_leases *own_of(const struct sim *sim)
{
    return (const struct ghost_leases *)(const void *)sim->ghost.pace;
}

static struct ghost_point *now(struct sim *sim) { return &sim->ghost.points[sim->ghost.records]; }

static const struct wire_leases_config *config_of(const struct sim *sim)
{
    return rules_strategy(&sim->plan.rules);
}

uint32_t leases_settle_ms(const struct sim *sim) { return config_of(sim)->settle_ms; }

static uint64_t bit(uint32_t place) { return (uint64_t)1 << place; }

// ---- the plan -----------------------------------------------------------------------------------

static void draw(struct sim *self)
{
    struct plan *plan = &self->plan;
    struct rules *rules = &plan->rules;
    const uint32_t least_ms = 500 + (uint32_t)aside(self, "time", 2000);
    struct wire_leases_config config = {
        .servers = 1 + (uint32_t)aside(self, "how many servers", plan->trainers < 7 ? 3 : 2),
        .push_every = 1,
        .pull_every = 1,
        .staleness = 1,
        .task_samples = 1 + aside(self, "task", 24),
        .strikes_max = (uint32_t)aside(self, "strikes", 4),
        .time_min_ms = least_ms,
        .time_max_ms = least_ms + (uint32_t)aside(self, "more time", 20000),
        .pass_barrier = aside(self, "pass barrier", 2),
        .settle_ms = 3000 + (uint32_t)aside(self, "settle", 6000),
        .connections = 1,
        .batch_start = rules->batch_start,
        .batch_end = rules->batch_end,
        .batch_warmup_tokens = rules->batch_warmup_tokens,
        .save_steps = aside(self, "saves", 3) ? 2 + (uint32_t)aside(self, "save steps", 20) : 0,
        .keep = saves_keep(self),
        .memory_every = aside(self, "copies", 3) ? 1 + (uint32_t)aside(self, "copy steps", 15) : 0,
        .buddies = 1 + (uint32_t)aside(self, "buddies", 2),
    };
    // In half of those with saves the servers write them; else an epoch ends for each
    if (config.save_steps && aside(self, "pieces", 2))
        snprintf(config.shared_dir, sizeof config.shared_dir, "/shared");
    rules_set_strategy(rules, FRAME_LEASES_CONFIG, &config, sizeof config);
    rules->cold_start_steps = 0;
    rules->epoch_rounds *= 4;
    // Nobody waits for anybody: in a fast seed the run ends before it has too many steps for the ghost
    const uint64_t most = rules->first_step + ROUNDS_MAX * 3 / 4;
    if (rules->total_steps > most) rules->total_steps = rules->frame.total_steps = most;
    plan->witnesses = plan->liars = plan->lies = 0;
    plan->stubborn = plan->collude = false;
    plan->thin = NOBODY;
    plan->damage = 0; // The checkpointer's folders are all that is left when a server dies
    plan->servers = config.servers + (uint32_t)aside(self, "standby", 2);
}

static bool learn(struct sim *self, uint8_t id, uint16_t kind, const void *job)
{
    return leases_learn(self, id, kind, job);
}

static uint64_t rounds(const struct sim *sim) { return own_of(sim)->ended; }

// ---- who holds what -----------------------------------------------------------------------------

static bool is_healthy(const struct sim *sim, uint32_t member, uint64_t instance)
{
    const struct ghost_member *place = &sim->ghost.members[member];
    return place->state == MEMBER_HEALTHY && place->instance == instance;
}

static bool can_go_back(const struct sim *sim)
{
    const struct pin *back = &sim->ghost.restore_point;
    return hash_is_none(&back->digest) || saves_have(sim, back->step, &back->digest) ||
           (sim->checkpointer_node != NOBODY &&
            checkpoints_have(&sim->nodes[sim->checkpointer_node], back->step, &back->digest));
}

// What a group begins with is pinned by its members, and is fetched from there if the group is lost at once. One that has
// not heard that its group is over says nothing of what it holds; the run waits for it as long as for one that is dead.
static bool keeps(const struct sim *sim, uint8_t id, uint64_t step)
{
    const struct learner *learner = &sim->nodes[id].learner;
    const struct hash *digest = &sim->ghost.digest[step];
    const bool is_first = !own_of(sim)->went_back && step == own_of(sim)->step;
    return (is_first && pins_have(learner, step, digest)) ||
           (learner->holding && !learner->group.number && learner->step == step &&
            hash_equal(&learner->digest, digest));
}

// Where the run could go back to, or somebody else who has its state.
static bool leaves_a_state(const struct sim *sim, uint8_t id)
{
    if (can_go_back(sim)) return true;
    for (uint8_t i = 0; i < sim->nodes_count; i++) {
        const struct node *node = &sim->nodes[i];
        if (i != id && node->up && !node->leaving && !node->quits && !check_is_of_before(sim, i) &&
            !own_of(sim)->open && keeps(sim, i, check_step(sim)))
            return true;
    }
    return false;
}

// Nobody that is up and in the run has the state of its step, or that it has one was not heard in time.
static bool is_lost(const struct sim *sim)
{
    if (own_of(sim)->unsettled) return true;
    for (uint32_t i = 0; i < sim->ghost.members_count; i++) {
        const uint8_t id = check_node(sim, i), state = sim->ghost.members[i].state;
        if (id != NOBODY && sim->nodes[id].up && !faults_is_deaf(sim, id) &&
            (state == MEMBER_HEALTHY || state == MEMBER_PENDING) && keeps(sim, id, check_step(sim)))
            return false;
    }
    return true;
}

// ---- groups -------------------------------------------------------------------------------------

static bool may_enter(const struct sim *sim, uint8_t from, uint8_t to)
{
    (void)sim;
    return from == PHASE_TRAIN && to == PHASE_COOLDOWN;
}

static uint32_t first_server(const struct sim *sim)
{
    return own_of(sim)->group_count - config_of(sim)->servers;
}

static void hear_group(struct sim *sim, const struct wire_group *said)
{
    struct ghost_leases *self = own(sim);
    struct ghost_point *point = now(sim);
    const struct rules *rules = &sim->plan.rules;
    const uint32_t servers = config_of(sim)->servers;
    hold(point->phase == PHASE_WARMUP && !self->open && said->number == point->round + 1 &&
             said->number < ROUNDS_MAX,
         "one group after the other", "%" PRIu64 " after %" PRIu64, said->number, point->round);
    hold(said->step == point->step && said->epoch == point->epoch &&
             said->samples_done == point->samples_done,
         "a group begins at the present step", "%" PRIu64, said->step);
    hold(said->group_count > servers && said->group_count < NODES_MAX &&
             said->group_count - servers >= rules->min_clients,
         "a group has min_clients and its servers", "group %" PRIu64 " has %u", said->number,
         said->group_count);
    for (uint32_t i = 0; i < said->group_count; i++) {
        const struct wire_place *at = &said->group[i];
        const bool serves = i >= said->group_count - servers;
        hold(is_healthy(sim, at->member, at->instance) &&
                 sim->ghost.members[at->member].role == (serves ? ACTOR_SERVER : ACTOR_TRAINER),
             "a group is of healthy members, by role", "place %u of group %" PRIu64, i,
             said->number);
    }
    self->open = true;
    self->settled = self->unsettled = self->went_back = false;
    self->number = said->number;
    self->step = self->since = said->step;
    self->dealt_before = self->newest;
    self->rest = 0;
    self->group_count = said->group_count;
    memcpy(self->group, said->group, said->group_count * sizeof *said->group);
    self->closing = (struct wire_close_group){ 0 };
    self->answered = 0;
    self->together = (struct hash){ { 0 } };
    sim->ghost.round_record[said->number] = sim->ghost.records;
    point->phase = PHASE_TRAIN;
    point->round = said->number;
}

static uint32_t place_of(const struct ghost_leases *self, uint32_t member, uint64_t instance)
{
    for (uint32_t i = 0; i < self->group_count; i++)
        if (self->group[i].member == member && self->group[i].instance == instance) return i;
    return NOBODY;
}

static void hear_close(struct sim *sim, const struct wire_close_group *said)
{
    struct ghost_leases *self = own(sim);
    const uint64_t all = bit(self->group_count) - 1;
    const uint64_t servers = all & ~(bit(first_server(sim)) - 1);
    hold(self->open && self->leases_count == 0 && !self->settled && said->number == self->number &&
             said->step == check_step(sim) && said->attempt == self->closing.attempt + 1,
         "a group is closed when no task is out", "attempt %" PRIu64, said->attempt);
    hold((said->members & ~all) == 0 && (said->members & servers) == servers,
         "a group is closed with all of its servers", "%#" PRIx64, said->members);
    hold(self->closing.attempt == 0 || (said->members & ~self->closing.members) == 0,
         "who is out of an attempt stays out", "%#" PRIx64, said->members);
    hold(self->newest == self->dealt_before ||
             (said->step > self->step &&
              (said->attempt > 1 || said->number != self->save_number ||
               said->step > self->save_step) &&
              (said->number != self->copy_number || said->step > self->copy_step)),
         "two states have two numbers", "step %" PRIu64, said->step);
    if (said->save) self->save_number = said->number, self->save_step = said->step;
    self->closing = *said;
    self->answered = 0;
}

static void hear_save(struct sim *sim, const struct wire_save_share *said)
{
    struct ghost_leases *self = own(sim);
    hold(self->open && self->closing.attempt == 0 && said->number == self->number &&
             said->step == check_step(sim) && said->step > self->since,
         "a save on the way is of a step of its own", "%" PRIu64, said->step);
    self->save_number = said->number;
    self->save_step = self->since = said->step;
}

// The same for a memory save.
static void hear_copy(struct sim *sim, const struct wire_save_share *said)
{
    struct ghost_leases *self = own(sim);
    hold(self->open && self->closing.attempt == 0 && said->number == self->number &&
             said->step == check_step(sim) && said->step > self->since,
         "a copy on the way is of a step of its own", "%" PRIu64, said->step);
    self->copy_number = said->number;
    self->copy_step = self->since = said->step;
}

static void hear_kept(struct sim *sim, const struct wire_record_kept *said)
{
    const struct ghost_leases *self = own(sim);
    hold(self->open && said->window == self->number && said->window == self->copy_number &&
             said->step == self->copy_step,
         "a memory save is of the newest copies", "step %" PRIu64, said->step);
    sim->ghost.digest[said->step] = said->digest;
    check_memory_kept(sim, said, self->group + first_server(sim), config_of(sim)->servers,
                      config_of(sim)->buddies);
}

// The first whole one of a step says what its state is; of what was put together that is known.
void check_saved_whole(struct sim *sim, uint64_t number, uint64_t step, const struct hash *digest)
{
    const struct ghost_leases *self = own(sim);
    if (number != self->save_number || step != self->save_step || step >= ROUNDS_MAX) return;
    struct hash *known = &sim->ghost.digest[step];
    if (hash_is_none(known)) *known = *digest;
    hold(hash_equal(known, digest), "what is saved is what was put together", "step %" PRIu64,
         step);
}

static void hear_settled(struct sim *sim, const struct wire_group_settled *said)
{
    struct ghost_leases *self = own(sim);
    hold(self->open && said->number == self->number && said->attempt == self->closing.attempt &&
             said->attempt > 0,
         "a group settles in its newest attempt", "%" PRIu64, said->attempt);
    hold((self->closing.members & ~self->answered) == 0,
         "a group has settled when all hold its state", "%#" PRIx64 " of %#" PRIx64, self->answered,
         self->closing.members);
    hold(said->differ == 0, "nobody is said to differ who does not", "%#" PRIx64, said->differ);
    self->settled = true;
}

// The state of a step that was put together. Each attempt comes to the same one: no server applies a push meanwhile.
// It may come to it when the coordinator has given it up, too: as long as the run has not gone back, it is the run's; else
// it is what the run was.
void check_together(struct sim *sim, const struct wire_close_group *closing,
                    const struct hash *digest)
{
    struct ghost_leases *self = own(sim);
    struct ghost *ghost = &sim->ghost;
    if (closing->number != self->number || closing->step >= ROUNDS_MAX) return;
    hold(hash_is_none(&self->together) || hash_equal(&self->together, digest),
         "all attempts put the same state together", "attempt %" PRIu64, closing->attempt);
    self->together = *digest;
    if (!self->open && !self->unsettled) {
        if (ghost->pasts > 0) ghost->past[ghost->pasts - 1].digest[closing->step] = *digest;
        return;
    }
    hold(closing->step == check_step(sim), "a state is put together of the present step",
         "%" PRIu64, closing->step);
    ghost->digest[closing->step] = *digest;
}

// ---- tasks --------------------------------------------------------------------------------------

static struct ghost_lease *lease_of(struct ghost_leases *self, uint64_t number)
{
    for (uint32_t i = 0; i < self->leases_count; i++)
        if (self->leases[i].number == number) return &self->leases[i];
    return NULL;
}

static uint64_t pass_samples(struct sim *sim)
{
    return ((const struct coordinator *)sim->nodes[COORDINATOR].state)->run.pass_samples;
}

static void check_pass(struct sim *sim, const struct wire_lease *said)
{
    const uint64_t length = pass_samples(sim), size = config_of(sim)->task_samples;
    const uint64_t pass = said->task / length, end = (pass + 1) * length;
    const uint64_t last = said->task + size < end ? said->task + size : end;
    hold((said->task - pass * length) % size == 0 && said->samples_count > 0 &&
             said->samples[0].begin >= said->task &&
             said->samples[said->samples_count - 1].end <= last,
         "a lease is of one task", "%" PRIu64, said->task);
    if (!config_of(sim)->pass_barrier) return;
    for (uint64_t p = 0; p < pass * length; p++)
        hold(sim->ghost.samples[p] != TABLE_PENDING, "a pass is over before the next begins",
             "sample %" PRIu64, p);
}

static uint64_t task_at(struct sim *sim, uint64_t position)
{
    const uint64_t length = pass_samples(sim), begin = position / length * length;
    return begin + (position - begin) / config_of(sim)->task_samples * config_of(sim)->task_samples;
}

static bool has_struck(const struct ghost_leases *self, uint64_t task, uint32_t member,
                       uint64_t instance)
{
    for (uint32_t i = 0; i < self->struck_count; i++)
        if (self->struck[i].task == task && self->struck[i].member == member &&
            self->struck[i].instance == instance)
            return true;
    return false;
}

// The lowest that are to do, but for tasks that this process has struck.
static void deal(struct sim *sim, const struct wire_lease *said)
{
    struct ghost *ghost = &sim->ghost;
    const bool is_left = has_struck(own(sim), said->task, said->member, said->instance);
    for (uint64_t p = 0; p < said->task; p++)
        hold(ghost->samples[p] != TABLE_TODO || is_left ||
                 has_struck(own(sim), task_at(sim, p), said->member, said->instance),
             "what was returned is dealt first", "sample %" PRIu64 " was left out", p);
    for (uint32_t i = 0; i < said->samples_count; i++)
        for (uint64_t p = said->samples[i].begin; p < said->samples[i].end; p++) {
            hold(p < POSITIONS_MAX && ghost->samples[p] == TABLE_TODO, "no sample is dealt twice",
                 "sample %" PRIu64, p);
            ghost->samples[p] = TABLE_PENDING;
            if (p >= ghost->cursor) ghost->cursor = p + 1;
        }
}

static void hear_lease(struct sim *sim, const struct wire_lease *said)
{
    struct ghost_leases *self = own(sim);
    const uint32_t place = place_of(self, said->member, said->instance);
    hold(self->open && self->closing.attempt == 0 && said->number == self->newest + 1,
         "a task is dealt in an open group", "lease %" PRIu64, said->number);
    hold(place < first_server(sim) && is_healthy(sim, said->member, said->instance),
         "a task is dealt to a trainer of the group", "member %u", said->member);
    for (uint32_t i = 0; i < self->leases_count; i++)
        hold(self->leases[i].member != said->member, "a trainer has one task at a time",
             "member %u", said->member);
    hold(self->leases_count < OUT_MAX && said->samples_count <= LIST_MAX, "a simulation is small",
         "%u leases", self->leases_count);
    check_pass(sim, said);
    deal(sim, said);
    struct ghost_lease *lease = &self->leases[self->leases_count++];
    *lease = (struct ghost_lease){ .number = said->number,
                                   .instance = said->instance,
                                   .task = said->task,
                                   .since_ms = sim->now_ms,
                                   .member = said->member,
                                   .count = said->samples_count };
    memcpy(lease->list, said->samples, said->samples_count * sizeof *said->samples);
    self->newest = said->number;
}

static uint32_t count_strikes(const struct ghost_leases *self, uint64_t task)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < self->struck_count; i++) count += self->struck[i].task == task;
    return count;
}

static void forget_strikes(struct sim *sim, uint64_t task)
{
    struct ghost_leases *self = own(sim);
    for (uint32_t i = 0; i < self->struck_count; i++)
        if (self->struck[i].task == task) self->struck[i--] = self->struck[--self->struck_count];
}

static void set_samples(struct sim *sim, const struct ghost_lease *lease, uint8_t state)
{
    for (uint32_t i = 0; i < lease->count; i++)
        for (uint64_t p = lease->list[i].begin; p < lease->list[i].end; p++) {
            if (state == TABLE_DONE) check_done(sim, p);
            sim->ghost.samples[p] = state;
            // A state is saved, or put together, of all that a group has done by then
            sim->ghost.done_step[p] = (uint16_t)own(sim)->since;
        }
}

static void check_late(struct sim *sim, const struct ghost_lease *lease)
{
    const struct ghost_leases *self = own(sim);
    const uint64_t since = lease->since_ms > self->booted_ms ? lease->since_ms : self->booted_ms;
    hold(sim->now_ms - since >= config_of(sim)->time_min_ms, "a lease has its time",
         "%" PRIu64 " after %" PRIu64 " ms", lease->number, sim->now_ms - since);
}

static void check_cause(struct sim *sim, const struct wire_lease_ended *said,
                        const struct ghost_lease *lease)
{
    hold((said->fate == FATE_DONE) == (said->cause == LEASE_CAUSE_FINISHED),
         "a lease is done when its task is finished", "%" PRIu64, said->lease);
    if (said->cause == LEASE_CAUSE_LATE) check_late(sim, lease);
    if (said->cause == LEASE_CAUSE_DEAD)
        hold(!is_healthy(sim, lease->member, lease->instance), "who is said to be gone is",
             "member %u", lease->member);
}

static void strike(struct sim *sim, const struct wire_lease_ended *said,
                   const struct ghost_lease *lease)
{
    struct ghost_leases *self = own(sim);
    const bool is_new = !has_struck(self, lease->task, lease->member, lease->instance);
    const uint32_t strikes = count_strikes(self, lease->task) + is_new;
    const bool is_last = strikes > config_of(sim)->strikes_max;
    if (said->cause == LEASE_CAUSE_NO_DATA) {
        hold(said->fate == FATE_RETURNED, "who lacks samples strikes nothing", "task %" PRIu64,
             lease->task);
        set_samples(sim, lease, TABLE_TODO);
        return;
    }
    hold(said->fate == (is_last ? FATE_GIVEN_UP : FATE_RETURNED), "so many strikes and no more",
         "task %" PRIu64 " has %u", lease->task, strikes);
    if (is_last) forget_strikes(sim, lease->task);
    else if (is_new) {
        hold(self->struck_count < STRUCK_MAX, "a simulation is small", "%u strikes",
             self->struck_count);
        self->struck[self->struck_count++] =
            (struct ghost_strike){ lease->task, lease->instance, lease->member };
    }
    set_samples(sim, lease, is_last ? TABLE_FAILED : TABLE_TODO);
}

static void end_done(struct sim *sim, const struct wire_lease_ended *said,
                     const struct ghost_lease *lease)
{
    const uint64_t before = sim->ghost.done;
    hold(lease->trained, "what is done was trained", "lease %" PRIu64, said->lease);
    set_samples(sim, lease, TABLE_DONE);
    hold(said->samples == sim->ghost.done - before, "a lease counts its samples", "%" PRIu64,
         said->samples);
    forget_strikes(sim, lease->task);
}

static uint32_t batch_at(const struct sim *sim, uint64_t done)
{
    const struct rules *rules = &sim->plan.rules;
    return schedule_batch_size(rules->batch_start, rules->batch_end, rules->batch_warmup_tokens,
                               done * rules->seq_len);
}

// The steps that these samples complete.
static void go_on(struct sim *sim, const struct wire_lease_ended *said)
{
    struct ghost_leases *self = own(sim);
    struct ghost_point *point = now(sim);
    hold(said->step == point->step, "steps follow one another", "%" PRIu64, said->step);
    self->rest += said->samples;
    uint64_t whole = point->samples_done - self->rest;
    while (point->step < sim->plan.rules.total_steps && self->rest >= batch_at(sim, whole)) {
        const uint32_t batch = batch_at(sim, whole);
        self->rest -= batch;
        whole += batch;
        point->step++;
        hold(point->step < ROUNDS_MAX, "a simulation is small", "step %" PRIu64, point->step);
        sim->ghost.digest[point->step] = (struct hash){ { 0 } }; // Nobody has put it together
    }
    hold(said->end == point->step && said->rest == self->rest,
         "steps are what is trained, batch by batch", "%" PRIu64 " and %" PRIu64 " of %" PRIu64,
         said->end, said->rest, point->step);
}

// A group that is about to be closed makes one step of all that it did.
static void make_a_step(struct sim *sim, const struct wire_lease_ended *said)
{
    struct ghost_leases *self = own(sim);
    struct ghost_point *point = now(sim);
    const bool is_saved = (self->save_number == self->number && self->save_step == point->step) ||
                          (self->copy_number == self->number && self->copy_step == point->step);
    hold(self->open && self->leases_count == 0 && (point->step == self->step || is_saved) &&
             self->newest > self->dealt_before && said->step == point->step &&
             said->end == said->step + 1 && said->rest == 0 && said->samples == 0,
         "a step without a lease is needed", "%" PRIu64, said->end);
    self->rest = 0;
    point->step++;
    sim->ghost.digest[point->step] = (struct hash){ { 0 } };
}

static void hear_ended(struct sim *sim, const struct wire_lease_ended *said)
{
    struct ghost_leases *self = own(sim);
    if (said->cause == LEASE_CAUSE_CLOSED) {
        make_a_step(sim, said);
        return;
    }
    struct ghost_lease *lease = lease_of(self, said->lease);
    hold(lease, "a lease ends once", "%" PRIu64, said->lease);
    check_cause(sim, said, lease);
    if (said->fate == FATE_DONE) end_done(sim, said, lease);
    else strike(sim, said, lease);
    go_on(sim, said);
    *lease = self->leases[--self->leases_count];
    self->ended++;
}

static void hear_record(struct sim *sim, uint16_t kind, const void *record)
{
    if (kind == FRAME_RECORD_GROUP) hear_group(sim, record);
    if (kind == FRAME_RECORD_LEASE) hear_lease(sim, record);
    if (kind == FRAME_RECORD_LEASE_END) hear_ended(sim, record);
    if (kind == FRAME_RECORD_SAVE) hear_save(sim, record);
    if (kind == FRAME_RECORD_COPY) hear_copy(sim, record);
    if (kind == FRAME_RECORD_KEPT) hear_kept(sim, record);
    if (kind == FRAME_RECORD_CLOSE) hear_close(sim, record);
    if (kind == FRAME_RECORD_SETTLED) hear_settled(sim, record);
}

// What such a group did has no state. If it has no step either, there is nothing to go back from: its samples are
// todo again at once.
static void go_back(struct sim *sim)
{
    struct ghost *ghost = &sim->ghost;
    for (uint64_t p = 0; p < ghost->cursor; p++) {
        const bool done = ghost->samples[p] == TABLE_DONE;
        if ((!done && ghost->samples[p] != TABLE_FAILED) || ghost->done_step[p] != own(sim)->step)
            continue;
        ghost->samples[p] = TABLE_TODO;
        ghost->done -= done;
        now(sim)->samples_done -= done;
    }
}

static void entered(struct sim *sim, uint8_t to)
{
    struct ghost_leases *self = own(sim);
    if (to != PHASE_COOLDOWN || !self->open) return;
    self->open = false;
    for (uint32_t i = 0; i < self->leases_count; i++)
        set_samples(sim, &self->leases[i], TABLE_TODO);
    self->leases_count = 0;
    self->unsettled = !self->settled && check_step(sim) > self->step;
    if (!self->settled && check_step(sim) == self->step) go_back(sim);
}

static void way_back(struct sim *sim, const struct wire_record_restore *record, bool lost,
                     bool is_own, struct pin *back)
{
    check_memory_back(sim, record, lost, is_own, back);
    own(sim)->struck_count = 0; // All are dealt again
    own(sim)->rest = own(sim)->save_number = own(sim)->save_step = 0;
    own(sim)->copy_number = own(sim)->copy_step = 0;
    own(sim)->unsettled = false;
    own(sim)->went_back = true;
}

// ---- what learners do ---------------------------------------------------------------------------

void check_group_taken(struct sim *sim, uint8_t id, const struct wire_take_group *job)
{
    const struct learner *learner = &sim->nodes[id].learner;
    if (check_is_of_before(sim, id) || sim->disk.behind) return;
    hold(learner->holding && learner->step == job->step &&
             check_was_digest(sim, job->step, &learner->digest),
         "a group begins with what its members hold", "%s at %" PRIu64, sim->nodes[id].name,
         job->step);
    if (job->step != sim->ghost.pin_step || sim->ghost.restores > 0) return;
    hold(pins_have(learner, job->step, &sim->ghost.digest[job->step]),
         "what an epoch begins with is pinned before it is left", "%s leaves step %" PRIu64,
         sim->nodes[id].name, job->step);
}

void check_task_taken(struct sim *sim, uint8_t id, const struct wire_train_task *job)
{
    const struct sim_group *group = &sim->nodes[id].learner.group;
    hold(group->place < group->count - group->servers && !group->lease && !group->frozen &&
             job->lease > group->newest,
         "a task is trained once by one process", "%s, lease %" PRIu64, sim->nodes[id].name,
         job->lease);
}

void check_task_pushed(struct sim *sim, uint8_t id, uint64_t number)
{
    struct ghost_lease *lease = lease_of(own(sim), number);
    if (check_is_of_before(sim, id) || !lease) return; // It is over by now
    lease->trained |= check_node(sim, lease->member) == id &&
                      lease->instance == sim->nodes[id].instance &&
                      sim->nodes[id].learner.group.number == own(sim)->number;
}

// ---- words --------------------------------------------------------------------------------------

static void check_task(struct sim *sim, const struct effect *effect)
{
    const struct wire_task *said =
        unpack(sim, &sim->scratch, effect->kind, effect->body, effect->bytes);
    const struct ghost_lease *lease = lease_of(own(sim), said->lease);
    hold(lease && said->number == own(sim)->number &&
             check_node(sim, lease->member) == node_named(sim, effect->to) &&
             said->samples_count == lease->count &&
             memcmp(said->samples, lease->list, lease->count * sizeof *lease->list) == 0,
         "a task is told once it is on record", "lease %" PRIu64 " to %s", said->lease, effect->to);
}

static void check_counts(struct sim *sim, const struct effect *effect)
{
    const struct wire_run *said =
        unpack(sim, &sim->scratch, effect->kind, effect->body, effect->bytes);
    const uint64_t size = config_of(sim)->task_samples;
    const uint64_t sum =
        said->tasks.todo + said->tasks.pending + said->tasks.done + said->tasks.failed;
    hold(!said->pass_samples || sum == (said->pass_samples + size - 1) / size,
         "the tasks of a pass are all counted", "%" PRIu64 " of %" PRIu64, sum, said->pass_samples);
}

static void keep_answer(struct sim *sim, uint8_t id, const struct effect *effect)
{
    struct ghost_leases *self = own(sim);
    const struct wire_settled *said =
        unpack(sim, &sim->scratch, effect->kind, effect->body, effect->bytes);
    const uint32_t place = place_of(self, check_member(sim, id), said->instance);
    if (!self->open || said->number != self->number || said->attempt != self->closing.attempt ||
        !said->ok || place == NOBODY)
        return;
    hold(hash_equal(&said->digest, &self->together), "what is told was put together", "%s",
         sim->nodes[id].name);
    self->answered |= bit(place);
}

static void said(struct sim *sim, uint8_t id, const struct effect *effect)
{
    if (effect->kind == FRAME_SETTLED) keep_answer(sim, id, effect);
    if (id != COORDINATOR) return;
    if (effect->kind == FRAME_TASK) check_task(sim, effect);
    if (effect->kind == FRAME_RUN) check_counts(sim, effect);
    if (effect->kind != FRAME_GROUP) return;
    const struct wire_group *group =
        unpack(sim, &sim->scratch, effect->kind, effect->body, effect->bytes);
    check_recorded(sim, sim->ghost.round_record[group->number], effect);
}

static void rebooted(struct sim *sim, uint8_t id)
{
    if (id == COORDINATOR) own(sim)->booted_ms = sim->now_ms;
}

const struct sim_pace sim_pace_leases = { .one_in = 5,
                                          .draw = draw,
                                          .learn = learn,
                                          .takes_ms = words_take_ms,
                                          .built = words_built,
                                          .may_enter = may_enter,
                                          .entered = entered,
                                          .rounds = rounds,
                                          .may_restore = is_lost,
                                          .way_back = way_back,
                                          .may_lose = leaves_a_state,
                                          .hear_record = hear_record,
                                          .said = said,
                                          .rebooted = rebooted };
