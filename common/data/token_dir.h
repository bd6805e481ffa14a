#pragma once
// token_dir -- the token files of a folder, in the order that all members use: by name, as bytes. A
// token file is named *.bin, *.npy or *.ds; hidden files and all other names are skipped. Also
// reads a file at an offset, with errors that name the file.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/fault.h"

enum { TOKEN_NAME_MAX = 200 }; // Bytes of a file's name

struct token_dir {
    char **names; // Owned, ascending
    uint32_t count;
};

// FAULT_NOT_FOUND if there is no folder or no token file in it; FAULT_LIMIT above
// SAMPLES_FILES_MAX.
int token_dir_list(const char *dir, struct why *why, struct token_dir *ret_list);
void token_dir_free(struct token_dir *self);

// True for a name that token_dir_list would list: what a manifest may contain.
bool token_dir_is_name(const char *name);

// "dir/name"; the caller frees it. NULL when memory is out.
char *token_dir_path(const char *dir, const char *name);

// Opens a plain file for reading. A folder, a pipe or a device is FAULT_FORMAT.
int token_dir_open(const char *path, struct why *why, int *ret_fd, uint64_t *ret_bytes);

// Exactly `count` bytes at `offset`. FAULT_CORRUPT if the file ends before: it was longer when it
// was opened.
int token_dir_read(int fd, const char *path, uint64_t offset, size_t count, void *out,
                   struct why *why);
