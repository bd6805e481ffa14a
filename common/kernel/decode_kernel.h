#pragma once
// decode_kernel -- the products of one token, or of a few, with the parameters and with the keys
// and values of earlier tokens, written once on lanes. Only kernels_*.c include this. kernels.h
// says what each function computes.

#include "common/kernel/kernels.h"
#include "common/kernel/lanes.h"

enum { DECODE_ROWS = 4, DECODE_OUTS = 4 };

// A tile of rows x outs results, one chain for each. Both are constants where this is inlined, so
// the chains stay in registers.
LANES_INLINE void decode_tile(size_t rows, size_t outs, size_t in, const float *x, size_t x_stride,
                              const float *w, size_t w_stride, float *y, size_t y_stride)
{
    lanes sums[DECODE_ROWS][DECODE_OUTS];
    LANES_UNROLL(4)
    for (size_t r = 0; r < rows; r++) {
        LANES_UNROLL(4)
        for (size_t o = 0; o < outs; o++) sums[r][o] = lanes_all(0.0f);
    }
    for (size_t i = 0; i < in; i += LANES) {
        const size_t left = in - i;
        lanes weights[DECODE_OUTS];
        LANES_UNROLL(4)
        for (size_t o = 0; o < outs; o++) weights[o] = lanes_load_upto(w + o * w_stride + i, left);
        LANES_UNROLL(4)
        for (size_t r = 0; r < rows; r++) {
            const lanes input = lanes_load_upto(x + r * x_stride + i, left);
            LANES_UNROLL(4)
            for (size_t o = 0; o < outs; o++) sums[r][o] = lanes_fma(input, weights[o], sums[r][o]);
        }
    }
    LANES_UNROLL(4)
    for (size_t r = 0; r < rows; r++) {
        LANES_UNROLL(4)
        for (size_t o = 0; o < outs; o++) y[r * y_stride + o] = lanes_sum(sums[r][o]);
    }
}

static void decode_project(size_t rows, size_t out, size_t in, const float *x, size_t x_stride,
                           const float *w, size_t w_stride, float *y, size_t y_stride)
{
    size_t o = 0;
    for (; rows == 1 && o + 4 <= out; o += 4)
        decode_tile(1, 4, in, x, x_stride, w + o * w_stride, w_stride, y + o, y_stride);
    for (; o + 2 <= out; o += 2) {
        const float *weights = w + o * w_stride;
        size_t r = 0;
        for (; r + 4 <= rows; r += 4)
            decode_tile(4, 2, in, x + r * x_stride, x_stride, weights, w_stride,
                        y + r * y_stride + o, y_stride);
        for (; r < rows; r++)
            decode_tile(1, 2, in, x + r * x_stride, x_stride, weights, w_stride,
                        y + r * y_stride + o, y_stride);
    }
    for (size_t r = 0; r < rows && o < out; r++)
        decode_tile(1, 1, in, x + r * x_stride, x_stride, w + o * w_stride, w_stride,
                    y + r * y_stride + o, y_stride);
}

// scores = e^(score - highest); returns their sum.
LANES_INLINE float decode_exponentials(size_t count, float scale, float *scores)
{
    float high = scores[0];
    for (size_t t = 1; t < count; t++) high = high > scores[t] ? high : scores[t];
    const lanes factor = lanes_all(scale), shift = lanes_all(-scale * high);
    float padded[LANES];
    lanes sum = lanes_all(0.0f);
    for (size_t t = 0; t < count; t += LANES) {
        const size_t left = count - t;
        const lanes e = lanes_exp(lanes_fma(lanes_load_upto(scores + t, left), factor, shift));
        lanes_store_upto(scores + t, e, left);
        lanes_store(padded, e);
        sum = lanes_add(sum, left < LANES ? lanes_load_some(padded, left) : e);
    }
    return lanes_sum(sum);
}

static void decode_attend(size_t count, size_t dim, float scale, const float *q, const float *k,
                          const float *v, float *scores, float *y)
{
    decode_project(1, count, dim, q, dim, k, dim, scores, count);
    const lanes inverse = lanes_all(1.0f / decode_exponentials(count, scale, scores));
    for (size_t i = 0; i < dim; i += LANES) {
        const size_t left = dim - i;
        lanes sum = lanes_all(0.0f);
        for (size_t t = 0; t < count; t++)
            sum = lanes_fma(lanes_all(scores[t]), lanes_load_upto(v + t * dim + i, left), sum);
        lanes_store_upto(y + i, lanes_mul(sum, inverse), left);
    }
}
