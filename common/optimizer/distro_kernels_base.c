// One lane, any processor. Without an FMA instruction fmaf is a slow call, and still rounds once.
#include <math.h>
#include <stdint.h>
#include <string.h>

#define KERNELS   distro_kernels_base
#define NAME      "base"
#define LANES     1
#define TILE_ROWS 4
typedef float vector;
#define ZERO()       0.0f
#define LOAD(p)      (*(p))
#define STORE(p, v)  (*(p) = (v))
#define STREAM(p, v) (*(p) = (v))
#define FENCE()      ((void)0)
#define SPREAD(x)    (x)
#define ADD(a, b)    ((a) + (b))
#define SUB(a, b)    ((a) - (b))
#define MUL(a, b)    ((a) * (b))
#define FMA(a, b, c) fmaf(a, b, c)

typedef uint32_t key_vector;
static inline uint32_t key_of(const void *value)
{
    uint32_t bits;
    memcpy(&bits, value, sizeof bits);
    return bits & 0x7fffffffu;
}
#define KEYS(p)          key_of(p)
#define LARGER(a, b)     ((a) > (b) ? (a) : (b))
#define STORE_KEYS(p, v) (*(p) = (v))

static inline uint32_t reaching(const void *values, uint32_t threshold)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < 16; i++)
        mask |= (uint32_t)(key_of((const char *)values + 4 * i) >= threshold) << i;
    return mask;
}
#define REACHING(values, threshold) reaching(values, threshold)

#include "common/optimizer/distro_kernels_template.h"
