// holder_test -- one step of a window of three, by every order in which contributions, shares, words, deaths (at
// most two) and the coordinator's messages can come: whatever dies, all who live end at the same step, and each
// gets there from its own memory; and once more where the state of one of them differs: then none of them applies the
// step by HAVE. Before HAVE and the freeze were in the protocol, hundreds of its final states were bad;
// the mutants of holder.c find them again.

#include "common/run/holder.h"
#include "tests/test.h"
#include <stdlib.h>
#include <string.h>

static const struct hash same = { { 1 } }, other = { { 2 } }, third = { { 3 } };

enum { W = 3, ALL = 7, STEP = 10, SET = 1 << 21 };

// Of one member, in 16 bits: what it has got, and what it has said.
enum answer { NO_ANSWER, HAS_NOT, HAS, HOLDS_MORE };
struct at {
    bool alive, said, applied, frozen, done, differs;
    uint8_t contributions, shares, have; // By sender, as bits
    uint8_t answer;                      // enum answer
};

struct world {
    struct at at[W];
    bool asked;     // LEVEL was sent
    uint8_t closed; // 0: not yet; 1: at STEP; 2: one later
    uint8_t deaths;
};

static uint32_t odd = W; // Whose state differs; W: nobody's

static const struct hash *check_of(uint32_t me) { return me == odd ? &other : &same; }

static uint64_t pack(const struct world *world)
{
    uint64_t bits =
        (uint64_t)world->asked | (uint64_t)world->closed << 1 | (uint64_t)world->deaths << 3;
    for (int i = 0; i < W; i++) {
        const struct at *at = &world->at[i];
        const uint64_t own = (uint64_t)(at->alive | at->said << 1 | at->applied << 2 |
                                        at->frozen << 3 | at->done << 4 | at->contributions << 5 |
                                        at->shares << 8 | at->have << 11 | at->answer << 14);
        bits |= own << (5 + 16 * i) | (uint64_t)at->differs << (5 + 16 * W + i);
    }
    return bits | (uint64_t)1 << 63; // Never 0
}

static struct world unpack(uint64_t bits)
{
    struct world world = { .asked = bits & 1, .closed = bits >> 1 & 3, .deaths = bits >> 3 & 3 };
    for (int i = 0; i < W; i++) {
        const uint64_t own = bits >> (5 + 16 * i);
        world.at[i] = (struct at){ own & 1,      own >> 1 & 1, own >> 2 & 1,
                                   own >> 3 & 1, own >> 4 & 1, bits >> (5 + 16 * W + i) & 1,
                                   own >> 5 & 7, own >> 8 & 7, own >> 11 & 7,
                                   own >> 14 & 3 };
    }
    return world;
}

// ---- all states that can be reached -------------------------------------------------------------

struct search {
    uint64_t *seen, *left; // [SET] a set with holes; a stack
    uint32_t count, left_count, bad;
};

static void reach(struct search *self, const struct world *world)
{
    const uint64_t bits = pack(world);
    uint64_t place = bits * 0x9E3779B97F4A7C15u >> 43;
    for (; self->seen[place]; place = (place + 1) % SET)
        if (self->seen[place] == bits) return;
    assert_true(++self->count < SET / 2);
    self->seen[place] = bits;
    self->left[self->left_count++] = bits;
}

// ---- what a member does, by holder.c ------------------------------------------------------------

static struct holder holder_of(const struct at *at, uint32_t me)
{
    struct holder holder;
    holder_begin(&holder, 1, STEP, me, W);
    holder.have = at->have;
    holder.frozen = at->frozen;
    holder.differs = at->differs;
    for (uint32_t i = 0; i < W; i++) holder.check[i] = *check_of(i);
    if (at->applied) holder_applied(&holder);
    return holder;
}

static void keep(struct at *at, const struct holder *holder)
{
    at->have = at->applied ? at->have : (uint8_t)holder->have;
    at->frozen = holder->frozen;
    at->differs = holder->differs;
}

