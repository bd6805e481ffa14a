// plan -- what a seed decides before anything happens: who takes part, under which rules, and how
// hostile the world is. Each fault has a rate of its own, and a third of them none at all
// ("swarm"): a seed that never loses a letter reaches places that one with ten kinds of trouble
// does not.

#include "tests/sim/sim.h"
#include <stdio.h>
#include <string.h>

const char *const fault_names[FAULT_KINDS] = {
    "lost",         "doubled",       "late",       "partitions",     "crashes",       "cuts",
    "reboots",      "freezes",       "leaves",     "broker_crashes", "lies",          "pauses",
    "damaged",      "wrong",         "replays",    "forged",         "spam",          "skewed",
    "full_disks",   "ejected",       "behind",     "restores",       "losses_of_all", "torn",
    "lost_ledgers", "lost_journals", "thin_lines", "spoilt",         "impostures",    "belated",
    "copied",       "greedy",        "decayed",    "entered",
};

uint64_t roll(struct sim *self, uint64_t below)
{
    uint64_t z = self->prng += 0x9E3779B97F4A7C15u; // SplitMix64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return below ? z % below : 0;
}

uint64_t between(struct sim *self, uint64_t low, uint64_t high)
{
    return low + roll(self, high - low + 1);
}

bool faulty(const struct sim *self) { return self->now_ms < self->plan.heal_ms; }

bool chance(struct sim *self, uint32_t of_1000)
{
    return faulty(self) && roll(self, 1000) < of_1000;
}

struct hash hash_number(const char *what, uint64_t number)
{
    return hash_of_two(what, strlen(what), &number, sizeof number);
}

struct key key_number(uint64_t number)
{
    const struct hash hash = hash_number("key", number);
    struct key key;
    memcpy(key.bytes, hash.bytes, KEY_BYTES);
    return key;
}

// None, seldom or often.
static uint32_t rate(struct sim *self, uint32_t seldom, uint32_t often)
{
    switch (roll(self, 3)) {
    case 0: return 0;
    case 1: return (uint32_t)between(self, 1, seldom);
    default: return (uint32_t)between(self, seldom, often);
    }
}

static uint32_t pick(struct sim *self, uint32_t low, uint32_t high)
{
    return (uint32_t)between(self, low, high);
}

static void draw_faults(struct sim *self)
{
    struct plan *plan = &self->plan;
    plan->heal_ms = between(self, 60, 180) * 1000;
    plan->loss = rate(self, 10, 150);
    plan->duplicate = rate(self, 10, 200);
    plan->delay = rate(self, 20, 300);
    plan->delay_ms = pick(self, 100, 6000);
    plan->late_proofs = roll(self, 3) ? 0 : 1000;
    plan->partition = rate(self, 10, 60);
    plan->crash = rate(self, 3, 15);
    plan->cut = rate(self, 4, 20);
    plan->freeze = rate(self, 3, 15);
    plan->leave = rate(self, 2, 8);
    plan->broker_crash = rate(self, 5, 30);
    plan->pause = rate(self, 5, 20);
    plan->damage = rate(self, 200, 900);
    plan->behind = rate(self, 100, 500);
    plan->skew = rate(self, 5, 30);
    if (plan->checkpointer && roll(self, 3) == 0) { // Its folders are all that is left
        plan->restore = rate(self, 300, 900);
        plan->lose_all = rate(self, 20, 150);
        plan->damage = 0;
        if (plan->restore && plan->partition < 30) plan->partition = 30;
    }
    plan->full = rate(self, 2, 6);
    plan->train_ms = pick(self, 200, 1500);
    plan->slow = roll(self, 3) ? NOBODY : pick(self, 1, plan->trainers);
    plan->snapshot_every = pick(self, 3, 60);
}

static struct schedule draw_schedule(struct sim *self)
{
    struct schedule schedule = { .kind = SCHEDULE_CONSTANT,
                                 .warmup_steps = pick(self, 0, 10),
                                 .base_lr = 0.001,
                                 .total_steps = 1000 };
    if (roll(self, 2)) schedule.kind = SCHEDULE_COSINE;
    return schedule;
}

