#pragma once
// bulk_dealer -- a socket that asks one holder, with a measure of the memory that its answers take.
//
// ZMQ_MAXMSGSIZE bounds each part of an answer, but nothing bounds the number of parts: a holder
// that goes on sending parts would fill our memory until the request times out, and ZeroMQ, which
// hands over whole messages only, would not tell us. So the caller looks every BULK_LOOK_MS at the
// bytes that the kernel counts as received (TCP_INFO) less those that came out as messages. An
// honest holder never has more under way than was asked for, a little above half of
// BULK_PENDING_ONE_MAX. The server's side of this bound is connections.h.
//
// One thread.

#include "common/bulk/bulk_socket.h"

enum { BULK_PENDING_ONE_MAX = 2 * BULK_ANSWER_BYTES_MAX, BULK_LOOK_MS = 50 };

struct bulk_dealer {
    void *socket;   // NULL: not open. To be polled and sent to
    void *events;   // The socket's monitor: connected, disconnected
    int fd;         // The connection's descriptor; -1: not connected
    uint64_t taken; // Bytes of this connection that came out as messages
};

// Opens a DEALER to the holder, with this identity; a message may be sent at once. False: no
// descriptor is left, or the endpoint (endpoint.h) or the key is not valid; zmq_errno() says which.
bool bulk_dealer_open(struct bulk_dealer *self, void *context, int queue_max,
                      const struct identity *identity, const struct wire_holder *holder);
void bulk_dealer_close(struct bulk_dealer *self); // Drops unread messages; allowed if not open

// As bulk_mail_recv.
enum bulk_heard bulk_dealer_recv(struct bulk_dealer *self, struct bulk_mail *mail);

// Bytes that arrived and are not yet part of a received message.
uint64_t bulk_dealer_pending(struct bulk_dealer *self);
