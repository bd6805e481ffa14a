#pragma once
// gemm_kernel -- packing and the register tile of the matrix product, written once on lanes. Only
// kernels_*.c include this, after setting TILE_ROWS and TILE_LANES to what their registers hold:
// TILE_ROWS * TILE_LANES accumulators stay in registers for the whole depth.
//
// With GEMM_PAIRS (VDPBF16PS) a pair of bfloat16 is one word. Otherwise a pair is two words:
// floats rounded to bfloat16, the odd k first, and the tile is that of float32 with tiny numbers
// flushed to zero. Both are the same multiply-adds in the same order.

#include "common/kernel/kernels.h"
#include "common/kernel/lanes.h"

// What a set may choose for itself, as it depends on the size of its tile:
// ROWS_IN_PLACE  the most columns of c for which A is not packed where it lies in rows (kernels_product). Each row of a
//                tile takes lines of the nearest cache then
// ASK_STEPS      1 to 8 steps of the depth between two lines that the memory is asked for
// B_AHEAD        steps of the depth before its use that a word of B is asked for; 0: never
// In a small tile what asks is a large part of the instructions.
#ifndef ROWS_IN_PLACE
#define ROWS_IN_PLACE 256
#endif
#ifndef ASK_STEPS
#define ASK_STEPS 4
#endif
#ifndef B_AHEAD
#define B_AHEAD 8
#endif
_Static_assert(TILE_ROWS <= LANES, "a panel of A is one transposed block high");
_Static_assert(ASK_STEPS <= 8, "the steps between two lines are unrolled");

enum {
    COLUMNS_IN_PLACE = 256, // The same where A lies in columns
    TILE_COLUMNS = TILE_LANES * LANES,
    PACK_AHEAD = 8,  // Rows that are asked of the memory before they are packed
    STRIP_TILES = 8, // Side by side, before the next row of tiles
};

// A panel from transposed blocks of 16 x 16. With `bf16` the two k of a pair are swapped.
LANES_INLINE void gemm_pack_rows_as(const float *from, size_t stride, size_t rows, uint32_t height,
                                    size_t depth, float *to, bool bf16)
{
    const size_t places = bf16 ? depth + depth % 2 : depth;
    for (uint32_t r = 0; r < height; r += LANES) {
        for (size_t k = 0; k < depth; k += LANES) {
            const size_t left = depth - k;
            size_t columns = left < LANES ? left : LANES;
            lanes block[LANES];
            LANES_UNROLL(16)
            for (uint32_t i = 0; i < LANES; i++) {
                block[i] = r + i < rows ? lanes_load_upto(from + (r + i) * stride + k, left)
                                        : lanes_all(0.0f);
                if (bf16) block[i] = lanes_round_bf16(block[i]);
            }
            lanes_transpose(block);
            if (bf16) columns += columns % 2;
            // If the height is below 16, a store also writes into the places of the next columns,
            // which are stored after it
            for (uint32_t i = 0; i < columns; i++)
                lanes_store_upto(to + (k + i) * height + r, block[bf16 ? i ^ 1 : i],
                                 (places - k - i) * height - r);
        }
    }
}

// One place of a panel, of which `left` floats are left. What is stored beyond the place comes again with the next one.
LANES_INLINE void gemm_pack_place(const float *row, size_t rows, uint32_t height, float *to,
                                  size_t left, bool here, bool bf16)
{
    for (uint32_t r = 0; r < height; r += LANES) {
        lanes a = r < rows && here ? lanes_load_upto(row + r, rows - r) : lanes_all(0.0f);
        if (bf16) a = lanes_round_bf16(a);
        const size_t room = height - r > LANES / 2 ? LANES : LANES / 2;
        lanes_store_upto(to + r, a, left - r < room ? left - r : room);
    }
}

