#pragma once
// bulk_dealer -- a socket that asks one holder, and what that may take of our memory.
//
// ZMQ_MAXMSGSIZE bounds each part of an answer, nothing bounds their number: a holder that goes on
// sending parts would fill our memory until we run out of patience, and ZeroMQ, which hands over whole
// messages only, would not tell us. So: what the kernel counts as received (TCP_INFO) less what came
// out as messages is looked at every BULK_LOOK_MS while the socket is open. An honest holder never has
// more on its way than was asked for, which is half of BULK_PENDING_ONE_MAX and a little. Who
// is asked bounds those who ask with connections.h.
//
// One thread.

#include "common/bulk/bulk_socket.h"

enum { BULK_PENDING_ONE_MAX = 2 * BULK_ANSWER_BYTES_MAX, BULK_LOOK_MS = 50 };

struct bulk_dealer {
    void *socket;   // NULL: not open. To be polled and sent to
    void *events;   // What ZeroMQ says of its connection
    int fd;         // The connection's; -1: there is none now
    uint64_t taken; // Bytes of it that came out as messages
};

// A DEALER that asks the holder as this identity; a message to it may be sent at once. False: no
// descriptor for it, or no such endpoint (endpoint.h) or key can be; zmq_errno() says which.
bool bulk_dealer_open(struct bulk_dealer *self, void *context, int queue_max,
                      const struct identity *identity, const struct wire_holder *holder);
void bulk_dealer_close(struct bulk_dealer *self); // Frees all that came; also if not open

// As bulk_mail_recv.
enum bulk_heard bulk_dealer_recv(struct bulk_dealer *self, struct bulk_mail *mail);

// Bytes that came and are in no message that was received.
uint64_t bulk_dealer_pending(struct bulk_dealer *self);
