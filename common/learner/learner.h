#pragma once
// learner -- the thread behind PORT_LEARNER: model, optimizer and data of one replica.
//
//     BUILD  a CONFIG: model, compressor, data source        ─▶ BUILT
//     LOAD   genesis folder, own checkpoint, or the stage     ─▶ LOADED   (with the digest)
//     TRAIN  samples at the held step: payload into the store ─▶ TRAINED  (with a candidate residual)
//     APPLY  a commit's payloads, exactly                     ─▶ APPLIED  (with the digest)
//     PIN    keep this step for those who fetch it
//     SHOW   the residual of a result that is audited         ─▶ SHOWN
//     RECOMPUTE  somebody else's result                       ─▶ RECOMPUTED
//     FORGET what it put into the store
//     SAVE   a pinned or the held step as a checkpoint        ─▶ SAVED
//
// Never invents anything: what cannot be read, trained or applied is answered `ok = false` with the
// reason, and the state stays as it was. Memory is sized when the model is built, and said.

#include "common/actor/worker.h"
#include "common/bulk/blob_store.h"
#include "common/compute/compute.h"
#include "common/crypto/identity.h"

struct learner_options {
    const struct identity *identity; // Borrowed; for the data providers
    blob_store_t *store;             // Borrowed; shared with the bulk server and the fetcher
    const char *run_id;
    struct compute_device device; // What computes
    uint32_t threads;             // 1..64
    uint32_t micro_batch;         // Sequences at a time: memory against speed
    bool trains;                  // A checkpointer only applies
    const char *checkpoint_root;  // For SAVE and for LOAD of own checkpoints; or NULL
    const char
        *tokenizer_dir; // Copied into checkpoints; or NULL: the genesis folder's, if it is here
    uint32_t keep;      // Checkpoints that stay
};

// A worker_body; `arg` is a struct learner_options that outlives the worker.
void learner_body(struct worker *worker, void *arg);
