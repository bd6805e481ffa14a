// bulk_counts -- wraps the three functions and counts by the port of the server whose socket it is.

#include "tests/unit/bulk_counts.h"
#include "common/base/ensure.h"
#include "common/bulk/bulk_socket.h"
#include "common/net/descriptors.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define WRAP(result, name, ...)                                                                    \
    result __real_##name(__VA_ARGS__);                                                             \
    result __wrap_##name(__VA_ARGS__);                                                             \
    result __wrap_##name(__VA_ARGS__)

// By port.
static struct counts {
    _Atomic uint64_t heard, chunks, chunk_bytes, leaf_lists, samples, refusals, cut;
} all[UINT16_MAX + 1];
static _Atomic uint64_t received;

static uint16_t port_of(const char *endpoint) { return (uint16_t)atoi(strrchr(endpoint, ':') + 1); }

// NULL: not one that serves.
static struct counts *counts_of(void *socket)
{
    char endpoint[256];
    int type;
    size_t size = sizeof type, length = sizeof endpoint;
    ensure(zmq_getsockopt(socket, ZMQ_TYPE, &type, &size) == 0);
    ensure(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, endpoint, &length) == 0);
    return type == ZMQ_ROUTER ? &all[port_of(endpoint)] : NULL;
}

WRAP(int, bulk_server_new, const struct bulk_server_options *options, struct why *why,
     bulk_server_t **ret_self)
{
    const int rc = __real_bulk_server_new(options, why, ret_self);
    if (rc == 0) memset(&all[port_of(bulk_server_endpoint(*ret_self))], 0, sizeof *all);
    return rc;
}

WRAP(enum bulk_heard, bulk_mail_recv, struct bulk_mail *mail, void *socket)
{
    const enum bulk_heard heard = __real_bulk_mail_recv(mail, socket);
    struct counts *counts = heard == BULK_NOTHING ? NULL : counts_of(socket);
    if (counts) counts->heard++;
    else if (heard == BULK_MAIL && mail->head.kind == FRAME_CHUNK)
        received += zmq_msg_size(&mail->raw);
    return heard;
}

static void count(struct counts *counts, uint16_t kind, const void *body, size_t bytes,
                  uint64_t sign)
{
    if (kind == FRAME_CHUNK) counts->chunks += sign;
    if (kind == FRAME_CHUNK) counts->chunk_bytes += sign * bytes;
    if (kind == FRAME_LEAVES) counts->leaf_lists += sign;
    if (kind == FRAME_SAMPLES) counts->samples += sign * ((const struct wire_samples *)body)->count;
    if (kind == FRAME_LACKING || kind == FRAME_NO_SAMPLES) counts->refusals += sign;
}

WRAP(size_t, bulk_send, void *socket, const struct bulk_mail *to, const char *run, uint16_t kind,
     const void *body, zmq_msg_t *raw)
{
    struct counts *counts = counts_of(socket);
    const size_t bytes = raw ? zmq_msg_size(raw) : 0;
    if (counts) count(counts, kind, body, bytes, 1);
    const size_t sent = __real_bulk_send(socket, to, run, kind, body, raw);
    if (counts && !sent) count(counts, kind, body, bytes, UINT64_MAX);
    return sent;
}

WRAP(void, descriptors_cut, int fd, uint16_t port)
{
    all[port].cut++;
    __real_descriptors_cut(fd, port);
}

struct bulk_counts bulk_counts_of(const bulk_server_t *server)
{
    const struct counts *counts = &all[port_of(bulk_server_endpoint(server))];
    return (struct bulk_counts){ .heard = counts->heard,
                                 .chunks = counts->chunks,
                                 .chunk_bytes = counts->chunk_bytes,
                                 .leaf_lists = counts->leaf_lists,
                                 .samples = counts->samples,
                                 .refusals = counts->refusals,
                                 .cut = counts->cut };
}

uint64_t bulk_counts_received(void) { return received; }
