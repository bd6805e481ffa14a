#pragma once
// attention_rows -- for kernels with one warp per row of one head: lane l has numbers l, l + 32,
// ... of the head, N of them.

#include "common/compute/cuda/attention.cuh"

#include <math.h>

enum { WARPS = 4 };

template <int N, typename T>
__device__ inline void load_head(const T *from, uint32_t head_dim, float (&to)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        const uint32_t at = threadIdx.x % WARP + i * WARP;
        to[i] = at < head_dim ? to_float(from[at]) : 0.0f;
    }
}

template <int N, typename T>
__device__ inline void store_head(T *to, uint32_t head_dim, const float (&from)[N], float factor)
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        const uint32_t at = threadIdx.x % WARP + i * WARP;
        if (at < head_dim) to[at] = from_float<T>(from[i] * factor);
    }
}

template <int N> __device__ inline float dot(const float (&a)[N], const float (&b)[N])
{
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < N; i++) sum += a[i] * b[i];
    return warp_sum(sum);
}

// Where things of (sample, head) lie; the row is added.
struct place {
    size_t width, out_width, q, k, v, out, sums;
};

__device__ inline struct place place_of(const struct attention_shape &shape, uint32_t sample,
                                        uint32_t head)
{
    const size_t d = shape.head_dim, width = attention_width(shape);
    const size_t first = (size_t)sample * shape.seq * width;
    const size_t kv = head / (shape.heads / shape.kv_heads);
    struct place place;
    place.width = width, place.out_width = shape.heads * d;
    place.q = first + head * d;
    place.k = first + (shape.heads + kv) * d;
    place.v = first + (shape.heads + shape.kv_heads + kv) * d;
    place.out = (size_t)sample * shape.seq * place.out_width + head * d;
    place.sums = ((size_t)sample * shape.heads + head) * shape.seq;
    return place;
}

// Calls work.template run<N>() with the smallest N of 1, 2, 4, 8, 16 that holds a head.
template <typename F> static inline void by_head_dim(uint32_t head_dim, const F &work)
{
    if (head_dim <= 1 * WARP) work.template run<1>();
    else if (head_dim <= 2 * WARP) work.template run<2>();
    else if (head_dim <= 4 * WARP) work.template run<4>();
    else if (head_dim <= 8 * WARP) work.template run<8>();
    else work.template run<16>();
}

static inline dim3 grid_of(const struct attention_shape *shape, uint32_t heads)
{
    return dim3(device_blocks(shape->seq, WARPS), shape->batch * heads);
}
