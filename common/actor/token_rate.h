#pragma once
// token_rate -- tokens per second, measured from commits: how fast a run's `tokens_done` has grown
// over the last ten seconds. What trainers report of their own speed is more, since a trainer
// counts only the time in which it computes.
//
//     token_rate_hear (&rate, now_ms, run->tokens_done);       // often, at each commit at least
//     run->tokens_per_s = token_rate_per_s (&rate, now_ms);
//
//     commits    |   |   |   |   |   |   |   |        the rate is tokens over time from ten seconds ago
//     time     ──┴───┴───┴───┴───┴───┴───┴───┴──▶     to the newest commit, so that it does not jump
//                  ◀──── ten seconds ────────▶ now    with the place of `now` within a round
//
// Once a round takes longer than the rounds before, the rate falls; it is 0 after ten seconds
// without a commit, or after three rounds if those take longer. A value: pure, owns nothing.

#include <stdint.h>

enum { TOKEN_RATE_MS = 10000, TOKEN_RATE_MARKS_MAX = 64 };

struct token_rate { // Zeroed: nothing is known
    struct {
        uint64_t at_ms, tokens, commits;
    } marks[TOKEN_RATE_MARKS_MAX]; // Rising in all three
    uint32_t count;
};

// The first call begins the measurement. Fewer tokens than before begin it again: a restore.
void token_rate_hear(struct token_rate *self, uint64_t now_ms, uint64_t tokens_done);

// 0 until the first commit after the beginning.
double token_rate_per_s(const struct token_rate *self, uint64_t now_ms);
