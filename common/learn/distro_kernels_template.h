// The kernels of distro_kernels.h, written once. Each distro_kernels_<isa>.c defines the vector,
// its operations, the tile, the bits of magnitudes as a vector, KEYS, and REACHING(values,
// threshold): one bit for each of 16 values whose magnitude's bits are at least the threshold. It
// then includes this file; so there is no #pragma once.
//
// Rows in scratch are padded to multiples of 16 lanes. What the padding holds is never read into a
// result: lanes do not mix.

#include "common/learn/distro_kernels.h"

#include <string.h>

#define ALWAYS static inline __attribute__((always_inline))

enum { TILE_VECTORS = 2, GROUPS_FEW = 64, GROUPS = 256, BLOCK = 16 };

// 0, 1, 2, ...: the list that takes every row.
static const uint8_t every[DCT_SIDE_MAX] = {
#define FOUR(n)       n, n + 1, n + 2, n + 3
#define SIXTEEN(n)    FOUR(n), FOUR(n + 4), FOUR(n + 8), FOUR(n + 12)
#define SIXTY_FOUR(n) SIXTEEN(n), SIXTEEN(n + 16), SIXTEEN(n + 32), SIXTEEN(n + 48)
    SIXTY_FOUR(0), SIXTY_FOUR(64), SIXTY_FOUR(128), SIXTY_FOUR(192)
#undef SIXTY_FOUR
#undef SIXTEEN
#undef FOUR
};