// All panels side by side, so that each row of the matrix is read once, from end to end.
LANES_INLINE void gemm_pack_columns_as(const float *from, size_t stride, size_t rows,
                                       uint32_t height, size_t depth, float *to, bool bf16)
{
    const size_t places = bf16 ? depth + depth % 2 : depth;
    for (size_t place = 0; place < places; place++, to += height) {
        const size_t k = bf16 ? place ^ 1 : place, left = (places - place) * height;
        const bool here = k < depth;
        const float *row = from + (here ? k * stride : 0);
        // Rows lie up to pages apart: no processor guesses which line comes next. Behind the last row nothing is read
        const uintptr_t ahead = (uintptr_t)row + PACK_AHEAD * stride * sizeof *row;
        for (size_t r = 0; r < rows; r += LANES)
            __builtin_prefetch((const void *)(ahead + r * sizeof *row));
        float *panel = to;
        size_t r = 0;
        for (; r + height <= rows; r += height, panel += height * places)
            gemm_pack_place(row + r, height, height, panel, left, here, bf16);
        if (r < rows) gemm_pack_place(row + r, rows - r, height, panel, left, here, bf16);
    }
}

// The heights that occur as constants, so that the compiler knows which lanes count.
LANES_INLINE void gemm_pack_columns_of(const float *from, size_t stride, size_t rows,
                                       uint32_t height, size_t depth, float *to, bool bf16)
{
    if (height == TILE_COLUMNS)
        gemm_pack_columns_as(from, stride, rows, TILE_COLUMNS, depth, to, bf16);
    else gemm_pack_columns_as(from, stride, rows, TILE_ROWS, depth, to, bf16);
}

LANES_TABLED void gemm_pack_rows(const float *from, size_t stride, size_t rows, uint32_t height,
                                 size_t depth, float *to)
{
    for (size_t r = 0; r < rows; r += height, to += height * depth)
        gemm_pack_rows_as(from + r * stride, stride, rows - r, height, depth, to, false);
}

LANES_TABLED void gemm_pack_columns(const float *from, size_t stride, size_t rows, uint32_t height,
                                    size_t depth, float *to)
{
    gemm_pack_columns_of(from, stride, rows, height, depth, to, false);
}

#if defined(__AVX512BF16__)
// 16 columns of two rows become 16 words.
LANES_INLINE lanes gemm_pair(lanes even, lanes odd)
{
    static const uint16_t order[32] = { 0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                        21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                        11, 27, 12, 28, 13, 29, 14, 30, 15, 31 };
    const __m512i halves = (__m512i)_mm512_cvtne2ps_pbh(odd, even);
    return (lanes)_mm512_permutexvar_epi16(_mm512_loadu_si512(order), halves);
}
#endif

// ---- bfloat16 ---------------------------------------------------------------------------------

#if defined(GEMM_PAIRS)
enum { GEMM_PAIR_WORDS = 1 };

// 16 rows of 32 k become 16 rows of 16 words, a pair in each word: then a block as above.
LANES_INLINE void gemm_pack_row_pairs(const float *from, size_t stride, size_t rows,
                                      uint32_t height, size_t depth, float *to)
{
    for (uint32_t r = 0; r < height; r += LANES) {
        for (size_t k = 0; k < depth; k += 2 * LANES) {
            const size_t left = depth - k, words = left < 2 * LANES ? (left + 1) / 2 : LANES;
            lanes block[LANES];
            LANES_UNROLL(16)
            for (uint32_t i = 0; i < LANES; i++) {
                const float *row = from + (r + i) * stride + k;
                lanes low = lanes_all(0.0f), high = low;
                if (r + i < rows) low = lanes_load_upto(row, left);
                if (r + i < rows && left > LANES) high = lanes_load_upto(row + LANES, left - LANES);
                block[i] = (lanes)_mm512_cvtne2ps_pbh(high, low);
            }
            lanes_transpose(block);
            for (uint32_t i = 0; i < words; i++)
                lanes_store_upto(to + (k / 2 + i) * height + r, block[i],
                                 ((depth + 1) / 2 - k / 2 - i) * height - r);
        }
    }
}

LANES_TABLED void gemm_pack_rows_bf16(const float *from, size_t stride, size_t rows,
                                      uint32_t height, size_t depth, float *to)
{
    for (size_t r = 0; r < rows; r += height, to += height * ((depth + 1) / 2))
        gemm_pack_row_pairs(from + r * stride, stride, rows - r, height, depth, to);
}

LANES_INLINE void gemm_pack_pairs(const float *from, size_t stride, size_t rows, uint32_t height,
                                  size_t depth, float *to)
{
    for (size_t k = 0; k < depth; k += 2, to += height) {
        const float *row = from + k * stride;
        for (uint32_t r = 0; r < height; r += LANES) {
            lanes even = lanes_all(0.0f), odd = even;
            if (r < rows) even = lanes_load_upto(row + r, rows - r);
            if (r < rows && k + 1 < depth) odd = lanes_load_upto(row + stride + r, rows - r);
            lanes_store_upto(to + r, gemm_pair(even, odd), height - r);
        }
    }
}

