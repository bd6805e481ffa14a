// lateness_test -- who is late: three medians, twice in a row, a floor, a ceiling, and nobody where all are slow.

#include "common/run/lateness.h"
#include "tests/test.h"
#include <string.h>

enum { FLOOR = 200, CEILING = 10000 };

static struct lateness lateness;
static uint8_t row[4];

static int set_up(void **unused)
{
    (void)unused;
    lateness_init(&lateness, FLOOR, CEILING);
    memset(row, 0, sizeof row);
    return 0;
}

static uint32_t turn(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    const uint32_t took[] = { a, b, c, d };
    return lateness_turn(&lateness, took, row, 4);
}

static void turns(unsigned count, uint32_t took)
{
    for (unsigned i = 0; i < count; i++) turn(took, took, took, took);
}

static void a_member_is_said_that_is_late_twice(void **unused)
{
    (void)unused;
    turns(3, 900);
    assert_int_equal(lateness_limit(&lateness), 2700);
    assert_int_equal(turn(900, 910, 920, 3700), 910);
    assert_int_equal(row[3], 1);
    turn(900, 900, 900, 3700);
    assert_int_equal(row[3], LATENESS_ROW);
    turn(900, 900, 900, 2701);
    assert_int_equal(row[3], LATENESS_ROW); // Still so, and no more than that
    turn(900, 900, 900, 2700);
    assert_int_equal(row[3], 0);
    assert_int_equal(row[0] + row[1] + row[2], 0);
}

static void one_late_turn_is_forgotten(void **unused)
{
    (void)unused;
    turns(3, 900);
    for (int i = 0; i < 5; i++) {
        turn(900, 900, 900, 9000);
        assert_int_equal(row[3], 1);
        turn(900, 900, 900, 900);
    }
    assert_int_equal(row[3], 0);
}

static void the_first_turns_judge_nobody(void **unused)
{
    (void)unused;
    assert_int_equal(lateness_limit(&lateness), CEILING);
    for (int i = 0; i < LATENESS_FIRST; i++) turn(900, 900, 900, 9000);
    assert_int_equal(row[3], 0);
    turn(900, 900, 900, 9000);
    assert_int_equal(row[3], 1);
}

static void noise_below_the_floor_is_nothing(void **unused)
{
    (void)unused;
    turns(20, 2);
    assert_int_equal(lateness_limit(&lateness), FLOOR);
    turn(2, 2, 2, FLOOR);
    assert_int_equal(row[3], 0);
    turn(2, 2, 2, FLOOR + 1);
    assert_int_equal(row[3], 1);
}

static void the_limit_has_a_ceiling(void **unused)
{
    (void)unused;
    turns(20, 9000);
    assert_int_equal(lateness_limit(&lateness), CEILING);
    turns(20, UINT32_MAX - 1);
    assert_int_equal(lateness_limit(&lateness), CEILING);
}

static void where_all_are_slow_nobody_is_late(void **unused)
{
    (void)unused;
    turns(16, 900);
    turns(2, 4000);
    assert_int_equal(row[0] + row[1] + row[2] + row[3], 0);
    turns(7, 4000); // More than half a ring: that is usual now
    assert_int_equal(lateness_limit(&lateness), CEILING);
}

static void half_of_the_members_may_be_late(void **unused)
{
    (void)unused;
    turns(3, 900);
    for (int i = 0; i < 30; i++) assert_int_equal(turn(900, 3700, 900, 3700), 900);
    assert_int_equal(row[1], LATENESS_ROW);
    assert_int_equal(row[3], LATENESS_ROW);
    assert_int_equal(lateness_limit(&lateness), 2700);
}

static void a_member_without_a_part_does_not_count(void **unused)
{
    (void)unused;
    for (int i = 0; i < 5; i++)
        assert_int_equal(turn(900, LATENESS_NO_PART, LATENESS_NO_PART, 3700), 900);
    assert_int_equal(row[3], LATENESS_ROW);
    assert_int_equal(turn(LATENESS_NO_PART, LATENESS_NO_PART, LATENESS_NO_PART, LATENESS_NO_PART),
                     0);
    assert_int_equal(row[3], LATENESS_ROW);
    assert_int_equal(lateness_limit(&lateness), 2700);
}

TESTS(TEST_WITH(a_member_is_said_that_is_late_twice, set_up, NULL),
      TEST_WITH(one_late_turn_is_forgotten, set_up, NULL),
      TEST_WITH(the_first_turns_judge_nobody, set_up, NULL),
      TEST_WITH(noise_below_the_floor_is_nothing, set_up, NULL),
      TEST_WITH(the_limit_has_a_ceiling, set_up, NULL),
      TEST_WITH(where_all_are_slow_nobody_is_late, set_up, NULL),
      TEST_WITH(half_of_the_members_may_be_late, set_up, NULL),
      TEST_WITH(a_member_without_a_part_does_not_count, set_up, NULL))
