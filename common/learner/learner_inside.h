#pragma once
// learner_inside -- what the files of the learner's thread share; for common/learner alone.
//
//   learner.c         the thread: BUILD, LOAD, PIN, TRAIN, APPLY; it calls the others, none calls it
//   learner_data.c    samples: a folder, files by HTTP, data-provider actors; each checked
//   learner_audit.c   SHOW, RECOMPUTE
//   learner_save.c    SAVE
//   learner_inside.c  what each job ends with

#include "common/learner/learner.h"
#include "common/learner/past.h"
#include "common/bulk/bulk_client.h"
#include "common/data/proof.h"
#include "common/data/provider.h"
#include "common/model/model_config.h"
#include "common/optimizer/result.h"
#include "common/vector/layout.h"

enum { REASON_MAX = 191 };

struct learner {
    const struct learner_options *options;
    struct worker *worker;
    bool built, holding;
    struct wire_config config;
    struct wire_rounds_config rounds; // Where it points to: what the strategy says
    char config_json[MODEL_CONFIG_BYTES_MAX + 1];
    struct model_shape shape;
    struct layout layout;
    struct layout_tensor *tensors;
    pool_t *pool;
    struct compute_config compute_config;
    optimizer_t *optimizer;     // DisTrO
    const payload_form_t *form; // The optimizer's
    compute_t *compute;
    provider_t *provider;
    struct bulk_client *client; // Of data-provider actors
    struct dataset dataset;     // Once known: their samples are checked against it
    struct hash data, order;    // The dataset and its order, by the TRAIN in hand
    uint64_t floats, step;
    struct hash digest;
    struct hash *leaves;
    size_t leaf_count;
    float *params, *spare; // compute_host of the replica; room for a pinned step
    uint32_t *tokens;      // Of one batch
    uint64_t tokens_max;
    uint8_t *payload;
    struct past past;                 // For audits
    struct hash candidate;            // Payload that the candidate residual belongs to
    struct wire_holder providers[16]; // Of the TRAIN in hand
    uint32_t providers_count;
};

// A reason as a field of an answer: cut to fit, no control characters.
void learner_put_reason(char reason[REASON_MAX + 1], const struct why *why);

// Puts bytes that peers will ask for into the blob store. If the disk fails they are served from
// memory for as long as the process lives, and a line of the log says so. FAULT_LIMIT,
// FAULT_MEMORY: not kept.
int learner_keep(struct learner *self, const void *bytes, size_t count, struct why *why,
                 struct hash *ret_hash);

int learner_open_data(struct learner *self, struct why *why);
void learner_close_data(struct learner *self); // Closes what was opened

// The samples of a TRAIN, in self->tokens. FAULT_RANGE, FAULT_MEMORY, or what the source says.
int learner_read_samples(struct learner *self, const struct wire_train *job, struct why *why,
                         uint64_t *ret_count);

void learner_show(struct learner *self, const struct wire_show *job);
void learner_recompute(struct learner *self, const struct wire_recompute *job);
void learner_save(struct learner *self, const struct wire_save *job);
