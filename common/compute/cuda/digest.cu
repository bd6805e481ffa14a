// SHA-256 of each leaf of a vector (merkle.h), one thread a leaf, for digests without a copy to the
// host.
#include "common/compute/cuda/distro.cuh"
#include "common/compute/cuda/numbers.cuh"

enum { HASH_WORDS = 8, THREADS = 64 };
constexpr uint32_t LEAF_FLOATS = 16384;

// FIPS 180-4, 4.2.2
__constant__ const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

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
