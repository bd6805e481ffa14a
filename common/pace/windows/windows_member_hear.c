// windows_member_hear -- notes what the coordinator says of windows (WINDOW, STEPS, LEVEL, LINKING, RUN), and what the
// learner says of its steps. What follows from it, windows_member.c decides when it looks.

#include "common/base/ensure.h"
#include "common/pace/windows/windows_member.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// ---- what the coordinator says ------------------------------------------------------------------

static void hear_closing(struct windows_member *self, uint64_t from, uint64_t to, uint64_t at)
{
    if (to <= self->closed) return;
    self->closed_from = from;
    self->closed = to;
    self->closed_at = at;
}

void windows_member_hear_window(struct windows_member *self, const struct member_turn *turn)
{
    const struct wire_window *said = turn->in->body;
    struct member *member = turn->member;
    if (said->number > 0 &&
        !window_is_sound(said, windows_config_of(&member->config), member->config.seq_len)) {
        outbox_note(turn->out, "window.unsound number=%" PRIu64 "; ignored", said->number);
        return;
    }
    if (!member->has_round && said->number <= windows_member_newest(self)->number) {
        self->kept[0].frame.number = self->kept[1].frame.number = 0; // An older ledger was put back
        self->keeper.kept_step = self->keeper.kept_in = 0;
        if (!windows_member_in_hand(self)) self->closed = self->frozen = self->done = 0;
    }
    if (!member->has_round || said->number > member->round) {
        member->has_round = true;
        member->round = said->number;
    }
    if (!role_takes_steps(member->role) || !turn->replica || said->number == 0) return;
    keeper_recorded(&self->keeper, turn, said->kept_window, said->kept_step);
    hear_closing(self, said->closed_from, said->closed, said->closed_at);
    if (said->number > self->kept[said->number % 2].frame.number)
        window_keep(&self->kept[said->number % 2], said);
}

void windows_member_freeze(struct windows_member *self, const struct member_turn *turn)
{
    if (self->freezing) return;
    self->freezing = true;
    outbox_job(turn->out, PORT_LEARNER, FRAME_FREEZE,
               &(struct wire_level){ self->newest, self->level ? self->level : 1 });
}

// The newest is taken, whatever its number: if an older one came late, STANDS shows that, and is answered.
static void hear_linking(struct windows_member *self, const struct wire_linking *said)
{
    self->linking = said->number;
    self->trainers_count = said->trainers_count;
    memcpy(self->trainers, said->trainers, said->trainers_count * sizeof *said->trainers);
}

// Whether a step is the run's, if it is among these. The windows in hand follow one another, so no other window of their
// numbers has it.
static void note_commit(const struct windows_member *self, const struct wire_steps *steps,
                        uint64_t step, uint8_t *commit)
{
    if (steps->step > step || step >= steps->end) return;
    // mutant: windows: a step of another window is applied from memory
    const bool is_ours = steps->number >= self->first && steps->number <= self->newest;
    *commit = is_ours ? IS_THE_RUNS : IS_NOT_THE_RUNS;
}

static void hear_steps(struct windows_member *self, const struct member_turn *turn,
                       const struct wire_steps *steps)
{
    const uint64_t step = self->stands.step;
    keeper_recorded(&self->keeper, turn, steps->kept_window, steps->kept_step);
    if (steps->closed) hear_closing(self, steps->number, steps->closed, steps->end);
    if (!self->is_frozen) return;
    if (step > 0) note_commit(self, steps, step - 1, &self->applied);
    note_commit(self, steps, step, &self->memory);
}

// The answer of a member that has begun no window that counts.
static void answer_without_window(struct windows_member *self, const struct member_turn *turn,
                                  const struct wire_level *level)
{
    const struct replica *replica = turn->replica;
    self->frozen = level->window;
    self->stands.window = level->window;
    self->stands.step = replica->holding && !replica->loading ? replica->step : 0;
    self->stands.has = self->stands.broken = false;
    self->stands.unsound = UNSOUND_NONE;
    self->stands.differ = 0;
    self->stands.dead = self->stands.heard = 0;
    self->stands.because[0] = 0;
    self->stands.level = level->level;
}

