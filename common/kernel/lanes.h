#pragma once
// lanes -- sixteen floats that move together, on every instruction set.
//
//     AVX-512: one register      AVX2: two registers      portable C: an array and loops
//
// The three give the same bits: each operation is one correctly rounded IEEE operation per lane, a
// multiply-add is one fused rounding (fmaf), and sums across lanes follow one fixed tree. So a
// kernel written on lanes, compiled once per instruction set, is one function of its input. Only
// kernels_*.c include this; their compiler flags decide which of the three they get.

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 16 };

// With registers everything is unrolled and inlined; otherwise lanes would be spilled at every
// call. The portable lanes are in memory anyway.
#define LANES_PRAGMA(text) _Pragma(#text)
#if defined(__AVX2__) && defined(__FMA__)
#define LANES_INLINE static inline __attribute__((always_inline, unused))
#else
#define LANES_INLINE static inline __attribute__((unused))
#endif
// A function for the tables. A file that has one product alone has no use for the others.
#define LANES_TABLED static __attribute__((unused))
#if defined(__AVX2__) && defined(__FMA__)
#define LANES_UNROLL(times) LANES_PRAGMA(GCC unroll times)
#else
#define LANES_UNROLL(times)
#endif

#if defined(__AVX512F__)
#include <immintrin.h>

typedef __m512 lanes;

LANES_INLINE lanes lanes_load(const float *from) { return _mm512_loadu_ps(from); }
LANES_INLINE void lanes_store(float *to, lanes a) { _mm512_storeu_ps(to, a); }
LANES_INLINE lanes lanes_all(float a) { return _mm512_set1_ps(a); }
LANES_INLINE lanes lanes_add(lanes a, lanes b) { return _mm512_add_ps(a, b); }
LANES_INLINE lanes lanes_sub(lanes a, lanes b) { return _mm512_sub_ps(a, b); }
LANES_INLINE lanes lanes_mul(lanes a, lanes b) { return _mm512_mul_ps(a, b); }
LANES_INLINE lanes lanes_div(lanes a, lanes b) { return _mm512_div_ps(a, b); }
LANES_INLINE lanes lanes_sqrt(lanes a) { return _mm512_sqrt_ps(a); }
// fma is a*b + c, fnma c - a*b; max and min are b where either is NaN.
LANES_INLINE lanes lanes_fma(lanes a, lanes b, lanes c) { return _mm512_fmadd_ps(a, b, c); }
LANES_INLINE lanes lanes_fnma(lanes a, lanes b, lanes c) { return _mm512_fnmadd_ps(a, b, c); }
LANES_INLINE lanes lanes_max(lanes a, lanes b) { return _mm512_max_ps(a, b); }
LANES_INLINE lanes lanes_min(lanes a, lanes b) { return _mm512_min_ps(a, b); }

// sum[j] += *a * b[j]. See below why it is written out.
LANES_INLINE void lanes_add_products(lanes *sum, const float *a, const lanes *b, size_t count)
{
    lanes each;
    __asm__ volatile("vbroadcastss %1, %0" : "=v"(each) : "m"(*a));
    LANES_UNROLL(2)
    for (size_t j = 0; j < count; j++)
        __asm__ volatile("vfmadd231ps %2, %1, %0" : "+v"(sum[j]) : "v"(each), "v"(b[j]));
}

// 2^n for the n in the low bits of a float near 1.5 * 2^23: see lanes_exp.
LANES_INLINE lanes lanes_power_of_two(lanes shifted)
{
    const __m512i bits = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(bits, _mm512_set1_epi32(0x3f800000)));
}

