#pragma once
// blob_store -- everything large that a process holds for itself and its peers, by hash.
//
//     learner ──put──▶ ┌─ blobs ── hash ▶ bytes ─────────┐ ──get──▶ bulk server ─▶ peers
//     fetcher ──take─▶ │  (also files, if there is a dir) │ ──get──▶ learner
//     learner ──pin──▶ ├─ pins ─── leaf ▶ view of a copy ─┤
//     fetcher ─stage─▶ └─ stage ── one vector ────────────┘ ─unstage─▶ learner
//
// A blob is known by the SHA-256 of its bytes, a leaf of pinned parameters by its merkle_leaf: the
// two can never be mistaken for one another. Everything read is a reference: what is forgotten
// while it is being sent stays alive until the last reference is released.
//
// With a directory every blob is also the file DIR/<64 hex digits>, durable when put or take
// returns, and found again after a restart: then it is read, and checked against its name, when
// first asked for. Nothing goes by itself: blob_store_list tells who starts what it inherits. A lazy
// store leaves out the fsync: its files outlive the process, and perhaps not the machine.
//
// All functions may be called by any thread at any time. One lock guards the tables and nothing
// slow happens under it; a second one only keeps writers of the directory in line.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/fault.h"
#include "common/base/hash.h"
#include "common/wire/wire.h"

enum { BLOB_BYTES_MAX = 1 << 30, BLOB_PINS_MAX = 16, BLOB_PINS_DEFAULT = 3 };

struct blob_store_options {
    const char *dir;    // NULL: memory alone. Must exist, and belong to this store alone
    bool lazy;          // Files are not fsynced
    uint64_t bytes_max; // Of all blobs together; 0: no limit. Pins and stage do not count
    uint32_t pins_max;  // 1 .. BLOB_PINS_MAX; 0: BLOB_PINS_DEFAULT
};

typedef struct blob_store blob_store_t;

// `options` may be NULL: memory alone, no limit. Leftovers of a crash in the directory are removed,
// files of other names are left alone. FAULT_RANGE, or why the directory cannot be used.
int blob_store_new(const struct blob_store_options *options, struct why *why,
                   blob_store_t **ret_self);

// Every reference must have been released before: destroy servers first. NULL allowed.
void blob_store_destroy(blob_store_t **self_p);

// ---- blobs ----------------------------------------------------------------------------------

// Keeps a copy. Putting what is there already changes nothing. FAULT_LIMIT (too large, or no room
// under bytes_max) and FAULT_MEMORY keep nothing. Any other fault is the disk's (FAULT_DISK_FULL,
// FAULT_IO ..): then the blob is kept in memory alone, and *ret_hash is written all the same.
int blob_store_put(blob_store_t *self, const void *bytes, size_t count, struct why *why,
                   struct hash *ret_hash);

// The same without a copy: takes *bytes_p, which came from malloc, unless nothing was kept.
int blob_store_take(blob_store_t *self, uint8_t **bytes_p, size_t count, struct why *why,
                    struct hash *ret_hash);

// The same for who has hashed it on the way: `hash` is believed.
int blob_store_take_known(blob_store_t *self, const struct hash *hash, uint8_t **bytes_p,
                          size_t count, struct why *why);

// Whether it is there after a put or take that said this, if perhaps in memory alone.
static inline bool blob_store_is_kept(int rc) { return rc != FAULT_LIMIT && rc != FAULT_MEMORY; }

struct blob_held;
struct blob_ref {
    const uint8_t *bytes; // May be NULL if count is 0
    size_t count;
    struct blob_held *held; // NULL: no reference
};

// A blob, or a leaf of a pin. May read a file. FAULT_NOT_FOUND; FAULT_CORRUPT if the file was not
// what its name says (it is removed, and the blob is gone).
int blob_store_get(blob_store_t *self, const struct hash *hash, struct why *why,
                   struct blob_ref *ret_ref);
void blob_store_release(struct blob_ref *ref); // Leaves it empty; an empty one is allowed

bool blob_store_has(blob_store_t *self, const struct hash *hash); // Blobs alone, not leaves
bool blob_store_size(blob_store_t *self, const struct hash *hash,
                     size_t *ret_bytes);                             // False: has not
void blob_store_forget(blob_store_t *self, const struct hash *hash); // Its file, too

// The same in two: gone at once, without waiting for the disk; and its file, if it was not put again
// since. A file that is still there when the process ends is inherited by the next one.
void blob_store_drop(blob_store_t *self, const struct hash *hash);
void blob_store_sweep(blob_store_t *self, const struct hash *hash);
uint64_t blob_store_count(blob_store_t *self); // Blobs, without those only referred to
uint64_t blob_store_bytes(blob_store_t *self); // Theirs, in memory or on disk

// Names blobs in no particular order, `max` at most; returns how many.
uint32_t blob_store_list(blob_store_t *self, struct wire_blob *ret_blobs, uint32_t max);

// ---- snapshots of the parameters ------------------------------------------------------------

// Keeps a copy of the vector, to be served unchanged while the learner goes on; the oldest pin
// beyond pins_max goes. `leaves` are the digest_leaf_count (floats) leaves whose root is `digest`
// (ensured). A step that is pinned already is replaced. FAULT_MEMORY pins nothing.
int blob_store_pin(blob_store_t *self, uint64_t step, const struct hash *digest,
                   const float *params, uint64_t floats, const struct hash *leaves,
                   size_t leaf_count, struct why *why);

// The leaf hashes under a pinned digest: 32 bytes each. FAULT_NOT_FOUND.
int blob_store_leaves(blob_store_t *self, const struct hash *digest, struct why *why,
                      struct blob_ref *ret_ref, uint64_t *ret_floats);

// ---- the stage: where the fetcher leaves a model for the learner ----------------------------

// Takes *vector_p (free frees it); a vector that still stands there is freed.
void blob_store_stage(blob_store_t *self, uint64_t step, const struct hash *digest,
                      float **vector_p, uint64_t floats);

// Gives the vector of this step, which the caller frees; NULL if none stands there.
float *blob_store_unstage(blob_store_t *self, uint64_t step, struct hash *ret_digest,
                          uint64_t *ret_floats);
