#pragma once
// vector_kernel -- the loops along the one parameter vector, written once on lanes. Only
// kernels_*.c include this. kernels.h says what each function computes.

#include "common/kernel/kernels.h"
#include "common/kernel/lanes.h"

static void vector_add_weighed(size_t count, const struct kernels_weights *by, const float *from,
                               float *to)
{
    const lanes factor = lanes_all(by->factor), by_from = lanes_all(by->from);
    const lanes by_to = lanes_all(by->to);
    for (size_t i = 0; i < count; i += LANES) {
        const size_t left = count - i;
        const lanes x = lanes_mul(by_from, lanes_load_upto(from + i, left));
        const lanes y = lanes_mul(by_to, lanes_load_upto(to + i, left));
        lanes_store_upto(to + i, lanes_fma(factor, x, y), left);
    }
}

// `pulls`: Adam; its weights decay by way of the gradient.
static inline void vector_moments(size_t count, const struct adamw_factors *by, bool pulls,
                                  const float *gradient, float *p, float *m, float *v)
{
    const lanes one_less_beta1 = lanes_all(by->one_less_beta1), beta2 = lanes_all(by->beta2);
    const lanes one_less_beta2 = lanes_all(by->one_less_beta2), eps = lanes_all(by->eps);
    const lanes root_factor = lanes_all(by->root_factor), keep = lanes_all(by->keep);
    const lanes step = lanes_all(by->step), pull = lanes_all(by->pull);
    for (size_t i = 0; i < count; i += LANES) {
        const size_t left = count - i;
        const lanes given = lanes_load_upto(gradient + i, left),
                    old_m = lanes_load_upto(m + i, left);
        const lanes g = pulls ? lanes_fma(pull, lanes_load_upto(p + i, left), given) : given;
        const lanes new_m = lanes_fma(one_less_beta1, lanes_sub(g, old_m), old_m);
        const lanes new_v = lanes_fma(beta2, lanes_load_upto(v + i, left),
                                      lanes_mul(one_less_beta2, lanes_mul(g, g)));
        const lanes below = lanes_fma(lanes_sqrt(new_v), root_factor, eps);
        const lanes kept = lanes_mul(keep, lanes_load_upto(p + i, left));
        lanes_store_upto(m + i, new_m, left);
        lanes_store_upto(v + i, new_v, left);
        lanes_store_upto(p + i, lanes_fnma(step, lanes_div(new_m, below), kept), left);
    }
}

static void vector_adamw(size_t count, const struct adamw_factors *by, const float *gradient,
                         float *p, float *m, float *v)
{
    vector_moments(count, by, false, gradient, p, m, v);
}

static void vector_adam(size_t count, const struct adamw_factors *by, const float *gradient,
                        float *p, float *m, float *v)
{
    vector_moments(count, by, true, gradient, p, m, v);
}

static void vector_sgd(size_t count, const struct sgd_factors *by, const float *gradient, float *p,
                       float *v)
{
    const lanes pull = lanes_all(by->pull), momentum = lanes_all(by->momentum);
    const lanes step = lanes_all(by->step);
    for (size_t i = 0; i < count; i += LANES) {
        const size_t left = count - i;
        const lanes old_p = lanes_load_upto(p + i, left);
        lanes g = lanes_fma(pull, old_p, lanes_load_upto(gradient + i, left));
        if (v) {
            const lanes new_v = lanes_fma(momentum, lanes_load_upto(v + i, left), g);
            lanes_store_upto(v + i, new_v, left);
            g = by->nesterov ? lanes_fma(momentum, new_v, g) : new_v;
        }
        lanes_store_upto(p + i, lanes_fnma(step, g, old_p), left);
    }
}
