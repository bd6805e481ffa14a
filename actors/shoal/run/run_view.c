// run_view -- hears one message at a time, in this order: a trainer's PROGRESS is noted; of all
// else only the coordinator's word counts, and only that of its newest life; then each kind has one
// function. The roster, the newest round and its commit are kept in the values that the coordinator
// itself uses (roster.h, round.h). What is not newer than what the view knows is ignored, since
// news may overtake each other. The first ROUND, WINDOW or GROUP tells what the run's steps are made in.

#include "actors/shoal/run/run_view.h"

// Frames that the broker had kept come by mail. They may arrive after newer ones that came as news.
static bool is_older(const struct msg *in, uint64_t *newest_seq)
{
    if (in->seq < *newest_seq) return true;
    *newest_seq = in->seq;
    return false;
}

// LEASE_ENDED goes only to those that ask: it is no news. So a higher step in RUN is what shows that tasks were committed.
static unsigned hear_run(struct run_view *self, const struct msg *in)
{
    const struct wire_run *run = in->body;
    if (is_older(in, &self->run_seq)) return 0;
    bool moved = !self->has_run || run->phase != self->now.phase;
    const bool has_leases = self->unit && self->unit->config == FRAME_LEASES_CONFIG;
    const unsigned commit = has_leases && run->step > self->now.step ? VIEW_COMMIT : 0;
    self->now = *run;
    self->has_run = true;
    return commit | (moved ? VIEW_RUN | VIEW_PHASE : VIEW_RUN);
}

static unsigned hear_beat(struct run_view *self, const struct wire_beat *beat)
{
    self->beats++;
    if (!self->has_run || beat->log_seq < self->now.log_seq) return 0;
    bool moved = beat->phase != self->now.phase;
    self->now.phase = beat->phase;
    self->now.round = beat->round;
    self->now.step = beat->step;
    return moved ? VIEW_RUN | VIEW_PHASE : VIEW_RUN;
}

static unsigned hear_roster(struct run_view *self, const struct msg *in)
{
    const struct wire_roster *roster = in->body;
    if (is_older(in, &self->roster_seq)) return 0;
    self->roster_incarnation = in->incarnation;
    return roster_load(&self->roster, roster->version, roster->members, roster->members_count)
               ? VIEW_ROSTER
               : 0;
}

// After a gap it waits for the next ROSTER.
static unsigned hear_members(struct run_view *self, const struct msg *in)
{
    if (in->incarnation != self->roster_incarnation || !roster_change(&self->roster, in->body))
        return 0;
    self->roster_seq = in->seq;
    return VIEW_ROSTER;
}

// Updates `now` at once, since a ROUND may come before the RUN that says the same. A ROUND that the broker had kept
// may also come after a newer RUN: then `now` stays.
static unsigned hear_round(struct run_view *self, const struct msg *in)
{
    const struct wire_round *round = in->body;
    if (round->round <= self->round.opened.round || !round_is_sound(round)) return 0;
    round_open(&self->round, round);
    self->unit = run_words_unit(FRAME_ROUNDS_CONFIG);
    if (in->seq < self->run_seq) return VIEW_ROUND;
    self->now.round = round->round;
    self->now.step = round->step;
    self->now.epoch = round->epoch;
    self->now.phase = PHASE_TRAIN;
    return VIEW_ROUND;
}

static unsigned hear_commit(struct run_view *self, const struct msg *in)
{
    const struct wire_commit *commit = in->body;
    if (commit->round <= self->round.last.round) return 0;
    round_close(&self->round, commit);
    self->unit = run_words_unit(FRAME_ROUNDS_CONFIG);
    if (commit->outcome == OUTCOME_COMMITTED && in->seq >= self->run_seq)
        self->now.step = commit->step + 1;
    return VIEW_COMMIT;
}

// A window may be opened while steps of the one before are still ahead, so `now` stays.
static unsigned hear_window(struct run_view *self, const struct wire_window *window)
{
    struct view_window *newest = &self->window;
    if (window->number <= newest->number) return 0;
    self->unit = run_words_unit(FRAME_WINDOWS_CONFIG);
    newest->number = window->number;
    newest->step = window->step;
    newest->steps = window->steps;
    newest->samples = 0;
    for (uint32_t i = 0; i < window->samples_count; i++)
        newest->samples += interval_length(window->samples[i]);
    newest->members_count = 0;
    for (uint32_t i = 0; i < window->group_count && i < VIEW_GROUP_MAX; i++)
        newest->members[newest->members_count++] = window->group[i].member;
    return VIEW_WINDOW;
}

