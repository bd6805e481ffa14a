// One lane, any processor. Without an FMA instruction fmaf is a slow call, and still rounds once.
#include <math.h>
#include <stdint.h>

#define KERNELS   distro_kernels_base
#define NAME      "base"
#define LANES     1
#define TILE_ROWS 4
typedef float vector;
#define ZERO()       0.0f
#define LOAD(p)      (*(p))
#define STORE(p, v)  (*(p) = (v))
#define SPREAD(x)    (x)
#define ADD(a, b)    ((a) + (b))
#define SUB(a, b)    ((a) - (b))
#define FMA(a, b, c) fmaf(a, b, c)

static inline uint32_t reaching(const uint32_t *keys, uint32_t threshold)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < 16; i++) mask |= (uint32_t)(keys[i] >= threshold) << i;
    return mask;
}
#define REACHING(keys, threshold) reaching(keys, threshold)

#include "common/learn/distro_kernels_template.h"
