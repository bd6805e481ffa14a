// check_windows -- what the simulator must know of windows: one seed in four has them, without liars but for one
// whose words are loose (loose.c); what must hold of their records, and of what the learners hold at each of these.
//
//    W1  nobody applies a step outside a recorded window         check_window_step
//    W2  what is committed, every live member of its group holds  check_held
//    W3  who hold the same step hold equal bits                  check_window_step
//    W4  a sample is in one committed step of a pass             check_dealt, check_done
//    W5  nobody goes beyond the step at which a window is closed check_window_step, check_closed
//        (with shares: by the step in hand, and drops its state)
//    W6  a member begins with what the window begins with        check_window_begun
//    W7  void is what was void, and is tried twice at most       check_void, hear_window
//    W8  a restore takes all to one step                         check_restore.c, check_words.c
//    W9  once healed it gets on                                  world.c
//    W10 a state that changed by itself is found when the turn   check_window_agrees
//        of its leaf comes; who is named is one whose state did, check_differ
//        and trains again only once it has fetched another       check_window_begun
//   W11  a window names only those that are linked, and they     check_linked, awaits
//        join once their links stand
//     -  an epoch's first state is pinned before it is left      check_window_begun

#include "common/base/ensure.h"
#include "common/run/holder.h"
#include "tests/sim/windows.h"
#include <inttypes.h>
#include <string.h>

struct ghost_window {
    uint64_t number, step, end, samples_done, taken;
    uint32_t count, group_count;
    struct interval samples[WINDOW_SAMPLES_MAX];
    struct wire_place group[NODES_MAX];
};

enum { ODD_MAX = 16 };
struct ghost_windows {
    uint32_t open;
    struct ghost_window windows[2];
    uint64_t ended[ROUNDS_MAX]; // By number: 1 + the step at which it is over; 0: it is open
    bool lost[ROUNDS_MAX];      // By number: it was closed though nobody lived that could say where
    uint64_t steps_record;      // The newest STEPS
    uint64_t closing_record;    // The newest that closed a window
    struct wire_voided voided;  // The newest step that was void
    bool adopted[ROUNDS_MAX];   // By step: the run has the state of one that differed
    struct pin odd[ODD_MAX]; // States that had changed by themselves, as they were told; in turns
    uint32_t odd_count;
};
_Static_assert(sizeof(struct ghost_windows) <= GHOST_PACE_BYTES, "it has room in the ghost");

static struct ghost_windows *own(struct sim *sim)
{
    return (struct ghost_windows *)(void *)sim->ghost.pace;
}

static struct ghost_point *now(struct sim *sim) { return &sim->ghost.points[sim->ghost.records]; }

// ---- the plan -----------------------------------------------------------------------------------

// In a third of the seeds each keeps a share of the optimizer's state.
static bool draws_shares(const struct sim *self) { return aside(self, "shares", 3) == 0; }

// In these and in a third of the others the members save. Not where a state changes by itself: what is saved of such a
// state is wrong until the check of its leaf finds it (learner_pieces.c).
uint32_t windows_save_steps(const struct sim *self)
{
    const uint32_t every = 1 + (uint32_t)aside(self, "save steps", 12);
    if (draws_shares(self)) return every;
    return aside(self, "saves", 3) || aside(self, "spoilt", 2) == 0 ? 0 : every;
}

// In a third of the seeds with shares the shares are with parameter servers; in half of those one more stands by.
static uint32_t servers(const struct sim *self)
{
    const bool are = draws_shares(self) && aside(self, "servers", 3) == 0;
    return are ? 1 + (uint32_t)aside(self, "how many servers", 2) : 0;
}

// In two of three seeds of shares they copy them in memory, too.
static uint32_t memory_every(const struct sim *self)
{
    const bool copies = draws_shares(self) && aside(self, "copies", 3) > 0;
    return copies ? 1 + (uint32_t)aside(self, "copy steps", 8) : 0;
}

