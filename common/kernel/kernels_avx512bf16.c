// The kernels for AVX-512 with bfloat16 products: as AVX-512, except that products use VDPBF16PS.
#define KERNEL_SET avx512bf16
#define GEMM_PAIRS 1
#define TILE_ROWS  14
#define TILE_LANES 2
#include "common/kernel/kernel_set.h"
