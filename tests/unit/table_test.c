// The table against a naive model that knows the state of every sample by itself.

#include "common/run/assignment.h"
#include "common/run/table.h"
#include "tests/test.h"

#include <string.h>

enum { SAMPLES = 512, CAPACITY = SAMPLES, ROUNDS = 4 };

static struct wire_table_entry memory[2 * CAPACITY], other_memory[2 * CAPACITY];
static struct interval list[SAMPLES], other_list[SAMPLES];
static uint64_t prng;

static uint64_t roll(uint64_t below)
{
    uint64_t z = prng += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (z ^ z >> 31) % below;
}

static struct {
    uint8_t states[SAMPLES];
    uint64_t rounds[SAMPLES];
    uint32_t times_done[SAMPLES];
} model;

static void model_init(void)
{
    memset(&model, 0, sizeof model);
    for (int i = 0; i < SAMPLES; i++) model.states[i] = TABLE_TODO;
}

static void model_move(const struct interval *moved, uint32_t count, uint8_t to, uint64_t round)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint64_t p = moved[i].begin; p < moved[i].end; p++) {
            assert_int_equal(model.states[p], to == TABLE_PENDING ? TABLE_TODO : TABLE_PENDING);
            model.states[p] = to;
            model.rounds[p] = to == TABLE_PENDING ? round : 0;
            model.times_done[p] += to == TABLE_DONE;
            assert_true(model.times_done[p] <= 1);
        }
}

static void assert_same_as_model(const struct table *table)
{
    uint64_t frontier = SAMPLES, cursor = 0;
    assert_true(table_check(table));
    for (uint64_t p = 0; p < SAMPLES; p++) {
        const uint8_t state = model.states[p];
        assert_int_equal(table_state_at(table, p), state);
        if (state != TABLE_TODO) cursor = p + 1;
        if (frontier == SAMPLES && (state == TABLE_TODO || state == TABLE_PENDING)) frontier = p;
    }
    assert_int_equal(table->cursor, cursor);
    assert_int_equal(table_frontier(table), frontier);
}

// Picks a random part of the samples that are pending in a round, cut into random slices.
static uint32_t some_pending(uint64_t round, struct interval *ret_list)
{
    uint32_t count = 0;
    for (uint64_t p = 0; p < SAMPLES; p++) {
        if (model.states[p] != TABLE_PENDING || model.rounds[p] != round || roll(3) == 0) continue;
        if (count && ret_list[count - 1].end == p && roll(4)) ret_list[count - 1].end++;
        else ret_list[count++] = (struct interval){ p, p + 1 };
    }
    return count;
}

static void deal_some(struct table *table, uint64_t round)
{
    const uint64_t count = roll(40);
    uint32_t listed;
    uint64_t at = 0, todo = 0, dealt = 0;
    for (uint64_t p = 0; p < SAMPLES; p++) todo += model.states[p] == TABLE_TODO;
    if (count > todo) return; // The model has an end; the table has none
    assert_int_equal(table_deal(table, round, count, list, SAMPLES, &listed), TABLE_OK);
    assert_true(interval_list_tidy(list, listed));
    for (uint32_t i = 0; i < listed; i++)
        for (uint64_t p = list[i].begin; p < list[i].end; p++, at++, dealt++) // The lowest first
            for (; at < p; at++) assert_int_not_equal(model.states[at], TABLE_TODO);
    assert_int_equal(dealt, count);
    model_move(list, listed, TABLE_PENDING, round);
}

static void return_rest(struct table *table, uint64_t round)
{
    assert_int_equal(table_return_rest(table, round), TABLE_OK);
    for (int p = 0; p < SAMPLES; p++) {
        if (model.states[p] != TABLE_PENDING || model.rounds[p] != round) continue;
        model.states[p] = TABLE_TODO;
        model.rounds[p] = 0;
    }
}

