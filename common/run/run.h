#pragma once
// run -- the durable state of a run, and the one function that changes it.
//
//     record ──▶ run_apply ──▶ the same state on every replay
//
// A coordinator decides by appending a record (RECORD_* of frames.def) to the ledger; what the
// record says is then true. Recovery loads the newest snapshot and applies the records after it, so
// the state after a crash is that of a prefix of the log, and never anything else. What may be
// forgotten (leases, deadlines, votes of the open round) is not here.
//
//   WaitingForMembers ─▶ Warmup ─▶ RoundTrain ⇄ RoundWitness ─▶ Cooldown ─▶ WaitingForMembers
//        ▲   ▲             │                                      │  └───▶ Finished
//        │   └─────────────┘                                      └──────▶ Paused ─▶ WaitingForMembers
//
// Pure: no I/O, no clock. The arrays lie inside, so a struct run is large (about 16 MiB, most of
// it never touched): take it zeroed from the system, never from the stack. One thread.

#include "common/pace/rounds/round.h"
#include "common/run/table.h"

struct run {
    char run_id[WIRE_RUN_MAX + 1];
    struct hash config;            // Digest of the configuration that the run was begun with
    uint64_t run_seed;             // All draws of all rounds follow from it and from the commits
    uint64_t incarnation, log_seq; // Of the newest start, and of the newest record
    uint64_t born_unix_ms;         // Of the first start
    struct hash chain;             // The ledger's, up to log_seq: kept by the caller of run_apply

    uint8_t phase; // enum phase
    uint64_t epoch, epoch_start_step, epoch_start_round;
    uint64_t epoch_elapsed_ms;   // As of the newest round: instants do not survive a reboot
    uint64_t step, samples_done; // Commits so far, and the samples they trained
    bool cold_start, pausing;
    uint8_t source; // enum source: where a joiner gets the model

    struct round round;   // The newest, and the newest commit
    struct roster roster; // All members

    uint64_t digest_step, pin_step; // Whose parameters are `digest` and `pin_digest`, if not none
    struct hash digest, pin_digest;
    struct wire_checkpoint checkpoint; // The newest registered; step 0 and no digest: none yet
    uint32_t snapshot_rounds;
    // The newest step that a checkpoint and its data position are on record for: where a restore
    // goes back to. No digest: nowhere yet. Its list lies below.
    struct wire_record_restore way_back;
    struct interval way_back_returned[TABLE_INTERVALS_MAX];
    uint64_t restored_step, restored_epoch; // Of the newest restore; 0: there was none
    struct wire_residual
        way_back_residuals[MEMBERS_MAX]; // A member that stands at that step has not loaded

    uint64_t pass_samples;   // Samples of one pass, 0 until a data source was seen
    struct hash data, order; // Its manifest, and what positions mean (dataset.h)
    struct table table;      // What is todo, pending and done
    struct table_entry table_memory[2 * TABLE_INTERVALS_MAX];
    struct interval scratch[TABLE_INTERVALS_MAX];

    // That the newest accepted result of each member led to: its next one starts there, or at zero.
    struct wire_residual residuals[MEMBERS_MAX];
};

// To be called once, on zeroed memory that stays where it is (the table borrows the struct's own).
// `snapshot_rounds`: every how many steps the parameters are pinned for peers that fetch them.
void run_init(struct run *self, uint32_t snapshot_rounds);

// Makes a record true. The record is one of RECORD_* and fits the state: records come from the
// coordinator's own decisions or from a verified ledger, so one that does not fit is a bug
// (ensure).
void run_apply(struct run *self, uint16_t kind, const void *record);

// The ledger's chain (common/ledger/record.h) after record `seq`, whose packed body this is.
struct hash run_chain(const struct hash *previous, uint64_t seq, uint16_t kind, const uint8_t *body,
                      size_t bytes);

// The whole state as a SNAPSHOT body whose lists point into *self or into `returned` (room for
// TABLE_INTERVALS_MAX), and back into a state that run_init has just made.
struct wire_snapshot run_to_snapshot(struct run *self, struct interval *returned);
void run_from_snapshot(struct run *self, const struct wire_snapshot *snapshot);

// The way back with its list in place, borrowed likewise. Its digest is none if there is none.
struct wire_record_restore run_way_back(const struct run *self);

// Where a newcomer would be put: the next place, or that of a member that left, or NO_MEMBER if
// full.
uint32_t run_free_place(const struct run *self);

// The samples returned and not dealt again, written to `ret_list` (room for TABLE_INTERVALS_MAX).
uint32_t run_returned(struct run *self, struct interval *ret_list);

// The digest of the present step is on record.
bool run_is_pinned(const struct run *self);

const char *run_phase_name(uint8_t phase);
