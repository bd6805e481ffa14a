#pragma once
// addresses -- why a socket could not be bound: an error text that names the addresses of this
// machine. Reads the list of network interfaces; any thread.

#include "common/base/fault.h"

// For a failed zmq_bind to `host`. If no interface has that address or name: FAULT_UNAVAILABLE, and
// "192.0.2.1 is no address of this machine; it has 127.0.0.1, 10.0.0.5" in `why`. Any other `error`
// (an errno, also one of ZeroMQ's): 0, and `why` is unchanged.
int addresses_refuse(const char *host, int error, struct why *why);
