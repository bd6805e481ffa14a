#pragma once
// token_rate -- tokens and steps per second, measured from commits: how far a run has come in the last
// minute. What trainers report of their own speed is more, since a trainer counts only the time in
// which it computes.
//
//     token_rate_hear (&rate, now_ms, run->tokens_done, run->step);      // often, at each commit at least
//     const struct token_pace pace = token_rate_pace (&rate, now_ms);
//
//     commits    |   |   |   |   |       |   |        the rate is tokens over time from a minute ago to
//     time     ──┴───┴───┴───┴───┴───────┴───┴──▶     the newest commit, so that it does not jump
//                  ◀──── a minute ────▶     now       with the place of `now` within a round
//
// Pauses between epochs are part of the time: what is left takes such pauses too. Nothing is known for
// the first three seconds. Who begins in the middle of a run counts from its first commit on, since what
// that has was partly made before. Once a round takes longer than the rounds before, the rate falls; it
// is 0 after five seconds without a commit, or after three rounds if those take longer. A value: pure,
// owns nothing.

#include <stdint.h>

enum {
    TOKEN_RATE_MS = 60000,
    TOKEN_RATE_LEAST_MS = 3000,  // Nothing is known before
    TOKEN_RATE_SILENT_MS = 5000, // After so long without a commit no step is made
    TOKEN_RATE_MARKS_MAX = 72
};

struct token_rate { // Zeroed: nothing is known
    struct {
        uint64_t at_ms, tokens, steps, commits;
    } marks[TOKEN_RATE_MARKS_MAX]; // Rising in all four
    uint32_t count;
};

struct token_pace {
    double tokens_per_s, steps_per_s; // 0: not known, or no step is made now
    uint64_t silent_ms;               // Since the newest commit, or since the beginning
};

// The first call begins the measurement. Fewer tokens than before begin it again: a restore.
void token_rate_hear(struct token_rate *self, uint64_t now_ms, uint64_t tokens_done,
                     uint64_t steps);

struct token_pace token_rate_pace(const struct token_rate *self, uint64_t now_ms);
