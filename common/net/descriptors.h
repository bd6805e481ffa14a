#pragma once
// descriptors -- what connections.h decides, done: which TCP connections a socket has, told by
// ZeroMQ's monitor; what the kernel counts of each; and the end of one.

#include "common/net/connections.h"

// Raises the soft limit of the process to the hard one, CONNECTIONS_FD_MAX at most; returns it.
uint32_t descriptors_raise(void);

// net_watch for what `socket` accepts or connects to and what ends there. NULL: no descriptor for it;
// then `socket` cannot be used.
void *descriptors_watch(void *context, void *socket);
// What was heard next, or false; never blocks.
bool descriptors_next(void *events, int *ret_fd, bool *ret_opened);
// Tells the table all that was heard, and tell(arg, fd, opened), if not NULL, too; never blocks.
typedef void descriptors_tell(void *arg, int fd, bool opened);
void descriptors_hear(void *events, struct connections *connections, uint32_t where,
                      uint64_t now_ms, descriptors_tell *tell, void *arg);

// False: no TCP connection (any more), or its own end is not at `port` (0: at any).
bool descriptors_measure(int fd, uint16_t port, struct connection_counts *ret_counts);

// As if the peer had hung up: the library notices, and frees what waits. What the peer still sends is
// answered with a reset, not with patience. A descriptor that is another's by now, since its own end
// is not at `port` (0: at any), is left alone.
void descriptors_cut(int fd, uint16_t port);
