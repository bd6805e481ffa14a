#pragma once
// saving -- the saves of a run, where its servers write their shares to a shared folder (checkpoint.shared_dir).
//
//     as many steps, or passes, as lie between two saves ─▶ RECORD_SAVE: the run's step and data position
//          ─▶ SAVE_SHARE to each server, again until it has said in BUSY that its part has ended
//          ─▶ a server's BUSY says that the save is whole, with its digest ─▶ RECORD_CHECKPOINT, where a restore can
//             go back to
//     the epoch ends at such a step ─▶ RECORD_CLOSE with `save`: servers save what the group puts together
//
// Nobody waits for a save. While a server still writes its part of one, the next is not begun: it is of a later step
// then. A save that a group makes on the way is never of the epoch's last step: that state is put together, and has a
// digest of its own.
//
// Pure; part of leases_pace.c.

#include "common/pace/leases/leases_pace.h"

// As many steps, or passes over the data, are done since the group began, or has saved last, as lie between two
// saves.
bool saving_is_due(const struct turn *turn);

// Whether the servers save by themselves; else the epoch ends for a save, and checkpointers write it.
bool saving_is_in_pieces(const struct turn *turn);

// Of an open group that is not being closed. `goes_on`: its epoch does. Begins a save that is due, and tells servers.
void saving_look(struct lease_pace *self, const struct turn *turn, bool goes_on);

// This member has just said how its part of a save ended.
void saving_hear(const struct lease_pace *self, const struct turn *turn, uint32_t member);

// When something here is due if no message comes; 0: never.
uint64_t saving_due_ms(const struct lease_pace *self, const struct turn *turn);
