#pragma once
// opening -- whether another window is opened, and what is in it.
//
// A window names the members of the group that are left, and where servers have the state the trainers that have come
// since; the first one of an epoch names all healthy trainers that are linked with one another (linking.h). It is as long as window_ms by the speed of the group. Its record says the
// rate and the samples of each step, so that no step needs the coordinator.
//
// Pure; part of windows.c.

#include "common/pace/windows/windows.h"

// Why no further window is opened, though members go on to the end of those that are. NULL: one is.
const char *opening_why_not(const struct windows *self, const struct turn *turn);

// The epoch goes on without a window: servers keep their shares until there are trainers enough.
bool opening_waits(const struct windows *self, const struct turn *turn);

// Records the next window and arms the clock. Somebody must be left for its group.
void opening_open(struct windows *self, const struct turn *turn);

// Why an epoch cannot begin, as a sentence that lives until the next call; NULL: it can.
const char *opening_lacks(struct windows *self, const struct turn *turn);

// Whether a healthy epoch begins without this member: it is linked too little, and the others are enough.
bool opening_stays_pending(const struct turn *turn, uint32_t member);