static void answer_some(struct table *table, uint64_t round)
{
    const uint32_t count = some_pending(round, list);
    const uint64_t what = roll(4);
    if (what == 0) {
        return_rest(table, round);
        return;
    }
    if (what == 1) assert_int_equal(table_fail(table, round, list, count), TABLE_OK);
    else assert_int_equal(table_done(table, round, list, count), TABLE_OK);
    model_move(list, count, what == 1 ? TABLE_FAILED : TABLE_DONE, 0);
}

// A table and its model after some deals of all numbers and their answers.
static void make_some_table(struct table *ret_table)
{
    model_init();
    table_init(ret_table, memory, CAPACITY, 100, 0);
    for (int step = 0; step < 40; step++) {
        const uint64_t round = 1 + roll(ROUNDS);
        if (roll(2)) deal_some(ret_table, round);
        else answer_some(ret_table, round);
    }
}

static void nothing_is_lost_and_nothing_done_twice(void **state)
{
    (void)state;
    for (prng = 1; prng < 40;) {
        const uint64_t seed = prng;
        struct table table;
        model_init();
        table_init(&table, memory, CAPACITY, 100, 0);
        for (int step = 0; step < 150; step++) {
            const uint64_t round = 1 + roll(ROUNDS);
            if (roll(2)) deal_some(&table, round);
            else answer_some(&table, round);
            assert_same_as_model(&table);
        }
        prng = seed + 1;
    }
}

// One round at a time, as in a run, until all samples are done. The capacity is exactly the batch.
static void a_table_as_large_as_the_batch_is_never_full(void **state)
{
    (void)state;
    enum { BATCH = 24 };
    struct table table;
    prng = 7;
    model_init();
    table_init(&table, memory, BATCH, 100, 0);
    for (uint64_t round = 1; table_frontier(&table) < SAMPLES - BATCH; round++) {
        uint32_t count;
        assert_int_equal(table_deal(&table, round, 1 + roll(BATCH), list, BATCH, &count), TABLE_OK);
        model_move(list, count, TABLE_PENDING, round);
        count = some_pending(round, list);
        assert_int_equal(table_done(&table, round, list, count), TABLE_OK);
        model_move(list, count, TABLE_DONE, 0);
        return_rest(&table, round);
        assert_same_as_model(&table);
        assert_true(table.count <= BATCH);
    }
}

static void a_round_returned_whole_leaves_no_trace(void **state)
{
    (void)state;
    struct table table, before;
    uint32_t count;
    table_init(&table, memory, 16, 50, 7);
    table_init(&before, other_memory, 16, 50, 7);
    assert_int_equal(table_deal(&table, 1, 30, list, 4, &count), TABLE_OK);
    assert_int_equal(count, 1);
    assert_false(table_equal(&table, &before));
    assert_int_equal(table_return_rest(&table, 2), TABLE_OK); // Another round: nothing
    assert_int_equal(table_state_at(&table, 7), TABLE_PENDING);
    assert_int_equal(table_state_at(&table, 36), TABLE_PENDING);
    assert_int_equal(table_return_rest(&table, 1), TABLE_OK);
    assert_true(table_equal(&table, &before));
}

static void a_deal_crosses_passes_and_takes_returned_first(void **state)
{
    (void)state;
    struct table table;
    uint32_t count;
    table_init(&table, memory, 16, 10, 0);
    assert_int_equal(table_deal(&table, 1, 8, list, 16, &count), TABLE_OK);
    const struct interval done[] = { { 0, 2 }, { 5, 8 } };
    assert_int_equal(table_done(&table, 1, done, 2), TABLE_OK);
    assert_int_equal(table_return_rest(&table, 1), TABLE_OK);
    assert_int_equal(table_deal(&table, 2, 8, list, 16, &count), TABLE_OK);
    assert_int_equal(count, 2);
    assert_int_equal(list[0].begin, 2);
    assert_int_equal(list[0].end, 5);
    assert_int_equal(list[1].begin, 8);
    assert_int_equal(list[1].end, 13); // Into the second pass
    assert_int_equal(table_frontier(&table) / table.pass_length, 0);
    assert_int_equal(table_done(&table, 2, list, count), TABLE_OK);
    assert_int_equal(table_frontier(&table) / table.pass_length, 1);
    assert_int_equal(table.count, 0);
}

