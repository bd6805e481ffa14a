#pragma once
// run -- the durable state of a run, and the one function that changes it.
//
//     record ──▶ run_apply ──▶ the same state on every replay
//
// A coordinator decides by appending a record (RECORD_* of frames.def) to the ledger; what the
// record says is then true. Recovery loads the newest snapshot and applies the records after it, so
// the state after a crash is that of a prefix of the log, and never anything else. What may be
// forgotten (leases, deadlines, votes) is not here.
//
// Here is what all paces share. What one pace adds (common/pace: the open round, say) lies in
// `pace_state`, which only that pace's functions read and change.
//
//   WaitingForMembers ─▶ Warmup ─▶ RoundTrain ⇄ RoundWitness ─▶ Cooldown ─▶ WaitingForMembers
//        ▲   ▲             │                                      │  └───▶ Finished
//        │   └─────────────┘                                      └──────▶ Paused ─▶ WaitingForMembers
//
// Pure: no I/O, no clock. The arrays lie inside, so a struct run is large (about 16 MiB, most of
// it never touched): take it zeroed from the system, never from the stack. One thread.

#include "common/run/roster.h"
#include "common/run/table.h"

struct run;

// What a pace adds to the durable state. The functions are pure.
struct run_pace {
    size_t bytes; // Of its state, at most RUN_PACE_BYTES. Zeroed memory is its start

    // Takes every record, before what all paces share is changed by it. True: a record of its own,
    // whose effect on that is up to it (see "for paces" below).
    bool (*apply)(struct run *run, uint16_t kind, const void *record);

    // What a snapshot has of it, made in `memory` (RUN_PART_BYTES), its lists borrowed from the run;
    // and back into zeroed memory. False: the snapshot is of another pace.
    struct wire_part (*store)(const struct run *run, void *memory);
    bool (*load)(struct run *run, const struct wire_part *part);

    // Whether its state speaks of this member, so that nobody else may get its place.
    bool (*needs_place)(const struct run *run, uint32_t member);
};

// Memory for the lists of a struct wire_undone.
struct run_lists {
    struct interval returned[TABLE_INTERVALS_MAX], failed[TABLE_INTERVALS_MAX];
};

enum { RUN_PACE_BYTES = 8 << 20, RUN_PART_BYTES = 1024 };

struct run {
    WIRE_durable(WIRE_MEMBER) // First: declared with the ledger's frames, and stored as it stands

        struct hash chain; // The ledger's, up to log_seq: kept by the caller of run_apply
    uint32_t snapshot_rounds;
    struct roster roster; // All members

    // What is todo, pending, failed and done.
    struct table table;
    struct wire_table_entry table_memory[2 * TABLE_INTERVALS_MAX];
    struct interval scratch[TABLE_INTERVALS_MAX];

    // The newest step that a checkpoint and its data position are on record for: where a restore
    // goes back to. No digest: nowhere yet. Its lists lie below.
    struct wire_record_restore way_back;
    struct run_lists way_back_lists;

    const struct run_pace *pace;
    _Alignas(16) uint8_t pace_state[RUN_PACE_BYTES];
};

// To be called once, on zeroed memory that stays where it is (the table borrows the struct's own).
// `snapshot_rounds`: every how many steps the parameters are pinned for peers that fetch them.
void run_init(struct run *self, const struct run_pace *pace, uint32_t snapshot_rounds);

// Makes a record true. The record is one of RECORD_* and fits the state: records come from the
// coordinator's own decisions or from a verified ledger, so one that does not fit is a bug
// (ensure).
void run_apply(struct run *self, uint16_t kind, const void *record);

// The ledger's chain (common/ledger/record.h) after record `seq`, whose packed body this is.
struct hash run_chain(const struct hash *previous, uint64_t seq, uint16_t kind, const uint8_t *body,
                      size_t bytes);

// The whole state as a SNAPSHOT body whose lists point into *self, its part into `memory`
// (RUN_PART_BYTES), and back into a state that run_init has just made. False: of another pace.
struct wire_snapshot run_to_snapshot(const struct run *self, void *memory);
bool run_from_snapshot(struct run *self, const struct wire_snapshot *snapshot);

// The way back with its list in place, borrowed likewise. Its digest is none if there is none.
struct wire_record_restore run_way_back(const struct run *self);

// Where a newcomer would be put: the next place, or that of a member that left, or NO_MEMBER if
// full.
uint32_t run_free_place(const struct run *self);

// Where the run stands in its data, with the lists in `lists`. What is pending counts as not dealt.
struct wire_undone run_undone(const struct run *self, struct run_lists *lists);

// The digest of the present step is on record.
bool run_is_pinned(const struct run *self);

const char *run_phase_name(uint8_t phase);

// ---- for paces: what a record of their own changes of what all share ----------------------------

// The only writer of `phase`. A transition that is not in the picture above is a bug (ensure).
void run_enter(struct run *self, uint8_t phase);

// The digest of the parameters after `step` steps, the present or an earlier one, is known. Every
// snapshot_rounds steps it is also pinned.
void run_know_digest(struct run *self, uint64_t step, const struct hash *digest);

// So many more steps are committed, which trained so many samples.
void run_advance(struct run *self, uint64_t steps, uint64_t samples);
