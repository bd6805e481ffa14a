#pragma once
// members -- members that join, stay and go: JOIN, PING, LEAVE, and leases that run out.
//
// A message that does not fit is refused with the reason. What changes a member is a record. A
// known member may cause 20 changes a minute by its JOINs and LEAVEs (members.c), so that it cannot
// fill the ledger; a change of a data provider may be two records, of the member and of the data.
//
// Part of the coordinator's core: pure, one thread; it borrows the turn for the call.

#include "common/actor/msg.h"
#include "common/wire/wire.h"

struct turn;
struct holdings;

// What a JOIN changed in the roster. Other parts may have to forget what they know of that index.
enum arrival {
    ARRIVAL_NONE,    // Refused, or nothing of the member has changed
    ARRIVAL_STAYS,   // A healthy member has a new process, address or name
    ARRIVAL_RETURNS, // A dropped, withdrawn or pending member has joined again
    ARRIVAL_NEW_KEY  // The index belongs to another key than before, or is new
};

// Admits the sender, or refuses it with the reason. ADMITTED tells it its index and state. A sender
// that is out for being late is refused, unless no epoch can begin or end without it (too few
// trainers are pending, too few members report the newest step, or too few are here in a Cooldown) or
// the run is finished. `holdings`: what members have reported. `ret_member`, the sender's index in the
// roster, is written unless the JOIN was refused.
enum arrival members_hear_join(const struct turn *turn, const struct holdings *holdings,
                               const struct msg *in, uint32_t *ret_member);

// Renews the sender's lease, and keeps the progress that it reports. Refuses a PING of no member,
// or of an older process of the member.
void members_hear_ping(const struct turn *turn, const struct msg *in);

// Withdraws the sender. Refuses it while the run needs what only it holds, and over the limit of
// changes. A LEAVE of no member, or of an older process, is acknowledged and changes nothing.
void members_hear_leave(const struct turn *turn, const struct msg *in);

// Drops each member that was silent for longer than its lease.
void members_check_leases(const struct turn *turn);
