#pragma once
// members -- members that join, stay and go: JOIN, PING, LEAVE, and leases that run out.
//
// A message that does not fit is refused with the reason. What changes a member is a record. A
// member may cause 20 records a minute by its own messages (members.c), so that it cannot fill the
// ledger.
//
// Part of the coordinator's core: pure, one thread; it borrows the turn for the call.

#include "common/actor/msg.h"
#include "common/wire/wire.h"

struct turn;
struct holdings;

// What a JOIN changed. Other parts may have to forget what they know of that place.
enum arrival {
    ARRIVAL_NONE,       // Refused, or a duplicate that changes nothing
    ARRIVAL_STAYS,      // A healthy member has a new process or a new address
    ARRIVAL_RETURNS,    // A member that was gone or waits is back
    ARRIVAL_TAKES_PLACE // The place belongs to another key than before, or is new
};

// Admits the sender, or refuses it with the reason. ADMITTED tells it its index and state. `holdings`: what members
// have reported; while nobody here holds the newest step, no sender is refused for being late. `ret_member`, its index in the roster, is written unless the JOIN was refused.
enum arrival members_hear_join(const struct turn *turn, const struct holdings *holdings,
                               const struct msg *in, uint32_t *ret_member);

// Keeps the progress that a member reports. Refuses the PING of an older process of that member.
void members_hear_ping(const struct turn *turn, const struct msg *in);

// Withdraws the member. Refuses it while nobody else holds what it holds.
void members_hear_leave(const struct turn *turn, const struct msg *in);

// Drops each member that was silent for longer than its lease.
void members_check_leases(const struct turn *turn);
