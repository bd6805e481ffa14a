#pragma once
// tags -- every persistent item of state is registered once, with exactly one of four tags. The tag
// alone decides how the item is saved and loaded, at any number of workers:
//
//      tag         save                      load, cut unchanged    load, another cut
//      drop        each worker its own       its own value back     a fresh start, declared
//      reshard     each worker its interval  its own interval       overlaps, from their workers
//      replicate   worker 0, for all         that one copy          that one copy
//      custom      each worker its own       its own value back     all values, to its own function
//
// Two cuts are equal if their intervals are equal, not if they have the same number of workers.
// Moments reshard; DisTrO's momentum residual is dropped (it belongs to its member and restarts
// from zero); configuration replicates. common/checkpoint/world.h saves and loads by this table.
//
// Pure: no I/O, no clock, no memory taken. Any thread.

#include "common/base/fault.h"
#include <stdbool.h>
#include <stdint.h>

enum { TAGS_NAME_MAX = 47 };

enum tag { TAG_UNSET, TAG_DROP, TAG_RESHARD, TAG_REPLICATE, TAG_CUSTOM, TAG_COUNT };

struct tags_item {
    char name[TAGS_NAME_MAX + 1]; // a-z, 0-9, -; a letter first: it becomes a file name
    uint64_t elements;            // Reshard: as the flat vector. Other tags: any number
    uint32_t element_bytes;       // 1 to 16
    enum tag tag;
};

struct tags {
    struct tags_item *items; // The caller's memory
    size_t count, capacity;
};

// Keeps the pointer to `items` (memory for `capacity` of them), which must outlive the registry.
void tags_init(struct tags *self, struct tags_item *items, size_t capacity);

// Registers an item. Refuses, and changes nothing: a tag that is unset or none of the four, a name
// that is bad or already registered, a size of zero or beyond 2^48 elements (FAULT_RANGE), a full
// room (FAULT_LIMIT).
int tags_add(struct tags *self, const char *name, enum tag tag, uint64_t elements,
             uint32_t element_bytes, struct why *why);

const struct tags_item *tags_find(const struct tags *self, const char *name); // Or NULL
bool tags_name_valid(const char *name);
const char *tags_tag_name(enum tag tag);       // "drop", ...; "unset" for what is none
enum tag tags_tag_from_name(const char *name); // TAG_UNSET for what is none
