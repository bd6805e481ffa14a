#pragma once
// folder -- makes a folder, with the folders above it.

#include <sys/types.h>

#include "common/base/fault.h"

// Like mkdir -p: what is missing of the path is made, the last folder with `mode`, those above it with
// 0755; what is there stays as it is. A fault names the folder that could not be made: FAULT_IO if a file
// is in its place.
int folder_make(const char *path, mode_t mode, struct why *why);
