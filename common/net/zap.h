#pragma once
// zap -- CURVE on a socket, and the one who is asked about every connection to it.
//
//     peer ──HELLO, INITIATE──▶ bound socket ──inproc://zeromq.zap.01──▶ zap_serve ─▶ judge(key)
//                                    ◀── 200, User-Id = the peer's key in hex ── or 400 ──┘
//
// Every TCP socket of Shoal has CURVE: what is bound proves the identity of its actor, what connects
// demands the key it was told and proves its own. The judge is the caller's, in the caller's thread,
// on a table in memory; with ZMQ_ZAP_ENFORCE_DOMAIN no answer means no entry. The domains:
//
//     "member"    the broker's mail: members, infrastructure, and whoever brings an invitation
//     "monitor"   the broker's news: all who may listen
//     "peer"      the bulk plane: the members of the run's roster
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

// The handler of a context: before any socket of it is bound. Closed with zmq_close.
void *zap_open(void *context);
// Answers what waits, at most `max`; never blocks. Returns how many.
unsigned zap_serve(void *zap, zap_judge *judge, void *arg, unsigned max);

// To be called before bind or connect.
void zap_secure_server(void *socket, const struct identity *identity, const char *domain);
void zap_secure_client(void *socket, const struct identity *identity,
                       const struct curve_key *server);

// Who sent this part, by the word of the handler; a payload part, since the routing id has no
// metadata (libzmq 4.3.4). False: it did not come over CURVE.
bool zap_user(zmq_msg_t *part, struct curve_key *ret_key);
