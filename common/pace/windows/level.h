#pragma once
// level -- closes a window that broke, without moving any state.
//
//     broken, lease over, newer process ─▶ LEVEL to all that live ─▶ each freezes: (step, has)
//                                             ▲     │ a heartbeat / 4
//                                             └─────┘ to those that have not answered
//     all that live have answered ─▶ STEPS, closed: at the newest step that one holds,
//                                    or one later if all hold that one and have what the next needs
//
// Why that is enough: a step is applied only when all members have all that it needs (holder.h). So
// what one holds, the others can apply from memory; and no member that lives, whether it was heard
// or not, is further than one step beyond the slowest. Being frozen, none gets further meanwhile.
//
// If no member lives, the window stays open: its members may only be out of reach, and they alone
// hold its newest steps. It is closed where it is committed when all of them have died for certain,
// or when enough others have waited for PACE_SEARCH_LEASES leases.
//
// Pure; part of windows.c.

#include "common/pace/windows/windows.h"

// Whether the open windows have broken, or LEVEL is under way.
bool level_is_due(const struct windows *self, const struct turn *turn);

// Sends LEVEL, or closes the windows when all have answered.
void level_settle(struct windows *self, const struct turn *turn);

// No member of the open windows lives.
bool level_is_lonely(const struct windows *self, const struct run *run);

// When level_settle is due again by the clock.
uint64_t level_due_ms(const struct windows *self);

// A member cannot go on, or says who is dead.
void level_hear(struct windows *self, const struct turn *turn, uint32_t member,
                const struct wire_stands *said);