static void draw(struct sim *self)
{
    struct plan *plan = &self->plan;
    struct rules *rules = &plan->rules;
    const struct wire_windows_config config = {
        .lanes = 8,
        .window_ms = 400 + (uint32_t)aside(self, "window", 2600),
        .step_timeout_ms = 1500 + (uint32_t)aside(self, "timeout", 3000),
        .connections = 1,
        .batch_start = rules->batch_start,
        .batch_end = rules->batch_end,
        .batch_warmup_tokens = rules->batch_warmup_tokens,
        .save_steps = windows_save_steps(self),
        .parts = draws_shares(self) ? PARTS_MOMENTS : PARTS_NONE,
        .memory_every = memory_every(self),
        .buddies = 1 + (uint32_t)aside(self, "buddies", 2),
        .servers = servers(self),
        .shared_dir = "/shared",
        .keep = saves_keep(self),
    };
    rules_set_strategy(rules, FRAME_WINDOWS_CONFIG, &config, sizeof config);
    rules->cold_start_steps = 0;
    rules->epoch_rounds *= 8; // They are steps here: an epoch has several windows
    plan->witnesses = plan->liars = plan->lies = 0;
    plan->stubborn = plan->collude = false;
    plan->servers = config.servers ? config.servers + (uint32_t)aside(self, "standby", 2) : 0;
    plan->thin = NOBODY;
    if (aside(self, "loose", 4) == 0)
        plan->loose = 1 + (uint32_t)aside(self, "who is loose", plan->trainers);
}

uint32_t windows_batch(const struct sim *sim, uint64_t done)
{
    const struct rules *rules = &sim->plan.rules;
    return schedule_batch_size(rules->batch_start, rules->batch_end, rules->batch_warmup_tokens,
                               done * rules->seq_len);
}

struct hash windows_digest(const struct hash *digest, const struct interval *samples,
                           uint32_t count)
{
    return hash_of_two(digest, HASH_BYTES, samples, count * sizeof *samples);
}

static bool learn(struct sim *self, uint8_t id, uint16_t kind, const void *job)
{
    return windows_learn(self, id, kind, job);
}

// ---- who holds what -----------------------------------------------------------------------------

static bool is_process(const struct sim *sim, const struct wire_place *place)
{
    const uint8_t id = check_node(sim, place->member);
    return id != NOBODY && sim->nodes[id].up && sim->nodes[id].instance == place->instance;
}

// It holds this step of the window, or can apply it from memory.
static bool can_hold(const struct sim *sim, uint8_t id, uint64_t step, bool from_memory)
{
    const struct learner *learner = &sim->nodes[id].learner;
    if (!learner->holding) return false;
    return learner->step >= step ||
           (from_memory && learner->step + 1 == step && windows_has(sim, id));
}

// This process is up, and is of the run as the ledger has it.
static bool is_in_run(const struct sim *sim, uint32_t member)
{
    const uint8_t id = check_node(sim, member), state = sim->ghost.members[member].state;
    return id != NOBODY && sim->nodes[id].up &&
           (state == MEMBER_HEALTHY || state == MEMBER_PENDING);
}

// Each share of what is committed is with somebody. `but`: of whom none counts, or NOBODY.
static bool shares_are_here(const struct sim *sim, uint8_t but)
{
    const uint64_t step = check_step(sim);
    uint64_t here[NODES_MAX] = { 0 };
    for (uint32_t i = 0; i < sim->ghost.members_count; i++) {
        const uint8_t id = check_node(sim, i);
        if (!is_in_run(sim, i) || id == but) continue;
        const struct learner *learner = &sim->nodes[id].learner;
        const struct sim_shares *shares = &learner->exchange.shares;
        if (!learner->holding || !shares->only || shares->computes || shares->dropped ||
            learner->step != step || !check_is_settled(sim, step, &learner->digest) ||
            shares->owners >= NODES_MAX)
            continue;
        here[shares->owners] |= (uint64_t)1 << shares->owner;
        if (here[shares->owners] == ((uint64_t)2 << (shares->owners - 1)) - 1) return true;
    }
    return false;
}

// The newest save on record is there; or there is none yet, and the run can begin again.
static bool can_go_back(const struct sim *sim)
{
    const struct pin *back = &sim->ghost.restore_point;
    return hash_is_none(&back->digest) || saves_have(sim, back->step, &back->digest);
}

