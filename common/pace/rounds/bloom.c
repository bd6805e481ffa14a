// bloom -- first the size in fixed-point integers, then the bits of an item, then the filter as
// bytes.

#include "common/base/bytes.h"
#include "common/pace/rounds/bloom.h"
#include "common/base/ensure.h"
#include <string.h>

static const uint64_t BITS_PER_ITEM = 41167512261u; // −ln 0.01 / ln² 2, in units of 2^-32
static const uint64_t LN_2 = 2977044472u;           // In units of 2^-32
static const uint64_t ONE = (uint64_t)1 << 32;

static uint32_t bits_of(uint32_t n)
{
    const uint64_t bits = (n * BITS_PER_ITEM + ONE - 1) / ONE;
    return (uint32_t)((bits + 63) / 64 * 64);
}

static uint32_t keys_of(uint32_t n, uint32_t bits)
{
    const uint64_t keys = (2 * bits * LN_2 + n * ONE) / (2 * n * ONE);
    return keys ? (uint32_t)keys : 1;
}

static struct bloom shape_of(uint32_t n, uint64_t seed, uint64_t *words)
{
    ensure(n <= MEMBERS_MAX);
    if (n == 0) n = 1;
    const uint32_t bits = bits_of(n);
    return (struct bloom){
        .seed = seed, .items = n, .bits = bits, .keys = keys_of(n, bits), .words = words
    };
}

void bloom_init(struct bloom *self, uint32_t n, uint64_t seed, uint64_t *words)
{
    *self = shape_of(n, seed, words);
    memset(words, 0, self->bits / 8);
}

// SplitMix64 (Steele, Lea, Flood 2014): computes the i-th number after the seed directly.
static uint64_t key_at(uint64_t seed, uint32_t i)
{
    uint64_t z = seed + (i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

uint32_t bloom_place(const struct hash *item, uint64_t key, uint32_t bits)
{
    for (int i = 0; i < HASH_BYTES; i++) key = (key ^ item->bytes[i]) * 0x100000001B3u;
    return (uint32_t)(key % bits);
}

void bloom_add(struct bloom *self, const struct hash *item)
{
    for (uint32_t i = 0; i < self->keys; i++) {
        const uint32_t place = bloom_place(item, key_at(self->seed, i), self->bits);
        self->words[place / 64] |= (uint64_t)1 << place % 64;
    }
}

bool bloom_has(const struct bloom *self, const struct hash *item)
{
    for (uint32_t i = 0; i < self->keys; i++) {
        const uint32_t place = bloom_place(item, key_at(self->seed, i), self->bits);
        if (!(self->words[place / 64] >> place % 64 & 1)) return false;
    }
    return true;
}

size_t bloom_bytes(uint32_t n) { return BLOOM_HEAD_BYTES + bits_of(n ? n : 1) / 8; }

void bloom_store(const struct bloom *self, uint8_t *ret_bytes)
{
    le_put(ret_bytes, self->items, 4);
    le_put(ret_bytes + 4, self->seed, 8);
    for (uint32_t i = 0; i < self->bits / 64; i++)
        le_put(ret_bytes + BLOOM_HEAD_BYTES + 8 * i, self->words[i], 8);
}

bool bloom_load(const uint8_t *bytes, size_t count, uint32_t n, uint64_t *words,
                struct bloom *ret_self)
{
    uint64_t ones = 0;
    if (count < BLOOM_HEAD_BYTES || count != bloom_bytes(n)) return false;
    const struct bloom shape = shape_of(n, le_get(bytes + 4, 8), words);
    if (le_get(bytes, 4) != shape.items) return false;
    for (uint32_t i = 0; i < shape.bits / 64; i++) {
        words[i] = le_get(bytes + BLOOM_HEAD_BYTES + 8 * i, 8);
        ones += (uint64_t)__builtin_popcountll(words[i]);
    }
    if (ones > (uint64_t)shape.items * shape.keys) return false;
    *ret_self = shape;
    return true;
}
