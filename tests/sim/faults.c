// faults -- what goes wrong once in a while, and what the owner does: crashes, freezes, full disks,
// partitions, leaving, the loss of all copies, pauses and restores.

#include "common/base/ensure.h"
#include "tests/sim/sim.h"

enum { PATIENCE_MS = 3000 };

uint64_t down_for(struct sim *self)
{
    return faulty(self) ? between(self, 50, roll(self, 4) ? 3000 : 20000) : between(self, 50, 1000);
}

static void control(struct sim *self, uint8_t action)
{
    struct node *node = &self->nodes[self->operator_node];
    struct wire_control body = { .action = action,
                                 .number = self->now_ms + 1,
                                 .incarnation = self->nodes[COORDINATOR].incarnation };
    size_t count = wire_pack_body(FRAME_CONTROL, &body, self->bytes, SCRATCH_BYTES);
    struct parcel *parcel = parcel_new(self, node, FRAME_CONTROL, self->bytes, (uint32_t)count);
    network_mail(self, (uint8_t)self->operator_node, "coordinator", parcel);
    parcel_release(parcel);
}

static void ask_to_leave(struct sim *self, uint8_t id)
{
    struct node *node = &self->nodes[id];
    node->leaving = true;
    node->patience_ms = self->now_ms + PATIENCE_MS;
    self->faults[LEAVE]++;
    node_hear(self, id, FRAME_QUIT, &(struct wire_quit){ 0 });
}

// All copies of what came after the newest checkpoint die at once, with those who hold them.
static void lose_all(struct sim *self)
{
    if (check_phase(self) == PHASE_FINISHED || self->ghost.restores > RESTORES_MAX / 2 ||
        !check_may_restore(self) || !chance(self, self->plan.lose_all))
        return;
    self->faults[LOSS_OF_ALL]++;
    self->ghost.all_lost = true;
    for (uint8_t id = 1; id < self->nodes_count; id++) {
        struct node *node = &self->nodes[id];
        if (node->role == ACTOR_CHECKPOINTER) node->store.count = 0;
        if (node->role != ACTOR_OPERATOR && node->up) node_crash(self, id, down_for(self));
    }
}

// True if the owner takes the run back: on a whim, or because nothing else is left.
static bool go_back(struct sim *self)
{
    const uint8_t phase = check_phase(self);
    if (!check_may_restore(self)) return false;
    // In a Cooldown, too, that nobody is left to end; while one may, it is refused
    if (phase != PHASE_WAITING && phase != PHASE_WARMUP && phase != PHASE_PAUSED &&
        (phase != PHASE_COOLDOWN || !self->ghost.all_lost))
        return false;
    if (!self->ghost.all_lost &&
        (self->ghost.restores_asked > RESTORES_MAX / 2 || !chance(self, self->plan.restore)))
        return false;
    self->ghost.restores_asked++;
    control(self, ACTION_RESTORE);
    return true;
}

// The run says that no majority holds the same state. The owner tests the machines, and ends the process whose
// state has changed by itself, as long as another one holds the step that the run can go on from.
static bool end_the_spoilt(struct sim *self)
{
    uint8_t spoilt = NOBODY, holders = 0;
    for (uint8_t id = 0; id < self->nodes_count; id++) {
        const struct node *node = &self->nodes[id];
        if (!node->up || !node->learner.holding || node->learner.step != check_step(self)) continue;
        if (!role_takes_steps(node->role)) continue;
        // One that dropped its state holds nothing any more
        if (((const struct member *)node->state)->step_held != check_step(self)) continue;
        // One that leaves keeps nothing either: in seed 19090 it left, the other was ended, and the run had no state
        if (node->leaving || node->quits) continue;
        // What one holds that a record names is not taken for the run's, not even if no other is left (differ.h). In
        // seed 4392 each of the three had a state of its own, and one of them was named
        if (node->learner.is_named) continue;
        holders++;
        if (node->learner.differs) spoilt = id;
    }
    if (spoilt == NOBODY || holders < 2 || roll(self, 3) == 0) return false;
    node_crash(self, spoilt, down_for(self));
    return true;
}

