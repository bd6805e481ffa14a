// The embedding's two ways. Forward copies rows of the table. The gradient goes by tokens, not by
// rows: the host has sorted the rows of each token, so each row of the gradient has one writer.
#include "common/compute/cuda/rows.cuh"

enum { GATHER_THREADS = 256, BUCKET_LANES = 8 };

template <typename T, int V>
__global__ void gather_kernel(T *x, const uint32_t *tokens, const T *table, uint32_t rows,
                              uint32_t dim)
{
    const uint32_t unit = blockIdx.x * GATHER_THREADS + threadIdx.x, row = unit / (dim / V);
    if (row >= rows) return;
    const size_t column = unit % (dim / V) * V;
    *reinterpret_cast<pack<T, V> *>(x + (size_t)unit * V) =
        *reinterpret_cast<const pack<T, V> *>(table + (size_t)tokens[row] * dim + column);
}

// Block (x, y): columns of x, bucket y (and every gridDim.y-th after it). A frequent token has many
// rows, so BUCKET_LANES threads share them; their sums are added in order.
template <typename T, int V>
__global__ void buckets_kernel(float *grad, const T *dx, struct embedding_buckets buckets,
                               size_t dim)
{
    __shared__ float shared[BUCKET_LANES][WARP * 8];
    const size_t column = ((size_t)blockIdx.x * WARP + threadIdx.x) * V;
    const uint32_t count = *buckets.count;
    for (uint32_t bucket = blockIdx.y; bucket < count; bucket += gridDim.y) {
        const uint32_t end = buckets.start[bucket + 1];
        float sum[V] = {};
        for (uint32_t i = buckets.start[bucket] + threadIdx.y; i < end && column < dim;
             i += BUCKET_LANES) {
            float d[V];
            load<V>(dx + buckets.order[i] * dim + column, d);
#pragma unroll
            for (int j = 0; j < V; j++) sum[j] += d[j];
        }
        __syncthreads();
#pragma unroll
        for (int j = 0; j < V; j++) shared[threadIdx.y][j * WARP + threadIdx.x] = sum[j];
        __syncthreads();
        if (threadIdx.y != 0 || column >= dim) continue;
        float *to = grad + buckets.token[bucket] * dim + column;
#pragma unroll
        for (int j = 0; j < V; j++) {
            float all = 0.0f;
            for (int lane = 0; lane < BUCKET_LANES; lane++)
                all += shared[lane][j * WARP + threadIdx.x];
            to[j] += all;
        }
    }
}

template <typename T>
void embedding_gather(struct device *device, T *x, const uint32_t *tokens, const T *table,
                      size_t rows, size_t dim)
{
    const size_t v = rows_are_wide<T>(dim) ? wide<T>::count : 1;
    const dim3 grid(device_blocks(rows * dim, GATHER_THREADS * v)), block(GATHER_THREADS);
    if (v > 1)
        DEVICE_LAUNCH(device, grid, block, 0, (gather_kernel<T, wide<T>::count>), x, tokens, table,
                      rows, dim);
    else DEVICE_LAUNCH(device, grid, block, 0, (gather_kernel<T, 1>), x, tokens, table, rows, dim);
}

template <typename T>
void embedding_back(struct device *device, float *grad, const T *dx,
                    const struct embedding_buckets *buckets, size_t rows, size_t dim)
{
    const size_t v = rows_are_wide<T>(dim) ? wide<T>::count : 1, tall = rows < 4096 ? rows : 4096;
    const dim3 grid(device_blocks(dim, WARP * v), (unsigned)tall), block(WARP, BUCKET_LANES);
    if (v > 1)
        DEVICE_LAUNCH(device, grid, block, 0, (buckets_kernel<T, wide<T>::count>), grad, dx,
                      *buckets, dim);
    else DEVICE_LAUNCH(device, grid, block, 0, (buckets_kernel<T, 1>), grad, dx, *buckets, dim);
}

#define EMBEDDING(T)                                                                               \
    template void embedding_gather<T>(struct device *, T *, const uint32_t *, const T *, size_t,   \
                                      size_t);                                                     \
    template void embedding_back<T>(struct device *, float *, const T *,                           \
                                    const struct embedding_buckets *, size_t, size_t);
EMBEDDING(float)
EMBEDDING(bf16)
