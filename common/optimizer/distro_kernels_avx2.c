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
#define STREAM(p, v) _mm256_stream_ps(p, v)
#define FENCE()      _mm_sfence()
#define SPREAD(x)    _mm256_set1_ps(x)
#define ADD(a, b)    _mm256_add_ps(a, b)
#define SUB(a, b)    _mm256_sub_ps(a, b)
#define MUL(a, b)    _mm256_mul_ps(a, b)
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)

typedef __m256i key_vector;
#define KEYS(p)                                                                                    \
    _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(p)), _mm256_set1_epi32(0x7fffffff))
#define LARGER(a, b)     _mm256_max_epi32(a, b)
#define STORE_KEYS(p, v) _mm256_storeu_si256((__m256i *)(p), v)

// `threshold` is below 2^31.
static inline uint32_t reaching8(const void *values, uint32_t threshold)
{
    const __m256i above = _mm256_cmpgt_epi32(KEYS(values), _mm256_set1_epi32((int)threshold - 1));
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(above));
}
#define REACHING(values, threshold)                                                                \
    (reaching8(values, threshold) | reaching8((values) + 8, threshold) << 8)

#include "common/optimizer/distro_kernels_template.h"
