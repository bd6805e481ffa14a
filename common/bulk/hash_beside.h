#pragma once
// hash_beside -- a thread that hashes large blobs in the order of their bytes, while the thread that
// receives them receives what comes behind.
//
//     receives   [here][here][here][coming] ...       hash_run_give: so many bytes are here for good
//     hashes     [done][in hand]
//
// Several blobs take turns, part by part. Nothing is copied: the bytes that were given are the caller's,
// and stay as they are until the run has ended.
//
// One thread uses it, and its runs.

#include "common/base/hash.h"
#include <sys/queue.h>

struct hash_beside;

struct hash_run {
    struct hash_beside *beside; // NULL: what is given is hashed at once, by the caller
    struct hasher hasher;
    const uint8_t *bytes;
    size_t given, done; // Bytes
    TAILQ_ENTRY(hash_run) line;
};

struct hash_beside *hash_beside_new(void);
void hash_beside_destroy(struct hash_beside **self_p); // Every run has ended before. NULL allowed

void hash_run_begin(struct hash_run *self, struct hash_beside *beside, const uint8_t *bytes);
void hash_run_give(struct hash_run *self, size_t count); // The first `count` bytes; never fewer
// Waits until all that was given is hashed, or only for the part in hand.
struct hash hash_run_end(struct hash_run *self);
void hash_run_drop(struct hash_run *self);
