#pragma once
// curve -- the keys of connections to the broker. None of them can sign.
//
//     broker   its identity's secret ──BLAKE2b, one way──▶ CURVE pair  the same at each start;
//                                                                      its public key is in tickets
//     others   random ──▶ CURVE pair                                   a new one for each post
//
// libzmq keeps a dozen copies of a CURVE secret in its heap, where a core dump or a debugger shows
// them. So the secret of an identity cannot be computed from any CURVE secret: a pair is random, or
// its secret is a hash of the identity's secret and a context. With a broker's stolen pair a thief
// can pose as that broker to the holders of its tickets, until the broker gets a new key; the thief
// can sign neither an invitation nor a frame. With any other stolen pair a thief can do nothing:
// the broker welcomes a connection only after a HELLO. The identity signs in it both keys of the
// connection, and a challenge that the broker drew for this one connection (broker/mail.c).
//
// The value of curve_of_key is not the key of a connection. It names an identity: an Ed25519 key A
// = (x, y) and its negative have the same u = (1 + y) / (1 - y) mod 2^255 - 19 (RFC 7748, section
// 4.1), and the holder of one secret can sign for both. So a table with one entry for each holder
// has u as its key; broker/admission.c records which of the two keys was admitted and refuses the
// other. Pure, except curve_draw; any thread.

#include "common/crypto/identity.h"

enum { CURVE_BYTES = 32 };
struct curve_key {
    uint8_t bytes[CURVE_BYTES];
};
struct curve_pair {
    struct curve_key public;
    uint8_t secret[CURVE_BYTES];
};

// The caller wipes the pair (explicit_bzero).
void curve_of_broker(const struct identity *identity, struct curve_pair *ret_pair);
void curve_draw(struct curve_pair *ret_pair);

// The public key that a broker with this identity has for its connections, as it stands in tickets.
struct key curve_server_key(const struct identity *identity);

// False: the key is invalid (not a point of the curve, or a point of small order).
bool curve_of_key(const struct key *key, struct curve_key *ret_name);
