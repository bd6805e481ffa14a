#pragma once
// hash -- SHA-256, the one name by which results, payloads, intervals and records are known.
// Pure: bytes in, 32 bytes out (OpenSSL inside: it uses the processor's SHA instructions, measured
// 2 GB/s where libsodium's gives 0.45). Any thread.

#include "common/base/bytes.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HASH_BYTES = 32, HASH_HEX = 2 * HASH_BYTES + 1 };

struct hash {
    uint8_t bytes[HASH_BYTES];
}; // All zero means "none"

struct hash hash_of(const void *bytes, size_t count);

// SHA-256(a ‖ b): the step of a chain and of a key derivation.
struct hash hash_of_two(const void *a, size_t a_count, const void *b, size_t b_count);

bool hash_equal(const struct hash *a, const struct hash *b);
bool hash_is_none(const struct hash *hash);

// Writes 64 lower-case digits and a zero into `text` and returns it.
char *hash_to_hex(const struct hash *hash, char text[HASH_HEX]);

// False, and nothing written, unless `text` is exactly 64 hexadecimal digits.
bool hash_from_hex(const char *text, struct hash *ret_hash);

// The first 8 bytes as a number: a seed, a draw, a place in a table.
static inline uint64_t hash_to_number(const struct hash *hash) { return le_get(hash->bytes, 8); }

// For bytes that do not lie in one piece: init, any number of adds, one end.
struct hasher {
    void *context;
};
void hasher_init(struct hasher *self);
void hasher_add(struct hasher *self, const void *bytes, size_t count);
static inline void hasher_add_number(struct hasher *self, uint64_t number, size_t count)
{
    uint8_t bytes[8]; // Little-endian, `count` of them
    le_put(bytes, number, count);
    hasher_add(self, bytes, count);
}
struct hash hasher_end(struct hasher *self); // Frees what init took
