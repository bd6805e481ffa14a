#pragma once
// leaf_pair -- two leaves of the same length hashed at once, where the processor can.
//
// One SHA-256 leaves half of a processor's hash unit idle: each instruction waits for the one before.
// Two that run side by side take hardly longer than one. merkle.h is what others call; it hashes one by
// one, by OpenSSL, what this cannot. Pure. Any thread.

#include "common/base/hash.h"

// Whether this processor has the instructions (x86: SHA, SSSE3, SSE4.1).
bool leaf_pair_is_here(void);

enum { LEAF_PAIR_BYTES_MIN = 63 }; // With the 0x00 a whole block

// SHA-256(0x00 ‖ a) and SHA-256(0x00 ‖ b), each of `count` bytes, LEAF_PAIR_BYTES_MIN or more (ensured):
// FIPS 180-4, 6.2. Only where leaf_pair_is_here (ensured).
void leaf_pair_hash(const uint8_t *a, const uint8_t *b, size_t count, struct hash ret_hashes[2]);
