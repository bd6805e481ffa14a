#include "actors/trainer/trainer.h"
#include "common/wire/claims.h"
#include <string.h>

void trainer_init(struct trainer *self) { self->member.role = ACTOR_TRAINER; }

// ---- training -----------------------------------------------------------------------------------

static void train(struct trainer *self, uint64_t now_ms, struct outbox *out)
{
    const struct member *member = &self->member;
    const struct wire_round *round = &member->round.opened;
    uint32_t client = member_client_index(member);
    struct share share;
    bool open =
        member->has_round && member->now.phase == PHASE_TRAIN && member->now.round == round->round;
    bool ready = self->replica.holding && !self->replica.applying && !self->replica.loading &&
                 self->replica.step == round->step;
    if (!open || !ready || self->training_round || self->tried_round >= round->round) return;
    if (member->leaving) return; // Who is waited for so that others can catch up
    if (now_ms < self->retry_ms) return;
    if (client == UINT32_MAX || !deal_of_trainer(&member->deal, client, &share)) return;
    const struct wire_member *own = member_at(member, member->index);
    // Before this life the one before it, whose journal may be lost, may have claimed something else
    // mutant: a trainer that lost its journal claims once more
    if (!own || own->instance != member->instance || round->round <= own->joined_round) return;
    self->tried_round = round->round;
    // mutant: what was claimed is forgotten
    if (member->journal.claim_round >= round->round) {
        outbox_note(out, "round.sat_out round=%llu a result of it is in the journal",
                    (unsigned long long)round->round);
        return;
    }
    self->training_round = round->round;
    self->made_anew = false;
    blobs_mark(&self->blobs);
    struct wire_holder providers[16];
    outbox_job(
        out, PORT_LEARNER, FRAME_TRAIN,
        &(struct wire_train){ .round = round->round,
                              .step = round->step,
                              .lr_bits = round->lr_bits,
                              .samples = self->samples,
                              .samples_count =
                                  member_samples_at(member, share.begin, share.end, self->samples),
                              .data = member->now.data,
                              .order = member->now.order,
                              .providers = providers,
                              .providers_count = member_providers(member, providers, 16),
                              .from_zero = own->owed > 0 && member->round.clients_count > 1 });
}

