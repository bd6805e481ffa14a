#pragma once
// past -- makes the parameters of an earlier step again, for an audit.
//
//     pinned step P ≤ s ──commits P .. s-1, applied exactly──▶ parameters of s, checked by digest
//
// The learner reports what it pins and what it applies. This module keeps the hashes; the bytes lie
// in the blob store for as long as peers may ask for them. One thread. It takes no memory for
// vectors: the caller gives room for the parameters.

#include "common/bulk/blob_store.h"
#include "common/optimizer/apply.h"
#include "common/wire/wire.h"

enum { PAST_PINS = 8, PAST_STEPS = 256 };

struct past_step {
    uint64_t step;
    uint32_t lr_bits, count;
    struct hash *payloads;
};

struct past {
    struct {
        uint64_t step;
        struct hash digest;
    } pins[PAST_PINS];
    uint32_t pins_next;
    struct past_step steps[PAST_STEPS]; // By step modulo PAST_STEPS
};

void past_pinned(struct past *self, uint64_t step, const struct hash *digest);
void past_applied(struct past *self, const struct wire_apply *job);
void past_clear(struct past *self); // Forgets all, since the parameters were replaced; frees

// What applying a commit needs; borrowed for the call.
struct past_means {
    blob_store_t *store;
    const payload_form_t *form;
    pool_t *pool;
    float weight_decay;
    uint64_t floats;
};

// Fills `ret_params`, N floats, with the parameters of `step`. FAULT_NOT_FOUND with the reason if a
// pin or a commit that it needs is no longer here, FAULT_DIGEST if the result has another digest.
int past_params(const struct past *self, const struct past_means *means, uint64_t step,
                const struct hash *digest, struct why *why, float *ret_params);

// The parameters of a pinned step. FAULT_NOT_FOUND, FAULT_CORRUPT.
int past_gather(blob_store_t *store, const struct hash *digest, uint64_t floats, struct why *why,
                float *ret_params);

// The payloads of a commit as apply takes them. A payload that is not valid for this model is left
// out with a line in the log; every member leaves out the same, since all have the same bytes.
struct past_results {
    struct apply_result *results;
    struct blob_ref *refs;
    uint32_t sound, held;
};
// `own`: the payload that this process has made, which is valid; none: it has made none of them.
int past_results_take(const struct past_means *means, const struct past_step *past,
                      const struct hash *own, struct why *why, struct past_results *ret);
void past_results_release(struct past_results *self);
