#pragma once
// challenge -- answers an audit of our own result: shows what it started from.
//
//   ROUND names our result ─▶ SHOW ─▶ the residual lies in the store ─▶ REVEAL to each auditor, again
//                                                                      and again while the round is open
//
// The residual that the newest adopted result started from is still there until the next result is
// made, so SHOW comes before TRAIN. Who restarted in between cannot answer. Part of a core: pure.

#include "common/member/blobs.h"
#include "common/pace/rounds/round_view.h"

// Results of ours that are audited or judged at a time: one of each round, for as long as one may be.
enum { CHALLENGES_MAX = AUDIT_TRIES_MAX + 2 };

struct challenge {
    struct hash result; // Of which; none: this place is free
    struct wire_reveal reveal;
    bool ready; // It can be revealed
    uint64_t resend_ms;
};

struct challenges {
    struct challenge all[CHALLENGES_MAX];
    uint32_t next;
};

// A round was opened. `claim` is our newest result, by the name of `claim_name`.
void challenge_begin(struct challenges *self, const struct round_view *view,
                     const struct wire_claim *claim, const struct hash *claim_name,
                     const struct turn *turn);
void challenge_hear_shown(struct challenges *self, struct blobs *blobs,
                          const struct wire_shown *shown, struct outbox *out);
void challenge_send(struct challenges *self, const struct round_view *view,
                    const struct turn *turn);
