#pragma once
// run -- the durable state of a run, and the one function that changes it.
//
//     record ──▶ run_apply ──▶ the same state on every replay
//
// A coordinator decides by appending a record (RECORD_* of frames.def) to the ledger; applying the
// record changes the state. Recovery loads the newest snapshot and applies the records after it, so
// the state after a crash is always that of a prefix of the log. What a crash may lose (leases,
// deadlines, votes) is not here.
//
// The members of struct run are what all paces share. What one pace adds (common/pace; the open
// round, for example) lies in `pace_state`, which only that pace's functions read and change.
//
//   WaitingForMembers ─▶ Warmup ─▶ RoundTrain ⇄ RoundWitness ─▶ Cooldown ─▶ WaitingForMembers
//                                                                │  └─▶ Finished
//                                                                └────▶ Paused ─▶ WaitingForMembers
//
//   Warmup falls back to WaitingForMembers, both can be Paused, and under a pace without witnesses
//   RoundTrain leads to Cooldown.
//
// Pure: no I/O, no clock. The arrays lie inside, so a struct run is large (about 16 MiB, most of
// it never touched): allocate it zeroed (calloc), never on the stack. One thread.

#include "common/run/older.h"
#include "common/run/roster.h"
#include "common/run/table.h"

struct run;

// What a pace adds to the durable state. The functions are pure.
struct run_pace {
    size_t bytes; // Of its state, at most RUN_PACE_BYTES. It starts as zeroed memory

    // Gets every record before run_apply changes what all paces share. True: the record belongs to
    // this pace, which has itself changed what all paces share (see "for paces" below).
    bool (*apply)(struct run *run, uint16_t kind, const void *record);

    // Its part of a snapshot, built in `memory` (RUN_PART_BYTES bytes); the lists point into the
    // run.
    struct wire_part (*store)(const struct run *run, void *memory);

    // Loads such a part into zeroed state. False: the part belongs to another pace.
    bool (*load)(struct run *run, const struct wire_part *part);

    // Whether its state refers to this member, so that no newcomer may get its index. (optional: never)
    bool (*refers_to)(const struct run *run, uint32_t member);
};

// Memory for the lists of a struct wire_data_position.
struct run_lists {
    struct interval returned[TABLE_INTERVALS_MAX], failed[TABLE_INTERVALS_MAX];
};

// A state that the run can go back to: its step, digest and data position. `at` has no lists; run_point_whole puts
// them there. All zero: there is no such state.
struct run_point {
    struct wire_record_restore at;
    struct run_lists lists;
};

enum { RUN_PACE_BYTES = 8 << 20, RUN_PART_BYTES = 1024 };

struct run {
    WIRE_durable(WIRE_MEMBER) // Must be first: declared with the ledger's frames, and stored as is

        struct hash chain; // The ledger's, up to log_seq; the caller of run_apply updates it
    uint32_t snapshot_rounds;
    struct roster roster;

    struct table table; // Which samples are todo, pending, failed or done
    struct wire_table_entry table_memory[2 * TABLE_INTERVALS_MAX];
    struct interval scratch[TABLE_INTERVALS_MAX];

    // The state that a restore goes back to: the newest step with a recorded checkpoint and data position. If its digest
    // is none, there is no such step yet.
    struct run_point restore_point;
    // The saves in pieces on record before it, the newest first. A restore goes back to one of them if the owner says so,
    // or if nobody can read the newest save. A digest of none ends the list.
    struct run_point older[OLDER_SAVES_MAX];
    // The same for the newest end of an epoch: its checkpoint may be recorded when the run has already gone on. If the
    // digest is none, no epoch has ended yet, or a restore has given that end up.
    struct run_point end_point;
    // The same for the newest step that the members save; step 0: none. Its digest is not known before the save is
    // whole, and is none here.
    struct run_point save_point;

    // The state that the run began with: no sample is done, and it has no lists. Its digest is none until it is on
    // record.
    struct wire_record_restore first_point;

    const struct run_pace *pace;
    _Alignas(16) uint8_t pace_state[RUN_PACE_BYTES];
};

// Call it once, on zeroed memory that never moves, because the table points into it.
// `snapshot_rounds`: the parameters are pinned every so many steps, for peers that fetch them.
void run_init(struct run *self, const struct run_pace *pace, uint32_t snapshot_rounds);

// Applies a record, one of RECORD_*. It must fit the state: records come from the coordinator's own
// decisions or from a verified ledger, so one that does not fit is a bug (ensure).
void run_apply(struct run *self, uint16_t kind, const void *record);

// The ledger's chain (common/ledger/record.h) after record `seq`, whose packed body this is.
struct hash run_chain(const struct hash *previous, uint64_t seq, uint16_t kind, const uint8_t *body,
                      size_t bytes);

// The whole state as a SNAPSHOT body. Its lists point into *self, the part of the pace into
// `memory` (RUN_PART_BYTES bytes).
struct wire_snapshot run_to_snapshot(const struct run *self, void *memory);

// Loads a snapshot into a state that run_init has just prepared. False: it belongs to another pace,
// and the state must not be used.
bool run_from_snapshot(struct run *self, const struct wire_snapshot *snapshot);

// The state that a restore goes back to. Its lists point into *self. Its digest is none if no
// restore is possible yet.
struct wire_record_restore run_restore_point(const struct run *self);

// The same for the save of this step: the newest one or an older one. NULL: there is none on record.
const struct run_point *run_point_at(const struct run *self, uint64_t step);

// The older ones, as members are told of them.
struct wire_older_saves run_older_saves(const struct run *self);

// Whether there is a checkpoint that a restore can go back to.
bool run_has_checkpoint(const struct run *self);

// The index for a newcomer: the next one; in a full run that of a member that left; NO_MEMBER if
// there is none.
uint32_t run_free_place(const struct run *self);

// For a pace: the members save the present step.
void run_note_save(struct run *self);

// For a pace that keeps points of its own. _take: the present step, with this digest or none. _whole: with its lists,
// which point into *self. _load: copies one from a snapshot.
void run_point_take(const struct run *run, const struct hash *digest, struct run_point *ret);
struct wire_record_restore run_point_whole(const struct run_point *self);
void run_point_load(struct run_point *self, const struct wire_record_restore *from);

// True if the newest end of an epoch has this step and this digest.
bool run_is_end(const struct run *self, uint64_t step, const struct hash *digest);

// The data position of the run, its lists in `lists`. Pending samples count as todo.
struct wire_data_position run_data_position(const struct run *self, struct run_lists *lists);

// Whether the digest of the present step is on record.
bool run_has_digest(const struct run *self);

// The newest restore gave up the parameters of this step, reached in this epoch. The run may have reached
// the same step again since.
bool run_gave_up(const struct run *self, uint64_t step, uint64_t epoch);

const char *run_phase_name(uint8_t phase);

// ---- for paces: how a record of theirs changes what all paces share -----------------------------

// The only writer of `phase`. A transition that `becomes` (run.c) does not list is a bug (ensure).
void run_enter(struct run *self, uint8_t phase);

// Records the digest of the parameters after `step` steps, the present step or an earlier one.
// Every snapshot_rounds steps it is pinned as well.
void run_know_digest(struct run *self, uint64_t step, const struct hash *digest);

// Counts `steps` more committed steps, which trained `samples` samples.
void run_advance(struct run *self, uint64_t steps, uint64_t samples);
