#pragma once
// tcp -- TCP sockets without a library between, for what moves more bytes than ZeroMQ should: the
// links of a group and the bulk plane. All are non-blocking, closed on exec, and send small messages at once
// (TCP_NODELAY).
//
// On a short line the connection runs under the congestion control "reno": BBR, which many hosts
// choose, halves the speed of a loopback. On other lines the host's choice stays.
//
// Any thread.

#include "common/base/fault.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

// Binds "ADDRESS:PORT" or "[ADDRESS]:PORT", in numbers, and listens; port 0: any that is free.
// FAULT_CONFIG: not of that form. FAULT_BUSY: the port is taken. FAULT_UNAVAILABLE: no address of
// this machine. Or the system's fault.
int tcp_listen(const char *bind, struct why *why, int *ret_fd, uint16_t *ret_port);

// The next connection that waits. -1: none, or errno says why it cannot be taken.
int tcp_accept(int listener);

// Begins to connect to an endpoint (endpoint.h). Ask tcp_connected once it is writable.
int tcp_connect(const char *endpoint, struct why *why, int *ret_fd);
int tcp_connected(int fd); // 0: it stands; EINPROGRESS: not yet; else the errno of why it does not

// Whether a process listens at an endpoint, asked with connections that are ended at once. It goes in
// steps, as two that ask each other must accept meanwhile: begin; as long as fd is not -1 wait until it
// has tcp_probe_events, and move; end, whenever that is to be over. `error` is the answer then. 0: the
// connection was taken. ECONNREFUSED: the machine is there, and no process listens. ETIMEDOUT: no answer
// came. Else another errno. The endpoint must stay where it is until fd is -1.
struct tcp_probe {
    const char *endpoint;
    int fd, error;
    bool stands;              // The connection in hand does
    uint32_t accepted, turns; // Connections that were accepted, and all that are over
};

void tcp_probe_begin(struct tcp_probe *, const char *endpoint);
short tcp_probe_events(const struct tcp_probe *);
void tcp_probe_move(struct tcp_probe *);
void tcp_probe_end(struct tcp_probe *);

// A connection that stands: sees to its congestion control.
void tcp_tune(int fd);

// A line that dies while nothing is under way on it ends its connection after 25 s. With bytes under way the kernel sends
// them again, for minutes.
void tcp_watch(int fd);

// The kernel takes no more while so many bytes wait that it has not sent once.
void tcp_bound_unsent(int fd, int bytes_max);

// The address at the other end; of family AF_UNSPEC: the connection has ended.
struct sockaddr_storage tcp_other_end(int fd);

// Whether both ends of a connection are loopback or private addresses; if not, `ret_address` is
// the one that is neither, or "?": an end cannot be read, as the connection is broken.
enum { TCP_ADDRESS_MAX = 64 };
bool tcp_is_private(int fd, char ret_address[TCP_ADDRESS_MAX]);

// Whether both ends of a connection are loopback addresses: then it leaves this machine nowhere.
bool tcp_is_loopback(int fd);
bool tcp_names_loopback(const char *endpoint);

// As tcp_is_private, of an endpoint, or of what tcp_listen takes (0.0.0.0 and [::] pass: what is accepted
// there is asked later).
bool tcp_names_private(const char *text);
