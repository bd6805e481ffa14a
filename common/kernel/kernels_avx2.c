// The kernels for AVX2 with FMA: sixteen lanes are two registers, so 12 of 16 are accumulators.
#define KERNEL_SET avx2
#define TILE_ROWS  6
#define TILE_LANES 1
// Both measured on a Zen 3 with models of 8 and 32 million parameters: A is never packed where it lies in rows, and what asks
// the memory is a twentieth of the instructions, not an eighth.
#define ROWS_IN_PLACE UINT32_MAX
#define ASK_STEPS     8
#define B_AHEAD       0
#include "common/kernel/kernel_set.h"
