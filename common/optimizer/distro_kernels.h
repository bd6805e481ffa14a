#pragma once
// distro_kernels -- the inner loops of DisTrO, compiled once per instruction set and chosen at run
// time.
//
// Every kernel has one written order of operations per number, so all variants, and any number of
// threads, give the same bits: a transform is a chain of fused multiply-adds over
// ascending positions or frequencies, even and odd ones apart (dct.h), and only the width of the
// vectors differs. The exact order:
//
//     encode   Rows first, columns second. S[j] = x[j] + x[n-1-j], D[j] = x[j] - x[n-1-j] (the
//              middle of an odd n: S = x); then y[2u] = chain over j of C[2u][j]·S[j], y[2u+1] of
//              C[2u+1][j]·D[j]. But where 8 divides n, n = 8h (the tables of dct.h):
//                a  S of n points folds again, into SS and SD of 2h
//                b  D, and SD, turn into u and w: fma(far, far_u, near·near_u), and w likewise
//                c  SS, and u and w of D, fold once more
//                d  eight products with matrices of h: the sums of c and what SD became by PLAIN
//                   (those of SS by FIRST), the differences by FOURTH. A chain over ascending j; of
//                   PLAIN and FIRST with even h, folded: over j < h/2 of M[j][k]·(x[j] ± x[h-1-j])
//                e  U and V of m points, what came of a u and its w, join: Y[0] = U[0],
//                   Y[2m-1] = 0 - V[0], Y[2p] = U[p] + V[m-p], Y[2p-1] = U[p] - V[m-p]
//              y[8p] and y[8p+4] come from SS, y[4q+2] from SD, y[2q+1] from D.
//     decode   t[b][w] = chain over ascending d of y[b][d]·C[d][w] (columns first); then
//              E[h] = chain over ascending even b of C[b][h]·t[b], O[h] over odd b;
//              x[h] = E[h] + O[h], x[n-1-h] = E[h] - O[h].
//
// A chain starts from +0 and leaves out coefficients that are zero: they could only change the sign
// of a zero. Pure; no memory but the caller's; any thread with its own scratch.

#include "common/optimizer/dct.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DISTRO_ELEMENTS_MAX = DCT_SIDE_MAX * DCT_SIDE_MAX,
    DISTRO_ROWS_MAX = DCT_SIDE_MAX + DCT_LANES, // Squares of `turn` may reach past the last row
    DISTRO_STRIP = 2 * DCT_LANES                // Columns that are transformed together
};

// A value of a payload is below this: then no sum over a commit and no transform of it can
// overflow.
#define DISTRO_VALUE_LIMIT      0x1p64f
#define DISTRO_VALUE_LIMIT_BITS 0x5f800000u // Its bits, as `momentum` reports magnitudes

struct distro_scratch { // One per worker; contents mean nothing between calls
    _Alignas(64) float strip[2][DISTRO_ROWS_MAX * DISTRO_STRIP];
    _Alignas(64) float fold[DISTRO_ROWS_MAX * DCT_SIDE_MAX];
    _Alignas(64) float middle[DISTRO_ROWS_MAX * DCT_SIDE_MAX];
    _Alignas(64) float turned[DISTRO_ROWS_MAX * DCT_SIDE_MAX];
    _Alignas(64) float dense[DISTRO_ROWS_MAX * DCT_SIDE_MAX];
    _Alignas(64) uint32_t keys[DISTRO_ELEMENTS_MAX];
    _Alignas(64) uint16_t found[DISTRO_ELEMENTS_MAX];
};

struct distro_kernels {
    const char *name;

    // ret_y[d·n1 + b], dense: the transform of a chunk whose rows lie `stride` floats apart.
    void (*encode)(const struct dct *rows, const struct dct *columns, const float *x, size_t stride,
                   struct distro_scratch *scratch, float *ret_y);

    // `count` coefficients, numbers ascending. The result is [n1] rows of n2, columns->stride
    // apart.
    void (*decode)(const struct dct *rows, const struct dct *columns, const uint16_t *numbers,
                   const float *values, uint32_t count, struct distro_scratch *scratch,
                   float *ret_x);

    // ret[i] = fma(rate, y[i], decay·old[i]); ret may be y or old. Returns the largest magnitude as
    // the bits of a float; at or above 0x7f800000 if any is not finite.
    uint32_t (*momentum)(uint32_t count, float decay, float rate, const float *old, const float *y,
                         float *ret);

    // The numbers, ascending, of the `top_k` (1..count) largest magnitudes; of equal ones the
    // lowest number first; zeros never. Returns how many: top_k, or as many as are not zero. All
    // finite.
    uint32_t (*select)(uint32_t count, const float *values, uint32_t top_k,
                       struct distro_scratch *scratch, uint16_t *ret_numbers);

    // ret[i] = x[i], for memory that is not read again soon. Other threads see it as they see any
    // store.
    void (*store)(uint32_t count, const float *x, float *ret);

    // p[i] = fma(p[i], keep, -rate·sign(x[i])), sign(0) = 0.
    void (*update)(uint32_t count, const float *x, float keep, float rate, float *p);
};

extern const struct distro_kernels distro_kernels_avx512, distro_kernels_avx2, distro_kernels_base;

const struct distro_kernels *distro_kernels_best(void); // For this processor

// For tests and benchmarks, no program calls it: "avx512", "avx2" or "base"; NULL for another name
// and for what this processor cannot run.
const struct distro_kernels *distro_kernels_named(const char *name);
