// windows_learner -- a group's exchange, as events. Each learner computes its contribution, and arrives. When all
// have arrived, each gets the sum at a time of its own. Then it says HAVE to each of the others, which
// travels at its own speed, and applies the step when holder.h says so. Between any two of these a process may die and a
// link may be cut; a learner notices after a while, or when nothing has come for too long, and says BROKE.
//
// Where each keeps a share, a step leaves it with that share only. When the group ends, all gather the shares: each gets
// them at a time of its own, and goes on when all have said that they have them.

#include "common/base/ensure.h"
#include "tests/sim/windows.h"
#include <stdio.h>
#include <string.h>

enum what { COMPUTED, SUM, HAVE, WATCH, LINK, WRITTEN, GATHERED, MET, HASHED };
enum {
    CUT_MS = 8000,
    CUT_ONE_IN = 40,
    VOID_ONE_IN = 12,
    SPOILT_ONE_IN = 40,
    UNLINKABLE_ONE_IN = 2
};

static struct learner *learner_of(struct sim *self, uint8_t id) { return &self->nodes[id].learner; }

static const struct wire_windows_config *config_of(const struct sim *self)
{
    return rules_strategy(&self->plan.rules);
}

static uint64_t all_of(const struct sim_window *window)
{
    return ((uint64_t)2 << (window->count - 1)) - 1;
}

// ---- shares -----------------------------------------------------------------------------------------

bool windows_have_shares(const struct sim *self) { return config_of(self)->parts == PARTS_MOMENTS; }

bool windows_has(const struct sim *self, uint8_t id)
{
    const struct exchange *at = &self->nodes[id].learner.exchange;
    if (at->count == 0 || !holder_has(&at->holder)) return false;
    // The owner of each share has said how long its part of the gradient is
    return !windows_have_shares(self) || at->holder.have == all_of(&at->windows[0]);
}

static void take_share(struct sim *self, uint8_t id)
{
    struct sim_shares *shares = &learner_of(self, id)->exchange.shares;
    const struct sim_window *window = &learner_of(self, id)->exchange.windows[0];
    if (!windows_have_shares(self)) return;
    const uint32_t servers = config_of(self)->servers, owners = servers ? servers : window->count;
    const uint32_t first = window->count - owners;
    const bool computes = window->place < first;
    const uint32_t owner = computes ? 0 : window->place - first;
    const bool same =
        shares->owner == owner && shares->owners == owners && shares->computes == computes;
    shares->lost = shares->only && !same && !computes;
    if (shares->lost) return;
    shares->owner = owner, shares->owners = owners, shares->computes = computes;
}

// ---- words ------------------------------------------------------------------------------------------

void words_send(struct sim *self, uint8_t to, uint64_t delay_ms, const struct wire_sim_word *word)
{
    const size_t bytes = wire_pack_body(FRAME_SIM_WORD, word, self->bytes, SCRATCH_BYTES);
    ensure(bytes > 0);
    struct parcel *parcel = parcel_new(self, NULL, FRAME_SIM_WORD, self->bytes, (uint32_t)bytes);
    network_fly(self, delay_ms, TO_LEARNER, to, self->nodes[to].life, "", parcel);
    parcel_release(parcel);
}

static void to_self(struct sim *self, uint8_t id, enum what what, uint64_t delay_ms)
{
    const struct exchange *at = &learner_of(self, id)->exchange;
    words_send(
        self, id, delay_ms,
        &(struct wire_sim_word){
            .what = what, .window = at->holder.window, .step = at->holder.step, .turn = at->turn });
}

uint64_t words_take_ms(struct sim *self, uint8_t id)
{
    (void)self, (void)id;
    return 1;
}

void words_built(struct sim *self, uint8_t id)
{
    if (role_takes_steps(self->nodes[id].role))
        learner_says(self, id, FRAME_LINKS,
                     &(struct wire_links){ .endpoint = "tcp://127.0.0.1:7000" });
}

