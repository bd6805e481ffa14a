// The kernels in portable C: slow, with the same bits. They define which bits are right, and they
// run on every processor.
#define KERNEL_SET base
#define TILE_ROWS  4
#define TILE_LANES 1
#include "common/kernel/kernel_set.h"
