#pragma once
// gradient -- the norm of a gradient, and clipping it.
//
// The sum of squares is taken in double in one fixed order (pieces of GRADIENT_PIECE numbers,
// sixteen chains in each, then the pieces in order), so it has the same bits for every number of
// threads and instruction set.

#include "common/base/fault.h"
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
