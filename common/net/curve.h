#pragma once
// curve -- the key of a connection, from the key of an actor: whoever knows one knows the other.
//
//     Ed25519 public  A = (x, y)          ▶  CURVE public  u = (1 + y) / (1 - y)  mod 2^255 - 19
//     Ed25519 secret  32 bytes, SHA-512   ▶  CURVE secret  the first 32 bytes, clamped
//
// The map is the birational one of RFC 7748, section 4.1; the hash is that of RFC 8032, section
// 5.1.5; both are libsodium's crypto_sign_ed25519_{pk,sk}_to_curve25519, and CURVE (ZeroMQ RFC 26)
// wants just such an X25519 pair. So an actor has one secret, and a roster of Ed25519 keys is also
// the list of who may connect.
//
// A point and its negative have the same u: one connection key stands for two Ed25519 keys, whose
// secrets follow from one another. So a table of connection keys holds whoever has the secret; which of
// the two was let in, broker/admission.c keeps, and refuses the other. Pure; any thread.

#include "common/crypto/identity.h"

enum { CURVE_BYTES = 32 };
struct curve_key {
    uint8_t bytes[CURVE_BYTES];
};

// False: it is the key of nobody (no point of the curve, or one of small order).
bool curve_of_key(const struct key *key, struct curve_key *ret_public);

// Both halves of our own. The caller wipes the secret (explicit_bzero).
void curve_of_identity(const struct identity *identity, struct curve_key *ret_public,
                       uint8_t ret_secret[CURVE_BYTES]);
