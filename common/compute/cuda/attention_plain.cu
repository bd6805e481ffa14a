// The plain way: one warp per row, keys one after the other. Forward keeps a running softmax. The
// backward pass has a kernel by queries and one by keys, so that each number has one writer.
#include "common/compute/cuda/attention_rows.cuh"

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

template <typename T, int N>
__global__ void plain_query_kernel(T *d_qkv, const float *delta, const T *d_out,
                                   const float *log_sum, const T *qkv, struct attention_shape shape,
                                   float scale)
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

static float scale_of(const struct attention_shape *shape)
{
    return 1.0f / sqrtf((float)shape->head_dim);
}

template <typename T> struct plain_forward {
    struct device *device;
    T *out;
    float *log_sum;
    const T *qkv;
    const struct attention_shape *shape;
    template <int N> void run() const
    {
        DEVICE_LAUNCH(device, grid_of(shape, shape->heads), dim3(WARPS * WARP), 0,
                      (plain_forward_kernel<T, N>), out, log_sum, qkv, *shape, scale_of(shape));
    }
};

template <typename T> struct plain_back {
    struct device *device;
    T *d_qkv;
    const float *delta;
    const T *d_out;
    const float *log_sum;
    const T *qkv;
    const struct attention_shape *shape;
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
    by_head_dim(shape->head_dim, plain_back<T>{ device, d_qkv, delta, d_out, log_sum, qkv, shape });
}

#define PLAIN(T)                                                                                   \
    template void attention_plain_forward<T>(struct device *, T *, float *, const T *,             \
                                             const struct attention_shape *);                      \
    template void attention_plain_back<T>(struct device *, T *, const float *, const T *,          \
                                          const float *, const T *,                                \
                                          const struct attention_shape *);
PLAIN(float)
PLAIN(bf16)
