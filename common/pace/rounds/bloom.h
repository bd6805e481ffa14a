#pragma once
// bloom -- a Bloom filter: a set of hashes in about ten bits each. It has no false negatives, and 1
// % false positives. A witness reports with it which members took part. Only health scores depend
// on it; no result is accepted because of it.
//
// Its size follows from n, the number of items it is made for, in 1 .. MEMBERS_MAX:
//
//     bits = ⌈−n · ln 0.01 / ln² 2⌉, rounded up to whole words       keys = round(bits/n · ln 2)
//
// computed with integers, so that all machines agree. The bit of an item for a key is Psyche's:
// FNV-1a of 64 bits over the item's 32 bytes, with the key as the initial state, modulo `bits`.
// Psyche's filter has 1024 bits and 8 keys for every n, which gives 31 % false positives at n =
// 256. Our keys follow from one seed (SplitMix64).
//
// Pure. The caller gives BLOOM_WORDS(n) words, which the filter borrows for its life. One thread at
// a time may add. Cost of an item: 32 · keys multiplications, about 0.2 µs with 7 keys.

#include "common/base/hash.h"
#include "common/run/limits.h"

// At least as many words as n items need: 64/6 > 9.5851 = −ln 0.01 / ln² 2.
#define BLOOM_WORDS(n) ((n) / 6u + 1u)
enum { BLOOM_HEAD_BYTES = 12 };

struct bloom {
    uint64_t seed;       // The keys follow from it
    uint32_t items;      // n
    uint32_t bits, keys; // They follow from n
    uint64_t *words;     // [bits / 64]; bit b is bit b mod 64 of word b / 64
};

// An empty filter for n items; n = 0 is taken for 1. Needs n ≤ MEMBERS_MAX.
void bloom_init(struct bloom *self, uint32_t n, uint64_t seed, uint64_t *words);

void bloom_add(struct bloom *self, const struct hash *item);
bool bloom_has(const struct bloom *self, const struct hash *item);

// The filter as bytes, little-endian: n (4 bytes), the seed (8), the words (8 each).
size_t bloom_bytes(uint32_t n);
void bloom_store(const struct bloom *self, uint8_t *ret_bytes); // Room for bloom_bytes(n)

// Reads a filter that a member sent. The caller knows n. False, and *ret_self unchanged, if n or
// the size differs, or if more bits are set than n items can set: otherwise a liar could send a
// filter that contains everything. `words` has room for n items; it may be overwritten even then.
bool bloom_load(const uint8_t *bytes, size_t count, uint32_t n, uint64_t *words,
                struct bloom *ret_self);

// The index of an item's bit for one key, below `bits`.
uint32_t bloom_place(const struct hash *item, uint64_t key, uint32_t bits);