// Somebody else keeps what is committed, in its memory or pinned; or what may be, by the words on their way: the
// step that this one holds, or can apply from memory and may have said so (seed 91461).
static bool leaves_a_holder(const struct sim *sim, uint8_t id)
{
    const struct learner *own_learner = &sim->nodes[id].learner;
    uint64_t step = check_step(sim);
    const bool shared = windows_have_shares(sim);
    if (shared && (can_go_back(sim) || shares_are_here(sim, id))) return true;
    const uint64_t mine = own_learner->step + can_hold(sim, id, own_learner->step + 1, true);
    if (own_learner->holding && mine > step &&
        check_is_settled(sim, own_learner->step, &own_learner->digest))
        step = mine;
    for (uint8_t i = 0; i < sim->nodes_count; i++) {
        const struct node *node = &sim->nodes[i];
        const struct learner *learner = &node->learner;
        if (i == id || !node->up || node->leaving || node->quits) continue;
        // This one belongs to the run before the ledger was lost. It ends when it hears of the new run (seed 3195)
        if (check_is_of_before(sim, i)) continue;
        // Two states compete: the run may be bound to the one that goes, by the report of a member that is dead by then
        if (learner->holding && own_learner->holding && learner->step == own_learner->step &&
            learner->step >= check_step(sim) && !hash_equal(&learner->digest, &own_learner->digest))
            return false;
        if (learner->differs) continue; // It drops its state once the others have named it
        if (step == check_step(sim) && pins_have(learner, step, &sim->ghost.digest[step]))
            return true;
        if (shared && (learner->exchange.shares.only || learner->exchange.shares.dropped)) continue;
        if (can_hold(sim, i, step, !shared) &&
            (learner->step + 1 == step || check_is_settled(sim, learner->step, &learner->digest)))
            return true;
    }
    return step == sim->plan.rules.first_step;
}

// Its core has given up what the learner still has: a restore that it missed gave up that step, which the run has come to
// again since, with the same bits (seed 59170).
static bool has_dropped(const struct sim *sim, uint8_t id)
{
    const struct member *member = sim->nodes[id].state;
    return member->step_held == 0 && check_step(sim) > 0;
}

// Nobody that is up and in the run holds what is committed. (What is pinned of it is, if at all, a checkpoint.)
static bool is_lost(const struct sim *sim)
{
    const uint64_t step = check_step(sim);
    for (uint32_t i = 0; i < sim->ghost.members_count; i++) {
        if (!is_in_run(sim, i) || faults_is_deaf(sim, check_node(sim, i))) continue;
        const struct learner *learner = &sim->nodes[check_node(sim, i)].learner;
        const struct sim_shares *shares = &learner->exchange.shares;
        if (learner->holding && learner->step == step && !shares->only && !shares->dropped &&
            !has_dropped(sim, check_node(sim, i)) && check_is_settled(sim, step, &learner->digest))
            return false;
    }
    return !shares_are_here(sim, NOBODY);
}

// ---- records ------------------------------------------------------------------------------------

static bool may_enter(const struct sim *sim, uint8_t from, uint8_t to)
{
    return from == PHASE_TRAIN && to == PHASE_COOLDOWN && sim->ghost.ahead == 0;
}

// Trainers that need no state, as servers have it.
static bool admits(const struct sim *sim)
{
    const struct wire_windows_config *config = rules_strategy(&sim->plan.rules);
    return config->servers > 0 && now((struct sim *)(uintptr_t)sim)->phase == PHASE_TRAIN;
}

static void keep_digests(struct sim *sim, struct ghost_window *window)
{
    struct ghost *ghost = &sim->ghost;
    uint64_t at = 0;
    for (uint64_t step = window->step; step < window->end; step++) {
        struct interval list[WINDOW_SAMPLES_MAX];
        const uint32_t batch = windows_batch(sim, window->samples_done + at);
        const uint32_t count = (uint32_t)interval_list_slice(window->samples, window->count, at,
                                                             at + batch, NULL, list);
        ghost->digest[step + 1] = windows_digest(&ghost->digest[step], list, count);
        at += batch;
    }
    hold(at == interval_list_total(window->samples, window->count), "each step has its samples",
         "%" PRIu64 " for window %" PRIu64, at, window->number);
}

static bool is_named(const struct sim *sim, const struct wire_place *group, uint32_t count,
                     uint8_t id)
{
    for (uint32_t i = 0; i < count; i++)
        if (check_node(sim, group[i].member) == id && is_process(sim, &group[i])) return true;
    return false;
}

