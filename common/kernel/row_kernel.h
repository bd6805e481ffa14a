#pragma once
// row_kernel -- the loops of the model that go along rows, written once on lanes. Only kernels_*.c
// include this. kernels.h says what each function computes.

#include "common/kernel/elementary.h"
#include "common/kernel/kernels.h"
#include "common/kernel/lanes.h"

// Lanes from `count` on become 0.
LANES_INLINE lanes lanes_keep(lanes a, size_t count)
{
    float aside[LANES];
    if (count >= LANES) return a;
    lanes_store(aside, a);
    return lanes_load_some(aside, count);
}

LANES_INLINE float dot(const float *a, const float *b, size_t count)
{
    lanes sum = lanes_all(0.0f);
    for (size_t i = 0; i < count; i += LANES)
        sum = lanes_fma(lanes_load_upto(a + i, count - i), lanes_load_upto(b + i, count - i), sum);
    return lanes_sum(sum);
}

LANES_INLINE float largest(const float *x, size_t count)
{
    lanes high = lanes_all(x[0]);
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) high = lanes_max(high, lanes_load(x + i));
    float result = lanes_largest(high);
    for (; i < count; i++) result = result > x[i] ? result : x[i];
    return result;
}

static void row_norm(size_t rows, size_t dim, const float *x, const float *w, float eps, float *y,
                     float *ret_inverse)
{
    for (size_t r = 0; r < rows; r++, x += dim, y += dim) {
        const float inverse = 1.0f / sqrtf(dot(x, x, dim) / (float)dim + eps);
        ret_inverse[r] = inverse;
        for (size_t i = 0; i < dim; i += LANES) {
            const lanes unit = lanes_mul(lanes_load_upto(x + i, dim - i), lanes_all(inverse));
            lanes_store_upto(y + i, lanes_mul(unit, lanes_load_upto(w + i, dim - i)), dim - i);
        }
    }
}

// With u = x / rms(x) and g = dy * w: dx += (g - u mean(g u)) / rms(x).
static void row_norm_back(size_t rows, size_t dim, const float *dy, const float *x, const float *w,
                          const float *inverse, float *dx, float *dw_sum)
{
    for (size_t r = 0; r < rows; r++, x += dim, dy += dim, dx += dim) {
        const lanes scale = lanes_all(inverse[r]);
        lanes sum = lanes_all(0.0f);
        for (size_t i = 0; i < dim; i += LANES) {
            const size_t left = dim - i;
            const lanes u = lanes_mul(lanes_load_upto(x + i, left), scale);
            const lanes d = lanes_load_upto(dy + i, left);
            sum = lanes_fma(lanes_mul(d, lanes_load_upto(w + i, left)), u, sum);
            lanes_store_upto(dw_sum + i, lanes_fma(d, u, lanes_load_upto(dw_sum + i, left)), left);
        }
        const lanes mean = lanes_all(lanes_sum(sum) / (float)dim);
        for (size_t i = 0; i < dim; i += LANES) {
            const size_t left = dim - i;
            const lanes u = lanes_mul(lanes_load_upto(x + i, left), scale);
            const lanes g = lanes_mul(lanes_load_upto(dy + i, left), lanes_load_upto(w + i, left));
            const lanes change = lanes_fnma(u, mean, g);
            lanes_store_upto(dx + i, lanes_fma(change, scale, lanes_load_upto(dx + i, left)), left);
        }
    }
}

static void row_rope(size_t rows, size_t head_dim, float *x, size_t stride, const float *cosine,
                     const float *sine, bool backwards)
{
    const size_t half = head_dim / 2;
    const lanes turn = lanes_all(backwards ? -1.0f : 1.0f);
    for (size_t r = 0; r < rows; r++, x += stride, cosine += half, sine += half) {
        for (size_t i = 0; i < half; i += LANES) {
            const size_t left = half - i;
            const lanes c = lanes_load_upto(cosine + i, left);
            const lanes s = lanes_mul(turn, lanes_load_upto(sine + i, left));
            const lanes a = lanes_load_upto(x + i, left), b = lanes_load_upto(x + half + i, left);
            lanes_store_upto(x + i, lanes_fnma(b, s, lanes_mul(a, c)), left);
            lanes_store_upto(x + half + i, lanes_fma(a, s, lanes_mul(b, c)), left);
        }
    }
}

// 1 / (1 + e^-x)
LANES_INLINE lanes sigmoid(lanes x)
{
    const lanes one = lanes_all(1.0f);
    return lanes_div(one, lanes_add(one, lanes_exp(lanes_sub(lanes_all(0.0f), x))));
}

static void row_swiglu(size_t rows, size_t ffn, const float *gate_up, float *y)
{
    for (size_t r = 0; r < rows; r++, gate_up += 2 * ffn, y += ffn) {
        for (size_t i = 0; i < ffn; i += LANES) {
            const lanes gate = lanes_load_upto(gate_up + i, ffn - i);
            const lanes up = lanes_load_upto(gate_up + ffn + i, ffn - i);
            lanes_store_upto(y + i, lanes_mul(lanes_mul(gate, sigmoid(gate)), up), ffn - i);
        }
    }
}

