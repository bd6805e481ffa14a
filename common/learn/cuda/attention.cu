#include "common/learn/cuda/attention.cuh"

#include <math.h>

enum { WARPS = 4 };

// ---- One warp per row; lane l has numbers l, l + 32, ... of a head: N of them.

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

template <typename T, int N>
__global__ void plain_forward_kernel(T *out, float *log_sum, const T *qkv,
                                     struct attention_shape shape, float scale)
{
    const uint32_t row = blockIdx.x * WARPS + threadIdx.x / WARP;
    if (row >= shape.seq) return; // All of the warp
    const uint32_t head = blockIdx.y % shape.heads, sample = blockIdx.y / shape.heads;
    const struct place at = place_of(shape, sample, head);
    float q[N], x[N], sum[N] = {}, high = -INFINITY, total = 0.0f;
    load_head(qkv + at.q + row * at.width, shape.head_dim, q);
    for (uint32_t key = 0; key <= row; key++) {
        load_head(qkv + at.k + key * at.width, shape.head_dim, x);
        const float score = dot(q, x) * scale, higher = fmaxf(high, score);
        const float shrink = expf(high - higher), p = expf(score - higher);
        load_head(qkv + at.v + key * at.width, shape.head_dim, x);
#pragma unroll
        for (int i = 0; i < N; i++) sum[i] = sum[i] * shrink + p * x[i];
        total = total * shrink + p;
        high = higher;
    }
    store_head(out + at.out + row * at.out_width, shape.head_dim, sum, 1.0f / total);
    if (threadIdx.x % WARP == 0) log_sum[at.sums + row] = high + logf(total);
}

// delta[row] = sum of d_out · out: what the softmax takes off every dp of the row.
template <typename T, int N>
__global__ void delta_kernel(float *delta, const T *d_out, const T *out,
                             struct attention_shape shape)
{
    const uint32_t row = blockIdx.x * WARPS + threadIdx.x / WARP;
    if (row >= shape.seq) return;
    const uint32_t head = blockIdx.y % shape.heads, sample = blockIdx.y / shape.heads;
    const struct place at = place_of(shape, sample, head);
    float a[N], b[N];
    load_head(d_out + at.out + row * at.out_width, shape.head_dim, a);
    load_head(out + at.out + row * at.out_width, shape.head_dim, b);
    const float sum = dot(a, b);
    if (threadIdx.x % WARP == 0) delta[at.sums + row] = sum;
}

template <typename T, int N>
__global__ void plain_query_kernel(T *d_qkv, const float *delta, const T *d_out,
                                   const float *log_sum, const T *qkv,
                                   struct attention_shape shape, float scale)
{
    const uint32_t row = blockIdx.x * WARPS + threadIdx.x / WARP;
    if (row >= shape.seq) return;
    const uint32_t head = blockIdx.y % shape.heads, sample = blockIdx.y / shape.heads;
    const struct place at = place_of(shape, sample, head);
    float q[N], d[N], x[N], k[N], sum[N] = {};
    load_head(qkv + at.q + row * at.width, shape.head_dim, q);
    load_head(d_out + at.out + row * at.out_width, shape.head_dim, d);
    for (uint32_t key = 0; key <= row; key++) {
        load_head(qkv + at.k + key * at.width, shape.head_dim, k);
        load_head(qkv + at.v + key * at.width, shape.head_dim, x);
        const float p = expf(dot(q, k) * scale - log_sum[at.sums + row]);
        const float ds = p * (dot(d, x) - delta[at.sums + row]);
#pragma unroll
        for (int i = 0; i < N; i++) sum[i] += ds * k[i];
    }
    store_head(d_qkv + at.q + row * at.width, shape.head_dim, sum, scale);
}

template <typename T, int N>
__global__ void plain_key_kernel(T *d_qkv, const float *delta, const T *d_out, const float *log_sum,
                                 const T *qkv, struct attention_shape shape, float scale)
{
    const uint32_t key = blockIdx.x * WARPS + threadIdx.x / WARP;
    if (key >= shape.seq) return;
    const uint32_t kv = blockIdx.y % shape.kv_heads, sample = blockIdx.y / shape.kv_heads;
    const uint32_t group = shape.heads / shape.kv_heads;
    const struct place own = place_of(shape, sample, kv * group);
    float k[N], v[N], x[N], d[N], dk[N] = {}, dv[N] = {};
    load_head(qkv + own.k + key * own.width, shape.head_dim, k);
    load_head(qkv + own.v + key * own.width, shape.head_dim, v);
    for (uint32_t head = kv * group; head < (kv + 1) * group; head++) {
        const struct place at = place_of(shape, sample, head);
        for (uint32_t row = key; row < shape.seq; row++) {
            load_head(qkv + at.q + row * at.width, shape.head_dim, x);
            load_head(d_out + at.out + row * at.out_width, shape.head_dim, d);
            const float p = expf(dot(x, k) * scale - log_sum[at.sums + row]);
            const float ds = p * (dot(d, v) - delta[at.sums + row]);
#pragma unroll
            for (int i = 0; i < N; i++) dk[i] += ds * x[i], dv[i] += p * d[i];
        }
    }
    store_head(d_qkv + own.k + key * own.width, shape.head_dim, dk, scale);
    store_head(d_qkv + own.v + key * own.width, shape.head_dim, dv, 1.0f);
}

