// 8 lanes: 4 rows by 2 vectors of accumulators of the 16 registers.
#include <immintrin.h>
#include <stdint.h>

#define KERNELS   distro_kernels_avx2
#define NAME      "avx2"
#define LANES     8
#define TILE_ROWS 4
typedef __m256 vector;
#define ZERO()       _mm256_setzero_ps()
#define LOAD(p)      _mm256_loadu_ps(p)
#define STORE(p, v)  _mm256_storeu_ps(p, v)
#define SPREAD(x)    _mm256_set1_ps(x)
#define ADD(a, b)    _mm256_add_ps(a, b)
#define SUB(a, b)    _mm256_sub_ps(a, b)
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)

// One bit for each of 16 keys that reaches the threshold; both are below 2^31.
static inline uint32_t reaching8(const uint32_t *keys, uint32_t threshold)
{
    const __m256i above = _mm256_cmpgt_epi32(_mm256_loadu_si256((const __m256i *)keys),
                                             _mm256_set1_epi32((int)threshold - 1));
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(above));
}
#define REACHING(keys, threshold)                                                                  \
    (reaching8(keys, threshold) | reaching8((keys) + 8, threshold) << 8)

#include "common/learn/distro_kernels_template.h"