// silu(x) = x s(x), so silu'(x) = s + x s (1 - s).
static void row_swiglu_back(size_t rows, size_t ffn, const float *gate_up, const float *dy,
                            float *d_gate_up)
{
    for (size_t r = 0; r < rows; r++, gate_up += 2 * ffn, d_gate_up += 2 * ffn, dy += ffn) {
        for (size_t i = 0; i < ffn; i += LANES) {
            const size_t left = ffn - i;
            const lanes gate = lanes_load_upto(gate_up + i, left);
            const lanes up = lanes_load_upto(gate_up + ffn + i, left);
            const lanes d = lanes_load_upto(dy + i, left), s = sigmoid(gate);
            const lanes silu = lanes_mul(gate, s);
            const lanes slope = lanes_fma(silu, lanes_sub(lanes_all(1.0f), s), s);
            lanes_store_upto(d_gate_up + i, lanes_mul(lanes_mul(d, up), slope), left);
            lanes_store_upto(d_gate_up + ffn + i, lanes_mul(d, silu), left);
        }
    }
}

static void row_softmax(size_t rows, size_t first, size_t width, float scale, float *scores,
                        size_t stride, float *ret_log_sum)
{
    const lanes factor = lanes_all(scale);
    for (size_t r = 0; r < rows; r++, scores += stride) {
        const size_t count = first + r + 1;
        const float high = largest(scores, count) * scale;
        lanes sum = lanes_all(0.0f);
        for (size_t i = 0; i < count; i += LANES) {
            const lanes score = lanes_load_upto(scores + i, count - i);
            const lanes e =
                lanes_keep(lanes_exp(lanes_fma(score, factor, lanes_all(-high))), count - i);
            lanes_store_upto(scores + i, e, count - i);
            sum = lanes_add(sum, e);
        }
        const float total = lanes_sum(sum);
        const lanes inverse = lanes_all(1.0f / total);
        for (size_t i = 0; i < count; i += LANES)
            lanes_store_upto(scores + i, lanes_mul(lanes_load_upto(scores + i, count - i), inverse),
                             count - i);
        memset(scores + count, 0, (width - count) * sizeof *scores);
        ret_log_sum[r] = (float)((double)high + elementary_log((double)total));
    }
}

// With p the probabilities and t = sum(d_out * out) = sum(p dp): d_scores = scale * p * (dp - t).
static void row_softmax_back(size_t rows, size_t first, size_t width, float scale, float *scores,
                             float *d_scores, size_t stride, const float *log_sum, const float *out,
                             const float *d_out, size_t io_stride, size_t head_dim)
{
    const lanes factor = lanes_all(scale);
    for (size_t r = 0; r < rows; r++) {
        const size_t count = first + r + 1;
        const lanes total = lanes_all(dot(out, d_out, head_dim)), shift = lanes_all(-log_sum[r]);
        for (size_t i = 0; i < count; i += LANES) {
            const size_t left = count - i;
            const lanes p = lanes_exp(lanes_fma(lanes_load_upto(scores + i, left), factor, shift));
            const lanes dp = lanes_load_upto(d_scores + i, left);
            lanes_store_upto(scores + i, p, left);
            lanes_store_upto(d_scores + i, lanes_mul(lanes_mul(p, factor), lanes_sub(dp, total)),
                             left);
        }
        memset(scores + count, 0, (width - count) * sizeof *scores);
        memset(d_scores + count, 0, (width - count) * sizeof *d_scores);
        scores += stride;
        d_scores += stride;
        out += io_stride;
        d_out += io_stride;
    }
}

static void row_entropy(size_t rows, size_t vocab, float *logits, const uint32_t *targets,
                        float weight, float *ret_losses)
{
    for (size_t r = 0; r < rows; r++, logits += vocab) {
        const float high = largest(logits, vocab), target = logits[targets[r]];
        lanes sum = lanes_all(0.0f);
        for (size_t i = 0; i < vocab; i += LANES) {
            const size_t left = vocab - i;
            const lanes logit = lanes_load_upto(logits + i, left);
            const lanes e = lanes_keep(lanes_exp(lanes_sub(logit, lanes_all(high))), left);
            lanes_store_upto(logits + i, e, left);
            sum = lanes_add(sum, e);
        }
        const float total = lanes_sum(sum);
        ret_losses[r] = (float)(elementary_log((double)total) + ((double)high - (double)target));
        const lanes factor = lanes_all(weight / total);
        for (size_t i = 0; weight != 0.0f && i < vocab; i += LANES)
            lanes_store_upto(logits + i, lanes_mul(lanes_load_upto(logits + i, vocab - i), factor),
                             vocab - i);
        if (weight != 0.0f) logits[targets[r]] -= weight;
    }
}

static void row_accumulate(size_t count, const float *from, float *to)
{
    for (size_t i = 0; i < count; i += LANES) {
        const lanes sum =
            lanes_add(lanes_load_upto(to + i, count - i), lanes_load_upto(from + i, count - i));
        lanes_store_upto(to + i, sum, count - i);
    }
}

static void row_scale(size_t count, float factor, float *x)
{
    for (size_t i = 0; i < count; i += LANES)
        lanes_store_upto(x + i, lanes_mul(lanes_load_upto(x + i, count - i), lanes_all(factor)),
                         count - i);
}

// The square of a float is exact in double, so a compiler's choice of instructions cannot change
// it.
static double row_square_sum(size_t count, const float *x)
{
    double sums[LANES] = { 0 };
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        for (size_t lane = 0; lane < LANES; lane++)
            sums[lane] += (double)x[i + lane] * (double)x[i + lane];
    }
    for (size_t lane = 0; i + lane < count; lane++)
        sums[lane] += (double)x[i + lane] * (double)x[i + lane];
    for (size_t width = LANES / 2; width > 0; width /= 2) {
        for (size_t lane = 0; lane < width; lane++) sums[lane] += sums[lane + width];
    }
    return sums[0];
}
