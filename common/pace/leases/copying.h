#pragma once
// copying -- memory saves of a run whose servers apply pushes at once (strategy.memory_every). They need no disk, and
// pushes wait for a memcpy only.
//
//     memory_every steps ─▶ RECORD_COPY: the run's step and data position
//          ─▶ COPY_SHARE to each server, again until BUSY says `copied`, with the list of its leaves
//          ─▶ KEEP_SHARES with all lists, again until BUSY says `kept`: it has the shares of its `buddies` predecessors
//          ─▶ all say one digest: RECORD_KEPT, where a run goes back to that has lost a server
//
// As with saves (saving.h) a share is as far as pushes have come when it is copied: it has all that the save's step
// says, and perhaps more, which is trained again. What is not cut into shares, the number of optimizer steps, is that
// of the first server.
//
// One save is made at a time. If a server cannot copy, or the digests differ, the save is given up, and the next one is
// made when it is due. If a server never comes to fetch the shares of the others, the save stays open, and no other is
// made, until the group ends: then a save that is not on record is given up.
//
// Pure; part of leases_pace.c.

#include "common/pace/leases/leases_pace.h"

// Of an open group that is not being closed. `goes_on`: its epoch does. Begins a save that is due, tells servers, and
// records the one that they keep.
void copying_look(struct lease_pace *self, const struct turn *turn, bool goes_on);

// The function way_back of struct pace.
bool copying_point(const struct turn *turn, struct way_back *ret_way);

// When something here is due if no message comes; 0: never.
uint64_t copying_due_ms(const struct lease_pace *self, const struct turn *turn);
