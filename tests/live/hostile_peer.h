#pragma once
// hostile_peer -- a CURVE connection made by hand, from the greeting on: it can send what the
// library would refuse to send. (ZeroMQ RFC 23, ZMTP 3.0, and RFC 26, CurveZMQ.)

#include "common/base/key.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hostile_peer {
    int fd;             // -1: the broker has hung up, or takes nothing for 0.3 s
    uint8_t shared[32]; // Of both transient keys
    uint64_t nonce;
};

// As a DEALER, with a key of its own. `number`: it takes the name that ZeroMQ gives to a ROUTER's peer of this number;
// NULL: it chooses no name. False: the server did not let it in, within 5 s.
bool hostile_peer_connect(struct hostile_peer *self, unsigned port, const struct key *server,
                          const uint32_t *number);
// One part of a message; `more`: another one follows. False: hung up.
bool hostile_peer_send(struct hostile_peer *self, bool more, const void *bytes, size_t count);
void hostile_peer_close(struct hostile_peer *self);
