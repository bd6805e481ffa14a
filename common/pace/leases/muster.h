#pragma once
// muster -- who is in a group: all healthy trainers, and as many parameter servers as the configuration says.
//
//     here, links known ─▶ healthy when Warmup begins ─▶ holds the state ─▶ in the group
//     a server too many stays pending: it takes the place of one that dies
//
// Of the servers those of the newest group go first, so that a spare does not drive out one that has the run's state.
//
// Pure; part of leases_pace.c.

#include "common/pace/leases/leases_pace.h"

// The group of an epoch that begins now, in the order of leases_group.h. Returns how many members it has.
uint32_t muster_choose(const struct lease_pace *self, const struct turn *turn,
                       struct wire_place group[LEASES_GROUP_MAX]);

// Why an epoch cannot begin, as a sentence that lives until the next call; NULL: it can.
const char *muster_lacks(struct lease_pace *self, const struct turn *turn);

// Whether a healthy epoch begins without this member.
bool muster_stays_pending(const struct turn *turn, uint32_t member);

// The trainer that waits to join and may, also one of the group whose links broke; NO_MEMBER: none does. With `soon`,
// also one that has to wait longer.
uint32_t muster_joiner(const struct lease_pace *self, const struct turn *turn, bool soon);

// Until a joiner may end the epoch; 0: it may now.
uint64_t muster_wait_ms(const struct lease_pace *self, const struct turn *turn);

// A barrier begins: the epoch is over. And ends: a group begins.
void muster_barrier_begin(struct lease_pace *self, const struct turn *turn);
void muster_barrier_end(struct lease_pace *self, const struct turn *turn);
