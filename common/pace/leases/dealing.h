#pragma once
// dealing -- who gets a task, and how leases end.
//
//     GET_TASK ─▶ idle ─▶ leases_next ─▶ RECORD_LEASE ─▶ TASK
//                  └ no task now: NOT_NOW, and it is remembered ─▶ a lease ends ─▶ RECORD_LEASE, TASK
//     TASK_END, a time that is over, a dead holder ─▶ RECORD_LEASE_END
//
// A trainer has one lease at a time, so whatever is said twice leads to one task: GET_TASK that comes again is
// answered with the lease that is out; an end that comes again is acknowledged again; and one that is over otherwise
// is refused.
//
// Pure; part of leases_pace.c.

#include "common/pace/leases/leases_pace.h"

void dealing_hear_get(struct lease_pace *self, const struct turn *turn, const struct msg *in);
void dealing_hear_end(struct lease_pace *self, const struct turn *turn, const struct msg *in);

// Ends each lease whose time is over, or whose holder is not able any more.
void dealing_return(struct lease_pace *self, const struct turn *turn);

// Commits a step of what the group did that is about to be closed (leases_run_must_step).
void dealing_step(const struct turn *turn);

// Deals to those that wait, in the order in which they asked.
void dealing_deal(struct lease_pace *self, const struct turn *turn);

// When one that lacked samples may have a task again; 0: nobody waits for that.
uint64_t dealing_due_ms(const struct lease_pace *self, const struct turn *turn);

// Tells those that asked in this turn and got none that they wait. `ends`: why the epoch ends; NULL: it goes on.
void dealing_answer(struct lease_pace *self, const struct turn *turn, const char *ends);