static void hear_level(struct windows_member *self, const struct member_turn *turn)
{
    const struct wire_level *level = turn->in->body;
    if (level->window <= self->closed || level->window <= self->done || self->closing) return;
    if (level->window > self->frozen) self->frozen = level->window;
    if (level->level > self->level) self->level = level->level;
    self->say_ms = 0;
    if (windows_member_in_hand(self) && !self->is_frozen) {
        self->stands.heard =
            self->level; // It lives, whatever others say; its learner may be computing
        windows_member_freeze(self, turn);
        return;
    }
    if (windows_member_in_hand(self)) self->stands.level = self->level;
    else answer_without_window(self, turn, level);
}

// ---- what the learner says ----------------------------------------------------------------------

static void stand(struct windows_member *self, const struct member_turn *turn, uint64_t window,
                  uint64_t step, bool share)
{
    struct replica *replica = turn->replica;
    const struct wire_window *of = windows_member_kept(self, window);
    if (step > replica->step)
        replica_move(replica, turn->member, step, &(struct hash){ { 0 } },
                     of ? of->epoch : self->epoch);
    // mutant: windows: a member that dies with its share may bring all of the state back
    self->stands.share = share;
    if (step > self->stands.step || window > self->stands.window) self->stands.has = false;
    self->stands.window = window;
    self->stands.step = step;
}

// The newest steps of which the learner has taken its part of a save, and a copy of its share.
static void take_marks(struct windows_member *self, uint64_t taken, uint64_t taken_window,
                       uint64_t copied, uint64_t copied_window)
{
    self->stands.taken = taken;
    self->stands.taken_window = taken_window;
    self->stands.copied = copied;
    self->stands.copied_window = copied_window;
}

static void hear_stepped(struct windows_member *self, const struct member_turn *turn)
{
    const struct wire_stepped *said = turn->in->body;
    struct member *member = turn->member;
    const struct wire_window *window = windows_member_kept(self, said->window);
    if (!windows_member_in_hand(self) || said->window < self->first ||
        said->step < turn->replica->step)
        return;
    const uint64_t before = self->stands.step;
    stand(self, turn, said->window, said->step, said->share);
    take_marks(self, said->taken, said->taken_window, said->copied, said->copied_window);
    self->stands.stopped |= said->stopped;
    if (said->late != self->stands.late) self->say_ms = 0;
    self->stands.late = said->late;
    self->stands.late_ms = said->late_ms;
    self->stands.usual_ms = said->usual_ms;
    member->loss = said->loss;
    member->loss_step = said->step;
    member->tokens_per_s = said->tokens_per_s;
    memcpy(&member->step_lr, &said->lr_bits, sizeof member->step_lr);
    outbox_news(turn->out, FRAME_PROGRESS,
                &(struct wire_progress){ .round = said->window,
                                         .step = said->step,
                                         .loss = said->loss,
                                         .tokens_per_s = said->tokens_per_s,
                                         .samples = said->samples,
                                         .train_ms = said->train_ms,
                                         .apply_ms = said->apply_ms });
    const bool is_due = !window || said->step == window_end(window) ||
                        (before < window_middle(window) && said->step >= window_middle(window));
    if (is_due || said->stopped) self->say_ms = 0;
}

static void hear_broke(struct windows_member *self, const struct member_turn *turn)
{
    const struct wire_broke *said = turn->in->body;
    if (!windows_member_in_hand(self) || said->window < self->first) return;
    stand(self, turn, said->window, said->step, said->share);
    take_marks(self, said->taken, said->taken_window, said->copied, said->copied_window);
    self->stands.has = said->has;
    self->stands.broken = true;
    self->stands.missing = said->missing;
    self->stands.dead = said->dead;
    snprintf(self->stands.because, sizeof self->stands.because, "%.*s",
             (int)sizeof self->stands.because - 1, said->reason);
    self->stands.overdue = said->overdue;
    self->stands.unsound = said->unsound;
    self->stands.differ = said->differ;
    self->say_ms = 0;
    outbox_note(turn->out, "window.broke number=%" PRIu64 " step=%" PRIu64 " because=\"%s\"",
                said->window, said->step, said->reason);
}

