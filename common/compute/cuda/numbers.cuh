#pragma once
// numbers -- what all kernels share: float32 and bf16 alike as float, several at a time, and sums
// of a warp and of a block in one order.
//
// A kernel is a template over T, the type of weights and activations (bf16, or float to be held
// against the CPU), and V, how many numbers a thread moves at once: 16 bytes where the width of the
// rows allows it, else one.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <stddef.h>
#include <stdint.h>

typedef __nv_bfloat16 bf16;

enum { WARP = 32 };

template <typename T> struct wide; // How many numbers fill 16 bytes
template <> struct wide<float> {
    enum { count = 4 };
};
template <> struct wide<bf16> {
    enum { count = 8 };
};

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(bf16 x) { return __bfloat162float(x); }
template <typename T> __device__ T from_float(float x);
template <> __device__ inline float from_float<float>(float x) { return x; }
template <> __device__ inline bf16 from_float<bf16>(float x) { return __float2bfloat16_rn(x); }

template <typename T, int V> struct alignas(sizeof(T) * V) pack {
    T v[V];
};

template <int V, typename T> __device__ inline void load(const T *from, float (&to)[V])
{
    const pack<T, V> all = *reinterpret_cast<const pack<T, V> *>(from);
#pragma unroll
    for (int i = 0; i < V; i++) to[i] = to_float(all.v[i]);
}

template <int V, typename T> __device__ inline void store(T *to, const float (&from)[V])
{
    pack<T, V> all;
#pragma unroll
    for (int i = 0; i < V; i++) all.v[i] = from_float<T>(from[i]);
    *reinterpret_cast<pack<T, V> *>(to) = all;
}

// All lanes get the result.
__device__ inline float warp_sum(float x)
{
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        x += __shfl_xor_sync(~0u, x, distance);
    return x;
}

// Of a block of whole warps, at most 32; all threads get the result. Has barriers on both sides of
// its use of `shared` [32].
__device__ inline uint32_t block_sum(uint32_t x, uint32_t *shared)
{
    const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        x += __shfl_xor_sync(~0u, x, distance);
    __syncthreads();
    if (lane == 0) shared[warp] = x;
    __syncthreads();
    uint32_t sum = 0;
    for (unsigned i = 0; i < blockDim.x / WARP; i++) sum += shared[i];
    return sum;
}

// Picks V for a kernel: WIDE if every row of `width` numbers begins at 16 bytes, else one.
template <typename T> static inline bool rows_are_wide(size_t width)
{
    return width % wide<T>::count == 0;
}
