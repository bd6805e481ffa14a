#pragma once
// folder -- makes a folder, with the folders above it.

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/base/fault.h"

// Like mkdir -p: makes the missing folders of the path, the last one with `mode`, those above it
// with 0755. Existing folders stay as they are. A fault names the folder that could not be made:
// FAULT_IO if a file has its name.
int folder_make(const char *path, mode_t mode, struct why *why);

// The same with mode 0755, and its absolute path without links, of at most `bytes_max` bytes: paths
// of files in it go into frames and command lines, which have limits. FAULT_LIMIT.
int folder_resolve(const char *path, size_t bytes_max, char ret_path[PATH_MAX], struct why *why);