bool words_are_cut(const struct sim *self, uint8_t a, uint8_t b)
{
    const uint64_t low = a < b ? a : b, high = a < b ? b : a;
    const uint64_t number = self->seed << 32 | (self->now_ms / CUT_MS) << 8 | low << 4 | high;
    const struct hash hash = hash_number("cut", number);
    if (!faulty(self)) return false;
    return !reachable(self, a, b) || hash_to_number(&hash) % CUT_ONE_IN == 0;
}

static bool is_cut(const struct sim *self, uint8_t a, uint8_t b)
{
    return !windows_may_link(self, a, b) || words_are_cut(self, a, b);
}

bool windows_unlinkable(const struct sim *self, uint8_t ret_pair[2])
{
    const uint64_t trainers = self->plan.trainers;
    ret_pair[0] = (uint8_t)(1 + aside(self, "unlinkable", trainers));
    ret_pair[1] = (uint8_t)(1 + aside(self, "unlinkable too", trainers));
    return aside(self, "unlinkables", UNLINKABLE_ONE_IN) == 0 && ret_pair[0] != ret_pair[1];
}

bool windows_may_link(const struct sim *self, uint8_t a, uint8_t b)
{
    uint8_t pair[2];
    const uint64_t until_ms = self->plan.heal_ms * (1 + aside(self, "linkable", 4)) / 4;
    return self->now_ms >= until_ms || !windows_unlinkable(self, pair) ||
           !((a == pair[0] && b == pair[1]) || (a == pair[1] && b == pair[0]));
}

static bool is_dead(const struct sim *self, const struct sim_window *window, uint32_t place)
{
    const struct node *node = &self->nodes[window->nodes[place]];
    return !node->up || node->instance != window->instances[place];
}

// ---- links before a window ----------------------------------------------------------------------------

static bool expects(const struct sim *self, uint8_t id, uint8_t whom)
{
    const struct sim_links *links = &self->nodes[id].learner.exchange.links;
    for (uint32_t i = 0; i < links->count; i++)
        if (links->nodes[i] == whom && links->instances[i] == self->nodes[whom].instance)
            return true;
    return false;
}

static uint64_t linked(const struct sim *self, uint8_t id)
{
    const struct sim_links *links = &self->nodes[id].learner.exchange.links;
    uint64_t bits = 0;
    for (uint32_t i = 0; i < links->count; i++) {
        const uint8_t other = links->nodes[i];
        if (other == id ||
            (self->nodes[other].up && self->nodes[other].instance == links->instances[i] &&
             expects(self, other, id) && !is_cut(self, id, other)))
            bits |= (uint64_t)1 << i;
    }
    return bits;
}

// Looks again after a while, for ever: links come to stand and end.
static void look_at_links(struct sim *self, uint8_t id)
{
    struct sim_links *links = &learner_of(self, id)->exchange.links;
    const uint64_t all = ((uint64_t)2 << (links->count - 1)) - 1, bits = linked(self, id);
    if (bits != links->told || links->number != links->told_number) {
        links->told = bits;
        links->told_number = links->number;
        learner_says(self, id, FRAME_LINKS,
                     &(struct wire_links){ "tcp://127.0.0.1:7000", links->number, bits });
    }
    words_send(self, id, bits == all ? between(self, 2000, 4000) : between(self, 100, 600),
               &(struct wire_sim_word){ .what = LINK, .turn = links->turn });
}

static uint8_t node_of(const struct sim *self, const struct key *key)
{
    for (uint8_t i = 0; i < self->nodes_count; i++)
        if (key_equal(&self->nodes[i].key, key)) return i;
    return NOBODY;
}

static void expect(struct sim *self, uint8_t id, const struct wire_expect *job)
{
    struct sim_links *links = &learner_of(self, id)->exchange.links;
    ensure(job->trainers_count > 0 && job->trainers_count < NODES_MAX);
    links->number = job->number;
    links->count = job->trainers_count;
    links->turn++;
    for (uint32_t i = 0; i < job->trainers_count; i++) {
        links->nodes[i] = node_of(self, &job->trainers[i].key);
        links->instances[i] = job->trainers[i].instance;
        ensure(links->nodes[i] != NOBODY);
    }
    words_send(self, id, between(self, 1, 100),
               &(struct wire_sim_word){ .what = LINK, .turn = links->turn });
}

// ---- a step -----------------------------------------------------------------------------------------

