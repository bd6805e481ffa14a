#pragma once
// shared_dir -- the folder that all machines of a run see, and in it one folder a run.
//
//     <shared_dir>/<run>-<born>/    the root of the run's saves (pieces.h); born: Unix time in ms
//
// A new run with the name of an old one gets a folder of its own.

#include "common/base/fault.h"
#include <limits.h>
#include <stdint.h>

// Tries in the folder what a save needs: to make a folder and a file, to write and fsync both, to
// rename, to read back. Leaves nothing behind. The fault names the step that failed:
// FAULT_NOT_FOUND, FAULT_DENIED, FAULT_DISK_FULL ...
int shared_dir_check(const char *shared_dir, struct why *why);

// The path of a run's root. FAULT_RANGE: no id of a run, or too long a path.
int shared_dir_root(const char *shared_dir, const char *run, uint64_t born_unix_ms, struct why *why,
                    char ret_root[PATH_MAX]);

// Makes the root of a run that has just begun. FAULT_BUSY: it is there already.
int shared_dir_begin(const char *shared_dir, const char *run, uint64_t born_unix_ms,
                     struct why *why, char ret_root[PATH_MAX]);

// When the newest run of this name began that has a whole save, and the step of its newest save.
// FAULT_NOT_FOUND: there is none. For a newer root that cannot be read, the fault of pieces_list; FAULT_IO if it leads
// nowhere.
int shared_dir_newest(const char *shared_dir, const char *run, struct why *why,
                      uint64_t *ret_born_unix_ms, uint64_t *ret_step);
