#pragma once
// replica -- keeps one copy of the parameters in step with the commits.
//
//   nothing ──LOAD genesis──▶ step 0 ─┐
//   nothing ──FETCH_MODEL (pin)───────┴▶ step s ──commit s: payloads here──▶ APPLY ──▶ step s + 1 ─▶ ...
//
// It applies the list of a commit and nothing else, in order, each once. A payload that is not here
// is fetched from any holder; a commit that was missed is asked for. When the pinned step is ahead
// and the commits in between are no longer needed (a joiner, or one that fell far behind), it
// fetches the pinned parameters from several peers at once and goes on from there. Never are random
// weights taken for a model that cannot be had: it says so and asks again.
//
// Used by trainers and checkpointers. Part of a core: pure.

#include "common/member/blobs.h"

enum {
    REPLICA_AHEAD = 64,
    REPLICA_ENTRIES_MAX = 65536,
    REPLICA_RETRY_MS = 700,
    REPLICA_STUCK_MS = 5000,
    REPLICA_FAILURES_MAX = 40
};

// True if the run's newest restore gave this up: parameters of this step, reached in this epoch. The
// run may have come as far again since.
bool replica_is_given_up(const struct wire_run *run, uint64_t step, uint64_t epoch);

// True if `step` of `epoch` is where the run is rather than `than_step` of `than_epoch`: a restore
// takes steps back and begins an epoch. A checkpoint is gone on from if no other is newer.
bool replica_is_newer(uint64_t step, uint64_t epoch, uint64_t than_step, uint64_t than_epoch);

struct replica_commit {
    struct wire_commit commit; // Its list: entries [first, first + count)
    uint32_t first;
    bool known;
};

struct replica {
    bool built, loading, fetching, applying, holding;
    uint64_t floats;
    bool own_folder;        // The newest LOAD was from a folder here, not from peers
    uint64_t step;          // Held, if holding
    struct hash digest;     // Of the parameters held
    uint64_t epoch;         // Of the commit that led to them, or one that goes on from them
    uint64_t fetched_epoch; // Of the run, when the pinned step was last asked for
    uint64_t sought_epoch;  // Of the newest restore, when parameters were last looked for
    uint64_t retry_ms, ask_ms;
    uint64_t stuck_ms;  // Since when the next commit lacks a payload; 0: it does not
    uint64_t told_step; // The newest step that the coordinator acknowledged from us
    uint64_t told_seq;  // The RUN that `told` belongs to
    bool told;
    uint64_t tell_ms, pin_step;
    uint64_t end_step;       // The newest EPOCH_END: that step is to be pinned, and its
    struct hash end_digest;  // digest must be ours
    uint32_t failures;       // Of getting hold of the model, in a row
    bool peers_turn;         // To be asked next; else a folder's, if one will do
    struct wire_load resume; // Our newest checkpoint and the folder of all; step 0: none yet
    bool keeps_payloads;     // Ours go back to it: no need to take the pinned step instead
    struct hash own_result; // The member's newest: if a commit accepts it, APPLY names its payload,
                            // so that the learner adopts the residual. Given by who trains
    struct replica_commit ahead[REPLICA_AHEAD]; // Commits from `step` on, by step modulo
    uint32_t entries_used;
    struct wire_accepted entries[REPLICA_ENTRIES_MAX];
    struct wire_blob payloads[MEMBERS_MAX]; // Scratch of one APPLY
};

// True if this step's commit is known or applied: its payloads are still of use.
bool replica_knows_commit(struct replica *self, uint64_t step);

// As a part of a role. It hears commits, epoch ends, learner and fetcher; then goes as far as it can:
// loads, fetches, applies, tells.
void replica_hear(void *self, const struct turn *turn);
void replica_look(void *self, const struct turn *turn);
