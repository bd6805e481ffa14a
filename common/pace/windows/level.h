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
// The coordinator waits for the answers of all members that live. It does not wait for two kinds:
//   - The dead. A member calls another one dead if their link has ended and the port of the other refuses a
//     connection. A process that has said that it heard LEVEL is not dead. Else it is dead at once if all
//     members that have answered call it dead, and no more are called dead than have answered. After a
//     heartbeat the word of one member is enough.
//   - Those that hang. The others have waited for its part of a step for step_timeout, or it has said itself
//     that it cannot go on. Then it has not answered LEVEL for step_timeout.
// Such a process is dropped. If it lives, it joins again and fetches the state.
//
// A member whose learner goes on, and that does not say so, would keep the run where it is: nothing is committed that
// it does not say. If one member stands at the end of the windows, or has stopped, the others have all that they need to
// get there. So once it has been there for step_timeout and a lease, and another one does not say so, that counts as a
// break, too. LEVEL is said, and a member that does not answer it within step_timeout is dropped.
//
// Two answers differ by one step at most. If they do not, the ones that fewest others fit are false. Their
// members are left out.
//
// A group may break without a step, and nobody has died: it has no data, say. From the third such break in
// a row on, the run waits before it opens the next window: a quarter of a heartbeat, then twice as long each
// time, a lease at most.
//
// If no member lives, the window stays open: its members may only be out of reach, and they alone
// hold its newest steps. It is closed where it is committed when all of them have died for certain,
// or when enough others have waited for PACE_SEARCH_LEASES leases, and what is committed is kept elsewhere.
//
// Pure; part of windows.c.

#include "common/pace/windows/windows.h"

// Notes since when some wait at the end of the windows for others. To be called before level_is_due.
void level_watch(struct windows *self, const struct turn *turn);

// Whether the open windows have broken, or LEVEL is under way.
bool level_is_due(const struct windows *self, const struct turn *turn);

// Sends LEVEL, or closes the windows when all have answered.
void level_settle(struct windows *self, const struct turn *turn);

// No member of the open windows lives.
bool level_is_lonely(const struct windows *self, const struct run *run);
// What such a run waits for. In self->lacks.
const char *level_lonely_words(struct windows *self, const struct turn *turn);

// Whose answer to LEVEL has been waited for, for more than a heartbeat: "waiting for trainer-2 to say where it stands".
// NULL: nobody's. Lives until the next call.
const char *level_waits(struct windows *self, const struct turn *turn);

// When level_settle is due by the clock; 0: never.
uint64_t level_due_ms(const struct windows *self, const struct turn *turn);

// A member cannot go on, or says who is dead.
void level_hear(struct windows *self, const struct turn *turn, uint32_t member,
                const struct wire_stands *said);
