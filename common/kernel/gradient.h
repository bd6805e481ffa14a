#pragma once
// gradient -- the length of a gradient, and keeping it within bounds.
//
// The sum of squares is taken in double in one fixed order (pieces of GRADIENT_PIECE numbers,
// sixteen chains in each, then the pieces in order), so it has the same bits for every number of
// threads and instruction set.

#include "common/base/fault.h"
#include "common/kernel/pool.h"

enum { GRADIENT_PIECE = 1 << 14 };

// Above it no optimizer takes one: up to it the square of each of its numbers is still a float.
#define GRADIENT_LIMIT 0x1p63

// The 2-norm of `count` numbers; NaN or infinite if one of them is.
double gradient_norm(pool_t *pool, const float *gradient, uint64_t count);

// Scales the gradient to norm_max (above 0) if it is longer, and tells how long it was. FAULT_NAN,
// and nothing changed, if a number is not finite.
int gradient_clip(pool_t *pool, float *gradient, uint64_t count, double norm_max, struct why *why,
                  double *ret_norm);
