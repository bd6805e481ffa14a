#pragma once
// callers -- how often an address may have a handshake answered. An answer costs two operations with keys, also if
// the caller only repeats bytes; keys cost nothing, so the count is by address: of IPv4 the whole, of IPv6 its
// first 64 bits.
//
//     a connection    CALLERS_CONNECTIONS at once, then one each CALLERS_CONNECTION_MS
//     a probe         CALLERS_PROBES at once, then one each CALLERS_PROBE_MS; probes leave the room of the
//                     connections free
//
// A call that is refused counts for nothing. The table has CALLERS_PLACES places, an address has one of them by a
// hash with a seed that nobody else knows: it may share it with another address, but none can choose with which.
// An attacker with many addresses has as many times as much.
//
// Pure: a value, no clock. One thread.

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
    CALLERS_PLACES = 1024,
    CALLERS_PROBES = 64,
    CALLERS_PROBE_MS = 50,
    CALLERS_CONNECTIONS = 320,
    CALLERS_CONNECTION_MS = 10
};

struct callers { // Zero but for the seed
    uint8_t seed[16];
    uint64_t
        paid_ms[CALLERS_PLACES]; // The instant at which all that a place was granted is paid for
};

// Whether a call from this address is answered now. Any other family than IPv4 and IPv6 has one place in common.
bool callers_admit(struct callers *self, const struct sockaddr *from, bool is_probe,
                   uint64_t now_ms);