// One tile of `multiply`: `rows` rows by `vectors` vectors.
ALWAYS void tile(const float *left, size_t left_stride, const uint8_t *list, uint32_t count,
                 const float *right, size_t right_stride, float *out, size_t out_stride, int rows,
                 int vectors)
{
    vector sum[TILE_ROWS][TILE_VECTORS];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) sum[r][v] = ZERO();
    for (uint32_t q = 0; q < count; q++) {
        const float *scalars = left + list[q] * left_stride;
        vector row[TILE_VECTORS];
        for (int v = 0; v < vectors; v++) row[v] = LOAD(right + q * right_stride + v * LANES);
        for (int r = 0; r < rows; r++) {
            const vector scalar = SPREAD(scalars[r]);
            for (int v = 0; v < vectors; v++) sum[r][v] = FMA(scalar, row[v], sum[r][v]);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            STORE(out + (size_t)r * out_stride + v * LANES, sum[r][v]);
}

// The same with the number of rows known to the compiler.
ALWAYS void tile_of(uint32_t rows, const float *left, size_t left_stride, const uint8_t *list,
                    uint32_t count, const float *right, size_t right_stride, float *out,
                    size_t out_stride, int vectors)
{
#define TILE_OF(n)                                                                                 \
    case n:                                                                                        \
        tile(left, left_stride, list, count, right, right_stride, out, out_stride, n, vectors);    \
        break
    switch (rows) {
        TILE_OF(1);
        TILE_OF(2);
        TILE_OF(3);
#if TILE_ROWS > 4
        TILE_OF(4);
        TILE_OF(5);
        TILE_OF(6);
        TILE_OF(7);
#endif
    default:
        tile(left, left_stride, list, count, right, right_stride, out, out_stride, TILE_ROWS,
             vectors);
    }
#undef TILE_OF
}

// out[i][w] = chain over q < count of left[list[q]][i] · right[q][w], for i < rows and w < width, a
// multiple of DCT_LANES.
static void multiply(uint32_t rows, uint32_t width, const float *left, size_t left_stride,
                     const uint8_t *list, uint32_t count, const float *right, size_t right_stride,
                     float *out, size_t out_stride)
{
    for (uint32_t i = 0; i < rows; i += TILE_ROWS) {
        float *to = out + i * out_stride;
        uint32_t w = 0;
        for (; w + TILE_VECTORS * LANES <= width; w += TILE_VECTORS * LANES)
            tile_of(rows - i, left + i, left_stride, list, count, right + w, right_stride, to + w,
                    out_stride, TILE_VECTORS);
        for (; w < width; w += LANES)
            tile_of(rows - i, left + i, left_stride, list, count, right + w, right_stride, to + w,
                    out_stride, 1);
    }
}

// ---- encode, one side. In strips of columns, so that what lies between the steps stays close.

// Sums to rows 0.. of out, differences to rows `half`.. of it. x has n rows.
static void fold(uint32_t n, uint32_t width, const float *x, size_t stride, float *out)
{
    const uint32_t half = (n + 1) / 2;
    for (uint32_t j = 0; j < n / 2; j++) {
        const float *near = x + j * stride, *far = x + (n - 1 - j) * stride;
        float *sum = out + j * DISTRO_STRIP, *difference = out + (half + j) * DISTRO_STRIP;
        for (uint32_t w = 0; w < width; w += LANES) {
            const vector a = LOAD(near + w), b = LOAD(far + w);
            STORE(sum + w, ADD(a, b));
            STORE(difference + w, SUB(a, b));
        }
    }
    if (n % 2 != 0)
        memcpy(out + (half - 1) * DISTRO_STRIP, x + (half - 1) * stride, width * sizeof *x);
}

static void transform_folded(const struct dct *dct, uint32_t width, const float *x, size_t stride,
                             struct distro_scratch *scratch, float *out, size_t out_stride)
{
    const uint32_t n = dct->side, half = dct->half;
    float *folded = scratch->strip[0];
    fold(n, width, x, stride, folded);
    multiply(half, width, dct->even, dct->half_stride, every, half, folded, DISTRO_STRIP, out,
             2 * out_stride);
    multiply(n / 2, width, dct->odd, dct->half_stride, every, n / 2, folded + half * DISTRO_STRIP,
             DISTRO_STRIP, out + out_stride, 2 * out_stride);
}

struct turned { vector u, w; };

ALWAYS struct turned turn_pair(vector near, vector far, const float *by)
{
    return (struct turned){FMA(far, SPREAD(by[DCT_FAR_U]), MUL(near, SPREAD(by[DCT_NEAR_U]))),
                           FMA(far, SPREAD(by[DCT_FAR_W]), MUL(near, SPREAD(by[DCT_NEAR_W])))};
}

struct quarter { vector sum, difference; struct turned turned; };

// The four rows that mirror row i of n = 4m: folded twice; what is odd, folded once and turned.
ALWAYS struct quarter quarter_of(const struct dct *dct, uint32_t i, const float *x, size_t stride)
{
    const uint32_t n = dct->side;
    const vector a = LOAD(x + i * stride), b = LOAD(x + (n - 1 - i) * stride);
    const vector c = LOAD(x + (n / 2 - 1 - i) * stride), d = LOAD(x + (n / 2 + i) * stride);
    const vector near = ADD(a, b), far = ADD(c, d);
    return (struct quarter){ADD(near, far), SUB(near, far),
                            turn_pair(SUB(a, b), SUB(c, d), dct->turn[0] + i * DCT_TURN)};
}

// Eight rows become one row in each of eight blocks of n/8: what the leaves transform.
static void split(const struct dct *dct, uint32_t width, const float *x, size_t stride, float *out)
{
    const uint32_t eighth = dct->eighth;
    const size_t block = eighth * DISTRO_STRIP;
    for (uint32_t j = 0; j < eighth; j++) {
        for (uint32_t w = 0; w < width; w += LANES) {
            float *to = out + j * DISTRO_STRIP + w;
            const struct quarter near = quarter_of(dct, j, x + w, stride);
            const struct quarter far = quarter_of(dct, 2 * eighth - 1 - j, x + w, stride);
            const struct turned turned =
                turn_pair(near.difference, far.difference, dct->turn[1] + j * DCT_TURN);
            STORE(to, ADD(near.sum, far.sum));
            STORE(to + block, SUB(near.sum, far.sum));
            STORE(to + 2 * block, turned.u);
            STORE(to + 3 * block, turned.w);
            STORE(to + 4 * block, ADD(near.turned.u, far.turned.u));
            STORE(to + 5 * block, SUB(near.turned.u, far.turned.u));
            STORE(to + 6 * block, ADD(near.turned.w, far.turned.w));
            STORE(to + 7 * block, SUB(near.turned.w, far.turned.w));
        }
    }
}

// A DCT-IV of 2·count points from its two DCT-II: frequency q to row q of out, `step` apart.
//     Y[0] = U[0], Y[2p] = U[p] + V[count-p], Y[2p-1] = U[p] - V[count-p], Y[2count-1] = -V[0]
static void combine(uint32_t count, uint32_t width, const float *u, const float *v, float *out,
                    size_t step)
{
    for (uint32_t w = 0; w < width; w += LANES) {
        STORE(out + w, LOAD(u + w));
        STORE(out + (2 * count - 1) * step + w, SUB(ZERO(), LOAD(v + w)));
    }
    for (uint32_t p = 1; p < count; p++) {
        const float *near = u + p * DISTRO_STRIP, *far = v + (count - p) * DISTRO_STRIP;
        for (uint32_t w = 0; w < width; w += LANES) {
            const vector a = LOAD(near + w), b = LOAD(far + w);
            STORE(out + 2 * p * step + w, ADD(a, b));
            STORE(out + (2 * p - 1) * step + w, SUB(a, b));
        }
    }
}

static void transform_split(const struct dct *dct, uint32_t width, const float *x, size_t stride,
                            struct distro_scratch *scratch, float *out, size_t out_stride)
{
    const uint32_t eighth = dct->eighth;
    const size_t rows = eighth * DISTRO_STRIP;
    float *blocks = scratch->strip[0];
    float *u = scratch->strip[1], *v = u + 2 * rows, *odd_u = v + 2 * rows, *odd_v = odd_u + rows;
    split(dct, width, x, stride, blocks);
    const struct {
        enum dct_leaf leaf;
        float *to;
        size_t step;
    } leaves[8] = {
        {DCT_FIRST, out, 8 * out_stride},
        {DCT_FOURTH, out + 4 * out_stride, 8 * out_stride},
        {DCT_PLAIN, odd_u, DISTRO_STRIP},
        {DCT_PLAIN, odd_v, DISTRO_STRIP},
        {DCT_PLAIN, u, 2 * DISTRO_STRIP},
        {DCT_FOURTH, u + DISTRO_STRIP, 2 * DISTRO_STRIP},
        {DCT_PLAIN, v, 2 * DISTRO_STRIP},
        {DCT_FOURTH, v + DISTRO_STRIP, 2 * DISTRO_STRIP},
    };
    for (uint32_t i = 0; i < 8; i++)
        multiply(eighth, width, dct->leaf[leaves[i].leaf], eighth, every, eighth, blocks + i * rows,
                 DISTRO_STRIP, leaves[i].to, leaves[i].step);
    combine(eighth, width, odd_u, odd_v, out + 2 * out_stride, 4 * out_stride);
    combine(2 * eighth, width, u, v, out + out_stride, 2 * out_stride);
}

// The transform of the columns of x [n][width] into out, rows in the order of frequency. `width` is
// a multiple of DCT_LANES.
static void transform(const struct dct *dct, uint32_t width, const float *x, size_t stride,
                      struct distro_scratch *scratch, float *out, size_t out_stride)
{
    for (uint32_t w = 0; w < width; w += DISTRO_STRIP) {
        const uint32_t strip = width - w < DISTRO_STRIP ? width - w : DISTRO_STRIP;
        if (dct->eighth)
            transform_split(dct, strip, x + w, stride, scratch, out + w, out_stride);
        else
            transform_folded(dct, strip, x + w, stride, scratch, out + w, out_stride);
    }
}

typedef float quad __attribute__((vector_size(16)));

// out[j][i] = x[i][j], in squares of four; whole squares, so up to 3 rows and columns too many.
static void turn(uint32_t rows, uint32_t columns, const float *x, size_t stride, float *out,
                 size_t out_stride)
{
    for (uint32_t i = 0; i < rows; i += 4) {
        for (uint32_t j = 0; j < columns; j += 4) {
            quad a, b, c, d;
            const float *from = x + i * stride + j;
            memcpy(&a, from, sizeof a);
            memcpy(&b, from + stride, sizeof b);
            memcpy(&c, from + 2 * stride, sizeof c);
            memcpy(&d, from + 3 * stride, sizeof d);
            const quad ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
            const quad ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
            const quad cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
            const quad cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
            a = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
            b = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
            c = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
            d = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
            float *to = out + j * out_stride + i;
            memcpy(to, &a, sizeof a);
            memcpy(to + out_stride, &b, sizeof b);
            memcpy(to + 2 * out_stride, &c, sizeof c);
            memcpy(to + 3 * out_stride, &d, sizeof d);
        }
    }
}

// Rows of whole vectors: the chunk itself, or a copy of it.
static const float *whole_rows(uint32_t height, const struct dct *columns, const float *x,
                               size_t *stride, float *copy)
{
    const uint32_t width = columns->side;
    if (width == columns->stride) return x;
    for (uint32_t h = 0; h < height; h++) {
        float *row = copy + h * columns->stride;
        memcpy(row, x + h * *stride, width * sizeof *row);
        memset(row + width, 0, (columns->stride - width) * sizeof *row);
    }
    *stride = columns->stride;
    return copy;
}

static void encode(const struct dct *rows, const struct dct *columns, const float *x, size_t stride,
                   struct distro_scratch *scratch, float *ret_y)
{
    const uint32_t height = rows->side, width = columns->side;
    x = whole_rows(height, columns, x, &stride, scratch->turned);
    transform(rows, columns->stride, x, stride, scratch, scratch->middle, columns->stride);
    turn(height, width, scratch->middle, columns->stride, scratch->turned, rows->stride);
    float *to = height == rows->stride ? ret_y : scratch->middle;
    transform(columns, rows->stride, scratch->turned, rows->stride, scratch, to, rows->stride);
    if (to == ret_y) return;
    for (uint32_t d = 0; d < width; d++)
        memcpy(ret_y + d * height, scratch->middle + d * rows->stride, height * sizeof *ret_y);
}

// A coefficient's frequencies. Numbers ascend, so the column is found by stepping on, not dividing.
struct place {
    uint32_t row, column, begin;
}; // begin: column·height

ALWAYS void step_to(struct place *self, uint32_t number, uint32_t height)
{
    for (; number - self->begin >= height; self->begin += height) self->column++;
    self->row = number - self->begin;
}

// Which frequencies of the rows carry anything, even ones and odd ones apart, and the place of each
// in its list.
struct live {
    uint8_t list[2][DCT_SIDE_MAX], place[DCT_SIDE_MAX];
    uint32_t count[2];
};

static void find_live(uint32_t height, const uint16_t *numbers, uint32_t count,
                      struct live *ret_live)
{
    bool carries[DCT_SIDE_MAX] = {false};
    struct place at = {0, 0, 0};
    for (uint32_t i = 0; i < count; i++) {
        step_to(&at, numbers[i], height);
        carries[at.row] = true;
    }
    ret_live->count[0] = ret_live->count[1] = 0;
    for (uint32_t b = 0; b < height; b++) {
        if (!carries[b]) continue;
        const uint32_t place = ret_live->count[b % 2]++;
        ret_live->list[b % 2][place] = (uint8_t)b;
        ret_live->place[b] = (uint8_t)place;
    }
}

// row += value · frequency, a row of a table.
ALWAYS void add_frequency(const struct dct *dct, const float *frequency, float value, float *row)
{
    const vector scalar = SPREAD(value);
    for (uint32_t w = 0; w < dct->stride; w += LANES)
        STORE(row + w, FMA(scalar, LOAD(frequency + w), LOAD(row + w)));
}

// x[h] = even[h] + odd[h], x[n-1-h] = even[h] - odd[h].
static void unfold(uint32_t n, uint32_t width, const float *even, const float *odd, float *x,
                   size_t stride)
{
    for (uint32_t h = 0; h < (n + 1) / 2; h++) {
        float *near = x + h * stride, *far = x + (n - 1 - h) * stride;
        for (uint32_t w = 0; w < width; w += LANES) {
            const vector a = LOAD(even + h * stride + w), b = LOAD(odd + h * stride + w);
            if (near != far) STORE(far + w, SUB(a, b));
            STORE(near + w, ADD(a, b));
        }
    }
}

static void decode(const struct dct *rows, const struct dct *columns, const uint16_t *numbers,
                   const float *values, uint32_t count, struct distro_scratch *scratch,
                   float *ret_x)
{
    const uint32_t height = rows->side;
    const size_t stride = columns->stride;
    struct live live;
    find_live(height, numbers, count, &live);
    float *middle[2] = {scratch->turned, scratch->turned + rows->half * stride};
    memset(middle[0], 0, live.count[0] * stride * sizeof(float));
    memset(middle[1], 0, live.count[1] * stride * sizeof(float));
    struct place at = {0, 0, 0};
    for (uint32_t i = 0; i < count; i++) {
        step_to(&at, numbers[i], height);
        add_frequency(columns, columns->table + at.column * stride, values[i],
                      middle[at.row % 2] + live.place[at.row] * stride);
    }
    for (int odd = 0; odd < 2; odd++)
        multiply(rows->half, columns->stride, rows->table, rows->stride, live.list[odd],
                 live.count[odd], middle[odd], stride, odd ? scratch->fold : scratch->middle,
                 stride);
    unfold(height, columns->stride, scratch->middle, scratch->fold, ret_x, stride);
}

static uint32_t momentum(uint32_t count, float decay, float rate, const float *old, const float *y,
                         float *ret)
{
    uint32_t largest = 0;
    for (uint32_t i = 0; i < count; i++) {
        const float value = __builtin_fmaf(rate, y[i], decay * old[i]);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        bits &= 0x7fffffffu;
        largest = bits > largest ? bits : largest;
        ret[i] = value;
    }
    return largest;
}

// ---- the largest k. A key is the bits of a magnitude: it orders as the magnitude does.

static uint32_t count_reaching(const uint32_t *keys, uint32_t count, uint32_t threshold)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i += BLOCK)
        sum += (uint32_t)__builtin_popcount(REACHING(keys + i, threshold));
    return sum;
}

