#pragma once
// callers -- how often a caller may have a handshake answered. An answer costs operations with
// keys, also if the caller only repeats bytes. Keys and their names cost nothing, so the count is
// by address: of IPv4 the whole, of IPv6 its first 64 bits. A key that calls from an address has a
// smaller count within that of the address, so that it does not use up what its neighbours need.
//
//     a key           CALLERS_KEY at once, then one each CALLERS_KEY_MS
//     connections     CALLERS_CONNECTIONS at once, then one each CALLERS_CONNECTION_MS
//     probes          CALLERS_PROBES at once, then one each CALLERS_PROBE_MS; they leave the room
//                     of the connections free
//
// A call that is refused counts for nothing. A connection that has proved its key can be paid back. An
// address has a place in a table, and so has a key at an address, by a hash with a seed that nobody
// else knows: it may share it with others, but none can choose with whom. An attacker with many
// addresses has as many times as much.
//
// Pure: a value, no clock. One thread.

#include "common/base/key.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
    CALLERS_ADDRESSES = 1024,
    CALLERS_KEYS = 8192,
    CALLERS_KEY = 64,
    CALLERS_KEY_MS = 250,
    CALLERS_PROBES = 64,
    CALLERS_PROBE_MS = 50,
    CALLERS_CONNECTIONS = 320,
    CALLERS_CONNECTION_MS = 10
};

struct callers { // Zero but for the seed
    uint8_t seed[16];
    // The instant at which all that was granted is paid for
    uint64_t addresses_ms[CALLERS_ADDRESSES], keys_ms[CALLERS_KEYS];
};

// Whether a call from this address is answered now: a connection for which a key is named, or a
// probe, whose key is NULL. Any other family than IPv4 and IPv6 is one address.
bool callers_admit(struct callers *self, const struct sockaddr *from, const struct key *key,
                   uint64_t now_ms);

// A connection that was admitted has proved its key: it counts no more.
void callers_pay_back(struct callers *self, const struct sockaddr *from, const struct key *key);
