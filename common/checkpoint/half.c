#include "common/checkpoint/half.h"
#include <string.h>

enum { INFINITE = 0x7f800000, QUIET_BF16 = 0x0040, INFINITE_F16 = 0x7c00, QUIET_F16 = 0x0200 };

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float half_from_bf16(uint16_t bits) { return float_of((uint32_t)bits << 16); }

float half_from_f16(uint16_t bits)
{
    const uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
    if (exponent == 31) return float_of(sign | INFINITE | fraction << 13);
    if (exponent == 0) { // fraction * 2^-24: normalize it
        if (!fraction) return float_of(sign);
        const uint32_t shift = (uint32_t)__builtin_clz(fraction) - 21;
        fraction = fraction << shift & 1023;
        exponent = 1 - shift; // May wrap below zero; the sum below is modulo 2^32
    }
    return float_of(sign | (exponent + 112) << 23 | fraction << 13);
}

// Drops the low `count` bits (1 to 31), to nearest, ties to even.
static uint32_t round_off(uint32_t bits, uint32_t count)
{
    const uint32_t half = 1u << (count - 1), odd = bits >> count & 1;
    return (bits + half - 1 + odd) >> count;
}

uint16_t half_to_bf16(float value)
{
    const uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffff) > INFINITE) return (uint16_t)(bits >> 16 | QUIET_BF16);
    return (uint16_t)round_off(bits, 16);
}

uint16_t half_to_f16(float value)
{
    const uint32_t bits = bits_of(value), size = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
    uint32_t half;
    // The bounds: 65520, from which on the result is infinity; 2^-14, the smallest normal number;
    // 2^-25, half of the smallest subnormal number: a tie, which goes to 0, the even one.
    if (size > INFINITE) half = INFINITE_F16 | QUIET_F16 | (size >> 13 & 1023);
    else if (size >= 0x477ff000) half = INFINITE_F16;
    else if (size >= 0x38800000) half = round_off(size - 0x38000000, 13);
    else if (size <= 0x33000000) half = 0;
    else half = round_off((size & 0x7fffff) | 0x800000, 126 - (size >> 23));
    return (uint16_t)(sign | half);
}
