// The backward pass on the tensor cores, in two kernels: by keys for dK and dV, by queries for dQ.
// Both make the probabilities again from the scores and log_sum.
#include "common/compute/cuda/flash.cuh"

#include <math.h>

// ---- By keys: a block has 64 keys of one kv head, 16 for each warp, and goes through the queries
// of all its heads. Everything is turned (keys are rows), so that probabilities come out of one
// product as the operand of the next.

// p[key][query] from turned scores, and ds = p · (dp - delta). `log_sums` are in powers of two.
__device__ inline void turned_gradient(float (&scores)[FLASH_STEP / 8][4],
                                       float (&dp)[FLASH_STEP / 8][4], const float *log_sums,
                                       const float *deltas, int first_key, int first_query, int seq,
                                       float slope)
{
    const int lane = threadIdx.x % WARP;
    const bool edge = first_query < first_key + 16 || first_query + FLASH_STEP > seq;
#pragma unroll
    for (int j = 0; j < FLASH_STEP / 8; j++) {
        float sums[2], delta[2];
        load<2>(log_sums + j * 8 + lane % 4 * 2, sums);
        load<2>(deltas + j * 8 + lane % 4 * 2, delta);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int query = first_query + j * 8 + lane % 4 * 2 + i % 2;
            const int key = first_key + lane / 4 + i / 2 * 8;
            float p = exp2_fast(scores[j][i] * slope - sums[i % 2]);
            if (edge && (key > query || query >= seq)) p = 0.0f;
            scores[j][i] = p;
            dp[j][i] = p * (dp[j][i] - delta[i % 2]);
        }
    }
}

template <int D>
__global__ void __launch_bounds__(FLASH_THREADS)
    flash_keys_kernel(bf16 *d_qkv, const float *delta, const bf16 *d_out, const float *log_sum,
                      const bf16 *qkv, struct attention_shape shape, float scale)
{
    DEVICE_SHARED(bf16, memory);
    bf16 *keys = memory, *values = keys + flash<D>::tile;
    bf16 *queries = values + flash<D>::tile, *gradients = queries + 2 * flash<D>::tile; // Two each
    float *log_sums = reinterpret_cast<float *>(gradients + 2 * flash<D>::tile);
    float *deltas = log_sums + 2 * FLASH_STEP;
    const int seq = (int)shape.seq, first = (int)blockIdx.x * FLASH_STEP;
    const int warp = threadIdx.x / WARP, own = first + warp * 16;
    const uint32_t kv = blockIdx.y % shape.kv_heads, sample = blockIdx.y / shape.kv_heads;
    const uint32_t group = shape.heads / shape.kv_heads;
    const size_t width = attention_width(shape), out_width = (size_t)shape.heads * D;
    const bf16 *sample_rows = qkv + (size_t)sample * seq * width;
    const size_t k_at = (size_t)(shape.heads + kv) * D, v_at = k_at + (size_t)shape.kv_heads * D;

    // Step s is query block first/64 + s % blocks of head kv · group + s / blocks.
    const int blocks = (seq - first + FLASH_STEP - 1) / FLASH_STEP, steps = blocks * (int)group;
    auto copy_step = [&](int step) {
        const int begin = first + step % blocks * FLASH_STEP, room = step % 2;
        const uint32_t head = kv * group + step / blocks;
        flash_copy<D>(queries + room * flash<D>::tile,
                      sample_rows + begin * width + (size_t)head * D, width, FLASH_STEP,
                      seq - begin);
        flash_copy<D>(gradients + room * flash<D>::tile,
                      d_out + ((size_t)sample * seq + begin) * out_width + (size_t)head * D,
                      out_width, FLASH_STEP, seq - begin);
        if ((int)threadIdx.x < FLASH_STEP) { // Two steps ahead of the readers: a barrier is between
            const int row = begin + (int)threadIdx.x;
            const size_t at = ((size_t)sample * shape.heads + head) * seq + row;
            log_sums[room * FLASH_STEP + threadIdx.x] =
                row < seq ? log_sum[at] * FLASH_LOG2_E : 0.0f;
            deltas[room * FLASH_STEP + threadIdx.x] = row < seq ? delta[at] : 0.0f;
        }
    };

    flash_copy<D>(keys, sample_rows + first * width + k_at, width, FLASH_STEP, seq - first);
    flash_copy<D>(values, sample_rows + first * width + v_at, width, FLASH_STEP, seq - first);
    copy_step(0);
    copy_commit();
    float dk[1][D / 8][4] = {}, dv[1][D / 8][4] = {};
    for (int step = 0; step < steps; step++) {
        if (step + 1 < steps) copy_step(step + 1);
        copy_commit();
        copy_wait<1>();
        __syncthreads();
        const int room = step % 2;
        const bf16 *query_tile = queries + room * flash<D>::tile;
        const bf16 *gradient_tile = gradients + room * flash<D>::tile;
        float scores[1][FLASH_STEP / 8][4], dp[1][FLASH_STEP / 8][4];
        uint32_t a[1][D / 16][4]; // Read again each time, to save registers
        flash_load<D>(a[0], keys + warp * 16 * flash<D>::stride);
        flash_scores<D, 1>(scores, a, query_tile);
        flash_load<D>(a[0], values + warp * 16 * flash<D>::stride);
        flash_scores<D, 1>(dp, a, gradient_tile);
        turned_gradient(scores[0], dp[0], log_sums + room * FLASH_STEP, deltas + room * FLASH_STEP,
                        own, first + step % blocks * FLASH_STEP, seq, scale * FLASH_LOG2_E);
        flash_add<D, 1>(dv, scores, gradient_tile);
        flash_add<D, 1>(dk, dp, query_tile);
        __syncthreads();
    }
    bf16 *to = d_qkv + (size_t)sample * seq * width;
    flash_store<D>(to + k_at, width, own, seq, dk[0], scale, scale);
    flash_store<D>(to + v_at, width, own, seq, dv[0], 1.0f, 1.0f);
}

