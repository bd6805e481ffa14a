#pragma once
// learner -- the thread behind PORT_LEARNER: model, optimizer and data of one replica.
//
//     BUILD  a CONFIG: model, compressor, data source        ─▶ BUILT
//     LOAD   genesis folder, own checkpoint, or the stage     ─▶ LOADED   (with the digest)
//     TRAIN  samples at the held step: payload to the store   ─▶ TRAINED  (and candidate residual)
//     APPLY  a commit's payloads, exactly                     ─▶ APPLIED  (with the digest)
//     PIN    keep this step for peers that fetch it
//     SHOW   the residual of a result that is audited         ─▶ SHOWN
//     RECOMPUTE  another member's result                      ─▶ RECOMPUTED
//     SAVE   a pinned or the held step as a checkpoint        ─▶ SAVED
//
// A job that cannot be done is answered `ok = false` with the reason. A failed TRAIN leaves the
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
    const char *checkpoint_root;  // For SAVE and for LOAD of own checkpoints; or NULL
    // Copied into checkpoints; NULL: the tokenizer of the genesis folder, if that is on this
    // machine
    const char *tokenizer_dir;
    uint32_t keep; // How many checkpoints stay
};

// A worker_body; `arg` is a struct learner_options that outlives the worker.
void learner_body(struct worker *worker, void *arg);
