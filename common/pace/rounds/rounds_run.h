#pragma once
// rounds_run -- the durable half of rounds: the newest round and where each member's next result starts.
//
//     RECORD_ROUND ─▶ its samples are pending ─▶ RECORD_FINDING ... ─▶ RECORD_COMMIT ─▶ done, or todo again
//
// It lies in struct run (pace_state), changed by records alone. A struct rounds_run is a value of about 6
// MiB, most of it never touched. Pure. One thread.

#include "common/pace/rounds/round.h"
#include "common/pace/rounds/rounds_config.h"
#include "common/run/run.h"

struct rounds_run {
    struct round round; // The newest, and the newest commit

    // That the newest accepted result of each member led to: its next one starts there, or at zero.
    struct wire_residual residuals[MEMBERS_MAX];
    struct wire_residual way_back[MEMBERS_MAX]; // As of the run's way back
    struct wire_debt debts[MEMBERS_MAX];        // What the findings have left
};

// The functions of struct run_pace.
bool rounds_run_apply(struct run *run, uint16_t kind, const void *record);
struct wire_part rounds_run_store(const struct run *run, void *memory);
bool rounds_run_load(struct run *run, const struct wire_part *part);
bool rounds_run_needs_place(const struct run *run, uint32_t member);

// Of a run whose pace is rounds.
static inline const struct rounds_run *rounds_run_of(const struct run *run)
{
    return (const struct rounds_run *)(const void *)run->pace_state;
}
static inline const struct round *round_of(const struct run *run)
{
    return &rounds_run_of(run)->round;
}
