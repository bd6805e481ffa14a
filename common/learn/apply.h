#pragma once
// apply -- what a commit does to the parameters: exact arithmetic in one order, the same bits
// everywhere.
//
//     results of the commit, by ascending begin of their batch
//       └▶ per coefficient: sum in that order, divided by how many sent it       (psyche.md 4.2)
//           └▶ inverse DCT, even and odd chains apart (distro_kernels.h)
//               └▶ p ← p·(1 − rate·weight_decay) − rate·sign(x),  sign(0) = 0
//
// The factor is fma(-rate, weight_decay, 1), the last line one fma. Only + − · / and fma, no
// library function; `rate` comes as bits from the run's schedule. So replicas agree whatever their
// threads, instruction set and the order in which results arrived. Values are below 2^64
// (payload.h), so nothing here overflows, and parameters that were finite stay finite.

#include "common/crypto/hash.h"
#include "common/learn/payload.h"
#include "common/learn/pool.h"

struct distro_kernels;

enum { APPLY_RESULTS_MAX = 65536 };

struct apply_result {
    uint64_t begin; // First position of its batch in the round; no two are equal
    const uint8_t *payload;
    size_t bytes;
};

struct apply_step {
    float rate;                           // Learning rate: finite, >= 0
    float weight_decay;                   // Finite, >= 0, and rate·weight_decay <= 1
    const struct distro_kernels *kernels; // NULL: the best for this processor
};

// Applies the 1..APPLY_RESULTS_MAX results of one commit, in any order, to `parameters`
// [chunks_total]. All are checked before a parameter is touched: on a fault (FAULT_RANGE,
// FAULT_FORMAT, FAULT_NAN, FAULT_MEMORY, with the number of the result in *why) nothing has
// changed. What lies between tensors is left alone. Pool NULL: no threads.
int apply_commit(const payload_form_t *form, const struct apply_result *results, uint32_t count,
                 const struct apply_step *step, pool_t *pool, float *parameters, struct why *why);

// What apply_commit does first: all checks, and a copy of the results in the order in which they
// count, which the caller frees. For another device than this one (compute.h).
int apply_check(const payload_form_t *form, const struct apply_result *results, uint32_t count,
                const struct apply_step *step, struct why *why, struct apply_result **ret_sorted);

// The digest (common/crypto/merkle.h) of a vector, its leaves shared out over the pool.
// FAULT_MEMORY.
int apply_digest(const float *parameters, uint64_t count, pool_t *pool, struct hash *ret_digest);
