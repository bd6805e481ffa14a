#pragma once
// rounds_run -- the durable state of rounds: the newest round, and the residual that each member's
// next result must start from.
//
//     RECORD_ROUND ─▶ samples pending ─▶ RECORD_FINDING ... ─▶ RECORD_COMMIT ─▶ done, or todo again
//
// It lies in struct run (pace_state); only records change it. A struct rounds_run is a value of
// about 6 MiB, most of it never touched. Pure. One thread.

#include "common/pace/rounds/round.h"
#include "common/pace/rounds/rounds_config.h"
#include "common/run/run.h"

struct rounds_run {
    struct round round; // The newest round and the newest commit

    // By index in the roster: the residual after the newest accepted result of the member. Its next
    // result starts there, or from zero.
    struct wire_residual residuals[MEMBERS_MAX];
    struct wire_residual
        restore_point[MEMBERS_MAX],      // The same at the step that a restore goes back to
        end_point[MEMBERS_MAX];          // And at the newest end of an epoch
    struct wire_debt debts[MEMBERS_MAX]; // What the findings have left
};

// The functions of struct run_pace (run.h).
bool rounds_run_apply(struct run *run, uint16_t kind, const void *record);
struct wire_part rounds_run_store(const struct run *run, void *memory);
bool rounds_run_load(struct run *run, const struct wire_part *part);
bool rounds_run_refers_to(const struct run *run, uint32_t member);

// The state of a run whose pace is rounds.
static inline const struct rounds_run *rounds_run_of(const struct run *run)
{
    return (const struct rounds_run *)(const void *)run->pace_state;
}
static inline const struct round *round_of(const struct run *run)
{
    return &rounds_run_of(run)->round;
}

// Whether the member's process began before the newest round. A later one does not train in it, and does not vote if
// an earlier one has.
static inline bool round_is_for(const struct run *run, uint32_t member)
{
    return run->roster.members[member].joined_number < run->number;
}
