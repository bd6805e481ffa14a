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
#define STREAM(p, v) _mm512_stream_ps(p, v)
#define FENCE()      _mm_sfence()
#define SPREAD(x)    _mm512_set1_ps(x)
#define ADD(a, b)    _mm512_add_ps(a, b)
#define SUB(a, b)    _mm512_sub_ps(a, b)
#define MUL(a, b)    _mm512_mul_ps(a, b)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)

typedef __m512i key_vector;
#define KEYS(p)          _mm512_and_si512(_mm512_loadu_si512(p), _mm512_set1_epi32(0x7fffffff))
#define LARGER(a, b)     _mm512_max_epi32(a, b)
#define STORE_KEYS(p, v) _mm512_storeu_si512(p, v)
#define REACHING(values, threshold)                                                                \
    _mm512_cmpge_epi32_mask(KEYS(values), _mm512_set1_epi32((int)(threshold)))

#include "common/optimizer/distro_kernels_template.h"