static void what_is_refused_changes_nothing(void **state)
{
    (void)state;
    static const struct {
        struct interval list[2];
        uint32_t count;
        enum table_answer answer;
    } wrong[] = {
        { { { 3, 3 } }, 1, TABLE_UNTIDY }, // Empty
        { { { 5, 4 } }, 1, TABLE_UNTIDY },
        { { { 6, 8 }, { 2, 3 } }, 2, TABLE_UNTIDY },  // Not sorted
        { { { 2, 5 }, { 4, 6 } }, 2, TABLE_UNTIDY },  // Overlapping
        { { { 18, 21 } }, 1, TABLE_STATE },           // Partly beyond what is pending
        { { { 8, 12 } }, 1, TABLE_STATE },            // Across two rounds
        { { { 2, 3 }, { 12, 13 } }, 2, TABLE_STATE }, // The second of another round
        { { { 30, 31 } }, 1, TABLE_STATE },           // Todo
        { { { 30, UINT64_MAX } }, 1, TABLE_STATE },
    };
    struct table table, before;
    uint32_t count;
    for (int copy = 0; copy < 2; copy++) { // [0, 10) to round 1, [10, 20) to 2
        struct table *self = copy ? &before : &table;
        table_init(self, copy ? other_memory : memory, 3, 100, 0);
        assert_int_equal(table_deal(self, 1, 10, list, 1, &count), TABLE_OK);
        assert_int_equal(table_deal(self, 2, 10, list, 1, &count), TABLE_OK);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(table_done(&table, 1, wrong[i].list, wrong[i].count), wrong[i].answer);
        assert_int_equal(table_fail(&table, 1, wrong[i].list, wrong[i].count), wrong[i].answer);
        assert_true(table_equal(&table, &before));
    }
    const struct interval middle = { 2, 3 };
    count = 42;
    assert_int_equal(table_fail(&table, 1, &middle, 1), TABLE_FULL); // Would be four
    assert_int_equal(table_deal(&table, 3, 1, list, 0, &count), TABLE_LIST_FULL);
    assert_int_equal(table_deal(&table, 3, UINT64_MAX - 19, list, 9, &count), TABLE_EXHAUSTED);
    const struct interval pending = { 19, 22 };
    assert_int_equal(table_deal_again(&table, 3, &pending, 1), TABLE_STATE);
    assert_int_equal(table_restore(&table, TABLE_FAILED, 0, &pending, 1), TABLE_STATE);
    assert_true(table_equal(&table, &before));
    assert_int_equal(count, 42);
    // A second time is refused: a done sample is no longer pending.
    const struct interval once = { 0, 4 };
    assert_int_equal(table_done(&table, 1, &once, 1), TABLE_OK);
    assert_int_equal(table_done(&table, 1, &once, 1), TABLE_STATE);
}

static void the_last_positions_can_be_dealt(void **state)
{
    (void)state;
    struct table table;
    uint32_t count;
    table_init(&table, memory, 4, 1, UINT64_MAX - 3);
    assert_int_equal(table_deal(&table, 1, 4, list, 4, &count), TABLE_EXHAUSTED);
    assert_int_equal(table_deal(&table, 1, 3, list, 4, &count), TABLE_OK);
    assert_int_equal(list[0].end, UINT64_MAX);
    assert_true(table_check(&table));
    assert_int_equal(table_deal(&table, 2, 1, list, 4, &count), TABLE_EXHAUSTED);
    assert_int_equal(table_return_rest(&table, 1), TABLE_OK);
    assert_int_equal(table.cursor, UINT64_MAX - 3);
    assert_int_equal(table.count, 0);
}

