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
// Pure: no I/O, no clock. The arrays lie inside, so a struct run is large (about 8 MiB, most of
// it never touched): take it zeroed from the system, never from the stack. One thread.

#include "common/run/limits.h"
#include "common/run/table.h"
#include "common/wire/audits.h"

#define NO_MEMBER UINT32_MAX
// mutant: audit: a member that went long ago counts for ever
enum {
    TABLE_INTERVALS_MAX = 65536,
    RUN_DROPPED_ROUNDS = 64
}; // So long whoever was dropped may be cut off, and come back

struct run {
    char run_id[WIRE_RUN_MAX + 1];
    struct hash config;            // Digest of the configuration that the run was begun with
    uint64_t run_seed;             // All draws of all rounds follow from it and from the commits
    uint64_t incarnation, log_seq; // Of the newest start, and of the newest record
    uint64_t born_unix_ms;         // Of the first start
    struct hash chain;             // The ledger's, up to log_seq: kept by who applies

    uint8_t phase; // enum phase
    uint64_t epoch, epoch_start_step, epoch_start_round;
    uint64_t epoch_elapsed_ms;   // As of the newest round: instants do not survive a reboot
    uint64_t step, samples_done; // Commits so far, and the samples they trained
    bool cold_start, pausing;
    uint8_t source; // enum source: where a joiner gets the model

    bool round_open;
    struct wire_round round; // The newest; its lists are NULL, see run_round
    struct interval dealt[TABLE_INTERVALS_MAX], round_returned[TABLE_INTERVALS_MAX];
    uint32_t round_returned_count;
    struct wire_client clients[MEMBERS_MAX], witnesses[WITNESSES_MAX];
    uint32_t dealt_count, clients_count, witnesses_count;
    struct wire_audit audits[AUDITS_MAX]; // Of the newest round, and what came of them
    struct interval audited[AUDITED_MAX];
    struct wire_found findings[AUDITS_MAX];
    uint32_t audits_count, audited_count;
    struct hash audit_key; // That the newest commit revealed

    uint64_t digest_step, pin_step; // Whose parameters are `digest` and `pin_digest`, if not none
    struct hash digest, pin_digest;
    struct wire_checkpoint checkpoint; // The newest registered; step 0 and no digest: none yet
    uint32_t snapshot_rounds;
    // The newest step that a checkpoint and its data position are on record for: where a restore
    // goes back to. No digest: nowhere yet. Its list lies below.
    struct wire_record_restore way_back;
    struct interval way_back_returned[TABLE_INTERVALS_MAX];
    uint64_t restored_step, restored_epoch; // Of the newest restore; 0: there was none
    struct wire_residual way_back_residuals[MEMBERS_MAX]; // Who stands at that step has not loaded
    struct hash last_commit; // Hash of the newest COMMIT's body: the chain clients follow
    struct wire_commit last; // Its figures, lists NULL

    uint64_t pass_samples;   // Samples of one pass, 0 until a data source was seen
    struct hash data, order; // Its manifest, and what positions mean (dataset.h)
    struct table table;      // What is todo, pending and done
    struct table_entry table_memory[2 * TABLE_INTERVALS_MAX];
    struct interval scratch[TABLE_INTERVALS_MAX];

    uint64_t roster_version; // Rises with every change below
    uint32_t members_count;
    struct wire_member members[MEMBERS_MAX]; // Place = index for the life of the run
    uint32_t by_key[MEMBERS_MAX];            // Places in order of identity
    // That the newest accepted result of each member led to: its next one starts there, or at zero.
    struct wire_residual residuals[MEMBERS_MAX];
    uint32_t counts[ACTOR_COUNT][MEMBER_COUNT]; // By role and state
};

// To be called once, on zeroed memory that stays where it is (the table borrows the struct's own).
// `snapshot_rounds`: every how many steps the parameters are pinned for those who fetch them.
void run_init(struct run *self, uint32_t snapshot_rounds);

// Makes a record true. The record is one of RECORD_* and fits the state: records come from the
// coordinator's own decisions or from a verified ledger, so one that does not fit is a bug
// (ensure).
void run_apply(struct run *self, uint16_t kind, const void *record);

// Parts of it, for who holds the records against each other (evidence.h): all trainers of one state
// change to another; a round, whose audits are sound, is the newest.
void run_move_trainers(struct run *self, uint8_t from, uint8_t to);
// Before it: whose result was not shown to its auditor, and has no judges in this round, owes an audit.
void run_leave_cases(struct run *self, const struct wire_round *round);
void run_keep_round(struct run *self, const struct wire_round *round);

// The ledger's chain (common/ledger/record.h) after record `seq`, whose packed body this is.
struct hash run_chain(const struct hash *previous, uint64_t seq, uint16_t kind, const uint8_t *body,
                      size_t bytes);

// The whole state as a SNAPSHOT body whose lists point into *self or into `returned` (room for
// TABLE_INTERVALS_MAX), and back into a state that run_init has just made.
struct wire_snapshot run_to_snapshot(struct run *self, struct interval *returned);
void run_from_snapshot(struct run *self, const struct wire_snapshot *snapshot);

// The newest round with its lists in place, borrowed until the state changes.
struct wire_round run_round(const struct run *self);

// The way back with its list in place, borrowed likewise. Its digest is none if there is none.
struct wire_record_restore run_way_back(const struct run *self);

// Index of the member with this key, or NO_MEMBER. O(log members).
uint32_t run_find(const struct run *self, const struct key *key);

// Where a newcomer would be put: the next place, or that of somebody who left, or NO_MEMBER if
// full.
uint32_t run_free_place(const struct run *self);

// How many members of this role are in this state.
uint32_t run_count(const struct run *self, uint8_t role, uint8_t state);

// The trainers of whom a third may lie: those who take part or wait, and those who were dropped within
// RUN_DROPPED_ROUNDS. Were they left out at once, whoever cuts most of the others off would be the
// majority; were they never, in a run of strangers no verdict could be reached any more. O(members).
uint32_t run_trainers(const struct run *self);

// The samples at positions [begin, end) of the newest round's list, written to `ret_list` (room for
// as many as the round dealt). Returns how many intervals.
uint32_t run_samples_at(const struct run *self, uint32_t begin, uint32_t end,
                        struct interval *ret_list);

// The samples returned and not dealt again, written to `ret_list` (room for TABLE_INTERVALS_MAX).
uint32_t run_returned(struct run *self, struct interval *ret_list);

bool run_is_round_client(const struct run *self, uint32_t member); // Of the newest round
// Its place among the witnesses of the newest round, or NO_MEMBER.
uint32_t run_witness_place(const struct run *self, uint32_t member);
const char *run_phase_name(uint8_t phase);