LANES_TABLED void gemm_pack_columns_bf16(const float *from, size_t stride, size_t rows,
                                         uint32_t height, size_t depth, float *to)
{
    for (size_t r = 0; r < rows; r += height, to += height * ((depth + 1) / 2)) {
        const size_t left = rows - r;
        if (left >= height && height == TILE_COLUMNS)
            gemm_pack_pairs(from + r, stride, TILE_COLUMNS, TILE_COLUMNS, depth, to);
        else if (left >= height && height == TILE_ROWS)
            gemm_pack_pairs(from + r, stride, TILE_ROWS, TILE_ROWS, depth, to);
        else gemm_pack_pairs(from + r, stride, left, height, depth, to);
    }
}
#else
enum { GEMM_PAIR_WORDS = 2 };

LANES_TABLED void gemm_pack_rows_bf16(const float *from, size_t stride, size_t rows,
                                      uint32_t height, size_t depth, float *to)
{
    for (size_t r = 0; r < rows; r += height, to += height * (depth + depth % 2))
        gemm_pack_rows_as(from + r * stride, stride, rows - r, height, depth, to, true);
}

LANES_TABLED void gemm_pack_columns_bf16(const float *from, size_t stride, size_t rows,
                                         uint32_t height, size_t depth, float *to)
{
    gemm_pack_columns_of(from, stride, rows, height, depth, to, true);
}
#endif

// ---- the register tile --------------------------------------------------------------------------

// A row of a tile: sum[j] = sum[j] + a b[j] for one word of A and `width` vectors of words of B.
LANES_INLINE void gemm_row(lanes *sum, const float *a, const lanes *b, size_t width, bool bf16)
{
    if (!bf16) {
        lanes_add_products(sum, a, b, width);
        return;
    }
#if defined(GEMM_PAIRS)
    const lanes each = lanes_all(*a);
    LANES_UNROLL(2)
    for (size_t j = 0; j < width; j++)
        sum[j] = _mm512_dpbf16_ps(sum[j], (__m512bh)each, (__m512bh)b[j]);
#else
    lanes_add_products_flushed(sum, a, b, width);
#endif
}

// One word of each row and column of a tile.
LANES_INLINE void gemm_step(lanes sum[TILE_ROWS][TILE_LANES], const float *a, size_t a_row,
                            const float *b, size_t width, bool bf16)
{
    lanes columns[TILE_LANES];
    LANES_UNROLL(2)
    for (size_t j = 0; j < width; j++) {
        columns[j] = lanes_load(b + j * LANES);
        if (B_AHEAD > 0) __builtin_prefetch(b + B_AHEAD * TILE_COLUMNS + j * LANES);
    }
    LANES_UNROLL(16)
    for (size_t i = 0; i < TILE_ROWS; i++) gemm_row(sum[i], a + i * a_row, columns, width, bf16);
}

// What of a tile is inside c.
struct gemm_size {
    size_t rows, columns;
};

static const struct gemm_size gemm_whole = { TILE_ROWS, TILE_COLUMNS };

// Element (i, 16 j) of a tile and the 15 beside it, as far as they are inside c; else 0, and nothing is stored.
LANES_INLINE lanes gemm_load(const float *c, size_t c_stride, size_t i, size_t j,
                             struct gemm_size inside)
{
    if (i >= inside.rows || j * LANES >= inside.columns) return lanes_all(0.0f);
    return lanes_load_upto(c + i * c_stride + j * LANES, inside.columns - j * LANES);
}

LANES_INLINE void gemm_store(float *c, size_t c_stride, size_t i, size_t j, struct gemm_size inside,
                             lanes sum)
{
    if (i < inside.rows && j * LANES < inside.columns)
        lanes_store_upto(c + i * c_stride + j * LANES, sum, inside.columns - j * LANES);
}

// What is asked of the memory while a tile is computed: the lines of A that the next block packs, into the
// second-level cache, and the next tile of c, into the first. One at a time, so that the lines of the present tile find room among
// those that are on their way.
struct gemm_ahead {
    struct kernels_piece piece; // What is left of it
    size_t column;              // The next of its first row
    const float *c;
    size_t c_stride;
};

