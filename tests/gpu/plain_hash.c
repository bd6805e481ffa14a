// What the GPU tests need of common/base/hash.h, from FIPS 180-4 alone: where there is a GPU
// there may be no OpenSSL. Slow, and for tests only.
#include "common/base/hash.h"

#include <stdlib.h>
#include <string.h>

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

struct state {
    uint32_t h[8];
    uint8_t block[64];
    uint64_t count; // Bytes so far
};

static uint32_t turned(uint32_t x, int right) { return x >> right | x << (32 - right); }

static void take_block(struct state *self)
{
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)self->block[4 * i] << 24 | (uint32_t)self->block[4 * i + 1] << 16 |
               (uint32_t)self->block[4 * i + 2] << 8 | self->block[4 * i + 3];
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + (turned(w[i - 15], 7) ^ turned(w[i - 15], 18) ^ w[i - 15] >> 3) +
               w[i - 7] + (turned(w[i - 2], 17) ^ turned(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(s, self->h, sizeof s);
    for (int i = 0; i < 64; i++) {
        const uint32_t first = s[7] + (turned(s[4], 6) ^ turned(s[4], 11) ^ turned(s[4], 25)) +
                               ((s[4] & s[5]) ^ (~s[4] & s[6])) + constants[i] + w[i];
        const uint32_t second = (turned(s[0], 2) ^ turned(s[0], 13) ^ turned(s[0], 22)) +
                                ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += first;
        s[0] = first + second;
    }
    for (int i = 0; i < 8; i++) self->h[i] += s[i];
}

static void add(struct state *self, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        self->block[self->count++ % 64] = ((const uint8_t *)bytes)[i];
        if (self->count % 64 == 0) take_block(self);
    }
}

static struct hash end(struct state *self)
{
    uint8_t length[8];
    struct hash hash;
    for (int i = 0; i < 8; i++) length[i] = (uint8_t)(8 * self->count >> (56 - 8 * i));
    add(self, "\x80", 1);
    while (self->count % 64 != 56) add(self, "", 1);
    add(self, length, sizeof length);
    for (int i = 0; i < HASH_BYTES; i++)
        hash.bytes[i] = (uint8_t)(self->h[i / 4] >> (24 - 8 * (i % 4)));
    return hash;
}

static const struct state nothing = { .h = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };

struct hash hash_of_two(const void *a, size_t a_count, const void *b, size_t b_count)
{
    struct state state = nothing;
    add(&state, a, a_count);
    add(&state, b, b_count);
    return end(&state);
}

struct hash hash_of(const void *bytes, size_t count) { return hash_of_two(bytes, count, "", 0); }

bool hash_equal(const struct hash *a, const struct hash *b) { return memcmp(a, b, sizeof *a) == 0; }

bool hash_is_none(const struct hash *hash)
{
    const struct hash none = { { 0 } };
    return hash_equal(hash, &none);
}

void hasher_init(struct hasher *self)
{
    self->context = malloc(sizeof(struct state));
    if (!self->context) abort();
    memcpy(self->context, &nothing, sizeof nothing);
}

void hasher_add(struct hasher *self, const void *bytes, size_t count)
{
    add(self->context, bytes, count);
}

struct hash hasher_end(struct hasher *self)
{
    const struct hash hash = end(self->context);
    free(self->context);
    return hash;
}
