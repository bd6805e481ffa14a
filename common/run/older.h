#pragma once
// older -- the saves in pieces on record before the newest one (struct wire_older_saves), as a list.
//
// Pure; any thread.

#include "common/wire/wire.h"

enum { OLDER_SAVES_MAX = 3 };

// From 0 to OLDER_SAVES_MAX - 1, the newest first. Its digest is none: there is none, and none behind it.
const struct wire_saved_step *older_saves_at(const struct wire_older_saves *self, unsigned i);
