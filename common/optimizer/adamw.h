#pragma once
// adamw -- the optimizer of a trainer that is alone (Loshchilov and Hutter 2019, "Decoupled Weight
// Decay Regularization"). In step t = 1, 2, ...
//
//     m ← m + (1 − β1)(g − m)                     first moment
//     v ← β2·v + (1 − β2)·g²                      second moment
//     p ← p·(1 − rate·weight_decay) − rate/(1 − β1^t) · m / (√v / √(1 − β2^t) + eps)
//
// as torch.optim.AdamW does it. Only matrices decay, as is customary: the weights of norms, tensors
// of one dimension, keep their length. The embedding is a matrix.
//
// Reproducible: the same bits for every number of threads and instruction set (kernels.h). Only
// + − · / √ and fma; powers of β are products in double. Yardstick: the time to move p, g, m and v
// through memory once, and p, m and v back.
//
// The state is two vectors of N floats and a count, by tag (common/vector/tags.h):
//
//     adamw-m, adamw-v     reshard      an interval of the vector goes with its parameters
//     adamw-steps          replicate    t

#include "common/base/fault.h"
#include "common/kernel/adamw_factors.h"
#include "common/kernel/pool.h"
#include "common/vector/layout.h"
#include "common/vector/tags.h"

struct adamw_options {
    double beta1, beta2; // In [0, 1)
    double eps;          // Above 0, at most 1
    double weight_decay; // 0..1000
};

#define ADAMW_GRADIENT_LIMIT 0x1p63 // Its square is still a float

typedef struct adamw adamw_t;

// Moments of zero. Borrows `layout` and `pool` (NULL: no threads) for its life. FAULT_RANGE with
// the option, its value and its range, or FAULT_MEMORY.
int adamw_new(const struct layout *layout, const struct adamw_options *options, pool_t *pool,
              struct why *why, adamw_t **ret_adamw);
void adamw_destroy(adamw_t **self); // NULL is allowed
uint64_t adamw_memory_bytes(uint64_t floats);

// One step on `params`, N floats. `rate` is finite and >= 0 (ensured). Every number of the gradient
// must be below ADAMW_GRADIENT_LIMIT in magnitude, which its norm (gradient.h) tells.
void adamw_step(adamw_t *self, const float *gradient, float rate, float *params);

// For a device that holds the moments itself: counts the step, and gives the factors of matrices.
struct adamw_factors adamw_begin(adamw_t *self, float rate);

uint64_t adamw_steps(const adamw_t *self); // Taken so far: t

// m and v on this side, N floats each; a device that holds them itself copies them here and back.
float *adamw_first_moment(adamw_t *self);
float *adamw_second_moment(adamw_t *self);

// Registers the three items, in the order of the drawing, and gives their values.
enum { ADAMW_ITEMS = 3 };
int adamw_add_state(adamw_t *self, struct tags *tags, struct why *why,
                    void *ret_values[ADAMW_ITEMS]);

// For loading: fill what adamw_add_state's values point at, then say so here. FAULT_NAN, and the
// moments zero again, unless all are finite and no second moment is negative.
int adamw_loaded(adamw_t *self, struct why *why);
void adamw_reset(adamw_t *self); // Moments of zero, no step taken
