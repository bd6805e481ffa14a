#pragma once
// curve_hello -- the first word of a CURVE connection, and the answer to it: enough to know whether
// the peer at an address has the secret of a key, without becoming its peer.
//
//     greeting, HELLO (for the key of the server) ─▶        266 bytes
//                                                 ◀─ greeting, WELCOME (only its secret opens HELLO)
//
// A server gives WELCOME to anybody: it judges the client's key only afterwards. So a stranger can ask,
// and hangs up then. libzmq does not say why a connection failed; hence by hand, over any TCP socket.
// (ZeroMQ RFC 23, ZMTP 3.0, and RFC 26, CurveZMQ.) Any thread.

#include "common/net/curve.h"

enum { CURVE_HELLO_BYTES = 64 + 2 + 200, CURVE_WELCOME_BYTES = 64 + 2 + 168 };

struct curve_hello {
    uint8_t bytes[CURVE_HELLO_BYTES]; // To send as they are
    uint8_t secret[CURVE_BYTES];      // Of this connection alone
    struct curve_key server;
};

// False: the key is none that a server can have.
bool curve_hello_make(const struct key *server, struct curve_hello *ret_hello);

// Whether these bytes, the first that the server sent, prove that it has the secret of the key.
bool curve_hello_proves(const struct curve_hello *self, const uint8_t welcome[CURVE_WELCOME_BYTES]);
