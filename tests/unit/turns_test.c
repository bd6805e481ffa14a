// turns_test -- askers share alike, whatever their answers cost; who was idle has saved nothing.

#include "common/base/turns.h"
#include "tests/test.h"
#include <string.h>

enum { ASKERS = 3, KIB = 1 << 10, QUANTUM = 256 * KIB };

static struct turns turns;
static struct waiter list[ASKERS];
static uint64_t got[ASKERS];

static int set_up(void **state)
{
    (void)state;
    turns = (struct turns){ .quantum = QUANTUM };
    memset(list, 0, sizeof list);
    memset(got, 0, sizeof got);
    return 0;
}

// Answers so many bytes in all; those of asker i come in answers of sizes[i].
static void serve(const uint64_t sizes[ASKERS], uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes;) {
        struct waiter *turn = turns_next(&turns);
        assert_non_null(turn);
        const size_t i = (size_t)(turn - list);
        turns_charge(turn, sizes[i]);
        got[i] += sizes[i];
        done += sizes[i];
    }
}

static void expect_shares(const uint64_t sizes[ASKERS], uint64_t bytes)
{
    serve(sizes, bytes);
    for (int i = 0; i < ASKERS; i++) {
        const uint64_t most = sizes[i] > QUANTUM ? sizes[i] : QUANTUM;
        assert_in_range(got[i], bytes / ASKERS - 2 * most, bytes / ASKERS + 2 * most);
    }
}

static void all_get_as_many_bytes(void **state)
{
    (void)state;
    static const uint64_t sizes[ASKERS] = { 4096 * KIB, 256 * KIB, 1 * KIB };
    for (int i = 0; i < ASKERS; i++) turns_add(&turns, &list[i]);
    turns_add(&turns, &list[1]); // Once is enough
    expect_shares(sizes, 300u << 20);
}

static void nobody_waits_for_one_alone(void **state)
{
    (void)state;
    assert_null(turns_next(&turns));
    turns_add(&turns, &list[0]);
    for (int i = 0; i < 100; i++) {
        assert_ptr_equal(turns_next(&turns), &list[0]);
        turns_charge(&list[0], 16u << 20);
    }
    turns_remove(&turns, &list[0]);
    turns_remove(&turns, &list[0]);
    assert_null(turns_next(&turns));
}

// It has debt when it leaves, and when it comes back; what it had left is gone.
static void leaving_neither_pays_nor_saves(void **state)
{
    (void)state;
    turns_add(&turns, &list[0]);
    turns_add(&turns, &list[1]);
    struct waiter *first = turns_next(&turns);
    turns_charge(first, 5 * QUANTUM);
    turns_remove(&turns, first);
    struct waiter *second = turns_next(&turns);
    assert_ptr_not_equal(first, second);
    turns_add(&turns, first);
    for (int i = 0; i < 5; i++) { // Until its debt is paid, and a turn more
        assert_ptr_equal(turns_next(&turns), second);
        turns_charge(second, QUANTUM);
    }
    assert_ptr_equal(turns_next(&turns), first);
    turns_charge(first, 1); // Nearly all of its turn is left, and goes with it
    turns_remove(&turns, first);
    turns_add(&turns, first);
    assert_int_equal(first->credit, 0);
}

// One that asks for one thing after the other is behind those that wait, each time.
static void one_that_comes_again_is_last(void **state)
{
    (void)state;
    for (int i = 0; i < ASKERS; i++) turns_add(&turns, &list[i]);
    for (int n = 0; n < 9; n++) {
        struct waiter *turn = turns_next(&turns);
        got[turn - list]++;
        turns_charge(turn, 1);
        turns_remove(&turns, turn);
        turns_add(&turns, turn);
    }
    for (int i = 0; i < ASKERS; i++) assert_int_equal(got[i], 3);
}

TESTS(TEST_WITH(all_get_as_many_bytes, set_up, NULL),
      TEST_WITH(nobody_waits_for_one_alone, set_up, NULL),
      TEST_WITH(leaving_neither_pays_nor_saves, set_up, NULL),
      TEST_WITH(one_that_comes_again_is_last, set_up, NULL))
