#pragma once
// kernels -- the inner loops of the model, once per instruction set, and the choice between them.
//
//     kernels_avx512.c     ┐
//     kernels_avx2.c       ├ each includes gemm_kernel.h, row_kernel.h ──▶ one struct kernels
//     kernels_base.c       ┘
//     kernels_avx512bf16.c ┐
//     kernels_amx.c        ┴ one product, in which such a set differs from AVX-512's
//
// All give the same bits for the same input (lanes.h says why), so the choice changes only the
// speed. Matrices are row-major; a stride is the distance between rows, in floats. Nothing here
// allocates or fails.

#include "common/kernel/optimizer_factors.h"
#include "common/kernel/gemm.h"

enum { KERNELS_TILE_ROWS_MAX = 32, KERNELS_TILE_COLUMNS_MAX = 32, KERNELS_DEPTH_WORDS_MAX = 512 };

// Packs panels of `height` rows, one behind the other, the rows that the last one lacks as zeros: `rows` takes
// element (r, k) from from[r*stride + k], `columns` from from[k*stride + r].
struct kernels_packing {
    void (*rows)(const float *from, size_t stride, size_t rows, uint32_t height, size_t depth,
                 float *to);
    void (*columns)(const float *from, size_t stride, size_t rows, uint32_t height, size_t depth,
                    float *to);
};

// A piece of a matrix as it is stored.
struct kernels_piece {
    const float *at;
    size_t stride, rows, columns;
};

// A or B as a product reads it. The tile of rows from r on begins at at + r * pitch. Packed: pitch is the words of a
// row, and `step`, from one k to the next, the height of a panel. Whole tiles of A can also be read where they lie,
// if a word is a float: from columns, then pitch is 1 and step the stride, or from rows, then it is the other way round.
struct kernels_panels {
    const float *at;
    size_t pitch, step;
};

// The product (gemm.h) in one precision.
struct kernels_product {
    uint32_t tile_rows; // The register tile
    uint32_t tile_columns;
    uint32_t group, group_words; // Each `group` of k, or part of it, takes `group_words` words
    uint32_t depth_words;        // The most of a panel, 1..KERNELS_DEPTH_WORDS_MAX

    // A packed panel has height * words floats, in the order in which `multiply` reads them: of A its height is
    // tile_rows, of B tile_columns.
    struct kernels_packing a, b;
    // c[rows][columns] (+)= A B over one block of the depth. `next` is read next: the memory is asked for it
    // meanwhile. Its `at` may be NULL.
    void (*multiply)(size_t rows, size_t columns, size_t depth, struct kernels_panels a,
                     struct kernels_panels b, float *c, size_t c_stride, bool add,
                     const struct kernels_piece *next);
    // A is read where it lies, not packed, if c has at most so many columns: where A lies in rows, and where in
    // columns. 0 if a word is not a float.
    uint32_t in_place_rows, in_place_columns;
};

// Of a sum of two vectors. A factor of 1 changes nothing: so the same loop adds a product in one
// rounding (factor), or one that is rounded first (from).
struct kernels_weights {
    float factor, from, to;
};

struct kernels {
    const char *name; // "amx", "avx512bf16", "avx512", "avx2" or "base"
    struct kernels_product product[GEMM_PRECISIONS];

    // y = x * w / rms(x) per row; ret_inverse[row] = 1 / sqrt(mean(x^2) + eps).
    void (*norm)(size_t rows, size_t dim, const float *x, const float *w, float eps, float *y,
                 float *ret_inverse);
    // dx += gradient through norm; dw_sum[dim] += gradient of w over these rows.
    void (*norm_back)(size_t rows, size_t dim, const float *dy, const float *x, const float *w,
                      const float *inverse, float *dx, float *dw_sum);

    // Rotates pairs (i, i + head_dim/2) of one head in `rows` consecutive positions. cosine and
    // sine are [rows][head_dim/2]; backwards turns the other way.
    void (*rope)(size_t rows, size_t head_dim, float *x, size_t stride, const float *cosine,
                 const float *sine, bool backwards);

    // y = silu(gate) * up; gate_up rows are [gate | up]. The gradient goes to d_gate_up in the same
    // order.
    void (*swiglu)(size_t rows, size_t ffn, const float *gate_up, float *y);
    void (*swiglu_back)(size_t rows, size_t ffn, const float *gate_up, const float *dy,
                        float *d_gate_up);

    // Causal softmax in place: row r keeps columns 0..first+r, the rest up to `width` becomes 0.
    // ret_log_sum[r] = log of the sum of exp(scale * score).
    void (*softmax)(size_t rows, size_t first, size_t width, float scale, float *scores,
                    size_t stride, float *ret_log_sum);
    // Turns scores and log_sum into the probabilities again (in place), and d_scores from the
    // gradient of the probabilities into that of the unscaled scores. out and d_out:
    // [rows][head_dim] at io_stride.
    void (*softmax_back)(size_t rows, size_t first, size_t width, float scale, float *scores,
                         float *d_scores, size_t stride, const float *log_sum, const float *out,
                         const float *d_out, size_t io_stride, size_t head_dim);

    // ret_losses[r] = -log softmax(logits[r])[targets[r]]. With `weight` != 0 the logits become
    // weight times the gradient; else they are overwritten with unspecified values.
    void (*entropy)(size_t rows, size_t vocab, float *logits, const uint32_t *targets, float weight,
                    float *ret_losses);

    void (*accumulate)(size_t count, const float *from, float *to); // to += from
    void (*scale)(size_t count, float factor, float *x);            // x *= factor
    // to = fma(by->factor, by->from * from, by->to * to)
    void (*add_weighed)(size_t count, const struct kernels_weights *by, const float *from,
                        float *to);
    double (*square_sum)(size_t count, const float *x); // Sixteen double chains, one tree

    // y[r][o] = sum over i of x[r][i] * w[o][i], each sum in sixteen chains and one tree, so that
    // its bits do not depend on the number of rows. For few rows: nothing is packed.
    void (*project)(size_t rows, size_t out, size_t in, const float *x, size_t x_stride,
                    const float *w, size_t w_stride, float *y, size_t y_stride);
    // y[dim] = softmax(scale * k q) v, over `count` keys and values; scores[count] is scratch.
    void (*attend)(size_t count, size_t dim, float scale, const float *q, const float *k,
                   const float *v, float *scores, float *y);

    // One step of an optimizer on `count` parameters p with moments m and v, as optimizer_factors.h writes it. SGD
    // without momentum: v is NULL.
    void (*adamw)(size_t count, const struct adamw_factors *by, const float *gradient, float *p,
                  float *m, float *v);
    void (*adam)(size_t count, const struct adamw_factors *by, const float *gradient, float *p,
                 float *m, float *v);
    void (*sgd)(size_t count, const struct sgd_factors *by, const float *gradient, float *p,
                float *v);
};

extern const struct kernels kernels_avx512, kernels_avx2, kernels_base;
extern const struct kernels_product kernels_product_amx, kernels_product_pairs;

// The fastest set that this processor can run, or the one chosen last with learn_set_isa.
const struct kernels *kernels_chosen(void);

// For tests and measurements, no program calls it: chooses a set by name, or the fastest with
// "best". False, and nothing changes, for an unknown name or a set that this processor cannot run.
// Not while a thread computes.
bool learn_set_isa(const char *name);