static void check_linked(struct sim *sim, const struct wire_window *said)
{
    uint8_t pair[2];
    if (!windows_unlinkable(sim, pair) || windows_may_link(sim, pair[0], pair[1])) return;
    hold(!is_named(sim, said->group, said->group_count, pair[0]) ||
             !is_named(sim, said->group, said->group_count, pair[1]),
         "a window names only those that are linked", "%s and %s in window %" PRIu64,
         sim->nodes[pair[0]].name, sim->nodes[pair[1]].name, said->number);
}

// Both are here, and are not yet in one window.
static bool awaits(const struct sim *sim)
{
    const struct ghost_window *newest =
        &((const struct ghost_windows *)(const void *)sim->ghost.pace)->windows[0];
    uint8_t pair[2];
    if (!windows_unlinkable(sim, pair)) return false;
    for (int i = 0; i < 2; i++) {
        const struct node *node = &sim->nodes[pair[i]];
        if (!node->up || node->leaving || node->quits || node->ended) return false;
    }
    return !is_named(sim, newest->group, newest->group_count, pair[0]) ||
           !is_named(sim, newest->group, newest->group_count, pair[1]);
}

static void hear_window(struct sim *sim, const struct wire_window *said)
{
    struct ghost *ghost = &sim->ghost;
    struct ghost_windows *self = own(sim);
    struct ghost_point *point = now(sim);
    const struct rules *rules = &sim->plan.rules;
    const struct ghost_window *before = &self->windows[0];
    hold(point->phase == PHASE_WARMUP || point->phase == PHASE_TRAIN, "phases move as drawn",
         "%s to RoundTrain", run_phase_name(point->phase));
    hold(said->number == point->round + 1 && said->number < ROUNDS_MAX && self->open < 2,
         "one window after the other", "%" PRIu64 " after %" PRIu64, said->number, point->round);
    hold(said->step == (self->open ? before->end : point->step) && said->epoch == point->epoch &&
             said->steps > 0 && said->step + said->steps <= rules->total_steps &&
             said->step + said->steps < ROUNDS_MAX,
         "a window begins where the one before it ends", "%" PRIu64, said->step);
    const uint32_t servers = ((const struct wire_windows_config *)rules_strategy(rules))->servers;
    hold(said->group_count >= servers + (point->phase == PHASE_TRAIN ? rules->min_clients : 1) &&
             said->group_count < NODES_MAX,
         "a window has min_clients and its servers", "window %" PRIu64 " has %u", said->number,
         said->group_count);
    check_linked(sim, said);
    if (point->phase == PHASE_WARMUP) self->voided.times = 0; // The owner resumed it
    hold(self->voided.times < 2 || self->voided.step != said->step,
         "a step that was void twice is not tried", "%" PRIu64, said->step);
    check_dealt(sim, said->samples, said->samples_count);
    hold(said->samples_count <= WINDOW_SAMPLES_MAX, "a list is small here", "%u",
         said->samples_count);
    struct ghost_window *window = &self->windows[self->open++];
    *window = (struct ghost_window){ .number = said->number,
                                     .step = said->step,
                                     .end = said->step + said->steps,
                                     .samples_done = said->samples_done,
                                     .count = said->samples_count,
                                     .group_count = said->group_count };
    memcpy(window->samples, said->samples, said->samples_count * sizeof *said->samples);
    memcpy(window->group, said->group, said->group_count * sizeof *said->group);
    keep_digests(sim, window);
    ghost->ahead += said->steps;
    ghost->round_record[said->number] = ghost->records;
    point->phase = PHASE_TRAIN;
    point->round = said->number;
}

// By every process of the group that is alive. (That nobody lives, nobody can tell from a silence.)
static void check_held(struct sim *sim, const struct ghost_window *window, uint64_t end)
{
    uint32_t holders = 0;
    for (uint32_t i = 0; i < window->group_count; i++) {
        if (!is_process(sim, &window->group[i])) continue;
        hold(can_hold(sim, check_node(sim, window->group[i].member), end, false),
             "what is committed is held by all of the group", "member %u, step %" PRIu64,
             window->group[i].member, end);
        holders++;
    }
    (void)holders;
}

