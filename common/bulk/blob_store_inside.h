#pragma once
// blob_store_inside -- what the two sources of the blob store share: blob_store.c has the blobs,
// blob_store_pins.c has pins and stage. No other file includes this.

#include <pthread.h>

#include "common/bulk/blob_store.h"

// Something that references keep alive. The table that lists it holds one reference itself.
struct blob_held {
    struct blob_store *store;
    uint64_t refs; // Under the store's lock
    void (*free)(struct blob_held *self);
};

struct blob {
    struct blob_held held; // First: a blob is a held
    struct blob *next;     // In its bucket
    struct hash hash;
    uint8_t *bytes;
    size_t count;
    bool is_loaded; // If not: on disk alone, bytes is NULL
    bool is_on_disk;
};

struct pin {
    struct blob_held held;
    uint64_t step, floats;
    struct hash digest;
    float *params;
    struct hash *leaves;
    size_t leaf_count;
    uint32_t *slots;   // Open addressing by leaf hash: index + 1, or 0
    size_t slot_count; // Power of two
};

struct blob_store {
    pthread_mutex_t lock; // Guards all members below, except those that never change
    pthread_mutex_t disk; // One writer of the directory; taken before `lock`
    char *dir;            // Never changes
    int dir_fd;           // Never changes; -1: memory alone
    bool lazy;            // Never changes
    uint64_t bytes_max;   // Never changes
    uint32_t pins_max;    // Never changes

    struct blob **buckets;
    size_t bucket_count; // Power of two
    uint64_t count, bytes;
    uint64_t refs; // References that callers have not released

    struct pin *pins[BLOB_PINS_MAX]; // Newest first
    uint32_t pin_count;

    struct {
        uint64_t step, floats;
        struct hash digest;
        float *vector;
    } stage;
};

// Under the lock: add one reference; drop one, true if it was the last (then the caller frees the
// thing after it has released the lock).
void blob_held_add(struct blob_held *held);
bool blob_held_drop(struct blob_held *held);

// Under the lock. A view of a pin's leaf; false if no pin has it.
bool blob_store_find_leaf(struct blob_store *self, const struct hash *hash,
                          struct blob_ref *ret_ref);

void blob_store_drop_pins(struct blob_store *self); // Pins and stage, when the store ends
