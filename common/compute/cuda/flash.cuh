#pragma once
// flash -- what the three attention kernels on the tensor cores share.
//
// A block of FLASH_WARPS warps keeps a tile of rows (queries, or keys in the backward pass) and
// goes through the others FLASH_STEP rows at a time; the next rows are copied to shared memory
// while the present ones are worked on. Rows beyond the sequence are zeros there. A tile's rows are
// D + 8 numbers apart: then the eight rows that ldmatrix reads at once lie in different banks, for
// each D we take.

#include "common/compute/cuda/attention.cuh"
#include "common/compute/cuda/warp.cuh"

#define FLASH_LOG2_E 1.4426950408889634f

enum { FLASH_WARPS = 4, FLASH_THREADS = FLASH_WARPS * WARP, FLASH_STEP = 64 };

template <int D> struct flash {
    enum { stride = D + 8, tile = FLASH_STEP * stride };
};

// Begins to copy `count` rows from `from`, `width` apart; rows from `end` on become zeros. Needs a
// commit.
template <int D>
__device__ inline void flash_copy(bf16 *tile, const bf16 *from, size_t width, int count, int end)
{
    for (int i = threadIdx.x; i < count * (D / 8); i += FLASH_THREADS) {
        const int row = i / (D / 8), column = i % (D / 8) * 8;
        const bool there = row < end;
        copy_begin(tile + row * flash<D>::stride + column,
                   from + (there ? (size_t)row * width + column : 0), there);
    }
}

// sums[M][16][FLASH_STEP] = A · tileᵀ, with A as fragments: M times 16 rows, so that what is read
// of the tile serves M products.
template <int D, int M>
__device__ inline void flash_scores(float (&sums)[M][FLASH_STEP / 8][4],
                                    const uint32_t (&a)[M][D / 16][4], const bf16 *tile)
{
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int j = 0; j < FLASH_STEP / 8; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) sums[m][j][i] = 0.0f;
#pragma unroll
    for (int k = 0; k < D / 16; k++)
#pragma unroll
        for (int n = 0; n < FLASH_STEP / 16; n++) {
            uint32_t b[4];
            load_b(b, tile + n * 16 * flash<D>::stride + k * 16, flash<D>::stride);
#pragma unroll
            for (int m = 0; m < M; m++) {
                warp_multiply(sums[m][2 * n], a[m][k], b[0], b[1]);
                warp_multiply(sums[m][2 * n + 1], a[m][k], b[2], b[3]);
            }
        }
}

// sums[M][16][D] += P · tile, with P [M][16][FLASH_STEP] as the sums of flash_scores.
template <int D, int M>
__device__ inline void flash_add(float (&sums)[M][D / 8][4], const float (&p)[M][FLASH_STEP / 8][4],
                                 const bf16 *tile)
{
#pragma unroll
    for (int k = 0; k < FLASH_STEP / 16; k++) {
        uint32_t a[M][4];
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                a[m][i] =
                    pack_two(p[m][2 * k + i / 2][i % 2 * 2], p[m][2 * k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
        for (int n = 0; n < D / 16; n++) {
            uint32_t b[4];
            load_b_turned(b, tile + k * 16 * flash<D>::stride + n * 16, flash<D>::stride);
#pragma unroll
            for (int m = 0; m < M; m++) {
                warp_multiply(sums[m][2 * n], a[m], b[0], b[1]);
                warp_multiply(sums[m][2 * n + 1], a[m], b[2], b[3]);
            }
        }
    }
}

// The fragments of 16 rows of a tile.
template <int D> __device__ inline void flash_load(uint32_t (&a)[D / 16][4], const bf16 *rows)
{
#pragma unroll
    for (int k = 0; k < D / 16; k++) load_a(a[k], rows + k * 16, flash<D>::stride);
}

// Rows [first, first + 16) of the sums, times `factor`, to rows `width` apart; those below `end`.
template <int D>
__device__ inline void flash_store(bf16 *to, size_t width, int first, int end,
                                   const float (&sums)[D / 8][4], float factor_low,
                                   float factor_high)
{
    const int lane = threadIdx.x % WARP, low = first + lane / 4, high = low + 8;
#pragma unroll
    for (int j = 0; j < D / 8; j++) {
        const int column = j * 8 + lane % 4 * 2;
        if (low < end)
            *reinterpret_cast<uint32_t *>(to + (size_t)low * width + column) =
                pack_two(sums[j][0] * factor_low, sums[j][1] * factor_low);
        if (high < end)
            *reinterpret_cast<uint32_t *>(to + (size_t)high * width + column) =
                pack_two(sums[j][2] * factor_high, sums[j][3] * factor_high);
    }
}

// Calls work.template run<D>() for the head_dim, one that attention_flash_can.
template <typename F> static void flash_by_head_dim(uint32_t head_dim, const F &work)
{
    switch (head_dim) {
    case 32: work.template run<32>(); break;
    case 48: work.template run<48>(); break;
    case 64: work.template run<64>(); break;
    case 96: work.template run<96>(); break;
    default: work.template run<128>(); break;
    }
}