// It does what follows from what has come.
static void settle(struct world *world, uint32_t me)
{
    struct at *at = &world->at[me];
    struct holder holder = holder_of(at, me);
    if (!at->frozen && at->contributions == ALL) at->shares |= (uint8_t)(1 << me);
    if (!at->alive || at->applied || at->done) return;
    if (at->shares == ALL && !holder_has(&holder))
        at->said |= holder_complete(&holder, check_of(me));
    keep(at, &holder);
    at->applied = holder_may_apply(&holder);
    assert_true(!at->applied || odd == W);
}

// Something of `from` comes to `to`: its contribution, its share of the sum, its word.
static void deliver(struct search *self, const struct world *before, uint32_t from, uint32_t to)
{
    const struct at *sender = &before->at[from];
    const uint8_t bit = (uint8_t)(1 << from);
    if (!(before->at[to].contributions & bit)) {
        struct world world = *before;
        world.at[to].contributions |= bit;
        settle(&world, to);
        reach(self, &world);
    }
    if (!(before->at[to].shares & bit) && sender->shares & bit) {
        struct world world = *before;
        world.at[to].shares |= bit;
        settle(&world, to);
        reach(self, &world);
    }
    if (!(before->at[to].have & bit) && sender->said && !before->at[to].applied) {
        struct world world = *before;
        struct holder holder = holder_of(&world.at[to], to);
        holder_hear_have(&holder, from, 1, STEP, false, check_of(from));
        keep(&world.at[to], &holder);
        settle(&world, to);
        reach(self, &world);
    }
}

static void hear_level(struct search *self, const struct world *before, uint32_t me)
{
    struct world world = *before;
    struct at *at = &world.at[me];
    struct holder holder = holder_of(at, me);
    holder_freeze(&holder);
    at->frozen = true;
    at->answer = at->applied ? HOLDS_MORE : holder_has(&holder) ? HAS : HAS_NOT;
    reach(self, &world);
}

static void hear_closed(struct search *self, const struct world *before, uint32_t me)
{
    struct world world = *before;
    struct at *at = &world.at[me];
    const struct holder holder = holder_of(at, me);
    if (holder_close(&holder, STEP + world.closed - 1) == HOLDER_MUST_APPLY) at->applied = true;
    at->done = true;
    reach(self, &world);
}

// ---- what the coordinator does ------------------------------------------------------------------

static void decide(struct search *self, const struct world *before)
{
    struct world world = *before;
    struct holder_answer answers[W];
    uint32_t count = 0;
    for (uint32_t i = 0; i < W; i++) {
        const struct at *at = &world.at[i];
        if (!at->alive) continue;
        if (!at->answer) return;
        answers[count++] =
            (struct holder_answer){ STEP + (at->answer == HOLDS_MORE), at->answer == HAS };
    }
    if (count == 0) return;
    const uint64_t end = holder_window_end(answers, count, STEP);
    assert_true(end == STEP || end == STEP + 1);
    world.closed = (uint8_t)(end - STEP + 1);
    reach(self, &world);
}

// All who live have closed the window: they hold its end, all of them.
static void judge(struct search *self, const struct world *world)
{
    uint32_t live = 0, there = 0;
    for (uint32_t i = 0; i < W; i++) {
        if (!world->at[i].alive) continue;
        if (!world->at[i].done) return;
        live++;
        there += world->at[i].applied == (world->closed == 2);
    }
    self->bad += there != live;
}

static void go_on(struct search *self, const struct world *world)
{
    for (uint32_t i = 0; i < W; i++) {
        if (!world->at[i].alive) continue;
        for (uint32_t from = 0; from < W && !world->at[i].done; from++)
            if (from != i) deliver(self, world, from, i);
        if (world->asked && !world->at[i].answer) hear_level(self, world, i);
        if (world->closed && !world->at[i].done) hear_closed(self, world, i);
        if (world->deaths == 2) continue;
        struct world dies = *world;
        dies.at[i].alive = false;
        dies.deaths++;
        reach(self, &dies);
    }
    if (!world->asked && world->deaths > 0) {
        struct world asks = *world;
        asks.asked = true;
        reach(self, &asks);
    }
    if (world->asked && !world->closed) decide(self, world);
    if (world->closed) judge(self, world);
}

