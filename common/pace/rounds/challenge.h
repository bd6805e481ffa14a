#pragma once
// challenge -- answers an audit of our own result: reveals its starting residual.
//
//   ROUND names our result ─▶ SHOW ─▶ the residual lies in the store ─▶ REVEAL to each auditor,
//                                                                      retried while it is open
//
// The learner keeps the starting residual of the newest adopted result until it makes the next
// result, so SHOW comes before TRAIN. A trainer that restarted in between cannot answer. Part of a
// core: pure.

#include "common/member/blobs.h"
#include "common/pace/rounds/round_view.h"

// Our results that the open round may audit or judge: one of each of the last AUDIT_TRIES_MAX + 1
// rounds, and one to spare.
enum { CHALLENGES_MAX = AUDIT_TRIES_MAX + 2 };

struct challenge {
    struct hash result; // The audited result; none: this entry is free
    struct wire_reveal reveal;
    bool ready;         // It can be revealed
    uint64_t resend_ms; // No REVEAL before this
};

struct challenges {
    struct challenge all[CHALLENGES_MAX];
    uint32_t next;
};

// A round was opened. `claim` is our newest result and `claim_name` its hash. If the round audits
// it, sends SHOW, unless the result began from the declared zero. An earlier result that the round
// judges is revealed again. Results that are too old to be judged are dropped.
void challenge_begin(struct challenges *self, const struct round_view *view,
                     const struct wire_claim *claim, const struct hash *claim_name,
                     const struct member_turn *turn);

// The learner's answer to SHOW. The residual stays in the store until the result is dropped. If the
// learner does not have it, a note says so and nothing is revealed. A residual that no audited
// result waits for is removed.
void challenge_hear_shown(struct challenges *self, struct blobs *blobs,
                          const struct wire_shown *shown, struct outbox *out);

// Sends what is ready to each auditor and judge of it in the open round; again every
// MEMBER_RETRY_MS, since nobody acknowledges a REVEAL.
void challenge_send(struct challenges *self, const struct round_view *view,
                    const struct member_turn *turn);
