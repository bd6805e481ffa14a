#pragma once
// vector -- operations on whole vectors of parameters: copy to bf16, norm and clip, AdamW.

#include "common/compute/cuda/device.cuh"
#include "common/compute/cuda/numbers.cuh"
#include "common/kernel/optimizer_factors.h"

// to[i] = from[i], rounded to nearest even
void vector_narrow(struct device *device, bf16 *to, const float *from, size_t count);

// *ret_norm = 2-norm, in double: VECTOR_PARTS partial sums, then those in order. `parts` is room
// for VECTOR_PARTS doubles. Not the CPU's order: it agrees to about 1e-12.
enum { VECTOR_PARTS = 1024 };
void vector_norm(struct device *device, double *ret_norm, double *parts, const float *x,
                 size_t count);
// x *= limit / *norm where that is below 1. *norm lies on the device.
void vector_clip(struct device *device, float *x, const double *norm, double limit, size_t count);

// One step of adamw.h, to the bit as on the CPU. What lies in the `bare` intervals does not decay:
// sorted, [bare_count][2], on the device. `narrow`, if not NULL, gets the new p as bf16.
struct adamw_step {
    struct adamw_factors by;
    const uint64_t *bare;
    uint32_t bare_count;
    uint64_t begin; // Of p in the parameters, which `bare` counts
};
void vector_adamw(struct device *device, float *p, bf16 *narrow, float *m, float *v, const float *g,
                  const struct adamw_step *step, size_t count);
