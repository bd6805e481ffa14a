#pragma once
// bulk_socket -- how a message of the bulk plane is read and written, at whichever end.
//
//     [routing id, at the ROUTER only] [frame of frames.def, WIRE_BULK] [raw bytes, for some kinds]
//
// Bulk lives in ZeroMQ contexts of its own, so that a large transfer never delays the small mail
// of the control plane. The receiver asks for pieces and has few on their way (credit); the holder
// answers and remembers nothing.
//
// Parts without end (ZMQ_MAXMSGSIZE bounds each, nothing their number) are bounded at both ends:
// whoever sends them is cut off by who is asked (bulk_server.h) and by who asks (bulk_dealer.h).
//
// Connections are CURVE (common/net/zap.h): who serves lets in the members of the run's roster, who
// asks demands the key that the roster names beside the endpoint. What arrives is checked against a
// hash all the same.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/net/connections.h"
#include "common/net/net.h"
#include "common/net/zap.h"
#include "common/wire/wire.h"

enum {
    BULK_CHUNK_BYTES = 256 << 10, // What a receiver asks for at once: more only blocks others
    BULK_CHUNK_MAX = 1 << 20,     // What it may ask for (WANT.count)
    BULK_LEAVES_MAX = 1 << 19,    // Leaves in one list: 16 MiB for 8.6 billion parameters
    BULK_SAMPLES_BYTES = 4 << 20, // Tokens of one answer; a single sample may be that large
    BULK_FRAME_MAX = 1024,        // No frame of the bulk plane is longer
    BULK_ID_MAX = 255,
    BULK_BODY_MAX = 512,
    BULK_ASK_BYTES_MAX = 64 << 10,    // ZMQ_MAXMSGSIZE of those who are asked ..
    BULK_ANSWER_BYTES_MAX = 16 << 20, // .. and of those who ask
};

// Has a DEALER ask the holder, as this identity. False: no such endpoint (endpoint.h) or key can be.
bool bulk_connect(void *socket, const struct identity *identity, const struct wire_holder *holder);

struct bulk_mail {
    uint8_t id[BULK_ID_MAX]; // ROUTER: who asks
    size_t id_count;
    struct wire_head head;
    const void *body; // By head.kind; in `arena`
    zmq_msg_t raw;    // Empty if there was none
    bool has_raw;
    struct curve_key user; // ROUTER: whose connection it is, by the handshake's word
    int fd;                // And its descriptor, also if it is malformed; -1: unknown
    uint64_t wire_bytes;   // ROUTER: how long it was on the wire
    _Alignas(16) uint8_t arena[BULK_BODY_MAX];
};

enum bulk_heard { BULK_NOTHING, BULK_MAIL, BULK_MALFORMED };

// The next message that waits, if any; never blocks. Whatever came is taken off the socket whole.
// The mail must have been init'ed once, and is emptied by the next receive or the end.
void bulk_mail_init(struct bulk_mail *mail);
enum bulk_heard bulk_mail_recv(struct bulk_mail *mail, void *socket);
void bulk_mail_end(struct bulk_mail *mail);

// Sends without blocking: to the sender of `to`, or (NULL) to the peer of a DEALER. `raw` may be
// NULL; it is taken on success and still the caller's on failure. Returns how long it is on the wire;
// 0: the peer's queue is full or it is gone.
size_t bulk_send(void *socket, const struct bulk_mail *to, const char *run, uint16_t kind,
                 const void *body, zmq_msg_t *raw);
