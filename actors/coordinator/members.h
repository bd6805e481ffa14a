#pragma once
// members -- who comes, stays and goes: JOIN, PING, LEAVE, and leases that run out.
//
// Part of the coordinator's core: pure.

#include "common/actor/msg.h"
#include "common/wire/wire.h"

struct turn;

// What a JOIN makes of the member: others may have to forget what they know of that place.
enum arrival {
    ARRIVAL_NONE,       // Refused, or as before
    ARRIVAL_STAYS,      // Another process, or another address; the member goes on
    ARRIVAL_RETURNS,    // It had gone, or waits
    ARRIVAL_TAKES_PLACE // It is new at this place
};

// `ret_member` is written if an arrival is returned.
enum arrival members_hear_join(const struct turn *turn, const struct msg *in, uint32_t *ret_member);
void members_hear_ping(const struct turn *turn, const struct msg *in);
void members_hear_leave(const struct turn *turn, const struct msg *in);
void members_check_leases(const struct turn *turn);
