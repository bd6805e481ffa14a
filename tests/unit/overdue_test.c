// overdue_test -- when it is said that no save becomes whole.

#include "actors/coordinator/overdue.h"
#include "tests/test.h"

enum { BEGIN_MS = 1000, LATE_MS = BEGIN_MS + OVERDUE_MS };

static uint64_t steps_of(const struct overdue_rules *rules, uint64_t checkpoint, uint64_t step,
                         uint64_t pass)
{
    struct overdue self = { 0 };
    struct wire_run now = { .checkpoint_step = checkpoint, .step = step, .pass_samples = pass };
    overdue_steps(&self, rules, &now, BEGIN_MS);
    return overdue_steps(&self, rules, &now, LATE_MS);
}

static void three_saves_may_be_on_their_way(void **state)
{
    (void)state;
    const struct overdue_rules rules = { .steps = 10 };
    assert_int_equal(steps_of(&rules, 100, 130, 0), 0);
    assert_int_equal(steps_of(&rules, 100, 131, 0), 31);
    assert_int_equal(steps_of(&rules, 130, 131, 0), 0);
}

// Where steps take a millisecond, three saves are due within a few.
static void a_new_save_is_no_old_one(void **state)
{
    (void)state;
    const struct overdue_rules rules = { .steps = 10 };
    struct overdue self = { 0 };
    struct wire_run now = { .checkpoint_step = 100, .step = 900 };
    assert_int_equal(overdue_steps(&self, &rules, &now, BEGIN_MS), 0);
    assert_int_equal(overdue_steps(&self, &rules, &now, LATE_MS - 1), 0);
    assert_int_equal(overdue_steps(&self, &rules, &now, LATE_MS), 800);
    now.checkpoint_step = 200;
    assert_int_equal(overdue_steps(&self, &rules, &now, LATE_MS + 1), 0);
    assert_int_equal(overdue_steps(&self, &rules, &now, LATE_MS + OVERDUE_MS), 0);
    assert_int_equal(overdue_steps(&self, &rules, &now, LATE_MS + 1 + OVERDUE_MS), 700);
}

static void a_run_begins_where_an_earlier_one_has_ended(void **state)
{
    (void)state;
    const struct overdue_rules rules = { .first_step = 5000, .steps = 10 };
    assert_int_equal(steps_of(&rules, 0, 5030, 0), 0);
    assert_int_equal(steps_of(&rules, 0, 5040, 0), 40);
}

static void a_pass_has_so_many_steps(void **state)
{
    (void)state;
    const struct overdue_rules rules = { .passes = 2, .batch = 16 };
    assert_int_equal(steps_of(&rules, 0, 1000, 0), 0); // How long a pass is, nobody knows yet
    assert_int_equal(steps_of(&rules, 0, 39, 100), 0); // 13 steps in two passes
    assert_int_equal(steps_of(&rules, 0, 40, 100), 40);
}

static void without_saves_none_is_due(void **state)
{
    (void)state;
    const struct overdue_rules rules = { .batch = 16 };
    assert_int_equal(steps_of(&rules, 0, 1000000, 10), 0);
}

TESTS(TEST(three_saves_may_be_on_their_way), TEST(a_new_save_is_no_old_one),
      TEST(a_run_begins_where_an_earlier_one_has_ended), TEST(a_pass_has_so_many_steps),
      TEST(without_saves_none_is_due))
