#pragma once
// descriptors -- the system calls behind connections.h: it reports which TCP connections a socket
// has (ZeroMQ's monitor), reads the kernel's counts for one, and ends one.

#include "common/net/connections.h"

// Raises the soft limit of the process to the hard one, CONNECTIONS_FD_MAX at most; returns it.
uint32_t descriptors_raise(void);

// net_watch for the connections that begin and end at `socket`. NULL: no descriptor is left for it;
// then `socket` cannot be used.
void *descriptors_watch(void *context, void *socket);
// The next event; false if none waits. Never blocks.
bool descriptors_next(void *events, int *ret_fd, bool *ret_opened);
// Enters all waiting events into the table, and calls tell(arg, fd, opened) for each unless it is
// NULL. Ignores the beginning of a connection that is not at `port` (0: any port): it has ended by
// now, and its descriptor may be that of another socket's connection. Never blocks.
typedef void descriptors_tell(void *arg, int fd, bool opened);
void descriptors_hear(void *events, struct connections *connections, uint32_t where, uint16_t port,
                      uint64_t now_ms, descriptors_tell *tell, void *arg);

// False: `fd` is not a TCP connection (any more), or its own end is not at `port` (0: any port).
bool descriptors_measure(int fd, uint16_t port, struct connection_counts *ret_counts);

// Ends the connection as if the peer had hung up: the library notices and frees what waits. The
// kernel answers what the peer still sends with a reset. Does nothing if the descriptor's own end
// is not at `port` (0: any port): then it belongs to another connection by now.
void descriptors_cut(int fd, uint16_t port);