// The nearest bfloat16, ties to even, as a float; below 2^-126 a zero of the same sign; NaN stays
// NaN.
LANES_INLINE lanes lanes_round_bf16(lanes a)
{
    const __m512i bits = _mm512_castps_si512(a), half = _mm512_set1_epi32(0x7fff);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i near = _mm512_add_epi32(bits, _mm512_add_epi32(half, odd));
    const __mmask16 none = _mm512_testn_epi32_mask(bits, _mm512_set1_epi32(0x7f800000));
    const __mmask16 nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
    __m512i kept = _mm512_and_si512(near, _mm512_set1_epi32((int)0xffff0000u));
    kept = _mm512_mask_and_epi32(kept, none, bits, _mm512_set1_epi32((int)0x80000000u));
    kept = _mm512_mask_and_epi32(kept, nan, bits, _mm512_set1_epi32((int)0xffff0000u));
    kept = _mm512_mask_or_epi32(kept, nan, kept, _mm512_set1_epi32(0x00400000));
    return _mm512_castsi512_ps(kept);
}

LANES_INLINE __mmask16 lanes_mask(size_t count) { return (__mmask16)((1u << count) - 1); }
LANES_INLINE lanes lanes_load_some(const float *from, size_t count)
{
    return _mm512_maskz_loadu_ps(lanes_mask(count), from);
}
LANES_INLINE void lanes_store_some(float *to, lanes a, size_t count)
{
    _mm512_mask_storeu_ps(to, lanes_mask(count), a);
}

#define LANES_HALVE(name, op256, op128)                                                            \
    LANES_INLINE float name(lanes a)                                                               \
    {                                                                                              \
        const __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a), 1));      \
        const __m256 b = op256(_mm512_castps512_ps256(a), high);                                   \
        const __m128 c = op128(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));            \
        const __m128 d = op128(c, _mm_movehl_ps(c, c));                                            \
        return _mm_cvtss_f32(op128(d, _mm_shuffle_ps(d, d, 1)));                                   \
    }

