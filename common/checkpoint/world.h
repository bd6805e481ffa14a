#pragma once
// world -- the state of a world of W workers, saved and loaded by the four tags
// (common/vector/tags.h). The world that loads may have another number of workers than the one that
// saved, again and again.
//
//     struct world_item items[] = {
//         world_item ("rows", TAG_RESHARD, 8, count, rows),       // Of this worker: any number
//         world_item ("settings", TAG_REPLICATE, 1, bytes, text), // The same at all
//         world_item ("timer", TAG_DROP, 8, 1, &timer),           // Of use in the same world alone
//         world_item ("seen", TAG_CUSTOM, 8, 1, &seen),           // Made of all by a function
//     };
//     items[3].merge = add_up;
//     const struct pieces_save save = { .root = "/mnt/run/a-1700000000000", .run = "a",
//                                       .step = 120, .attempt = 1, .worker = 2, .workers = 3 };
//     rc = world_save (&save, items, 4, &why, &missing);      // Each worker
//     rc = world_load (&save, items, 4, &why);                // Each worker of the next world
//
// tests/example/world.c is a whole program. For vectors that fill the memory use pieces.h: it
// writes from your memory and reads to it.

#include "common/checkpoint/pieces.h"

struct world_value {
    uint64_t elements;
    void *bytes;
};

// Makes the value of `worker`, of `workers`, from those of all `count` old workers, in their order.
// `ret_value->bytes` is from malloc. A fault ends the load.
typedef int world_merge_fn(void *arg, const struct world_value *all, uint32_t count,
                           uint32_t worker, uint32_t workers, struct why *why,
                           struct world_value *ret_value);

struct world_item {
    const char *name;
    enum tag tag;
    uint32_t element_bytes;
    uint64_t elements; // Of this worker
    void *bytes;
    world_merge_fn *merge; // Custom alone
    void *arg;
    // Reshard alone, for loading: the elements of worker w are [begins[w], begins[w + 1]), workers
    // + 1 numbers that begin with 0, do not fall and end with the number of all elements. NULL: as
    // they were saved if the number of workers is the same, else in equal parts (interval_share).
    const uint64_t *begins;
    bool is_fresh; // Set by world_load: dropped, so that the program's own beginning stands
};

static inline struct world_item world_item(const char *name, enum tag tag, uint32_t element_bytes,
                                           uint64_t elements, void *bytes)
{
    return (struct world_item){ .name = name,
                                .tag = tag,
                                .element_bytes = element_bytes,
                                .elements = elements,
                                .bytes = bytes };
}

// Writes what this worker has, and makes the save visible if it is the last one: then *ret_missing
// is save->workers. Else it is the first worker that has not written yet, and the call of that one
// or a later one makes it visible. Faults as pieces_write and pieces_seal; FAULT_LIMIT: too many items.
int world_save(const struct pieces_save *save, const struct world_item *items, size_t count,
               struct why *why, uint32_t *ret_missing);

// Loads the items from the save of save->step; save->attempt and save->born_unix_ms do not matter.
// Of each item the world gets what the table in tags.h says; "cut unchanged" means: as many
// workers, and each reshard item in the same intervals. Elements and bytes of an item are those of
// the loaded value, in memory from malloc, which the caller frees; the old ones are not freed. A
// dropped item stays as it is, and is_fresh is true.
//
// Faults as pieces_open, pieces_read and a merge function. Besides: FAULT_NOT_FOUND: the save has no item of this name.
// FAULT_UNSUPPORTED: the item has another tag or another element size now. After
// a fault no item is changed. FAULT_RANGE: begins are not as above. FAULT_LIMIT, FAULT_MEMORY. save->worker must be below
// save->workers, and a custom item have its merge (ensured). A value that merge gets may have any number of elements,
// also none.
int world_load(const struct pieces_save *save, struct world_item *items, size_t count,
               struct why *why);
