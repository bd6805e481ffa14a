// RMSNorm, a warp per row. The gradient of its weights is a sum over all rows: first in parts, then
// the parts in their order, so that it needs no atomics.
#include "common/compute/cuda/rows.cuh"

enum { ROWS_PER_BLOCK = 8, ROW_LANES = 8 };

// One warp per row.
template <typename T, int V>
__global__ void norm_forward_kernel(T *y, float *inverse, const T *x, const T *w, float eps,
                                    size_t rows, size_t dim)
{
    const size_t row = (size_t)blockIdx.x * ROWS_PER_BLOCK + threadIdx.x / WARP;
    const unsigned lane = threadIdx.x % WARP;
    if (row >= rows) return; // All of the warp
    x += row * dim;
    y += row * dim;
    float sum = 0.0f;
    for (size_t i = lane * V; i < dim; i += WARP * V) {
        float a[V];
        load<V>(x + i, a);
#pragma unroll
        for (int j = 0; j < V; j++) sum += a[j] * a[j];
    }
    const float scale = 1.0f / sqrtf(warp_sum(sum) / (float)dim + eps);
    for (size_t i = lane * V; i < dim; i += WARP * V) {
        float a[V], b[V];
        load<V>(x + i, a);
        load<V>(w + i, b);
#pragma unroll
        for (int j = 0; j < V; j++) a[j] = a[j] * scale * b[j];
        store<V>(y + i, a);
    }
    if (lane == 0) inverse[row] = scale;
}

// With u = x / rms(x) and g = dy · w: dx += (g - u mean(g u)) / rms(x).
template <typename T, int V>
__global__ void norm_back_kernel(T *dx, const T *dy, const T *x, const T *w, const float *inverse,
                                 size_t rows, size_t dim)
{
    const size_t row = (size_t)blockIdx.x * ROWS_PER_BLOCK + threadIdx.x / WARP;
    const unsigned lane = threadIdx.x % WARP;
    if (row >= rows) return;
    x += row * dim, dy += row * dim, dx += row * dim;
    const float scale = inverse[row];
    float sum = 0.0f;
    for (size_t i = lane * V; i < dim; i += WARP * V) {
        float a[V], b[V], d[V];
        load<V>(x + i, a);
        load<V>(w + i, b);
        load<V>(dy + i, d);
#pragma unroll
        for (int j = 0; j < V; j++) sum += d[j] * b[j] * (a[j] * scale);
    }
    const float mean = warp_sum(sum) / (float)dim;
    for (size_t i = lane * V; i < dim; i += WARP * V) {
        float a[V], b[V], d[V], old[V];
        load<V>(x + i, a);
        load<V>(w + i, b);
        load<V>(dy + i, d);
        load<V>(dx + i, old);
#pragma unroll
        for (int j = 0; j < V; j++) old[j] += (d[j] * b[j] - a[j] * scale * mean) * scale;
        store<V>(dx + i, old);
    }
}

// First stage: block (x, y) has WARP · V columns and part y of the rows.
template <typename T, int V>
__global__ void norm_weight_parts_kernel(float *partial, const T *dy, const T *x,
                                         const float *inverse, size_t rows, size_t dim)
{
    __shared__ float shared[ROW_LANES][WARP * 8];
    const size_t column = ((size_t)blockIdx.x * WARP + threadIdx.x) * V;
    const size_t first = rows * blockIdx.y / NORM_PARTS, end = rows * (blockIdx.y + 1) / NORM_PARTS;
    float sum[V] = {};
    for (size_t row = first + threadIdx.y; row < end && column < dim; row += ROW_LANES) {
        float a[V], d[V];
        load<V>(x + row * dim + column, a);
        load<V>(dy + row * dim + column, d);
        const float scale = inverse[row];
#pragma unroll
        for (int j = 0; j < V; j++) sum[j] += d[j] * (a[j] * scale);
    }
#pragma unroll
    for (int j = 0; j < V; j++) shared[threadIdx.y][j * WARP + threadIdx.x] = sum[j];
    __syncthreads();
    if (threadIdx.y != 0 || column >= dim) return;
#pragma unroll
    for (int j = 0; j < V; j++) {
        float all = 0.0f;
        for (int lane = 0; lane < ROW_LANES; lane++) all += shared[lane][j * WARP + threadIdx.x];
        partial[(size_t)blockIdx.y * dim + column + j] = all;
    }
}

__global__ void norm_weight_sum_kernel(float *grad, const float *partial, size_t dim)
{
    const size_t column = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= dim) return;
    float sum = 0.0f;
    for (size_t part = 0; part < NORM_PARTS; part++) sum += partial[part * dim + column];
    grad[column] += sum;
}

template <typename T>
void norm_forward(struct device *device, T *y, float *inverse, const T *x, const T *w, float eps,
                  size_t rows, size_t dim)
{
    const dim3 grid(device_blocks(rows, ROWS_PER_BLOCK)), block(ROWS_PER_BLOCK * WARP);
    if (rows_are_wide<T>(dim))
        DEVICE_LAUNCH(device, grid, block, 0, (norm_forward_kernel<T, wide<T>::count>), y, inverse,
                      x, w, eps, rows, dim);
    else
        DEVICE_LAUNCH(device, grid, block, 0, (norm_forward_kernel<T, 1>), y, inverse, x, w, eps,
                      rows, dim);
}

template <typename T>
void norm_back(struct device *device, T *dx, const T *dy, const T *x, const T *w,
               const float *inverse, size_t rows, size_t dim)
{
    const dim3 grid(device_blocks(rows, ROWS_PER_BLOCK)), block(ROWS_PER_BLOCK * WARP);
    if (rows_are_wide<T>(dim))
        DEVICE_LAUNCH(device, grid, block, 0, (norm_back_kernel<T, wide<T>::count>), dx, dy, x, w,
                      inverse, rows, dim);
    else
        DEVICE_LAUNCH(device, grid, block, 0, (norm_back_kernel<T, 1>), dx, dy, x, w, inverse, rows,
                      dim);
}

template <typename T>
void norm_weight_back(struct device *device, float *grad, float *partial, const T *dy, const T *x,
                      const float *inverse, size_t rows, size_t dim)
{
    const int v = rows_are_wide<T>(dim) ? wide<T>::count : 1;
    const dim3 grid(device_blocks(dim, WARP * (size_t)v), NORM_PARTS), block(WARP, ROW_LANES);
    if (v > 1)
        DEVICE_LAUNCH(device, grid, block, 0, (norm_weight_parts_kernel<T, wide<T>::count>),
                      partial, dy, x, inverse, rows, dim);
    else
        DEVICE_LAUNCH(device, grid, block, 0, (norm_weight_parts_kernel<T, 1>), partial, dy, x,
                      inverse, rows, dim);
    DEVICE_LAUNCH(device, dim3(device_blocks(dim, 256)), dim3(256), 0, norm_weight_sum_kernel, grad,
                  (const float *)partial, dim);
}

#define NORM(T)                                                                                    \
    template void norm_forward<T>(struct device *, T *, float *, const T *, const T *, float,      \
                                  size_t, size_t);                                                 \
    template void norm_back<T>(struct device *, T *, const T *, const T *, const T *,              \
                               const float *, size_t, size_t);                                     \
    template void norm_weight_back<T>(struct device *, float *, float *, const T *, const T *,     \
                                      const float *, size_t, size_t);
NORM(float)
NORM(bf16)
