#pragma once
// apply -- what a commit does to the parameters: exact arithmetic in one order, the same bits
// everywhere.
//
//     results of the commit, by ascending begin of their batch
//       └▶ per chunk: values that are longer than the median of the results are scaled down to it
//       └▶ per coefficient: sum in that order, divided by how many sent it       (psyche.md 4.2)
//           └▶ inverse DCT, even and odd chains apart (distro_kernels.h)
//               └▶ p ← p·(1 − rate·weight_decay) − rate·sign(x),  sign(0) = 0
//
// The factor is fma(-rate, weight_decay, 1), the last line one fma. Only + − · / and fma, no
// library function; `rate` comes as bits from the run's schedule. So replicas agree whatever their
// threads, instruction set and the order in which results arrived. Values are below 2^64
// (payload.h), so nothing here overflows, and parameters that were finite stay finite.
//
// Clipping. In a chunk each result's values are multiplied by
//
//     factor = 1, or where square > limit:  (float)√(limit / square)
//     square   the sum of the squares of what it sends of the chunk     (payload_square_sum)
//     limit    the lower median of the squares that are not zero
//
// in double, each operation rounded once by IEEE 754; the factor is 0..1, the product a float. So
// a liar is no louder than an honest member until it is ejected: one of four turned round and ten
// times as large, unclipped, ends the run (below). It is per chunk because the sign is: a chunk
// that all send small values for moves as far as any other, and a limit on the whole result would
// let a liar spend all of its length where the others are quiet. A result that sends nothing of a
// chunk does not count for the limit, so an empty result silences no other. A single result, equal
// squares, and every result with one bit, where each value is one vote already, have factor 1
// exactly. Of two results the longer is cut to the shorter. What is cut off is lost: its sender
// counts it as sent.
//
// One median, not more: held-out loss after 200 steps of the demo's model with float values (chunk
// 32, k 64, rate 0.002, batch 8; tests/numeric/convergence --float-values --trainers 4; mean of
// three seeds, spread in brackets; 3 honest ones alone, batch 6: 2.01):
//
//     no longer than                          anything      2 medians     1 median
//     4 honest                                1.97 (0.04)   1.96 (0.05)   1.95 (0.06)
//     one of them times -10                   45.3 (2.1)    2.71 (0.08)   2.27 (0.05)
//     one of them times -1                    2.28 (0.06)                 2.26 (0.04)
//     one times -4 in the quiet chunks alone, as long as another in all: 2.17 (0.05); with
//     one limit for the whole result, a median of norms, it was 3.19 (one seed)

#include "common/base/hash.h"
#include "common/kernel/pool.h"
#include "common/optimizer/payload.h"

struct distro_kernels;

enum { APPLY_RESULTS_MAX = 65536 };

struct apply_result {
    uint64_t begin; // First position of its batch in the round; no two are equal
    const uint8_t *payload;
    size_t bytes;
    bool is_checked; // The payload has passed payload_check
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

// The first part of apply_commit: all checks, and a copy of the results in commit order, which the
// caller frees. For a device that does the rest itself (compute.h).
int apply_check(const payload_form_t *form, const struct apply_result *results, uint32_t count,
                const struct apply_step *step, struct why *why, struct apply_result **ret_sorted);

// The factor of each result in one chunk, as above; for apply_commit and for other devices.
struct apply_weights {
    float *factors;           // [count], 0..1: by which its values are multiplied
    double *squares, *sorted; // [count], for apply_weigh alone
};

// Room for each of `threads`, in one piece that the caller frees. FAULT_MEMORY.
int apply_weights_new(uint32_t threads, uint32_t count, struct apply_weights **ret_weights);
// Of results that have been checked, in any order, the same factors in that order.
void apply_weigh(const payload_form_t *form, uint32_t chunk, const struct apply_result *results,
                 uint32_t count, struct apply_weights *weights);

// The digest (common/crypto/merkle.h) of a vector, its leaves shared out over the pool.
// FAULT_MEMORY.
int apply_digest(const float *parameters, uint64_t count, pool_t *pool, struct hash *ret_digest);
