// bulk_dealer -- the socket's monitor says which connection it has; the bytes that came out as
// messages are counted for that connection. Pending is what the kernel received on it less that
// count.

#include "common/bulk/bulk_dealer.h"
#include "common/net/descriptors.h"
#include <errno.h>

bool bulk_dealer_open(struct bulk_dealer *self, void *context, int queue_max,
                      const struct identity *identity, const struct wire_holder *holder)
{
    *self = (struct bulk_dealer){ .fd = -1 };
    self->socket = net_socket_new(context, ZMQ_DEALER, BULK_ANSWER_BYTES_MAX, queue_max);
    if (!self->socket) return false;
    self->events = descriptors_watch(context, self->socket);
    if (self->events && bulk_connect(self->socket, identity, holder)) return true;
    const int error = zmq_errno();
    bulk_dealer_close(self);
    errno = error;
    return false;
}

void bulk_dealer_close(struct bulk_dealer *self)
{
    net_socket_close(&self->socket);
    net_socket_close(&self->events);
    *self = (struct bulk_dealer){ .fd = -1 };
}

// ZeroMQ reconnects by itself. The count begins again with each connection.
static void hear_events(struct bulk_dealer *self)
{
    int fd;
    bool opened;
    while (descriptors_next(self->events, &fd, &opened)) {
        if (!opened && fd != self->fd) continue; // The end of an attempt that did not connect
        self->fd = opened ? fd : -1;
        self->taken = 0;
    }
}

enum bulk_heard bulk_dealer_recv(struct bulk_dealer *self, struct bulk_mail *mail)
{
    hear_events(self); // First, so that the message is counted for its own connection
    const enum bulk_heard heard = bulk_mail_recv(mail, self->socket);
    self->taken += mail->wire_bytes;
    return heard;
}

uint64_t bulk_dealer_pending(struct bulk_dealer *self)
{
    struct connection_counts counts;
    hear_events(self);
    if (self->fd < 0 || !descriptors_measure(self->fd, 0, &counts)) return 0;
    return counts.received > self->taken ? counts.received - self->taken : 0;
}
