// Decides what is saved, and when. `wanted` is the next save: the end of an epoch, or on request
// the newest pinned step. It is saved when the replica holds that step and the learner is free, and
// then registered with the coordinator until that acknowledges it. A restore drops whatever it gave
// up.

#include "actors/checkpointer/checkpointer.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const uint64_t NOTHING = UINT64_MAX;

void checkpointer_init(struct checkpointer *self)
{
    self->member.role = ACTOR_CHECKPOINTER;
    self->replica.can_replay = true;
    self->wanted.step = self->position.step = NOTHING;
}

// Copies the lists into the save. False: they are too long for a manifest, and this step is not saved; a
// later one may have shorter lists. At the end of an epoch that is said, and nobody waits for that save.
static bool keep_position(struct wire_save *save, struct position_lists *lists,
                          const struct wire_data_position *data_position)
{
    const uint32_t returned = data_position->returned_count, failed = data_position->failed_count;
    if (returned + failed > CHECKPOINT_INTERVALS_MAX) return false;
    if (returned)
        memcpy(lists->returned, data_position->returned, returned * sizeof *lists->returned);
    if (failed) memcpy(lists->failed, data_position->failed, failed * sizeof *lists->failed);
    save->data_position = *data_position;
    save->data_position.returned = lists->returned;
    save->data_position.failed = lists->failed;
    return true;
}

// The step that the replica holds is the end of an epoch that cannot be saved.
static bool holds_unsaveable(const struct checkpointer *self)
{
    return self->replica.holding && !hash_is_none(&self->unsaveable) &&
           hash_equal(&self->unsaveable, &self->replica.digest);
}

static void hear_epoch_end(struct checkpointer *self, const struct wire_epoch_end *end,
                           struct outbox *out)
{
    if (end->step == self->saved.step && hash_equal(&end->digest, &self->saved.digest)) {
        self->registering = true; // It is saved already, but the coordinator has no record of it
        return;
    }
    struct wire_save save = { .epoch = end->epoch, .step = end->step, .digest = end->digest };
    if (!hash_equal(&end->digest, &self->wanted.digest) &&
        !hash_equal(&end->digest, &self->saving_digest)) // An end that we had not heard of
        self->late = self->saving || self->registering;
    if (keep_position(&save, &self->wanted_lists, &end->data_position)) self->wanted = save;
    else if (!hash_equal(&self->unsaveable, &end->digest)) {
        self->unsaveable = end->digest;
        outbox_note(out,
                    "checkpoint.impossible step=%" PRIu64
                    " intervals=%u allowed=%u; this step is not saved",
                    end->step, end->data_position.returned_count + end->data_position.failed_count,
                    (unsigned)CHECKPOINT_INTERVALS_MAX);
    }
}

// Takes the position of a step that the run pins, once the pace knows it.
static void take_position(struct checkpointer *self)
{
    struct wire_save save;
    if (!pace_part_position(&self->pace, &self->member, &save) ||
        (save.step == self->position.step && save.epoch == self->position.epoch))
        return;
    if (keep_position(&save, &self->position_lists, &save.data_position)) self->position = save;
}

// Takes up a request: the newest pinned step, once its digest is committed and its data position is
// known.
static void take_request(struct checkpointer *self)
{
    const struct wire_run *run = &self->member.now;
    if (!self->requested || self->wanted.step != NOTHING || self->position.step != run->pin_step ||
        hash_is_none(&run->pin_digest) || run->pin_step <= self->saved.step)
        return;
    self->requested = false;
    self->wanted = self->position;
    self->wanted.digest = run->pin_digest;
    keep_position(&self->wanted, &self->wanted_lists, &self->position.data_position);
}

static void hear_saved(struct checkpointer *self, const struct wire_saved *saved,
                       struct outbox *out)
{
    self->saving = false;
    if (saved->step == self->wanted.step && hash_equal(&saved->digest, &self->wanted.digest))
        self->wanted.step = NOTHING;
    if (!saved->ok) {
        outbox_note(out,
                    "checkpoint.failed step=%" PRIu64
                    " reason=\"%s\"; the older ones stay, retrying at the next",
                    saved->step, saved->reason);
        return;
    }
    self->saved = (struct wire_checkpoint){ .epoch = saved->epoch,
                                            .step = saved->step,
                                            .digest = saved->digest };
    memcpy(self->saved.name, saved->name, sizeof self->saved.name);
    self->replica.resume.step = saved->step;
    self->registering = true;
    self->resend_ms = 0;
    blobs_forget(&self->blobs, saved->step, out); // The checkpoint has what they led to
}

// EPOCH_END is news and may be lost, and without it there is no checkpoint. So a checkpointer that
// holds the last step of an epoch and has not saved it asks for it.
static void ask_for_end(struct checkpointer *self, uint64_t now_ms, struct outbox *out)
{
    const struct wire_run *run = &self->member.now;
    bool ends = run->phase == PHASE_COOLDOWN || run->phase == PHASE_FINISHED;
    bool at_it = self->replica.holding && self->replica.step == run->step;
    bool saved = self->saved.step == run->step && !hash_is_none(&self->saved.digest);
    if (!ends || !at_it || saved || self->wanted.step == run->step || now_ms < self->ask_ms ||
        holds_unsaveable(self))
        return;
    self->ask_ms = now_ms + MEMBER_RETRY_MS;
    outbox_mail(out, "coordinator", FRAME_ASK, &(struct wire_ask){ .topic = TOPIC_RUN });
}

