#pragma once
// train_models -- the two models that training is measured on: 8.3 and 31.6 million parameters.

#include "common/learn/model_layout.h"

struct bench_model { const char *name; struct model_shape shape; uint32_t batch; };

static const struct bench_model models[] = {
    { "8m", { .vocab = 4096, .dim = 288, .layers = 6, .heads = 6, .kv_heads = 6, .head_dim = 48,
              .ffn = 768, .seq_len_max = 256, .rope_theta = 10000, .rms_eps = 1e-5 }, 8 },
    { "32m", { .vocab = 8192, .dim = 512, .layers = 8, .heads = 8, .kv_heads = 4, .head_dim = 64,
               .ffn = 1376, .seq_len_max = 512, .rope_theta = 10000, .rms_eps = 1e-5 }, 4 },
};
