// The kernels of distro_kernels.h, written once. Each distro_kernels_<isa>.c defines the vector,
// its operations, the tile, the bits of magnitudes as a vector, KEYS, and REACHING(values,
// threshold): one bit for each of 16 values whose magnitude's bits are at least the threshold. It
// then includes this file, which therefore has no #pragma once.
//
// Rows in scratch are padded to multiples of 16 lanes. Lanes do not mix, so no value of the padding
// gets into a result.

#include "common/optimizer/distro_kernels.h"

#include <string.h>

#ifdef __SANITIZE_ADDRESS__ // Inlined with its checks, all this would take gcc five times as long
#define ALWAYS static __attribute__((unused))
#else
#define ALWAYS static inline __attribute__((always_inline))
#endif

#include "common/optimizer/distro_product_template.h"
#include "common/optimizer/distro_encode_template.h"
#include "common/optimizer/distro_select_template.h"

// ---- decode

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
    uint64_t carries[DCT_SIDE_MAX / 64] = { 0 }; // One bit each
    struct place at = { 0, 0, 0 };
    for (uint32_t i = 0; i < count; i++) {
        step_to(&at, numbers[i], height);
        carries[at.row / 64] |= UINT64_C(1) << at.row % 64;
    }
    ret_live->count[0] = ret_live->count[1] = 0;
    for (uint32_t word = 0; word * 64 < height; word++) {
        for (uint64_t left = carries[word]; left != 0; left &= left - 1) {
            const uint32_t b = word * 64 + (uint32_t)__builtin_ctzll(left);
            const uint32_t place = ret_live->count[b % 2]++;
            ret_live->list[b % 2][place] = (uint8_t)b;
            ret_live->place[b] = (uint8_t)place;
        }
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
    float *partial[2] = { scratch->turned, scratch->turned + rows->half * stride };
    memset(partial[0], 0, live.count[0] * stride * sizeof(float));
    memset(partial[1], 0, live.count[1] * stride * sizeof(float));
    struct place at = { 0, 0, 0 };
    for (uint32_t i = 0; i < count; i++) {
        step_to(&at, numbers[i], height);
        add_frequency(columns, columns->table + at.column * stride, values[i],
                      partial[at.row % 2] + live.place[at.row] * stride);
    }
    for (int odd = 0; odd < 2; odd++)
        multiply((struct product){ rows->table, rows->stride, live.list[odd], live.count[odd],
                                   partial[odd], stride, odd ? scratch->fold : scratch->middle,
                                   stride },
                 rows->half, columns->stride);
    unfold(height, columns->stride, scratch->middle, scratch->fold, ret_x, stride);
}

static uint32_t larger_of(uint32_t largest, const float *value)
{
    uint32_t bits;
    memcpy(&bits, value, sizeof bits);
    bits &= 0x7fffffffu;
    return bits > largest ? bits : largest;
}

static uint32_t momentum(uint32_t count, float decay, float rate, const float *old, const float *y,
                         float *ret)
{
    const vector decays = SPREAD(decay), rates = SPREAD(rate);
    const float zeros[LANES] = { 0.0f };
    key_vector keys = KEYS(zeros);
    uint32_t i = 0, lanes[LANES], largest = 0;
    for (; i + LANES <= count; i += LANES) {
        STORE(ret + i, FMA(rates, LOAD(y + i), MUL(decays, LOAD(old + i))));
        keys = LARGER(keys, KEYS(ret + i));
    }
    for (; i < count; i++) {
        ret[i] = __builtin_fmaf(rate, y[i], decay * old[i]);
        largest = larger_of(largest, &ret[i]);
    }
    STORE_KEYS(lanes, keys);
    for (uint32_t lane = 0; lane < LANES; lane++)
        if (lanes[lane] > largest) largest = lanes[lane];
    return largest;
}

static void update(uint32_t count, const float *x, float keep, float rate, float *p)
{
    for (uint32_t i = 0; i < count; i++) {
        const float move = x[i] > 0.0f ? -rate : x[i] < 0.0f ? rate : 0.0f;
        p[i] = __builtin_fmaf(p[i], keep, move);
    }
}

// Past the caches if the processor can: no residual is read again before the next step.
static void store(uint32_t count, const float *x, float *ret)
{
    uint32_t i = 0;
    if ((uintptr_t)ret % (LANES * sizeof *ret) == 0)
        for (; i + LANES <= count; i += LANES) STREAM(ret + i, LOAD(x + i));
    memcpy(ret + i, x + i, (count - i) * sizeof *x);
    FENCE();
}

const struct distro_kernels KERNELS = { .name = NAME,
                                        .encode = encode,
                                        .decode = decode,
                                        .momentum = momentum,
                                        .select = select_top,
                                        .store = store,
                                        .update = update };
