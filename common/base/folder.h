#pragma once
// folder -- makes a folder, with the folders above it.

#include <sys/types.h>

#include "common/base/fault.h"

// Like mkdir -p: makes the missing folders of the path, the last one with `mode`, those above it
// with 0755. Existing folders stay as they are. A fault names the folder that could not be made:
// FAULT_IO if a file has its name.
int folder_make(const char *path, mode_t mode, struct why *why);
