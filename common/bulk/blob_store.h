#pragma once
// blob_store -- everything large that a process holds for itself and its peers, by hash.
//
//     learner ──put──▶ ┌─ blobs ── hash ▶ bytes ─────────┐ ──get──▶ bulk server ─▶ peers
//     fetcher ──take─▶ │  (also on disk, if with a dir)   │ ──get──▶ learner
//     learner ──pin──▶ ├─ pins ─── leaf ▶ part of a copy ─┤
//     both ────share─▶ ├─ shares ─ leaf, if it is here ───┤
//     fetcher ─stage─▶ └─ stage ── one state ─────────────┘ ─unstage─▶ learner
//
// A blob is named by the SHA-256 of its bytes, a leaf of a state by its merkle_leaf; the two
// cannot be equal. Readers get references: a blob that is forgotten while it is sent stays in
// memory until its last reference is released.
//
// With a directory every blob is also kept on disk, many in one file (blob_spool.h), and is durable when put or
// take returns. After a restart the blobs are found again; each is read, and compared with its hash, when it is
// first asked for. Only drop and sweep remove a blob. blob_store_list names the blobs that a restarted process
// inherits; some that were removed may be among them. A lazy store omits the fsync: its blobs survive the
// process, but may not survive a crash of the machine.
//
// Any thread may call any function at any time, unless it says otherwise. One lock guards the
// tables, and nothing slow happens under it; a second lock makes writers of the directory take
// turns.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/fault.h"
#include "common/base/hash.h"
#include "common/bulk/state_copy.h"
#include "common/vector/share_list.h"
#include "common/vector/state_cut.h"
#include "common/wire/wire.h"

enum { BLOB_BYTES_MAX = 1 << 30, BLOB_PINS_MAX = 3, BLOB_SHARES_MAX = 2 };

struct blob_store_options {
    const char *dir; // NULL: in memory only. Must exist; no other store may use it
    bool lazy;       // Nothing is fsynced
};

typedef struct blob_store blob_store_t;

// `options` may be NULL: in memory only. An earlier version kept each blob in a file of its own, named by its hash.
// Such files are removed from the directory, since their contents cannot be read any more; files of other names are
// ignored. The fault is that of opening the directory, or of making durable what was found there.
int blob_store_new(const struct blob_store_options *options, struct why *why,
                   blob_store_t **ret_self);

// Every reference must have been released before: destroy servers first. NULL allowed.
void blob_store_destroy(blob_store_t **self_p);

// ---- blobs ----------------------------------------------------------------------------------

// Keeps a copy. Putting a blob that is there already changes nothing. FAULT_LIMIT (more than
// BLOB_BYTES_MAX) and FAULT_MEMORY keep nothing. Any other fault is the disk's (FAULT_DISK_FULL,
// FAULT_IO ..): then the blob is kept in memory only, and *ret_hash is written all the same.
int blob_store_put(blob_store_t *self, const void *bytes, size_t count, struct why *why,
                   struct hash *ret_hash);

// The same without a copy: takes *bytes_p, which came from malloc, unless nothing was kept.
int blob_store_take(blob_store_t *self, uint8_t **bytes_p, size_t count, struct why *why,
                    struct hash *ret_hash);

// The same for a caller that has hashed the bytes already: `hash` is not checked. Not durable before
// sync, so that a caller that takes several pays for one fsync.
int blob_store_take_known(blob_store_t *self, const struct hash *hash, uint8_t **bytes_p,
                          size_t count, struct why *why);

// Makes a blob durable, and with it all that were taken before. A blob that an earlier failed sync has lost from the
// disk is first written again. After a fault the blob is kept in memory only, until the next sync of it.
int blob_store_sync(blob_store_t *self, const struct hash *hash, struct why *why);

// Whether the store has the blob, at least in memory, after put or take returned `rc`.
static inline bool blob_store_is_kept(int rc) { return rc != FAULT_LIMIT && rc != FAULT_MEMORY; }

struct blob_held;
struct blob_ref {
    const uint8_t *bytes; // May be NULL if count is 0
    size_t count;
    struct blob_held *held; // NULL: no reference
};

