#pragma once
// blob_spool -- how a store keeps its blobs on disk: behind one another in few files.
//
//     DIR/spool.7     [head][bytes] [head][bytes] [head] ...     at most SPOOL_FILE_BYTES, or one larger blob
//     DIR/spool.8     [head][bytes] [head][bytes] ◀── the newest file: put writes at its end
//                                  ▲ synced: what lies before it is durable
//
//     head, 52 bytes: magic 4 | count 8 | SHA-256 of the bytes 32 | the first 8 of SHA-256 of all this
//
// A run keeps a few hundred small blobs, each for some rounds, and forgets them in the order in which they
// came. If each had a file of its own, the files would cost ten times as much processor time as the bytes: to make
// a name, to find an inode, to remove both again. Here a blob costs one write, and a file is removed when no place
// in it is held any more. So a file that is kept for one blob may have up to SPOOL_FILE_BYTES of blobs that were
// forgotten; after a restart these are found again.
//
// One fdatasync makes a blob durable, and all blobs that were put before it. The folder is fsynced when a file is
// created. A lazy spool does neither: its blobs survive the process, but may not survive a crash of the machine.
//
// After a crash the blobs of each file are found up to the first head that is not whole; the reader compares the
// bytes with their hash. No durable blob lies behind a torn one: fdatasync covers the whole file up to its blob, a
// failed write or sync is cut off, and a file that was found at the start is never written to again.
//
// One thread at a time may open, put, sync and sweep; any thread may hold, leave and read.

#include "common/base/fault.h"
#include "common/base/hash.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPOOL_FILE_BYTES = 1 << 20, SPOOL_HEAD = 52 };

struct spool_file;

struct spool_place { // Of the bytes of a blob; all zero: it is not in the spool
    struct spool_file *file;
    uint64_t at;
};

struct blob_spool;

struct blob_spool_options {
    int dir_fd;      // Borrowed, as dir
    const char *dir; // For error texts
    bool is_lazy;    // Nothing is synced
    // Called for each blob that an earlier process has left, the oldest first. Returns whether the spool shall hold
    // the place for it. Blobs that were not durable are synced now.
    bool (*found)(void *arg, const struct hash *hash, uint64_t count,
                  const struct spool_place *place);
    void *arg;
};

// Also after a fault *ret_self is a spool: leave the places that are held for `found`, then close it.
int blob_spool_open(const struct blob_spool_options *options, struct why *why,
                    struct blob_spool **ret_self);
void blob_spool_close(struct blob_spool **self_p); // The files stay. NULL allowed

// Writes a blob behind the others. Its place is held. After a fault (FAULT_DISK_FULL, FAULT_IO ..) the blob is not
// there. With or without a fault, blobs that were not durable may be lost, if put had to sync and could not:
// blob_spool_has.
int blob_spool_put(struct blob_spool *self, const struct hash *hash, const void *bytes,
                   size_t count, struct why *why, struct spool_place *ret_place);

// Makes the blob of a held place durable, and all that were put before it. The place must not be lost
// (blob_spool_has, ensured). After a fault those of these blobs that were not durable are lost. Lazy: does nothing.
int blob_spool_sync(struct blob_spool *self, const struct spool_place *place, struct why *why);

// False for a place that is zero, and for a blob that a failed sync has lost: it must be put again. Only the
// thread that puts may ask.
bool blob_spool_has(const struct spool_place *place);

// `count` bytes, not checked; the caller holds the place and frees them.
int blob_spool_read(const struct blob_spool *self, const struct spool_place *place, size_t count,
                    struct why *why, uint8_t **ret_bytes);

void blob_spool_hold(const struct spool_place *place);
void blob_spool_leave(struct spool_place *place); // It becomes zero; zero is allowed
void blob_spool_sweep(struct blob_spool *self);   // Removes files in which no place is held
