// When a round opens, results too old to be audited are dropped, and our newest result is taken up
// if the round audits it. Taking it up asks the learner for the residual (SHOW). Once that lies in
// the store, the REVEAL goes to every auditor of the result, again each MEMBER_RETRY_MS while the
// round is open.

#include "common/pace/rounds/challenge.h"
#include <inttypes.h>

static struct challenge *known(struct challenges *self, const struct hash *result)
{
    for (uint32_t i = 0; i < CHALLENGES_MAX; i++)
        if (hash_equal(&self->all[i].result, result)) return &self->all[i];
    return NULL;
}

static void forget(struct challenge *challenge, struct blobs *blobs, struct outbox *out)
{
    if (!hash_is_none(&challenge->reveal.residual.hash))
        blobs_release(blobs, &challenge->reveal.residual, out);
    *challenge = (struct challenge){ 0 };
}

static void take(struct challenges *self, struct blobs *blobs, const struct wire_claim *claim,
                 const struct hash *name, struct outbox *out)
{
    struct challenge *challenge = &self->all[self->next++ % CHALLENGES_MAX];
    forget(challenge, blobs, out);
    *challenge = (struct challenge){ .result = *name, .reveal.claim = *claim };
    challenge->ready = hash_is_none(&claim->residual_from); // The declared zero
    if (!challenge->ready)
        outbox_job(out, PORT_LEARNER, FRAME_SHOW,
                   &(struct wire_show){ claim->round, claim->residual_from });
}

void challenge_begin(struct challenges *self, const struct round_view *view,
                     const struct wire_claim *claim, const struct hash *claim_name,
                     const struct member_turn *turn)
{
    for (uint32_t i = 0; i < CHALLENGES_MAX; i++)
        if (self->all[i].reveal.claim.round + CHALLENGES_MAX < view->round.opened.round)
            forget(&self->all[i], turn->blobs, turn->out);
    for (uint32_t i = 0; i < view->round.audits_count; i++) {
        const struct wire_audit *audit = &view->round.audits[i];
        struct challenge *before = known(self, &audit->result);
        if (audit->member != turn->member->index) continue;
        if (before) before->resend_ms = 0;
        else if (hash_equal(&audit->result, claim_name))
            take(self, turn->blobs, claim, claim_name, turn->out);
    }
}

void challenge_hear_shown(struct challenges *self, struct blobs *blobs,
                          const struct wire_shown *shown, struct outbox *out)
{
    bool awaited = false;
    for (uint32_t i = 0; i < CHALLENGES_MAX; i++) {
        struct challenge *challenge = &self->all[i];
        if (challenge->ready || challenge->reveal.claim.round != shown->round) continue;
        awaited = true;
        challenge->ready = shown->ok;
        if (shown->ok) challenge->reveal.residual = shown->blob;
        if (shown->ok) blobs_have_kept(blobs, &shown->blob, challenge->reveal.claim.step);
        else
            outbox_note(out,
                        "audit.cannot_show round=%" PRIu64 " reason=\"%s\"; nothing is revealed, "
                        "so its auditor may find it withheld",
                        shown->round, shown->reason);
    }
    if (!shown->ok || !awaited) blobs_spare(blobs, &shown->blob.hash, out);
}

void challenge_send(struct challenges *self, const struct round_view *view,
                    const struct member_turn *turn)
{
    const struct member *member = turn->member;
    const uint64_t now_ms = turn->in->now_ms;
    if (!round_view_is_open(view, member)) return;
    for (uint32_t i = 0; i < view->round.audits_count; i++) {
        const struct wire_audit *audit = &view->round.audits[i];
        struct challenge *challenge = known(self, &audit->result);
        const struct wire_member *auditor = round_view_client(view, member, audit->auditor);
        if (audit->member != member->index || !challenge || !challenge->ready || !auditor) continue;
        if (now_ms < challenge->resend_ms) continue;
        outbox_mail(turn->out, auditor->name, FRAME_REVEAL, &challenge->reveal);
    }
    for (uint32_t i = 0; i < CHALLENGES_MAX; i++)
        if (self->all[i].ready && now_ms >= self->all[i].resend_ms)
            self->all[i].resend_ms = now_ms + MEMBER_RETRY_MS;
}
