#pragma once
// tcp -- TCP sockets without a library between, for what moves more bytes than ZeroMQ should (the
// links of a group). All are non-blocking, closed on exec, and send small messages at once
// (TCP_NODELAY).
//
// On a short line the connection runs under the congestion control "reno": BBR, which many hosts
// choose, halves the speed of a loopback. On other lines the host's choice stays.
//
// Any thread.

#include "common/base/fault.h"
#include <stdbool.h>
#include <stdint.h>

// Binds "ADDRESS:PORT" or "[ADDRESS]:PORT", in numbers, and listens; port 0: any that is free.
// FAULT_CONFIG: not of that form. FAULT_BUSY: the port is taken. FAULT_UNAVAILABLE: no address of
// this machine. Or the system's fault.
int tcp_listen(const char *bind, struct why *why, int *ret_fd, uint16_t *ret_port);

// The next connection that waits; -1: none.
int tcp_accept(int listener);

// Begins to connect to an endpoint (endpoint.h). Ask tcp_connected once it is writable.
int tcp_connect(const char *endpoint, struct why *why, int *ret_fd);
int tcp_connected(int fd); // 0: it stands; EINPROGRESS: not yet; else the errno of why it does not

// Whether a process listens at the endpoint: 0, or the errno (ECONNREFUSED: the machine is there, no
// process listens). ETIMEDOUT: no answer within timeout_ms. What was connected is closed again.
// `wait` sleeps until `fd` has one of the events (true) or the time is over, and may do other things
// meanwhile: two that probe each other must accept, too. NULL: poll.
typedef bool tcp_wait(void *arg, int fd, short events, uint32_t timeout_ms);
int tcp_probe(const char *endpoint, uint32_t timeout_ms, tcp_wait *wait, void *arg);

// A connection that stands: sees to its congestion control.
void tcp_tune(int fd);

// Whether both ends of a connection are loopback or private addresses; if not, `ret_address` is
// the one that is neither.
enum { TCP_ADDRESS_MAX = 64 };
bool tcp_is_private(int fd, char ret_address[TCP_ADDRESS_MAX]);

// The same of an endpoint, or of what tcp_listen takes (0.0.0.0 and [::] pass: what is accepted
// there is asked later).
bool tcp_names_private(const char *text);