static void begin_step(struct sim *self, uint8_t id)
{
    struct exchange *at = &learner_of(self, id)->exchange;
    const bool slow = self->plan.slow == id && faulty(self);
    at->arrived = false;
    at->since_ms = self->now_ms;
    at->somebody_writes = at->shares.ends = false;
    copies_step(self, id);
    to_self(self, id, COMPUTED, between(self, 60, self->plan.train_ms / 4 + 60) * (slow ? 4 : 1));
}

static bool has_arrived(const struct sim *self, const struct sim_window *window, uint32_t place,
                        uint64_t step)
{
    const struct exchange *other = &self->nodes[window->nodes[place]].learner.exchange;
    return !is_dead(self, window, place) && other->count > 0 && other->arrived &&
           other->holder.window == window->number && other->holder.step == step;
}

// All are there and every link stands: each gets the sum.
static void gather(struct sim *self, uint8_t id)
{
    const struct exchange *at = &learner_of(self, id)->exchange;
    const struct sim_window *window = &at->windows[0];
    for (uint32_t i = 0; i < window->count; i++) {
        if (!has_arrived(self, window, i, at->holder.step)) return;
        for (uint32_t j = 0; j < i; j++)
            if (is_cut(self, window->nodes[i], window->nodes[j])) return;
    }
    for (uint32_t i = 0; i < window->count; i++)
        words_send(self, window->nodes[i], between(self, 1, chance(self, 30) ? 3000 : 50),
                   &(struct wire_sim_word){
                       .what = SUM, .window = window->number, .step = at->holder.step });
}

static void say_stepped(struct sim *self, uint8_t id)
{
    const struct learner *learner = learner_of(self, id);
    learner_says(self, id, FRAME_STEPPED,
                 &(struct wire_stepped){ .window = learner->exchange.holder.window,
                                         .step = learner->step,
                                         .loss = 1,
                                         .tokens_per_s = 10,
                                         .taken = learner->exchange.taken,
                                         .taken_window = learner->exchange.taken_window,
                                         .copied = learner->exchange.copies.copied,
                                         .copied_window = learner->exchange.copies.copied_window,
                                         .share = learner->exchange.shares.only,
                                         .stopped = learner->exchange.holder.stopped });
}

// In half of the seeds a state changes by itself now and then: one leaf of it.
bool windows_spoils(const struct sim *self, uint8_t id, uint64_t step)
{
    const uint64_t number =
        self->seed << 32 | (uint64_t)self->nodes[id].life << 20 | step << 8 | id;
    const struct hash hash = hash_number("spoilt", number);
    return faulty(self) && aside(self, "spoilt", 2) == 0 && !windows_have_shares(self) &&
           hash_to_number(&hash) % SPOILT_ONE_IN == 0;
}

static void spoil(struct sim *self, uint8_t id)
{
    struct learner *learner = learner_of(self, id);
    learner->differs = true;
    learner->differs_from = learner->step;
    learner->leaf = learner->digest.bytes[0] % LEAVES;
    learner->digest = hash_of_two(&learner->digest, HASH_BYTES, &self->nodes[id].key, KEY_BYTES);
    self->faults[SPOILT]++;
}

// What is equal in all sound states: zero. The leaf of a state that differs is like no other.
static struct hash check_of(const struct learner *self)
{
    const bool is_seen = self->differs && self->exchange.holder.step % LEAVES == self->leaf;
    return is_seen ? self->digest : (struct hash){ { 0 } };
}

static void apply(struct sim *self, uint8_t id)
{
    struct learner *learner = learner_of(self, id);
    struct exchange *at = &learner->exchange;
    struct sim_window *window = &at->windows[0];
    struct interval list[WINDOW_SAMPLES_MAX];
    const uint32_t batch = windows_batch(self, window->samples_done + window->taken);
    const uint32_t count = (uint32_t)interval_list_slice(
        window->samples, window->samples_count, window->taken, window->taken + batch, NULL, list);
    ensure(learner->step == at->holder.step && learner->step < window->end);
    learner->digest = windows_digest(&learner->digest, list, count);
    learner->step++;
    window->taken += batch;
    holder_applied(&at->holder);
    at->shares.only |= windows_have_shares(self) && at->windows[0].count > 1;
    check_window_step(self, id, window->number);
    if (!learner->differs && windows_spoils(self, id, learner->step)) spoil(self, id);
}

