// bulk_counts -- wraps the functions and counts by the port of the end that hears or says.

#include "tests/unit/bulk_counts.h"
#include "common/base/ensure.h"
#include "common/bulk/bulk_line.h"
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

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

// Of a line that asks: a port that no server counts by.
static struct counts *counts_of(const struct bulk_line *line)
{
    struct sockaddr_storage at = { .ss_family = AF_UNSPEC };
    socklen_t size = sizeof at;
    getsockname(line->fd, (struct sockaddr *)&at, &size);
    const uint16_t port = at.ss_family == AF_INET6
                              ? ((const struct sockaddr_in6 *)(const void *)&at)->sin6_port
                              : ((const struct sockaddr_in *)(const void *)&at)->sin_port;
    return &all[ntohs(port)];
}

WRAP(int, bulk_server_new, const struct bulk_server_options *options, struct why *why,
     bulk_server_t **ret_self)
{
    const int rc = __real_bulk_server_new(options, why, ret_self);
    if (rc == 0) memset(&all[port_of(bulk_server_endpoint(*ret_self))], 0, sizeof *all);
    return rc;
}

WRAP(enum bulk_heard, bulk_line_recv, struct bulk_line *line, struct bulk_mail *mail,
     struct why *why)
{
    const enum bulk_heard heard = __real_bulk_line_recv(line, mail, why);
    if (heard == BULK_MAIL) counts_of(line)->heard++;
    if (heard == BULK_MAIL && mail->head.kind == FRAME_CHUNK) received += mail->raw_count;
    return heard;
}

static void count(struct counts *counts, uint16_t kind, const void *body, size_t bytes)
{
    if (kind == FRAME_CHUNK) counts->chunks++;
    if (kind == FRAME_CHUNK) counts->chunk_bytes += bytes;
    if (kind == FRAME_LEAVES) counts->leaf_lists++;
    if (kind == FRAME_SAMPLES) counts->samples += ((const struct wire_samples *)body)->count;
    if (kind == FRAME_LACKING || kind == FRAME_NO_SAMPLES) counts->refusals++;
}

WRAP(size_t, bulk_line_put, struct bulk_line *line, const char *run, uint16_t kind,
     const void *body, const void *raw, size_t raw_count)
{
    count(counts_of(line), kind, body, raw_count);
    return __real_bulk_line_put(line, run, kind, body, raw, raw_count);
}

WRAP(void, bulk_line_cut, struct bulk_line *line)
{
    counts_of(line)->cut++;
    __real_bulk_line_cut(line);
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
