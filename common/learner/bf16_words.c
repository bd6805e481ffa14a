// bf16_words -- by the bits of each float; a loop of pairs, which compilers make one of vectors.

#include "common/learner/bf16_words.h"
#include <string.h>

static inline uint32_t bits_of(float a)
{
    uint32_t bits;
    memcpy(&bits, &a, sizeof bits);
    return bits;
}

static inline float of_bits(uint32_t bits)
{
    float a;
    memcpy(&a, &bits, sizeof a);
    return a;
}

// A NaN whose payload lies in the lower half keeps one bit of it.
static inline uint32_t upper(float a)
{
    const uint32_t bits = bits_of(a), rounded = bits + 0x7fff + (bits >> 16 & 1);
    const uint32_t nan = bits >> 16 | 0x40;
    return (bits & 0x7fffffff) > 0x7f800000 ? nan : rounded >> 16;
}

void bf16_words_pack(const float *restrict from, uint64_t count, float *restrict ret_words)
{
    for (uint64_t i = 0; i < count / 2; i++)
        ret_words[i] = of_bits(upper(from[2 * i]) | upper(from[2 * i + 1]) << 16);
    if (count % 2) ret_words[count / 2] = of_bits(upper(from[count - 1]));
}

void bf16_words_unpack(const float *restrict words, uint64_t count, float *restrict ret_floats)
{
    for (uint64_t i = 0; i < count / 2; i++) {
        const uint32_t bits = bits_of(words[i]);
        ret_floats[2 * i] = of_bits(bits << 16);
        ret_floats[2 * i + 1] = of_bits(bits & 0xffff0000);
    }
    if (count % 2) ret_floats[count - 1] = of_bits(bits_of(words[count / 2]) << 16);
}
