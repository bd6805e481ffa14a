#pragma once
// genesis -- the first parameters of a run, made from a seed, the same bits on every machine.
//
// Matrices are normal with standard deviation 0.02; those that write into the residual stream
// (o_proj, down_proj) 0.02 / sqrt(2 * layers), as in GPT-2, so that the stream's variance does not
// grow with depth; norms are 1.
//
// Number i of the vector depends on (seed, i) alone: three SplitMix64 words give twelve 16-bit
// integers, whose sum (Irwin-Hall: normal to the eye, cut at 6 deviations) is exact; one
// multiplication rounds. No bit depends on a C library. Any interval can be made without the rest.
// Pure; any thread.

#include "common/model/model_layout.h"

void genesis_fill(const struct model_shape *shape, uint64_t seed, float *ret_parameters); // All N

// The numbers [first, first + count) of the same vector; the interval lies within [0, N) (ensured).
// No caller yet but genesis_fill: a member that holds a share will make its own.
void genesis_fill_interval(const struct model_shape *shape, uint64_t seed, uint64_t first,
                           uint64_t count, float *ret_parameters);
