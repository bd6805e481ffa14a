// Sets every option where a socket is made, so that no socket exists without its limits. The
// reasons are the facts in net.h.

#include "common/net/net.h"
#include "common/base/ensure.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    ZERO_COPY_RECV = 10,
    CURVE_PART_BYTES = 33, // CURVE adds these to each part
    ENDPOINT_MAX = 64,
    ADDRESS_MAX = 256,
    EVENT_BYTES = 6
};

// Times are in milliseconds; those of the keepalive are in seconds. A connection ends when its peer
// acknowledges nothing for ZMQ_TCP_MAXRT. The keepalive detects a dead silent peer in 15 + 3 x 5 s.
static const struct {
    int option, value;
} limits[] = {
    { ZMQ_LINGER, 0 },
    { ZMQ_HANDSHAKE_IVL, 5000 },
    { ZMQ_RECONNECT_IVL, 100 },
    { ZMQ_RECONNECT_IVL_MAX, 2000 },
    { ZMQ_TCP_MAXRT, 20000 },
    { ZMQ_TCP_KEEPALIVE, 1 },
    { ZMQ_TCP_KEEPALIVE_IDLE, 15 },
    { ZMQ_TCP_KEEPALIVE_INTVL, 5 },
    { ZMQ_TCP_KEEPALIVE_CNT, 3 },
};

void *net_context_new(int io_threads)
{
    void *context = zmq_ctx_new();
    if (!context) return NULL;
    ensure(zmq_ctx_set(context, ZMQ_IO_THREADS, io_threads) == 0);
    ensure(zmq_ctx_set(context, ZMQ_BLOCKY, 0) == 0);
    ensure(zmq_ctx_set(context, ZERO_COPY_RECV, 0) == 0);
    return context;
}

void net_context_destroy(void **context_p)
{
    if (!*context_p) return;
    while (zmq_ctx_term(*context_p) != 0) ensure(zmq_errno() == EINTR);
    *context_p = NULL;
}

void net_set(void *socket, int option, int value)
{
    ensure(zmq_setsockopt(socket, option, &value, sizeof value) == 0);
}

void *net_socket_new(void *context, int type, int64_t bytes_max, int queue_max)
{
    void *socket = zmq_socket(context, type);
    if (!socket) return NULL;
    const int64_t wire_max = bytes_max < 0 ? bytes_max : bytes_max + CURVE_PART_BYTES;
    ensure(zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &wire_max, sizeof wire_max) == 0);
    net_set(socket, ZMQ_SNDHWM, queue_max);
    net_set(socket, ZMQ_RCVHWM, queue_max);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        net_set(socket, limits[i].option, limits[i].value);
    if (type == ZMQ_ROUTER) net_set(socket, ZMQ_ROUTER_MANDATORY, 1);
    return socket;
}

void net_socket_close(void **socket_p)
{
    if (!*socket_p) return;
    zmq_socket_monitor(*socket_p, NULL, 0);
    zmq_close(*socket_p);
    *socket_p = NULL;
}

// ---- events of a socket's connections -----------------------------------------------------------

// Each call uses a new inproc endpoint: the one of a closed socket may stay bound for a while.
void *net_watch(void *context, void *socket, int kinds)
{
    static atomic_uint watched;
    char endpoint[ENDPOINT_MAX];
    snprintf(endpoint, sizeof endpoint, "inproc://events.%u", watched++);
    void *events = zmq_socket(context, ZMQ_PAIR);
    if (!events) return NULL;
    net_set(events, ZMQ_LINGER, 0);
    net_set(events, ZMQ_RCVHWM, 0);
    if (zmq_socket_monitor(socket, endpoint, kinds) < 0) {
        zmq_close(events);
        return NULL;
    }
    ensure(zmq_connect(events, endpoint) == 0);
    return events;
}

// [kind: 2 bytes, value: 4 bytes][address]
bool net_hear(void *events, struct net_event *ret_event)
{
    uint8_t bytes[EVENT_BYTES];
    char address[ADDRESS_MAX];
    if (zmq_recv(events, bytes, sizeof bytes, ZMQ_DONTWAIT) != sizeof bytes) return false;
    zmq_recv(events, address, sizeof address, 0);
    memcpy(&ret_event->kind, bytes, sizeof ret_event->kind);
    memcpy(&ret_event->value, bytes + sizeof ret_event->kind, sizeof ret_event->value);
    return true;
}
