// quorum_test -- two thirds of the elected witnesses, rounded up: safe and live for every number of
// witnesses.

#include "common/run/quorum.h"
#include "tests/test.h"

#include <string.h>

static void two_thirds_rounded_up(void **state)
{
    (void)state;
    static const uint32_t expected[] = { 0, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7, 8, 8, 9, 10, 10, 11 };
    for (uint32_t k = 1; k < sizeof expected / sizeof expected[0]; k++)
        assert_int_equal(quorum_of(k), expected[k]);
    assert_int_equal(quorum_of(32), 22);
    assert_int_equal(quorum_of(64), 43);
}

static void every_quorum_is_safe_and_live(void **state)
{
    (void)state;
    for (uint32_t k = 1; k <= WITNESSES_MAX; k++) {
        const uint32_t quorum = quorum_of(k);
        assert_true(3 * quorum >= 2 * k && 3 * (quorum - 1) < 2 * k); // The least such
        assert_true(3 * (2 * quorum - k) >= k);                       // Two share a third
        assert_true(quorum <= k - k / 3);                             // A third may be silent
        for (uint32_t votes = 0; votes <= k; votes++)
            assert_int_equal(quorum_reached(votes, k), 3 * votes >= 2 * k);
    }
}

static void without_witnesses_there_is_none(void **state)
{
    (void)state;
    assert_int_equal(quorum_of(0), QUORUM_NONE);
    assert_false(quorum_reached(0, 0));
    assert_false(quorum_reached(1, 0));
    assert_false(quorum_reached(UINT32_MAX, 0));
}

TESTS(TEST(two_thirds_rounded_up), TEST(every_quorum_is_safe_and_live),
      TEST(without_witnesses_there_is_none))
