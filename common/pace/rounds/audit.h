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

enum {
    CLAIM_AGE_MAX = 2,                  // Rounds: two claims of an older one prove nothing any more
    CLAIM_COPIES_MAX = MEMBERS_MAX / 2, // More than the third of the members that may lie
};

// Faults add to a member's fault score; each round it takes part in takes one away. unhealthy_rounds
// missed in a row are too much, and so is one in twenty for long: each of them costs all others up to two
// rounds, so a member that is late now and then costs a tenth. Where rounds are short beside
// min_round_train_time a missed one costs much more, and as many more rounds take one away, at most
// FAULT_HEAL_MAX.
enum { FAULT_ROUND = 20, FAULT_HEAL_MAX = 10 };

// A claim that was shown. The first of each author and round is kept for each member that shows one. When
// there is no more room, the member that has shown the most gives up its oldest. So nobody pushes out what
// others show, or takes their room, by showing much: each member keeps at least an equal share.
struct claim_copy {
    uint64_t number; // In the order in which they were shown; 0: nothing is kept here
    uint64_t round;
    uint32_t author, shower;
    struct hash name;
    uint16_t bytes; // Of its frame
    bool asked;     // For the claim that was accepted in its place
};

struct audit {
    struct draw draw;                  // The newest
    uint32_t fault_score[MEMBERS_MAX]; // Of late, in twentieths of a round
    uint8_t heal[MEMBERS_MAX];         // Rounds that take one away, 0 as 1
    uint8_t healed[MEMBERS_MAX];       // Of them, those since the last one was taken away
    uint32_t probation[MEMBERS_MAX];   // What one begins with that was dropped and returns
    uint64_t missed_ms[MEMBERS_MAX];   // How long the rounds took that it missed of late
    uint32_t accepted_of[MEMBERS_MAX]; // Members, as the newest commit's results
    struct wire_client accepted_by[WITNESSES_MAX]; // Who could vote for them
    uint32_t accepted_by_count;
    uint64_t shown;              // Claims kept so far
    uint32_t claim_copies_count; // Places that were ever used
    struct claim_copy claim_copies[CLAIM_COPIES_MAX];
    uint8_t frames[CLAIM_COPIES_MAX]
                  [CLAIM_FRAME_MAX]; // Of the claims, as their authors signed them
    uint16_t held[MEMBERS_MAX];      // Scratch: claims kept for each member
};

// What a draw made of disputes is told, and what was left undecided counts against both parties.
void audit_hear_draw(struct audit *self, const struct turn *turn, const struct wire_round *drawn);
struct hash audit_lock(const struct turn *turn, uint64_t round); // Of the round's key, or none
struct hash audit_reveal(const struct turn *turn);               // The key of the open round
// After a restart: a verdict that is on record, its ejection not yet, is carried out.
void audit_resume(const struct turn *turn);
void audit_hear_finding(struct audit *self, const struct turn *turn, const struct msg *in);
void audit_hear_claim_copy(struct audit *self, const struct turn *turn, const struct msg *in);
void audit_forget(struct audit *self, uint32_t author); // Its claims: another has taken its place
// No live auditor is waited for. `is_late`: nor one whose result began from zero.
bool audit_is_over(const struct turn *turn, bool is_late);
void audit_tell_missing(const struct turn *turn);
// Two results of one client are named: some who voted are asked for the claims. `place`: the voter's.
void audit_ask_rivals(struct tally *tally, const struct turn *turn, uint32_t place,
                      const struct wire_vote *vote);
