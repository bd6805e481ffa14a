#pragma once
// cost_run -- one run of real processes, measured: the demo's model, text and settings with four
// trainers, from its first commits on. A run that does not commit all that was dealt, or whose
// transport is not what was asked for, fails.

#include "tests/bench/crypto_counts.h"
#include "tests/live/testbed.h"

struct cost_kind {
    const char *name;
    unsigned percent; // The share of trainers that audit instead of training
    bool plain;       // By the programs of build/bench/plain
    bool large;       // 4 samples a round; half of all coefficients, as float32
    unsigned beside;  // Line of the table that it is compared with
    bool counted;     // Has a table of what is signed, verified, hashed and boxed
};

struct cost_usage {
    double cpu_s;
    struct crypto_counts crypto;
}; // From the first to the last

struct cost_run {
    double speed, round_ms;  // Committed tokens a second; mean time of a round
    unsigned rounds, actors; // Rounds: at least as many as were asked for
    struct {
        char name[24];
        struct cost_usage use;
    } of[TESTBED_ACTORS_MAX];
};

enum { COST_TRAINERS = 4 };

// Over `rounds` commits. Unless `counts`, all of `crypto` is zero.
void cost_run_measure(const struct cost_kind *kind, unsigned rounds, bool counts,
                      struct cost_run *ret_run);
