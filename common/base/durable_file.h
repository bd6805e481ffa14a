#pragma once
// durable_file -- a file that is there whole or not at all. Written under a hidden name beside its
// place, fsynced, renamed over it, and the folder fsynced: after a crash at any instruction the old
// content stands or the new one does. A leftover of a crash (.NAME.tmp) is overwritten by the next
// try.
//
// For a file that may be there already. To write a folder of files that appears as one, such as a checkpoint, or to
// read a file, use dirfile.h.

#include <stddef.h>
#include <stdint.h>

#include "common/base/fault.h"

enum { DURABLE_FILE_NAME_MAX = 250 };

struct durable_file {
    int dir_fd, fd; // -1 when closed
    char name[256], temporary[264];
    uint64_t bytes; // Appended so far
};

// `name` is a plain file name of at most DURABLE_FILE_NAME_MAX bytes; `dir` exists.
int durable_file_create(const char *dir, const char *name, struct why *why,
                        struct durable_file *ret_file);
int durable_file_append(struct durable_file *self, const void *bytes, size_t count,
                        struct why *why);

// One of commit, abandon and rename_only ends it. After a failed commit the old content stands, unless only the fsync
// of the folder failed: then the new content is there, but a power cut may bring the old one back.
int durable_file_commit(struct durable_file *self, struct why *why);
void durable_file_abandon(struct durable_file *self);

// As commit, but without fsync: other processes find the file whole or not at all, also when this
// process dies. After a power cut the file may be empty or damaged.
int durable_file_rename_only(struct durable_file *self, struct why *why);

// Create, append and commit in one call, for bytes that lie in memory.
int durable_file_write(const char *dir, const char *name, const void *bytes, size_t count,
                       struct why *why);
