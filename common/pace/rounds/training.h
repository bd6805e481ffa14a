#pragma once
// training -- trains the batch that the seed deals to this member in a round, and claims the result.
//
//   ROUND ─▶ TRAIN ─▶ TRAINED ─▶ journal ─▶ CLAIM as news, and to the elected witnesses until acknowledged
//              ▲          └─ not ok: again while the round is open
//              └─ sat out, if the journal has a claim of the round: this life knows nothing of that one
//
// A claim is journalled before it is sent: two claims of one round would eject their author. What the
// learner began for a round that was made anew since, or on other parameters, is thrown away. Part of a
// core: pure.

#include "common/member/replica.h"
#include "common/pace/rounds/round_view.h"

struct training {
    uint64_t training_round; // The learner is at work on it; 0: it is not
    bool made_anew;          // That round, since: other samples are ours
    uint64_t tried_round;    // No second attempt at the same round, unless the first failed:
    uint64_t retry_ms;       // then not before this
    struct wire_claim claim; // The newest result of ours
    struct hash claim_name;
    bool acknowledged[WITNESSES_MAX]; // By place among the round's witnesses
    uint64_t resend_ms;
    struct interval samples[TABLE_INTERVALS_MAX]; // Scratch of one TRAIN
};

// A round was opened.
void training_hear_round(struct training *self, const struct round_view *view);

// The learner has trained. True if the result is claimed: `claim` is in the journal, and then sent.
bool training_hear_trained(struct training *self, const struct round_view *view,
                           const struct turn *turn);

// An ACK by mail, whoever signed it: an elected witness has the claim.
void training_hear_ack(struct training *self, const struct round_view *view,
                       const struct turn *turn);

// All has been heard: trains if it is time to, sends the claim once more if that is due.
void training_advance(struct training *self, const struct round_view *view,
                      const struct turn *turn);