// After a restore, steps of earlier epochs beyond the restored step no longer count: drops them.
static void give_up(struct checkpointer *self)
{
    const struct wire_run *run = &self->member.now;
    if (replica_is_given_up(run, self->saved.step, self->saved.epoch)) {
        // mutant: restore: a checkpoint is as good as one given up
        self->saved.step = 0;
        self->registering = false;
    }
    if (replica_is_given_up(run, self->wanted.step, self->wanted.epoch))
        self->wanted.step = NOTHING;
    if (replica_is_given_up(run, self->position.step, self->position.epoch))
        self->position.step = NOTHING;
}

static void hear_ack(struct checkpointer *self, const struct wire_ack *ack)
{
    if (ack->kind == FRAME_CHECKPOINT && ack->round == self->saved.step) self->registering = false;
}

// A save that took long may be of a step that the run has left: only the newest ones can be registered. The next save
// is of a newer step.
static void hear_refused(struct checkpointer *self, const struct wire_refused *no,
                         struct outbox *out)
{
    if (!self->registering || no->kind != FRAME_CHECKPOINT || no->reason != REFUSAL_WRONG_MODEL ||
        no->round != self->saved.step)
        return;
    // mutant: a checkpoint that is refused is registered for ever
    self->registering = false;
    outbox_note(out,
                "checkpoint.unregistered step=%" PRIu64
                " reason=\"%s\"; the run cannot go back to it, and the next one is of a newer step",
                no->round, no->text);
}

// Only a save empties the table of blobs, and it has an end: without them the replica could not go on.
static void save_in_time(struct checkpointer *self)
{
    // mutant: a long epoch fills the table of blobs
    if (self->replica.can_replay && self->blobs.count > BLOBS_MAX / 2) self->requested = true;
}

static void hear(void *state, const struct member_turn *turn)
{
    struct checkpointer *self = state;
    const struct msg *in = turn->in;
    take_position(self);
    save_in_time(self);
    if (turn->heard & HEARD_REFUSED) hear_refused(self, in->body, turn->out);
    if (turn->heard & HEARD_EPOCH_END) hear_epoch_end(self, in->body, turn->out);
    if (turn->heard & HEARD_ACK) hear_ack(self, in->body);
    if (in->kind == FRAME_SAVED) hear_saved(self, in->body, turn->out);
    // A request of an earlier coordinator process is ignored; the operator can ask again
    if (in->kind == FRAME_CONTROL && member_is_coordinator(&self->member, in) &&
        in->incarnation >= self->member.incarnation)
        self->requested = true;
    give_up(self);
}

// In a Cooldown HOLDS lets the run begin its next epoch. So we send it as soon as the learner has been told to write
// that step. If the previous checkpoint was not on record when this epoch ended, we send it only when this one is
// written: otherwise the run could end one epoch after the other and never have a checkpoint to go back to.
static bool must_save_first(const struct checkpointer *self)
{
    const struct wire_run *run = &self->member.now;
    // mutant: a run outruns its checkpoints
    const bool begun =
        self->saving && !self->late && hash_equal(&self->saving_digest, &self->replica.digest);
    const bool saved = self->saved.step == run->step && !hash_is_none(&self->saved.digest);
    // mutant: a checkpointer says that it holds a step before it writes it
    return run->phase == PHASE_COOLDOWN && !begun && !saved && !holds_unsaveable(self);
}

// Runs before the replica and the pace look, because the next commit changes the parameters.
static void save(void *state, const struct member_turn *turn)
{
    struct checkpointer *self = state;
    const struct replica *replica = &self->replica;
    take_request(self);
    // The replica is at that step, or the learner has it pinned
    const bool can = !self->saving && self->wanted.step != NOTHING && replica->holding &&
                     !replica->loading && !replica->applying && replica->step >= self->wanted.step;
    if (can) {
        self->saving = true;
        self->saving_digest = self->wanted.digest;
        // mutant: restore: the restore point is retired
        self->wanted.spare = self->member.now.restore_point_step; // A restore would need it
        self->wanted.born_unix_ms = self->member.born_unix_ms;
        outbox_job(turn->out, PORT_LEARNER, FRAME_SAVE, &self->wanted);
    }
    self->replica.tells_later = must_save_first(self);
}

// Runs after them, because a missed EPOCH_END shows only by the step that the replica holds.
static void register_saved(void *state, const struct member_turn *turn)
{
    struct checkpointer *self = state;
    const uint64_t now_ms = turn->in->now_ms;
    ask_for_end(self, now_ms, turn->out);
    if (!self->registering || now_ms < self->resend_ms) return;
    self->resend_ms = now_ms + MEMBER_RETRY_MS;
    outbox_mail(turn->out, "coordinator", FRAME_CHECKPOINT, &self->saved);
}

// The last step is in a checkpoint that is on record, or can be in none.
static bool is_done(void *state, const struct member_turn *turn)
{
    const struct checkpointer *self = state;
    const uint64_t step = self->member.now.step;
    const bool saved = self->saved.step == step;
    const bool never = !saved && self->replica.step == step && holds_unsaveable(self);
    if (self->saving || self->registering || (!saved && !never)) return false;
    outbox_note(turn->out, "run.finished step=%" PRIu64 " checkpoint=%s", step,
                never ? "none" : self->saved.name);
    return true;
}

void checkpointer_step(void *state, const struct msg *in, struct outbox *out)
{
    struct checkpointer *self = state;
    const struct part parts[] = { { self, NULL, save, NULL },
                                  { &self->replica, replica_hear, replica_look, NULL },
                                  { &self->pace, pace_part_hear, pace_part_look, NULL },
                                  { self, hear, register_saved, is_done },
                                  { &self->blobs, blobs_hear, blobs_look, NULL },
                                  { 0 } };
    parts_step(&(struct member_turn){ .member = &self->member,
                                      .blobs = &self->blobs,
                                      .replica = &self->replica,
                                      .in = in,
                                      .out = out },
               parts);
}
