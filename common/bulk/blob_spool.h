#pragma once
// blob_spool -- blobs behind one another in few files: how a lazy store keeps them over the end of its process.
//
//     DIR/spool.7     [head][bytes] [head][bytes] [head] ...     no more than SPOOL_FILE_BYTES, or one blob
//     DIR/spool.8     [head][bytes] ◀── the newest file: put writes at its end
//
//     head, 52 bytes: magic 4 | count 8 | SHA-256 of the bytes 32 | the first 8 of SHA-256 of all this
//
// A run keeps a few hundred small blobs for some rounds each and forgets them in the order in which they
// came. A file of its own for each would cost ten times as much processor time as the bytes do: to make
// a name, to find an inode, to remove both again. Here a blob costs one write, and a file is removed when
// the last of its blobs has been left. So up to SPOOL_FILE_BYTES of a file that is kept for one blob may
// be of others that are gone; a process that restarts finds these again.
//
// Nothing is fsynced: what was put survives the process, but may not survive a crash of the machine. What
// a crash leaves behind is found up to the first head that is not whole; the bytes themselves are checked
// by the reader, against their hash.
//
// One thread at a time may open, put and sweep; any thread may hold, leave and read.

#include "common/base/fault.h"
#include "common/base/hash.h"
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { SPOOL_FILE_BYTES = 1 << 20, SPOOL_HEAD = 52 };

struct spool_file;

struct spool_place { // Of the bytes of a blob; all zero: it is not in the spool
    struct spool_file *file;
    uint64_t at;
};

struct blob_spool;

// Tells `found` of each blob that an earlier process has left, the oldest first. It returns whether it
// holds the place. `dir_fd` and `dir`, for error texts, are borrowed.
int blob_spool_open(int dir_fd, const char *dir,
                    bool (*found)(void *arg, const struct hash *hash, uint64_t count,
                                  const struct spool_place *place),
                    void *arg, struct why *why, struct blob_spool **ret_self);
void blob_spool_close(struct blob_spool **self_p); // The files stay. NULL allowed

// Writes a blob behind the others. The place is held. A fault writes nothing: FAULT_DISK_FULL, FAULT_IO ..
int blob_spool_put(struct blob_spool *self, const struct hash *hash, const void *bytes,
                   size_t count, struct why *why, struct spool_place *ret_place);

// `count` bytes, not checked; the caller holds the place and frees them.
int blob_spool_read(const struct blob_spool *self, const struct spool_place *place, size_t count,
                    struct why *why, uint8_t **ret_bytes);

void blob_spool_hold(const struct spool_place *place);
void blob_spool_leave(struct spool_place *place); // Leaves it zero; allowed if it is
void blob_spool_sweep(struct blob_spool *self);   // Removes the files in which no place is held