// A blob, or a leaf of a pin or of a share. May read a file. FAULT_NOT_FOUND; FAULT_CORRUPT if the bytes on disk do
// not have the hash (a blob then, and if it cannot be read, is removed from the store); of a leaf also the faults of
// the disk.
int blob_store_get(blob_store_t *self, const struct hash *hash, struct why *why,
                   struct blob_ref *ret_ref);
void blob_store_release(struct blob_ref *ref); // Leaves it empty; an empty one is allowed

// Blobs alone, not leaves. False: it is not here.
bool blob_store_size(blob_store_t *self, const struct hash *hash, size_t *ret_bytes);

// How much is here: the blobs and their bytes, now and all that have ever come (those that were
// found on disk too). `state`: the bytes of the largest pinned state with its list of leaves, or of the
// leaves of a share that are here, with its list; `state_ever`: of all leaves of shares that have ever come.
struct blob_amounts {
    uint64_t blobs, bytes, blobs_ever, bytes_ever, state, state_ever;
};
struct blob_amounts blob_store_amounts(blob_store_t *self);

// Removes a blob in two steps: drop takes it out of the table, without waiting for the disk; sweep removes the files
// that no blob needs any more, unless this blob was put again since. A blob in a file that is still there when the
// process ends is found by the next process.
void blob_store_drop(blob_store_t *self, const struct hash *hash);
void blob_store_sweep(blob_store_t *self, const struct hash *hash);

// Names blobs, without those only referred to, in no particular order, `max` at most; returns how
// many.
uint32_t blob_store_list(blob_store_t *self, struct wire_blob *ret_blobs, uint32_t max);

// ---- snapshots of the state (common/vector/state_cut.h) -------------------------------------

struct blob_snapshot {
    uint64_t step;
    struct hash digest;
    struct state_cut cut;
};

// Sets how many pins there may be, 1..BLOB_PINS_MAX (ensured), before the oldest goes; and whether copies of states
// are made in files (state_copy.h) in the directory. At first: BLOB_PINS_MAX, in memory. Returns whether copies are
// made in files: false without a directory, and with one on a file system in memory.
bool blob_store_plan_pins(blob_store_t *self, uint32_t pins_max, bool in_files);

// Room for a copy: in a file if the plan says so. If the disk has no room for it, the copy is in memory, and a line
// of the log says so. FAULT_MEMORY.
int blob_store_new_copy(blob_store_t *self, uint64_t bytes, struct why *why,
                        struct state_copy *ret_copy);

// Keeps a copy of the state's items, served unchanged while the learner goes on. `leaves` are those
// of all items; their digest is state->digest (ensured). If this state is pinned already, that pin is
// the newest again. Else a pin of the same step is removed first, or the oldest of too many; so
// one thread that pins never makes more copies, but for those that references keep alive.
// FAULT_MEMORY pins nothing.
int blob_store_pin(blob_store_t *self, const struct blob_snapshot *state, const void *const *items,
                   const struct hash *leaves, struct why *why);

// The same without copying: takes the copy, which has all items in their places. If this state is pinned already, that
// pin is the newest again, and the copy is freed. FAULT_MEMORY pins nothing, and the copy stays with the caller.
int blob_store_pin_copy(blob_store_t *self, const struct blob_snapshot *state,
                        struct state_copy *copy, const struct hash *leaves, struct why *why);

// If this state is pinned, that pin is the newest again. False: it is not.
bool blob_store_pin_again(blob_store_t *self, const struct blob_snapshot *state);

// The leaf hashes under a pinned digest, or under that of a whole share, 32 bytes each. FAULT_NOT_FOUND.
int blob_store_leaves(blob_store_t *self, const struct hash *digest, struct why *why,
                      struct blob_ref *ret_ref, struct state_cut *ret_cut);

// The copy under a pinned digest (state_cut_place); one in a file is read into memory. FAULT_NOT_FOUND,
// and then FAULT_MEMORY and the faults of the disk.
int blob_store_pinned(blob_store_t *self, const struct hash *digest, struct why *why,
                      struct blob_ref *ret_ref, struct state_cut *ret_cut);

