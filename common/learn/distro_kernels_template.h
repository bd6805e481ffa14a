// The kernels of distro_kernels.h, written once. Each distro_kernels_<isa>.c defines the vector,
// its operations, the tile, and REACHING(keys, threshold): one bit for each of 16 keys that is at
// least the threshold. It then includes this file; so there is no #pragma once.
//
// Rows in scratch are padded to multiples of 16 lanes. What the padding holds is never read into a
// result: lanes do not mix.

#include "common/learn/distro_kernels.h"

#include <string.h>

#define ALWAYS static inline __attribute__((always_inline))

enum { TILE_VECTORS = 2, GROUPS = 256, BLOCK = 16 };

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

// One tile of `multiply`: TILE_ROWS rows by `vectors` vectors.
ALWAYS void tile(const float *left, size_t left_stride, const uint8_t *list, uint32_t count,
                 const float *right, size_t right_stride, float *out, size_t out_stride,
                 int vectors)
{
    vector sum[TILE_ROWS][TILE_VECTORS];
    for (int r = 0; r < TILE_ROWS; r++)
        for (int v = 0; v < vectors; v++) sum[r][v] = ZERO();
    for (uint32_t q = 0; q < count; q++) {
        const float *scalars = left + list[q] * left_stride;
        vector row[TILE_VECTORS];
        for (int v = 0; v < vectors; v++) row[v] = LOAD(right + q * right_stride + v * LANES);
        for (int r = 0; r < TILE_ROWS; r++) {
            const vector scalar = SPREAD(scalars[r]);
            for (int v = 0; v < vectors; v++) sum[r][v] = FMA(scalar, row[v], sum[r][v]);
        }
    }
    for (int r = 0; r < TILE_ROWS; r++)
        for (int v = 0; v < vectors; v++)
            STORE(out + (size_t)r * out_stride + v * LANES, sum[r][v]);
}

// out[i][w] = chain over q < count of left[list[q]][i] · right[q][w], for i < rows rounded up to a
// tile and w < width, a multiple of DCT_LANES.
static void multiply(uint32_t rows, uint32_t width, const float *left, size_t left_stride,
                     const uint8_t *list, uint32_t count, const float *right, size_t right_stride,
                     float *out, size_t out_stride)
{
    for (uint32_t i = 0; i < rows; i += TILE_ROWS) {
        float *to = out + i * out_stride;
        uint32_t w = 0;
        for (; w + TILE_VECTORS * LANES <= width; w += TILE_VECTORS * LANES)
            tile(left + i, left_stride, list, count, right + w, right_stride, to + w, out_stride,
                 TILE_VECTORS);
        for (; w < width; w += LANES)
            tile(left + i, left_stride, list, count, right + w, right_stride, to + w, out_stride,
                 1);
    }
}

// Sums to rows 0.. of out, differences to rows `half`.. of it. x has n rows; `width` is not padded.
static void fold(uint32_t n, uint32_t width, const float *x, size_t stride, float *out,
                 size_t out_stride)
{
    const uint32_t half = (n + 1) / 2;
    for (uint32_t j = 0; j < n / 2; j++) {
        const float *near = x + j * stride, *far = x + (n - 1 - j) * stride;
        float *sum = out + j * out_stride, *difference = out + (half + j) * out_stride;
        uint32_t w = 0;
        for (; w + LANES <= width; w += LANES) {
            const vector a = LOAD(near + w), b = LOAD(far + w);
            STORE(sum + w, ADD(a, b));
            STORE(difference + w, SUB(a, b));
        }
        for (; w < width; w++) {
            sum[w] = near[w] + far[w];
            difference[w] = near[w] - far[w];
        }
    }
    if (n % 2 != 0)
        memcpy(out + (half - 1) * out_stride, x + (half - 1) * stride, width * sizeof *x);
}