LANES_INLINE void gemm_ask(struct gemm_ahead *self)
{
    struct kernels_piece *piece = &self->piece;
    __builtin_prefetch(piece->at + self->column, 0, 2);
    self->column += LANES;
    if (self->column < piece->columns + LANES) return;
    self->column = 0;
    if (piece->rows <= 1) return; // The last row is asked for again
    piece->rows--;
    piece->at += piece->stride;
}

// One chain of multiply-adds per element of c; it begins with c itself or with 0. Of the columns `width` vectors are
// computed, and only what is inside c is read and written. `a_row` is from one row of A to the next, `a_step` from
// one word to the next.
LANES_INLINE void gemm_tile(size_t words, const float *a, size_t a_row, size_t a_step,
                            const float *b, float *c, size_t c_stride, bool add,
                            struct gemm_size inside, size_t width, bool bf16,
                            struct gemm_ahead *told)
{
    struct gemm_ahead ahead = *told;
    lanes sum[TILE_ROWS][TILE_LANES];
    LANES_UNROLL(16)
    for (size_t i = 0; i < TILE_ROWS; i++) {
        LANES_UNROLL(2)
        for (size_t j = 0; j < width; j++) {
            sum[i][j] = add ? gemm_load(c, c_stride, i, j, inside) : lanes_all(0.0f);
            if (add && bf16) sum[i][j] = lanes_flush(sum[i][j]);
        }
    }
    const float *c_row = ahead.c;
    size_t k = 0;
    for (; k + ASK_STEPS <= words; k += ASK_STEPS) {
        gemm_ask(&ahead);
        __builtin_prefetch(c_row, 1);
        if (width > 1) __builtin_prefetch(c_row + LANES, 1);
        if (k < (TILE_ROWS - 1) * ASK_STEPS) c_row += c_stride; // The last row is asked for again
        LANES_UNROLL(8)
        for (size_t step = 0; step < ASK_STEPS; step++, a += a_step, b += TILE_COLUMNS)
            gemm_step(sum, a, a_row, b, width, bf16);
    }
    for (; k < words; k++, a += a_step, b += TILE_COLUMNS) gemm_step(sum, a, a_row, b, width, bf16);
    LANES_UNROLL(16)
    for (size_t i = 0; i < TILE_ROWS; i++) {
        LANES_UNROLL(2)
        for (size_t j = 0; j < width; j++) gemm_store(c, c_stride, i, j, inside, sum[i][j]);
    }
    *told = ahead;
}

// Each case with constants, so that the compiler unrolls it.
LANES_INLINE void gemm_tile_of(size_t words, const float *a, size_t a_row, size_t a_step,
                               const float *b, float *c, size_t c_stride, bool add,
                               struct gemm_size inside, bool bf16, struct gemm_ahead *ahead)
{
    const bool whole = inside.rows == TILE_ROWS && inside.columns == TILE_COLUMNS;
    if (whole && add)
        gemm_tile(words, a, a_row, a_step, b, c, c_stride, true, gemm_whole, TILE_LANES, bf16,
                  ahead);
    else if (whole)
        gemm_tile(words, a, a_row, a_step, b, c, c_stride, false, gemm_whole, TILE_LANES, bf16,
                  ahead);
    else if (inside.columns <= LANES)
        gemm_tile(words, a, a_row, a_step, b, c, c_stride, add, inside, 1, bf16, ahead);
    else gemm_tile(words, a, a_row, a_step, b, c, c_stride, add, inside, TILE_LANES, bf16, ahead);
}

LANES_INLINE void gemm_tile_float32(size_t words, const float *a, size_t a_step, const float *b,
                                    float *c, size_t c_stride, bool add, struct gemm_size inside,
                                    struct gemm_ahead *ahead)
{
    gemm_tile_of(words, a, 1, a_step, b, c, c_stride, add, inside, false, ahead);
}

// A where it lies in rows. Their distance is in a_step.
LANES_INLINE void gemm_tile_rows(size_t words, const float *a, size_t a_step, const float *b,
                                 float *c, size_t c_stride, bool add, struct gemm_size inside,
                                 struct gemm_ahead *ahead)
{
    gemm_tile_of(words, a, a_step, 1, b, c, c_stride, add, inside, false, ahead);
}

