#pragma once
// blob_store_inside -- the blob store is one object in three files, and this is its inside: blob_store.c
// has the table of blobs and the references, blob_store_pins.c pins and stage, blob_store_shares.c shares. No other
// file includes it.

#include "common/base/ensure.h"
#include "common/bulk/blob_spool.h"
#include "common/bulk/blob_store.h"
#include <pthread.h>

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
    bool is_loaded;           // If not: on disk alone, bytes is NULL
    struct spool_place place; // On disk; zero: it is in memory alone
};

struct pin {
    struct blob_held held;
    struct blob_snapshot state;
    struct state_copy copy; // Of the items
    struct hash *leaves;
    size_t leaf_count;
    uint32_t *slots;   // Open addressing by leaf hash: index + 1, or 0
    size_t slot_count; // Power of two
};

// What is known of one leaf of a share.
enum {
    LEAF_HERE = 1,   // Its bytes are here, and it is in the slots
    LEAF_TOUCHED = 2 // Its memory was written to, in this generation or in an earlier one
};

struct blob_share {
    struct pin
        pin; // First: a share is a pin. Its copy is a mapping, its slots have the leaves that are here
    uint8_t *marks;        // One a leaf
    uint64_t here, bytes;  // Leaves that are here; their bytes
    bool is_put, is_whole; // The store has it; it has its digest and the hashes of all leaves
};

struct blob_store {
    pthread_mutex_t lock;     // Guards all members below, except those that never change
    pthread_mutex_t disk;     // One writer of the directory; taken before `lock`
    char *dir;                // Never changes
    int dir_fd;               // Never changes; -1: memory alone
    struct blob_spool *spool; // NULL: memory alone; put, synced and swept under `disk`

    struct blob **buckets;
    size_t bucket_count; // Power of two
    uint64_t count, count_ever;
    uint64_t bytes, bytes_ever; // Of the blobs in the table; of all that have ever been in it
    uint64_t refs;              // References that callers have not released

    struct pin *pins[BLOB_PINS_MAX]; // Newest first
    uint32_t pin_count, pins_max;
    bool pins_in_files;

    struct blob_share *shares[BLOB_SHARES_MAX];
    uint32_t share_count;
    struct blob_share *spare;  // Memory of a share that is gone, for the next one; NULL: none
    uint64_t share_bytes_ever; // Of all leaves of shares that have ever come

    struct {
        struct blob_snapshot state;
        bool is_full;
        struct state_copy copy;
    } stage;
};

static inline void blob_store_lock(struct blob_store *self)
{
    ensure(pthread_mutex_lock(&self->lock) == 0);
}

static inline void blob_store_unlock(struct blob_store *self)
{
    ensure(pthread_mutex_unlock(&self->lock) == 0);
}

// Under the lock: add one reference; drop one, true if it was the last (then the caller frees the
// thing after it has released the lock).
static inline void blob_held_add(struct blob_held *held) { held->refs++; }

static inline bool blob_held_drop(struct blob_held *held)
{
    ensure(held->refs > 0);
    return --held->refs == 0;
}

// Under the lock. Finds a leaf of a pin, and its place in the copy; false if no pin has it. If the pin is in a file,
// the bytes of the reference are NULL: then call blob_store_read_leaf without the lock, which reads and checks them.
bool blob_store_find_leaf(struct blob_store *self, const struct hash *hash,
                          struct blob_ref *ret_ref, uint64_t *ret_place);
int blob_store_read_leaf(struct blob_store *self, const struct hash *hash, uint64_t place,
                         struct why *why, struct blob_ref *ref);

// Under the lock. The slot of a leaf: it holds the leaf's index + 1, or 0 if the pin does not have the leaf. And a
// new reference for a caller.
uint32_t *blob_store_slot(const struct pin *pin, const struct hash *leaf);
struct blob_ref blob_store_refer(struct pin *pin, const void *bytes, size_t count);

uint64_t blob_store_pin_bytes(const struct blob_store *self);   // Of the largest; under the lock
uint64_t blob_store_share_bytes(const struct blob_store *self); // What is here of the largest

// When the store ends: pins and stage; shares and what is kept of them.
void blob_store_drop_pins(struct blob_store *self);
void blob_store_free_shares(struct blob_store *self);
