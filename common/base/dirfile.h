#pragma once
// dirfile -- files that are written durably, and files that are read without trust. A write takes
// the hash of the bytes on its way and ends with fsync. A read of a file that has become shorter
// returns a fault; it never ends in SIGBUS, as a mapping would. Every name is relative to an open
// directory, so that a name of one component can lead nowhere else.
//
// For a folder that is renamed to its place when all is in it (checkpoints, models), and for every
// file that is read whole. One file that is put in the place of an older one: durable_file.h.
//
// All return 0 or a negative enum fault. `place` names the file in error texts. Any thread, one
// writer at a time.

#include "common/base/fault.h"
#include "common/base/hash.h"
#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DIRFILE_NAME_MAX = 120 };

// One path component and nothing else: 1 to 120 of A-Z a-z 0-9 . _ - , not beginning with a dot or
// a dash.
bool dirfile_name_valid(const char *name);

// ---- Reading ----

// Opens a regular file for reading. `follow`: may the name be a symbolic link.
int dirfile_open(int dir, const char *name, bool follow, struct why *why, int *ret_fd,
                 uint64_t *ret_bytes);

// Exactly `count` bytes from `offset`, or FAULT_CORRUPT: the file has shrunk under the reader.
int dirfile_read(int fd, const char *place, uint64_t offset, void *bytes, size_t count,
                 struct why *why);

// A whole small file, ended by a zero that does not count. FAULT_LIMIT if larger than bytes_max.
// The caller frees.
int dirfile_slurp(int dir, const char *name, bool follow, size_t bytes_max, struct why *why,
                  char **ret_bytes, size_t *ret_count);

// SHA-256 of the first `count` bytes.
int dirfile_hash(int fd, const char *place, uint64_t count, struct why *why, struct hash *ret_hash);

// ---- Writing ----

struct dirfile { // A new file on its way to the disk
    int fd;
    const char *name; // Borrowed until the end
    uint64_t bytes;   // Written so far
    bool hashes;
    struct hasher hasher;
    uint8_t *block; // Of dirfile_begin_direct: what is not written yet; else NULL
    size_t block_count;
};

// Creates `name`, which must not exist. After success exactly one of end and abandon must follow.
int dirfile_begin(struct dirfile *self, int dir, const char *name, struct why *why);

// The same for bytes that the caller hashes itself: dirfile_end returns no hash.
int dirfile_begin_unhashed(struct dirfile *self, int dir, const char *name, struct why *why);

// The same for many bytes that nobody reads soon: they go to the disk past the page cache (O_DIRECT), where the file
// system can do that. The cache keeps what it has, and the processor copies little. Takes a mebibyte of memory until the
// end.
int dirfile_begin_direct(struct dirfile *self, int dir, const char *name, struct why *why);

int dirfile_add(struct dirfile *self, const void *bytes, size_t count, struct why *why);

// fsync, close, and the hash and size of what was written. Closes in any case. `ret_hash` is NULL
// if and only if the file is not hashed.
int dirfile_end(struct dirfile *self, struct why *why, struct hash *ret_hash, uint64_t *ret_bytes);
void dirfile_abandon(struct dirfile *self); // Closes; what was written stays

int dirfile_sync_dir(int dir, const char *place, struct why *why);

// The next entry of an open listing of `place`; NULL at its end. A fault of the disk or the server is FAULT_IO and not
// the end: else a caller would take what it did not see listed for what is not there.
int dirfile_next(DIR *list, const char *place, struct why *why, struct dirent **ret_entry);

// Removes a directory of files in `dir`, or a single file or link of that name. It must hold no
// directories (FAULT_IO then, and some of its files are gone). FAULT_NONE if there is nothing.
int dirfile_remove(int dir, const char *name, struct why *why);
