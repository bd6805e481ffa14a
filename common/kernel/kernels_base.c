// The kernels in portable C: slow, the same bits. What says which bits are right, and what runs
// anywhere.
#define KERNEL_SET base
#define TILE_ROWS  4
#define TILE_LANES 1
#include "common/kernel/kernel_set.h"
