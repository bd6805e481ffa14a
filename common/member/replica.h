#pragma once
// replica -- holds one copy of the parameters of the run, bit for bit those on record.
//
//   nothing ──LOAD genesis──▶ step 0 ─┐
//   nothing ──FETCH_MODEL (pin)───────┴▶ step s ──the pace moves it on──▶ step s + 1 ─▶ ...
//      ▲                                     │
//      └── given up, too far behind, differs ┘
//
// How it comes from one committed step to the next is the pace's (common/pace): it waits until the replica
// is ready, moves it, and lets it tell what it holds. When the pinned step is ahead and the commits in
// between are no longer needed (a joiner, or one that fell far behind), the replica fetches the pinned
// parameters from several peers at once and goes on from there. Never are random weights taken for a model
// that cannot be had: it says so and asks again.
//
// Used by trainers and checkpointers. Part of a core: pure.

#include "common/member/blobs.h"

enum { REPLICA_RETRY_MS = 700, REPLICA_STUCK_MS = 5000, REPLICA_FAILURES_MAX = 40 };

// True if the run's newest restore gave this up: parameters of this step, reached in this epoch. The
// run may have come as far again since.
bool replica_is_given_up(const struct wire_run *run, uint64_t step, uint64_t epoch);

// True if `step` of `epoch` is where the run is rather than `than_step` of `than_epoch`: a restore
// takes steps back and begins an epoch. A checkpoint is gone on from if no other is newer.
bool replica_is_newer(uint64_t step, uint64_t epoch, uint64_t than_step, uint64_t than_epoch);

struct replica {
    bool built, loading, fetching, holding;
    bool applying;       // The learner moves it on; set by the pace
    bool ready;          // Has looked: it holds what is on record, and the learner is free
    uint64_t beginnings; // How often it let go of what it held, or got hold of others
    uint64_t floats;
    bool own_folder;        // The newest LOAD was from a folder here, not from peers
    uint64_t step;          // Held, if holding
    struct hash digest;     // Of the parameters held
    uint64_t epoch;         // Of the commit that led to them, or one that goes on from them
    uint64_t fetched_epoch; // Of the run, when the pinned step was last asked for
    uint64_t sought_epoch;  // Of the newest restore, when parameters were last looked for
    uint64_t retry_ms;
    uint64_t stuck_ms; // Since when the next step waits for what is not to be had; by the pace
    uint64_t told_seq; // The RUN that `told` belongs to
    bool told;
    uint64_t tell_ms, pin_step;
    uint64_t end_step;       // The newest EPOCH_END: that step is to be pinned, and its
    struct hash end_digest;  // digest must be ours
    uint32_t failures;       // Of getting hold of the model, in a row
    bool peers_turn;         // To be asked next; else a folder's, if one will do
    struct wire_load resume; // Our newest checkpoint and the folder of all; step 0: none yet
    bool keeps_payloads;     // Ours go back to it: no need to take the pinned step instead
};

// ---- for the pace: moving on ----------------------------------------------------------------------

// The learner has moved it to this step, which was committed in this epoch.
void replica_move(struct replica *self, struct member *member, uint64_t step,
                  const struct hash *digest, uint64_t epoch);

// The parameters differ from those on record: what differs is fetched, from members that have it right.
void replica_repair(struct replica *self, struct outbox *out);

// Once the pace has gone as far as it can: in Warmup and Cooldown the coordinator waits to hear what is held.
void replica_tell(struct replica *self, const struct member *member, uint64_t now_ms,
                  struct outbox *out);

// As a part of a role. It hears epoch ends, learner and fetcher; then loads and fetches what it lacks.
void replica_hear(void *self, const struct turn *turn);
void replica_look(void *self, const struct turn *turn);
