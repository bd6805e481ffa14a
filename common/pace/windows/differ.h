#pragma once
// differ -- the states of a group's members are not the same bits any more: a machine's memory lost a
// bit, or a kernel computed something else. Nobody is a liar for it.
//
//     HAVE of step k: checks of the state before k differ ─▶ BROKE, STANDS "differ" ─▶ LEVEL
//       ─▶ STEPS: closed at k, names the places
//            a majority is equal ─▶ the minority is left out, and fetches the state at the next barrier
//            none is             ─▶ the epoch ends: the whole digests decide, or the run pauses
//
// What is promised: each leaf of the state (64 KiB) is compared once in min(256, leaves) steps
// (state_cut.h), in every step that a group of two or more takes. So a state that changed by itself is
// found at most so many steps later; and the step at which it is found is applied by nobody. If a member
// dies or the window is closed just there, that step may be applied from memory, unseen; then the next
// turn of the same leaf finds it.
//
// What is not promised: the steps before it stay committed, because nobody can tell which of them were
// spoiled. The member that differs computed the gradients of its lanes with the wrong parameters,
// and they are in the sums. But all members added the same sums, so all others still hold the same bits;
// it is only not the state that an undisturbed trainer alone would hold. Each optimizer works float by
// float, so the fault stays in the floats where it arose.
//
// What a member that was named holds is not taken for the run's, not even if all others have ended: it is known to
// be wrong. The run goes back to its newest checkpoint; a run that has none waits, and says so.
//
// A machine that errs again and again costs a barrier each time, and no more often than joiners do
// (rule 6 of windows.h). The log names it each time: stop it.
//
// If at the end of an epoch the digests of the whole state differ, the same majority decides
// (coordinator/epoch.c): the minority fetches what differs, and without a majority the run pauses and
// names both sides. To go on, stop the member that is wrong, or go back to the newest checkpoint.
//
// Pure; part of windows.c.

#include "common/pace/windows/windows.h"

// What a closing of the open windows at `end` says, by what their members said: places of the oldest
// window; 0: the states do not differ, as far as anybody knows.
uint64_t differ_find(const struct windows *self, const struct run *run, uint64_t end);

// A note that names the members on both sides.
void differ_note(const struct turn *turn, uint64_t end, uint64_t differ);

// Whether the run's epoch is to end, because no majority of the group held the same state.
bool differ_ends_epoch(const struct run *run);
