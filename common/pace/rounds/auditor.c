// A round gives us at most one audit. It ends in a finding, in one of three ways: the learner
// recomputed the result; the lease ran out; or the author left or restarted before it revealed
// anything. The finding is then sent until the coordinator acknowledges it.
//
// The gradient takes most of the work and needs no residual. So the learner computes it while the
// residual is on its way.

#include "common/pace/rounds/auditor.h"
#include "common/pace/rounds/claims.h"
#include <stdio.h>

void auditor_begin(struct auditor *self, const struct round_view *view,
                   const struct member_turn *turn)
{
    const struct member *member = turn->member;
    if (self->revealed && !hash_is_none(&self->reveal.residual.hash))
        blobs_release(turn->blobs, &self->reveal.residual, turn->out);
    const uint32_t client = round_view_own_place(view, member);
    const uint32_t place =
        client == NO_MEMBER ? UINT32_MAX : round_audit_place(&view->round, client);
    *self = (struct auditor){ 0 };
    if (place == UINT32_MAX) return;
    const struct wire_member *author = member_at(member, view->round.audits[place].member);
    *self = (struct auditor){ .round = view->round.opened.round,
                              .since_ms = turn->in->now_ms,
                              .place = place,
                              .instance = author ? author->instance : 0 };
    self->finding = (struct wire_finding){ .round = view->round.opened.round,
                                           .result = view->round.audits[place].result };
}

// The claim's hash covers all its fields but the birth of the run, so the birth is compared, too.
static bool is_meant(const struct wire_audit *audit, const struct wire_claim *claim,
                     const struct member *member)
{
    const struct hash name = claim_hash(claim);
    return hash_equal(&name, &audit->result) && claim->born_unix_ms == member->born_unix_ms;
}

void auditor_hear_reveal(struct auditor *self, const struct round_view *view,
                         const struct member_turn *turn)
{
    const struct member *member = turn->member;
    const struct wire_reveal *reveal = turn->in->body;
    if (self->round == 0 || self->round != view->round.opened.round || self->revealed) return;
    const struct wire_audit *audit = &view->round.audits[self->place];
    const struct wire_member *author = member_at(member, audit->member);
    const bool zero = hash_is_none(&audit->residual_from);
    if (!author || !key_equal(&author->key, &turn->in->sender) ||
        !is_meant(audit, &reveal->claim, member) ||
        (!zero && reveal->residual.bytes != turn->replica->floats * sizeof(float)))
        return; // It may belong to another audit
    // mutant: audit: a residual without a name is wanted for ever
    if (!zero && hash_is_none(&reveal->residual.hash)) return; // Nothing has that hash
    self->revealed = true;
    self->reveal = *reveal;
    if (zero)
        self->reveal.residual =
            (struct wire_blob){ .bytes = 0 }; // The start was zero: nothing is fetched
    if (!zero) blobs_want_kept(turn->blobs, &reveal->residual, audit->step, audit->member);
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

// `ahead`: only the gradient.
static void recompute(struct auditor *self, const struct round_view *view,
                      const struct member_turn *turn, bool ahead)
{
    const struct member *member = turn->member;
    const struct wire_audit *audit = &view->round.audits[self->place];
    struct wire_holder providers[16];
    self->begun = true;
    self->computing = !ahead;
    outbox_job(turn->out, PORT_LEARNER, FRAME_RECOMPUTE,
               &(struct wire_recompute){ .round = self->round,
                                         .audit = *audit,
                                         .samples = round_audit_samples(&view->round, self->place),
                                         .samples_count = audit->intervals,
                                         .providers = providers,
                                         .providers_count =
                                             member_providers(member, self->round, providers, 16),
                                         .residual = self->reveal.residual.hash,
                                         .data = member->now.data,
                                         .order = member->now.order,
                                         .ahead = ahead });
}

// An author that left or restarted no longer has the residual that it would have to reveal.
static bool is_gone(struct auditor *self, const struct round_view *view,
                    const struct member *member)
{
    const struct wire_member *author = member_at(member, view->round.audits[self->place].member);
    if (author && self->instance == 0) self->instance = author->instance; // The roster came later
    return author && (author->state == MEMBER_WITHDRAWN || author->instance != self->instance);
}

void auditor_advance(struct auditor *self, const struct round_view *view,
                     const struct member_turn *turn)
{
    const struct member *member = turn->member;
    const struct replica *replica = turn->replica;
    const uint64_t now_ms = turn->in->now_ms;
    if (self->round == 0 || self->round != view->round.opened.round ||
        !round_view_is_open(view, member))
        return;
    const struct wire_audit *audit = &view->round.audits[self->place];
    // A result that started from the declared zero needs no residual: the audit itself names the
    // start
    const bool zero = hash_is_none(&audit->residual_from);
    const bool here =
        zero || (self->revealed && blobs_state(turn->blobs, &self->reveal.residual) == BLOB_HERE);
    // From the audited step on the learner can rebuild the base from what it pinned and applied
    const bool ready =
        replica->holding && !replica->applying && !replica->loading && replica->step >= audit->step;
    // The learner keeps the parameters before the newest commit, and that commit is not to wait
    const bool may_begin = !self->begun && replica->step > audit->step;
    if (!self->found && !self->computing && ready && (here || may_begin))
        recompute(self, view, turn, !here);
    const bool waited = now_ms - self->since_ms > member->config.lease_ms ||
                        (ready && !self->revealed && is_gone(self, view, member));
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
    outbox_mail(turn->out, "coordinator", FRAME_FINDING, &self->finding);
}
