// Cross-entropy: the softmax of a row in one walk (running maximum and sum, joined in a fixed
// tree), then the gradient in a second one, in place of the logits. After it, the sum of the losses
// in double.
#include "common/compute/cuda/rows.cuh"

#include <math.h>

enum { CLASSIFIER_THREADS = 1024, SUM_THREADS = 1024 };

// The largest of some logits and the sum of exp(logit - largest): two halves make a whole.
struct softmax {
    float high, sum;
};

__device__ inline struct softmax joined(struct softmax a, struct softmax b)
{
    const float high = fmaxf(a.high, b.high);
    if (high == -INFINITY) return a; // Both are empty
    return { high, a.sum * __expf(a.high - high) + b.sum * __expf(b.high - high) };
}

__device__ inline struct softmax warp_joined(struct softmax x)
{
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        const struct softmax other = { __shfl_xor_sync(~0u, x.high, distance),
                                       __shfl_xor_sync(~0u, x.sum, distance) };
        x = threadIdx.x & distance ? joined(other, x) : joined(x, other); // Both sides alike
    }
    return x;
}

// One block per row: once through the logits for maximum and sum, once more for the gradient.
// Logits that are not finite give a loss that is not.
template <typename T, int V>
__global__ void __launch_bounds__(CLASSIFIER_THREADS)
    classifier_kernel(T *logits, float *losses, const uint32_t *targets, const float *weight,
                      size_t vocab)
{
    __shared__ float highs[WARP], sums[WARP];
    T *row = logits + blockIdx.x * vocab;
    const uint32_t target = targets[blockIdx.x];
    struct softmax all = { -INFINITY, 0.0f };
    for (size_t i = threadIdx.x * V; i < vocab; i += CLASSIFIER_THREADS * V) {
        float x[V];
        load<V>(row + i, x);
        struct softmax here = { x[0], 0.0f };
#pragma unroll
        for (int j = 1; j < V; j++) here.high = fmaxf(here.high, x[j]);
#pragma unroll
        for (int j = 0; j < V; j++) here.sum += __expf(x[j] - here.high);
        all = joined(all, here);
    }
    all = warp_joined(all);
    if (threadIdx.x % WARP == 0) {
        highs[threadIdx.x / WARP] = all.high;
        sums[threadIdx.x / WARP] = all.sum;
    }
    const float own = to_float(row[target]);
    __syncthreads(); // Also: `own` is read before a logit changes
    all = warp_joined({ highs[threadIdx.x % WARP], sums[threadIdx.x % WARP] });
    if (threadIdx.x == 0) losses[blockIdx.x] = logf(all.sum) + (all.high - own);
    if (!weight) return;
    const float factor = *weight, inverse = factor / all.sum;
    for (size_t i = threadIdx.x * V; i < vocab; i += CLASSIFIER_THREADS * V) {
        float x[V];
        load<V>(row + i, x);
#pragma unroll
        for (int j = 0; j < V; j++)
            x[j] = __expf(x[j] - all.high) * inverse - (i + j == target ? factor : 0.0f);
        store<V>(row + i, x);
    }
}

__global__ void loss_sum_kernel(double *ret_sum, const float *losses, size_t rows)
{
    __shared__ double sums[SUM_THREADS];
    double sum = 0.0;
    for (size_t i = threadIdx.x; i < rows; i += SUM_THREADS) sum += (double)losses[i];
    sums[threadIdx.x] = sum;
    for (unsigned half = SUM_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) *ret_sum = sums[0];
}

template <typename T>
void classifier(struct device *device, T *logits, float *losses, const uint32_t *targets,
                const float *weight, size_t rows, size_t vocab)
{
    const dim3 grid((unsigned)rows), block(CLASSIFIER_THREADS);
    if (rows_are_wide<T>(vocab))
        DEVICE_LAUNCH(device, grid, block, 0, (classifier_kernel<T, wide<T>::count>), logits,
                      losses, targets, weight, vocab);
    else
        DEVICE_LAUNCH(device, grid, block, 0, (classifier_kernel<T, 1>), logits, losses, targets,
                      weight, vocab);
}

void loss_sum(struct device *device, double *ret_sum, const float *losses, size_t rows)
{
    DEVICE_LAUNCH(device, dim3(1), dim3(SUM_THREADS), 0, loss_sum_kernel, ret_sum, losses, rows);
}

template void classifier<float>(struct device *, float *, float *, const uint32_t *, const float *,
                                size_t, size_t);
template void classifier<bf16>(struct device *, bf16 *, float *, const uint32_t *, const float *,
                               size_t, size_t);
