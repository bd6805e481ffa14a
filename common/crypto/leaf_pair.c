// leaf_pair -- the rounds of FIPS 180-4 by Intel's SHA instructions, on two messages in turns.
//
// A message is the byte 0x00, the leaf, and the padding. So its first block is put together in a buffer,
// the blocks in the middle lie in the leaf, one byte off, and the last one or two are put together again.

#include "common/crypto/leaf_pair.h"
#include "common/base/ensure.h"
#include "common/crypto/sha256_constants.h"

#if defined __x86_64__

#include <cpuid.h>
#include <immintrin.h>
#include <pthread.h>
#include <string.h>

enum { BLOCK = 64, LENGTH_BYTES = 8, PAIR = 2 };

static bool is_here;

static void look(void)
{
    const unsigned sha = 1u << 29, ssse3 = 1u << 9,
                   sse41 = 1u << 19; // EBX of leaf 7, ECX of leaf 1
    unsigned a, b, c, d, has_sha = 0, has_sse = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) has_sha = b;
    if (__get_cpuid(1, &a, &b, &c, &d)) has_sse = c;
    is_here = (has_sha & sha) && (has_sse & ssse3) && (has_sse & sse41);
}

// Asked once: a virtual machine takes microseconds to answer.
bool leaf_pair_is_here(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    ensure(pthread_once(&once, look) == 0);
    return is_here;
}

static const _Alignas(16) uint32_t constants[64] = { SHA256_CONSTANTS };

#define SHA __attribute__((target("sha,ssse3,sse4.1")))

// The eight words of a state as the instructions take them: A, B, E, F and C, D, G, H, the highest first.
struct state {
    __m128i abef, cdgh;
};

SHA static inline __m128i load(const void *from) { return _mm_loadu_si128(from); }

// The next four words of the schedule, from the sixteen before them.
SHA static inline __m128i extend(__m128i w0, __m128i w1, __m128i w2, __m128i w3)
{
    const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), _mm_alignr_epi8(w3, w2, 4));
    return _mm_sha256msg2_epu32(sum, w3);
}

// FIPS 180-4, 5.3.3.
static const struct state initial = {
    { (long long)0x510e527f9b05688c, (long long)0x6a09e667bb67ae85 },
    { (long long)0x1f83d9ab5be0cd19, (long long)0x3c6ef372a54ff53a },
};

// One block of each message. In turns: an instruction of one runs while the other's waits for its result.
SHA static inline void add_blocks(struct state states[PAIR], const uint8_t *const blocks[PAIR])
{
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    struct state now[PAIR] = { states[0], states[1] };
    __m128i words[PAIR][4]; // Sixteen of the schedule, each overwritten by the one sixteen later
    for (int i = 0; i < PAIR; i++)
        for (int k = 0; k < 4; k++)
            words[i][k] = _mm_shuffle_epi8(load(blocks[i] + 16 * k), big_endian);
#pragma GCC unroll 16
    for (int at = 0; at < 64; at += 4) { // Four rounds
        const int k = at / 4 % 4;
        __m128i sum[PAIR];
#pragma GCC unroll 2
        for (int i = 0; i < PAIR; i++) {
            sum[i] = _mm_add_epi32(words[i][k], load(constants + at));
            now[i].cdgh = _mm_sha256rnds2_epu32(now[i].cdgh, now[i].abef, sum[i]);
        }
#pragma GCC unroll 2
        for (int i = 0; i < PAIR; i++) {
            now[i].abef =
                _mm_sha256rnds2_epu32(now[i].abef, now[i].cdgh, _mm_shuffle_epi32(sum[i], 0x0E));
            if (at < 48)
                words[i][k] = extend(words[i][k], words[i][(k + 1) % 4], words[i][(k + 2) % 4],
                                     words[i][(k + 3) % 4]);
        }
    }
    for (int i = 0; i < PAIR; i++) {
        states[i].abef = _mm_add_epi32(states[i].abef, now[i].abef);
        states[i].cdgh = _mm_add_epi32(states[i].cdgh, now[i].cdgh);
    }
}

SHA static struct hash hash_of_state(const struct state *state)
{
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    const __m128i feba = _mm_shuffle_epi32(state->abef, 0x1B);
    const __m128i dchg = _mm_shuffle_epi32(state->cdgh, 0xB1);
    const __m128i dcba = _mm_blend_epi16(feba, dchg, 0xF0);
    const __m128i hgfe = _mm_alignr_epi8(dchg, feba, 8);
    struct hash hash;
    _mm_storeu_si128((__m128i *)(void *)hash.bytes, _mm_shuffle_epi8(dcba, big_endian));
    _mm_storeu_si128((__m128i *)(void *)(hash.bytes + 16), _mm_shuffle_epi8(hgfe, big_endian));
    return hash;
}

// The end of a message: the rest of it, 0x80, zeros, its length in bits. Returns how many blocks.
static size_t put_end(uint8_t end[2 * BLOCK], const uint8_t *rest, size_t rest_count,
                      uint64_t total)
{
    const size_t blocks = rest_count + 1 + LENGTH_BYTES > BLOCK ? 2 : 1;
    memset(end, 0, 2 * BLOCK);
    memcpy(end, rest, rest_count);
    end[rest_count] = 0x80;
    for (int i = 0; i < LENGTH_BYTES; i++)
        end[blocks * BLOCK - 1 - (size_t)i] = (uint8_t)(8 * total >> 8 * i);
    return blocks;
}

SHA void leaf_pair_hash(const uint8_t *a, const uint8_t *b, size_t count, struct hash ret_hashes[2])
{
    const uint8_t *const leaves[PAIR] = { a, b }, *at[PAIR];
    uint8_t begin[PAIR][BLOCK], end[PAIR][2 * BLOCK];
    struct state states[PAIR] = { initial, initial };
    size_t done = BLOCK - 1, blocks = 0;
    ensure(leaf_pair_is_here() && count >= LEAF_PAIR_BYTES_MIN);
    for (int i = 0; i < PAIR; i++) {
        begin[i][0] = 0;
        memcpy(begin[i] + 1, leaves[i], done);
        at[i] = begin[i];
    }
    add_blocks(states, at);
    for (; count - done >= BLOCK; done += BLOCK) {
        at[0] = a + done, at[1] = b + done;
        add_blocks(states, at);
    }
    for (int i = 0; i < PAIR; i++)
        blocks = put_end(end[i], leaves[i] + done, count - done, 1 + (uint64_t)count);
    for (size_t k = 0; k < blocks; k++) {
        at[0] = end[0] + k * BLOCK, at[1] = end[1] + k * BLOCK;
        add_blocks(states, at);
    }
    for (int i = 0; i < PAIR; i++) ret_hashes[i] = hash_of_state(&states[i]);
}

#else

bool leaf_pair_is_here(void) { return false; }

void leaf_pair_hash(const uint8_t *a, const uint8_t *b, size_t count, struct hash ret_hashes[2])
{
    (void)a, (void)b, (void)count, (void)ret_hashes;
    ensure(leaf_pair_is_here());
}

#endif
