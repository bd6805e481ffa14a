#pragma once
// training -- trains the batch that the seed deals to this member in a round, and claims the
// result.
//
//   ROUND ─▶ TRAIN ─▶ TRAINED ─▶ journal ─▶ CLAIM as news, to each elected witness until its ACK
//              ▲          └─ failed: retry while the round is open
//              └─ skipped, if the journal has a claim of this round: it is of an earlier process
//
// A claim is journalled before it is sent, because two claims of one round would eject their
// author. A result is dropped if its round was opened again since it was begun, or if it is based
// on other parameters. Part of a core: pure.

#include "common/member/replica.h"
#include "common/pace/rounds/round_view.h"

struct training {
    uint64_t training_round; // The round that the learner trains now; 0: none
    bool reopened;           // That round was opened again since: our share may be another
    uint64_t tried_round;    // No second attempt at this round, unless the first one failed
    uint64_t retry_ms;       // After a failure: no attempt before this
    struct wire_claim claim; // Our newest result
    struct hash claim_name;
    bool acknowledged[WITNESSES_MAX]; // By index among the round's witnesses
    uint64_t resend_ms;
    struct interval samples[TABLE_INTERVALS_MAX]; // Scratch of one TRAIN
};

// A round was opened.
void training_hear_round(struct training *self, const struct round_view *view);

// The learner has trained. True if the result is claimed: the journal has it, and sending begins.
bool training_hear_trained(struct training *self, const struct round_view *view,
                           const struct member_turn *turn);

// An ACK by mail, by any sender: it counts if an elected witness signed it and it names our claim.
void training_hear_ack(struct training *self, const struct round_view *view,
                       const struct member_turn *turn);

// Trains if everything for that is ready; sends the claim again if a retry is due.
void training_advance(struct training *self, const struct round_view *view,
                      const struct member_turn *turn);
