#pragma once
// text_map -- texts to numbers: a hash table that holds numbers; the caller keeps the text of each.
// It grows as needed, and nothing is removed. All zero is an empty one. Each process draws its own
// hash key, so that nobody can prepare a file whose texts collide.

#include <stddef.h>
#include <stdint.h>

#define TEXT_MAP_NONE UINT32_MAX

struct text_map {
    uint32_t *slots; // Owned; numbers, TEXT_MAP_NONE where empty
    uint32_t count, mask;
};

// Returns the text of a number; the caller provides it.
typedef const uint8_t *text_map_text_fn(const void *context, uint32_t number, size_t *ret_count);

// The number that has the text, or TEXT_MAP_NONE.
uint32_t text_map_find(const struct text_map *self, text_map_text_fn *text_of, const void *context,
                       const uint8_t *text, size_t count);

// Adds a number whose text the caller holds already and which is not in the map. Dies when memory
// is out.
void text_map_add(struct text_map *self, text_map_text_fn *text_of, const void *context,
                  uint32_t number);
void text_map_free(struct text_map *self);
