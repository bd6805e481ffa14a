#pragma once
// pair_map -- pairs of ids to numbers: open addressing, keyed by left and right. Any number of
// readers, or one writer. All zero is an empty one.

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/ensure.h"

struct pair_slot {
    uint64_t pair, value;
}; // pair: PAIR_MAP_EMPTY where empty
struct pair_map {
    struct pair_slot *slots; // Owned
    uint64_t count, mask;
};
#define PAIR_MAP_EMPTY UINT64_MAX

static inline uint64_t pair_of(uint32_t left, uint32_t right)
{
    return (uint64_t)left << 32 | right;
}

// The slot of the pair, or the empty one where it would be. Needs one pair_map_add before.
static inline struct pair_slot *pair_map_slot(const struct pair_map *self, uint64_t pair)
{
    uint64_t at = pair * 0x9e3779b97f4a7c15u; // 2^64 / golden ratio
    at = (at ^ at >> 32) & self->mask;
    while (self->slots[at].pair != pair && self->slots[at].pair != PAIR_MAP_EMPTY)
        at = (at + 1) & self->mask;
    return &self->slots[at];
}

// NULL if the pair is not there.
static inline const struct pair_slot *pair_map_find(const struct pair_map *self, uint64_t pair)
{
    if (self->count == 0) return NULL;
    const struct pair_slot *slot = pair_map_slot(self, pair);
    return slot->pair == pair ? slot : NULL;
}

// The pair's slot, made with value 0 if it was not there. Valid until the next call. Dies when
// memory is out.
static inline struct pair_slot *pair_map_add(struct pair_map *self, uint64_t pair)
{
    const uint64_t size = self->slots ? self->mask + 1 : 0;
    if (2 * (self->count + 1) > size) {
        const struct pair_map old = *self;
        self->mask = size ? 2 * size - 1 : 1023;
        self->slots = malloc((self->mask + 1) * sizeof *self->slots);
        ensure(self->slots);
        memset(self->slots, 0xff, (self->mask + 1) * sizeof *self->slots);
        for (uint64_t i = 0; i < size; i++)
            if (old.slots[i].pair != PAIR_MAP_EMPTY)
                *pair_map_slot(self, old.slots[i].pair) = old.slots[i];
        free(old.slots);
    }
    struct pair_slot *slot = pair_map_slot(self, pair);
    if (slot->pair != pair) {
        *slot = (struct pair_slot){ pair, 0 };
        self->count++;
    }
    return slot;
}

static inline void pair_map_free(struct pair_map *self)
{
    free(self->slots);
    *self = (struct pair_map){ 0 };
}
