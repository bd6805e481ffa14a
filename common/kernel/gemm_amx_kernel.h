#pragma once
// gemm_amx_kernel -- products in the order of AMX's tiles (gemm.h, BF16_AMX): by AMX itself where the compiler may
// use it, else by multiply-adds on lanes. Only kernel_set.h includes this.
//
// AMX has eight tiles of 16 rows of 64 bytes. Four of them are 32 x 32 sums of c, two hold A as [16 rows][16 pairs
// of k], two hold B as [16 pairs][16 columns]. So a packed panel is, for each 32 of k, two tiles of 256 words one
// after the other, and what is missing at the end of k is zero.

#include "common/kernel/gemm_kernel.h"

#if defined(__AMX_BF16__)

enum {
    AMX_SIDE = 16,
    AMX_K = 32,
    AMX_WORDS = AMX_SIDE * AMX_SIDE,
    AMX_TILE = 2 * AMX_SIDE,
    AMX_DEPTH_WORDS = 256 // A panel of B is 32 KiB then, and stays in the first-level cache
};

// 32 k of a row as 16 pairs.
LANES_INLINE lanes amx_pairs_of_row(const float *from, size_t left)
{
    const lanes low = lanes_load_upto(from, left);
    lanes high = lanes_all(0.0f);
    if (left > LANES) high = lanes_load_upto(from + LANES, left - LANES);
    return (lanes)_mm512_cvtne2ps_pbh(high, low);
}

// A pair of k in 16 rows or columns.
LANES_INLINE lanes amx_pair_of_columns(const float *from, size_t stride, size_t rows, size_t k_left)
{
    lanes even = lanes_all(0.0f), odd = even;
    if (k_left > 0) even = lanes_load_upto(from, rows);
    if (k_left > 1) odd = lanes_load_upto(from + stride, rows);
    return gemm_pair(even, odd);
}

// The four ways to pack: A or B, from rows or from columns of the matrix. A tile of A has a vector for each row, one
// of B for each pair of k; if the matrix lies the other way, the tile is transposed on the way.
LANES_INLINE void amx_pack(const float *from, size_t stride, size_t rows, size_t depth, float *to,
                           bool by_column, bool transpose)
{
    for (size_t k = 0; k < depth; k += AMX_K) {
        for (uint32_t r = 0; r < AMX_TILE; r += AMX_SIDE, to += AMX_WORDS) {
            lanes block[LANES];
            LANES_UNROLL(16)
            for (uint32_t i = 0; i < LANES; i++) {
                block[i] = lanes_all(0.0f);
                if (by_column && r < rows && k + 2 * i < depth)
                    block[i] = amx_pair_of_columns(from + (k + 2 * i) * stride + r, stride,
                                                   rows - r, depth - k - 2 * i);
                else if (!by_column && r + i < rows)
                    block[i] = amx_pairs_of_row(from + (r + i) * stride + k, depth - k);
            }
            if (transpose) lanes_transpose(block);
            LANES_UNROLL(16)
            for (uint32_t i = 0; i < LANES; i++) lanes_store(to + i * LANES, block[i]);
        }
    }
}

#define AMX_PACK(name, by_column, transpose)                                                       \
    static void name(const float *from, size_t stride, size_t rows, uint32_t height, size_t depth, \
                     float *to)                                                                    \
    {                                                                                              \
        const size_t panel = (depth + AMX_K - 1) / AMX_K * 2 * AMX_WORDS;                          \
        (void)height;                                                                              \
        for (size_t r = 0; r < rows; r += AMX_TILE, to += panel) {                                 \
            const float *at = from + (by_column ? r : r * stride);                                 \
            if (rows - r >= AMX_TILE)                                                              \
                amx_pack(at, stride, AMX_TILE, depth, to, by_column, transpose);                   \
            else amx_pack(at, stride, rows - r, depth, to, by_column, transpose);                  \
        }                                                                                          \
    }
AMX_PACK(amx_pack_a_rows, false, false)
AMX_PACK(amx_pack_a_columns, true, true)
AMX_PACK(amx_pack_b_rows, false, true)
AMX_PACK(amx_pack_b_columns, true, false)

