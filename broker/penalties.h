#pragma once
// penalties -- keys that were cut for flooding: CURVE keys of connections, whose handshakes are refused for
// PENALTY_MS, and keys of actors, whose HELLOs are. Only the newest PENALTIES_MAX are kept.
//
// Pure; one thread.

#include "common/base/key.h"
#include <stdbool.h>
#include <stdint.h>

enum { PENALTIES_MAX = 256, PENALTY_MS = 10000 };

struct penalty {
    struct key key;
    uint64_t until_ms;
};
struct penalties {
    struct penalty list[PENALTIES_MAX];
    uint32_t next;
}; // Zeroed: none

void penalties_add(struct penalties *self, const struct key *key, uint64_t now_ms);
bool penalties_has(const struct penalties *self, const struct key *key, uint64_t now_ms);