// What learner_pieces.c does behind a step.
static void save(struct sim *self, uint8_t id)
{
    struct learner *learner = learner_of(self, id);
    struct exchange *at = &learner->exchange;
    const struct sim_window *window = &at->windows[0];
    const uint32_t every = config_of(self)->save_steps;
    if (every == 0 || learner->step % every != 0 || at->somebody_writes) return;
    at->taken = learner->step;
    at->taken_window = window->number;
    at->writes = true;
    saves_begin(self, window->born_unix_ms, learner->step, window->number, window->count,
                &learner->digest);
    words_send(self, id, between(self, 10, chance(self, 50) ? 9000 : 900),
               &(struct wire_sim_word){ .what = WRITTEN,
                                        .window = window->number,
                                        .step = learner->step,
                                        .from = window->place,
                                        .born_unix_ms = window->born_unix_ms,
                                        .spare = window->spare });
}

// What learner_copies.c does behind a step.
static void copy(struct sim *self, uint8_t id)
{
    const struct learner *learner = learner_of(self, id);
    if (!copies_take(self, id)) return;
    words_send(self, id, between(self, 5, chance(self, 50) ? 3000 : 300),
               &(struct wire_sim_word){ .what = HASHED,
                                        .window = learner->exchange.windows[0].number,
                                        .step = learner->step });
}

static void hear_written(struct sim *self, uint8_t id, const struct wire_sim_word *word)
{
    learner_of(self, id)->exchange.writes = false;
    const struct sim_save *whole =
        saves_written(self, word->born_unix_ms, word->step, word->window, word->from, word->spare);
    if (whole)
        learner_says(self, id, FRAME_WHOLE,
                     &(struct wire_whole){ word->window, word->step, whole->digest });
}

static bool is_same_group(const struct sim_window *a, const struct sim_window *b)
{
    bool same = a->place == b->place && a->count == b->count;
    for (uint32_t i = 0; same && i < a->count; i++)
        same = a->nodes[i] == b->nodes[i] && a->instances[i] == b->instances[i];
    return same;
}

static void go_on(struct sim *self, uint8_t id)
{
    struct exchange *at = &learner_of(self, id)->exchange;
    if (at->holder.step == at->windows[0].end && at->count == 2) {
        const bool same = is_same_group(&at->windows[0], &at->windows[1]);
        const bool stops = at->holder.asks_stop;
        at->windows[0] = at->windows[1];
        at->count = 1;
        const struct sim_window *window = &at->windows[0];
        if (same) holder_follow(&at->holder, window->number);
        else holder_begin(&at->holder, window->number, window->step, window->place, window->count);
        if (stops) holder_stop(&at->holder);
        take_share(self, id);
        copies_begin(self, id);
    }
    at->arrived = false;
    at->since_ms = self->now_ms;
    if (at->holder.step < at->windows[0].end && !at->holder.stopped) begin_step(self, id);
}

// Those of which it notices by now that they are dead.
static uint64_t dead_places(struct sim *self, uint8_t id)
{
    const struct exchange *at = &learner_of(self, id)->exchange;
    const struct sim_window *window = &at->windows[0];
    uint64_t dead = 0;
    for (uint32_t i = 0; i < window->count; i++)
        if (i != window->place && is_dead(self, window, i) && roll(self, 8))
            dead |= (uint64_t)1 << i;
    return dead;
}

static void say_broke(struct sim *self, uint8_t id, struct wire_broke broke)
{
    struct exchange *at = &learner_of(self, id)->exchange;
    at->broken = true;
    at->shares.gathering = false;
    broke.taken = at->taken;
    broke.taken_window = at->taken_window;
    broke.copied = at->copies.copied;
    broke.copied_window = at->copies.copied_window;
    broke.share = at->shares.only;
    broke.window = at->holder.window;
    broke.step = at->holder.step;
    broke.has = windows_has(self, id);
    broke.differ = holder_outsiders(&at->holder);
    broke.dead = dead_places(self, id);
    snprintf(broke.reason, sizeof broke.reason, "its bytes did not come");
    learner_says(self, id, FRAME_BROKE, &broke);
}

