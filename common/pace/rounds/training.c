// A round as its trainer sees it. It trains once the replica holds the round's step; it claims the
// learner's result unless that came too late; it sends the claim to each elected witness until that
// acknowledges it.

#include "common/pace/rounds/training.h"
#include "common/pace/rounds/claims.h"
#include <inttypes.h>
#include <string.h>

static void train(struct training *self, const struct round_view *view,
                  const struct member_turn *turn)
{
    const struct member *member = turn->member;
    const struct replica *replica = turn->replica;
    const struct wire_round *round = &view->round.opened;
    uint32_t client = round_view_own_place(view, member);
    struct share share;
    bool open = round_view_is_open(view, member) && member->now.phase == PHASE_TRAIN;
    bool ready =
        replica->holding && !replica->applying && !replica->loading && replica->step == round->step;
    if (!open || !ready || self->training_round || self->tried_round >= round->round) return;
    if (member->leaving) return; // It only serves peers until they catch up
    if (turn->in->now_ms < self->retry_ms) return;
    if (client == NO_MEMBER || !deal_of_trainer(&view->deal, client, &share)) return;
    const struct wire_member *own = member_at(member, member->index);
    // An earlier process of this member, whose journal may be lost, may have claimed another result
    // mutant: a trainer that lost its journal claims once more
    if (!own || own->instance != member->instance || round->round <= own->joined_number) return;
    self->tried_round = round->round;
    // mutant: what was claimed is forgotten
    if (member->journal.first.number >= round->round) {
        outbox_note(turn->out, "round.sat_out round=%" PRIu64 " a result of it is in the journal",
                    round->round);
        return;
    }
    self->training_round = round->round;
    self->reopened = false;
    blobs_mark(turn->blobs);
    struct wire_holder providers[16];
    // mutant: a trainer trains the samples beside its own
    outbox_job(
        turn->out, PORT_LEARNER, FRAME_TRAIN,
        &(struct wire_train){
            .round = round->round,
            .step = round->step,
            .lr_bits = round->lr_bits,
            .samples = self->samples,
            .samples_count = round_samples_at(&view->round, share.begin, share.end, self->samples),
            .data = member->now.data,
            .order = member->now.order,
            .providers = providers,
            .providers_count = member_providers(member, round->round, providers, 16),
            .from_zero = view->round.clients[client].debt > 0 && view->round.clients_count > 1 });
}

// Claims the result. False if the round no longer deals us a share.
static bool publish(struct training *self, const struct round_view *view,
                    const struct wire_trained *trained, const struct member_turn *turn)
{
    struct member *member = turn->member;
    uint32_t client = round_view_own_place(view, member);
    struct share share;
    if (client == NO_MEMBER || !deal_of_trainer(&view->deal, client, &share)) {
        blobs_spare(turn->blobs, &trained->payload, turn->out);
        return false;
    }
    self->claim = (struct wire_claim){ .epoch = view->round.opened.epoch,
                                       .step = view->round.opened.step,
                                       .round = trained->round,
                                       .client = client,
                                       .begin = share.begin,
                                       .end = share.end,
                                       .author = member->key,
                                       .base = trained->base,
                                       .residual_from = trained->residual_from,
                                       .residual_to = trained->residual_to,
                                       .payload = trained->payload,
                                       .payload_bytes = trained->payload_bytes,
                                       .loss = trained->loss,
                                       .born_unix_ms = member->born_unix_ms };
    memcpy(self->claim.run, member->run, sizeof self->claim.run);
    self->claim_name = claim_hash(&self->claim);
    memset(self->acknowledged, 0, sizeof self->acknowledged);
    self->resend_ms = turn->in->now_ms + MEMBER_RETRY_MS; // The news reach them first, as a rule
    member->journal.first.number = trained->round;
    member->journal.first.what = self->claim_name;
    // mutant: a claim is sent before it is journalled
    member_promise(member, turn->out);
    outbox_news(turn->out, FRAME_CLAIM, &self->claim);
    blobs_have(turn->blobs, &(struct wire_blob){ trained->payload, trained->payload_bytes },
               view->round.opened.step);
    return true;
}