// Transposes: rows[i] lane k <-> rows[k] lane i.
LANES_INLINE void lanes_transpose(lanes rows[LANES])
{
    __m512 pairs[16], fours[16];
    LANES_UNROLL(8)
    for (int i = 0; i < 8; i++) {
        pairs[2 * i] = _mm512_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
        pairs[2 * i + 1] = _mm512_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
    }
    LANES_UNROLL(4)
    for (int i = 0; i < 4; i++) {
        const __m512d a = _mm512_castps_pd(pairs[4 * i]), b = _mm512_castps_pd(pairs[4 * i + 1]);
        const __m512d c = _mm512_castps_pd(pairs[4 * i + 2]);
        const __m512d d = _mm512_castps_pd(pairs[4 * i + 3]);
        fours[4 * i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
        fours[4 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
        fours[4 * i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
        fours[4 * i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
    }
    LANES_UNROLL(4)
    for (int i = 0; i < 4; i++) {
        const __m512 a = _mm512_shuffle_f32x4(fours[i], fours[i + 4], 0x88);
        const __m512 b = _mm512_shuffle_f32x4(fours[i], fours[i + 4], 0xdd);
        const __m512 c = _mm512_shuffle_f32x4(fours[i + 8], fours[i + 12], 0x88);
        const __m512 d = _mm512_shuffle_f32x4(fours[i + 8], fours[i + 12], 0xdd);
        rows[i] = _mm512_shuffle_f32x4(a, c, 0x88);
        rows[i + 8] = _mm512_shuffle_f32x4(a, c, 0xdd);
        rows[i + 4] = _mm512_shuffle_f32x4(b, d, 0x88);
        rows[i + 12] = _mm512_shuffle_f32x4(b, d, 0xdd);
    }
}

#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>

typedef struct {
    __m256 low, high;
} lanes;

#define LANES_TWO(name, f)                                                                         \
    LANES_INLINE lanes name(lanes a, lanes b)                                                      \
    {                                                                                              \
        return (lanes){ f(a.low, b.low), f(a.high, b.high) };                                      \
    }
#define LANES_THREE(name, f)                                                                       \
    LANES_INLINE lanes name(lanes a, lanes b, lanes c)                                             \
    {                                                                                              \
        return (lanes){ f(a.low, b.low, c.low), f(a.high, b.high, c.high) };                       \
    }

LANES_INLINE lanes lanes_load(const float *from)
{
    return (lanes){ _mm256_loadu_ps(from), _mm256_loadu_ps(from + 8) };
}
LANES_INLINE void lanes_store(float *to, lanes a)
{
    _mm256_storeu_ps(to, a.low);
    _mm256_storeu_ps(to + 8, a.high);
}
LANES_INLINE lanes lanes_all(float a) { return (lanes){ _mm256_set1_ps(a), _mm256_set1_ps(a) }; }
LANES_TWO(lanes_add, _mm256_add_ps)
LANES_TWO(lanes_sub, _mm256_sub_ps)
LANES_TWO(lanes_mul, _mm256_mul_ps)
LANES_TWO(lanes_div, _mm256_div_ps)
LANES_TWO(lanes_max, _mm256_max_ps)
LANES_TWO(lanes_min, _mm256_min_ps)
LANES_INLINE lanes lanes_sqrt(lanes a)
{
    return (lanes){ _mm256_sqrt_ps(a.low), _mm256_sqrt_ps(a.high) };
}
LANES_THREE(lanes_fma, _mm256_fmadd_ps)
LANES_THREE(lanes_fnma, _mm256_fnmadd_ps)

// sum[j] += *a * b[j]: the innermost loop of the products. Where that loop is unrolled, GCC 12 by itself loads so much
// ahead that some sums have no register, and each step waits for the memory. What is volatile stays in its order, and
// one statement needs one register beside its operands.
LANES_INLINE void lanes_add_products(lanes *sum, const float *a, const lanes *b, size_t count)
{
    __m256 each;
    LANES_UNROLL(2)
    for (size_t j = 0; j < count; j++)
        __asm__ volatile("vbroadcastss %[a], %[each]\n\t"
                         "vfmadd231ps %[b_low], %[each], %[low]\n\t"
                         "vfmadd231ps %[b_high], %[each], %[high]"
                         : [low] "+x"(sum[j].low), [high] "+x"(sum[j].high), [each] "=&x"(each)
                         : [a] "m"(*a), [b_low] "x"(b[j].low), [b_high] "x"(b[j].high));
}

LANES_INLINE __m256 lanes_power_of_two_half(__m256 shifted)
{
    const __m256i bits = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(bits, _mm256_set1_epi32(0x3f800000)));
}
LANES_INLINE lanes lanes_power_of_two(lanes shifted)
{
    return (lanes){ lanes_power_of_two_half(shifted.low), lanes_power_of_two_half(shifted.high) };
}

LANES_INLINE __m256 lanes_round_bf16_half(__m256 a)
{
    const __m256i bits = _mm256_castps_si256(a), top = _mm256_set1_epi32((int)0xffff0000u);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i half = _mm256_add_epi32(_mm256_set1_epi32(0x7fff), odd);
    const __m256i near = _mm256_and_si256(_mm256_add_epi32(bits, half), top);
    const __m256i exponent = _mm256_and_si256(bits, _mm256_set1_epi32(0x7f800000));
    const __m256i none = _mm256_cmpeq_epi32(exponent, _mm256_setzero_si256());
    const __m256i sign = _mm256_and_si256(bits, _mm256_set1_epi32((int)0x80000000u));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
    const __m256i quiet =
        _mm256_or_si256(_mm256_and_si256(bits, top), _mm256_set1_epi32(0x00400000));
    __m256i kept = _mm256_blendv_epi8(near, sign, none);
    kept = _mm256_blendv_epi8(kept, quiet, nan);
    return _mm256_castsi256_ps(kept);
}
LANES_INLINE lanes lanes_round_bf16(lanes a)
{
    return (lanes){ lanes_round_bf16_half(a.low), lanes_round_bf16_half(a.high) };
}

// Of a half. On a Zen 3 a masked store takes as long as many plain ones, also if its mask is empty.
LANES_INLINE __m256i lanes_mask(size_t count)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
LANES_INLINE lanes lanes_load_some(const float *from, size_t count)
{
    const __m256 none = _mm256_setzero_ps();
    if (count < 8) return (lanes){ _mm256_maskload_ps(from, lanes_mask(count)), none };
    const __m256 low = _mm256_loadu_ps(from);
    return (lanes){ low, count == 8 ? none : _mm256_maskload_ps(from + 8, lanes_mask(count - 8)) };
}
LANES_INLINE void lanes_store_some(float *to, lanes a, size_t count)
{
    if (count < 8) {
        _mm256_maskstore_ps(to, lanes_mask(count), a.low);
        return;
    }
    _mm256_storeu_ps(to, a.low);
    if (count > 8) _mm256_maskstore_ps(to + 8, lanes_mask(count - 8), a.high);
}

#define LANES_HALVE(name, op256, op128)                                                            \
    LANES_INLINE float name(lanes a)                                                               \
    {                                                                                              \
        const __m256 b = op256(a.low, a.high);                                                     \
        const __m128 c = op128(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));            \
        const __m128 d = op128(c, _mm_movehl_ps(c, c));                                            \
        return _mm_cvtss_f32(op128(d, _mm_shuffle_ps(d, d, 1)));                                   \
    }

LANES_INLINE void lanes_transpose_8(__m256 rows[8])
{
    __m256 pairs[8], fours[8];
    LANES_UNROLL(4)
    for (int i = 0; i < 4; i++) {
        pairs[2 * i] = _mm256_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
        pairs[2 * i + 1] = _mm256_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
    }
    LANES_UNROLL(2)
    for (int i = 0; i < 2; i++) {
        fours[4 * i] = _mm256_shuffle_ps(pairs[4 * i], pairs[4 * i + 2], 0x44);
        fours[4 * i + 1] = _mm256_shuffle_ps(pairs[4 * i], pairs[4 * i + 2], 0xee);
        fours[4 * i + 2] = _mm256_shuffle_ps(pairs[4 * i + 1], pairs[4 * i + 3], 0x44);
        fours[4 * i + 3] = _mm256_shuffle_ps(pairs[4 * i + 1], pairs[4 * i + 3], 0xee);
    }
    LANES_UNROLL(4)
    for (int i = 0; i < 4; i++) {
        rows[i] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20);
        rows[i + 4] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31);
    }
}
LANES_INLINE void lanes_transpose(lanes rows[LANES])
{
    __m256 quarter[2][2][8]; // [rows 8..15?][lanes 8..15?]
    LANES_UNROLL(8)
    for (int i = 0; i < 8; i++) {
        quarter[0][0][i] = rows[i].low;
        quarter[0][1][i] = rows[i].high;
        quarter[1][0][i] = rows[i + 8].low;
        quarter[1][1][i] = rows[i + 8].high;
    }
    lanes_transpose_8(quarter[0][0]);
    lanes_transpose_8(quarter[0][1]);
    lanes_transpose_8(quarter[1][0]);
    lanes_transpose_8(quarter[1][1]);
    LANES_UNROLL(8)
    for (int i = 0; i < 8; i++) {
        rows[i] = (lanes){ quarter[0][0][i], quarter[1][0][i] };
        rows[i + 8] = (lanes){ quarter[0][1][i], quarter[1][1][i] };
    }
}

