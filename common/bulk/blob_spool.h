#pragma once
// blob_spool -- how a store keeps its blobs on disk: behind one another in few files.
//
//     DIR/spool.7     [head][bytes] [head][bytes] [head] ...     no more than SPOOL_FILE_BYTES, or one blob
//     DIR/spool.8     [head][bytes] [head][bytes] ◀── the newest file: put writes at its end
//                                  ▲ synced: what lies before it is durable
//
//     head, 52 bytes: magic 4 | count 8 | SHA-256 of the bytes 32 | the first 8 of SHA-256 of all this
//
// A run keeps a few hundred small blobs for some rounds each and forgets them in the order in which they
// came. A file of its own for each would cost ten times as much processor time as the bytes do: to make
// a name, to find an inode, to remove both again. Here a blob costs one write, and a file is removed when
// the last of its blobs has been left. So up to SPOOL_FILE_BYTES of a file that is kept for one blob may
// be of others that are gone; a process that restarts finds these again.
//
// Sync makes a blob durable with one fdatasync, and with it all that were put before it. The folder is
// fsynced when a file is created. A lazy spool does neither: what was put survives the process, but may not
// survive a crash of the machine.
//
// After a crash each file is found up to the first head that is not whole; the bytes themselves are checked
// by the reader, against their hash. No durable blob lies behind a torn one: fdatasync covers all of the
// file before it, a failed write or sync is cut off, and a file that was found is never written to again.
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
    // Is told of each blob that an earlier process has left, the oldest first. Returns whether it holds the
    // place. What was not synced then is synced now.
    bool (*found)(void *arg, const struct hash *hash, uint64_t count,
                  const struct spool_place *place);
    void *arg;
};

// After a fault, too, there is a spool to close, when the places that `found` was told of have been left.
int blob_spool_open(const struct blob_spool_options *options, struct why *why,
                    struct blob_spool **ret_self);
void blob_spool_close(struct blob_spool **self_p); // The files stay. NULL allowed

// Writes a blob behind the others. The place is held. A fault writes nothing: FAULT_DISK_FULL, FAULT_IO ..
int blob_spool_put(struct blob_spool *self, const struct hash *hash, const void *bytes,
                   size_t count, struct why *why, struct spool_place *ret_place);

// Makes the blob of a held place durable, and all that were put before it. After a fault those of them that
// were not durable are lost. Lazy: does nothing.
int blob_spool_sync(struct blob_spool *self, const struct spool_place *place, struct why *why);

// False for a place that is zero, and for a blob that a failed sync has lost: it must be put again. The
// thread that puts alone may ask.
bool blob_spool_has(const struct spool_place *place);

// `count` bytes, not checked; the caller holds the place and frees them.
int blob_spool_read(const struct blob_spool *self, const struct spool_place *place, size_t count,
                    struct why *why, uint8_t **ret_bytes);

void blob_spool_hold(const struct spool_place *place);
void blob_spool_leave(struct spool_place *place); // Leaves it zero; allowed if it is
void blob_spool_sweep(struct blob_spool *self);   // Removes the files in which no place is held
