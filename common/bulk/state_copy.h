#pragma once
// state_copy -- room for a copy of a state (common/vector/state_cut.h): in memory, or in a file. Or a view of a state
// that lies elsewhere, such as a save on shared storage: it is read there when somebody asks, and never written to.
//
// The file has no name: no other process can open it, and it is gone when this one ends. All of its
// room is allocated on the disk when it is made, so a full disk is found then. It is read and
// written, not mapped: so a disk that fails gives a fault and no signal, and the file does not
// count as memory of the process. The system caches it as far as it has memory.
//
// One thread writes; when that is done, any thread may read.

#include <stddef.h>
#include <stdint.h>

#include "common/base/fault.h"

// What a view needs of the place where the state lies.
struct state_view {
    // As state_copy_get. Any thread, several at a time.
    int (*get)(const struct state_view *self, uint64_t offset, void *to, size_t count,
               struct why *why);
    void (*destroy)(struct state_view *self);
};

struct state_copy {
    uint8_t *bytes;          // NULL: in a file, or a view
    int fd;                  // -1: not in a file
    struct state_view *view; // Owned. NULL: it is none
};

static const struct state_copy no_state_copy = { NULL, -1, NULL };

// `dir_fd`: a folder on the disk that is to hold it; -1: memory. FAULT_MEMORY, FAULT_DISK_FULL and
// other faults of the disk.
int state_copy_new(int dir_fd, uint64_t bytes, struct why *why, struct state_copy *ret_copy);
void state_copy_free(struct state_copy *self); // It becomes no_state_copy, which may be freed too

// `count` bytes at `offset`, within its room. The faults of the disk. Nothing is put into a view (ensured).
int state_copy_put(const struct state_copy *self, uint64_t offset, const void *from, size_t count,
                   struct why *why);
int state_copy_get(const struct state_copy *self, uint64_t offset, void *to, size_t count,
                   struct why *why);