// How many steps a process may be beyond the end of its window. One that lacks another's word of how long its share of
// the gradient is cannot apply a step that others may have applied. So where each keeps a share, such a process alone
// leads to an end that the others cannot reach: they drop their state, and the run goes back.
static uint64_t beyond(const struct sim *sim) { return windows_have_shares(sim); }

// It may say that it has stopped, and go on (loose.c).
static bool is_loose(const struct sim *sim, uint8_t id)
{
    return sim->plan.loose && id == sim->plan.loose;
}

// The window is closed: nobody that takes part in it has got further, and if anybody lives, one of them can say
// what its end is.
static bool check_closed(struct sim *sim, const struct ghost_window *window, uint64_t end)
{
    bool lives = false, holds = false;
    for (uint32_t i = 0; i < window->group_count; i++) {
        if (!is_process(sim, &window->group[i])) continue;
        const uint8_t id = check_node(sim, window->group[i].member);
        const struct learner *learner = &sim->nodes[id].learner;
        const uint8_t state = sim->ghost.members[window->group[i].member].state;
        if (state != MEMBER_HEALTHY && state != MEMBER_PENDING) continue;
        lives = true;
        holds |= can_hold(sim, id, end, true);
        const bool is_over = learner->exchange.count == 0 || is_loose(sim, id);
        hold(is_over || learner->step <= end + beyond(sim) ||
                 learner->exchange.holder.window > own(sim)->windows[own(sim)->open - 1].number,
             "nobody is beyond the end of a closed window", "%s at %" PRIu64 " of %" PRIu64,
             sim->nodes[id].name, learner->step, end);
    }
    return !lives || !holds;
}

static void give_back(struct sim *sim, const struct ghost_window *window)
{
    struct interval list[WINDOW_SAMPLES_MAX];
    const uint32_t count = (uint32_t)interval_list_slice(window->samples, window->count,
                                                         window->taken, UINT64_MAX, NULL, list);
    for (uint32_t i = 0; i < count; i++)
        for (uint64_t p = list[i].begin; p < list[i].end; p++) sim->ghost.samples[p] = TABLE_TODO;
}

static void commit_step(struct sim *sim, struct ghost_window *window)
{
    struct interval list[WINDOW_SAMPLES_MAX];
    const uint32_t batch = windows_batch(sim, window->samples_done + window->taken);
    const uint32_t count = (uint32_t)interval_list_slice(
        window->samples, window->count, window->taken, window->taken + batch, NULL, list);
    for (uint32_t i = 0; i < count; i++)
        for (uint64_t p = list[i].begin; p < list[i].end; p++) check_done(sim, p);
    window->taken += batch;
    now(sim)->step++;
    sim->ghost.ahead--;
}

static void check_void(struct sim *sim, const struct wire_steps *said)
{
    struct ghost_windows *self = own(sim);
    const struct ghost_window *window =
        &self->windows[said->end == self->windows[0].end && self->open > 1];
    const uint32_t place =
        windows_void_place(sim, window->number, said->voided.step, window->group_count);
    if (said->voided.times == 0) return;
    hold(place != NOBODY && window->group[place].member == said->voided.member &&
             said->voided.step == said->end,
         "void is what was void", "step %" PRIu64 " by member %u", said->end, said->voided.member);
    self->voided = said->voided;
    sim->ghost.pause_asked |= said->voided.times >= 2;
}

static void check_differ(struct sim *sim, const struct wire_steps *said)
{
    const struct ghost_window *window = &own(sim)->windows[0];
    if (!holder_is_minority(said->differ, window->group_count)) return;
    for (uint32_t i = 0; i < window->group_count; i++) {
        struct node *node = &sim->nodes[check_node(sim, window->group[i].member)];
        if (!(said->differ >> i & 1) || !is_process(sim, &window->group[i])) continue;
        hold(node->learner.differs, "who is said to differ does", "%s before step %" PRIu64,
             node->name, said->end);
        node->learner.is_named = true;
    }
}