static void copy_state(const struct table *from, struct table *to, uint8_t state, uint64_t round)
{
    uint32_t count, short_count = 42;
    assert_int_equal(table_list(from, state, round, list, SAMPLES, &count), TABLE_OK);
    if (count > 0) {
        assert_int_equal(table_list(from, state, round, list, count - 1, &short_count),
                         TABLE_LIST_FULL);
        assert_int_equal(short_count, 42);
    }
    assert_int_equal(table_restore(to, state, round, list, count), TABLE_OK);
}

static void a_stored_table_loads(void **state)
{
    (void)state;
    for (uint64_t seed = 100; seed < 130; seed++) {
        struct table table, loaded;
        uint32_t count;
        prng = seed;
        model_init();
        table_init(&table, memory, CAPACITY, 100, 0);
        for (int step = 0; step < 40; step++) {
            if (roll(2)) deal_some(&table, 1 + roll(2));
            else answer_some(&table, 1 + roll(2));
        }
        table_init(&loaded, other_memory, CAPACITY, 100, table.cursor);
        for (uint64_t round = 1; round <= 2; round++)
            copy_state(&table, &loaded, TABLE_PENDING, round);
        copy_state(&table, &loaded, TABLE_TODO, 0);
        copy_state(&table, &loaded, TABLE_FAILED, 0);
        assert_true(table_equal(&table, &loaded));
        // The replay of a record has the same effect.
        assert_int_equal(table_deal(&table, 9, 50, list, SAMPLES, &count), TABLE_OK);
        assert_int_equal(table_deal_again(&loaded, 9, list, count), TABLE_OK);
        assert_true(table_equal(&table, &loaded));
    }
}

// Any table, whoever its numbers belong to, from the entries that a snapshot has of it.
static void a_table_loads_from_its_entries(void **state)
{
    (void)state;
    uint32_t pending = 0, failed = 0;
    for (uint64_t seed = 200; seed < 240; seed++) {
        struct table table, loaded;
        prng = seed;
        make_some_table(&table);
        table_init(&loaded, other_memory, CAPACITY, 100, table.cursor);
        assert_true(table_load(&loaded, table.entries, table.count));
        assert_true(table_equal(&table, &loaded));
        assert_same_as_model(&loaded);
        for (uint32_t i = 0; i < table.count; i++) {
            pending |= table.entries[i].state == TABLE_PENDING ? 1u << table.entries[i].number : 0;
            failed += table.entries[i].state == TABLE_FAILED;
        }
        // One entry too many, and a cursor that is not theirs
        if (table.count == 0) continue;
        table_init(&loaded, other_memory, table.count - 1, 100, table.cursor);
        assert_false(table_load(&loaded, table.entries, table.count));
        table_init(&loaded, other_memory, CAPACITY, 100, table.entries[table.count - 1].end - 1);
        assert_false(table_load(&loaded, table.entries, table.count));
    }
    assert_int_equal(pending, 0x1e); // All four numbers were among them
    assert_true(failed > 40);
}

// It says what a copy says in which nothing is pending any more.
static void what_is_undealt_is_what_returning_all_would_leave(void **state)
{
    (void)state;
    for (uint64_t seed = 300; seed < 400; seed++) {
        struct table table, copy;
        uint64_t cursor = 42;
        uint32_t count = 42, other_count;
        prng = seed;
        make_some_table(&table);
        table_init(&copy, other_memory, CAPACITY, 100, table.cursor);
        assert_true(table_load(&copy, table.entries, table.count));
        for (uint64_t round = 1; round <= ROUNDS; round++)
            assert_int_equal(table_return_rest(&copy, round), TABLE_OK);
        assert_int_equal(table_list(&copy, TABLE_TODO, 0, other_list, SAMPLES, &other_count),
                         TABLE_OK);
        assert_int_equal(table_undealt(&table, &cursor, list, table.count, &count), TABLE_OK);
        assert_int_equal(cursor, copy.cursor);
        assert_int_equal(count, other_count);
        assert_memory_equal(list, other_list, count * sizeof *list);
        if (count == 0) continue;
        other_count = 42;
        assert_int_equal(table_undealt(&table, &cursor, list, count - 1, &other_count),
                         TABLE_LIST_FULL);
        assert_int_equal(other_count, 42);
    }
}

