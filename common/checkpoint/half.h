#pragma once
// half -- the two 16-bit floats of checkpoint files, as bits. Widening is exact; narrowing rounds
// to nearest, ties to even, as the hardware and PyTorch do. It is integer arithmetic only, so the
// result does not depend on the rounding mode or on flushed denormals. A NaN stays a NaN (made
// quiet). Pure; any thread.

#include <stdint.h>

float half_from_bf16(uint16_t bits);
float half_from_f16(uint16_t bits);
uint16_t half_to_bf16(float value);
uint16_t half_to_f16(float value); // Beyond 65519.99 in size: infinity
