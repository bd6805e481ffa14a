#pragma once
// curve_set -- a map from names of identities (curve_of_key) to a small value.
//
// Open addressing, at most half full, grows by doubling. It keeps copies of the keys. The value 0
// means that the key is not in it. One thread.

#include "common/net/curve.h"

struct curve_entry {
    struct curve_key key;
    uint16_t value;
};
struct curve_set {
    struct curve_entry *entries;
    uint32_t count, places;
}; // Zeroed: empty

uint16_t curve_set_get(const struct curve_set *self, const struct curve_key *key);
void curve_set_put(struct curve_set *self, const struct curve_key *key, uint16_t value); // Not 0
void curve_set_clear(struct curve_set *self);
