// The products of bf16-amx by AMX. All else of the set "amx" is that of AVX-512 (kernels.c): pairs of bfloat16 go by
// multiply-adds, as VDPBF16PS takes 1.7 times as long on the one such processor that was measured, an Intel Xeon.
#define TILE_ROWS  14
#define TILE_LANES 2
#include "common/kernel/gemm_amx_kernel.h"

const struct kernels_product kernels_product_amx = GEMM_AMX_PRODUCT;