static void end_step(struct sim *self, uint8_t id)
{
    const struct exchange *at = &learner_of(self, id)->exchange;
    const struct sim_window *window = &at->windows[0];
    const uint64_t middle = window->step + (window->end - window->step) / 2, end = window->end;
    const uint64_t step = at->holder.step;
    if (step == middle || step == end || at->holder.stopped || roll(self, 3) == 0)
        say_stepped(self, id);
    go_on(self, id);
}

static bool gathers(const struct sim *self, const struct sim_window *window, uint32_t place,
                    uint64_t step)
{
    const struct exchange *other = &self->nodes[window->nodes[place]].learner.exchange;
    return !is_dead(self, window, place) && other->shares.gathering &&
           other->holder.window == window->number && other->holder.step == step;
}

// The group ends here. If all are there and every link stands, each gets the shares of the others.
static void gather_shares(struct sim *self, uint8_t id)
{
    struct exchange *at = &learner_of(self, id)->exchange;
    const struct sim_window *window = &at->windows[0];
    at->shares.gathering = true;
    at->shares.gathered = false;
    at->shares.met = 0;
    at->since_ms = self->now_ms;
    for (uint32_t i = 0; i < window->count; i++) {
        if (!gathers(self, window, i, at->holder.step)) return;
        for (uint32_t j = 0; j < i; j++)
            if (is_cut(self, window->nodes[i], window->nodes[j])) return;
    }
    for (uint32_t i = 0; i < window->count; i++)
        words_send(self, window->nodes[i], between(self, 1, chance(self, 30) ? 3000 : 50),
                   &(struct wire_sim_word){
                       .what = GATHERED, .window = window->number, .step = at->holder.step });
}

// Nobody of the group needs ours any more.
static void try_to_end(struct sim *self, uint8_t id)
{
    struct exchange *at = &learner_of(self, id)->exchange;
    if (!at->shares.gathered || at->shares.met != all_of(&at->windows[0])) return;
    at->shares.gathering = false;
    end_step(self, id);
}

static void hear_gathered(struct sim *self, uint8_t id)
{
    struct exchange *at = &learner_of(self, id)->exchange;
    const struct sim_window *window = &at->windows[0];
    for (uint32_t i = 0; i < window->count; i++) // A part of it may not have been sent
        if ((is_dead(self, window, i) || is_cut(self, id, window->nodes[i])) && roll(self, 2))
            return;
    at->shares.gathered = true;
    at->shares.only = false;
    at->shares.met |= (uint64_t)1 << window->place;
    for (uint32_t i = 0; i < window->count; i++)
        if (i != window->place)
            words_send(self, window->nodes[i], between(self, 1, chance(self, 30) ? 2000 : 30),
                       &(struct wire_sim_word){ .what = MET,
                                                .window = window->number,
                                                .step = at->holder.step,
                                                .from = window->place });
    try_to_end(self, id);
}

static void hear_met(struct sim *self, uint8_t id, uint32_t from)
{
    struct exchange *at = &learner_of(self, id)->exchange;
    const struct sim_window *window = &at->windows[0];
    if (is_cut(self, id, window->nodes[from]) && roll(self, 2)) return;
    at->shares.met |= (uint64_t)1 << from;
    try_to_end(self, id);
}

static void try_to_apply(struct sim *self, uint8_t id)
{
    struct exchange *at = &learner_of(self, id)->exchange;
    if (at->broken) return;
    if (holder_outsiders(&at->holder)) say_broke(self, id, (struct wire_broke){ 0 });
    if (!holder_may_apply(&at->holder)) return;
    check_window_agrees(self, id);
    apply(self, id);
    save(self, id);
    copy(self, id);
    if (at->shares.only && (at->shares.ends || at->holder.stopped)) gather_shares(self, id);
    else end_step(self, id);
}

