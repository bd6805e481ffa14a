// The kernels for AVX2 with FMA: sixteen lanes are two registers, so 12 of 16 are accumulators.
#define KERNEL_SET avx2
#define TILE_ROWS  6
#define TILE_LANES 1
#include "common/kernel/kernel_set.h"