// The quarters of a tile of 32 x 32 that are computed: `low` with rows 16 to 31, `right` with columns 16 to 31. c is in
// tiles 0 to 3 for the whole depth. Its lines are asked of the memory a few at a time meanwhile.
LANES_INLINE void amx_quarters(size_t words, const float *a, const float *b, float *c,
                               size_t c_stride, bool add, bool low, bool right)
{
    const size_t row = c_stride * sizeof *c, side = AMX_SIDE * sizeof(float);
    float *lower = c + AMX_SIDE * c_stride;
    __asm__ volatile(
        "" ::
            : "memory"); // The compiler does not know that loads of tiles read what was stored before
    if (add) {
        _tile_loadd(0, c, row);
        if (right) _tile_loadd(1, c + AMX_SIDE, row);
        if (low) _tile_loadd(2, lower, row);
        if (low && right) _tile_loadd(3, lower + AMX_SIDE, row);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (size_t k = 0; k < words; k += AMX_SIDE, a += 2 * AMX_WORDS, b += 2 * AMX_WORDS) {
        _tile_loadd(4, a, side);
        _tile_loadd(6, b, side);
        if (low) _tile_loadd(5, a + AMX_WORDS, side);
        if (right) _tile_loadd(7, b + AMX_WORDS, side);
        _tile_dpbf16ps(0, 4, 6);
        if (low) _tile_dpbf16ps(2, 5, 6);
        if (right) _tile_dpbf16ps(1, 4, 7);
        if (low && right) _tile_dpbf16ps(3, 5, 7);
        const size_t first = k / AMX_SIDE * 4, rows = low ? AMX_TILE : AMX_SIDE;
        for (size_t i = first; i < first + 4 && i < rows; i++) {
            __builtin_prefetch(c + i * c_stride, 1);
            if (right) __builtin_prefetch(c + i * c_stride + AMX_SIDE, 1);
        }
    }
    _tile_stored(0, c, row);
    if (right) _tile_stored(1, c + AMX_SIDE, row);
    if (low) _tile_stored(2, lower, row);
    if (low && right) _tile_stored(3, lower + AMX_SIDE, row);
}

LANES_INLINE void amx_tile(size_t words, const float *a, size_t a_step, const float *b, float *c,
                           size_t c_stride, bool add, struct gemm_size inside,
                           struct gemm_ahead *ahead)
{
    (void)a_step, (void)ahead;
    float aside[AMX_TILE * AMX_TILE] __attribute__((aligned(64)));
    const bool low = inside.rows > AMX_SIDE, right = inside.columns > AMX_SIDE;
    const bool cut = inside.rows % AMX_SIDE || inside.columns % AMX_SIDE;
    float *to = cut ? aside : c;
    const size_t stride = cut ? AMX_TILE : c_stride;
    // A quarter that is partly outside c is computed aside
    if (cut && add) memset(aside, 0, sizeof aside);
    for (size_t i = 0; cut && add && i < inside.rows; i++)
        memcpy(aside + i * AMX_TILE, c + i * c_stride, inside.columns * sizeof *c);
    if (low && right) amx_quarters(words, a, b, to, stride, add, true, true);
    else if (low) amx_quarters(words, a, b, to, stride, add, true, false);
    else amx_quarters(words, a, b, to, stride, add, false, right);
    for (size_t i = 0; cut && i < inside.rows; i++)
        memcpy(c + i * c_stride, aside + i * AMX_TILE, inside.columns * sizeof *c);
}

// Tiles need a configuration, and a thread that has one pays for it when it is switched: so it ends here.
LANES_TABLED void gemm_multiply_amx(size_t rows, size_t columns, size_t depth,
                                    struct kernels_panels a, struct kernels_panels b, float *c,
                                    size_t c_stride, bool add, const struct kernels_piece *next)
{
    static const struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } all_whole = {
        1, 0, { 0 }, { 64, 64, 64, 64, 64, 64, 64, 64 }, { 16, 16, 16, 16, 16, 16, 16, 16 }
    };
    const struct gemm_size whole = { AMX_TILE, AMX_TILE }, all = { rows, columns };
    _tile_loadconfig(&all_whole);
    gemm_tiles(amx_tile, whole, all, (depth + AMX_K - 1) / AMX_K * AMX_SIDE, a, b, c, c_stride, add,
               next);
    _tile_release();
}

#define GEMM_AMX_PRODUCT                                                                           \
    {                                                                                              \
        AMX_TILE, AMX_TILE, AMX_K, AMX_SIDE, AMX_DEPTH_WORDS,                                      \
            { amx_pack_a_rows, amx_pack_a_columns }, { amx_pack_b_rows, amx_pack_b_columns },      \
            gemm_multiply_amx, 0, 0                                                                \
    }

#else

enum { AMX_FLOATS = 32 }; // Of the k that are one step of AMX

