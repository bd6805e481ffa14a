#pragma once
// blocks -- how many strangers come from one block of addresses: a /24 of IPv4, a /48 of IPv6. Keys cost
// nothing, so a budget for each key bounds nobody who makes new ones; addresses cost something.
//
//     a HELLO of a key that is not registered and has no seat takes one of its block's
//     BLOCK_BURST at once, then BLOCK_STRANGERS_S a second; without one it is refused, and tries again
//
// Members of the roster and the owner are not counted, nor is this machine itself (loopback). A table that
// is full forgets the block that was heard longest ago; so who has more blocks than it has places is not
// bounded by it.
//
// Pure; a value, zeroed at first; one thread.

#include "broker/budget.h"
#include <stdbool.h>
#include <sys/socket.h>

enum { BLOCKS_MAX = 1024, BLOCK_STRANGERS_S = 4, BLOCK_BURST = 256, BLOCK_PREFIX = 7 };

struct block {
    uint8_t prefix[BLOCK_PREFIX]; // 4 or 6, then the address's first 3 or 6 bytes; zeros: free
    uint64_t heard_ms;
    struct bucket bucket;
};

struct blocks {
    struct block of[BLOCKS_MAX];
};

bool blocks_is_here(
    const struct sockaddr *from); // Of this machine (loopback), or of no kind that has blocks
// Whether one more stranger may come from this address. Any other family than IPv4 and IPv6 may.
bool blocks_admit(struct blocks *self, const struct sockaddr *from, uint64_t now_ms);