LANES_INLINE void gemm_tile_bf16(size_t words, const float *a, size_t a_step, const float *b,
                                 float *c, size_t c_stride, bool add, struct gemm_size inside,
                                 struct gemm_ahead *ahead)
{
    (void)a_step;
    gemm_tile_of(words, a, 1, TILE_ROWS, b, c, c_stride, add, inside, true, ahead);
}

// ---- all tiles ----------------------------------------------------------------------------------

// Computes one tile of c over `words` of a panel of A and one of B.
typedef void gemm_tile_function(size_t words, const float *a, size_t a_step, const float *b,
                                float *c, size_t c_stride, bool add, struct gemm_size inside,
                                struct gemm_ahead *ahead);

// c, of size `all`, in tiles of size `whole`: a strip after the other, in a strip row by row. So c is written in runs
// of a KiB, and the panels of B of a strip stay in the second-level cache.
LANES_INLINE void gemm_tiles(gemm_tile_function *tile, struct gemm_size whole, struct gemm_size all,
                             size_t words, struct kernels_panels a, struct kernels_panels b,
                             float *c, size_t c_stride, bool add, const struct kernels_piece *next)
{
    const size_t strip = STRIP_TILES * whole.columns;
    struct gemm_ahead ahead = { .piece = *next, .c_stride = c_stride };
    if (!ahead.piece.at) ahead.piece = (struct kernels_piece){ a.at, 0, 1, 1 };
    for (size_t first = 0; first < all.columns; first += strip) {
        const size_t end = all.columns - first < strip ? all.columns : first + strip;
        for (size_t i = 0; i < all.rows; i += whole.rows) {
            for (size_t j = first; j < end; j += whole.columns) {
                const size_t m = all.rows - i, n = all.columns - j;
                const struct gemm_size inside = { m < whole.rows ? m : whole.rows,
                                                  n < whole.columns ? n : whole.columns };
                const size_t right = j + whole.columns;
                ahead.c = right < end ? c + i * c_stride + right
                                      : c + (i + whole.rows) * c_stride + first;
                tile(words, a.at + i * a.pitch, a.step, b.at + j * b.pitch, c + i * c_stride + j,
                     c_stride, add, inside, &ahead);
            }
        }
    }
}

LANES_TABLED void gemm_multiply(size_t rows, size_t columns, size_t depth, struct kernels_panels a,
                                struct kernels_panels b, float *c, size_t c_stride, bool add,
                                const struct kernels_piece *next)
{
    const struct gemm_size all = { rows, columns };
    if (a.step == 1) {
        a.step = a.pitch;
        gemm_tiles(gemm_tile_rows, gemm_whole, all, depth, a, b, c, c_stride, add, next);
    } else gemm_tiles(gemm_tile_float32, gemm_whole, all, depth, a, b, c, c_stride, add, next);
}

LANES_TABLED void gemm_multiply_bf16(size_t rows, size_t columns, size_t depth,
                                     struct kernels_panels a, struct kernels_panels b, float *c,
                                     size_t c_stride, bool add, const struct kernels_piece *next)
{
    const unsigned before = lanes_flush_begin();
    gemm_tiles(gemm_tile_bf16, gemm_whole, (struct gemm_size){ rows, columns },
               (depth + 1) / 2 * GEMM_PAIR_WORDS, a, b, c, c_stride, add, next);
    lanes_flush_end(before);
}

// Rows of the table of products (kernels_product).
#define GEMM_FLOAT32_PRODUCT                                                                       \
    {                                                                                              \
        TILE_ROWS, TILE_COLUMNS, 1, 1, KERNELS_DEPTH_WORDS_MAX,                                    \
            { gemm_pack_rows, gemm_pack_columns }, { gemm_pack_rows, gemm_pack_columns },          \
            gemm_multiply, ROWS_IN_PLACE, COLUMNS_IN_PLACE                                         \
    }
#define GEMM_BF16_PRODUCT                                                                          \
    {                                                                                              \
        TILE_ROWS, TILE_COLUMNS, 2, GEMM_PAIR_WORDS, KERNELS_DEPTH_WORDS_MAX,                      \
            { gemm_pack_rows_bf16, gemm_pack_columns_bf16 },                                       \
            { gemm_pack_rows_bf16, gemm_pack_columns_bf16 }, gemm_multiply_bf16, 0, 0              \
    }
