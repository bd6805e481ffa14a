#pragma once
// rounds_member -- the member's half of rounds, as one part of a role.
//
//   ROUND ─▶ training ─▶ CLAIM to the elected witnesses and as news
//                              │
//   other CLAIMs ───▶ FETCH payloads ─▶ witness: VOTE, if elected ─▶ COMMIT ─▶ replay: APPLY
//                                                                       │
//             a later ROUND names the result ─▶ challenge: REVEAL ─▶ another's auditor: FINDING
//
// While the learner trains, the payloads of other members are already fetched. The residual after a
// result is adopted when a commit accepts the result, and dropped otherwise.
//
//     trainer        all of it
//     checkpointer   follows rounds and commits: replay
//     witness        witnesses
//     data provider  follows rounds
//
// Part of a core: pure.

#include "common/member/pace_part.h"
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
    struct auditor auditor;       // Our audit of another member's result
    struct witness witness;
};

extern const struct member_pace member_pace_rounds;

// For tests: the state of rounds in a role whose pace it is.
static inline const struct rounds_member *rounds_of(const struct pace_part *part)
{
    return (const void *)part->state;
}