// Of a few steps, in some of the windows that try them.
uint32_t windows_void_place(const struct sim *self, uint64_t window, uint64_t step, uint32_t count)
{
    const struct hash of_step = hash_number("void", self->seed << 32 | step);
    const struct hash of_window = hash_number("void again", self->seed << 32 | window);
    if (hash_to_number(&of_step) % VOID_ONE_IN != 0 || hash_to_number(&of_window) % 2 != 0)
        return NOBODY;
    return (uint32_t)(hash_to_number(&of_step) >> 32) % count;
}

static bool is_void(const struct sim *self, const struct exchange *at)
{
    const struct sim_window *window = &at->windows[0];
    return faulty(self) && windows_void_place(self, at->holder.window, at->holder.step,
                                              window->count) == window->place;
}

static void hear_computed(struct sim *self, uint8_t id)
{
    struct exchange *at = &learner_of(self, id)->exchange;
    if (at->holder.frozen || at->broken) return; // It sends nothing any more
    if (is_void(self, at)) {
        say_broke(self, id, (struct wire_broke){ .unsound = UNSOUND_GRADIENT });
        return;
    }
    at->arrived = true;
    at->since_ms = self->now_ms;
    gather(self, id);
}

// The parameters come from the servers, who stand at this step until we have it. False: they are gone.
static bool pull(struct sim *self, uint8_t id)
{
    struct learner *learner = learner_of(self, id);
    const struct sim_window *window = &learner->exchange.windows[0];
    for (uint32_t i = 0; i < window->count && learner->exchange.shares.pulls; i++) {
        const struct learner *other = learner_of(self, window->nodes[i]);
        if (is_dead(self, window, i) || other->exchange.shares.pulls ||
            other->step != learner->step || is_cut(self, id, window->nodes[i]))
            continue;
        learner->digest = other->digest;
        learner->exchange.shares.pulls = false;
    }
    return !learner->exchange.shares.pulls;
}

static void hear_sum(struct sim *self, uint8_t id, const struct wire_sim_word *word)
{
    struct exchange *at = &learner_of(self, id)->exchange;
    const struct sim_window *window = &at->windows[0];
    if (at->broken || word->window != at->holder.window || word->step != at->holder.step) return;
    if (!pull(self, id)) return;
    for (uint32_t i = 0; i < window->count; i++) // A part of it may not have been sent
        if ((is_dead(self, window, i) || is_cut(self, id, window->nodes[i])) && roll(self, 2))
            return;
    const struct hash check = check_of(learner_of(self, id));
    at->somebody_writes |= at->writes;
    const bool saving = at->writes;
    const bool ends = at->holder.step + 1 == window->end && at->count < 2;
    at->shares.ends |= ends;
    struct wire_sim_word have = { .what = HAVE,
                                  .window = window->number,
                                  .step = at->holder.step,
                                  .from = window->place,
                                  .stop = at->holder.asks_stop,
                                  .saving = saving,
                                  .ends = ends,
                                  .check = check };
    copies_tell(self, id, &have);
    if (holder_complete(&at->holder, &check))
        for (uint32_t i = 0; i < window->count; i++)
            if (i != window->place)
                words_send(self, window->nodes[i], between(self, 1, chance(self, 30) ? 2000 : 30),
                           &have);
    try_to_apply(self, id);
}

static void hear_have(struct sim *self, uint8_t id, const struct wire_sim_word *word)
{
    struct exchange *at = &learner_of(self, id)->exchange;
    const struct sim_window *window = &at->windows[0];
    if (at->count == 0 || at->broken) return;
    if (word->from < window->count && is_cut(self, id, window->nodes[word->from]) && roll(self, 2))
        return;
    at->somebody_writes |= word->saving;
    copies_hear(self, id, word);
    at->shares.ends |=
        word->ends && word->window == at->holder.window && word->step == at->holder.step;
    holder_hear_have(&at->holder, word->from, word->window, word->step, word->stop, &word->check);
    try_to_apply(self, id);
}

// ---- what goes wrong --------------------------------------------------------------------------------

