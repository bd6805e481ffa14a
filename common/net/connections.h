#pragma once
// connections -- a table of every TCP connection to the ZeroMQ sockets that a process has bound: how much
// of our memory each one uses, and which ones must be cut.
//
//     accepted ──first message over CURVE──▶ proven ──its owner says so──▶ known ──▶ gone
//        │ more than there is room for: the oldest unknown     │ its key is refused, or it has too
//        └──────────────────── cut ◀───────────────────────────┘ many bytes pending
//
// ZeroMQ can neither refuse a connection at accept nor end a single one. But it reports the
// descriptor of each connection it accepts (socket monitor) and of each message (ZMQ_SRCFD).
// shutdown(2) on that descriptor ends the connection as if the peer had hung up, and frees
// everything that waits in it.
//
//     pending  = bytes that the kernel received (TCP_INFO) - bytes that came out as messages. This
//                bounds endless multipart messages, which MAXMSGSIZE and RCVHWM do not see.
//
// Pure: descriptors are numbers. The table only names the connections to cut; the caller cuts them
// (descriptors.h). One thread.

#include "common/net/curve.h"
#include <stdbool.h>
#include <stdint.h>

enum { CONNECTIONS_FD_MAX = 131072, CONNECTIONS_SOCKETS_MAX = 2, CONNECTION_OWN_BYTES = 160 };

// The limits of one bound socket. A socket is named by its index in the list of limits (`where`).
struct connections_limits {
    uint32_t room;        // Connections to this socket
    uint64_t pending_max; // Pending bytes of one connection
    bool keeps_all;       // Delivered messages stay pending, too (subscriptions)
};

struct connection {
    bool open, proven, cut;
    bool known;           // Set by the owner: never cut to make room
    bool trusted;         // Set by the owner: only the limit of all connections together applies
    uint8_t where;        // Index of the socket
    struct curve_key key; // The peer's, once proven
    struct key actor;     // Set by the owner: the actor that has proved it holds `key`; zeros: none
    struct curve_key name; // Set by the owner with it: its curve_of_key
    uint64_t accepted_ms;
    uint64_t taken;                    // Wire bytes that came out as messages
    uint64_t pending;                  // At the last measurement
    uint8_t own[CONNECTION_OWN_BYTES]; // Free for the owner; zeroes at first
};

struct connections;

// Keeps `limits`, one for each of `sockets` sockets. `pending_all_max` limits the pending bytes of
// all connections together.
struct connections *connections_new(const struct connections_limits *limits, uint32_t sockets,
                                    uint64_t pending_all_max);
void connections_destroy(struct connections **self_p);
uint32_t connections_count(const struct connections *self, uint32_t where); // Without those cut

void connections_opened(struct connections *self, int fd, uint32_t where, uint64_t now_ms);
// Does nothing if the descriptor has become another socket's connection: each socket reports its own
// connections, so the new one may be reported before the end of the old one.
void connections_closed(struct connections *self, int fd, uint32_t where);

// A message arrived on `fd`, `wire_bytes` long over all its parts; `key` is the peer's. Opens the
// entry if its event is still on the way. NULL: the descriptor is outside the table.
struct connection *connections_heard(struct connections *self, int fd, uint32_t where,
                                     const struct curve_key *key, uint64_t wire_bytes,
                                     uint64_t now_ms);
uint64_t connections_part_bytes(uint64_t bytes); // Wire bytes of a part of `bytes` bytes

// The connection on `fd` to that socket, if it is open and its peer has proved this key; else NULL.
struct connection *connections_find(struct connections *self, int fd, uint32_t where,
                                    const struct curve_key *key);
bool connections_has(const struct connections *self, int fd, uint32_t where,
                     const struct curve_key *key);

// ---- what the kernel knows of a descriptor ------------------------------------------------------

struct connection_counts {
    uint64_t received, acked; // Bytes since the connection was opened
    bool none_wait;           // The kernel holds no bytes that are still to be sent or acknowledged
};
typedef bool connections_measure(void *arg, int fd,
                                 struct connection_counts *ret_counts); // False: closed

// ---- which connections are cut ------------------------------------------------------------------

// Each function calls cut(arg, fd) for every connection it chooses; it no longer counts from then
// on.
typedef void connections_cut(void *arg, int fd);
void connections_cut_one(struct connections *self, int fd, connections_cut *cut, void *arg);
void connections_cut_key(struct connections *self, const struct curve_key *key,
                         connections_cut *cut, void *arg);
typedef bool connections_is_out(void *arg, const struct connection *connection);
// The proven connections for which `is_out` is true.
void connections_cut_if(struct connections *self, connections_is_out *is_out, connections_cut *cut,
                        void *arg);
// Those accepted before this instant that are unknown and have no actor.
void connections_cut_mute(struct connections *self, uint64_t before_ms, connections_cut *cut,
                          void *arg);
// Of an actor's connections to one socket the oldest ones, above `most`.
void connections_cut_crowd(struct connections *self, uint32_t where, const struct key *actor,
                           uint32_t most, connections_cut *cut, void *arg);
// At each socket with more connections than room: the oldest unknown ones.
void connections_cut_surplus(struct connections *self, connections_cut *cut, void *arg);
// Measures all. Cuts each connection above its pending limit, then the largest ones until the sum
// of all is within its limit.
void connections_cut_hoarders(struct connections *self, connections_measure *measure,
                              connections_cut *cut, void *arg);
