#pragma once
// learner -- the thread behind PORT_LEARNER: model, optimizer and data of one replica.
//
//     BUILD  a CONFIG: model, optimizer, data source         ─▶ BUILT
//     LOAD   genesis folder, own checkpoint, or the stage     ─▶ LOADED   (with the digest)
//     PIN    keep this step for peers that fetch it
//     SAVE   a pinned or the held step as a checkpoint        ─▶ SAVED
//
//   the strategy `distro`
//     TRAIN  samples at the held step: payload to the store   ─▶ TRAINED  (and candidate residual)
//     APPLY  a commit's payloads, exactly                     ─▶ APPLIED  (with the digest)
//     SHOW   the residual of a result that is audited         ─▶ SHOWN
//     RECOMPUTE  another member's result, or ahead of its
//                residual only the gradient (no answer)       ─▶ RECOMPUTED
//
//   the strategies `allreduce` and `sharded` (common/pace/windows/windows.def)
//     TAKE_WINDOW   take these steps with this group          ─▶ STEPPED, STEPPED ... or BROKE
//     STOP_WINDOW   end after the step in hand
//     FREEZE        apply nothing more, say where you stand   ─▶ FROZEN
//     CLOSE_WINDOW  where the window ends                     ─▶ CLOSED_WINDOW
//
//   leases with servers (common/pace/leases/leases.def)
//     TAKE_GROUP    link with this group; hold a share, or train ─▶ GROUP_FORMED
//     TRAIN_TASK    these samples, and push what they lead to ─▶ TASK_TRAINED, or GROUP_BROKE
//     SETTLE_GROUP  put the state together                    ─▶ GROUP_SETTLED (with the digest)
//     END_GROUP     the group is over
//
// A job that cannot be done is answered `ok = false` with the reason; a failed BUILD also says whether the cause may
// pass without a change of the run, as a folder that is not mounted yet. A failed TRAIN leaves the
// parameters as they were; after a failed BUILD there is no model, after a failed LOAD no held
// step. Memory is sized and logged when the model is built.

#include "common/actor/worker.h"
#include "common/bulk/blob_store.h"
#include "common/compute/compute.h"
#include "common/crypto/identity.h"

struct learner_options {
    const struct identity *identity; // Borrowed; for the data providers
    blob_store_t *store;             // Borrowed; shared with the bulk server and the fetcher
    const char *run_id;
    struct compute_device device; // The device that computes
    uint32_t threads;             // 1..64
    uint32_t micro_batch;         // Sequences at a time: memory against speed
    bool trains;                  // A checkpointer only applies
    bool serves;                  // A parameter server: it trains, and computes no gradient itself
    const char *checkpoint_root;  // For SAVE and for LOAD of own checkpoints; or NULL
    // Copied into checkpoints; NULL: the tokenizer of the genesis folder, if that is on this
    // machine
    const char *tokenizer_dir;
    uint32_t keep; // How many checkpoints stay
    // Of the strategy `allreduce`: the links of a trainer (common/group). ADDRESS:PORT to bind; the
    // endpoint that is announced for blobs, whose address the links share; and the port that is
    // announced for them, 0: the one that is bound.
    uint64_t instance; // Of this process
    char links_bind[80];
    const char *links_announced;
    uint16_t links_port;
};

// A worker_body; `arg` is a struct learner_options that outlives the worker.
void learner_body(struct worker *worker, void *arg);