static void search_all(void)
{
    struct search self = { .seen = calloc(SET, sizeof *self.seen),
                           .left = calloc(SET, sizeof *self.left) };
    struct world world = { 0 };
    for (uint32_t i = 0; i < W; i++)
        world.at[i] = (struct at){ .alive = true, .contributions = (uint8_t)(1 << i) };
    assert_non_null(self.seen);
    assert_non_null(self.left);
    reach(&self, &world);
    while (self.left_count > 0) {
        world = unpack(self.left[--self.left_count]);
        go_on(&self, &world);
    }
    assert_true(self.count > 50000);
    assert_int_equal(self.bad, 0);
    free(self.seen);
    free(self.left);
}

static void whatever_dies_all_who_live_hold_the_same(void **state)
{
    (void)state;
    search_all();
}

static void a_step_whose_checks_differ_is_applied_by_nobody(void **state)
{
    (void)state;
    odd = 1;
    search_all();
    odd = W;
}

// ---- one holder ---------------------------------------------------------------------------------

static void a_step_needs_the_word_of_all(void **state)
{
    (void)state;
    struct holder holder;
    holder_begin(&holder, 7, 100, 1, 3);
    holder_hear_have(&holder, 0, 7, 100, false, &same);
    holder_hear_have(&holder, 2, 7, 100, false, &same);
    assert_false(holder_may_apply(&holder));
    assert_true(holder_complete(&holder, &same));
    assert_true(holder_may_apply(&holder));
    holder_applied(&holder);
    assert_int_equal(holder.step, 101);
    assert_false(holder_may_apply(&holder));
}

static void words_of_another_window_or_step_are_nothing(void **state)
{
    (void)state;
    struct holder holder;
    holder_begin(&holder, 7, 100, 0, 2);
    assert_true(holder_complete(&holder, &same));
    holder_hear_have(&holder, 1, 6, 100, false, &same);
    holder_hear_have(&holder, 1, 7, 99, false, &same);
    holder_hear_have(&holder, 1, 7, 101, false, &same);
    holder_hear_have(&holder, 2, 7, 100, false, &same);
    assert_false(holder_may_apply(&holder));
    holder_hear_have(&holder, 1, 7, 100, false, &same);
    assert_true(holder_may_apply(&holder));
}

static void a_frozen_holder_says_nothing(void **state)
{
    (void)state;
    struct holder holder;
    holder_begin(&holder, 7, 100, 0, 2);
    holder_freeze(&holder);
    holder_hear_have(&holder, 1, 7, 100, false, &same);
    assert_false(holder_has(&holder));
    assert_false(
        holder_complete(&holder, &same)); // One that is out of reach would go on by this word
    assert_false(holder_may_apply(&holder));
    assert_int_equal(holder_close(&holder, 101), HOLDER_MUST_APPLY);
    assert_int_equal(holder_close(&holder, 102), HOLDER_CANNOT_REACH);
}

static void all_stop_after_the_same_step(void **state)
{
    (void)state;
    struct holder a, b;
    holder_begin(&a, 7, 100, 0, 2);
    holder_begin(&b, 7, 100, 1, 2);
    holder_stop(&b);
    assert_true(holder_complete(&a, &same) && holder_complete(&b, &same));
    holder_hear_have(&a, 1, 7, 100, b.asks_stop, &same);
    holder_hear_have(&b, 0, 7, 100, a.asks_stop, &same);
    assert_true(holder_may_apply(&a) && holder_may_apply(&b));
    holder_applied(&a);
    holder_applied(&b);
    assert_true(a.stopped && b.stopped);
    assert_false(holder_complete(&a, &same));
    assert_int_equal(holder_close(&a, 101), HOLDER_IS_THERE);
}

