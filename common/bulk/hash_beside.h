#pragma once
// hash_beside -- a thread that hashes large blobs while another thread still receives them.
//
//     receives   [here][here][here][coming] ...       hash_run_give: how many bytes are here for good
//     hashes     [done][in hand]
//
// A run is the hash of one blob. Several runs take turns, part by part. Nothing is copied: the bytes that were
// given are the caller's, which must not change them until the run has ended.
//
// Only one thread may use it and its runs.

#include "common/base/hash.h"
#include <sys/queue.h>

struct hash_beside;

struct hash_run {
    struct hash_beside *beside; // NULL: the caller's own thread hashes, in hash_run_give
    struct hasher hasher;
    const uint8_t *bytes;
    size_t given, done; // Bytes
    TAILQ_ENTRY(hash_run) line;
};

struct hash_beside *hash_beside_new(void);
void hash_beside_destroy(struct hash_beside **self_p); // Every run has ended before. NULL allowed

void hash_run_begin(struct hash_run *self, struct hash_beside *beside, const uint8_t *bytes);
void hash_run_give(struct hash_run *self, size_t count); // The first `count` bytes; never fewer
// _end waits until all bytes that were given are hashed. _drop gives the run up: it waits for the part in hand only.
struct hash hash_run_end(struct hash_run *self);
void hash_run_drop(struct hash_run *self);
