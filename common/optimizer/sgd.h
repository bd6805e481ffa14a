#pragma once
// sgd -- stochastic gradient descent with momentum (Polyak 1964), or with that of Nesterov in the form of Sutskever et
// al. 2013 ("On the importance of initialization and momentum in deep learning", section 2). In each step
//
//     g ← g + weight_decay · p                    matrices alone
//     v ← momentum · v + g                        with momentum 0 there is no v, and g is the way
//     p ← p − rate · v                            nesterov: p − rate · (g + momentum · v)
//
// as torch.optim.SGD does it, with dampening 0. It keeps 4 bytes a parameter, or nothing with momentum 0.
//
// Reproducible like adamw.h: the same bits for every number of threads and instruction set.

#include "common/base/fault.h"
#include "common/base/interval.h"
#include "common/kernel/pool.h"
#include "common/vector/layout.h"

struct sgd_options {
    double momentum;     // In [0, 1)
    double weight_decay; // 0..1000
    bool nesterov;       // Needs momentum above 0
};

// FAULT_RANGE with the option, its value and its range.
int sgd_check(const struct sgd_options *options, struct why *why);

// SGD of an interval of the vector; a value. Layout, pool and `v` are borrowed.
struct sgd {
    struct sgd_options options;  // Have passed sgd_check
    const struct layout *layout; // Of the whole vector
    struct interval at;
    pool_t *pool; // NULL: no threads
    float *v;     // Of the interval, zero before the first step; NULL with momentum 0
};

// One step on the parameters of the interval. `gradient` and `params` are whole vectors. `rate` is finite and >= 0
// (ensured).
void sgd_step(const struct sgd *self, const float *gradient, float rate, float *params);