// The transform of the columns of x [n][width]: fold into `folded`, then multiply into out, whose
// rows are in the order of frequency. Both have rows `out_stride` apart.
static void transform(const struct dct *dct, uint32_t width, const float *x, size_t stride,
                      float *folded, float *out, size_t out_stride)
{
    const uint32_t n = dct->side, half = dct->half,
                   padded = (width + DCT_LANES - 1) / DCT_LANES * DCT_LANES;
    fold(n, width, x, stride, folded, out_stride);
    multiply(half, padded, dct->even, dct->half_stride, every, half, folded, out_stride, out,
             2 * out_stride);
    multiply(half, padded, dct->odd, dct->half_stride, every, n / 2, folded + half * out_stride,
             out_stride, out + out_stride, 2 * out_stride);
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

static void encode(const struct dct *rows, const struct dct *columns, const float *x, size_t stride,
                   struct distro_scratch *scratch, float *ret_y)
{
    const uint32_t height = rows->side, width = columns->side;
    transform(rows, width, x, stride, scratch->fold, scratch->middle, columns->stride);
    turn(height, width, scratch->middle, columns->stride, scratch->turned, rows->stride);
    transform(columns, height, scratch->turned, rows->stride, scratch->fold, scratch->middle,
              rows->stride);
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

// ---- the largest k. Keys are the bits of magnitudes, padded with zeros to a multiple of BLOCK.

static uint32_t count_reaching(const uint32_t *keys, uint32_t count, uint32_t threshold)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i += BLOCK)
        sum += (uint32_t)__builtin_popcount(REACHING(keys + i, threshold));
    return sum;
}

// The largest threshold, in the bits from `lowest_bit` up, that at least `top_k` keys reach.
static uint32_t threshold_of(const uint32_t *keys, uint32_t count, uint32_t top_k, int lowest_bit)
{
    uint32_t threshold = 0;
    for (int bit = 30; bit >= lowest_bit; bit--) {
        const uint32_t higher = threshold | 1u << bit;
        if (count_reaching(keys, count, higher) >= top_k) threshold = higher;
    }
    return threshold;
}

// A threshold that at least top_k keys reach, and few more: so many of the maxima of groups do. A
// rest that fills no group goes unseen, and can only add to them.
static uint32_t rough_threshold(const uint32_t *keys, uint32_t count, uint32_t top_k)
{
    uint32_t largest[GROUPS];
    if (count < 2 * GROUPS || top_k > GROUPS / 2) return 0;
    memcpy(largest, keys, sizeof largest);
    for (uint32_t i = GROUPS; i + GROUPS <= count; i += GROUPS)
        for (uint32_t g = 0; g < GROUPS; g++)
            largest[g] = keys[i + g] > largest[g] ? keys[i + g] : largest[g];
    return threshold_of(largest, GROUPS, top_k, 12);
}

// The numbers of the keys that reach the threshold, ascending; and those keys, moved to the front.
static uint32_t collect(uint32_t *keys, uint32_t count, uint32_t threshold, uint16_t *ret_found)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i += BLOCK) {
        for (uint32_t mask = REACHING(keys + i, threshold); mask != 0; mask &= mask - 1) {
            const uint32_t number = i + (uint32_t)__builtin_ctz(mask);
            keys[found] = keys[number]; // Not ahead of i: what is still to be read stands
            ret_found[found++] = (uint16_t)number;
        }
    }
    return found;
}

static uint32_t pad(uint32_t *keys, uint32_t count)
{
    while (count % BLOCK != 0) keys[count++] = 0;
    return count;
}

static uint32_t select_top(uint32_t count, const float *values, uint32_t top_k,
                           struct distro_scratch *scratch, uint16_t *ret_numbers)
{
    uint32_t *keys = scratch->keys;
    memcpy(keys, values, count * sizeof *keys);
    for (uint32_t i = 0; i < count; i++) keys[i] &= 0x7fffffffu;
    const uint32_t all = pad(keys, count), rough = rough_threshold(keys, all, top_k);
    const uint32_t found = collect(keys, all, rough ? rough : 1, scratch->found); // 1: no zeros

    const uint32_t padded = pad(keys, found), threshold = threshold_of(keys, padded, top_k, 0);
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
