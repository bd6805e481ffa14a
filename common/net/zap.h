#pragma once
// zap -- CURVE on a socket, and the judge that decides about every connection to it.
//
//     peer ──HELLO, INITIATE──▶ bound socket ──inproc://zeromq.zap.01──▶ zap_serve ─▶ judge(key)
//                                    ◀── 200, User-Id = the peer's key in hex ── or 400 ──┘
//
// Every ZeroMQ socket over TCP uses CURVE. A bound socket proves the key that stands in tickets; a
// connecting socket demands that key and proves its own, which names no actor (curve.h). The judge is
// a function of the caller and runs in the caller's thread, on a table in memory.
// ZMQ_ZAP_ENFORCE_DOMAIN refuses a connection that the handler does not answer. The domains:
//
//     "member"    the broker's mail: every key; until its HELLO is welcomed nothing else is heard
//     "monitor"   the broker's news: the keys of actors that the mail has welcomed
//
// (ZeroMQ RFC 27. Status 300 is never given: a client would hang until its handshake interval.)

#include "common/net/curve.h"
#include <zmq.h>

enum { ZAP_USER_MAX = 2 * CURVE_BYTES + 1, ZAP_DOMAIN_MAX = 31, ZAP_ADDRESS_MAX = 63 };

struct zap_request {
    char domain[ZAP_DOMAIN_MAX + 1], address[ZAP_ADDRESS_MAX + 1];
    struct curve_key key;
};
typedef bool zap_judge(void *arg, const struct zap_request *request);

// Opens the handler of a context; call it before any socket of the context is bound. Close it with
// zmq_close.
void *zap_open(void *context);
// Answers at most `max` waiting requests; never blocks. Returns their number.
unsigned zap_serve(void *zap, zap_judge *judge, void *arg, unsigned max);

// Call these before bind or connect.
void zap_secure_server(void *socket, const struct curve_pair *own, const char *domain);
void zap_secure_client(void *socket, const struct curve_pair *own, const struct curve_key *server);

// The key of the connection that `part` came by, as the handshake proved it. `part` must be a
// payload part: the routing id has no metadata (libzmq 4.3.4). False: it did not come over CURVE.
bool zap_user(zmq_msg_t *part, struct curve_key *ret_key);