#else // Portable C. fmaf is exact by the standard; without FMA hardware the C library computes it

typedef struct {
    float at[LANES];
} lanes;

#define LANES_EACH(name, parameters, expression)                                                   \
    LANES_INLINE lanes name parameters                                                             \
    {                                                                                              \
        lanes result;                                                                              \
        for (int i = 0; i < LANES; i++) result.at[i] = (expression);                               \
        return result;                                                                             \
    }

LANES_EACH(lanes_load, (const float *from), from[i])
LANES_EACH(lanes_load_some, (const float *from, size_t count), (size_t)i < count ? from[i] : 0.0f)
LANES_EACH(lanes_all, (float a), a)
LANES_EACH(lanes_add, (lanes a, lanes b), a.at[i] + b.at[i])
LANES_EACH(lanes_sub, (lanes a, lanes b), a.at[i] - b.at[i])
LANES_EACH(lanes_mul, (lanes a, lanes b), a.at[i] * b.at[i])
LANES_EACH(lanes_div, (lanes a, lanes b), a.at[i] / b.at[i])
LANES_EACH(lanes_sqrt, (lanes a), sqrtf(a.at[i]))
LANES_EACH(lanes_max, (lanes a, lanes b), a.at[i] > b.at[i] ? a.at[i] : b.at[i])
LANES_EACH(lanes_min, (lanes a, lanes b), a.at[i] < b.at[i] ? a.at[i] : b.at[i])
LANES_EACH(lanes_fma, (lanes a, lanes b, lanes c), fmaf(a.at[i], b.at[i], c.at[i]))
LANES_EACH(lanes_fnma, (lanes a, lanes b, lanes c), fmaf(-a.at[i], b.at[i], c.at[i]))