static void hear_frozen(struct windows_member *self, const struct member_turn *turn)
{
    const struct wire_frozen *said = turn->in->body;
    self->freezing = false;
    if (!windows_member_in_hand(self) || said->window < self->first) return;
    stand(self, turn, said->window, said->step, said->share);
    take_marks(self, said->taken, said->taken_window, said->copied, said->copied_window);
    self->is_frozen = true;
    self->stands.has = said->has;
    self->stands.dead |= said->dead;
    self->stands.heard = 0;
    self->stands.level = self->level;
    self->say_ms = 0;
}

static void hear_closed(struct windows_member *self, const struct member_turn *turn)
{
    const struct wire_closed_window *said = turn->in->body;
    struct replica *replica = turn->replica;
    ensure(self->closing);
    if (windows_member_in_hand(self)) self->done = self->newest;
    self->closing = self->freezing = self->is_frozen = self->is_stopping = false;
    self->applied = self->memory = IS_OPEN;
    replica->applying = false;
    self->first = self->newest = 0;
    const uint64_t window = self->stands.window;
    struct wire_stands stands = { .instance = turn->member->instance };
    memcpy(stands.links, self->stands.links, sizeof stands.links);
    stands.linking = self->stands.linking;
    stands.linked = self->stands.linked;
    stands.taken = self->stands.taken;
    stands.taken_window = self->stands.taken_window;
    stands.saved_window = self->stands.saved_window;
    stands.saved_step = self->stands.saved_step;
    stands.saved = self->stands.saved;
    stands.copied = self->stands.copied;
    stands.copied_window = self->stands.copied_window;
    stands.kept = self->stands.kept;
    stands.kept_step = self->stands.kept_step;
    stands.kept_window = self->stands.kept_window;
    self->stands = stands;
    self->stands.window = window;
    self->stands.share = said->share;
    self->say_ms = 0;
    // mutant: windows: a member that cannot reach the end goes on from where it stands
    if (!said->ok) {
        self->lost = true;
        replica_drop(replica, said->reason, turn->out);
        return;
    }
    self->stands.step = said->step;
    if (said->step != replica->step || !hash_is_none(&said->digest))
        replica_move(replica, turn->member, said->step, &said->digest, replica->epoch);
}

static void hear_links(struct windows_member *self, const struct wire_links *said)
{
    memcpy(self->stands.links, said->endpoint, sizeof self->stands.links);
    self->stands.linking = said->linking;
    self->stands.linked = said->linked;
    if (said->linking == 0) self->expecting = 0; // Its model is new, and its links
    self->say_ms = 0;
}

// Said in each STANDS from now on, until a newer one is whole.
static void hear_whole(struct windows_member *self, const struct wire_whole *said)
{
    self->stands.saved_window = said->window;
    self->stands.saved_step = said->step;
    self->stands.saved = said->digest;
    self->say_ms = 0;
}

static void hear_learner(struct windows_member *self, const struct member_turn *turn)
{
    switch (turn->in->kind) {
    case FRAME_LINKS: hear_links(self, turn->in->body); break;
    case FRAME_WHOLE: hear_whole(self, turn->in->body); break;
    case FRAME_STEPPED: hear_stepped(self, turn); break;
    case FRAME_BROKE: hear_broke(self, turn); break;
    case FRAME_FROZEN: hear_frozen(self, turn); break;
    case FRAME_CLOSED_WINDOW: hear_closed(self, turn); break;
    }
}

void windows_member_hear(struct windows_member *self, const struct member_turn *turn)
{
    const void *said = turn->in->body;
    if (turn->heard & HEARD_PACE) {
        switch (turn->in->kind) {
        case FRAME_STEPS: hear_steps(self, turn, said); break;
        case FRAME_LEVEL: hear_level(self, turn); break;
        case FRAME_LINKING: hear_linking(self, said); break;
        }
    }
    if ((turn->heard & HEARD_RUN) && turn->member->now.memory_window)
        keeper_recorded(&self->keeper, turn, turn->member->now.memory_window,
                        turn->member->now.memory_step);
    if (turn->heard & (HEARD_REBORN | HEARD_ADMITTED)) self->say_ms = 0;
    hear_learner(self, turn);
    windows_member_keep_hear(self, turn);
}
