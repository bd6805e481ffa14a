#pragma once
// rounds_member -- the member's half of rounds, as one part of a role.
//
//   ROUND ─▶ training ─▶ CLAIM to the elected witnesses and as news
//                              │
//   others' CLAIMs ─▶ FETCH payloads ─▶ witness: VOTE, if elected ─▶ COMMIT ─▶ replay: APPLY
//                                                                       │
//             a later ROUND names the result ─▶ challenge: REVEAL ─▶ another's auditor: FINDING
//
// While the learner trains, the payloads of others already flow. The residual that a result leads to is
// adopted when a commit accepts the result, and forgotten otherwise. Part of a core: pure.

#include "common/pace/rounds/auditor.h"
#include "common/pace/rounds/challenge.h"
#include "common/pace/rounds/replay.h"
#include "common/pace/rounds/round_view.h"
#include "common/pace/rounds/training.h"
#include "common/pace/rounds/witness.h"

struct rounds_member {
    struct replay replay;
    struct round_view view;
    struct training training;
    struct challenges challenges; // Audits of our own results
    struct auditor auditor;       // Of another member's
    struct witness witness;
};

// As a part of a role: zeroed memory is its beginning. It comes behind the replica and before the blobs. A
// role without a replica is a witness alone.
void rounds_member_hear(void *self, const struct turn *turn);
void rounds_member_look(void *self, const struct turn *turn);
