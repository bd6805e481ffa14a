#pragma once
// adamw -- AdamW (Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization"), and Adam, from which it differs
// in the decay alone (Kingma and Ba 2015). In step t = 1, 2, ...
//
//     m ← m + (1 − β1)(g − m)                     first moment
//     v ← β2·v + (1 − β2)·g²                      second moment
//     p ← p·(1 − rate·weight_decay) − rate/(1 − β1^t) · m / (√v / √(1 − β2^t) + eps)
//
// as torch.optim.AdamW does it. Adam decays by way of the gradient, g ← g + weight_decay · p before the first line, and
// has no such factor in the third, as torch.optim.Adam. Only matrices decay, as is customary: the weights of norms,
// tensors of one dimension, keep their length. The embedding is a matrix.
//
// Reproducible: the same bits for every number of threads and instruction set (kernels.h). Only
// + − · / √ and fma; powers of β are products in double. Yardstick: the time to move p, g, m and v
// through memory once, and p, m and v back.
//
// This is the arithmetic, on plain memory. optimizer_adamw.c is the optimizer above a device.

#include "common/base/fault.h"
#include "common/base/interval.h"
#include "common/kernel/optimizer_factors.h"
#include "common/kernel/pool.h"
#include "common/vector/layout.h"

struct adamw_options {
    double beta1, beta2; // In [0, 1)
    double eps;          // Above 0, at most 1
    double weight_decay; // 0..1000
    bool coupled;        // Adam
};

// FAULT_RANGE with the option, its value and its range.
int adamw_check(const struct adamw_options *options, struct why *why);

// The optimizer of an interval of the vector; a value. Layout, pool and moments are borrowed.
struct adamw {
    struct adamw_options options; // Have passed adamw_check
    const struct layout *layout;  // Of the whole vector
    struct interval at;
    pool_t *pool;   // NULL: no threads
    float *m, *v;   // Of the interval; zero before the first step
    uint64_t steps; // Taken so far: t
};

// One step on the parameters of the interval. `gradient` and `params` are whole vectors. `rate` is
// finite and >= 0 (ensured). Every number of the gradient must be below GRADIENT_LIMIT in
// magnitude, which its norm (gradient.h) tells.
void adamw_step(struct adamw *self, const float *gradient, float rate, float *params);

// For a device that does the rest of a step: counts the step and returns the factors for matrices.
struct adamw_factors adamw_begin(struct adamw *self, float rate);
