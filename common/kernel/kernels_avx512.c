// The kernels for AVX-512: 28 of 32 registers are accumulators, two hold B, A comes by broadcast.
#define KERNEL_SET avx512
#define TILE_ROWS  14
#define TILE_LANES 2
#include "common/kernel/kernel_set.h"
