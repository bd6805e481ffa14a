#pragma once
// muster -- who is in a group: all healthy trainers, and as many parameter servers as the configuration says.
//
//     here, links known ─▶ healthy when Warmup begins ─▶ holds the state ─▶ in the group
//     a server too many stays pending: it takes the place of one that dies
//     a trainer whose links break in two groups in a row is in none for a while (LEASES_CUT_TIMES)
//
// Of the servers those of the newest group go first, so that a spare does not drive out one that has the run's state.
//
// Pure; part of leases_pace.c.

#include "common/pace/leases/leases_pace.h"

// The group of an epoch that begins now, in the order of leases_group.h. Returns how many members it has.
uint32_t muster_choose(const struct lease_pace *self, const struct turn *turn,
                       struct wire_place group[LEASES_GROUP_MAX]);

// Whether this process is in the newest group.
bool muster_is_in_group(const struct run *run, uint32_t member);

// Why an epoch cannot begin, as a sentence that lives until the next call; NULL: it can.
const char *muster_lacks(struct lease_pace *self, const struct turn *turn);

// The group has ended: counts whose links broke in it, or did not form, and who is in no group for a while.
void muster_note_cuts(struct lease_pace *self, const struct turn *turn);

// For how many ms more this trainer is in no group, since its links broke; 0: it may be in one.
uint64_t muster_cut_ms(const struct lease_pace *self, const struct turn *turn, uint32_t member);

// Whether a healthy epoch begins without this member.
bool muster_stays_pending(const struct turn *turn, uint32_t member);

// The trainer that waits to join and may, also one of the group whose links broke; NO_MEMBER: none does. With `soon`,
// also one that has to wait longer.
uint32_t muster_joiner(const struct lease_pace *self, const struct turn *turn, bool soon);

// Until a joiner may end the epoch; 0: it may now.
uint64_t muster_wait_ms(const struct lease_pace *self, const struct turn *turn);

// What the end of an epoch costs is measured from the moment when the group begins to put its state together (_look; or,
// after _again, from the moment when it does so without members that did not come), through the end of the group (_over),
// until the next one begins (_end). _resume: the coordinator was started in Warmup.
void muster_barrier_look(struct lease_pace *self, const struct turn *turn, bool closes);
void muster_barrier_again(struct lease_pace *self, const struct turn *turn);
void muster_barrier_over(struct lease_pace *self, const struct turn *turn);
void muster_barrier_resume(struct lease_pace *self, const struct turn *turn);
void muster_barrier_end(struct lease_pace *self, const struct turn *turn);
