#pragma once
// gemm -- the matrix product, with the same bits for every number of threads and instruction set.
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
//     FLOAT32   k ascending; only the results of the multiply-adds are rounded
//     BF16      a and b are rounded to bfloat16 (nearest even) when they are packed, sums stay
//               float32; k ascends in pairs, the odd one of a pair first; every number below
//               2^-126 counts as zero, in a, b, c and every sum. VDPBF16PS computes so (Intel's
//               manual), and the other instruction sets do the same with multiply-adds
//
// In a build of `make BLAS=1` a library computes FLOAT32 (gemm_blas.h); then only the table of
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
    size_t a_stride, b_stride, c_stride; // Floats from one stored row to the next
};

// The floats of scratch memory that gemm_run needs for products of up to these sizes with that many
// threads. The result grows with each argument, so the largest of each is enough for all products.
size_t gemm_scratch_count(uint32_t threads, uint32_t n, uint32_t k);

// Computes on the pool. With NULL it computes inline, which is also allowed inside a task of a
// pool, with scratch memory of its own. Cannot fail.
void gemm_run(pool_t *pool, const struct gemm *job, float *scratch);

// NULL if our own kernels compute products of that precision, with the promises above. Else the
// name of the library that does; then they are not reproducible.
const char *gemm_library(enum gemm_precision precision);
