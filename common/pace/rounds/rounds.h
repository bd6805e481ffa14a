#pragma once
// rounds -- one round of training: opened as it was drawn, proved by its witnesses, committed.
//
//     rounds_open ─▶ votes, findings ─▶ RoundWitness ─▶ commit ─▶ the next, or the epoch is over
//
// Hearing only records what a message says. rounds_settle alone decides what has ripened.
//
// Part of the coordinator's core: pure.

#include "common/pace/rounds/audit.h"
#include "common/run/assignment.h"
#include "common/pace/rounds/bloom.h"

// All of it may be forgotten: it is rebuilt from what members say again.
struct rounds {
    uint64_t round_began_ms, trained_ms;
    bool unproved; // The newest round had no quorum of votes
    struct tally tally;
    struct wire_accepted accepted[MEMBERS_MAX]; // Of the commit being made
    struct interval returned[TABLE_INTERVALS_MAX];
    struct hash items[MEMBERS_MAX]; // SHA-256 of each client's key: what participants' blooms hold
    uint64_t bloom_words[BLOOM_WORDS(MEMBERS_MAX)];
    uint32_t trainers[MEMBERS_MAX];
    struct share shares[MEMBERS_MAX];
    uint32_t by_trainer[MEMBERS_MAX];
    struct deal deal; // Who trains what in the open round
    struct audit audit;
};

void rounds_open(struct rounds *self, const struct turn *turn);
void rounds_resume(struct rounds *self,
                   const struct turn *turn); // After a restart, from the record

void rounds_hear_vote(struct rounds *self, const struct turn *turn, const struct msg *in);

// A member has come back, or another one has taken its place.
void rounds_hear_arrival(struct rounds *self, uint32_t member, bool takes_place);

// Why no round can open, in plain words, or NULL: a witness or the data is missing.
const char *rounds_lacks(const struct turn *turn);

// Does what has ripened in RoundTrain and RoundWitness. Returns why the epoch is over, or NULL.
const char *rounds_settle(struct rounds *self, const struct turn *turn);