// One of the two chains of a step: the words from `first` on, every other one. Zeros follow a step that is not whole:
// they make -0, which a sum becomes that is tiny, to 0.
LANES_INLINE void gemm_chain(size_t first, size_t words, const float *a, const float *b,
                             lanes sum[TILE_ROWS][TILE_LANES])
{
    LANES_UNROLL(16)
    for (size_t i = 0; i < TILE_ROWS; i++) {
        LANES_UNROLL(2)
        for (size_t j = 0; j < TILE_LANES; j++) sum[i][j] = lanes_all(0.0f);
    }
    for (size_t k = first; k < words; k += 2) {
        lanes columns[TILE_LANES];
        LANES_UNROLL(2)
        for (size_t j = 0; j < TILE_LANES; j++)
            columns[j] = lanes_load(b + k * TILE_COLUMNS + j * LANES);
        LANES_UNROLL(16)
        for (size_t i = 0; i < TILE_ROWS; i++) {
            const lanes row = lanes_all(a[k * TILE_ROWS + i]);
            LANES_UNROLL(2)
            for (size_t j = 0; j < TILE_LANES; j++)
                sum[i][j] = lanes_fma_flushed(row, columns[j], sum[i][j]);
        }
    }
    if (words == AMX_FLOATS) return;
    LANES_UNROLL(16)
    for (size_t i = 0; i < TILE_ROWS; i++) {
        LANES_UNROLL(2)
        for (size_t j = 0; j < TILE_LANES; j++) sum[i][j] = lanes_add(sum[i][j], lanes_all(0.0f));
    }
}

// The odd k lie first in the panels. `c` is whole in memory between the steps.
LANES_INLINE void gemm_tile_as_amx(size_t words, const float *a, size_t a_step, const float *b,
                                   float *c, size_t c_stride, bool add, struct gemm_size inside,
                                   struct gemm_ahead *ahead)
{
    (void)a_step, (void)ahead;
    for (size_t k = 0; k < words;
         k += AMX_FLOATS, a += AMX_FLOATS * TILE_ROWS, b += AMX_FLOATS * TILE_COLUMNS) {
        const size_t count = words - k < AMX_FLOATS ? words - k : AMX_FLOATS;
        lanes odd[TILE_ROWS][TILE_LANES], even[TILE_ROWS][TILE_LANES];
        gemm_chain(0, count, a, b, odd);
        gemm_chain(1, count, a, b, even);
        LANES_UNROLL(16)
        for (size_t i = 0; i < TILE_ROWS; i++) {
            LANES_UNROLL(2)
            for (size_t j = 0; j < TILE_LANES; j++) {
                const lanes sum = lanes_flush(lanes_add(even[i][j], odd[i][j]));
                lanes before = lanes_all(0.0f);
                if (add || k > 0) before = lanes_flush(gemm_load(c, c_stride, i, j, inside));
                gemm_store(c, c_stride, i, j, inside, lanes_flush(lanes_add(before, sum)));
            }
        }
    }
}

LANES_TABLED void gemm_pack_rows_apart(const float *from, size_t stride, size_t rows,
                                       uint32_t height, size_t depth, float *to)
{
    for (size_t r = 0; r < rows; r += height, to += height * (depth + depth % 2))
        gemm_pack_rows_as(from + r * stride, stride, rows - r, height, depth, to, true);
}

LANES_TABLED void gemm_pack_columns_apart(const float *from, size_t stride, size_t rows,
                                          uint32_t height, size_t depth, float *to)
{
    gemm_pack_columns_of(from, stride, rows, height, depth, to, true);
}

LANES_TABLED void gemm_multiply_as_amx(size_t rows, size_t columns, size_t depth,
                                       struct kernels_panels a, struct kernels_panels b, float *c,
                                       size_t c_stride, bool add, const struct kernels_piece *next)
{
    const unsigned before = lanes_flush_begin();
    gemm_tiles(gemm_tile_as_amx, gemm_whole, (struct gemm_size){ rows, columns },
               (depth + 1) / 2 * 2, a, b, c, c_stride, add, next);
    lanes_flush_end(before);
}

#define GEMM_AMX_PRODUCT                                                                           \
    {                                                                                              \
        TILE_ROWS, TILE_COLUMNS, 2, 2, KERNELS_DEPTH_WORDS_MAX,                                    \
            { gemm_pack_rows_apart, gemm_pack_columns_apart },                                     \
            { gemm_pack_rows_apart, gemm_pack_columns_apart }, gemm_multiply_as_amx, 0, 0          \
    }
#endif
