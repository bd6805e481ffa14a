#pragma once
// connections -- every TCP connection to the broker: what it has taken of our memory, what it may
// still say, and which have to go.
//
//     accepted ──first frame over CURVE──▶ proven ──a name, or news──▶ known ──▶ gone
//        │ more than there is room for: the oldest unknown     │ its key is banned or over its budget,
//        └──────────────────── cut ◀───────────────────────────┘ or it fills memory with what is no
//                                                                frame yet
//
// ZeroMQ has no way to refuse at accept, nor to end one connection. But it tells the descriptor of
// what it accepts (socket monitor) and of each message (ZMQ_SRCFD): shutdown(2) on that ends the
// connection as if the peer had hung up, and frees all that waits in it. What bounds what:
//
//     idle TCP connections          ZMQ_HANDSHAKE_IVL (5 s), and the room for connections
//     who gets past the handshake   ZAP, and the penalty of a key that was cut for what it said
//     frames                        the budget of the connection (budget.h)
//     bytes that make no message    CONNECTION_PENDING_MAX of each, PENDING_MAX of all: what the
//                                   kernel counts as received (TCP_INFO) less what came out as
//                                   messages. So endless multipart ends, which MAXMSGSIZE and RCVHWM
//                                   do not see
//     subscriptions                 SUBSCRIBED_MAX bytes in the life of a connection to the news
//     one frame                     ZMQ_MAXMSGSIZE
//
// Pure: descriptors are numbers, and who is to be cut is said, not done. One thread.

#include "broker/budget.h"
#include "common/crypto/curve.h"

enum { CONNECTIONS_FD_MAX = 131072, CONNECTION_PENDING_MAX = 12 << 20, SUBSCRIBED_MAX = 64 << 10,
       PENALTIES_MAX = 256, PENALTY_MS = 10000 };
#define CONNECTIONS_PENDING_MAX (256ull << 20)

enum connection_where { AT_MAIL, AT_NEWS, WHERE_COUNT };

struct connection {
    bool open, proven, cut;
    bool known;                         // Registered at the mail; at the news all who may listen are
    bool trusted;                       // The coordinator's: only the bound of all holds for it
    uint8_t where;
    struct curve_key key;               // Of the peer, once proven
    uint64_t accepted_ms;
    uint64_t taken;                     // Bytes that came out as messages, as they were on the wire
    uint64_t pending;                   // As last measured
    struct budget budget;
    struct bucket bucket;
};

struct connections;

struct connections *connections_new(uint32_t room);         // For so many at each socket
void connections_destroy(struct connections **self_p);
uint32_t connections_count(const struct connections *self, enum connection_where where);

void connections_opened(struct connections *self, int fd, enum connection_where where,
                        uint64_t now_ms);
void connections_closed(struct connections *self, int fd);

// A message of `parts` parts and `bytes` bytes came from it. NULL: no such descriptor can be.
struct connection *connections_heard(struct connections *self, int fd, enum connection_where where,
                                     const struct curve_key *key, uint32_t parts, uint64_t bytes,
                                     uint64_t now_ms);

// The budget of a connection changes with what is known of its peer; full when it does.
void connections_allow(struct connection *connection, const struct budget *budget, uint64_t now_ms);

// ---- who has to go ------------------------------------------------------------------------------

// Calls cut(arg, fd) for each; they count as gone from then on.
typedef void connections_cut(void *arg, int fd);
void connections_cut_one(struct connections *self, int fd, connections_cut *cut, void *arg);
void connections_cut_key(struct connections *self, const struct curve_key *key,
                         connections_cut *cut, void *arg);
typedef bool connections_is_out(void *arg, const struct connection *connection);    // Proven ones
void connections_cut_if(struct connections *self, connections_is_out *is_out, connections_cut *cut,
                        void *arg);
void connections_cut_surplus(struct connections *self, connections_cut *cut, void *arg);

// The bytes received on a descriptor since it was opened, as the kernel counts them; negative: gone.
typedef int64_t connections_received(void *arg, int fd);
void connections_cut_hoarders(struct connections *self, connections_received *received,
                              connections_cut *cut, void *arg);

// A key that was cut for what it said stays out for PENALTY_MS; of the newest PENALTIES_MAX.
void connections_punish(struct connections *self, const struct curve_key *key, uint64_t now_ms);
bool connections_is_punished(const struct connections *self, const struct curve_key *key,
                             uint64_t now_ms);