static void hear_steps(struct sim *sim, const struct wire_steps *said)
{
    struct ghost *ghost = &sim->ghost;
    struct ghost_windows *self = own(sim);
    struct ghost_window *window = &self->windows[0];
    const uint64_t before = window->taken;
    hold(self->open > 0 && said->number == window->number && said->step == now(sim)->step &&
             said->end >= said->step && said->end <= window->end,
         "a commit is of the steps that follow", "%" PRIu64, said->step);
    check_void(sim, said);
    check_differ(sim, said);
    const bool lost = said->closed && check_closed(sim, window, said->end);
    if (!said->closed) check_held(sim, window, said->end);
    while (now(sim)->step < said->end) commit_step(sim, window);
    hold(said->samples == window->taken - before, "a commit counts its samples", "%" PRIu64,
         said->samples);
    self->steps_record = ghost->records;
    if (!said->closed && said->end < window->end) return;
    self->ended[window->number] = 1 + said->end;
    if (said->closed) {
        self->closing_record = ghost->records;
        for (uint32_t i = 0; i < self->open; i++) {
            give_back(sim, &self->windows[i]);
            self->ended[self->windows[i].number] = 1 + said->end;
            self->lost[self->windows[i].number] = lost;
        }
        self->open = 0;
        ghost->ahead = 0;
    } else if (--self->open > 0) self->windows[0] = self->windows[1];
}

static void hear_kept(struct sim *sim, const struct wire_record_kept *said)
{
    const struct ghost_windows *self = own(sim);
    const struct ghost_window *window = &self->windows[0];
    const struct wire_windows_config *config = rules_strategy(&sim->plan.rules);
    const uint32_t first = config->servers ? window->group_count - config->servers : 0;
    hold(self->open > 0 && said->step <= check_step(sim) &&
             hash_equal(&said->digest, &sim->ghost.digest[said->step]),
         "a memory save is of committed parameters", "step %" PRIu64 " on record", said->step);
    check_memory_kept(sim, said, window->group + first, window->group_count - first,
                      config->buddies);
}

static void hear_record(struct sim *sim, uint16_t kind, const void *record)
{
    if (kind == FRAME_RECORD_KEPT) hear_kept(sim, record);
    if (kind == FRAME_RECORD_WINDOW) hear_window(sim, record);
    if (kind == FRAME_RECORD_STEPS) hear_steps(sim, record);
}

// ---- what learners do -----------------------------------------------------------------------------

void check_window_step(struct sim *sim, uint8_t id, uint64_t window)
{
    const struct ghost_windows *self = own(sim);
    struct learner *learner = &sim->nodes[id].learner;
    if (check_is_of_before(sim, id) || sim->disk.behind) return;
    hold(window <= check_round(sim), "nobody applies a step outside a recorded window",
         "%s, window %" PRIu64, sim->nodes[id].name, window);
    const uint64_t ended = self->ended[window];
    if (self->lost[window]) return;
    hold(!ended || is_loose(sim, id) || learner->step < ended + beyond(sim),
         "nobody goes on in a window that is closed", "%s applies %" PRIu64 " of window %" PRIu64,
         sim->nodes[id].name, learner->step - 1, window);
    if (ended && learner->step >= ended) return; // check_window_begun sees that it is not used
    const bool is_equal = check_was_digest(sim, learner->step, &learner->digest);
    if (self->adopted[learner->step]) learner->differs |= !is_equal; // It came too late to be heard
    hold(learner->differs || is_equal, "equal steps are equal bits", "%s at %" PRIu64,
         sim->nodes[id].name, learner->step);
}

// All members of the window have said HAVE of this step: in the leaf whose turn it is, none has a state of its own.
void check_window_agrees(struct sim *sim, uint8_t id)
{
    const struct exchange *at = &sim->nodes[id].learner.exchange;
    const struct sim_window *window = &at->windows[0];
    for (uint32_t i = 0; window->count > 1 && i < window->count; i++) {
        const struct node *node = &sim->nodes[window->nodes[i]];
        const struct learner *other = &node->learner;
        hold(!node->up || node->instance != window->instances[i] || !other->differs ||
                 other->differs_from > at->holder.step || other->leaf != at->holder.step % LEAVES,
             "a state that differs is found when its leaf is compared", "%s in step %" PRIu64,
             node->name, at->holder.step);
    }
}

static bool was_told(const struct ghost_windows *self, const struct wire_epoch_end *end)
{
    for (uint32_t i = 0; i < ODD_MAX && i < self->odd_count; i++)
        if (self->odd[i].step == end->step && hash_equal(&self->odd[i].digest, &end->digest))
            return true;
    return false;
}

