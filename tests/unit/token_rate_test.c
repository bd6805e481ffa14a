// token_rate_test -- tokens per second as the commits of the last ten seconds give them.

#include "common/actor/token_rate.h"
#include "tests/test.h"
#include <stdbool.h>

enum { BEGIN_MS = 5000, TOKENS = 2048 };

// Commits every `every_ms` for `for_ms`, heard as often as a coordinator tells. Returns the last.
static uint64_t train(struct token_rate *self, uint64_t from_ms, uint64_t for_ms, uint64_t every_ms,
                      uint64_t *tokens)
{
    uint64_t now_ms = from_ms;
    for (; now_ms + every_ms <= from_ms + for_ms; now_ms += every_ms)
        token_rate_hear(self, now_ms + every_ms, *tokens += TOKENS);
    return now_ms;
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
        uint64_t tokens = 7 * TOKENS;
        token_rate_hear(&self, BEGIN_MS, tokens);
        assert_true(token_rate_per_s(&self, BEGIN_MS + 1) == 0);
        const uint64_t now_ms = train(&self, BEGIN_MS, 30 * rounds[i] + 20000, rounds[i], &tokens);
        for (uint64_t part = 0; part < 10; part++)
            assert_true(is_near(token_rate_per_s(&self, now_ms + part * rounds[i] / 10),
                                TOKENS * 1000.0 / (double)rounds[i]));
        assert_true(self.count <= TOKEN_RATE_MARKS_MAX);
    }
}

static void test_it_follows_within_ten_seconds(void **state)
{
    (void)state;
    struct token_rate self = { 0 };
    uint64_t tokens = 0, now_ms;
    token_rate_hear(&self, BEGIN_MS, 0);
    now_ms = train(&self, BEGIN_MS, 60000, 100, &tokens);
    now_ms = train(&self, now_ms, 10500, 500, &tokens);
    assert_true(is_near(token_rate_per_s(&self, now_ms), TOKENS * 2));
    const double before = token_rate_per_s(&self, now_ms);
    assert_true(token_rate_per_s(&self, now_ms + 3000) < 0.9 * before);
    assert_true(token_rate_per_s(&self, now_ms + 3000) > 0);
    assert_true(token_rate_per_s(&self, now_ms + 10001) == 0);
}

// A pause between two epochs is part of the time, as long as it lies within the ten seconds.
static void test_a_pause_counts_for_ten_seconds(void **state)
{
    (void)state;
    struct token_rate self = { 0 };
    uint64_t tokens = 0, now_ms;
    token_rate_hear(&self, BEGIN_MS, 0);
    now_ms = train(&self, BEGIN_MS, 20000, 100, &tokens) + 4000;
    for (int i = 1; i <= 150; i++) {
        const double seconds = i / 10.0, busy = seconds <= 6 ? 6 : seconds >= 10 ? 10 : seconds;
        now_ms = train(&self, now_ms, 100, 100, &tokens);
        if (i > 1) assert_true(is_near(token_rate_per_s(&self, now_ms), TOKENS * busy));
    }
}

static void test_a_restore_begins_again(void **state)
{
    (void)state;
    struct token_rate self = { 0 };
    uint64_t tokens = 0;
    token_rate_hear(&self, BEGIN_MS, 0);
    const uint64_t now_ms = train(&self, BEGIN_MS, 20000, 1000, &tokens);
    tokens = 3 * TOKENS;
    token_rate_hear(&self, now_ms + 100, tokens);
    assert_true(token_rate_per_s(&self, now_ms + 100) == 0);
    train(&self, now_ms + 100, 6000, 1000, &tokens);
    assert_true(is_near(token_rate_per_s(&self, now_ms + 6100), TOKENS));
}

TESTS(TEST(test_it_is_what_commits_give), TEST(test_it_follows_within_ten_seconds),
      TEST(test_a_pause_counts_for_ten_seconds), TEST(test_a_restore_begins_again))
