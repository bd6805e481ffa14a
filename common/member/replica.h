#pragma once
// replica -- holds one copy of the run's state, bit for bit the recorded one: the parameters, and what
// the optimizer keeps for all members alike (common/vector/state_cut.h).
//
//   nothing ──LOAD genesis──▶ step 0 ─┐
//   nothing ──FETCH_MODEL (pin)───────┴▶ step s ──the pace moves it on──▶ step s + 1 ─▶ ...
//      ▲                                     │
//      └── given up, too far behind, differs ┘
//
// The pace (common/pace) takes it from one committed step to the next: it waits until the replica
// is ready, moves it, and makes it tell what it holds. A new member, or one that fell far behind,
// fetches the state of the pinned step from several peers at once and continues from there.
// Random weights never replace a model that is not available: the replica reports that and retries.
//
// Trainers and checkpointers use it. Part of a core: pure.

#include "common/member/blobs.h"

enum {
    REPLICA_RETRY_MS = 700,
    REPLICA_STUCK_MS = 5000,
    REPLICA_FAILURES_MAX = 40,
    REPLICA_ITEMS_MAX = 7
};

// True if the run's newest restore gave up the parameters of this step, reached in this epoch. The
// run may have reached the same step again since.
bool replica_is_given_up(const struct wire_run *run, uint64_t step, uint64_t epoch);

// True if `step` of `epoch` is newer than `than_step` of `than_epoch`. The epoch decides first,
// because a restore goes back in steps and begins a new epoch.
bool replica_is_newer(uint64_t step, uint64_t epoch, uint64_t than_step, uint64_t than_epoch);

struct replica {
    bool built; // The learner has the run's model; the pace may find that it is not the run's
    bool loading, fetching, holding;
    bool applying;       // The learner applies a commit; set by the pace
    bool ready;          // It holds the recorded parameters, and the learner is free
    uint64_t beginnings; // How often it dropped its parameters or loaded others
    uint64_t floats;     // Of the parameters, and the items of state beside them: of BUILT
    struct wire_state_item items[REPLICA_ITEMS_MAX];
    uint32_t items_count;
    bool own_folder;               // The newest LOAD was from a folder here, not from peers
    bool pieces;                   // It was of a save in pieces
    struct hash pieces_digest;     // Of that save
    struct wire_saved_step unread; // The newest save that could not be read here
    char unread_because[sizeof((struct wire_unread *)0)->because];
    uint64_t readable;      // And the newest of the older ones that could be; 0: none
    uint64_t step;          // Held, if holding
    struct hash digest;     // Of the parameters held; none: the pace has not asked for it yet
    uint64_t epoch;         // Of the commit that led to them, or of one that continues from them
    uint64_t fetched_epoch; // The run's epoch when the pinned step was last fetched
    uint64_t sought_epoch;  // The newest restore's epoch when parameters were last looked for
    uint64_t retry_ms;
    uint64_t stuck_ms; // When the wait for blobs of the next step began; set by the pace
    uint64_t told_seq; // The RUN that `told` belongs to
    bool told;
    bool tells_later; // No HOLDS for now; set by a role
    uint64_t tell_ms, pin_step;
    uint64_t end_epoch, end_step; // The newest EPOCH_END: its step will be pinned,
    struct hash end_digest;       // and our digest must be this one
    uint32_t failures;            // Failures to obtain the model, in a row
    bool peers_turn;         // The next attempt asks peers; else it reads a folder, if there is one
    struct wire_load resume; // Our newest checkpoint and the folder of all; step 0: none yet
    bool can_replay;         // All blobs since `resume` are kept: the pace can start from there
    // Set by a pace that cannot take it from one committed step to the next by itself: it goes from
    // one pinned step to another. `waits_for_pin`: and fetches none that the run has left.
    bool follows_pins, waits_for_pin;
    // Set by a pace whose trainers get what they need with each step: none is obtained while the run makes steps.
    bool needs_no_state;
    char shared_dir[256]; // Set by a pace whose members save in pieces there; "": none do
};

// ---- for the pace -------------------------------------------------------------------------------

// The learner has applied the commit of this epoch that leads to `step`. `digest` may be none, as long
// as the run does not ask for it: then nothing is told, pinned or compared. A trainer's log has a line
// for it, with the member's `loss`, `loss_step` and `step_lr`, which the pace sets.
//
// An epoch begins with the pinned step, which joiners fetch. So a pace does not take the first step
// of an epoch before the replica has pinned the one it holds: RUN and EPOCH_END say what to pin,
// and may come after the pace's own news. If nobody has pinned it, nobody can ever join.
void replica_move(struct replica *self, struct member *member, uint64_t step,
                  const struct hash *digest, uint64_t epoch);

// The parameters differ from the recorded ones: fetches the intervals that differ from other
// members.
void replica_repair(struct replica *self, struct outbox *out);

// What is held leads nowhere: the run has gone on from another step. `why` is for the log.
void replica_drop(struct replica *self, const char *why, struct outbox *out);

// Tells the coordinator what is held, when the run is in a phase in which the coordinator waits for
// that.
void replica_tell(struct replica *self, const struct member *member, uint64_t now_ms,
                  struct outbox *out);

// As a part of a role: hears epoch ends, learner and fetcher; then loads or fetches what it lacks.
void replica_hear(void *self, const struct member_turn *turn);
void replica_look(void *self, const struct member_turn *turn);
