#pragma once
// gemm -- the matrix product, the same bits for every thread count and instruction set.
//
//     form   c[m][n]  (+)=  sum over k of            used for
//     NT     a[m][k] * b[n][k]                       forward: rows by weights stored [out][in]
//     NN     a[m][k] * b[k][n]                       gradient of the activations
//     TN     a[k][m] * b[k][n]                       gradient of the weights
//
// Each element of c is one chain of fused multiply-adds that begins with 0, or with c itself if
// `add`. Blocks, tiles, vectors and threads only choose which elements are computed together. The
// method is BLIS's: panels packed for the register tile, so deep that they stay in the caches.
//
//     FLOAT32   k ascending; nothing is rounded but the results of the multiply-adds
//     BF16      a and b are rounded to bfloat16 (nearest even) as they are packed, sums stay
//               float32; k ascends in pairs, the odd one of a pair first; whatever is smaller than
//               2^-126 counts as zero, in a, b, c and every sum: what VDPBF16PS does (Intel's
//               manual), and what the other instruction sets do with their multiply-adds
//
// In a build of `make BLAS=1` FLOAT32 is a library's (gemm_blas.h), and of all this only the table of
// forms holds for it.
//
// Yardstick: 87 % of one core's peak of FMA or VDPBF16PS for shapes of a few hundred.

#include "common/kernel/pool.h"

#include <stdbool.h>
#include <stddef.h>

enum gemm_form { GEMM_NT, GEMM_NN, GEMM_TN };
enum gemm_precision { GEMM_FLOAT32, GEMM_BF16, GEMM_PRECISIONS };

struct gemm {
    enum gemm_form form;
    enum gemm_precision precision;
    bool add;           // c += instead of c =
    uint32_t m, n, k;   // Any, 0 included (k = 0 and not `add` clears c)
    const float *a, *b; // Borrowed; do not overlap c
    float *c;
    size_t a_stride, b_stride, c_stride; // Floats from one row as stored to the next
};

// Floats of scratch memory that gemm_run may use for products of up to these sizes with so many
// threads. It grows with each argument, so the largest of each is enough for all.
size_t gemm_scratch_count(uint32_t threads, uint32_t n, uint32_t k);

// Computes on the pool (NULL: inline, also within a task of a pool, with scratch of its own).
// Cannot fail.
void gemm_run(pool_t *pool, const struct gemm *job, float *scratch);

// NULL where the products of that precision are our own, with the promises above. Else the name of
// the library whose they are: then they are not reproducible.
const char *gemm_library(enum gemm_precision precision);
