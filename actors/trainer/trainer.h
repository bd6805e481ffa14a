#pragma once
// trainer -- holds a replica, trains the batches that the seed deals to it, publishes results.
//
//   ROUND ─▶ TRAIN ─▶ TRAINED ─▶ journal ─▶ CLAIM to the elected witnesses (until acknowledged) and as news
//                                               │
//   others' CLAIMs ─▶ FETCH payloads ─▶ seen ─▶ VOTE, if elected            COMMIT ─▶ APPLY ─▶ next ROUND
//
// While the learner trains, the payloads of others already flow. A claim and a vote are journalled
// before they are sent: after a restart a round that has one in the journal is sat out. The residual
// that a result leads to is adopted when a commit accepts the result, and forgotten otherwise.
//
// Pure; the learner, the bulk store and the sockets are the shell's (trainer_main.c).

#include "common/pace/rounds/auditor.h"
#include "common/pace/rounds/challenge.h"
#include "common/pace/rounds/witness.h"
#include "common/member/replica.h"

struct trainer {
    struct member member; // First: what all members share
    struct blobs blobs;
    struct replica replica;
    struct witness witness;
    uint64_t training_round; // The learner is at work on it; 0: it is not
    bool made_anew;          // That round, since: other samples are ours
    uint64_t tried_round;    // No second attempt at the same round, unless the first failed:
    uint64_t retry_ms;       // then not before this
    struct auditor auditor;
    struct challenges challenges;
    struct wire_claim claim; // The newest result of ours
    struct hash claim_name;
    bool acknowledged[WITNESSES_MAX]; // By place among the round's witnesses
    uint64_t resend_ms;
    struct interval samples[TABLE_INTERVALS_MAX]; // Scratch of one TRAIN
};

// Zeroed memory, the member's "given by the shell" fields filled in.
void trainer_init(struct trainer *self);
void trainer_step(void *self, const struct msg *in, struct outbox *out);
