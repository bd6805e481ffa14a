// 16 lanes: 8 rows by 2 vectors of accumulators of the 32 registers.
#include <immintrin.h>

#define KERNELS   distro_kernels_avx512
#define NAME      "avx512"
#define LANES     16
#define TILE_ROWS 8
typedef __m512 vector;
#define ZERO()       _mm512_setzero_ps()
#define LOAD(p)      _mm512_loadu_ps(p)
#define STORE(p, v)  _mm512_storeu_ps(p, v)
#define SPREAD(x)    _mm512_set1_ps(x)
#define ADD(a, b)    _mm512_add_ps(a, b)
#define SUB(a, b)    _mm512_sub_ps(a, b)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define REACHING(keys, threshold)                                                                  \
    _mm512_cmpge_epu32_mask(_mm512_loadu_si512(keys), _mm512_set1_epi32((int)(threshold)))

#include "common/learn/distro_kernels_template.h"
