#pragma once
// train_models -- the two models that training is measured on: 8.3 and 31.6 million parameters.

#include "common/base/ensure.h"
#include "common/base/large_pages.h"
#include "common/model/model_layout.h"

#include <stdlib.h>

struct bench_model {
    const char *name;
    struct model_shape shape;
    uint32_t batch;
};

static const struct bench_model models[] = {
    { "8m",
      { .vocab = 4096,
        .dim = 288,
        .layers = 6,
        .heads = 6,
        .kv_heads = 6,
        .head_dim = 48,
        .ffn = 768,
        .seq_len_max = 256,
        .rope_theta = 10000,
        .rms_eps = 1e-5 },
      8 },
    { "32m",
      { .vocab = 8192,
        .dim = 512,
        .layers = 8,
        .heads = 8,
        .kv_heads = 4,
        .head_dim = 64,
        .ffn = 1376,
        .seq_len_max = 512,
        .rope_theta = 10000,
        .rms_eps = 1e-5 },
      4 },
};

// Small numbers of either sign, as parameters are. The caller frees.
static inline float *train_numbers(uint64_t count)
{
    float *x = large_pages_new(count * sizeof *x); // As a learner's vectors
    uint32_t state = 1;
    ensure(x);
    for (uint64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)state * 0x1p-31f * 0.03f;
    }
    return x;
}
