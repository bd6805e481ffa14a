#pragma once
// shuffle -- one order of n samples out of n!, computed index by index, without a table.
//
// Swap-or-not (Hoang, Morris, Rogaway, CRYPTO 2012), the network that also elects committees. In
// each round an index and its mirror image about a pivot either swap or stay. One bit decides, and
// both compute the same bit, so every round is a bijection of [0, n), for every n.
//
//     key      = SHA-256(seed ‖ LE64(pass))
//     pivot_r  = LE64(SHA-256(key ‖ LE32(r))[0..8]) mod n,   salt_r = LE64(same[8..16])
//     mirror   = (pivot_r - x) mod n;   x = mirror  if  mix(max(x, mirror) ^ salt_r) is odd
//
// with mix the finaliser of splitmix64. The order is not secret: every member has the seed, and the
// seed gives the order. Integers only: the same order on every machine.
//
// Costs 90 hashes per pass (about 50 us), 90 rounds per index (about 1 us) and 1.5 kB, for any n.

#include <stdint.h>

enum { SHUFFLE_SEED_BYTES = 32, SHUFFLE_ROUNDS = 90 };

struct shuffle {
    uint64_t count;                 // n: indices are 0 .. n-1
    uint64_t pivot[SHUFFLE_ROUNDS]; // Each below n
    uint64_t salt[SHUFFLE_ROUNDS];
};

// `count` is 1 or more and below 2^63. Each pass over the data has its own order.
void shuffle_init(struct shuffle *self, uint64_t count, const uint8_t seed[SHUFFLE_SEED_BYTES],
                  uint64_t pass);

// The sample at `index` of this order; `index` is below count.
uint64_t shuffle_at(const struct shuffle *self, uint64_t index);