static void watch(struct sim *self, uint8_t id)
{
    struct exchange *at = &learner_of(self, id)->exchange;
    const struct sim_window *window = &at->windows[0];
    if (at->broken) return;
    to_self(self, id, WATCH, between(self, 100, 400));
    const struct sim_shares *shares = &at->shares;
    if ((at->holder.step == window->end || at->holder.stopped) && !shares->gathering)
        return; // It waits for the next one
    for (uint32_t i = 0; i < window->count; i++) {
        const bool dead = is_dead(self, window, i);
        if (i == window->place || (!dead && !is_cut(self, id, window->nodes[i])) || roll(self, 2))
            continue;
        say_broke(self, id, (struct wire_broke){ .missing = 1 + i });
        return;
    }
    if (self->now_ms - at->since_ms < config_of(self)->step_timeout_ms) return;
    uint32_t missing = 0;
    for (uint32_t i = 0; i < window->count && !missing; i++)
        if (shares->gathering ? !gathers(self, window, i, at->holder.step)
                              : !has_arrived(self, window, i, at->holder.step))
            missing = 1 + i;
    if (missing == 1 + window->place) missing = 0;
    say_broke(self, id, (struct wire_broke){ .missing = missing, .overdue = missing > 0 });
}

static void hear_word(struct sim *self, uint8_t id, const struct wire_sim_word *word)
{
    struct exchange *at = &learner_of(self, id)->exchange;
    const bool own = word->what == COMPUTED || word->what == WATCH;
    if (word->what == LINK) {
        if (word->turn == at->links.turn) look_at_links(self, id);
        return;
    }
    if (word->what == WRITTEN) {
        hear_written(self, id, word);
        return;
    }
    if (word->what == HASHED) {
        copies_hashed(self, id, word);
        return;
    }
    if (at->count == 0 || (own && word->turn != at->turn)) return;
    if (word->what == COMPUTED && word->step != at->holder.step) return;
    if ((word->what == GATHERED || word->what == MET) &&
        (!at->shares.gathering || word->window != at->holder.window ||
         word->step != at->holder.step))
        return;
    switch (word->what) {
    case COMPUTED: hear_computed(self, id); break;
    case SUM: hear_sum(self, id, word); break;
    case HAVE: hear_have(self, id, word); break;
    case WATCH: watch(self, id); break;
    case GATHERED: hear_gathered(self, id); break;
    case MET: hear_met(self, id, word->from); break;
    }
}

// ---- what the core asks -----------------------------------------------------------------------------

// What learner_windows.c does with a window that is entered without a state.
static void enter(struct sim *self, uint8_t id, uint64_t step)
{
    struct learner *learner = learner_of(self, id);
    struct sim_shares *shares = &learner->exchange.shares;
    ensure(config_of(self)->servers > 0 && self->nodes[id].role == ACTOR_TRAINER);
    learner->holding = true;
    learner->step = learner->loaded_step = step;
    learner->digest = (struct hash){ { 0 } };
    learner->differs = learner->is_named = false;
    *shares = (struct sim_shares){ .only = true, .pulls = true };
    self->faults[ENTERED]++;
}

static void take_window(struct sim *self, uint8_t id, const struct wire_take_window *job)
{
    struct learner *learner = learner_of(self, id);
    struct exchange *at = &learner->exchange;
    const bool first = at->count == 0;
    ensure(!job->enters || first);
    if (job->enters) enter(self, id, job->step);
    ensure(learner->holding && at->count < 2 && job->samples_count <= WINDOW_SAMPLES_MAX);
    ensure(job->step == (first ? learner->step : at->windows[at->count - 1].end));
    if (first && !at->shares.pulls) check_window_begun(self, id, job);
    struct sim_window *window = &at->windows[at->count++];
    *window = (struct sim_window){ .number = job->number,
                                   .step = job->step,
                                   .end = job->step + job->steps,
                                   .samples_done = job->samples_done,
                                   .place = job->place,
                                   .count = job->group_count,
                                   .samples_count = job->samples_count,
                                   .born_unix_ms = job->born_unix_ms,
                                   .spare = job->spare,
                                   .kept_step = job->kept_step,
                                   .kept_window = job->kept_window,
                                   .drops = job->drops };
    for (uint32_t i = 0; i < job->group_count; i++) {
        window->nodes[i] = node_of(self, &job->group[i].key);
        window->instances[i] = job->group[i].instance;
        ensure(window->nodes[i] != NOBODY);
    }
    memcpy(window->samples, job->samples, job->samples_count * sizeof *job->samples);
    if (first) {
        copies_begin(self, id);
        at->turn++;
        at->broken = false;
        holder_begin(&at->holder, job->number, job->step, job->place, job->group_count);
        take_share(self, id);
        if (at->shares.lost) say_broke(self, id, (struct wire_broke){ 0 });
        else begin_step(self, id);
        to_self(self, id, WATCH, between(self, 100, 400));
    } else if (at->holder.step == at->windows[0].end) go_on(self, id);
}