// The largest threshold, in the bits from `lowest_bit` up, that at least `top_k` keys reach. Keys
// are padded with zeros to a multiple of BLOCK.
static uint32_t threshold_of(const uint32_t *keys, uint32_t count, uint32_t top_k, int lowest_bit)
{
    uint32_t threshold = 0;
    for (int bit = 30; bit >= lowest_bit; bit--) {
        const uint32_t higher = threshold | 1u << bit;
        if (count_reaching(keys, count, higher) >= top_k) threshold = higher;
    }
    return threshold;
}

// Of each of `groups` groups the largest key: value i is in group i % groups. A rest that fills no
// row of groups goes unseen.
ALWAYS void group_maxima(const float *values, uint32_t count, uint32_t groups, uint32_t *ret_keys)
{
    key_vector largest[GROUPS / LANES];
    for (uint32_t g = 0; g < groups / LANES; g++) largest[g] = KEYS(values + g * LANES);
    for (uint32_t i = groups; i + groups <= count; i += groups)
        for (uint32_t g = 0; g < groups / LANES; g++)
            largest[g] = LARGER(largest[g], KEYS(values + i + g * LANES));
    for (uint32_t g = 0; g < groups / LANES; g++) STORE_KEYS(ret_keys + g * LANES, largest[g]);
}