LANES_INLINE void lanes_store(float *to, lanes a) { memcpy(to, a.at, sizeof a.at); }
LANES_INLINE void lanes_store_some(float *to, lanes a, size_t count)
{
    memcpy(to, a.at, count * sizeof *to);
}

LANES_INLINE lanes lanes_power_of_two(lanes shifted)
{
    uint32_t bits[LANES];
    memcpy(bits, shifted.at, sizeof bits);
    for (int i = 0; i < LANES; i++) bits[i] = (bits[i] << 23) + 0x3f800000u;
    memcpy(shifted.at, bits, sizeof bits);
    return shifted;
}

static inline float round_bf16(float a)
{
    uint32_t bits;
    memcpy(&bits, &a, sizeof bits);
    if (a != a) bits = (bits & 0xffff0000u) | 0x00400000u;
    else if ((bits & 0x7f800000u) == 0) bits &= 0x80000000u;
    else bits = (bits + 0x7fffu + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&a, &bits, sizeof a);
    return a;
}
LANES_EACH(lanes_round_bf16, (lanes a), round_bf16(a.at[i]))

LANES_INLINE unsigned lanes_flush_begin(void) { return 0; }
LANES_INLINE void lanes_flush_end(unsigned before) { (void)before; }
static inline float flush(float a) { return fabsf(a) < 0x1p-126f ? copysignf(0.0f, a) : a; }
LANES_EACH(lanes_flush, (lanes a), flush(a.at[i]))

// The processor decides whether a result is tiny after it has rounded it as if exponents were
// unbounded. So a result that fmaf rounds up to 2^-126 is tiny all the same if it is below 2^-126 -
// 2^-151, the middle between that and the next lower number of 24 bits. The product of two bfloat16
// is exact in double, and so is the rounding error of the sum (Knuth's TwoSum).
static inline bool is_tiny(double product, double c)
{
    const double limit = 0x1p-126 - 0x1p-151, sum = product + c, part = sum - product;
    const double rest = (product - (sum - part)) + (c - part);
    return sum < limit || (sum == limit && rest < 0.0);
}
static inline float fma_flushed(float a, float b, float c)
{
    const float sum = fmaf(a, b, c);
    if (!(fabsf(sum) <= 0x1p-126f)) return sum;
    const double product = (double)a * (double)b, turn = sum < 0.0f ? -1.0 : 1.0;
    const bool stays = fabsf(sum) == 0x1p-126f && !is_tiny(turn * product, turn * (double)c);
    return stays ? sum : copysignf(0.0f, sum);
}
LANES_INLINE void lanes_add_products(lanes *sum, const float *a, const lanes *b, size_t count)
{
    for (size_t j = 0; j < count; j++) sum[j] = lanes_fma(lanes_all(*a), b[j], sum[j]);
}
LANES_EACH(lanes_fma_flushed, (lanes a, lanes b, lanes c), fma_flushed(a.at[i], b.at[i], c.at[i]))

#define LANES_ADD_ONE(a, b) ((a) + (b))
#define LANES_MAX_ONE(a, b) ((a) > (b) ? (a) : (b))
#define LANES_HALVE(name, op256, op128)                                                            \
    LANES_INLINE float name(lanes a)                                                               \
    {                                                                                              \
        for (int width = LANES / 2; width > 0; width /= 2)                                         \
            for (int i = 0; i < width; i++) a.at[i] = op256(a.at[i], a.at[i + width]);             \
        return a.at[0];                                                                            \
    }

