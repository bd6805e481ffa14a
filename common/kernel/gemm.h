#pragma once
// gemm -- the matrix product, with the same bits for every number of threads and instruction set.
//
//     form   c[m][n]  (+)=  sum over k of            used for
//     NT     a[m][k] * b[n][k]                       forward: rows by weights stored [out][in]
//     NN     a[m][k] * b[k][n]                       gradient of the activations
//     TN     a[k][m] * b[k][n]                       gradient of the weights
//
// Each element of c is one chain of fused multiply-adds that begins with 0, or with c itself if
// `add` (BF16_AMX: two chains, as below). Blocks, tiles, vectors and threads only choose which elements are computed together. The
// method is BLIS's: panels packed for the register tile, so deep that they stay in the caches.
//
//     FLOAT32   k ascending; only the results of the multiply-adds are rounded
//     BF16      a and b are rounded to bfloat16 (nearest even) when they are packed, sums stay
//               float32; k ascends in pairs, the odd one of a pair first; every number below
//               2^-126 counts as zero, in a, b, c and every sum. VDPBF16PS computes so (Intel's
//               manual), and the other instruction sets do the same with multiply-adds
//     BF16_AMX  inputs, sums and tiny numbers as in BF16. For each 32 of k, in ascending order, the even ones
//               are one chain that begins with 0, the odd ones another, and c + (even + odd) is the
//               new c; behind the end of k are zeros. TDPBF16PS computes so (Intel's manual); the
//               other instruction sets do the same with multiply-adds, about as fast as FLOAT32
//
// In a build of `make BLAS=1` a library computes FLOAT32 (gemm_blas.h); then only the table of
// forms holds for it.
//
// Yardstick, one core, shapes of a few hundred: 87 % of the peak of FMA or VDPBF16PS on AMD EPYC (Zen 4),
// 85 % of FMA on an Intel Xeon without AMX; 75 to 80 % of FMA and 20 to 35 % of TDPBF16PS on one with AMX: 0.6 to
// 1.2 TFLOP/s, of which reading and packing floats takes most.

#include "common/kernel/pool.h"

#include <stdbool.h>
#include <stddef.h>

enum gemm_form { GEMM_NT, GEMM_NN, GEMM_TN };
enum gemm_precision { GEMM_FLOAT32, GEMM_BF16, GEMM_BF16_AMX, GEMM_PRECISIONS };

struct gemm {
    enum gemm_form form;
    enum gemm_precision precision;
    bool add;           // c += instead of c =
    uint32_t m, n, k;   // Any, 0 included (k = 0 and not `add` clears c)
    const float *a, *b; // Borrowed; do not overlap c
    float *c;
    size_t a_stride, b_stride, c_stride; // Floats from one stored row to the next
    const float *b_packed;               // NULL, or the same b from gemm_pack
    uint32_t packed_n, packed_k;         // The sizes it was packed with
};

// The floats of scratch memory that gemm_run needs for products of up to these sizes with that many
// threads. The result grows with each argument, so the largest of each is enough for all products.
size_t gemm_scratch_count(uint32_t threads, uint32_t n, uint32_t k);

// For several products with one b: packs the b of a job, of its form, precision, n and k. `ret_packed` has room for
// gemm_packed_count(n, k) floats. The products name them, have the same b as well, and may have fewer
// of n or k, then a multiple of GEMM_PACKED_GRAIN of each. The set of kernels stays as it is meanwhile.
enum { GEMM_PACKED_GRAIN = 32 };
size_t gemm_packed_count(uint32_t n, uint32_t k);
void gemm_pack(const struct gemm *job, float *ret_packed);

// Computes on the pool. With NULL it computes inline, which is also allowed inside a task of a
// pool, with scratch memory of its own. Cannot fail.
void gemm_run(pool_t *pool, const struct gemm *job, float *scratch);

// "float32", "bf16" or "bf16-amx".
const char *gemm_precision_name(enum gemm_precision precision);

// NULL if our own kernels compute products of that precision, with the promises above. Else the
// name of the library that does; then they are not reproducible.
const char *gemm_library(enum gemm_precision precision);
