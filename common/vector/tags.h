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
// from zero); configuration replicates.
//
// Pure: no I/O, no clock, no memory taken. Any thread.

#include "common/base/fault.h"
#include "common/base/interval.h"

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
const char *tags_tag_name(enum tag tag);       // "drop", ...; "unset" for what is none
enum tag tags_tag_from_name(const char *name); // TAG_UNSET for what is none

// ---- Plans ----
//
// No caller yet: shares that move when members come and go, and checkpoints written and read by the
// members that hold shares.

// How [0, N) is cut among workers: pieces in order that do not overlap, owner < workers. A worker
// may own none.
struct tags_cut {
    const struct interval_piece *pieces;
    size_t count;
    uint32_t workers;
};

bool tags_cut_equal(const struct tags_cut *a, const struct tags_cut *b);

enum tags_deed {
    TAGS_COPY,   // The elements `at` of the item, from worker `from`
    TAGS_FRESH,  // Nothing is carried over: the item starts from its declared beginning
    TAGS_GATHER, // The whole value of worker `from`; one such step per old worker, in order,
};               // and then the item's own function makes the new value of them

struct tags_step {
    size_t item; // Index into the registry
    enum tags_deed deed;
    uint32_t from;
    struct interval at; // Elements of the item
};

// An upper bound on the steps of a plan. `before` may be NULL (a plan to save).
size_t tags_plan_max(const struct tags *self, const struct tags_cut *before,
                     const struct tags_cut *now);

// What `worker` writes when a world cut like `cut` is saved: TAGS_COPY steps from itself.
// FAULT_RANGE if the cut does not tile a reshard item or names a worker it has not.
int tags_plan_save(const struct tags *self, const struct tags_cut *cut, uint32_t worker,
                   struct why *why, struct tags_step *ret_steps, size_t *ret_count);

// What `worker` of the world `now` does to load what the world `before` saved. FAULT_RANGE as
// above.
int tags_plan_load(const struct tags *self, const struct tags_cut *before,
                   const struct tags_cut *now, uint32_t worker, struct why *why,
                   struct tags_step *ret_steps, size_t *ret_count);
