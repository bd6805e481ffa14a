// The products of bf16 by VDPBF16PS. All else of the set "avx512bf16" is that of AVX-512 (kernels.c).
#define GEMM_PAIRS 1
#define TILE_ROWS  14
#define TILE_LANES 2
#include "common/kernel/gemm_kernel.h"

const struct kernels_product kernels_product_pairs = GEMM_BF16_PRODUCT;
