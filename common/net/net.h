#pragma once
// net -- ZeroMQ as Shoal uses it: facts about the library, and sockets with options that follow.
//
// ZeroMQ carries the mail and the news. What moves many bytes has sockets of its own:
//
//     tcp            plain sockets            handshake     both ends prove their keys
//     sealing        AES-256-GCM in records, by a library of gcm
//
// and, for ZeroMQ:
//
//     net            contexts, sockets with every limit set, events of their connections
//     curve          keys of connections                  curve_set     a map of identities
//     zap            CURVE on sockets; the handshake      signed_frame  the signature in a frame
//     descriptors    reads the kernel's counts of a connection; ends one
//     connections    every connection to a bound socket: the memory it uses, which ones must be cut
//     endpoint       checks the address that a peer announces
//     addresses      those of this machine: the one that leads to a peer, all for an error text
//     announce       the endpoint that a member announces: can others reach it?
//     knock          who of many endpoints answers a connection
//
// Facts of libzmq 4.3.4, all measured:
//
//     ZMTP heartbeats     With ZMQ_HEARTBEAT_IVL a connecting socket whose reader stalls on a full
//                         queue ends the process (an assertion in stream_engine_base.cpp). Never
//                         set it. Instead: our own frames once a second, TCP keepalive, TCP_MAXRT.
//     A deaf socket       A connecting socket does not reconnect after a protocol error: a part
//                         over its ZMQ_MAXMSGSIZE, status 400 or 500 of ZAP, a peer without CURVE.
//                         It reports nothing. An actor that gets no answer makes a new socket.
//     PUB, XPUB           A frame that does not fit into a subscriber's queue is dropped silently.
//                         So frames are numbered, and correctness never depends on news.
//     Small frames        Each queued frame pins the 8 KiB buffer it arrived in, unless the
//                         context's option 10 (ZMQ_ZERO_COPY_RECV, a draft by its label) is off. It
//                         makes no difference for parts of 256 KiB, which have a buffer of their
//                         own.
//     Endless multipart   ZMQ_MAXMSGSIZE limits a part, but nothing limits the number of parts,
//                         which wait unseen until the last one: connections.h.
//     The sender's key    A routing id carries no metadata. The key is read from a payload part.
//     CURVE without ZAP   lets every key in. With ZMQ_ZAP_ENFORCE_DOMAIN a missing answer refuses.
//                         zap.c answers; CZMQ's zauth would read a directory at every handshake.
//     CURVE               moves 0.2 to 0.3 of the bytes a second that plain TCP does.
//     ipc:// bind         takes an endpoint over from a process that is bound to it. Shoal
//                         binds tcp only.
//     Names               are looked up in the one I/O thread: endpoint.h.
//     Monitors            The I/O thread writes their events and would block on a full queue, so
//                         these queues have no limit.
//     Accepting           The I/O thread accepts every connection that the kernel holds; a process
//                         cannot refuse one. So a long ZMQ_BACKLOG lets one flood take every
//                         descriptor.
//     systemd             RestrictAddressFamilies= without AF_NETLINK ends the process at bind.
//
// A context may be used by every thread, a socket by one.

#include <stdbool.h>
#include <stdint.h>
#include <zmq.h>

// NULL: no descriptor is left for it.
void *net_context_new(int io_threads);
void net_context_destroy(void **context_p); // Its sockets must be closed. NULL is allowed

// A socket with its limits set, neither bound nor connected. NULL: no descriptor is left for it.
// `bytes_max` is the longest part that it accepts (-1: any), `queue_max` the most messages that
// wait in each direction for one peer. Closing it drops what still waits (ZMQ_LINGER 0). Sending to
// an unknown routing id of a ROUTER fails with EHOSTUNREACH.
void *net_socket_new(void *context, int type, int64_t bytes_max, int queue_max);
void net_socket_close(void **socket_p); // Ends its monitor, too. NULL is allowed

void net_set(void *socket, int option, int value); // Sets an option that is an int

// ---- events of a socket's connections -----------------------------------------------------------

struct net_event {
    uint16_t kind; // ZMQ_EVENT_...
    int32_t value; // Depends on the kind: a descriptor, an errno or a ZAP status
};

// A socket that receives these kinds of events. Open it before `socket` is bound or connected;
// close it after `socket`. NULL: no descriptor is left for it.
void *net_watch(void *context, void *socket, int kinds);
bool net_hear(void *events, struct net_event *ret_event); // False: none waits; never blocks
