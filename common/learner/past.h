#pragma once
// past -- the parameters of a step that the run has left behind, made again for an audit.
//
//     pinned step P ≤ s ──commits P .. s-1, applied exactly──▶ parameters of s, held against its digest
//
// The learner says what it pins and what it applies; here are the names, the bytes lie in the blob
// store as long as peers may ask for them. One thread. Memory: one vector while it makes parameters.

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
    struct past_step steps[PAST_STEPS]; // By step modulo
};

void past_pinned(struct past *self, uint64_t step, const struct hash *digest);
void past_applied(struct past *self, const struct wire_apply *job);
void past_clear(struct past *self); // Another history begins; frees

// What it takes to apply: borrowed for the call.
struct past_means {
    blob_store_t *store;
    const payload_form_t *form;
    pool_t *pool;
    float weight_decay;
    uint64_t floats;
};

// Fills `ret_params`, N floats, with the parameters of `step`. FAULT_NOT_FOUND with the reason if
// what it would take is no more here, FAULT_DIGEST if they are not those of `digest`.
int past_params(const struct past *self, const struct past_means *means, uint64_t step,
                const struct hash *digest, struct why *why, float *ret_params);

// The parameters of a pinned step, put together from its leaves. FAULT_NOT_FOUND, FAULT_CORRUPT.
int past_gather(blob_store_t *store, const struct hash *digest, uint64_t floats, struct why *why,
                float *ret_params);

// The payloads of a commit as apply takes them: those that are none of this model are left out, as
// everybody finds from the same bytes, with a line in the log.
struct past_results {
    struct apply_result *results;
    struct blob_ref *refs;
    uint32_t sound, held;
};
int past_results_take(blob_store_t *store, const payload_form_t *form, const struct hash *payloads,
                      uint32_t count, uint64_t step, struct why *why, struct past_results *ret);
void past_results_release(struct past_results *self);
