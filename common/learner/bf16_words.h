#pragma once
// bf16_words -- floats as bfloat16 on the way between a trainer and a server: two to a word, so half the bytes.
//
//     word i:  bits 0..15  the upper half of float 2i       bits 16..31  the upper half of float 2i + 1, or 0
//
// A float is rounded to the nearest bfloat16, of two as near to the even one (IEEE 754, roundTiesToEven, on its upper
// 16 bits). Infinity and NaN stay what they are; a number beyond the largest bfloat16 becomes infinity.
//
// Pure; any thread. The two ranges must not overlap.

#include <stdint.h>

static inline uint64_t bf16_words_count(uint64_t floats) { return (floats + 1) / 2; }

// To bf16_words_count(count) words. They are no floats to compute with.
void bf16_words_pack(const float *restrict from, uint64_t count, float *restrict ret_words);
void bf16_words_unpack(const float *restrict words, uint64_t count, float *restrict ret_floats);