// A threshold that at least top_k keys reach, and few more: so many of the maxima of groups do. 0
// where that would be no help.
static uint32_t rough_threshold(const float *values, uint32_t count, uint32_t top_k)
{
    uint32_t largest[GROUPS];
    const uint32_t groups = top_k <= GROUPS_FEW / 4 ? GROUPS_FEW : GROUPS;
    if (count < 2 * groups || top_k > groups / 2) return 0;
    if (groups == GROUPS_FEW)
        group_maxima(values, count, GROUPS_FEW, largest);
    else
        group_maxima(values, count, GROUPS, largest);
    return threshold_of(largest, groups, top_k, 15); // A hundredth more or less is near enough
}

// The keys that reach the threshold and their numbers, ascending.
static uint32_t collect(const float *values, uint32_t count, uint32_t threshold,
                        struct distro_scratch *ret)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i += BLOCK) {
        float block[BLOCK] = {0}; // The last one may not be whole
        const float *from = values + i;
        if (count - i < BLOCK) from = memcpy(block, from, (count - i) * sizeof *from);
        for (uint32_t mask = REACHING(from, threshold); mask != 0; mask &= mask - 1) {
            const uint32_t place = (uint32_t)__builtin_ctz(mask);
            memcpy(&ret->keys[found], from + place, sizeof ret->keys[0]);
            ret->keys[found] &= 0x7fffffffu;
            ret->found[found++] = (uint16_t)(i + place);
        }
    }
    return found;
}