// News may be lost: sends the claim again by mail to each elected witness that has not acknowledged it. A
// witness answers mail only, so a round that is over by then costs no mail and no answer.
static void send_claim(struct training *self, const struct round_view *view,
                       const struct member_turn *turn)
{
    const struct member *member = turn->member;
    const uint64_t now_ms = turn->in->now_ms;
    if (self->claim.round == 0 || self->claim.round != view->round.opened.round ||
        member->now.round != self->claim.round || now_ms < self->resend_ms)
        return;
    self->resend_ms = now_ms + MEMBER_RETRY_MS;
    for (uint32_t i = 0; i < view->round.witnesses_count; i++) {
        const struct wire_member *witness = member_at(member, view->round.witnesses[i].member);
        if (self->acknowledged[i] || !witness || witness->index == member->index) continue;
        outbox_mail(turn->out, witness->name, FRAME_CLAIM, &self->claim);
    }
}

bool training_hear_trained(struct training *self, const struct round_view *view,
                           const struct member_turn *turn)
{
    const struct wire_trained *trained = turn->in->body;
    const struct replica *replica = turn->replica;
    struct member *member = turn->member;
    struct outbox *out = turn->out;
    self->training_round = 0;
    if (!trained->ok) {
        self->tried_round = 0; // Retry while the round is open: the cause may pass
        self->retry_ms = turn->in->now_ms + MEMBER_RETRY_MS;
        outbox_note(out,
                    "train.failed round=%" PRIu64
                    " reason=\"%s\"; again while the round is open, then "
                    "dealt again",
                    trained->round, trained->reason);
        blobs_spare(turn->blobs, &trained->payload, out);
        return false;
    }
    member->loss = trained->loss;
    member->loss_step = replica->step + 1;
    member->tokens_per_s = trained->tokens_per_s;
    outbox_news(out, FRAME_PROGRESS,
                &(struct wire_progress){ .round = trained->round,
                                         .step = replica->step,
                                         .loss = trained->loss,
                                         .tokens_per_s = trained->tokens_per_s,
                                         .train_ms = trained->train_ms,
                                         .digest = replica->digest });
    // mutant: what was trained counts for a round made anew
    if (!member->has_round || trained->round != view->round.opened.round || self->reopened ||
        !replica->holding || !hash_equal(&trained->base, &replica->digest)) {
        outbox_note(out, "train.late round=%" PRIu64 "; the batch will be dealt again",
                    trained->round);
        blobs_spare(turn->blobs, &trained->payload, out);
        return false;
    }
    // mutant: blobs: what was forgotten meanwhile is published
    if (blobs_spared_since(turn->blobs, &trained->payload)) {
        self->tried_round = 0; // The bytes were removed meanwhile: train again
        return false;
    }
    return publish(self, view, trained, turn);
}

void training_hear_ack(struct training *self, const struct round_view *view,
                       const struct member_turn *turn)
{
    const struct member *member = turn->member;
    const struct wire_ack *ack = turn->in->body;
    if (ack->kind != FRAME_CLAIM || !hash_equal(&ack->hash, &self->claim_name)) return;
    for (uint32_t i = 0; i < view->round.witnesses_count; i++) {
        const struct wire_member *witness = member_at(member, view->round.witnesses[i].member);
        if (witness && key_equal(&witness->key, &turn->in->sender)) self->acknowledged[i] = true;
    }
}

void training_hear_round(struct training *self, const struct round_view *view)
{
    self->reopened |= self->training_round == view->round.opened.round;
}

void training_advance(struct training *self, const struct round_view *view,
                      const struct member_turn *turn)
{
    train(self, view, turn);
    send_claim(self, view, turn);
}