static void what_is_undealt_at_the_edges(void **state)
{
    (void)state;
    const uint64_t end = UINT64_MAX;
    const struct {
        uint64_t cursor;
        struct wire_table_entry entries[4];
        uint32_t entry_count;
        uint64_t undealt_cursor;
        struct interval undealt[2];
        uint32_t undealt_count;
    } cases[] = {
        { 9, { { 0 } }, 0, 9, { { 0 } }, 0 }, // All is done
        // Two numbers side by side are one interval; a third is apart
        { 20,
          { { 2, 4, TABLE_PENDING, 1 }, { 4, 7, TABLE_PENDING, 2 }, { 9, 11, TABLE_PENDING, 1 } },
          3,
          20,
          { { 2, 7 }, { 9, 11 } },
          2 },
        // What was returned joins what is pending on both sides
        { 20,
          { { 2, 4, TABLE_PENDING, 1 }, { 4, 6, TABLE_TODO, 0 }, { 6, 7, TABLE_PENDING, 2 } },
          3,
          20,
          { { 2, 7 } },
          1 },
        // Pending at the cursor draws it back, through two numbers, as far as to what failed
        { 20,
          { { 2, 4, TABLE_PENDING, 3 },
            { 4, 6, TABLE_FAILED, 0 },
            { 6, 9, TABLE_PENDING, 1 },
            { 9, 20, TABLE_PENDING, 2 } },
          4,
          6,
          { { 2, 4 } },
          1 },
        // What failed at the cursor holds it
        { 20,
          { { 5, 19, TABLE_PENDING, 1 }, { 19, 20, TABLE_FAILED, 0 } },
          2,
          20,
          { { 5, 19 } },
          1 },
        { 20, { { 0, 20, TABLE_FAILED, 0 } }, 1, 20, { { 0 } }, 0 },
        // No sample is left behind the cursor
        { end, { { 0 } }, 0, end, { { 0 } }, 0 },
        { end, { { 7, 9, TABLE_TODO, 0 } }, 1, end, { { 7, 9 } }, 1 },
        { end, { { end - 9, end, TABLE_FAILED, 0 } }, 1, end, { { 0 } }, 0 },
        { end,
          { { end - 9, end - 2, TABLE_TODO, 0 }, { end - 2, end, TABLE_PENDING, end } },
          2,
          end - 9,
          { { 0 } },
          0 },
        { end,
          { { end - 9, end - 2, TABLE_PENDING, 1 }, { end - 2, end, TABLE_FAILED, 0 } },
          2,
          end,
          { { end - 9, end - 2 } },
          1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct table table;
        uint64_t cursor;
        uint32_t count;
        table_init(&table, memory, 4, 100, cases[i].cursor);
        assert_true(table_load(&table, cases[i].entries, cases[i].entry_count));
        assert_int_equal(table_undealt(&table, &cursor, list, 4, &count), TABLE_OK);
        assert_int_equal(cursor, cases[i].undealt_cursor);
        assert_int_equal(count, cases[i].undealt_count);
        assert_memory_equal(list, cases[i].undealt, count * sizeof *list);
    }
}

static void a_damaged_table_is_noticed(void **state)
{
    (void)state;
    static const struct {
        struct wire_table_entry entries[2];
        uint32_t count;
        bool sound;
    } tables[] = {
        { { { 1, 5, TABLE_PENDING, 3 }, { 5, 9, TABLE_FAILED, 0 } }, 2, true },
        { { { 1, 5, TABLE_PENDING, 3 }, { 5, 20, TABLE_PENDING, 4 } }, 2, true },
        { { { 5, 5, TABLE_TODO, 0 } }, 1, false }, // Empty
        { { { 1, 5, TABLE_TODO, 3 } }, 1, false }, // Todo of a round
        { { { 1, 5, TABLE_DONE, 0 } }, 1, false }, // Done is not listed
        { { { 1, 5, 99, 0 } }, 1, false },
        { { { 1, 21, TABLE_FAILED, 0 } }, 1, false },                            // Above the cursor
        { { { 15, 20, TABLE_TODO, 0 } }, 1, false },                             // Touches it
        { { { 1, 5, TABLE_PENDING, 3 }, { 4, 9, TABLE_FAILED, 0 } }, 2, false }, // Overlap
        { { { 6, 9, TABLE_PENDING, 3 }, { 1, 3, TABLE_FAILED, 0 } }, 2, false }, // Order
        { { { 1, 5, TABLE_FAILED, 0 }, { 5, 9, TABLE_FAILED, 0 } }, 2, false },  // Should be one
    };
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        struct table table;
        table_init(&table, memory, 4, 100, 20);
        assert_int_equal(table_load(&table, tables[i].entries, tables[i].count), tables[i].sound);
        assert_int_equal(table_check(&table), tables[i].sound);
    }
}

