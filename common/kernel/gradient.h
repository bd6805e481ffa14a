#pragma once
// gradient -- the norm of a gradient, and clipping it.
//
// The sum of squares is taken in double in one fixed order (pieces of GRADIENT_PIECE numbers,
// sixteen chains in each, then the pieces in order), so it has the same bits for every number of
// threads and instruction set. Pieces can be measured apart, also on several machines, and the
// gradient be clipped by their squares: the same bits as gradient_clip.

#include "common/base/fault.h"
#include "common/base/interval.h"
#include "common/kernel/pool.h"

enum { GRADIENT_PIECE = 1 << 14 };

// No optimizer accepts a longer gradient. Up to this length the square of each of its numbers fits
// into a float.
#define GRADIENT_LIMIT 0x1p63

// The 2-norm of `count` numbers; NaN or infinite if one of them is.
double gradient_norm(pool_t *pool, const float *gradient, uint64_t count);

// Scales the gradient to norm_max (above 0) if it is longer; *ret_norm is the norm it had.
// FAULT_NAN, and nothing is changed, if a number is not finite.
int gradient_clip(pool_t *pool, float *gradient, uint64_t count, double norm_max, struct why *why,
                  double *ret_norm);

// ---- by pieces

// Piece i is the numbers [i * GRADIENT_PIECE, (i + 1) * GRADIENT_PIECE); the last one may be shorter.
static inline uint64_t gradient_piece_count(uint64_t count)
{
    return (count + GRADIENT_PIECE - 1) / GRADIENT_PIECE;
}

// The sums of squares of pieces [first, first + pieces) of the `count` numbers at `gradient`.
void gradient_squares(pool_t *pool, const float *gradient, uint64_t count, uint64_t first,
                      uint64_t pieces, double *ret_squares);

// gradient_clip by the squares of all `pieces` of a gradient: it is not read to measure it, so a number
// of it that is not finite is found in its piece's square. Only the numbers `at` of it are here, or all;
// `at` begins at a piece. `gradient` points to the first of all.
int gradient_clip_by(pool_t *pool, float *gradient, struct interval at, const double *squares,
                     uint64_t pieces, double norm_max, struct why *why, double *ret_norm);
