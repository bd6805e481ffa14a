#pragma once
// rounds -- a pace for strangers, the coordinator's half: each round is opened as it was drawn, proved by its
// witnesses, and committed.
//
//     open ─▶ votes, findings ─▶ RoundWitness ─▶ commit ─▶ the next, or the epoch is over
//
//   rounds.[hc]            counts votes, settles; the table of functions that pace.h asks for
//   rounds_run.[hc]        the durable half
//   round, draw, verdict   the newest round; the next one as chance has it; what judges come to
//   tally, audit           the votes of one round; results recomputed, and liars ejected
//   rounds_evidence.[hc]   what its records prove
//   rounds_member.[hc]     the member's half, and all below it
//
//   RoundTrain → RoundWitness       a quorum of votes lacks nothing, or the time is up
//   RoundWitness → commit           a quorum of votes and nothing left to wait for, or the time is up
//   commit → RoundTrain | Cooldown  Cooldown: epoch over, too few members or votes, all steps done, pause
//
// Hearing only records what a message says; settle alone decides what has ripened. Part of the coordinator's
// core: pure.

#include "common/pace/pace.h"
#include "common/pace/rounds/audit.h"
#include "common/pace/rounds/bloom.h"
#include "common/pace/rounds/rounds_run.h"
#include "common/run/assignment.h"

// All of it may be forgotten: it is rebuilt from what members say again.
struct rounds {
    uint64_t round_began_ms, trained_ms;
    bool unproved; // The newest round had no quorum of votes
    struct tally tally;
    struct wire_accepted accepted[MEMBERS_MAX]; // Of the commit being made
    struct hash items[MEMBERS_MAX]; // SHA-256 of each client's key: what participants' blooms hold
    uint64_t bloom_words[BLOOM_WORDS(MEMBERS_MAX)];
    uint32_t trainers[MEMBERS_MAX];
    struct share shares[MEMBERS_MAX];
    uint32_t by_trainer[MEMBERS_MAX];
    struct deal deal; // Who trains what in the open round
    struct audit audit;
};

extern const struct pace pace_rounds;

// The live half, of memory that a coordinator keeps for its pace.
static inline const struct rounds *rounds_live(const void *live) { return live; }