static void publish(struct trainer *self, const struct wire_trained *trained, struct outbox *out)
{
    struct member *member = &self->member;
    uint32_t client = member_client_index(member);
    struct share share;
    if (client == UINT32_MAX || !deal_of_trainer(&member->deal, client, &share)) {
        blobs_spare(&self->blobs, &trained->payload, out);
        return;
    }
    self->claim = (struct wire_claim){ .epoch = member->round.opened.epoch,
                                       .step = member->round.opened.step,
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
    self->claim_name = self->replica.own_result = claim_hash(&self->claim);
    memset(self->acknowledged, 0, sizeof self->acknowledged);
    self->resend_ms = 0;
    member->journal.claim_round = trained->round;
    member->journal.claim = self->claim_name;
    // mutant: a claim is sent before it is journalled
    member_promise(member, out);
    outbox_news(out, FRAME_CLAIM, &self->claim);
    blobs_have(&self->blobs, &(struct wire_blob){ trained->payload, trained->payload_bytes },
               member->round.opened.step);
}

// Once more to each elected witness that has not said it has it.
static void send_claim(struct trainer *self, uint64_t now_ms, struct outbox *out)
{
    const struct member *member = &self->member;
    if (self->claim.round == 0 || self->claim.round != member->round.opened.round ||
        member->now.round != self->claim.round || now_ms < self->resend_ms)
        return;
    self->resend_ms = now_ms + MEMBER_RETRY_MS;
    for (uint32_t i = 0; i < member->round.witnesses_count; i++) {
        const struct wire_member *witness = member_at(member, member->round.witnesses[i].member);
        if (self->acknowledged[i] || !witness || witness->index == member->index) continue;
        outbox_mail(out, witness->name, FRAME_CLAIM, &self->claim);
    }
}

static void hear_trained(struct trainer *self, const struct msg *in, struct outbox *out)
{
    const struct wire_trained *trained = in->body;
    struct member *member = &self->member;
    self->training_round = 0;
    if (!trained->ok) {
        self->tried_round = 0; // What failed may be over while the round is open
        self->retry_ms = in->now_ms + MEMBER_RETRY_MS;
        outbox_note(out,
                    "train.failed round=%llu reason=\"%s\"; again while the round is open, then "
                    "dealt again",
                    (unsigned long long)trained->round, trained->reason);
        blobs_spare(&self->blobs, &trained->payload, out);
        return;
    }
    member->loss = trained->loss;
    member->tokens_per_s = trained->tokens_per_s;
    outbox_news(out, FRAME_PROGRESS,
                &(struct wire_progress){ .round = trained->round,
                                         .step = self->replica.step,
                                         .loss = trained->loss,
                                         .tokens_per_s = trained->tokens_per_s,
                                         .train_ms = trained->train_ms,
                                         .digest = self->replica.digest });
    // mutant: what was trained counts for a round made anew
    if (!member->has_round || trained->round != member->round.opened.round || self->made_anew ||
        !self->replica.holding || !hash_equal(&trained->base, &self->replica.digest)) {
        outbox_note(out, "train.late round=%llu; the batch will be dealt again",
                    (unsigned long long)trained->round);
        blobs_spare(&self->blobs, &trained->payload, out);
        return;
    }
    // mutant: blobs: what was forgotten meanwhile is published
    if (blobs_spared_since(&self->blobs, &trained->payload)) {
        self->tried_round = 0; // The bytes are gone again: once more
        return;
    }
    publish(self, trained, out);
    struct msg own = { .now_ms = in->now_ms,
                       .kind = FRAME_CLAIM,
                       .run = member->run,
                       .from = "",
                       .sender = member->key,
                       .body = &self->claim };
    witness_hear_claim(&self->witness, &self->blobs, member, &own, out);
}

static void hear_ack(struct trainer *self, const struct msg *in)
{
    const struct wire_ack *ack = in->body;
    const struct member *member = &self->member;
    if (ack->kind != FRAME_CLAIM || !hash_equal(&ack->hash, &self->claim_name)) return;
    for (uint32_t i = 0; i < member->round.witnesses_count; i++) {
        const struct wire_member *witness = member_at(member, member->round.witnesses[i].member);
        if (witness && key_equal(&witness->key, &in->sender)) self->acknowledged[i] = true;
    }
}

// ---- as a part ----------------------------------------------------------------------------------

static void hear_round(struct trainer *self, uint64_t now_ms, struct outbox *out)
{
    struct member *member = &self->member;
    self->made_anew |= self->training_round == member->round.opened.round;
    auditor_begin(&self->auditor, &self->blobs, member, now_ms, out);
    challenge_begin(&self->challenges, &self->blobs, member, &self->claim, &self->claim_name, out);
}

// Another step is held: payloads of long ago are of use to nobody.
static void stepped(struct trainer *self, struct outbox *out)
{
    const uint64_t keep = blobs_steps_kept(2 * (uint64_t)self->member.config.snapshot_rounds + 2,
                                           self->member.round.clients_count);
    if (self->replica.step > keep) blobs_forget(&self->blobs, self->replica.step - keep, out);
}

static void hear(void *state, const struct turn *turn)
{
    struct trainer *self = state;
    const struct msg *in = turn->in;
    struct outbox *out = turn->out;
    if (turn->heard & HEARD_ROUND) hear_round(self, in->now_ms, out);
    if (turn->heard & HEARD_REBORN) auditor_say_again(&self->auditor);
    if (turn->heard & HEARD_ACK) auditor_hear_ack(&self->auditor, in->body);
    switch (in->kind) {
    case FRAME_LOADED:
    case FRAME_APPLIED:
        if (self->replica.holding) stepped(self, out);
        break;
    case FRAME_TRAINED: hear_trained(self, in, out); break;
    case FRAME_SHOWN: challenge_hear_shown(&self->challenges, &self->blobs, in->body, out); break;
    case FRAME_RECOMPUTED: auditor_hear_recomputed(&self->auditor, in->body); break;
    case FRAME_REVEAL:
        auditor_hear_reveal(&self->auditor, &self->blobs, &self->member, &self->replica, in);
        break;
    case FRAME_ACK: hear_ack(self, in); break;
    }
}

static void look(void *state, const struct turn *turn)
{
    struct trainer *self = state;
    const uint64_t now_ms = turn->in->now_ms;
    train(self, now_ms, turn->out);
    send_claim(self, now_ms, turn->out);
    challenge_send(&self->challenges, &self->member, now_ms, turn->out);
    auditor_advance(&self->auditor, &self->blobs, &self->member, &self->replica, now_ms, turn->out);
}

// The last word of a finished run: which digest this replica ended with.
static bool is_done(void *state, const struct turn *turn)
{
    const struct trainer *self = state;
    const struct member *member = &self->member;
    if (!self->replica.holding || self->replica.step != member->now.step) return false;
    outbox_news(turn->out, FRAME_PROGRESS,
                &(struct wire_progress){ .round = member->round.opened.round,
                                         .step = self->replica.step,
                                         .loss = member->loss,
                                         .digest = self->replica.digest });
    char hex[HASH_HEX];
    outbox_note(turn->out, "run.finished step=%llu digest=%s",
                (unsigned long long)self->replica.step, hash_to_hex(&self->replica.digest, hex));
    return true;
}

// mutant: a residual is adopted before its commit (2)
void trainer_step(void *state, const struct msg *in, struct outbox *out)
{
    struct trainer *self = state;
    const struct part parts[] = { { &self->replica, replica_hear, replica_look, NULL },
                                  { self, hear, look, is_done },
                                  { &self->witness, witness_hear, witness_look, NULL },
                                  { &self->blobs, blobs_hear, blobs_look, NULL },
                                  { 0 } };
    parts_step(&(struct turn){ .member = &self->member,
                               .blobs = &self->blobs,
                               .replica = &self->replica,
                               .in = in,
                               .out = out },
               parts);
}
