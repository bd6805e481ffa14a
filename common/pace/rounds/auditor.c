#include "common/pace/rounds/auditor.h"
#include "common/wire/claims.h"
#include <stdio.h>

void auditor_begin(struct auditor *self, struct blobs *blobs, const struct member *member,
                   uint64_t now_ms, struct outbox *out)
{
    if (self->revealed && !hash_is_none(&self->reveal.residual.hash))
        blobs_end_revealed(blobs, &self->reveal.residual, out);
    const uint32_t client = member_client_index(member);
    const uint32_t place =
        client == UINT32_MAX ? UINT32_MAX : round_audit_place(&member->round, client);
    *self = (struct auditor){ 0 };
    if (place == UINT32_MAX) return;
    const struct wire_member *author = member_at(member, member->round.audits[place].member);
    *self = (struct auditor){ .round = member->round.opened.round,
                              .since_ms = now_ms,
                              .place = place,
                              .instance = author ? author->instance : 0 };
    self->finding = (struct wire_finding){ .round = member->round.opened.round,
                                           .result = member->round.audits[place].result };
}

// The name of the claim says all that is in it, but when the run was born.
static bool is_meant(const struct wire_audit *audit, const struct wire_claim *claim,
                     const struct member *member)
{
    const struct hash name = claim_hash(claim);
    return hash_equal(&name, &audit->result) && claim->born_unix_ms == member->born_unix_ms;
}

void auditor_hear_reveal(struct auditor *self, struct blobs *blobs, const struct member *member,
                         const struct replica *replica, const struct msg *in)
{
    const struct wire_reveal *reveal = in->body;
    if (self->round == 0 || self->round != member->round.opened.round || self->revealed) return;
    const struct wire_audit *audit = &member->round.audits[self->place];
    const struct wire_member *author = member_at(member, audit->member);
    const bool zero = hash_is_none(&audit->residual_from);
    if (!author || !key_equal(&author->key, &in->sender) ||
        !is_meant(audit, &reveal->claim, member) ||
        (!zero && reveal->residual.bytes != replica->floats * sizeof(float)))
        return; // Of another audit, perhaps
    self->revealed = true;
    self->reveal = *reveal;
    if (zero)
        self->reveal.residual =
            (struct wire_blob){ .bytes = 0 }; // Whatever it says: nothing is needed
    if (!zero) blobs_want_revealed(blobs, &reveal->residual, audit->step, audit->member);
}

void auditor_hear_recomputed(struct auditor *self, const struct wire_finding *finding)
{
    if (finding->round != self->round || self->found) return;
    // mutant: audit: a finding of another result counts (2)
    self->finding = *finding;
    self->found = true;
}

void auditor_hear_ack(struct auditor *self, const struct wire_ack *ack)
{
    if (ack->kind == FRAME_FINDING && ack->round == self->round) self->acknowledged = true;
}

void auditor_say_again(struct auditor *self)
{
    self->acknowledged = false;
    self->resend_ms = 0;
}

static void recompute(struct auditor *self, const struct member *member, struct outbox *out)
{
    const struct wire_audit *audit = &member->round.audits[self->place];
    struct wire_holder providers[16];
    self->computing = true;
    outbox_job(
        out, PORT_LEARNER, FRAME_RECOMPUTE,
        &(struct wire_recompute){ .round = self->round,
                                  .audit = *audit,
                                  .samples = round_audit_samples(&member->round, self->place),
                                  .samples_count = audit->intervals,
                                  .providers = providers,
                                  .providers_count = member_providers(member, providers, 16),
                                  .residual = self->reveal.residual.hash,
                                  .data = member->now.data,
                                  .order = member->now.order });
}

// Who left or began a new life has forgotten what it would have to show.
static bool is_gone(struct auditor *self, const struct member *member)
{
    const struct wire_member *author = member_at(member, member->round.audits[self->place].member);
    if (author && self->instance == 0) self->instance = author->instance; // The roster came later
    return author && (author->state == MEMBER_WITHDRAWN || author->instance != self->instance);
}

void auditor_advance(struct auditor *self, const struct blobs *blobs, const struct member *member,
                     const struct replica *replica, uint64_t now_ms, struct outbox *out)
{
    const bool open = member->has_round && member->now.round == self->round &&
                      (member->now.phase == PHASE_TRAIN || member->now.phase == PHASE_WITNESS);
    if (self->round == 0 || self->round != member->round.opened.round || !open) return;
    const struct wire_audit *audit = &member->round.audits[self->place];
    // Who began with the declared zero need show nothing: the audit says all there is to it
    const bool zero = hash_is_none(&audit->residual_from);
    const bool here =
        zero || (self->revealed && blobs_state(blobs, &self->reveal.residual) == BLOB_HERE);
    // The round begins when the commit before is applied: from then on the base can be made again
    const bool ready =
        replica->holding && !replica->applying && !replica->loading && replica->step >= audit->step;
    if (!self->found && !self->computing && here && ready) recompute(self, member, out);
    const bool waited = now_ms - self->since_ms > member->config.lease_ms ||
                        (ready && !self->revealed && is_gone(self, member));
    if (!self->found && !self->computing && waited) {
        self->found = true;
        self->finding.finding = ready ? FINDING_WITHHELD : FINDING_UNABLE;
        snprintf(self->finding.reason, sizeof self->finding.reason, "%s",
                 !ready           ? "the parameters are not held here"
                 : self->revealed ? "the residual could not be fetched"
                                  : "nothing was revealed");
    }
    if (!self->found || self->acknowledged || now_ms < self->resend_ms) return;
    self->resend_ms = now_ms + MEMBER_RETRY_MS;
    outbox_mail(out, "coordinator", FRAME_FINDING, &self->finding);
}
