#pragma once
// cuda_bf16 (emulated) -- the type and its two conversions.
#include <cuda_runtime.h>

struct __nv_bfloat16 {
    uint16_t bits;
};
struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};

inline float __bfloat162float(__nv_bfloat16 x) { return __uint_as_float((uint32_t)x.bits << 16); }
inline __nv_bfloat16 __float2bfloat16_rn(float x)
{
    const uint32_t u = __float_as_uint(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) return { 0x7fff };
    return { (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16) };
}
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return { __float2bfloat16_rn(x), __float2bfloat16_rn(y) };
}
