#pragma once
// key -- the name of an actor: its Ed25519 public key, the value that travels and is compared. The
// secret half and its uses are in common/crypto/identity.h. Pure; any thread.

#include <stdbool.h>
#include <stdint.h>

enum { KEY_BYTES = 32, KEY_HEX = 2 * KEY_BYTES + 1 };

struct key {
    uint8_t bytes[KEY_BYTES];
}; // All zero means "no actor"

bool key_equal(const struct key *a, const struct key *b);
bool key_is_none(const struct key *key);
int key_compare(const struct key *a, const struct key *b); // As memcmp: the order of members

char *key_to_hex(const struct key *key, char text[KEY_HEX]); // 64 lower-case digits
bool key_from_hex(const char *text, struct key *ret_key);    // False unless exactly 64 digits
