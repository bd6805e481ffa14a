#pragma once
// attention -- causal attention with grouped queries, forward and backward, without a T x T matrix
// in memory (Dao 2023, "FlashAttention-2").
//
//     qkv [batch·seq][W]   rows [heads of q | kv_heads of k | kv_heads of v], W the sum of all
//     widths out [batch·seq][heads·head_dim]      log_sum, delta [batch][heads][seq] float32
//
// Two ways: `attention_plain_*` for any head_dim and type, one warp per row, right and slow; and on
// bf16 with a head_dim of 32, 48, 64, 96 or 128 the tensor cores (attention_flash_*). The backward
// pass goes twice, once by keys and once by queries, each writing what it alone owns: half as much
// work again as with atomic sums, and the same bits every time.

#include "common/compute/cuda/device.cuh"
#include "common/compute/cuda/numbers.cuh"

struct attention_shape {
    uint32_t batch, seq, heads, kv_heads, head_dim;
};

__host__ __device__ static inline size_t attention_width(const struct attention_shape &shape)
{
    return ((size_t)shape.heads + 2 * (size_t)shape.kv_heads) * shape.head_dim;
}

// Choose the way themselves. `delta` is scratch like log_sum.
template <typename T>
void attention_forward(struct device *device, T *out, float *log_sum, const T *qkv,
                       const struct attention_shape *shape);
template <typename T>
void attention_back(struct device *device, T *d_qkv, float *delta, const T *d_out, const T *out,
                    const float *log_sum, const T *qkv, const struct attention_shape *shape);

bool attention_flash_can(const struct attention_shape *shape);
void attention_flash_forward(struct device *device, bf16 *out, float *log_sum, const bf16 *qkv,
                             const struct attention_shape *shape);
void attention_flash_back(struct device *device, bf16 *d_qkv, const float *delta, const bf16 *d_out,
                          const float *log_sum, const bf16 *qkv,
                          const struct attention_shape *shape);

template <typename T>
void attention_plain_forward(struct device *device, T *out, float *log_sum, const T *qkv,
                             const struct attention_shape *shape);
template <typename T>
void attention_plain_back(struct device *device, T *d_qkv, const float *delta, const T *d_out,
                          const float *log_sum, const T *qkv, const struct attention_shape *shape);
