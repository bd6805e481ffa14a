#pragma once
// penalties -- keys that were cut for flooding: their handshakes are refused for PENALTY_MS. Only
// the newest PENALTIES_MAX are kept.
//
// Pure; one thread.

#include "common/net/curve.h"
#include <stdbool.h>
#include <stdint.h>

enum { PENALTIES_MAX = 256, PENALTY_MS = 10000 };

struct penalty {
    struct curve_key key;
    uint64_t until_ms;
};
struct penalties {
    struct penalty list[PENALTIES_MAX];
    uint32_t next;
}; // Zeroed: none

void penalties_add(struct penalties *self, const struct curve_key *key, uint64_t now_ms);
bool penalties_has(const struct penalties *self, const struct curve_key *key, uint64_t now_ms);
