#pragma once
// net -- ZeroMQ as Shoal uses it: what was learned about the library, and the sockets that follow from it.
//
//     net            contexts, sockets with every limit set, what happens to their connections
//     curve, zap     keys of connections, and who may connect       curve_set   a table of such keys
//     descriptors    what the kernel knows of a connection, its end
//     connections    every connection to a bound socket: what it holds of our memory, which must go
//     endpoint       where a peer may say that it is                signed_frame  the signature in a frame
//
// Facts of libzmq 4.3.4, all measured. Each has cost somebody a day:
//
//     ZMTP heartbeats         With ZMQ_HEARTBEAT_IVL a connecting socket whose reader stalls on a full
//                             queue ends the process (an assertion in stream_engine_base.cpp). Never set
//                             them. Instead: frames of our own once a second, TCP keepalive, TCP_MAXRT.
//     A deaf socket           A connecting socket does not reconnect after a protocol error: a part over
//                             its ZMQ_MAXMSGSIZE, status 400 or 500 of ZAP, a peer without CURVE. It
//                             says nothing. Whoever gets no answer for a while makes a new socket.
//     PUB, XPUB               What does not fit into a subscriber's queue is dropped without a word. So
//                             frames are numbered, and nothing correct depends on news.
//     Small frames            Each queued frame pins the 8 KiB buffer it arrived in, unless the context's
//                             option 10 (ZMQ_ZERO_COPY_RECV, a draft by its label) is off. For parts of
//                             256 KiB, which have a buffer of their own, it makes no difference.
//     Parts without end       ZMQ_MAXMSGSIZE bounds a part; nothing bounds the number of parts, which wait
//                             unseen until the last one: connections.h, bulk_dealer.h.
//     Who has sent it         A routing id carries no metadata. The peer's key is asked of a payload part.
//     CURVE without ZAP       lets every key in: ZMQ_ZAP_ENFORCE_DOMAIN makes no answer mean no entry.
//                             CZMQ's zauth is not used, since it reads a directory at every handshake.
//     CURVE                   moves 0.2 to 0.3 of the bytes a second that plain TCP does.
//     ipc:// bind             takes an endpoint over from a process that is bound to it. We bind tcp only.
//     Names                   are looked up in the one I/O thread: endpoint.h.
//     Monitors                are written to by the I/O thread, which would wait for us: no bound there.
//     Accepting               The I/O thread accepts all that the kernel holds, and nobody can refuse: a
//                             long ZMQ_BACKLOG lets one flood take every descriptor.
//     systemd                 RestrictAddressFamilies= without AF_NETLINK ends the process at bind.
//
// A context may be used by every thread, a socket by one.

#include <stdbool.h>
#include <stdint.h>
#include <zmq.h>

// NULL: no descriptor is left for it.
void *net_context_new(int io_threads);
void net_context_destroy(void **context_p); // Its sockets must be closed. NULL is allowed

// A socket with its limits set, neither bound nor connected. NULL: no descriptor is left for it.
// `bytes_max` is the longest part that it lets in (-1: any), `queue_max` the most messages that wait
// for or from one peer. What waits when it is closed is lost (ZMQ_LINGER 0). A ROUTER says when nobody
// is at a routing id.
void *net_socket_new(void *context, int type, int64_t bytes_max, int queue_max);
void net_socket_close(void **socket_p); // Also where one is watched. NULL is allowed

void net_set(void *socket, int option, int value); // An option that is an int, of a value of ours

// ---- what happens to the connections of a socket ------------------------------------------------

struct net_event {
    uint16_t kind; // ZMQ_EVENT_...
    int32_t value; // What the kind says: a descriptor, an errno, a status of ZAP
};

// A socket that hears of these kinds of events, to be opened before `socket` is bound or connected and
// closed after it. NULL: no descriptor is left for it.
void *net_watch(void *context, void *socket, int kinds);
bool net_hear(void *events, struct net_event *ret_event); // False: none waits; never blocks
