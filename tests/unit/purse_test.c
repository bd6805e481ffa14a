// purse_test -- what an asker may have, by a clock of our own.

#include "common/bulk/purse.h"
#include "tests/test.h"

enum { T = 5000, MIB = 1 << 20, ENOUGH = 1 << 30 };

// Takes `bytes` at a time as long as it may, and less than ENOUGH. Returns how many.
static uint64_t take_all(struct purse *self, const struct purse_source *from, uint64_t bytes,
                         uint64_t now_ms)
{
    uint64_t taken = 0;
    while (taken < ENOUGH && purse_is_open(self, from, now_ms)) {
        purse_take(self, bytes);
        taken += bytes;
    }
    return taken;
}

static void all_that_is_held_is_had_twice(void **state)
{
    (void)state;
    struct purse purse = { 0 };
    const struct purse_source from = { .held = 10 * MIB, .least = MIB };
    assert_int_equal(take_all(&purse, &from, MIB, T), 20 * MIB);
    assert_int_equal(take_all(&purse, &from, MIB, T), 0);
    // And once more each ten minutes, however often it asks
    uint64_t more = 0;
    for (uint64_t ms = 1; ms <= PURSE_MS; ms++) more += take_all(&purse, &from, 1000, T + ms);
    assert_in_range(more, 10 * MIB - 2000, 10 * MIB + 2000);
    // A long while brings no more than it had at first
    assert_int_equal(take_all(&purse, &from, MIB, T + 100 * (uint64_t)PURSE_MS), 20 * MIB);
}

static void little_is_refilled_too(void **state)
{
    (void)state;
    struct purse purse = { 0 };
    const struct purse_source from = { .held = 100, .least = 3000 };
    assert_int_equal(take_all(&purse, &from, 1, T), 6000); // As if `least` were held
    uint64_t more = 0;
    for (uint64_t ms = 1; ms <= PURSE_MS; ms++) more += take_all(&purse, &from, 1, T + ms);
    assert_int_equal(more, 3000);
}

static void what_is_new_is_had_once(void **state)
{
    (void)state;
    struct purse purse = { 0 };
    struct purse_source from = { .held = MIB, .least = MIB, .ever = 50 * MIB };
    assert_int_equal(take_all(&purse, &from, 1024, T), 2 * MIB);
    uint64_t more = 0;
    for (int i = 0; i < 100; i++) { // What is new takes the place of what was there
        from.ever += MIB;
        more += take_all(&purse, &from, 1024, T);
    }
    assert_int_equal(more, 100 * MIB);
    from.ever += 100 * MIB; // All at once: no more than the purse holds
    assert_int_equal(take_all(&purse, &from, 1024, T), 2 * MIB);
}

// An answer may be larger than what is left: it is paid back first.
static void a_debt_is_paid_back(void **state)
{
    (void)state;
    struct purse purse = { 0 };
    struct purse_source from = { .held = MIB, .least = MIB };
    assert_int_equal(take_all(&purse, &from, 3 * MIB, T), 3 * MIB);
    from.ever = MIB;
    assert_false(purse_is_open(&purse, &from, T));
    from.ever = MIB + 1;
    assert_true(purse_is_open(&purse, &from, T));
}

TESTS(TEST(all_that_is_held_is_had_twice), TEST(little_is_refilled_too),
      TEST(what_is_new_is_had_once), TEST(a_debt_is_paid_back))
