#pragma once
// closing -- who of the group lives, and how it puts its state together.
//
//     no task is out ─▶ RECORD_CLOSE, attempt 1 ─▶ CLOSE_GROUP ─▶ SETTLED of each ─▶ RECORD_SETTLED: over
//                          ▲ a trainer died, did not come to it in settle_ms, or said that it could not │
//                          └────────── attempt 2, with those that are left ◀────────────────────────────┘
//     a server died, or did not come to it: the group is lost
//
// An attempt that somebody could not finish is made again with the same members, at most once a heartbeat, until
// settle_ms is over: the coordinator may hear later than they do that one of them has died.
//
// Pure; part of leases_pace.c.

#include "common/pace/leases/leases_pace.h"

void closing_hear(struct lease_pace *self, const struct turn *turn, const struct msg *in);

// Drops those whom others call dead, once they have been silent since then.
void closing_watch(struct lease_pace *self, const struct turn *turn);

// Why the open group is lost, as a sentence that names a server: it is gone, cannot go on, or did not put the state
// together. NULL: it is not.
const char *closing_lost(struct lease_pace *self, const struct turn *turn);

// Goes on with closing the group, from which no task is out. True: all have settled, and that is on record.
bool closing_settle(struct lease_pace *self, const struct turn *turn);

// Whether this process has answered the newest attempt, which is for the run's step: it holds all of it.
bool closing_has_settled(const struct lease_pace *self, const struct turn *turn, uint32_t member,
                         uint64_t instance);

// For an actor that asks: CLOSE_GROUP, if it is in the newest attempt.
void closing_tell(const struct turn *turn, const char *to);

// Whom the group waits for, as a sentence; NULL: for nobody.
const char *closing_lacks(struct lease_pace *self, const struct turn *turn);

// When something here is due if no message comes; 0: never.
uint64_t closing_due_ms(const struct lease_pace *self, const struct turn *turn);

// "t1, s1": the members in these places.
void closing_list(const struct run *run, uint64_t places, char *text, size_t max);
