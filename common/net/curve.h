#pragma once
// curve -- the key of a connection, computed from the key of an actor.
//
//     Ed25519 public  A = (x, y)          ▶  CURVE public  u = (1 + y) / (1 - y)  mod 2^255 - 19
//     Ed25519 secret  32 bytes, SHA-512   ▶  CURVE secret  the first 32 bytes, clamped
//
// The map is the birational one of RFC 7748, section 4.1; the hash is that of RFC 8032, section
// 5.1.5; both are libsodium's crypto_sign_ed25519_{pk,sk}_to_curve25519, and CURVE (ZeroMQ RFC 26)
// needs such an X25519 pair. So an actor has one secret, and a roster of Ed25519 keys is also the
// list of connection keys that are allowed.
//
// A point and its negative have the same u. So one connection key stands for two Ed25519 keys, and
// the holder of one secret can compute the other. A connection key therefore identifies the holder
// of the secret; broker/admission.c records which of the two keys was admitted and refuses the
// other. Pure; any thread.

#include "common/crypto/identity.h"

enum { CURVE_BYTES = 32 };
struct curve_key {
    uint8_t bytes[CURVE_BYTES];
};

// False: the key is invalid (not a point of the curve, or a point of small order).
bool curve_of_key(const struct key *key, struct curve_key *ret_public);

// Our own CURVE pair. The caller wipes the secret (explicit_bzero).
void curve_of_identity(const struct identity *identity, struct curve_key *ret_public,
                       uint8_t ret_secret[CURVE_BYTES]);
