// The tables of one side: the matrix itself, its even and odd halves, and, where 8 divides the
// side, the matrices and rotations of the fast way. The definition that kernels must agree with is
// in tests/unit/dct_definition.h.
#include "common/optimizer/dct.h"
#include "common/base/ensure.h"
#include "common/base/fault.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SERIES_TERMS = 9 }; // (π/4)^20 / 20! is below 2^-67: less than half a unit of a double

uint32_t dct_side(uint32_t size, uint32_t limit)
{
    ensure(size >= 1 && limit >= 1);
    uint32_t side = size < limit ? size : limit;
    while (size % side != 0) side--;
    return side;
}

// Taylor's series, innermost term first, for 0 <= x <= π/4.
static double series_cos(double x)
{
    const double square = x * x;
    double sum = 1.0;
    for (int i = SERIES_TERMS; i >= 1; i--)
        sum = 1.0 - square / (double)(2 * i * (2 * i - 1)) * sum;
    return sum;
}

static double series_sin(double x)
{
    const double square = x * x;
    double sum = 1.0;
    for (int i = SERIES_TERMS; i >= 1; i--)
        sum = 1.0 - square / (double)(2 * i * (2 * i + 1)) * sum;
    return x * sum;
}

// cos(π m / 2n). Reflections in integers bring every angle into the first eighth of the circle. So
// entries that are equal by definition have equal bits, and those that are zero are zero.
static double cosine(uint32_t m, uint32_t n)
{
    const double quarter_turn = 1.5707963267948966; // π/2
    m %= 4 * n;
    if (m > 2 * n) m = 4 * n - m;
    const double sign = m > n ? -1.0 : 1.0;
    if (m > n) m = 2 * n - m;
    if (2 * m <= n) return sign * series_cos(quarter_turn * (double)m / (double)n);
    return sign * series_sin(quarter_turn * (double)(n - m) / (double)n);
}

static uint32_t padded(uint32_t count) { return (count + DCT_LANES - 1) / DCT_LANES * DCT_LANES; }

static float *table_new(uint32_t rows, uint32_t stride)
{
    const size_t bytes = (size_t)rows * stride * sizeof(float);
    float *table = aligned_alloc(64, bytes); // A multiple of 64: strides are multiples of 16
    if (table) memset(table, 0, bytes);
    return table;
}

static void fill(struct dct *self)
{
    const uint32_t n = self->side;
    for (uint32_t k = 0; k < n; k++) {
        const double scale = sqrt((k == 0 ? 1.0 : 2.0) / (double)n);
        float *half = (k % 2 == 0 ? self->even : self->odd) + k / 2;
        for (uint32_t j = 0; j < n; j++) {
            const float entry = (float)(scale * cosine((2 * j + 1) * k, n));
            self->table[(size_t)k * self->stride + j] = entry;
            if (j < self->half) half[(size_t)j * self->half_stride] = entry;
        }
    }
}

// Pairs j of a DCT-IV of `size` points turn by π(2j+1)/4size.
static void fill_turn(float *turn, uint32_t size)
{
    for (uint32_t j = 0; j < size / 2; j++, turn += DCT_TURN) {
        const double near = cosine(2 * j + 1, 2 * size);
        const double far = cosine(2 * size - (2 * j + 1), 2 * size); // sin
        const double sign = j % 2 == 0 ? 1.0 : -1.0;
        turn[DCT_NEAR_U] = (float)near;
        turn[DCT_FAR_U] = (float)far;
        turn[DCT_NEAR_W] = (float)(-sign * far);
        turn[DCT_FAR_W] = (float)(sign * near);
    }
}

static void fill_leaves(struct dct *self)
{
    const uint32_t n = self->eighth;
    const double first = sqrt(1.0 / (double)self->side), scale = sqrt(2.0 / (double)self->side);
    for (uint32_t j = 0; j < n; j++) {
        for (uint32_t k = 0; k < n; k++) {
            const double plain = cosine((2 * j + 1) * k, n);
            const double fourth = cosine((2 * j + 1) * (2 * k + 1), 2 * n);
            self->leaf[DCT_FIRST][j * n + k] = (float)((k == 0 ? first : scale) * plain);
            self->leaf[DCT_PLAIN][j * n + k] = (float)(scale * plain);
            self->leaf[DCT_FOURTH][j * n + k] = (float)(scale * fourth);
        }
    }
}

static bool split_init(struct dct *self)
{
    self->eighth = self->side / 8;
    for (int i = 0; i < DCT_LEAVES; i++)
        self->leaf[i] = table_new(1, padded(self->eighth * self->eighth));
    for (uint32_t i = 0; i < 2; i++) self->turn[i] = table_new(1, padded(self->side >> i));
    if (!self->leaf[0] || !self->leaf[1] || !self->leaf[2] || !self->turn[0] || !self->turn[1])
        return false;
    fill_leaves(self);
    fill_turn(self->turn[0], self->side / 2);
    fill_turn(self->turn[1], self->side / 4);
    return true;
}

int dct_init(struct dct *self, uint32_t side)
{
    ensure(side >= 1 && side <= DCT_SIDE_MAX);
    const uint32_t half = (side + 1) / 2;
    *self = (struct dct){
        .side = side, .half = half, .stride = padded(side), .half_stride = padded(half)
    };
    self->table = table_new(side, self->stride);
    self->even = table_new(half, self->half_stride);
    self->odd = table_new(half, self->half_stride);
    if (!self->table || !self->even || !self->odd || (side % 8 == 0 && !split_init(self))) {
        dct_free(self);
        return FAULT_MEMORY;
    }
    fill(self);
    return 0;
}

void dct_free(struct dct *self)
{
    free(self->table);
    free(self->even);
    free(self->odd);
    for (int i = 0; i < DCT_LEAVES; i++) free(self->leaf[i]);
    for (int i = 0; i < 2; i++) free(self->turn[i]);
    *self = (struct dct){ 0 };
}
