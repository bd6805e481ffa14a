#pragma once
// run_end -- the word that a guest keeps in its folder once its run is finished: by then its owner may
// be gone, so that nobody could tell it at the next start. Any thread.

#include "common/base/fault.h"
#include "common/wire/wire.h"
#include <stdbool.h>

struct run_end {
    char run[WIRE_RUN_MAX + 1];
    struct key broker; // A run is told from another one of its name by the key of its broker
    uint64_t step, total_steps;
};

// Writes the file `finished` of the folder.
int run_end_keep(const char *dir, const struct run_end *self, struct why *why);

// False if that run has not ended as far as the folder knows: there is no such file, it cannot be read,
// or it is of another run.
bool run_end_read(const char *dir, const char *run, const struct key *broker,
                  struct run_end *ret_end);
