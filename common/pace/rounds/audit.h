#pragma once
// audit -- results are recomputed by chance, and liars are ejected: what is drawn, found, and done about
// it. How many must agree is in verdict.h. Two claims of one round are heard here as well.
//
// Part of the coordinator's core: pure.

#include "common/pace/rounds/tally.h"
#include "common/actor/msg.h"
#include "common/pace/rounds/draw.h"
#include "common/pace/rounds/claims.h"

struct turn;

enum { CLAIM_AGE_MAX = 2 }; // Rounds: two claims of an older one prove nothing any more

// What a member does amiss adds up, and each round in which it takes part takes one away: unhealthy_rounds
// missed in a row are too much, and so is one in five for long.
enum { AMISS_ROUND = 4 };
struct testimony {
    uint64_t round;
    struct hash name;
    bool asked; // For the claim that was accepted in its place
    uint32_t bytes;
    uint8_t frame[CLAIM_FRAME_MAX];
};

struct audit {
    struct draw draw;                              // The newest
    uint32_t amiss[MEMBERS_MAX];                   // Of late, in quarters of a round
    uint32_t accepted_of[MEMBERS_MAX];             // Members, as the newest commit's results
    struct wire_client accepted_by[WITNESSES_MAX]; // Who could vote for them
    uint32_t accepted_by_count;
    // The first claim that was shown of each member and round, by round modulo: whoever shows its own
    // of another round meanwhile puts none out of the way.
    struct testimony testimonies[MEMBERS_MAX][CLAIM_AGE_MAX + 1];
};

// What a draw made of disputes is told, and what was left undecided counts against both parties.
void audit_hear_draw(struct audit *self, const struct turn *turn, const struct wire_round *drawn);
struct hash audit_lock(const struct turn *turn, uint64_t round); // Of the round's key, or none
struct hash audit_reveal(const struct turn *turn);               // The key of the open round
// After a restart: a verdict that is on record, its ejection not yet, is carried out.
void audit_resume(const struct turn *turn);
void audit_hear_finding(struct audit *self, const struct turn *turn, const struct msg *in);
void audit_hear_testimony(struct audit *self, const struct turn *turn, const struct msg *in);
bool audit_is_over(const struct turn *turn); // No live auditor is waited for
void audit_tell_missing(const struct turn *turn);
// Two results of one client are named: some who voted are asked for the claims. `place`: the voter's.
void audit_ask_rivals(struct tally *tally, const struct turn *turn, uint32_t place,
                      const struct wire_vote *vote);