// Two of three are equal: the third is named. Whoever knows of a check that differs has no step any more.
static void the_minority_is_named(void **state)
{
    (void)state;
    struct holder holder;
    holder_begin(&holder, 7, 100, 1, 3);
    assert_true(holder_complete(&holder, &same));
    assert_true(holder_has(&holder));
    holder_hear_have(&holder, 0, 7, 100, false, &other);
    assert_false(holder_has(&holder));
    assert_true(holder_outsiders(&holder) == 0); // Not all have said it
    holder_hear_have(&holder, 2, 7, 100, false, &same);
    assert_false(holder_may_apply(&holder));
    assert_true(holder_outsiders(&holder) == 1);
    assert_false(holder_is_outside(&holder));
    holder.me = 0;
    assert_true(holder_is_outside(&holder));
    assert_int_equal(holder_close(&holder, 101), HOLDER_CANNOT_REACH);
    assert_true(holder_is_minority(1, 3) && !holder_is_minority(2, 2) && !holder_is_minority(6, 3));
    assert_true(!holder_is_minority(0, 3) && !holder_is_minority(12, 4) &&
                holder_is_minority(24, 5));
}

static void without_a_majority_the_first_of_the_largest_set_is_inside(void **state)
{
    (void)state;
    const struct hash *checks[] = { &third, &same, &other, &same, &other };
    struct holder holder;
    holder_begin(&holder, 7, 100, 0, 5);
    assert_true(holder_complete(&holder, checks[0]));
    for (uint32_t i = 1; i < 5; i++) holder_hear_have(&holder, i, 7, 100, false, checks[i]);
    assert_true(holder_outsiders(&holder) == (1 | 4 | 16));
    assert_false(holder_is_minority(holder_outsiders(&holder), 5));
    assert_false(holder_is_outside(&holder));
}

// Its answer was that it has the step: a check that comes later does not change that.
static void a_check_after_the_freeze_changes_nothing(void **state)
{
    (void)state;
    struct holder holder;
    holder_begin(&holder, 7, 100, 0, 2);
    assert_true(holder_complete(&holder, &same));
    holder_freeze(&holder);
    holder_hear_have(&holder, 1, 7, 100, false, &other);
    assert_true(holder_has(&holder));
    assert_int_equal(holder_close(&holder, 101), HOLDER_MUST_APPLY);
    holder_applied(&holder);
    assert_true(holder_outsiders(&holder) == 0);
}

static void a_full_group_has_64(void **state)
{
    (void)state;
    struct holder holder;
    holder_begin(&holder, 1, 5, 63, HOLDERS_MAX);
    for (uint32_t i = 0; i < 63; i++) {
        assert_false(holder_may_apply(&holder));
        holder_hear_have(&holder, i, 1, 5, false, &same);
    }
    assert_true(holder_complete(&holder, &same) && holder_may_apply(&holder));
}

static void a_window_ends_at_the_newest_step_held(void **state)
{
    (void)state;
    const struct holder_answer all_have[] = { { 5, true }, { 5, true } };
    const struct holder_answer one_has_not[] = { { 5, true }, { 5, false } };
    const struct holder_answer one_is_ahead[] = { { 5, true }, { 6, false } };
    assert_int_equal(holder_window_end(all_have, 2, 3), 6);
    assert_int_equal(holder_window_end(one_has_not, 2, 3), 5);
    assert_int_equal(holder_window_end(one_is_ahead, 2, 3), 6);
    assert_int_equal(holder_window_end(NULL, 0, 3), 3);
}

TESTS(TEST(whatever_dies_all_who_live_hold_the_same),
      TEST(a_step_whose_checks_differ_is_applied_by_nobody), TEST(the_minority_is_named),
      TEST(without_a_majority_the_first_of_the_largest_set_is_inside),
      TEST(a_check_after_the_freeze_changes_nothing), TEST(a_step_needs_the_word_of_all),
      TEST(words_of_another_window_or_step_are_nothing), TEST(a_frozen_holder_says_nothing),
      TEST(all_stop_after_the_same_step), TEST(a_full_group_has_64),
      TEST(a_window_ends_at_the_newest_step_held))
