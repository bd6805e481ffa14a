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
// Who is waited for. All that live, but
//   - not a process that is dead: each member that has answered calls it so (its link has ended, its port
//     refuses a connection), and it has not said that it has heard LEVEL. If more are called dead than
//     have answered, or not all say so, they have a heartbeat to contradict;
//   - not one that others have waited for in vain for step_timeout, or that says itself that it cannot go
//     on, and whose learner does not answer LEVEL within step_timeout either: it hangs.
// Such a process is dropped. If it lives, it joins again and fetches the state.
//
// An answer that lies more than one step beyond the slowest is false: whoever gave it is left out.
//
// A group that breaks again and again without one step more, for a reason that is nobody's death, waits a
// little longer each time before it tries again, up to a lease: no data, say.
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

// Whose answer to LEVEL has been waited for, for more than a heartbeat: "waiting for trainer-2 to say where it stands".
// NULL: nobody's. Lives until the next call.
const char *level_waits(struct windows *self, const struct turn *turn);

// When level_settle is due again by the clock.
uint64_t level_due_ms(const struct windows *self);

// A member cannot go on, or says who is dead.
void level_hear(struct windows *self, const struct turn *turn, uint32_t member,
                const struct wire_stands *said);