static void draw_the_rules(struct sim *self)
{
    struct plan *plan = &self->plan;
    struct rules *rules = &plan->rules;
    struct wire_rounds_config strategy = { .topk = 1, .chunk = 1, .payload_bytes = PAYLOAD_BYTES };
    *rules = (struct rules){
        .run_id = "sim",
        .config = hash_number("config", self->seed),
        .run_seed = roll(self, 0),
        .owner = key_number(self->seed * 100),
        .waiting_ms = pick(self, 0, 2000),
        .warmup_ms = pick(self, 3000, 9000),
        .train_ms = pick(self, 2500, 7000),
        .witness_ms = pick(self, 800, 2500),
        .cooldown_ms = pick(self, 1500, 6000),
        .epoch_rounds = pick(self, 3, 16),
        .total_steps = roll(self, 3) ? 1000000 : pick(self, 60, 90),
        .min_clients = pick(self, 1, 3),
        .seq_len = 16,
        .audit_secret = hash_number("secret", self->seed),
    };
    strategy.witness_nodes = pick(self, 0, 5);
    strategy.least_train_ms = 300u + 20u * hash_number("least", self->seed).bytes[0];
    rules->batch_start = pick(self, 3, 9);
    rules->batch_warmup_tokens = roll(self, 2) ? 0 : 4000;
    rules->lr = draw_schedule(self);
    rules->cold_start_steps = pick(self, 0, 4);
    rules->heartbeat_ms = pick(self, 400, 1000);
    rules->lease_ms = pick(self, 2500, 6000);
    rules->unhealthy_rounds = pick(self, 1, 5);
    rules->snapshot_rounds = pick(self, 1, 8);
    rules->start_paused = roll(self, 10) == 0;
    static const uint32_t percents[] = { 0, 0, 10, 25, 50, 100 };
    strategy.witness_standalone = plan->witnesses > 0;
    strategy.verification_percent = percents[roll(self, 6)];
    if (roll(self, 3) == 0) rules->epoch_ms = between(self, 5000, 30000), rules->epoch_rounds = 0;
    if (roll(self, 2)) rules->genesis_digest = hash_number("genesis", 0);
    // One run in eight goes on from what an earlier one left.
    const struct hash first = hash_number("first", self->seed);
    rules->first_step = first.bytes[0] % 8 ? 0 : 1 + first.bytes[1] % 40;
    rules->total_steps += rules->first_step;
    rules->init_min_clients = pick(self, rules->min_clients, plan->trainers - 1);
    rules->batch_end = rules->batch_start + pick(self, 0, 6);
    struct wire_config *frame = &rules->frame;
    *frame = (struct wire_config){
        .run = "sim",
        .config = rules->config,
        .genesis = "genesis",
        .seq_len = rules->seq_len,
        .genesis_step = rules->first_step,
        .genesis_digest = rules->genesis_digest,
        .heartbeat_ms = rules->heartbeat_ms,
        .lease_ms = rules->lease_ms,
        .snapshot_rounds = rules->snapshot_rounds,
        .total_steps = rules->total_steps,
        .data = { .token_bytes = 2 },
    };
    rules_set_strategy(rules, FRAME_ROUNDS_CONFIG, &strategy, sizeof strategy);
}

// Fewer than a third lie, of those who train and of those who are asked to witness; and where they
// lie for ever, the honest are a quorum of every committee. What is left without them is enough for
// the run to go on, and too many for the liars to speak for it. A verdict relies on it that no more
// than a third of the trainers in the roster lie, so a run with two liars begins with six trainers
// (seed 42812: it began with five, and one liar alone judged the other).
static void draw_liars(struct sim *self)
{
    struct plan *plan = &self->plan;
    struct rules *rules = &plan->rules;
    struct wire_rounds_config strategy = *rounds_config(rules);
    const uint32_t most = (plan->trainers - 1) / 3;
    if (roll(self, 5) < 2) return;
    plan->lies = (uint32_t)between(self, 1, LIES_ALL);
    if (roll(self, 3) == 0) plan->lies = 1u << roll(self, 13); // One kind alone
    plan->stubborn = roll(self, 3) == 0;
    plan->collude = roll(self, 2);
    if (roll(self, 10) == 0) { // Wrong results for ever, all audited
        plan->lies = LIES_IN_RESULTS;
        plan->stubborn = true;
        strategy.verification_percent = 100;
    }
    const uint32_t count = pick(self, 1, most);
    if (count > 1 && plan->trainers < 3 * count + most) plan->trainers = 3 * count + most;
    for (uint32_t i = 0; i < count;) {
        const uint32_t bit = 1u << pick(self, 1, plan->trainers);
        if (plan->liars & bit) continue;
        plan->liars |= bit;
        i++;
    }
    if (plan->witnesses) {
        if (plan->witnesses < 3) plan->witnesses = 3;
        if (roll(self, 2)) plan->liars |= 1u << (plan->trainers + pick(self, 1, plan->witnesses));
    }
    if (strategy.witness_nodes == 1 || strategy.witness_nodes == 2) strategy.witness_nodes = 3;
    if (most > 1) strategy.witness_nodes = 0;
    const uint32_t least = most > 1 ? 4 : plan->witnesses ? 3 : 2;
    if (rules->min_clients < least) rules->min_clients = least;
    const uint32_t first = count > 1 ? 3 * count : rules->min_clients;
    rules->init_min_clients = pick(self, first, plan->trainers - most);
    rules_set_strategy(rules, FRAME_ROUNDS_CONFIG, &strategy, sizeof strategy);
    // Witnesses without parameters believe what more than a third of a round's trainers say that they
    // began with, and of four in a round two may lie.
    if (plan->witnesses && most > 1) plan->lies &= (uint32_t)~LIES_IN_BASES;
    if (!plan->lies) plan->lies = LIES_IN_RESULTS;
    if (strategy.verification_percent < 100 && aside(self, "tardy", 3) == 0)
        plan->lies |= LIES_BY_DELAY;
}