LANES_INLINE void lanes_transpose(lanes rows[LANES])
{
    for (int i = 0; i < LANES; i++) {
        for (int k = 0; k < i; k++) {
            const float swap = rows[i].at[k];
            rows[i].at[k] = rows[k].at[i];
            rows[k].at[i] = swap;
        }
    }
}
#endif

#if defined(__AVX2__)
// Between begin and end, lanes_fma_flushed treats a number below 2^-126 as a zero of the same sign,
// in its input and its result. With vectors that is a mode of the processor.
LANES_INLINE unsigned lanes_flush_begin(void)
{
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | _MM_FLUSH_ZERO_ON | 0x0040); // And denormals are zero
    return before;
}
LANES_INLINE void lanes_flush_end(unsigned before) { _mm_setcsr(before); }
LANES_INLINE lanes lanes_flush(lanes a) { return a; }
LANES_INLINE lanes lanes_fma_flushed(lanes a, lanes b, lanes c) { return lanes_fma(a, b, c); }
LANES_INLINE void lanes_add_products_flushed(lanes *sum, const float *a, const lanes *b,
                                             size_t count)
{
    lanes_add_products(sum, a, b, count);
}
#else
LANES_INLINE void lanes_add_products_flushed(lanes *sum, const float *a, const lanes *b,
                                             size_t count)
{
    for (size_t j = 0; j < count; j++) sum[j] = lanes_fma_flushed(lanes_all(*a), b[j], sum[j]);
}
#endif

// Every sum across lanes uses this tree: i with i+8, then i with i+4, i+2, i+1.
#if defined(__AVX2__)
LANES_HALVE(lanes_sum, _mm256_add_ps, _mm_add_ps)
LANES_HALVE(lanes_largest, _mm256_max_ps, _mm_max_ps)
#else
LANES_HALVE(lanes_sum, LANES_ADD_ONE, LANES_ADD_ONE)
LANES_HALVE(lanes_largest, LANES_MAX_ONE, LANES_MAX_ONE)
#endif

// Loads and stores: a whole vector register, or the last part of a row, of which `count` numbers
// are left.
LANES_INLINE lanes lanes_load_upto(const float *from, size_t left)
{
    return left >= LANES ? lanes_load(from) : lanes_load_some(from, left);
}
LANES_INLINE void lanes_store_upto(float *to, lanes a, size_t left)
{
    if (left >= LANES) lanes_store(to, a);
    else lanes_store_some(to, a, left);
}

// e^x within 2 units in the last place; x below -87 counts as -87, above 88 as 88, NaN gives NaN.
//
// x = n ln 2 + r, |r| <= ln(2)/2: a degree-6 polynomial in r (Cephes' expf), times 2^n. Adding and
// subtracting 1.5 * 2^23 rounds to the nearest integer; the sum has n in its low bits.
LANES_INLINE lanes lanes_exp(lanes x)
{
    const lanes shift = lanes_all(12582912.0f);
    x = lanes_max(lanes_all(-87.0f), lanes_min(lanes_all(88.0f), x)); // In this order NaN stays NaN
    const lanes shifted = lanes_fma(x, lanes_all(1.44269504f), shift);
    const lanes n = lanes_sub(shifted, shift);
    lanes r = lanes_fnma(n, lanes_all(0.693359375f), x);
    r = lanes_fnma(n, lanes_all(-2.12194440e-4f), r);
    lanes p = lanes_all(1.9875691500e-4f);
    p = lanes_fma(p, r, lanes_all(1.3981999507e-3f));
    p = lanes_fma(p, r, lanes_all(8.3334519073e-3f));
    p = lanes_fma(p, r, lanes_all(4.1665795894e-2f));
    p = lanes_fma(p, r, lanes_all(1.6666665459e-1f));
    p = lanes_fma(p, r, lanes_all(5.0000001201e-1f));
    p = lanes_fma(p, lanes_mul(r, r), lanes_add(r, lanes_all(1.0f)));
    return lanes_mul(p, lanes_power_of_two(shifted));
}
