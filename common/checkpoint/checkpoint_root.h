#pragma once
// checkpoint_root -- the folder of checkpoints: their names, the list of them, the lock for
// writers. Private to checkpoint.

#include "common/checkpoint/checkpoint.h"

enum { CHECKPOINT_NAME = 64 }; // Room for any name made here

struct checkpoint_steps {
    size_t count;
    uint64_t steps[CHECKPOINT_LIST_MAX];
};

// "step-00000120", and "step-00000120.tmp-4711" with our process id. Both return `name`.
const char *checkpoint_root_name(uint64_t step, char name[CHECKPOINT_NAME]);
const char *checkpoint_root_tmp_name(uint64_t step, char name[CHECKPOINT_NAME]);

// The caller closes the descriptor.
int checkpoint_root_open(const char *root, struct why *why, int *ret_fd);
// The same, but not by a link: to write, or to remove, where others may write beside the folder.
int checkpoint_root_open_own(const char *root, struct why *why, int *ret_fd);

// Locks the root for one writer, until the descriptor is closed. FAULT_BUSY if another writer has
// it.
int checkpoint_root_lock(int fd, const char *root, struct why *why);

// Highest first. FAULT_LIMIT beyond CHECKPOINT_LIST_MAX.
int checkpoint_root_steps(int fd, const char *root, struct why *why,
                          struct checkpoint_steps *ret_steps);

// Removes every .tmp directory. Call it only under the lock, which proves that their writers are
// dead.
int checkpoint_root_clean(int fd, const char *root, struct why *why);
