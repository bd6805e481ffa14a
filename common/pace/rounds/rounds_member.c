// Each message goes through the parts in this order: the view takes a new round, replay moves the
// replica on, then training, audits and challenges, then the witness. The order decides in which
// order frames are sent: our own result, our reveals, our finding, our vote.

#include "common/pace/rounds/rounds_member.h"

// A role without a replica serves the payloads of this many steps, if they fit.
enum { KEPT_STEPS = 64 };

static void hear_round(struct rounds_member *self, const struct member_turn *turn)
{
    struct training *training = &self->training;
    training_hear_round(training, &self->view);
    auditor_begin(&self->auditor, &self->view, turn);
    challenge_begin(&self->challenges, &self->view, &training->claim, &training->claim_name, turn);
}

// The replica holds another step: forgets the payloads of old steps.
static void forget_payloads(const struct round_view *view, const struct member_turn *turn)
{
    const struct member *member = turn->member;
    const uint64_t keep = blobs_steps_kept(2 * (uint64_t)member->config.snapshot_rounds + 2,
                                           view->round.clients_count);
    if (turn->replica->holding && turn->replica->step > keep)
        blobs_forget(turn->blobs, turn->replica->step - keep, turn->out);
}

// A round has opened: forgets what earlier rounds had for the same step, unless the commit of that
// step is known.
static void forget_void(const struct rounds_member *self, const struct member_turn *turn)
{
    const struct round *round = &self->view.round;
    const uint64_t step = round->opened.step;
    const uint64_t keep = blobs_steps_kept(KEPT_STEPS, round->clients_count);
    if (!turn->replica || !replay_knows_commit(&self->replay, turn->replica, step))
        blobs_forget_step(turn->blobs, step, turn->out);
    if (!turn->replica && step > keep) blobs_forget(turn->blobs, step - keep, turn->out);
}

// An elected trainer is the first witness of its own result.
static void hear_own_claim(struct rounds_member *self, const struct member_turn *turn)
{
    const struct msg own = { .now_ms = turn->in->now_ms,
                             .kind = FRAME_CLAIM,
                             .run = turn->member->run,
                             .from = "",
                             .sender = turn->member->key,
                             .body = &self->training.claim };
    self->replay.own_result = self->training.claim_name;
    struct member_turn first = *turn;
    first.in = &own;
    witness_hear_claim(&self->witness, &self->view, &first);
}

static void hear_as_trainer(struct rounds_member *self, const struct member_turn *turn)
{
    const struct msg *in = turn->in;
    if (self->view.opened) hear_round(self, turn);
    if (turn->heard & HEARD_REBORN) auditor_say_again(&self->auditor);
    if (turn->heard & HEARD_ACK) auditor_hear_ack(&self->auditor, in->body);
    switch (in->kind) {
    case FRAME_LOADED:
    case FRAME_APPLIED: forget_payloads(&self->view, turn); break;
    case FRAME_TRAINED:
        if (training_hear_trained(&self->training, &self->view, turn)) hear_own_claim(self, turn);
        break;
    case FRAME_SHOWN:
        challenge_hear_shown(&self->challenges, turn->blobs, in->body, turn->out);
        break;
    case FRAME_RECOMPUTED: auditor_hear_recomputed(&self->auditor, in->body); break;
    case FRAME_REVEAL: auditor_hear_reveal(&self->auditor, &self->view, turn); break;
    case FRAME_ACK: training_hear_ack(&self->training, &self->view, turn); break;
    }
}

static bool is_witness(const struct member *member)
{
    return member->role == ACTOR_TRAINER || member->role == ACTOR_WITNESS;
}

// mutant: a residual is adopted before its commit (2)
static void hear(void *state, const struct member_turn *turn)
{
    struct rounds_member *self = state;
    round_view_hear(&self->view, turn);
    if (turn->replica) replay_hear(&self->replay, turn);
    if (turn->member->role == ACTOR_TRAINER) hear_as_trainer(self, turn);
    if (!is_witness(turn->member)) return;
    witness_hear(&self->witness, &self->view, turn);
    if (self->view.opened) forget_void(self, turn);
}

static void look(void *state, const struct member_turn *turn)
{
    struct rounds_member *self = state;
    if (turn->replica) replay_look(&self->replay, turn);
    if (turn->member->role == ACTOR_TRAINER) {
        training_advance(&self->training, &self->view, turn);
        challenge_send(&self->challenges, &self->view, turn);
        auditor_advance(&self->auditor, &self->view, turn);
    }
    if (is_witness(turn->member)) witness_look(&self->witness, &self->view, turn);
    turn->member->hint_kind =
        round_view_elects_us(&self->view, turn->member) ? FRAME_NONE : FRAME_CLAIM;
}

// ROUND tells the position before its deal: that of the step at which it was opened. It has no list of
// failed samples, because a round gives up none: what is not committed is dealt again.
static bool position(const void *state, const struct member *member, struct wire_save *ret_save)
{
    const struct round *round = &((const struct rounds_member *)state)->view.round;
    const struct wire_round *opened = &round->opened;
    if (!member->has_round || opened->step % member->config.snapshot_rounds != 0) return false;
    *ret_save = (struct wire_save){ .epoch = opened->epoch,
                                    .step = opened->step,
                                    .data_position = { .cursor = opened->cursor,
                                                       .returned = round->returned,
                                                       .returned_count = round->returned_count } };
    return true;
}

_Static_assert(sizeof(struct rounds_member) <= PACE_PART_BYTES, "a role has room for its pace");

const struct member_pace member_pace_rounds = { "rounds", FRAME_ROUNDS_CONFIG, hear, look,
                                                position };