static void freeze(struct sim *self, uint8_t id, const struct wire_level *job)
{
    struct exchange *at = &learner_of(self, id)->exchange;
    ensure(at->count > 0);
    holder_freeze(&at->holder);
    at->shares.gathering = false;
    learner_says(self, id, FRAME_FROZEN,
                 &(struct wire_frozen){ .window = at->holder.window,
                                        .level = job->level,
                                        .step = at->holder.step,
                                        .has = windows_has(self, id),
                                        .taken = at->taken,
                                        .taken_window = at->taken_window,
                                        .copied = at->copies.copied,
                                        .copied_window = at->copies.copied_window,
                                        .share = at->shares.only,
                                        .dead = dead_places(self, id) });
}

// What it lacks of the step that others have applied is on its way (learner_step_hear_out).
static bool hears_out(const struct sim *self, uint8_t id)
{
    const struct exchange *at = &self->nodes[id].learner.exchange;
    const struct sim_window *window = &at->windows[0];
    const uint32_t servers = config_of(self)->servers;
    if (!windows_have_shares(self) || !holder_has(&at->holder)) return false;
    for (uint32_t i = servers ? window->count - servers : 0; i < window->count; i++) {
        const struct node *node = &self->nodes[window->nodes[i]];
        if (at->holder.have >> i & 1) continue;
        if (!node->up || node->instance != window->instances[i] ||
            is_cut(self, id, window->nodes[i]) || node->learner.step <= at->holder.step)
            return false;
    }
    return true;
}

static void close_window(struct sim *self, uint8_t id, const struct wire_close_window *job)
{
    struct learner *learner = learner_of(self, id);
    struct exchange *at = &learner->exchange;
    struct wire_closed_window closed = { .window = job->window };
    closed.ok = learner->holding && learner->step == job->end;
    if (at->count > 0) {
        const enum holder_close how = holder_close(&at->holder, job->end);
        const bool is_outside = holder_is_outside(&at->holder);
        const bool can = how == HOLDER_IS_THERE || (how == HOLDER_MUST_APPLY &&
                                                    (windows_has(self, id) || hears_out(self, id)));
        if (how == HOLDER_MUST_APPLY && can && !at->shares.lost) apply(self, id);
        closed.ok = can && !is_outside;
    }
    closed.ok &= !at->shares.lost && !(job->digest && at->shares.only);
    at->shares.lost = at->shares.gathering = false;
    at->shares.dropped |= !closed.ok;
    if (!closed.ok) snprintf(closed.reason, sizeof closed.reason, "the window ended elsewhere");
    closed.step = learner->step;
    closed.share = closed.ok && at->shares.only;
    if (job->digest) closed.digest = learner->digest;
    at->count = 0;
    at->turn++;
    learner_says(self, id, FRAME_CLOSED_WINDOW, &closed);
}

bool windows_learn(struct sim *self, uint8_t id, uint16_t kind, const void *job)
{
    switch (kind) {
    case FRAME_SIM_WORD: hear_word(self, id, job); return true;
    case FRAME_TAKE_WINDOW: take_window(self, id, job); return true;
    case FRAME_FREEZE: freeze(self, id, job); return true;
    case FRAME_CLOSE_WINDOW: close_window(self, id, job); return true;
    case FRAME_EXPECT: expect(self, id, job); return true;
    case FRAME_KEPT: copies_kept(self, id, job); return true;
    case FRAME_STOP_WINDOW:
        if (learner_of(self, id)->exchange.count)
            holder_stop(&learner_of(self, id)->exchange.holder);
        return true;
    default: return false;
    }
}
