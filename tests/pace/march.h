#pragma once
// march -- the smallest pace that does what rounds do not: an example for the author of the next one.
//
//     RECORD_MARCH: steps 40 to 48, their samples ─▶ MARCH ─▶ every trainer takes 40, 41, 42 ... at once
//          RECORD_MARCHED: 40 to 43 are committed  ◀── PING "I hold 43" of the slowest ◀──┘
//          RECORD_MARCHED: 43 to 48                ◀── PING "I hold 48"
//     the next RECORD_MARCH, or the epoch is over
//
// For members who trust one another. Nobody votes and nobody waits for a commit: a trainer is ahead of it by as
// much as its march has steps left. A step is committed when every trainer that counts says in its PING that it
// holds it. Each computes the whole batch, so all hold equal bits.
//
// A march is never given up: whatever dies, the steps that are left are taken later, by whoever is here then.
// So who is ahead is never wrong, only early; and a trainer that joins in the middle is let in at once. It gets
// the pinned step from a peer, takes what is committed since then, and marches.
//
//   march.def        frames, records, parts of CONFIG and SNAPSHOT; the line that registers it includes this
//   march.c          the coordinator's half, its durable half, its evidence
//   march_member.c   the member's half
//   march_sim.c      what the simulator must know: what a step computes, what must hold
//
//   several steps a record          RECORD_MARCHED; pace.commits
//   members ahead of the commit     pace.ahead
//   admitted in mid-phase           pace.admits
//   durable, changed by records     struct march_run
//   live, from what members repeat  struct march_live
//
// It needs no mail of its members but PINGs, keeps no claims, and only the end of an epoch is pinned: so it
// leaves out hear, resume, lacks, facts, refers_to and position. Every trainer holds the whole vector (no held_by),
// and nothing ripens by the clock alone (no due_ms).

#define WIRE_MORE "tests/pace/march.def"
#include "common/wire/wire_more.h"

#include "common/run/run.h"

// Survives: the newest march, what it deals, and where lineages part.
struct march_run {
    struct wire_march march; // Its list lies below
    struct interval samples[TABLE_INTERVALS_MAX];
    uint64_t since;               // The epoch in which the present step was reached
    uint64_t restore_point_since; // The same of the step that a restore goes back to
};

// May be forgotten: a restart empties it, and the next PINGs fill it again.
struct march_live {
    bool in_step
        [MEMBERS_MAX]; // Joined during this march, and has held a newest committed step since
};

// The samples of steps [from, to) of a march. Returns how many intervals.
static inline uint32_t march_samples(const struct wire_march *march, uint64_t from, uint64_t to,
                                     struct interval *ret_list)
{
    return (uint32_t)interval_list_slice(march->samples, march->samples_count,
                                         (from - march->step) * march->batch,
                                         (to - march->step) * march->batch, NULL, ret_list);
}

static inline bool march_has(const struct wire_march *march, uint64_t step)
{
    return step >= march->step && step < march->step + march->steps;
}
