#pragma once
// standing -- where the members of the group stand, by their newest STANDS.
//
// What a member says counts only of the process that the window names, and only within the windows that are open:
// nobody can hold a step that no open window justifies.
//
// Pure; part of windows.c.

#include "common/pace/windows/windows.h"

// STANDS. Whoever is no trainer of the run, or another process of it, is refused or ignored.
void standing_hear(struct windows *self, const struct turn *turn, const struct msg *in);

// Whether this process is in the run, and its lease has not run out.
bool standing_is_intact(const struct run *run, const struct wire_place *place);

// The same, and it is not left out of the group.
bool standing_stays(const struct windows *self, const struct run *run,
                    const struct wire_place *place);

// Whether the links of this trainer's process are known.
bool standing_has_links(const struct windows *self, const struct run *run, uint32_t member);

// Whether this process may hold the run's step: it took part in the newest window, or has said so. A share is of no use
// once another member of the window has lost its own.
bool standing_may_hold(const struct windows *self, const struct turn *turn, uint32_t member);

// Whether this process has said that it has only its share of the state.
bool standing_has_part(const struct windows *self, const struct turn *turn, uint32_t member);

// Whether this process has said that it is one step before the newest, and has all that this step needs.
bool standing_is_near(const struct windows *self, const struct turn *turn, uint32_t member);

// The places that do not say that they are at the end of the open windows, or that they have stopped, although another
// one does; 0: nobody does, or all do. For more than a moment, these say less than they have done: nobody takes a step
// before all have what it needs.
uint64_t standing_behind(const struct windows *self, const struct run *run);

// Where the group's member at this place stands, as far as it counts: within the open windows. False: it has said
// nothing that counts.
bool standing_step(const struct windows *self, const struct run *run, uint32_t place,
                   uint64_t *ret_step);

// How far all of the group have come. One that has said nothing yet has come nowhere.
uint64_t standing_slowest(const struct windows *self, const struct run *run);

// All have ended at the same step, because one of them asked for it. A stop of a closed window does not count for
// the next one.
bool standing_has_stopped(const struct windows *self, const struct run *run, uint64_t *ret_step);

// Puts on record that a save is whole, if it is that of the newest step that was saved.
void standing_register(const struct windows *self, const struct turn *turn);
