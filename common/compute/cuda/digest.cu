// SHA-256 of each leaf of a vector (merkle.h), one thread a leaf, for digests without a copy to the
// host.
#include "common/compute/cuda/distro.cuh"
#include "common/compute/cuda/numbers.cuh"
#include "common/crypto/sha256_constants.h"

enum { HASH_WORDS = 8, THREADS = 64 };
constexpr uint32_t LEAF_FLOATS = 16384;

__constant__ const uint32_t round_constants[64] = { SHA256_CONSTANTS };

__device__ inline uint32_t turned(uint32_t x, int right)
{
    return __funnelshift_l(x, x, 32 - right);
}

// One block of 64 bytes as 16 big-endian words.
__device__ inline void compress(uint32_t (&state)[HASH_WORDS], uint32_t (&w)[16])
{
    uint32_t s[HASH_WORDS];
#pragma unroll
    for (int i = 0; i < HASH_WORDS; i++) s[i] = state[i];
#pragma unroll
    for (int i = 0; i < 64; i++) {
        if (i >= 16) {
            const uint32_t a = w[(i + 1) % 16], b = w[(i + 14) % 16];
            w[i % 16] += (turned(a, 7) ^ turned(a, 18) ^ a >> 3) + w[(i + 9) % 16] +
                         (turned(b, 17) ^ turned(b, 19) ^ b >> 10);
        }
        const uint32_t first = s[7] + (turned(s[4], 6) ^ turned(s[4], 11) ^ turned(s[4], 25)) +
                               ((s[4] & s[5]) ^ (~s[4] & s[6])) + round_constants[i] + w[i % 16];
        const uint32_t second = (turned(s[0], 2) ^ turned(s[0], 13) ^ turned(s[0], 22)) +
                                ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        s[7] = s[6], s[6] = s[5], s[5] = s[4], s[4] = s[3] + first;
        s[3] = s[2], s[2] = s[1], s[1] = s[0], s[0] = first + second;
    }
#pragma unroll
    for (int i = 0; i < HASH_WORDS; i++) state[i] += s[i];
}

// One thread hashes one leaf: a zero byte, then the floats; so every word is the last byte of the
// float before it and three of the next.
__global__ void leaves_kernel(uint8_t *ret_leaves, const float *values, uint64_t count,
                              uint32_t leaves)
{
    const uint32_t leaf = blockIdx.x * THREADS + threadIdx.x;
    if (leaf >= leaves) return;
    const uint64_t first = (uint64_t)leaf * LEAF_FLOATS;
    const uint32_t floats = count - first < LEAF_FLOATS ? (uint32_t)(count - first) : LEAF_FLOATS;
    uint32_t state[HASH_WORDS] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
    const uint64_t bits = 8 * (1 + (uint64_t)floats * 4);
    const uint32_t blocks = (1 + floats * 4 + 9 + 63) / 64; // With 0x80 and the length
    uint32_t before = 0; // The float before, as it lies in memory
    for (uint32_t block = 0; block < blocks; block++) {
        uint32_t w[16];
#pragma unroll
        for (uint32_t i = 0; i < 16; i++) {
            const uint32_t at = block * 16 + i;
            uint32_t next = 0;
            if (at < floats) next = __float_as_uint(values[first + at]);
            else if (at == floats) next = 0x80;
            // Bytes: the highest of `before`, then the lower three of `next`, the first highest
            w[i] = __byte_perm(before, next, 0x3456);
            before = next;
        }
        if (block == blocks - 1) w[14] = (uint32_t)(bits >> 32), w[15] = (uint32_t)bits;
        compress(state, w);
    }
#pragma unroll
    for (int i = 0; i < HASH_WORDS; i++)
        for (int byte = 0; byte < 4; byte++)
            ret_leaves[(size_t)leaf * 32 + i * 4 + byte] = (uint8_t)(state[i] >> (24 - 8 * byte));
}

void digest_leaves(struct device *device, uint8_t *ret_leaves, const float *values, uint64_t count)
{
    const uint32_t leaves = (uint32_t)((count + LEAF_FLOATS - 1) / LEAF_FLOATS);
    DEVICE_LAUNCH(device, dim3(device_blocks(leaves, THREADS)), dim3(THREADS), 0, leaves_kernel,
                  ret_leaves, values, count, leaves);
}
