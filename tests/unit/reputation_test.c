// reputation_test -- the order in which peers are asked, and what is forgiven in time.

#include "common/bulk/reputation.h"
#include "tests/test.h"

enum { T = 1000 };

static void test_the_order_is_that_of_the_drawing(void **state)
{
    (void)state;
    static const struct reputation order[] = {
        { .proven_ms = 7 },
        { .proven_ms = 9, .is_slow = true },
        { 0 },
        { .is_slow = true },
        { .proven_ms = 9, .failed_ms = T },
        { .has_lied = true },
        { .failed_ms = T },
        { .failed_ms = T + 1 },
    };
    enum { COUNT = sizeof order / sizeof *order };
    for (int a = 0; a < COUNT; a++)
        for (int b = 0; b < COUNT; b++)
            assert_int_equal(reputation_is_before(&order[a], &order[b], 0), a < b);
}

static void test_silence_is_forgiven_and_a_lie_is_not(void **state)
{
    (void)state;
    const struct reputation silent = { .failed_ms = T }, liar = { .has_lied = true },
                            unknown = { 0 };
    assert_true(reputation_has_failed(&silent, T - 1));
    assert_false(reputation_has_failed(&silent, T));
    assert_true(reputation_is_before(&unknown, &silent, T - 1));
    assert_false(reputation_is_before(&unknown, &silent, T));
    assert_false(reputation_is_before(&silent, &unknown, T));
    assert_true(reputation_has_failed(&liar, UINT64_MAX));
    assert_true(reputation_is_before(&silent, &liar, T));
}

static void test_doubt_is_what_must_be_remembered(void **state)
{
    (void)state;
    assert_false(reputation_is_doubtful(&(struct reputation){ .proven_ms = T }));
    assert_true(reputation_is_doubtful(&(struct reputation){ .is_slow = true }));
    assert_true(reputation_is_doubtful(&(struct reputation){ .has_lied = true }));
    assert_true(reputation_is_doubtful(&(struct reputation){ .failed_ms = 1 }));
}

TESTS(TEST(test_the_order_is_that_of_the_drawing), TEST(test_silence_is_forgiven_and_a_lie_is_not),
      TEST(test_doubt_is_what_must_be_remembered))
