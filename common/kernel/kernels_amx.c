// The kernels for processors with AMX: as AVX-512, except for the products in AMX's order.
#define KERNEL_SET amx
#define TILE_ROWS  14
#define TILE_LANES 2
#include "common/kernel/kernel_set.h"