// Cuts a round's list by its deal: every sample of the list is in exactly one share, in order.
static void slices_of_a_deal_tile_its_list(void **state)
{
    (void)state;
    static struct share shares[64];
    static uint32_t by_trainer[64], trainers[64];
    struct deal deal = { .capacity = 64, .shares = shares, .by_trainer = by_trainer };
    for (uint32_t i = 0; i < 64; i++) trainers[i] = i;
    prng = 3;
    for (int trial = 0; trial < 500; trial++) {
        uint32_t count = (uint32_t)roll(20), at = 0;
        struct interval_walk walk = { 0 }, *in_turn = trial % 2 ? &walk : NULL;
        for (uint64_t i = 0, p = roll(9); i < count; i++, p = list[i - 1].end + roll(5))
            list[i] = (struct interval){ p, p + 1 + roll(10) };
        const uint64_t total = interval_list_total(list, count);
        assert_true(interval_list_tidy(list, count));
        assignment_deal(roll(1000), trainers, 1 + (uint32_t)roll(63), (uint32_t)total, &deal);
        uint64_t p = count ? list[0].begin : 0;
        for (uint32_t s = 0; s < deal.count; s++) {
            const uint32_t begin = shares[s].begin, end = shares[s].end;
            const size_t listed = interval_list_slice(list, count, begin, end, in_turn, other_list);
            assert_true(interval_list_tidy(other_list, listed));
            assert_int_equal(interval_list_total(other_list, listed), end - begin);
            for (size_t i = 0; i < listed; i++)
                for (uint64_t q = other_list[i].begin; q < other_list[i].end; q++, p++) {
                    if (p == list[at].end) p = list[++at].begin;
                    assert_int_equal(q, p);
                }
        }
        if (count) assert_int_equal(p, list[count - 1].end);
        // A slice stops at the end of the list; a slice whose end is below its begin is empty
        const size_t whole = interval_list_slice(list, count, 0, total + 1, NULL, other_list);
        assert_int_equal(interval_list_total(other_list, whole), total);
        assert_int_equal(interval_list_slice(list, count, 1, 0, NULL, other_list), 0);
    }
}

TESTS(TEST(nothing_is_lost_and_nothing_done_twice),
      TEST(a_table_as_large_as_the_batch_is_never_full),
      TEST(a_round_returned_whole_leaves_no_trace),
      TEST(a_deal_crosses_passes_and_takes_returned_first), TEST(what_is_refused_changes_nothing),
      TEST(the_last_positions_can_be_dealt), TEST(a_stored_table_loads),
      TEST(a_table_loads_from_its_entries), TEST(what_is_undealt_is_what_returning_all_would_leave),
      TEST(what_is_undealt_at_the_edges), TEST(a_damaged_table_is_noticed),
      TEST(slices_of_a_deal_tile_its_list))
