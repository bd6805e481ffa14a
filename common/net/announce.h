#pragma once
// announce -- the endpoint at which a member tells the others to fetch from it.
//
//     --bulk-bind, --bind-p2p-port ──bind──▶ bound ─┬─────────────▶ what is announced,
//                                      --announce ──┘ in its place   if others can reach it
//
// Looks up the broker's name, sends nothing. Any thread.

#include "common/base/fault.h"

enum { ANNOUNCE_MAX = 128 }; // An endpoint, with its zero

struct announce {
    const char *bulk_bind; // As the flag was given
    const char *announce;  // HOST or HOST:PORT; NULL: not given
    const char *broker;    // Its HOST:PORT
};

// `bound` is the endpoint that was bound, in numbers: the port where --announce names none.
// FAULT_USAGE: --announce is no address in numbers. FAULT_CONFIG: members on other machines cannot
// reach the endpoint; the text proposes the address of this machine that leads to the broker.
int announce_endpoint(const struct announce *self, const char *bound, struct why *why,
                      char ret_endpoint[ANNOUNCE_MAX]);
