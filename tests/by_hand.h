#pragma once
// by_hand -- an actor at a broker without a post: sockets and a HELLO, a step at a time, so that a test can
// do what a post never does.

#include "common/actor/msg.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/net/signed_frame.h"
#include "common/net/zap.h"
#include <stdio.h>
#include <string.h>
#include <zmq.h>

// What came last from the broker. The body lies in `memory`.
struct by_hand_heard {
    uint16_t kind; // FRAME_NONE: nothing in time
    const void *body;
    uint8_t frame[1024], memory[4096];
};

static inline struct curve_key by_hand_server(const struct key *server)
{
    struct curve_key key;
    memcpy(key.bytes, server->bytes, CURVE_BYTES);
    return key;
}

// Connects a socket to the broker of this machine: a DEALER to its mail, a SUB to its news. NULL: no
// descriptor is left. _as chooses the routing id, which a peer may; NULL: the broker chooses.
static inline void *by_hand_connect_as(const char *id, void *context, int type, unsigned port,
                                       const struct curve_pair *own, const struct key *server)
{
    const struct curve_key key = by_hand_server(server);
    const int zero = 0;
    char endpoint[64];
    void *socket = zmq_socket(context, type);
    if (!socket) return NULL;
    ensure(zmq_setsockopt(socket, ZMQ_LINGER, &zero, sizeof zero) == 0);
    if (id) ensure(zmq_setsockopt(socket, ZMQ_ROUTING_ID, id, strlen(id)) == 0);
    if (type == ZMQ_SUB) ensure(zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0) == 0);
    zap_secure_client(socket, own, &key);
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%u", port + (type == ZMQ_SUB));
    ensure(zmq_connect(socket, endpoint) == 0);
    return socket;
}

static inline void *by_hand_connect(void *context, int type, unsigned port,
                                    const struct curve_pair *own, const struct key *server)
{
    return by_hand_connect_as(NULL, context, type, port, own, server);
}

// The HELLO of a trainer of the run "live".
static inline struct wire_hello by_hand_hello(const struct identity *identity,
                                              const struct curve_pair *own,
                                              const struct key *server)
{
    struct wire_hello hello = { .role = ACTOR_TRAINER, .instance = 1, .server = *server };
    actor_name(ACTOR_TRAINER, identity_key(identity), hello.name);
    memcpy(hello.connection.bytes, own->public.bytes, KEY_BYTES);
    return hello;
}

// Packs a frame, signed if its kind is. Returns its bytes.
static inline size_t by_hand_pack(const struct identity *identity, uint16_t kind, const void *body,
                                  uint8_t *frame, size_t max)
{
    struct wire_head head = { .kind = kind, .run = "live", .incarnation = 1, .seq = 1 };
    head.sender = *identity_key(identity);
    size_t count = wire_pack(&head, body, frame, max);
    if (wire_kind_flags(kind) & WIRE_SIGNED) count = signed_frame_sign(identity, frame, count, max);
    ensure(count > 0);
    return count;
}

static inline void by_hand_send(void *dealer, const void *frame, size_t count)
{
    zmq_send(dealer, "broker", 6, ZMQ_SNDMORE | ZMQ_DONTWAIT);
    zmq_send(dealer, frame, count, ZMQ_DONTWAIT);
}

static inline void by_hand_say(void *dealer, const struct identity *identity, uint16_t kind,
                               const void *body)
{
    uint8_t frame[1024];
    by_hand_send(dealer, frame, by_hand_pack(identity, kind, body, frame, sizeof frame));
}

// The next frame that the broker sends, of any kind.
static inline struct by_hand_heard *by_hand_hear(void *dealer, uint64_t timeout_ms,
                                                 struct by_hand_heard *heard)
{
    zmq_pollitem_t item = { .socket = dealer, .events = ZMQ_POLLIN };
    struct wire_arena arena = { .bytes = heard->memory, .max = sizeof heard->memory };
    struct wire_head head;
    struct wire_refusal refusal;
    char from[64];
    heard->kind = FRAME_NONE;
    if (zmq_poll(&item, 1, (long)timeout_ms) <= 0) return heard;
    ensure(zmq_recv(dealer, from, sizeof from, 0) >= 0);
    const int count = zmq_recv(dealer, heard->frame, sizeof heard->frame, 0);
    ensure(count > 0 && (size_t)count <= sizeof heard->frame);
    ensure(
        wire_unpack(heard->frame, (size_t)count, WIRE_MAIL, &arena, &head, &heard->body, &refusal));
    heard->kind = head.kind;
    return heard;
}

// Says HELLO, answers the challenge, and hears what the broker says to that.
static inline uint16_t by_hand_register(void *dealer, const struct identity *identity,
                                        struct wire_hello *hello, uint64_t timeout_ms,
                                        struct by_hand_heard *heard)
{
    by_hand_say(dealer, identity, FRAME_HELLO, hello);
    if (by_hand_hear(dealer, timeout_ms, heard)->kind != FRAME_CHALLENGE) return heard->kind;
    const struct wire_challenge *challenge = heard->body;
    memcpy(hello->challenge, challenge->bytes, sizeof hello->challenge);
    by_hand_say(dealer, identity, FRAME_HELLO, hello);
    return by_hand_hear(dealer, timeout_ms, heard)->kind;
}
