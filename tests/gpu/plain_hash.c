// What the GPU tests need of common/base/hash.h, from FIPS 180-4 alone: where there is a GPU
// there may be no OpenSSL. Slow, and for tests only.
#include "common/base/hash.h"
#include "common/crypto/sha256_constants.h"

#include <stdlib.h>
#include <string.h>

static const uint32_t constants[64] = { SHA256_CONSTANTS };

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
