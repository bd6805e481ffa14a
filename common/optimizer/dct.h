#pragma once
// dct -- the orthonormal DCT-II of one side of a chunk, as a table that is the same on every
// machine.
//
//     C[k][j] = a_k · cos(π (2j+1) k / 2n),   a_0 = √(1/n), otherwise √(2/n)       k, j in [0, n)
//
// A coefficient is y[k] = Σ_j C[k][j]·x[j]; C is orthogonal, so x[j] = Σ_k C[k][j]·y[k] undoes it.
// Replicas must agree on these bits, and libraries round cosf differently: the entries are computed
// in double with + - * / and sqrt alone, in one written order, and rounded to float once. The
// kernels of distro_kernels.h read the tables.
//
// Even rows of C are symmetric about the middle and odd rows antisymmetric, so a transform of n
// points folds into two of n/2: half the multiplications. The even one is a DCT-II again; the odd
// one is a DCT-IV, which rotations turn into two DCT-II of half its length (Plonka and Tasche, Fast
// and numerically stable algorithms for discrete cosine transforms, 2005). Where 8 divides n, three
// such steps leave eight products with matrices of n/8: a quarter of the multiplications of folding
// once.

#include <stdint.h>

enum {
    DCT_SIDE_MAX = 256, // The longest side: numbers within a chunk fit 16 bits
    DCT_LANES = 16 // Rows are padded with zeros to a multiple of this, on every instruction set
};

// The matrices of n/8 points, M = cos(π (2j+1) k / (n/4)) times √(2/n): as they come out of the
// whole, where row 0 is √(1/n); as a part of a DCT-IV; and the DCT-IV, cos(π (2j+1)(2k+1) / (n/2)).
enum dct_leaf { DCT_FIRST, DCT_PLAIN, DCT_FOURTH, DCT_LEAVES };

// A rotation of a DCT-IV of m points turns x[j] (near) and x[m-1-j] (far) by π(2j+1)/4m:
//     u = near·near_u + far·far_u =           near·cos + far·sin
//     w = near·near_w + far·far_w = (-1)^j · (far·cos - near·sin)
enum dct_turn { DCT_NEAR_U, DCT_FAR_U, DCT_NEAR_W, DCT_FAR_W, DCT_TURN };

struct dct {
    uint32_t side;        // n, 1..DCT_SIDE_MAX
    uint32_t half;        // ⌈n/2⌉: positions of an even row that differ
    uint32_t stride;      // n rounded up to DCT_LANES
    uint32_t half_stride; // `half` rounded up to DCT_LANES
    float *table;         // [side][stride] C[k][j]; zero beyond n
    float *even;          // [half][half_stride] C[2u][j] as even[j][u]; zero beyond `half`
    float *odd;           // [half][half_stride] C[2u+1][j] as odd[j][u]; zero where 2u+1 >= n

    uint32_t eighth;         // n/8, or 0 where 8 does not divide n; the rest is NULL then
    float *leaf[DCT_LEAVES]; // [n/8][n/8] by j, k
    float *turn[2];          // [n/4][DCT_TURN] and [n/8][DCT_TURN]: of DCT-IV of n/2 and n/4 points
};

// The largest divisor of `size` that is <= `limit`. Both are at least 1 (ensured).
uint32_t dct_side(uint32_t size, uint32_t limit);

// Fills *self for a side of 1..DCT_SIDE_MAX (ensured). 0, or FAULT_MEMORY and *self all zero.
// `table`, `even` and `odd` start at multiples of 64 bytes.
int dct_init(struct dct *self, uint32_t side);
void dct_free(struct dct *self); // All zero is allowed