// The owner, before and after the healing: pauses now and then, and often at the last step, asks for
// checkpoints, and never leaves a run paused.
static void operate(struct sim *self)
{
    if (go_back(self)) return;
    bool paused = check_phase(self) == PHASE_PAUSED || self->ghost.pausing;
    const bool rests = check_phase(self) == PHASE_PAUSED || check_phase(self) == PHASE_COOLDOWN;
    const bool last = check_step(self) + 2 >= self->plan.rules.total_steps;
    if (rests && self->ghost.is_split && end_the_spoilt(self)) return;
    if ((roll(self, 1000) < self->plan.pause || (last && roll(self, 3) == 0)) && !paused) {
        self->ghost.pause_asked = true;
        control(self, ACTION_PAUSE);
        self->faults[PAUSE]++;
    } else if (paused && (!faulty(self) || roll(self, 5) == 0)) control(self, ACTION_RESUME);
    else if (roll(self, 20) == 0) control(self, ACTION_CHECKPOINT);
}

static void trouble(struct sim *self, uint8_t id)
{
    struct node *node = &self->nodes[id];
    const struct plan *plan = &self->plan;
    if (!node->up) return;
    if (self->now_ms >= node->patience_ms) node_crash(self, id, down_for(self));
    else if (chance(self, plan->crash) && may_lose(self, id)) {
        self->faults[CRASH]++;
        node_crash(self, id, down_for(self));
    } else if (chance(self, plan->full)) {
        self->faults[FULL_DISK]++;
        node->full_ms = self->now_ms + between(self, 500, 15000);
    } else if (chance(self, plan->freeze)) {
        // What has come waits for the end of the freeze. An earlier end would let a job overtake it.
        if (node->frozen_ms > self->now_ms) return;
        self->faults[FREEZE]++;
        node->frozen_ms = self->now_ms + between(self, 100, 10000);
    } else if (id != COORDINATOR && !node->leaving && chance(self, plan->leave) &&
               may_lose(self, id)) {
        ask_to_leave(self, id);
    }
}

static void redraw_partition(struct sim *self)
{
    if (!chance(self, self->plan.partition)) {
        if (!faulty(self)) self->far = 0;
        return;
    }
    self->far = self->far ? 0 : (uint32_t)roll(self, 1u << self->nodes_count);
    if (!self->far) return;
    self->far_ms = self->now_ms;
    uint64_t way = roll(self, 3); // Both ways, or one
    self->deaf = way != 1, self->mute = way != 2;
    self->faults[PARTITION]++;
}

// Who does not hear how the run goes on from its checkpoint stands there still when it comes back.
static void leave_behind(struct sim *self)
{
    const struct pin *back = &self->ghost.restore_point;
    const bool at_it = !hash_is_none(&back->digest) && back->step == check_step(self);
    if (self->plan.restore == 0 || self->far || !at_it || !chance(self, 150)) return;
    self->far = 1u << between(self, 1, self->plan.trainers);
    self->deaf = self->mute = true;
    self->far_ms = self->now_ms;
    self->faults[PARTITION]++;
}

bool faults_is_deaf(const struct sim *sim, uint8_t id)
{
    const bool is_far = sim->far >> id & 1, are_we = sim->far >> COORDINATOR & 1;
    const uint64_t search_ms = PACE_SEARCH_LEASES * (uint64_t)sim->plan.rules.lease_ms;
    return faulty(sim) && is_far != are_we && (is_far ? sim->deaf : sim->mute) &&
           !(is_far ? sim->mute : sim->deaf) && sim->now_ms - sim->far_ms >= search_ms;
}

void faults_draw(struct sim *self)
{
    redraw_partition(self);
    leave_behind(self);
    lose_all(self);
    operate(self);
    if (self->broker.up) post_office_expire(self->office, self->now_ms);
    if (self->broker.up && chance(self, self->plan.broker_crash)) broker_crash(self);
    else if (!self->broker.up && self->now_ms >= self->broker.up_again_ms) broker_boot(self);
    for (uint8_t id = 0; id < self->nodes_count; id++)
        if (self->nodes[id].role != ACTOR_OPERATOR) trouble(self, id);
    for (uint8_t id = 0; id < self->nodes_count; id++)
        if (is_liar(self, id)) intruder_act(self, id);
    impostor_act(self);
    greedy_act(self);
}
