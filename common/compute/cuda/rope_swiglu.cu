// Rotation of queries and keys in place, and the SwiGLU with its gradient. No number depends on
// another row.
#include "common/compute/cuda/rows.cuh"

enum { THREADS = 256 };

// A thread turns V pairs (i, i + head_dim/2) of one head.
template <typename T, int V>
__global__ void rope_kernel(T *x, const float *cosine, const float *sine, uint32_t rows,
                            uint32_t seq, uint32_t heads, uint32_t half, size_t width, float turn)
{
    const uint32_t unit = blockIdx.x * THREADS + threadIdx.x, per_head = half / V;
    const uint32_t row = unit / (heads * per_head), within = unit % (heads * per_head);
    if (row >= rows) return;
    const uint32_t i = within % per_head * V;
    const size_t table = (size_t)(row % seq) * half + i;
    T *low = x + row * width + (size_t)(within / per_head) * 2 * half + i, *high = low + half;
    float a[V], b[V], c[V], s[V], turned[V];
    load<V>(low, a);
    load<V>(high, b);
    load<V>(cosine + table, c);
    load<V>(sine + table, s);
#pragma unroll
    for (int j = 0; j < V; j++) turned[j] = a[j] * c[j] - b[j] * (s[j] * turn);
    store<V>(low, turned);
#pragma unroll
    for (int j = 0; j < V; j++) turned[j] = b[j] * c[j] + a[j] * (s[j] * turn);
    store<V>(high, turned);
}

__device__ inline float sigmoid(float x) { return 1.0f / (1.0f + __expf(-x)); }

template <typename T, int V>
__global__ void swiglu_forward_kernel(T *y, const T *gate_up, uint32_t rows, uint32_t ffn)
{
    const uint32_t unit = blockIdx.x * THREADS + threadIdx.x, row = unit / (ffn / V);
    if (row >= rows) return;
    const T *gate = gate_up + (size_t)row * 2 * ffn + unit % (ffn / V) * V;
    float g[V], u[V];
    load<V>(gate, g);
    load<V>(gate + ffn, u);
#pragma unroll
    for (int j = 0; j < V; j++) g[j] = g[j] * sigmoid(g[j]) * u[j];
    store<V>(y + (size_t)unit * V, g);
}

// silu(x) = x s(x), so silu'(x) = s + x s (1 - s).
template <typename T, int V>
__global__ void swiglu_back_kernel(T *d_gate_up, const T *gate_up, const T *dy, uint32_t rows,
                                   uint32_t ffn)
{
    const uint32_t unit = blockIdx.x * THREADS + threadIdx.x, row = unit / (ffn / V);
    if (row >= rows) return;
    const size_t gate_at = (size_t)row * 2 * ffn + unit % (ffn / V) * V;
    float g[V], u[V], d[V];
    load<V>(gate_up + gate_at, g);
    load<V>(gate_up + gate_at + ffn, u);
    load<V>(dy + (size_t)unit * V, d);
#pragma unroll
    for (int j = 0; j < V; j++) {
        const float s = sigmoid(g[j]), silu = g[j] * s;
        g[j] = d[j] * u[j] * (s + silu * (1.0f - s));
        u[j] = d[j] * silu;
    }
    store<V>(d_gate_up + gate_at, g);
    store<V>(d_gate_up + gate_at + ffn, u);
}

template <typename T>
void rope(struct device *device, T *x, const float *cosine, const float *sine, size_t rows,
          size_t seq, size_t heads, size_t head_dim, size_t width, float turn)
{
    const size_t half = head_dim / 2, all = rows * heads * half;
    const bool is_wide = half % 8 == 0 && width % 8 == 0; // The tables' rows too, in floats
    const size_t v = is_wide ? wide<T>::count : 1;
    const dim3 grid(device_blocks(all, THREADS * v)), block(THREADS);
    if (v > 1)
        DEVICE_LAUNCH(device, grid, block, 0, (rope_kernel<T, wide<T>::count>), x, cosine, sine,
                      rows, seq, heads, half, width, turn);
    else
        DEVICE_LAUNCH(device, grid, block, 0, (rope_kernel<T, 1>), x, cosine, sine, rows, seq,
                      heads, half, width, turn);
}

template <typename T>
void swiglu_forward(struct device *device, T *y, const T *gate_up, size_t rows, size_t ffn)
{
    const size_t v = rows_are_wide<T>(ffn) ? wide<T>::count : 1;
    const dim3 grid(device_blocks(rows * ffn, THREADS * v)), block(THREADS);
    if (v > 1)
        DEVICE_LAUNCH(device, grid, block, 0, (swiglu_forward_kernel<T, wide<T>::count>), y,
                      gate_up, rows, ffn);
    else
        DEVICE_LAUNCH(device, grid, block, 0, (swiglu_forward_kernel<T, 1>), y, gate_up, rows, ffn);
}

template <typename T>
void swiglu_back(struct device *device, T *d_gate_up, const T *gate_up, const T *dy, size_t rows,
                 size_t ffn)
{
    const size_t v = rows_are_wide<T>(ffn) ? wide<T>::count : 1;
    const dim3 grid(device_blocks(rows * ffn, THREADS * v)), block(THREADS);
    if (v > 1)
        DEVICE_LAUNCH(device, grid, block, 0, (swiglu_back_kernel<T, wide<T>::count>), d_gate_up,
                      gate_up, dy, rows, ffn);
    else
        DEVICE_LAUNCH(device, grid, block, 0, (swiglu_back_kernel<T, 1>), d_gate_up, gate_up, dy,
                      rows, ffn);
}

#define ROPE_SWIGLU(T)                                                                             \
    template void rope<T>(struct device *, T *, const float *, const float *, size_t, size_t,      \
                          size_t, size_t, size_t, float);                                          \
    template void swiglu_forward<T>(struct device *, T *, const T *, size_t, size_t);              \
    template void swiglu_back<T>(struct device *, T *, const T *, const T *, size_t, size_t);
ROPE_SWIGLU(float)
ROPE_SWIGLU(bf16)
