#pragma once
// gemm_kernel -- packing and the register tile of the matrix product, written once on lanes. Only
// kernels_*.c include this, after setting TILE_ROWS and TILE_LANES to what their registers hold:
// TILE_ROWS * TILE_LANES accumulators stay in registers for the whole depth.

#include "common/learn/kernels.h"
#include "common/learn/lanes.h"

enum { TILE_COLUMNS = TILE_LANES * LANES };

static void gemm_pack_rows(const float *from, size_t stride, uint32_t rows, uint32_t height,
                           size_t depth, float *to)
{
    for (uint32_t r = 0; r < height; r += LANES) {
        for (size_t k = 0; k < depth; k += LANES) {
            const size_t left = depth - k, columns = left < LANES ? left : LANES;
            lanes block[LANES];
            LANES_UNROLL(16)
            for (uint32_t i = 0; i < LANES; i++)
                block[i] = r + i < rows ? lanes_load_upto(from + (r + i) * stride + k, left)
                                        : lanes_all(0.0f);
            lanes_transpose(block);
            // A height below 16 lets each store run into the next one's place, which is written
            // after it
            for (uint32_t i = 0; i < columns; i++) lanes_store(to + (k + i) * height + r, block[i]);
        }
    }
}

static void gemm_pack_columns(const float *from, size_t stride, uint32_t rows, uint32_t height,
                              size_t depth, float *to)
{
    for (size_t k = 0; k < depth; k++) {
        const float *row = from + k * stride;
        for (uint32_t r = 0; r < height; r += LANES) {
            const lanes a = r < rows ? lanes_load_upto(row + r, rows - r) : lanes_all(0.0f);
            lanes_store(to + k * height + r, a);
        }
    }
}

// One chain of fused multiply-adds per element of c, k ascending; it begins with c itself or with
// 0.
LANES_INLINE void gemm_tile(size_t depth, const float *a, const float *b, float *c, size_t c_stride,
                            bool add)
{
    lanes sum[TILE_ROWS][TILE_LANES];
    LANES_UNROLL(16)
    for (int i = 0; i < TILE_ROWS; i++) {
        LANES_UNROLL(2)
        for (int j = 0; j < TILE_LANES; j++)
            sum[i][j] = add ? lanes_load(c + (size_t)i * c_stride + j * LANES) : lanes_all(0.0f);
    }
    for (size_t k = 0; k < depth; k++, a += TILE_ROWS, b += TILE_COLUMNS) {
        lanes columns[TILE_LANES];
        LANES_UNROLL(2)
        for (int j = 0; j < TILE_LANES; j++) columns[j] = lanes_load(b + j * LANES);
        LANES_UNROLL(16)
        for (int i = 0; i < TILE_ROWS; i++) {
            const lanes row = lanes_all(a[i]);
            LANES_UNROLL(2)
            for (int j = 0; j < TILE_LANES; j++) sum[i][j] = lanes_fma(row, columns[j], sum[i][j]);
        }
    }
    LANES_UNROLL(16)
    for (int i = 0; i < TILE_ROWS; i++) {
        LANES_UNROLL(2)
        for (int j = 0; j < TILE_LANES; j++)
            lanes_store(c + (size_t)i * c_stride + j * LANES, sum[i][j]);
    }
}

// A tile at the edge of c: computed aside, and only what exists is copied.
static void gemm_tile_edge(size_t rows, size_t columns, size_t depth, const float *a,
                           const float *b, float *c, size_t c_stride, bool add)
{
    float aside[TILE_ROWS * TILE_COLUMNS] __attribute__((aligned(64))) = { 0 };
    for (size_t i = 0; add && i < rows; i++)
        memcpy(aside + i * TILE_COLUMNS, c + i * c_stride, columns * sizeof *c);
    gemm_tile(depth, a, b, aside, TILE_COLUMNS, true);      // From 0 is the same as not adding
    for (size_t i = 0; i < rows; i++)
        memcpy(c + i * c_stride, aside + i * TILE_COLUMNS, columns * sizeof *c);
}

static void gemm_multiply(size_t rows, size_t columns, size_t depth, const float *a, const float *b,
                          float *c, size_t c_stride, bool add)
{
    for (size_t j = 0; j < columns; j += TILE_COLUMNS) {
        for (size_t i = 0; i < rows; i += TILE_ROWS) {
            const size_t m = rows - i, n = columns - j;
            const float *a_panel = a + i * depth, *b_panel = b + j * depth;
            float *corner = c + i * c_stride + j;
            if (m < TILE_ROWS || n < TILE_COLUMNS)
                gemm_tile_edge(m < TILE_ROWS ? m : TILE_ROWS, n < TILE_COLUMNS ? n : TILE_COLUMNS,
                               depth, a_panel, b_panel, corner, c_stride, add);
            else if (add) gemm_tile(depth, a_panel, b_panel, corner, c_stride, true);
            else gemm_tile(depth, a_panel, b_panel, corner, c_stride, false);
        }
    }
}
