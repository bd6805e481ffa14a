#pragma once
// bloom -- a set of hashes in about ten bits each: never denies what is in it, and affirms one in a
// hundred of what is not. Witnesses prove with it who took part; hints and health scores rest on
// it, and nothing is ever applied because of it.
//
// Sized for the number of items it is made for, n in 1 .. MEMBERS_MAX, at a false-positive rate of
// 1 %:
//
//     bits = ⌈−n · ln 0.01 / ln² 2⌉, rounded up to whole words       keys = round(bits/n · ln 2)
//
// in integers throughout, so that all machines agree. An item's bit for a key is Psyche's: FNV-1a
// of 64 bits over the item's 32 bytes, with the key as the initial state, modulo the bits. Psyche's
// filter has 1024 bits and 8 keys whatever n is: 31 % at n = 256. Our keys follow from one seed
// (SplitMix64).
//
// Pure. The words are the caller's, BLOOM_WORDS(n) of them, borrowed for the filter's life. Adding
// is for one thread at a time. Cost of an item: 32 · keys multiplications, about 0.2 µs at 7 keys.

#include "common/base/hash.h"
#include "common/run/limits.h"

// At least as many words as n items need: 64/6 > 9.5851 = −ln 0.01 / ln² 2.
#define BLOOM_WORDS(n) ((n) / 6u + 1u)
enum { BLOOM_HEAD_BYTES = 12 };

struct bloom {
    uint64_t seed;       // Of the keys
    uint32_t items;      // n, what it is sized for
    uint32_t bits, keys; // Follow from n
    uint64_t *words;     // [bits / 64]; bit b is bit b mod 64 of word b / 64
};

// An empty filter for n items; n = 0 is taken for 1. Needs n ≤ MEMBERS_MAX.
void bloom_init(struct bloom *self, uint32_t n, uint64_t seed, uint64_t *words);

void bloom_add(struct bloom *self, const struct hash *item);
bool bloom_has(const struct bloom *self, const struct hash *item);

// As bytes: n in 4, the seed in 8, the words in 8 each, all little-endian.
size_t bloom_bytes(uint32_t n);
void bloom_store(const struct bloom *self, uint8_t *ret_bytes); // Room for bloom_bytes(n)

// From outside, by one who knows what n must be. False, and *ret_self unchanged, if n or the size
// differ, or if more bits are set than n items could have set: a filter that affirms everything is
// a lie. `words` is for n items, and may have been written to all the same.
bool bloom_load(const uint8_t *bytes, size_t count, uint32_t n, uint64_t *words,
                struct bloom *ret_self);

// The place of an item for one key, of `bits`.
uint32_t bloom_place(const struct hash *item, uint64_t key, uint32_t bits);
