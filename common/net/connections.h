#pragma once
// connections -- every TCP connection to the sockets that a process has bound: what it has taken of
// our memory, and which have to go.
//
//     accepted ──first message over CURVE──▶ proven ──its owner says so──▶ known ──▶ gone
//        │ more than there is room for: the oldest unknown     │ its key is out, or has too many, or
//        └──────────────────── cut ◀───────────────────────────┘ it fills memory with what is no
//                                                                message yet
//
// ZeroMQ has no way to refuse at accept, nor to end one connection. But it tells the descriptor of
// what it accepts (socket monitor) and of each message (ZMQ_SRCFD): shutdown(2) on that ends the
// connection as if the peer had hung up, and frees all that waits in it. What the kernel counts as
// received (TCP_INFO) less what came out as messages is what makes no message yet: so endless
// multipart ends, which MAXMSGSIZE and RCVHWM do not see. What was given to a connection less what
// its peer has acknowledged waits to be sent: in a queue, in an encoder, in the kernel.
//
// Pure: descriptors are numbers, and who is to be cut is said, not done (descriptors.h does it).
// One thread.

#include "common/net/curve.h"
#include <stdbool.h>
#include <stdint.h>

enum { CONNECTIONS_FD_MAX = 131072, CONNECTIONS_SOCKETS_MAX = 2, CONNECTION_OWN_BYTES = 128 };

// Of each bound socket, which is known by its place in this list.
struct connections_limits {
    uint32_t room;        // Connections to it
    uint64_t pending_max; // Bytes of one that came and are no message yet
    bool keeps_all;       // What came as messages stays and counts, too: subscriptions
};

struct connection {
    bool open, proven, cut;
    bool known;           // The owner's word: not among those who go to make room
    bool trusted;         // The owner's word: only the bound of all holds for it
    uint8_t where;        // Which socket
    struct curve_key key; // Of the peer, once proven
    uint64_t accepted_ms;
    uint64_t taken;                    // Bytes that came out as messages, as they were on the wire
    uint64_t pending;                  // As last measured
    uint64_t given, acked;             // Bytes: all that were given to it; as last measured
    uint8_t own[CONNECTION_OWN_BYTES]; // The owner's, zeroes at first
};

struct connections;

// `limits` for so many sockets (kept), and for the pending bytes of all connections together.
struct connections *connections_new(const struct connections_limits *limits, uint32_t sockets,
                                    uint64_t pending_all_max);
void connections_destroy(struct connections **self_p);
uint32_t connections_count(const struct connections *self, uint32_t where); // Without the cut

void connections_opened(struct connections *self, int fd, uint32_t where, uint64_t now_ms);
void connections_closed(struct connections *self, int fd);

// A message came from it that was `wire_bytes` long: the sum over its parts. NULL: no such descriptor
// can be.
struct connection *connections_heard(struct connections *self, int fd, uint32_t where,
                                     const struct curve_key *key, uint64_t wire_bytes,
                                     uint64_t now_ms);
uint64_t connections_part_bytes(uint64_t bytes); // What a part of so many bytes is on the wire

// ---- what the kernel knows of a descriptor ------------------------------------------------------

struct connection_counts {
    uint64_t received, acked; // Bytes, since it was opened
    bool none_wait;           // Of those that were given to it, in the kernel
};
typedef bool connections_measure(void *arg, int fd,
                                 struct connection_counts *ret_counts); // False: gone

// ---- who has to go ------------------------------------------------------------------------------

// Calls cut(arg, fd) for each; they count as gone from then on.
typedef void connections_cut(void *arg, int fd);
void connections_cut_one(struct connections *self, int fd, connections_cut *cut, void *arg);
void connections_cut_key(struct connections *self, const struct curve_key *key,
                         connections_cut *cut, void *arg);
typedef bool connections_is_out(void *arg, const struct connection *connection); // Proven ones
void connections_cut_if(struct connections *self, connections_is_out *is_out, connections_cut *cut,
                        void *arg);
void connections_cut_surplus(struct connections *self, connections_cut *cut, void *arg);
// All but the newest `max` of a key.
void connections_cut_crowd(struct connections *self, const struct curve_key *key, uint32_t max,
                           connections_cut *cut, void *arg);
void connections_cut_hoarders(struct connections *self, connections_measure *measure,
                              connections_cut *cut, void *arg);

// ---- what waits to be sent ----------------------------------------------------------------------

// Bytes given to the connections of this key, or of all (NULL), and not acknowledged: measured anew,
// or as last measured (measure NULL).
uint64_t connections_waiting(struct connections *self, const struct curve_key *key,
                             connections_measure *measure, void *arg);
