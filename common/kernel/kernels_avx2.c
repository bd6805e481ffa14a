// The kernels for AVX2 with FMA: sixteen lanes are two registers, so 12 of 16 are accumulators.
#define KERNEL_SET avx2
#define TILE_ROWS  6
#define TILE_LANES 1
// On a Zen 3: products of the 8m model (tests/bench/train_models.h) without packing rows of A are 1 to 5 % faster; with
// fewer lines asked for, its steps take 0.96 of the time, and those of 32m the same.
#define ROWS_IN_PLACE UINT32_MAX
#define ASK_STEPS     8
#define B_AHEAD       0
#include "common/kernel/kernel_set.h"