// Drawn beside the rest, so that seeds without it are what they were.
uint64_t aside(const struct sim *self, const char *what, uint64_t below)
{
    const struct hash hash = hash_number(what, self->seed);
    return hash_to_number(&hash) % below;
}

// A trainer that does not lie; there are more of them than liars.
static uint32_t draw_honest(const struct sim *self, const char *what)
{
    uint32_t id = 1 + (uint32_t)aside(self, what, self->plan.trainers);
    while (self->plan.liars >> id & 1) id = id % self->plan.trainers + 1;
    return id;
}

static void draw_losses(struct sim *self)
{
    if (aside(self, "amnesia", 8) == 0) self->plan.amnesia = 300;
    if (aside(self, "journals", 6) == 0) self->plan.lose_journal = 300;
    self->plan.impostor = aside(self, "impostor", 4) == 0;
    self->plan.tickets = aside(self, "tickets", 2);
    self->plan.late = aside(self, "late", 8) == 0 ? draw_honest(self, "who is late") : NOBODY;
    self->plan.late_every = aside(self, "how often", 2) ? 1 : 6;
    self->plan.greedy = aside(self, "greedy", 8) == 0 ? draw_honest(self, "who is greedy") : NOBODY;
    // Then what one may send is more than the coordinator can hear
    self->plan.work_times =
        self->plan.greedy != NOBODY && aside(self, "slow coordinator", 2) ? 8 : 1;
}

// A checkpointer that lies about digests: beside other liars, or alone. Not where its folders are all
// that is left, which is the owner's own trust.
static void draw_false_keeper(struct sim *self)
{
    struct plan *plan = &self->plan;
    const bool alone = plan->liars == 0;
    if (!plan->checkpointer || plan->restore || aside(self, "keeper", alone ? 10 : 3)) return;
    if (!alone && !(plan->lies & LIES_ABOUT_DIGESTS)) return;
    plan->liars |= 1u << (plan->trainers + plan->witnesses + 1);
    if (!alone) return;
    plan->lies = LIES_ABOUT_DIGESTS;
    plan->stubborn = aside(self, "stubborn keeper", 2);
}

// A result is small, what it began with is not: to be unable to show it is no crime.
static void draw_thin_line(struct sim *self)
{
    struct plan *plan = &self->plan;
    plan->thin = NOBODY;
    if (aside(self, "thin line", 6) != 0) return;
    for (uint32_t id = 1; id <= plan->trainers && plan->thin == NOBODY; id++)
        if (!(plan->liars >> id & 1)) plan->thin = id;
}

// Three of four, who agree to accuse the fourth.
static void draw_canary(struct plan *plan)
{
    plan->trainers = 4, plan->witnesses = 0, plan->liars = 0xe;
    plan->lies = LIES_IN_FINDINGS;
    plan->collude = plan->stubborn = true;
    struct wire_rounds_config strategy = *rounds_config(&plan->rules);
    strategy.verification_percent = 50;
    strategy.witness_standalone = false;
    rules_set_strategy(&plan->rules, FRAME_ROUNDS_CONFIG, &strategy, sizeof strategy);
    plan->rules.min_clients = plan->rules.init_min_clients = 3;
}

// Rounds, but for the seeds of a pace that wants some.
static void draw_pace(struct sim *self)
{
    for (uint32_t i = 0; paces[i]; i++) {
        const struct sim_pace *pace = sim_paces[i];
        if (pace->one_in ? !self->canary && aside(self, paces[i]->name, pace->one_in) == 0
                         : pace_of(&self->plan.rules) == paces[i])
            self->pace = pace;
    }
    if (self->pace->draw) self->pace->draw(self);
}

void plan_draw(struct sim *self)
{
    struct plan *plan = &self->plan;
    memset(plan, 0, sizeof *plan);
    plan->trainers = roll(self, 4) ? pick(self, 4, 6) : pick(self, 7, 9);
    plan->witnesses = roll(self, 4) == 0 ? pick(self, 2, 3) : 0;
    plan->checkpointer = roll(self, 4) != 0;
    draw_faults(self);
    draw_the_rules(self);
    draw_liars(self);
    draw_losses(self);
    draw_false_keeper(self);
    if (self->canary) draw_canary(plan);
    draw_thin_line(self);
    draw_pace(self);
}
