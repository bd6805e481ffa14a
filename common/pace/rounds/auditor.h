#pragma once
// auditor -- recomputes another member's result, if the round says that it is ours to do.
//
//   ROUND ─▶ waits for REVEAL ─▶ fetches the residual ─▶ RECOMPUTE ─▶ FINDING to the coordinator
//                 └─ not within the lease, or its author left or restarted ─▶ FINDING withheld
//
// The claim is known by its hash, which the round names, so nobody but its author can show it, and
// nothing it says can be bent. The learner fetches the samples itself and makes the parameters of
// that step again from what it pinned and applied. Part of a core: pure.

#include "common/member/replica.h"
#include "common/pace/rounds/round_view.h"

struct auditor {
    uint64_t round; // That we audit in; 0: in none
    uint64_t since_ms, resend_ms;
    uint64_t instance; // Of the author's process when the round began
    uint32_t place;    // Of our audit in the round
    bool revealed, computing, found, acknowledged;
    struct wire_reveal reveal;
    struct wire_finding finding;
};

// A round was opened: what the last one needed is forgotten.
void auditor_begin(struct auditor *self, const struct round_view *view, const struct turn *turn);
void auditor_hear_reveal(struct auditor *self, const struct round_view *view,
                         const struct turn *turn);
void auditor_hear_recomputed(struct auditor *self, const struct wire_finding *finding);
void auditor_hear_ack(struct auditor *self, const struct wire_ack *ack);
// The coordinator has forgotten, perhaps: said again.
void auditor_say_again(struct auditor *self);
void auditor_advance(struct auditor *self, const struct round_view *view, const struct turn *turn);