// Calls work.template run<N>() with the smallest N of 1, 2, 4, 8, 16 that holds a head.
template <typename F> static void by_head_dim(uint32_t head_dim, const F &work)
{
    if (head_dim <= 1 * WARP) work.template run<1>();
    else if (head_dim <= 2 * WARP) work.template run<2>();
    else if (head_dim <= 4 * WARP) work.template run<4>();
    else if (head_dim <= 8 * WARP) work.template run<8>();
    else work.template run<16>();
}

static dim3 grid_of(const struct attention_shape *shape, uint32_t heads)
{
    return dim3(device_blocks(shape->seq, WARPS), shape->batch * heads);
}

static float scale_of(const struct attention_shape *shape)
{
    return 1.0f / sqrtf((float)shape->head_dim);
}

template <typename T> struct plain_forward {
    struct device *device; T *out; float *log_sum; const T *qkv;
    const struct attention_shape *shape;
    template <int N> void run() const
    {
        DEVICE_LAUNCH(device, grid_of(shape, shape->heads), dim3(WARPS * WARP), 0,
                      (plain_forward_kernel<T, N>), out, log_sum, qkv, *shape, scale_of(shape));
    }
};

template <typename T> struct take_delta {
    struct device *device; float *delta; const T *d_out, *out;
    const struct attention_shape *shape;
    template <int N> void run() const
    {
        DEVICE_LAUNCH(device, grid_of(shape, shape->heads), dim3(WARPS * WARP), 0,
                      (delta_kernel<T, N>), delta, d_out, out, *shape);
    }
};

template <typename T> struct plain_back {
    struct device *device; T *d_qkv; const float *delta; const T *d_out; const float *log_sum;
    const T *qkv; const struct attention_shape *shape;
    template <int N> void run() const
    {
        DEVICE_LAUNCH(device, grid_of(shape, shape->heads), dim3(WARPS * WARP), 0,
                      (plain_query_kernel<T, N>), d_qkv, delta, d_out, log_sum, qkv, *shape,
                      scale_of(shape));
        DEVICE_LAUNCH(device, grid_of(shape, shape->kv_heads), dim3(WARPS * WARP), 0,
                      (plain_key_kernel<T, N>), d_qkv, delta, d_out, log_sum, qkv, *shape,
                      scale_of(shape));
    }
};

template <typename T>
void attention_plain_forward(struct device *device, T *out, float *log_sum, const T *qkv,
                             const struct attention_shape *shape)
{
    by_head_dim(shape->head_dim, plain_forward<T>{ device, out, log_sum, qkv, shape });
}

template <typename T>
void attention_plain_back(struct device *device, T *d_qkv, const float *delta, const T *d_out,
                          const float *log_sum, const T *qkv, const struct attention_shape *shape)
{
    by_head_dim(shape->head_dim,
                plain_back<T>{ device, d_qkv, delta, d_out, log_sum, qkv, shape });
}

// ---- The choice

bool attention_flash_can(const struct attention_shape *shape)
{
    switch (shape->head_dim) {
    case 32: case 48: case 64: case 96: case 128: return true;
    default: return false;
    }
}

template <>
void attention_forward<float>(struct device *device, float *out, float *log_sum, const float *qkv,
                              const struct attention_shape *shape)
{
    attention_plain_forward(device, out, log_sum, qkv, shape);
}

template <>
void attention_forward<bf16>(struct device *device, bf16 *out, float *log_sum, const bf16 *qkv,
                             const struct attention_shape *shape)
{
    if (attention_flash_can(shape)) attention_flash_forward(device, out, log_sum, qkv, shape);
    else attention_plain_forward(device, out, log_sum, qkv, shape);
}

template <>
void attention_back<float>(struct device *device, float *d_qkv, float *delta, const float *d_out,
                           const float *out, const float *log_sum, const float *qkv,
                           const struct attention_shape *shape)
{
    by_head_dim(shape->head_dim, take_delta<float>{ device, delta, d_out, out, shape });
    attention_plain_back(device, d_qkv, delta, d_out, log_sum, qkv, shape);
}

template <>
void attention_back<bf16>(struct device *device, bf16 *d_qkv, float *delta, const bf16 *d_out,
                          const bf16 *out, const float *log_sum, const bf16 *qkv,
                          const struct attention_shape *shape)
{
    by_head_dim(shape->head_dim, take_delta<bf16>{ device, delta, d_out, out, shape });
    if (attention_flash_can(shape))
        attention_flash_back(device, d_qkv, delta, d_out, log_sum, qkv, shape);
    else attention_plain_back(device, d_qkv, delta, d_out, log_sum, qkv, shape);
}

#define PLAIN(T)                                                                                   \
    template void attention_plain_forward<T>(struct device *, T *, float *, const T *,             \
                                             const struct attention_shape *);                      \
    template void attention_plain_back<T>(struct device *, T *, const float *, const T *,          \
                                          const float *, const T *,                                \
                                          const struct attention_shape *);
PLAIN(float)
PLAIN(bf16)
