// The kernels for processors with AMX: as AVX-512, except for the products in AMX's order. Pairs of bfloat16 go by
// multiply-adds: VDPBF16PS takes 1.7 times as long on the one such processor that was measured, an Intel Xeon.
#define KERNEL_SET amx
#define TILE_ROWS  14
#define TILE_LANES 2
#include "common/kernel/kernel_set.h"