// A group lasts as long as its epoch, and RUN says how far it is.
static unsigned hear_group(struct run_view *self, const struct wire_group *group)
{
    struct view_window *newest = &self->window;
    if (group->number <= newest->number) return 0;
    self->unit = run_words_unit(FRAME_LEASES_CONFIG);
    newest->number = group->number;
    newest->members_count = 0;
    for (uint32_t i = 0; i < group->group_count && i < VIEW_GROUP_MAX; i++)
        newest->members[newest->members_count++] = group->group[i].member;
    return VIEW_WINDOW;
}

static unsigned hear_pushes(struct run_view *self, const struct msg *in)
{
    const struct wire_pushes *pushes = in->body;
    struct view_pushes *newest = &self->pushes;
    if (is_older(in, &self->pushes_seq)) return 0;
    newest->number = pushes->number;
    newest->count = 0;
    for (uint32_t i = 0; i < pushes->trainers_count && i < VIEW_GROUP_MAX; i++)
        if (pushes->trainers[i].member < MEMBERS_MAX)
            newest->lines[newest->count++] = pushes->trainers[i];
    return VIEW_PUSHES;
}

// After a restore the steps go back. That is a later window's word, so it counts.
static unsigned hear_steps(struct run_view *self, const struct wire_steps *steps)
{
    struct view_window *newest = &self->window;
    const bool is_later = steps->number > newest->commit_window ||
                          (steps->number == newest->commit_window && steps->end > newest->end);
    if (!is_later || steps->end < steps->step) return 0;
    self->unit = run_words_unit(FRAME_WINDOWS_CONFIG);
    newest->commit_window = steps->number;
    newest->end = steps->end;
    self->now.round = steps->number;
    self->now.step = steps->end;
    if (steps->end == steps->step) return 0; // The window was closed, and nothing more
    newest->commit_steps = steps->end - steps->step;
    newest->commit_samples = steps->samples;
    return VIEW_COMMIT;
}

static unsigned hear_progress(struct run_view *self, const struct msg *in)
{
    const struct wire_progress *said = in->body;
    uint32_t member = run_view_member(self, &in->sender);
    if (member == NO_MEMBER) return 0;
    struct view_progress *progress = &self->progress[member];
    progress->step = said->step;
    progress->round = said->round;
    progress->samples = said->samples;
    progress->digest = said->digest;
    return VIEW_PROGRESS;
}

// True if the coordinator signed it, in its newest life.
static bool is_of_coordinator(struct run_view *self, const struct msg *in, unsigned *ret_heard)
{
    if (!(wire_kind_flags(in->kind) & (WIRE_STATE | WIRE_ORDER)) ||
        in->incarnation < self->incarnation)
        return false;
    *ret_heard = self->incarnation && in->incarnation > self->incarnation ? VIEW_REBORN : 0;
    if (*ret_heard) self->run_seq = self->roster_seq = self->pushes_seq = 0;
    self->incarnation = in->incarnation;
    return true;
}

unsigned run_view_hear(struct run_view *self, const struct msg *in)
{
    unsigned heard = 0;
    if (in->kind == FRAME_PROGRESS) return hear_progress(self, in);
    if (!is_of_coordinator(self, in, &heard)) return 0;
    switch (in->kind) {
    case FRAME_RUN: return heard | hear_run(self, in);
    case FRAME_BEAT: return heard | hear_beat(self, in->body);
    case FRAME_ROSTER: return heard | hear_roster(self, in);
    case FRAME_MEMBERS: return heard | hear_members(self, in);
    case FRAME_ROUND: return heard | hear_round(self, in);
    case FRAME_COMMIT: return heard | hear_commit(self, in);
    case FRAME_WINDOW: return heard | hear_window(self, in->body);
    case FRAME_GROUP: return heard | hear_group(self, in->body);
    case FRAME_PUSHES: return heard | hear_pushes(self, in);
    case FRAME_STEPS: return heard | hear_steps(self, in->body);
    case FRAME_EPOCH_END: return heard | VIEW_EPOCH_END;
    default: return heard;
    }
}

uint32_t run_view_member(const struct run_view *self, const struct key *key)
{
    return key_is_none(key) ? NO_MEMBER : roster_find(&self->roster, key);
}

bool run_view_accepts(const struct run_view *self, const struct key *key)
{
    const uint32_t member = run_view_member(self, key);
    return member != NO_MEMBER && round_accepts(&self->round, member);
}

const char *run_view_phase(const struct run_view *self)
{
    return self->has_run ? run_words_phase(self->unit, self->now.phase) : "unknown";
}

bool run_view_in_group(const struct run_view *self, uint32_t member)
{
    for (uint32_t i = 0; i < self->window.members_count; i++)
        if (self->window.members[i] == member) return true;
    return false;
}
