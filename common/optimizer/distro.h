#pragma once
// distro -- one member's half of DisTrO: from its gradient to a small result, and the residual that
// it keeps back.
//
//     residual (adopted) ──┐
//                          ├─▶ candidate = decay·residual + rate·DCT(gradient)
//     gradient ────────────┘        │ the k largest of each chunk ─▶ payload; zero in the candidate
//                                   ▼
//               committed: distro_adopt      not committed: distro_discard
//
// The momentum lives in DCT space. The transform is orthonormal, so subtracting what was sent is
// zeroing its coefficients: the algorithm of DeMo and Psyche (reference/psyche.md 4.3) in exact
// arithmetic, with one transform fewer. It differs from Psyche's in four ways, on purpose:
//
//  - What was sent leaves the residual only when the result is committed (`distro_adopt`). A batch
//    dealt again starts from the same adopted residual: the same gradient gives the same bytes, and
//    nothing is counted twice. A result signs both hashes.
//  - No look-ahead: members compute on the committed parameters, which all hold alike. (Psyche
//    moves the parameters by the sign of each member's own residual and back: not exact.)
//  - top_k is what a full chunk sends, a smaller one its share (payload.h). Psyche sends top_k of
//    each, so a side of 288 (chunks of 48) costs it twice as much as one of 256.
//  - No weight decay here: it belongs to the common apply, so that members without data get it too.
//
// Reproducible: the same inputs give the same bytes and the same candidate on every processor and
// for every number of threads. One caller at a time; work is spread over the pool.

#include "common/base/hash.h"
#include "common/kernel/pool.h"
#include "common/optimizer/payload.h"

struct distro_kernels;

#define DISTRO_RESIDUAL_MAX 0x1.fffffep63f // The largest magnitude of a residual: below 2^64

typedef struct distro distro_t;

// `residual` are two vectors of chunks_total: the first is the adopted residual, the other will be
// the candidate, and with each adoption they change places. Borrows them, `form` and `pool` (NULL:
// no threads) for its life. `decay`, what is left of the residual at each result, is Psyche's
// compression_decay, in [0, 1). FAULT_RANGE with a text, or FAULT_MEMORY.
int distro_new(const payload_form_t *form, float decay, pool_t *pool, float *const residual[2],
               struct why *why, distro_t **ret_distro);
int distro_check_decay(float decay, struct why *why); // That FAULT_RANGE
void distro_destroy(distro_t **self);                 // NULL is allowed

// Makes payload_bytes(form) bytes from a gradient of chunks_total floats (clipped, if at all, by
// gradient.h), and the candidate that belongs to them (a candidate there already is dropped).
// `rate` is the learning rate of the step, as the run's schedule gives it: finite, >= 0 (ensured).
// FAULT_NAN if the gradient or the momentum is not finite or reaches 2^64: there is then no
// candidate, and *ret_payload means nothing.
int distro_compress(distro_t *self, const float *gradient, float rate, uint8_t *ret_payload,
                    struct why *why);

void distro_adopt(distro_t *self);   // The candidate is the residual now. There is one (ensured)
void distro_discard(distro_t *self); // Drops the candidate, if there is one

// Digests (common/crypto/merkle.h) of what a result starts from and leads to. Computed when first
// asked for.
struct hash distro_residual_hash(distro_t *self);
struct hash distro_candidate_hash(distro_t *self); // There is a candidate (ensured)

// Which of the two residuals is the adopted one: 0 or 1. A caller that writes other values to it
// (from a checkpoint, passed by distro_check_residual) calls distro_changed: the candidate is
// dropped.
uint32_t distro_adopted(const distro_t *self);
void distro_changed(distro_t *self);

// The residual of that digest, to show it to an auditor: the adopted one, or the previous one,
// which is there until the next distro_compress. NULL: neither.
const float *distro_residual_of(distro_t *self, const struct hash *digest);

// Keeps `residual` (chunks_total finite floats) as the adopted one, NULL for the declared zero;
// drops any candidate. FAULT_NAN, and nothing changed, if a value is not finite or reaches 2^64.
int distro_set_residual(distro_t *self, const float *residual, struct why *why);

// FAULT_NAN, naming the first value that no residual can have: not finite, or 2^64 and more.
int distro_check_residual(const float *residual, uint64_t count, struct why *why);

// For tests and benchmarks, no program calls it: another instruction set's kernels
// (distro_kernels.h).
void distro_set_kernels(distro_t *self, const struct distro_kernels *kernels);
