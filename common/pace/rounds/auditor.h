#pragma once
// auditor -- recomputes another member's result, if the round assigns us that audit.
//
//   ROUND ─▶ RECOMPUTE ahead: the gradient
//      └──▶ waits for REVEAL ─▶ fetches the residual ─▶ RECOMPUTE ─▶ FINDING to the coordinator
//                 └─ not within the lease, or its author left or restarted ─▶ FINDING withheld
//
// The round names the hash of the audited claim, so a REVEAL cannot show a different claim. It
// counts only if the claim's author sent it. The learner fetches the samples itself and rebuilds
// the parameters of that step from what it pinned and applied. Part of a core: pure.

#include "common/member/replica.h"
#include "common/pace/rounds/round_view.h"

struct auditor {
    uint64_t round; // The round of our audit; 0: we have none
    uint64_t since_ms, resend_ms;
    uint64_t instance; // Of the author's process when the round began
    uint32_t place;    // Index of our audit in the round
    bool begun;        // The learner was told what to recompute
    bool revealed, computing, found, acknowledged;
    struct wire_reveal reveal;
    struct wire_finding finding;
};

// A round was opened: drops the audit of the last one, and takes ours if there is one.
void auditor_begin(struct auditor *self, const struct round_view *view,
                   const struct member_turn *turn);
void auditor_hear_reveal(struct auditor *self, const struct round_view *view,
                         const struct member_turn *turn);
void auditor_hear_recomputed(struct auditor *self, const struct wire_finding *finding);
void auditor_hear_ack(struct auditor *self, const struct wire_ack *ack);
// The coordinator restarted and may have lost the finding: sends it again.
void auditor_say_again(struct auditor *self);
void auditor_advance(struct auditor *self, const struct round_view *view,
                     const struct member_turn *turn);
