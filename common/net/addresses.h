#pragma once
// addresses -- the addresses of this machine: which one leads to a peer, and, for a socket that could
// not be bound, an error text that names them all. Asks the kernel; any thread.

#include "common/base/fault.h"
#include <stdbool.h>

enum { ADDRESSES_TEXT_MAX = 46 }; // The longest address in numbers, with its zero

// For a failed zmq_bind to `host`. If no interface has that address or name: FAULT_UNAVAILABLE, and
// "192.0.2.1 is no address of this machine; it has 127.0.0.1, 10.0.0.5" in `why`. Any other `error`
// (an errno, also one of ZeroMQ's): 0, and `why` is unchanged.
int addresses_refuse(const char *host, int error, struct why *why);

// The source address of packets to `peer`, "HOST:PORT" with an IPv4 address or a name, as the kernel
// chooses it: 127.0.0.1 if the peer is this machine by its loopback. Sends the peer nothing; a name is
// looked up. FAULT_NOT_FOUND: there is no such host. FAULT_UNREACHABLE: no way to it from here.
int addresses_towards(const char *peer, struct why *why, char ret_address[ADDRESSES_TEXT_MAX]);

// An address of the interface with this name, IPv4 if it has one. False: there is none.
bool addresses_of_interface(const char *name, char ret_address[ADDRESSES_TEXT_MAX]);

// Whether an address in numbers is reached from this machine only. IPv6 without brackets.
bool addresses_is_loopback(const char *address);