// Reads `count` bytes at `place` of the copy under a pinned digest, within its room. FAULT_NOT_FOUND, the faults of the
// disk.
int blob_store_pinned_part(blob_store_t *self, const struct hash *digest, uint64_t place,
                           size_t count, struct why *why, void *to);

// Reads item 0 of the copy under a pinned digest, the parameters, to `to`. They must have `bytes` bytes.
// FAULT_NOT_FOUND, FAULT_CORRUPT for another size, the faults of the disk.
int blob_store_pinned_params(blob_store_t *self, const struct hash *digest, uint64_t bytes,
                             struct why *why, void *to);

// ---- shares: states of which some leaves are here (common/vector/share_list.h) ----------------
//
// Each member of a group keeps its own leaves of the state of a step in memory, and those of its predecessors, so that
// the others can fetch the state if one of them dies.
//
//     new ──▶ filled by its maker ──put──▶ served leaf by leaf ──fill──▶ .. ──complete──▶ its list is served too
//
// A share has room for the whole state, as a pin has; but room that was never written to takes no memory. Its leaves
// are served by their hash as soon as they are here. Memory alone, never a file. BLOB_SHARES_MAX of them may be put.
//
// When a share is dropped while others are kept, and its last reference is released, its memory becomes the spare,
// which the next share of the same cut gets. So from the third share on the maker writes to memory that is there.

typedef struct blob_share blob_share_t; // A reference; release it

// A share that nobody else knows. FAULT_MEMORY, FAULT_LIMIT (more leaves than have a number).
int blob_store_new_share(blob_store_t *self, const struct state_cut *cut, struct why *why,
                         blob_share_t **ret_share);
void blob_share_release(blob_share_t **share_p); // NULL allowed

// Where its leaves lie (state_cut_place). Write only to a share that is not put yet.
uint8_t *blob_share_bytes(blob_share_t *share);
const struct state_cut *blob_share_cut(const blob_share_t *share);

// Takes memory for these leaves, so that writing to them later has no page faults: a byte of each page becomes 0, so
// call it before anything is written there. Cheap where there is some.
void blob_share_touch(blob_share_t *share, struct interval leaves);

// Takes the share as that of `step`: from now on these leaves of it are served. Their bytes are in their places, and
// `hashes` are theirs in the order of the list. A share of the same step is dropped; there is place for it (ensured).
void blob_store_put_share(blob_store_t *self, blob_share_t **share_p, uint64_t step,
                          const struct share_list *list, const struct hash *hashes);

// The share of this step that was put; NULL: there is none.
blob_share_t *blob_store_share(blob_store_t *self, uint64_t step);

// For one thread: adds a leaf that is not here yet (ensured) to a share that was put. The bytes are those of the
// hash.
bool blob_share_has(const blob_share_t *share, uint64_t leaf);
void blob_share_fill(blob_share_t *share, uint64_t leaf, const struct hash *hash, const void *bytes,
                     size_t count);

// For the thread that fills it: keeps the hashes of all leaves, whose digest this is (ensured). blob_store_leaves has them
// now. Memory that an earlier share wrote to and this one did not is given back. Once (ensured). After a fault nothing
// has changed: FAULT_NOT_FOUND, it was dropped meanwhile; FAULT_CORRUPT, a leaf that is here has another hash; FAULT_MEMORY.
int blob_share_complete(blob_share_t *share, const struct hash *digest, const struct hash *leaves,
                        struct why *why);

bool blob_share_is_whole(const blob_share_t *share, struct hash *ret_digest); // It was completed

// Drops all shares but those of these steps; UINT64_MAX: no step. If none is left, the spare goes too.
void blob_store_drop_shares(blob_store_t *self, uint64_t keep_a, uint64_t keep_b);

// ---- the stage: where the fetcher leaves a state for the learner ----------------------------

// Takes the copy; a state that is still staged is freed.
void blob_store_stage(blob_store_t *self, const struct blob_snapshot *state,
                      struct state_copy *copy);

// Gives the copy of the state of this step to the caller, which frees it. False: none is staged.
bool blob_store_unstage(blob_store_t *self, uint64_t step, struct blob_snapshot *ret_state,
                        struct state_copy *ret_copy);
