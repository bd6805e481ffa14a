#pragma once
// arena -- hands out pieces of one allocation, each at a multiple of 256 bytes; without a base it
// only counts, so that size and layout have one description.

#include <stddef.h>
#include <stdint.h>

struct arena {
    char *base;
    uint64_t used;
};

template <typename T> static inline T *arena_take(struct arena *arena, uint64_t count)
{
    T *piece = arena->base ? reinterpret_cast<T *>(arena->base + arena->used) : NULL;
    arena->used += (count * sizeof(T) + 255) / 256 * 256;
    return piece;
}