// Where the only holders that are left have a state that changed by itself, it is the run's: nobody can tell.
// One that has told it may be dead by now, and its lease not yet over (seed 49131).
static void pinned(struct sim *sim, const struct wire_epoch_end *end)
{
    struct hash *digest = &sim->ghost.digest[end->step];
    bool is_held = was_told(own(sim), end);
    if (hash_equal(&end->digest, digest)) return;
    for (uint8_t i = 0; i < sim->nodes_count; i++) {
        struct learner *learner = &sim->nodes[i].learner;
        if (!learner->holding || learner->step != end->step) continue;
        const bool is_it = hash_equal(&learner->digest, &end->digest);
        is_held |= is_it && learner->differs && !learner->is_named;
        learner->differs = !is_it;
    }
    if (is_held) *digest = end->digest;
    own(sim)->adopted[end->step] |= is_held;
}

static bool may_pause(const struct sim *sim) { return sim->faults[SPOILT] > 0; }

// It came to the servers without a state, so it has none to pin.
static bool has_entered(const struct sim *sim, uint8_t id)
{
    const struct wire_windows_config *config = rules_strategy(&sim->plan.rules);
    return config->servers > 0 && sim->nodes[id].role == ACTOR_TRAINER &&
           sim->nodes[id].learner.exchange.shares.only;
}

// Joiners fetch what an epoch begins with: who goes on from it keeps a copy.
void check_window_begun(struct sim *sim, uint8_t id, const struct wire_take_window *job)
{
    const struct ghost *ghost = &sim->ghost;
    const struct learner *learner = &sim->nodes[id].learner;
    if (check_is_of_before(sim, id) || sim->disk.behind) return;
    hold(!learner->is_named, "who differs fetches the state before it trains again",
         "%s at %" PRIu64, sim->nodes[id].name, job->step);
    hold(learner->differs || check_was_digest(sim, job->step, &learner->digest),
         "a window begins with what is committed", "%s at %" PRIu64, sim->nodes[id].name,
         job->step);
    if (job->step != ghost->pin_step || ghost->restores > 0 || job->number != check_round(sim) ||
        own(sim)->ended[job->number] || has_entered(sim, id))
        return;
    hold(pins_have(learner, job->step, &ghost->digest[job->step]),
         "what an epoch begins with is pinned before it is left", "%s leaves step %" PRIu64,
         sim->nodes[id].name, job->step);
}

static void keep_odd(struct sim *sim, const struct wire_holds *said)
{
    struct ghost_windows *self = own(sim);
    self->odd[self->odd_count++ % ODD_MAX] =
        (struct pin){ .step = said->step, .digest = said->digest };
}

static void said(struct sim *sim, uint8_t id, const struct effect *effect)
{
    const struct learner *learner = &sim->nodes[id].learner;
    if (effect->kind == FRAME_HOLDS && learner->differs && !learner->is_named)
        keep_odd(sim, unpack(sim, &sim->scratch, effect->kind, effect->body, effect->bytes));
    if (id != COORDINATOR || (effect->kind != FRAME_WINDOW && effect->kind != FRAME_STEPS)) return;
    const void *body = unpack(sim, &sim->scratch, effect->kind, effect->body, effect->bytes);
    const struct wire_window *window = body;
    const struct wire_steps *steps = body;
    const uint64_t record = effect->kind == FRAME_WINDOW ? sim->ghost.round_record[window->number]
                            : steps->closed              ? own(sim)->closing_record
                                                         : own(sim)->steps_record;
    check_recorded(sim, record, effect);
}

const struct sim_pace sim_pace_windows = { .one_in = 4,
                                           .draw = draw,
                                           .learn = learn,
                                           .takes_ms = words_take_ms,
                                           .built = words_built,
                                           .may_enter = may_enter,
                                           .admits = admits,
                                           .may_restore = is_lost,
                                           .way_back = check_memory_back,
                                           .may_lose = leaves_a_holder,
                                           .awaits = awaits,
                                           .hear_record = hear_record,
                                           .may_pause = may_pause,
                                           .pinned = pinned,
                                           .twist = windows_twist,
                                           .said = said };
