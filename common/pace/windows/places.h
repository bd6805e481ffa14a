#pragma once
// places -- who computes in a group, who owns, and whether they are enough.
//
//     place     0 ... 3    4   5   6         servers = 3
//               trainers   servers           each part in the order of the roster
//
// A group needs min_clients trainers and, where the run has parameter servers, exactly as many as the configuration says:
// a share of the state is with each. A server more stands by. Without servers each trainer owns its share, too.
//
// Pure.

#include "common/pace/windows/windows.h"

// Whether a group can be chosen of these.
bool places_are_enough(const struct turn *turn, const struct wire_place *group, uint32_t count);

// Takes the servers that are too many out of the group: first those that are not in the newest group, then the later
// ones. Returns how many members are left.
uint32_t places_without_spare(const struct turn *turn, struct wire_place *group, uint32_t count);

// The places of the oldest open window that own shares of the state, as bits: those of its servers; without servers all.
uint64_t places_that_own(const struct turn *turn);

// The first place of a group that owns a share: those behind it do so, too.
uint32_t places_first_owner(const struct turn *turn, const struct wire_window *window);

// How many servers of this group are here, and how many it has to have.
uint32_t places_servers(const struct run *run, const struct wire_place *group, uint32_t count);
uint32_t places_servers_wanted(const struct turn *turn);