static uint32_t select_top(uint32_t count, const float *values, uint32_t top_k,
                           struct distro_scratch *scratch, uint16_t *ret_numbers)
{
    const uint32_t rough = rough_threshold(values, count, top_k), *keys = scratch->keys;
    const uint32_t found = collect(values, count, rough ? rough : 1, scratch); // 1: no zeros
    uint32_t padded = found;
    while (padded % BLOCK != 0) scratch->keys[padded++] = 0;

    const uint32_t threshold = threshold_of(keys, padded, top_k, 0);
    uint32_t equal = top_k - count_reaching(keys, padded, threshold + 1), chosen = 0;
    for (uint32_t i = 0; i < found; i++) {
        if (keys[i] < threshold) continue;
        if (keys[i] == threshold) {
            if (equal == 0) continue;
            equal--;
        }
        ret_numbers[chosen++] = scratch->found[i];
    }
    return chosen;
}

static void update(uint32_t count, const float *x, float keep, float rate, float *p)
{
    for (uint32_t i = 0; i < count; i++) {
        const float move = x[i] > 0.0f ? -rate : x[i] < 0.0f ? rate : 0.0f;
        p[i] = __builtin_fmaf(p[i], keep, move);
    }
}

const struct distro_kernels KERNELS = {.name = NAME,
                                       .encode = encode,
                                       .decode = decode,
                                       .momentum = momentum,
                                       .select = select_top,
                                       .update = update};
