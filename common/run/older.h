#pragma once
// older -- the saves in pieces on record before the newest one (struct wire_older_saves), as a list.
//
// Pure; any thread.

#include "common/wire/wire.h"

enum { OLDER_SAVES_MAX = 3 };

// From 0 to OLDER_SAVES_MAX - 1, the newest first. Its digest is none: there is none, and none behind it.
const struct wire_saved_step *older_saves_at(const struct wire_older_saves *self, unsigned i);

// Saves of this step and later ones stay on disk. Of those on record it is the newest `keep`: what is written now may
// never be on record, and cleans all the same (seed 61272). `newest`: the step of the newest one on record.
uint64_t older_saves_spare(const struct wire_older_saves *self, uint64_t newest, uint32_t keep);
