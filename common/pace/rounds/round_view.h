#pragma once
// round_view -- the newest round, as every member of a run knows it.
//
//     ROUND ─▶ newer than the known one, and sound? ─▶ kept, with the share of each trainer
//
// The number of the newest round is also in the member (member->round), for pings and beats. A
// struct round_view is a value of about 6 MiB, most of it never touched: use zeroed memory. Part of
// a core: pure.

#include "common/member/parts.h"
#include "common/run/assignment.h"
#include "common/pace/rounds/round.h"

struct round_view {
    struct round round; // The newest ROUND. Its field `last` stays empty: replay keeps the commits
    bool opened;        // The message of this turn brought the round
    struct deal deal;   // The share of each trainer; its lists are below
    struct share shares[MEMBERS_MAX];
    uint32_t by_trainer[MEMBERS_MAX], trainers[MEMBERS_MAX];
};

// As a part of a role, before the parts that use it: takes a ROUND.
void round_view_hear(void *self, const struct member_turn *turn);

// True if the newest round is open: RUN names it, and RUN's phase makes steps.
bool round_view_is_open(const struct round_view *self, const struct member *member);

// Our index among the round's clients, or NO_MEMBER. True if we are one of its witnesses.
uint32_t round_view_own_place(const struct round_view *self, const struct member *member);
bool round_view_elects_us(const struct round_view *self, const struct member *member);

// The roster's line of a client, or NULL.
const struct wire_member *round_view_client(const struct round_view *self,
                                            const struct member *member, uint32_t client);
