// The forward pass on the tensor cores: a block holds queries and walks their keys, with a running
// softmax; the next keys and values are copied while the present ones are worked on.
#include "common/compute/cuda/flash.cuh"

#include <math.h>

// A block has `tiles` times 64 queries of one head: `tiles` times 16 for each warp, so that keys
// and values read from shared memory serve as many products. Two tiles need all registers up to D =
// 64; -DFLASH_TILES=1 is there to measure one.
#ifndef FLASH_TILES
#define FLASH_TILES 2
#endif
template <int D> struct forward {
    enum { tiles = D <= 64 ? FLASH_TILES : 1, rows = 64 * tiles };
};

// The running softmax of two rows (g and g + 8 of a fragment).
struct running {
    float high[2], total[2];
};

// Turns scores into probabilities: masked beyond the diagonal, exp2((score - high) · slope). Also
// gives the factor by which the sums so far must shrink.
__device__ inline void soften(float (&scores)[FLASH_STEP / 8][4], struct running *self,
                              float (&ret_shrink)[2], int first_row, int first_key, float slope)
{
    const int lane = threadIdx.x % WARP;
    const bool diagonal = first_key + FLASH_STEP - 1 > first_row;
    float high[2] = { self->high[0], self->high[1] };
#pragma unroll
    for (int j = 0; j < FLASH_STEP / 8; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int row = first_row + lane / 4 + i / 2 * 8;
            if (diagonal && first_key + j * 8 + lane % 4 * 2 + i % 2 > row)
                scores[j][i] = -INFINITY;
            high[i / 2] = fmaxf(high[i / 2], scores[j][i]);
        }
#pragma unroll
    for (int i = 0; i < 2; i++) { // Four lanes share a row. Key 0 is in every row: high is finite
        high[i] = fmaxf(high[i], __shfl_xor_sync(~0u, high[i], 1));
        high[i] = fmaxf(high[i], __shfl_xor_sync(~0u, high[i], 2));
        ret_shrink[i] = exp2_fast((self->high[i] - high[i]) * slope);
        self->total[i] *= ret_shrink[i];
        self->high[i] = high[i];
    }
#pragma unroll
    for (int j = 0; j < FLASH_STEP / 8; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            scores[j][i] = exp2_fast((scores[j][i] - high[i / 2]) * slope);
            self->total[i / 2] += scores[j][i]; // Of this lane; joined at the end
        }
}

template <int D>
__global__ void __launch_bounds__(FLASH_THREADS)
    flash_forward_kernel(bf16 *out, float *log_sum, const bf16 *qkv, struct attention_shape shape,
                         float scale)
{
    constexpr int tiles = forward<D>::tiles, rows = forward<D>::rows;
    DEVICE_SHARED(bf16, memory);
    bf16 *queries = memory, *keys = queries + rows * flash<D>::stride;
    bf16 *values = keys + 2 * flash<D>::tile;                                  // Two of each
    const int seq = (int)shape.seq, block = (int)(gridDim.x - 1 - blockIdx.x); // Longest first
    const int first = block * rows, warp = threadIdx.x / WARP;
    const uint32_t head = blockIdx.y % shape.heads, sample = blockIdx.y / shape.heads;
    const size_t width = attention_width(shape);
    const bf16 *sample_rows = qkv + (size_t)sample * seq * width;
    const uint32_t kv = head / (shape.heads / shape.kv_heads);
    const bf16 *k = sample_rows + (size_t)(shape.heads + kv) * D;
    const bf16 *v = k + (size_t)shape.kv_heads * D;

    flash_copy<D>(queries, sample_rows + first * width + (size_t)head * D, width, rows,
                  seq - first);
    flash_copy<D>(keys, k, width, FLASH_STEP, seq);
    flash_copy<D>(values, v, width, FLASH_STEP, seq);
    copy_commit();

    uint32_t q[tiles][D / 16][4];
    float sums[tiles][D / 8][4] = {};
    struct running running[tiles];
    for (int m = 0; m < tiles; m++) running[m] = { { -INFINITY, -INFINITY }, { 0.0f, 0.0f } };
    const int last = first + rows < seq ? first + rows : seq; // Queries end here, so keys do
    const int steps = (last + FLASH_STEP - 1) / FLASH_STEP;
    const int own = first + warp * tiles * 16; // First query of the warp
    for (int step = 0; step < steps; step++) {
        const int next = (step + 1) * FLASH_STEP, room = (step + 1) % 2 * flash<D>::tile;
        if (step + 1 < steps) {
            flash_copy<D>(keys + room, k + next * width, width, FLASH_STEP, seq - next);
            flash_copy<D>(values + room, v + next * width, width, FLASH_STEP, seq - next);
        }
        copy_commit();
        copy_wait<1>();
        __syncthreads();
        if (step == 0)
#pragma unroll
            for (int m = 0; m < tiles; m++)
                flash_load<D>(q[m], queries + (warp * tiles + m) * 16 * flash<D>::stride);
        const bf16 *key_tile = keys + step % 2 * flash<D>::tile;
        const bf16 *value_tile = values + step % 2 * flash<D>::tile;
        if (step * FLASH_STEP <= own + tiles * 16 - 1) { // Else all masked for this warp
            float scores[tiles][FLASH_STEP / 8][4];
            flash_scores<D, tiles>(scores, q, key_tile);
#pragma unroll
            for (int m = 0; m < tiles; m++) {
                float shrink[2];
                soften(scores[m], &running[m], shrink, own + m * 16, step * FLASH_STEP,
                       scale * FLASH_LOG2_E);
#pragma unroll
                for (int j = 0; j < D / 8; j++)
#pragma unroll
                    for (int i = 0; i < 4; i++) sums[m][j][i] *= shrink[i / 2];
            }
            flash_add<D, tiles>(sums, scores, value_tile);
        }
        __syncthreads(); // Before this tile is overwritten
    }

    bf16 *to = out + (size_t)sample * seq * shape.heads * D + (size_t)head * D;
    float *to_sums = log_sum + ((size_t)sample * shape.heads + head) * seq;
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int m = 0; m < tiles; m++) {
        float total[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            total[i] = running[m].total[i];
            total[i] += __shfl_xor_sync(~0u, total[i], 1);
            total[i] += __shfl_xor_sync(~0u, total[i], 2);
            const int row = own + m * 16 + lane / 4 + i * 8;
            if (lane % 4 == 0 && row < seq)
                to_sums[row] = running[m].high[i] * scale + logf(total[i]);
        }
        flash_store<D>(to, (size_t)shape.heads * D, own + m * 16, seq, sums[m], 1.0f / total[0],
                       1.0f / total[1]);
    }
}

struct flash_forward {
    struct device *device;
    bf16 *out;
    float *log_sum;
    const bf16 *qkv;
    const struct attention_shape *shape;
    template <int D> void run() const
    {
        constexpr size_t shared =
            sizeof(bf16) * (forward<D>::rows * flash<D>::stride + 4 * (size_t)flash<D>::tile);
        const dim3 grid(device_blocks(shape->seq, forward<D>::rows), shape->batch * shape->heads);
        DEVICE_LAUNCH(device, grid, dim3(FLASH_THREADS), shared, (flash_forward_kernel<D>), out,
                      log_sum, qkv, *shape, 1.0f / sqrtf((float)D));
    }
};

void attention_flash_forward(struct device *device, bf16 *out, float *log_sum, const bf16 *qkv,
                             const struct attention_shape *shape)
{
    flash_by_head_dim(shape->head_dim, flash_forward{ device, out, log_sum, qkv, shape });
}