// ---- By queries: a block has 64 queries of one head and goes through their keys.

template <int D>
__global__ void __launch_bounds__(FLASH_THREADS)
    flash_queries_kernel(bf16 *d_qkv, const float *delta, const bf16 *d_out, const float *log_sum,
                         const bf16 *qkv, struct attention_shape shape, float scale)
{
    DEVICE_SHARED(bf16, memory);
    bf16 *queries = memory, *gradients = queries + flash<D>::tile;
    bf16 *keys = gradients + flash<D>::tile, *values = keys + 2 * flash<D>::tile; // Two each
    const int seq = (int)shape.seq, block = (int)(gridDim.x - 1 - blockIdx.x);    // Longest first
    const int first = block * FLASH_STEP, warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const int own = first + warp * 16;
    const uint32_t head = blockIdx.y % shape.heads, sample = blockIdx.y / shape.heads;
    const uint32_t kv = head / (shape.heads / shape.kv_heads);
    const size_t width = attention_width(shape), out_width = (size_t)shape.heads * D;
    const bf16 *sample_rows = qkv + (size_t)sample * seq * width;
    const bf16 *k = sample_rows + (size_t)(shape.heads + kv) * D;
    const bf16 *v = k + (size_t)shape.kv_heads * D;

    flash_copy<D>(queries, sample_rows + first * width + (size_t)head * D, width, FLASH_STEP,
                  seq - first);
    flash_copy<D>(gradients, d_out + ((size_t)sample * seq + first) * out_width + (size_t)head * D,
                  out_width, FLASH_STEP, seq - first);
    flash_copy<D>(keys, k, width, FLASH_STEP, seq);
    flash_copy<D>(values, v, width, FLASH_STEP, seq);
    copy_commit();
    float sums[2] = {}, deltas[2] = {};
    for (int i = 0; i < 2; i++) {
        const int row = own + lane / 4 + i * 8;
        const size_t at = ((size_t)sample * shape.heads + head) * seq + row;
        if (row < seq) sums[i] = log_sum[at] * FLASH_LOG2_E, deltas[i] = delta[at];
    }
    float dq[1][D / 8][4] = {};
    for (int step = 0; step <= block; step++) {
        const int next = (step + 1) * FLASH_STEP, room = (step + 1) % 2 * flash<D>::tile;
        if (step < block) {
            flash_copy<D>(keys + room, k + next * width, width, FLASH_STEP, seq - next);
            flash_copy<D>(values + room, v + next * width, width, FLASH_STEP, seq - next);
        }
        copy_commit();
        copy_wait<1>();
        __syncthreads();
        const bf16 *key_tile = keys + step % 2 * flash<D>::tile;
        float scores[1][FLASH_STEP / 8][4], dp[1][FLASH_STEP / 8][4];
        uint32_t a[1][D / 16][4];
        flash_load<D>(a[0], queries + warp * 16 * flash<D>::stride);
        flash_scores<D, 1>(scores, a, key_tile);
        flash_load<D>(a[0], gradients + warp * 16 * flash<D>::stride);
        flash_scores<D, 1>(dp, a, values + step % 2 * flash<D>::tile);
#pragma unroll
        for (int j = 0; j < FLASH_STEP / 8; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int key = step * FLASH_STEP + j * 8 + lane % 4 * 2 + i % 2;
                float p = exp2_fast(scores[0][j][i] * (scale * FLASH_LOG2_E) - sums[i / 2]);
                if (step == block && key > own + lane / 4 + i / 2 * 8) p = 0.0f;
                dp[0][j][i] = p * (dp[0][j][i] - deltas[i / 2]);
            }
        flash_add<D, 1>(dq, dp, key_tile);
        __syncthreads();
    }
    bf16 *to = d_qkv + (size_t)sample * seq * width + (size_t)head * D;
    flash_store<D>(to, width, own, seq, dq[0], scale, scale);
}

struct flash_back {
    struct device *device;
    bf16 *d_qkv;
    const float *delta;
    const bf16 *d_out;
    const float *log_sum;
    const bf16 *qkv;
    const struct attention_shape *shape;
    template <int D> void run() const
    {
        constexpr size_t tiles = sizeof(bf16) * 6 * (size_t)flash<D>::tile;
        constexpr size_t sums = sizeof(float) * 4 * FLASH_STEP;
        const unsigned blocks = device_blocks(shape->seq, FLASH_STEP);
        DEVICE_LAUNCH(device, dim3(blocks, shape->batch * shape->kv_heads), dim3(FLASH_THREADS),
                      tiles + sums, (flash_keys_kernel<D>), d_qkv, delta, d_out, log_sum, qkv,
                      *shape, 1.0f / sqrtf((float)D));
        DEVICE_LAUNCH(device, dim3(blocks, shape->batch * shape->heads), dim3(FLASH_THREADS), tiles,
                      (flash_queries_kernel<D>), d_qkv, delta, d_out, log_sum, qkv, *shape,
                      1.0f / sqrtf((float)D));
    }
};

void attention_flash_back(struct device *device, bf16 *d_qkv, const float *delta, const bf16 *d_out,
                          const float *log_sum, const bf16 *qkv,
                          const struct attention_shape *shape)
{
    flash_by_head_dim(shape->head_dim,
                      flash_back{ device, d_qkv, delta, d_out, log_sum, qkv, shape });
}
