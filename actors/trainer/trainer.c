#include "actors/trainer/trainer.h"
#include "common/wire/claims.h"
#include <string.h>
#include <sysexits.h>

void trainer_init(struct trainer *self)
{
    self->member.role = ACTOR_TRAINER;
    self->witness.has_replica = true;
}

// ---- training -----------------------------------------------------------------------------------

static void train(struct trainer *self, uint64_t now_ms, struct outbox *out)
{
    const struct member *member = &self->member;
    const struct wire_round *round = &member->round;
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
    if (self->journal.claim_round >= round->round) {
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
    const struct member *member = &self->member;
    uint32_t client = member_client_index(member);
    struct share share;
    if (client == UINT32_MAX || !deal_of_trainer(&member->deal, client, &share)) {
        blobs_spare(&self->blobs, &trained->payload, out);
        return;
    }
    self->claim = (struct wire_claim){ .epoch = member->round.epoch,
                                       .step = member->round.step,
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
    self->resend_ms = 0;
    self->journal.claim_round = trained->round;
    self->journal.claim = self->claim_name;
    member_keep_position(member, &self->journal);
    // mutant: a claim is sent before it is journalled
    outbox_store(out, FRAME_JOURNAL, &self->journal);
    outbox_news(out, FRAME_CLAIM, &self->claim);
    blobs_have(&self->blobs, &(struct wire_blob){ trained->payload, trained->payload_bytes },
               member->round.step);
}

// Once more to each elected witness that has not said it has it.
static void send_claim(struct trainer *self, uint64_t now_ms, struct outbox *out)
{
    const struct member *member = &self->member;
    if (self->claim.round == 0 || self->claim.round != member->round.round ||
        member->now.round != self->claim.round || now_ms < self->resend_ms)
        return;
    self->resend_ms = now_ms + MEMBER_RETRY_MS;
    for (uint32_t i = 0; i < member->round.witnesses_count; i++) {
        const struct wire_member *witness = member_at(member, member->witnesses[i].member);
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
    if (!member->has_round || trained->round != member->round.round || self->made_anew ||
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
        const struct wire_member *witness = member_at(member, member->witnesses[i].member);
        if (witness && key_equal(&witness->key, &in->sender)) self->acknowledged[i] = true;
    }
}

// ---- hearing ------------------------------------------------------------------------------------

static void stepped(struct trainer *self, struct outbox *out)
{
    const uint64_t keep = blobs_steps_kept(2 * (uint64_t)self->member.config.snapshot_rounds + 2,
                                           self->member.round.clients_count);
    self->member.step_held = self->replica.step;
    if (self->replica.step > keep) blobs_forget(&self->blobs, self->replica.step - keep, out);
}

// The last word of a finished run: which digest this replica ended with.
static void finish(struct trainer *self, struct outbox *out)
{
    const struct member *member = &self->member;
    if (self->said_last || !member->has_run || member->now.phase != PHASE_FINISHED) return;
    if (!self->replica.holding || self->replica.step != member->now.step) return;
    self->said_last = true;
    outbox_news(out, FRAME_PROGRESS,
                &(struct wire_progress){ .round = member->round.round,
                                         .step = self->replica.step,
                                         .loss = member->loss,
                                         .digest = self->replica.digest });
    char hex[HASH_HEX];
    outbox_note(out, "run.finished step=%llu digest=%s", (unsigned long long)self->replica.step,
                hash_to_hex(&self->replica.digest, hex));
}

static void hear_news(struct trainer *self, const struct msg *in, struct outbox *out)
{
    struct member *member = &self->member;
    unsigned heard = member_hear(member, in, out);
    if (heard & HEARD_RUN) blobs_date(&self->blobs, member->now.step);
    // mutant: what was promised to another run binds in this one
    if (heard & HEARD_ADMITTED && self->journal.born_unix_ms != member->born_unix_ms) {
        self->journal = (struct wire_journal){ .born_unix_ms = member->born_unix_ms };
        self->witness.voted_round = 0; // What was promised to another run binds nobody here
    }
    if (heard & HEARD_CONFIG) outbox_job(out, PORT_LEARNER, FRAME_BUILD, &member->config);
    if (heard & HEARD_ROUND) {
        self->made_anew |= self->training_round == member->round.round;
        witness_begin(&self->witness, member);
        auditor_begin(&self->auditor, &self->blobs, member, in->now_ms, out);
        challenge_begin(&self->challenges, &self->blobs, member, &self->claim, &self->claim_name,
                        out);
        if (!replica_knows_commit(&self->replica, member->round.step))
            blobs_forget_void(&self->blobs, member->round.step, out);
    }
    if (heard & HEARD_REBORN) { // It has forgotten votes and what we hold
        self->witness.acknowledged = false;
        auditor_say_again(&self->auditor);
        self->witness.resend_ms = self->replica.tell_ms = 0;
        self->replica.told = false;
    }
    if (heard & HEARD_COMMIT) {
        witness_hear_commit(&self->witness, in->body, out);
        replica_hear_commit(&self->replica, &self->blobs, member, in->body, out);
    }
    if (heard & HEARD_EPOCH_END) replica_hear_epoch_end(&self->replica, in->body);
    if (heard & HEARD_REFUSED) replica_hear_refused(&self->replica, in->body, out);
    if (heard & HEARD_ACK) {
        const struct wire_ack *ack = in->body;
        if (ack->kind == FRAME_LEAVE) outbox_quit(out, EX_OK, "left the run");
        witness_hear_ack(&self->witness, ack);
        auditor_hear_ack(&self->auditor, ack);
        replica_hear_ack(&self->replica, ack);
    }
}

static void hear(struct trainer *self, const struct msg *in, struct outbox *out)
{
    switch (in->kind) {
    case FRAME_JOURNAL:
        self->journal = *(const struct wire_journal *)in->body;
        member_recall_position(&self->member, &self->journal);
        // mutant: a restart forgets that it has voted
        self->witness.voted_round = self->journal.vote_round;
        break;
    case FRAME_INHERITED: blobs_inherit(&self->blobs, in->body); break;
    case FRAME_QUIT:
        member_leave(&self->member, out);
        if (!self->member.admitted || self->said_last) outbox_quit(out, EX_OK, "stopped");
        break;
    case FRAME_BUILT:
    case FRAME_LOADED:
    case FRAME_APPLIED:
        if (replica_hear_learner(&self->replica, &self->member, in, out) == REPLICA_STEPPED)
            stepped(self, out);
        break;
    case FRAME_TRAINED: hear_trained(self, in, out); break;
    case FRAME_FETCHED: blobs_hear(&self->blobs, in->body, in->now_ms, out); break;
    case FRAME_SHOWN: challenge_hear_shown(&self->challenges, &self->blobs, in->body, out); break;
    case FRAME_RECOMPUTED: auditor_hear_recomputed(&self->auditor, in->body); break;
    case FRAME_REVEAL:
        auditor_hear_reveal(&self->auditor, &self->blobs, &self->member, &self->replica, in);
        break;
    case FRAME_PRODUCE:
        if (member_is_coordinator(&self->member, in))
            witness_hear_produce(&self->witness, in->body, out);
        break;
    case FRAME_FETCHED_MODEL: replica_hear_fetched_model(&self->replica, in, out); break;
    case FRAME_CLAIM:
        witness_hear_claim(&self->witness, &self->blobs, &self->member, in, out);
        break;
    case FRAME_ACK: // From another witness, or from the coordinator
        if (!key_equal(&in->sender, &self->member.coordinator)) {
            hear_ack(self, in);
            break;
        }
        hear_news(self, in, out);
        break;
    default: hear_news(self, in, out);
    }
}

// mutant: a residual is adopted before its commit (2)
void trainer_step(void *state, const struct msg *in, struct outbox *out)
{
    struct trainer *self = state;
    hear(self, in, out);
    replica_advance(&self->replica, &self->blobs, &self->member, &self->claim_name, in->now_ms,
                    out);
    train(self, in->now_ms, out);
    send_claim(self, in->now_ms, out);
    challenge_send(&self->challenges, &self->member, in->now_ms, out);
    auditor_advance(&self->auditor, &self->blobs, &self->member, &self->replica, in->now_ms, out);
    bool there = self->replica.holding && self->replica.step == self->member.round.step;
    self->witness.base = there ? self->replica.digest : (struct hash){ { 0 } };
    if (witness_is_due(&self->witness, &self->blobs, &self->member)) {
        self->journal.vote = witness_cast(&self->witness, &self->blobs, &self->member);
        self->journal.vote_round = self->witness.round;
        member_keep_position(&self->member, &self->journal);
        // mutant: a vote is sent before it is journalled
        outbox_store(out, FRAME_JOURNAL, &self->journal);
    }
    witness_send(&self->witness, &self->member, in->now_ms, out);
    blobs_fetch(&self->blobs, &self->member, in->now_ms, out);
    finish(self, out);
}
