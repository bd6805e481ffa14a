// token_rate_test -- tokens and steps per second as the commits of the last minute give them.

#include "common/actor/token_rate.h"
#include "tests/test.h"
#include <stdbool.h>

enum { BEGIN_MS = 5000, TOKENS = 2048, STEPS = 3 };

// Commits every `every_ms` for `for_ms`, heard as often as a coordinator tells. Returns the last.
static uint64_t train(struct token_rate *self, uint64_t from_ms, uint64_t for_ms, uint64_t every_ms,
                      uint64_t *commits)
{
    uint64_t now_ms = from_ms;
    for (; now_ms + every_ms <= from_ms + for_ms; now_ms += every_ms) {
        ++*commits;
        token_rate_hear(self, now_ms + every_ms, *commits * TOKENS, *commits * STEPS);
    }
    return now_ms;
}

// Commits per second: both rates say the same.
static double rate(const struct token_rate *self, uint64_t now_ms)
{
    const struct token_pace pace = token_rate_pace(self, now_ms);
    const double off = pace.tokens_per_s / TOKENS - pace.steps_per_s / STEPS;
    assert_true(off > -1e-9 && off < 1e-9);
    return pace.steps_per_s / STEPS;
}

static bool is_near(double got, double wanted)
{
    return got > 0.95 * wanted && got < 1.05 * wanted;
}

// Rounds of 20 ms and of 45 s: within 5 % wherever in a round it is asked.
static void test_it_is_what_commits_give(void **state)
{
    (void)state;
    static const uint64_t rounds[] = { 20, 90, 300, 1700, 9000, 45000 };
    for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) {
        struct token_rate self = { 0 };
        uint64_t commits = 7;
        token_rate_hear(&self, BEGIN_MS, commits * TOKENS, commits * STEPS);
        assert_true(rate(&self, BEGIN_MS + 1) == 0);
        const uint64_t now_ms = train(&self, BEGIN_MS, 30 * rounds[i] + 70000, rounds[i], &commits);
        for (uint64_t part = 0; part < 10; part++)
            assert_true(
                is_near(rate(&self, now_ms + part * rounds[i] / 10), 1000.0 / (double)rounds[i]));
        assert_true(self.count <= TOKEN_RATE_MARKS_MAX);
    }
}

static void test_it_follows_within_a_minute(void **state)
{
    (void)state;
    struct token_rate self = { 0 };
    uint64_t commits = 0, now_ms;
    token_rate_hear(&self, BEGIN_MS, 0, 0);
    now_ms = train(&self, BEGIN_MS, 60000, 100, &commits);
    now_ms = train(&self, now_ms, 61000, 500, &commits);
    assert_true(is_near(rate(&self, now_ms), 2));
}

// It falls while no commit comes, and is gone after five seconds. How long that is, is said.
static void test_a_run_that_stands_has_no_rate(void **state)
{
    (void)state;
    struct token_rate self = { 0 };
    uint64_t commits = 0;
    token_rate_hear(&self, BEGIN_MS, 0, 0);
    const uint64_t now_ms = train(&self, BEGIN_MS, 20000, 500, &commits);
    assert_true(rate(&self, now_ms + 4000) < 0.9 * rate(&self, now_ms));
    assert_true(rate(&self, now_ms + 4000) > 0);
    assert_true(rate(&self, now_ms + 5001) == 0);
    assert_int_equal(token_rate_pace(&self, now_ms + 8600).silent_ms, 8600);
    // Rounds of ten seconds: the next one is not late yet
    self = (struct token_rate){ 0 };
    const uint64_t then_ms = train(&self, now_ms, 60000, 10000, &commits);
    assert_true(rate(&self, then_ms + 9000) > 0);
    assert_true(rate(&self, then_ms + 31000) == 0);
}

// The time left has such pauses ahead: ten seconds without a commit after every ten with.
static void test_a_pause_counts(void **state)
{
    (void)state;
    struct token_rate self = { 0 };
    uint64_t commits = 0, now_ms = BEGIN_MS;
    token_rate_hear(&self, BEGIN_MS, 0, 0);
    for (int epoch = 0; epoch < 6; epoch++)
        now_ms = train(&self, now_ms, 10000, 100, &commits) + 10000;
    assert_true(is_near(rate(&self, now_ms - 10000), 5));
}

// Half a second after a coordinator's restart it has heard of a window's ninety steps at once, and its
// trainers had been at them while it was dead.
static void test_a_beginning_in_the_middle(void **state)
{
    (void)state;
    struct token_rate self = { 0 };
    uint64_t commits = 90;
    token_rate_hear(&self, BEGIN_MS, 1000, 7);
    token_rate_hear(&self, BEGIN_MS + 500, commits * TOKENS, commits * STEPS);
    assert_true(rate(&self, BEGIN_MS + 600) == 0);
    uint64_t now_ms = train(&self, BEGIN_MS + 500, 2500, 50, &commits);
    assert_true(rate(&self, now_ms) == 0); // Too little time for a number
    now_ms = train(&self, now_ms, 1000, 50, &commits);
    assert_true(is_near(rate(&self, now_ms), 20));
}

static void test_a_restore_begins_again(void **state)
{
    (void)state;
    struct token_rate self = { 0 };
    uint64_t commits = 0;
    token_rate_hear(&self, BEGIN_MS, 0, 0);
    const uint64_t now_ms = train(&self, BEGIN_MS, 20000, 1000, &commits);
    commits = 3;
    token_rate_hear(&self, now_ms + 100, commits * TOKENS, commits * STEPS);
    assert_true(rate(&self, now_ms + 100) == 0);
    train(&self, now_ms + 100, 6000, 1000, &commits);
    assert_true(is_near(rate(&self, now_ms + 6100), 1));
}

TESTS(TEST(test_it_is_what_commits_give), TEST(test_it_follows_within_a_minute),
      TEST(test_a_run_that_stands_has_no_rate), TEST(test_a_pause_counts),
      TEST(test_a_beginning_in_the_middle), TEST(test_a_restore_begins_again))
