// ledger_check -- walks the records with a small model of the run: phases, rounds, samples and
// checkpoints.

#include "tests/live/ledger_check.h"
#include "common/pace/evidence.h"
#include "common/ledger/ledger.h"
#include "common/pace/rounds/claims.h"
#include "common/wire/wire.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POSITIONS_MAX = 1 << 26, DEALT_MAX = 4096, ARENA_BYTES = 32 << 20, STEPS_MAX = 4096 };
enum { WINDOWS_OPEN = 2, LEASES_OUT = 64, LEASE_LIST = 64 };

// What `done` says of a position.
enum { TODO, DONE, PENDING, GIVEN_UP };

// A window that is open: its steps, and the samples of those that are not committed.
struct open_window {
    uint64_t step, end;
    struct interval samples[DEALT_MAX];
    uint32_t samples_count;
};

// A task of a run that is not in step, in a trainer's hands.
struct lease_out {
    uint64_t number;
    struct interval samples[LEASE_LIST];
    uint32_t samples_count;
};

// Its group: where it began, and what it has trained since, or given up.
struct group {
    bool open, settled;
    uint64_t number, step;
    struct interval trained[DEALT_MAX];
    uint32_t trained_count;
    struct interval given_up[DEALT_MAX];
    uint32_t given_up_count;
    struct lease_out out[LEASES_OUT];
    uint32_t out_count;
};

struct check {
    struct ledger_report *report;
    struct evidence *evidence;
    char *text;
    unsigned text_max;
    const char *run_id;
    struct wire_arena arena;
    uint8_t *done; // By position: TODO, DONE ..
    uint64_t most; // Behind the last of them
    struct interval dealt[DEALT_MAX];
    uint32_t dealt_count;
    uint64_t round, dealt_samples;
    bool open;
    struct open_window windows[WINDOWS_OPEN]; // The older first
    uint32_t windows_open;
    uint64_t window; // Number of the newest
    struct group group;
    uint8_t phase;
    uint64_t incarnation;
    struct hash last_commit;
};

static int bad(struct check *self, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int bad(struct check *self, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(self->text, self->text_max, format, args);
    va_end(args);
    return FAULT_CORRUPT;
}

// The moves drawn in coordinator.h, as rows of what may follow. A ROUND record enters RoundTrain, a
// COMMIT leaves it.
static const unsigned moves[PHASE_COUNT] = {
    [PHASE_WAITING] = 1u << PHASE_WARMUP | 1u << PHASE_PAUSED,
    [PHASE_WARMUP] = 1u << PHASE_TRAIN | 1u << PHASE_WAITING | 1u << PHASE_PAUSED,
    [PHASE_TRAIN] = 1u << PHASE_WITNESS | 1u << PHASE_COOLDOWN,
    [PHASE_WITNESS] = 1u << PHASE_TRAIN | 1u << PHASE_COOLDOWN,
    [PHASE_COOLDOWN] = 1u << PHASE_WAITING | 1u << PHASE_FINISHED | 1u << PHASE_PAUSED,
    [PHASE_PAUSED] = 1u << PHASE_WAITING,
};

static void mark(struct check *self, const struct interval *list, uint32_t count, uint8_t state)
{
    for (uint32_t i = 0; i < count; i++)
        memset(self->done + list[i].begin, state, list[i].end - list[i].begin);
}

// What is out is to be dealt again; and, if the group has committed no step, so is what it has trained or
// given up.
static void end_group(struct check *self)
{
    struct group *group = &self->group;
    if (!group->open) return;
    group->open = false;
    for (uint32_t i = 0; i < group->out_count; i++)
        mark(self, group->out[i].samples, group->out[i].samples_count, TODO);
    group->out_count = 0;
    if (group->settled || self->report->commits > group->step) return;
    for (uint32_t i = 0; i < group->trained_count; i++)
        self->report->samples -= group->trained[i].end - group->trained[i].begin;
    mark(self, group->trained, group->trained_count, TODO);
    mark(self, group->given_up, group->given_up_count, TODO);
}

static int enter(struct check *self, uint8_t phase)
{
    if (!(moves[self->phase] & 1u << phase))
        return bad(self, "phase %u after phase %u", phase, self->phase);
    if (phase == PHASE_COOLDOWN) end_group(self);
    self->phase = phase;
    self->report->finished = phase == PHASE_FINISHED;
    if (phase == PHASE_COOLDOWN) self->report->epochs++;
    return 0;
}

static int look_round(struct check *self, const struct wire_round *round)
{
    if (self->open)
        return bad(self, "round %" PRIu64 " opens before %" PRIu64 " is committed", round->round,
                   self->round);
    if (round->round != self->round + 1 || round->step != self->report->commits)
        return bad(self,
                   "round %" PRIu64 " at step %" PRIu64 " after round %" PRIu64 " and %" PRIu64
                   " commits",
                   round->round, round->step, self->round, self->report->commits);
    if (!hash_equal(&round->previous, &self->last_commit))
        return bad(self, "round %" PRIu64 " names another commit before it", round->round);
    if (round->dealt_count > DEALT_MAX) return bad(self, "%u intervals dealt", round->dealt_count);
    self->dealt_samples = 0;
    for (uint32_t i = 0; i < round->dealt_count; i++) {
        self->dealt[i] = round->dealt[i];
        self->dealt_samples += round->dealt[i].end - round->dealt[i].begin;
        if (round->dealt[i].end > POSITIONS_MAX)
            return bad(self, "position %" PRIu64 " dealt", round->dealt[i].end);
        for (uint64_t p = round->dealt[i].begin; p < round->dealt[i].end; p++)
            if (self->done[p])
                return bad(self,
                           "sample %" PRIu64 " is dealt in round %" PRIu64
                           " and was committed before",
                           p, round->round);
    }
    self->dealt_count = round->dealt_count;
    self->round = round->round;
    self->open = true;
    self->report->rounds++;
    return self->phase == PHASE_TRAIN ? 0 : enter(self, PHASE_TRAIN);
}

// The position of the sample with index `place` in the round's list.
static uint64_t position_at(const struct check *self, uint64_t place)
{
    for (uint32_t i = 0; i < self->dealt_count; i++) {
        uint64_t length = self->dealt[i].end - self->dealt[i].begin;
        if (place < length) return self->dealt[i].begin + place;
        place -= length;
    }
    return POSITIONS_MAX;
}

static int take_accepted(struct check *self, const struct wire_commit *commit)
{
    uint64_t samples = 0;
    for (uint32_t i = 0; i < commit->accepted_count; i++)
        for (uint64_t at = commit->accepted[i].begin; at < commit->accepted[i].end;
             at++, samples++) {
            uint64_t p = position_at(self, at);
            if (p == POSITIONS_MAX)
                return bad(self, "round %" PRIu64 " accepts what it did not deal", commit->round);
            if (self->done[p]++) return bad(self, "sample %" PRIu64 " is committed twice", p);
        }
    if (samples != commit->samples)
        return bad(self, "commit of step %" PRIu64 " names %" PRIu64 " samples and counts %" PRIu64,
                   commit->step, samples, commit->samples);
    self->report->samples += samples;
    self->report->partial += samples < self->dealt_samples;
    return 0;
}

static int look_commit(struct check *self, const struct wire_commit *commit)
{
    struct ledger_report *report = self->report;
    if (!self->open || commit->round != self->round)
        return bad(self, "commit of round %" PRIu64 ", open is %" PRIu64, commit->round,
                   (uint64_t)(self->open ? self->round : 0));
    if (commit->step != report->commits)
        return bad(self, "step %" PRIu64 " committed after %" PRIu64 " commits", commit->step,
                   report->commits);
    if (!hash_equal(&commit->previous, &self->last_commit))
        return bad(self, "the commit of round %" PRIu64 " names another before it", commit->round);
    self->open = false;
    self->last_commit = commit_hash(commit);
    if (self->phase == PHASE_TRAIN) self->phase = PHASE_WITNESS;
    if (commit->outcome == OUTCOME_VOID) {
        report->voids++;
        return commit->accepted_count ? bad(self, "a void accepts") : 0;
    }
    if (3 * commit->votes < 2 * commit->elected || commit->elected == 0)
        return bad(self, "step %" PRIu64 " committed on %u of %u votes", commit->step,
                   commit->votes, commit->elected);
    if (report->digest_step == commit->step && !hash_is_none(&report->digest) &&
        !hash_equal(&report->digest, &commit->base))
        return bad(self, "step %" PRIu64 " starts from another digest than the one pinned",
                   commit->step);
    if (commit->step < STEPS_MAX) report->base[commit->step] = commit->base;
    report->commits++;
    return take_accepted(self, commit);
}

// ---- windows ------------------------------------------------------------------------------------

static uint64_t end_of_windows(const struct check *self)
{
    return self->windows_open ? self->windows[self->windows_open - 1].end : self->report->commits;
}

static int look_window(struct check *self, const struct wire_window *window)
{
    if (window->number != self->window + 1 || window->step != end_of_windows(self))
        return bad(self,
                   "window %" PRIu64 " at step %" PRIu64 " after window %" PRIu64
                   " and step %" PRIu64,
                   window->number, window->step, self->window, end_of_windows(self));
    if (self->windows_open == WINDOWS_OPEN || window->samples_count > DEALT_MAX)
        return bad(self, "window %" PRIu64 " is the third, or has %u intervals", window->number,
                   window->samples_count);
    struct open_window *opened = &self->windows[self->windows_open++];
    opened->step = window->step;
    opened->end = window->step + window->steps;
    opened->samples_count = window->samples_count;
    memcpy(opened->samples, window->samples, window->samples_count * sizeof *window->samples);
    self->window = window->number;
    self->report->rounds++;
    return self->phase == PHASE_TRAIN ? 0 : enter(self, PHASE_TRAIN);
}

// The samples of a step are the next ones of its window.
static int take_samples(struct check *self, struct open_window *window, uint64_t count)
{
    self->report->samples += count;
    for (uint32_t i = 0; i < window->samples_count && count > 0; i++)
        for (; window->samples[i].begin < window->samples[i].end && count > 0; count--) {
            const uint64_t p = window->samples[i].begin++;
            if (p >= POSITIONS_MAX) return bad(self, "position %" PRIu64 " dealt", p);
            if (p >= self->most) self->most = p + 1;
            if (self->done[p]++) return bad(self, "sample %" PRIu64 " is committed twice", p);
        }
    return count ? bad(self, "steps commit more samples than their window has") : 0;
}

static int look_steps(struct check *self, const struct wire_steps *steps)
{
    struct open_window *oldest = &self->windows[0];
    if (!self->windows_open || steps->step != self->report->commits || steps->end < steps->step ||
        steps->end > oldest->end || steps->number + self->windows_open != self->window + 1)
        return bad(self,
                   "steps %" PRIu64 " to %" PRIu64 " of window %" PRIu64 " committed after %" PRIu64
                   " steps",
                   steps->step, steps->end, steps->number, self->report->commits);
    const int rc = take_samples(self, oldest, steps->samples);
    self->report->commits = steps->end;
    if (steps->closed) {
        self->report->closed++;
        self->windows_open = 0;
    } else if (steps->end == oldest->end && --self->windows_open > 0)
        self->windows[0] = self->windows[1];
    return rc;
}

// ---- tasks --------------------------------------------------------------------------------------

static int look_group(struct check *self, const struct wire_group *said)
{
    struct group *group = &self->group;
    if (group->open || said->number != group->number + 1 || said->step != self->report->commits)
        return bad(
            self, "group %" PRIu64 " at step %" PRIu64 " after group %" PRIu64 " and step %" PRIu64,
            said->number, said->step, group->number, self->report->commits);
    *group = (struct group){ .open = true, .number = said->number, .step = said->step };
    self->report->rounds++;
    return enter(self, PHASE_TRAIN);
}

// Each of its samples is in no other task, and not trained in this pass.
static int look_lease(struct check *self, const struct wire_lease *lease)
{
    struct group *group = &self->group;
    if (!group->open || group->out_count == LEASES_OUT || lease->samples_count > LEASE_LIST)
        return bad(self, "lease %" PRIu64 " of no group, or it has %u intervals", lease->number,
                   lease->samples_count);
    struct lease_out *out = &group->out[group->out_count++];
    *out = (struct lease_out){ .number = lease->number, .samples_count = lease->samples_count };
    for (uint32_t i = 0; i < lease->samples_count; i++) {
        out->samples[i] = lease->samples[i];
        if (lease->samples[i].end > POSITIONS_MAX)
            return bad(self, "position %" PRIu64 " dealt", lease->samples[i].end);
        if (lease->samples[i].end > self->most) self->most = lease->samples[i].end;
        for (uint64_t p = lease->samples[i].begin; p < lease->samples[i].end; p++)
            if (self->done[p] != TODO)
                return bad(self, "lease %" PRIu64 " has sample %" PRIu64 ", which is %s",
                           lease->number, p, self->done[p] == PENDING ? "in another" : "trained");
    }
    mark(self, lease->samples, lease->samples_count, PENDING);
    return 0;
}

static int end_lease(struct check *self, const struct wire_lease_ended *ended)
{
    static const uint8_t states[] = {
        [FATE_DONE] = DONE, [FATE_RETURNED] = TODO, [FATE_GIVEN_UP] = GIVEN_UP
    };
    struct group *group = &self->group;
    uint32_t i = 0;
    uint64_t samples = 0;
    while (i < group->out_count && group->out[i].number != ended->lease) i++;
    if (i == group->out_count)
        return bad(self, "lease %" PRIu64 " ends, and is not out", ended->lease);
    const struct lease_out out = group->out[i];
    group->out[i] = group->out[--group->out_count];
    mark(self, out.samples, out.samples_count, states[ended->fate]);
    for (i = 0; ended->fate == FATE_DONE && i < out.samples_count; i++) {
        samples += out.samples[i].end - out.samples[i].begin;
        if (group->trained_count < DEALT_MAX)
            group->trained[group->trained_count++] = out.samples[i];
    }
    for (i = 0; ended->fate == FATE_GIVEN_UP && i < out.samples_count; i++)
        if (group->given_up_count < DEALT_MAX)
            group->given_up[group->given_up_count++] = out.samples[i];
    self->report->samples += samples;
    return samples == ended->samples
               ? 0
               : bad(self, "lease %" PRIu64 " has %" PRIu64 " samples, said are %" PRIu64,
                     ended->lease, samples, ended->samples);
}

static int look_lease_end(struct check *self, const struct wire_lease_ended *ended)
{
    if (!self->group.open || ended->step != self->report->commits || ended->end < ended->step)
        return bad(self,
                   "lease %" PRIu64 " leads from step %" PRIu64 " to %" PRIu64
                   " after step %" PRIu64,
                   ended->lease, ended->step, ended->end, self->report->commits);
    self->report->commits = ended->end;
    return ended->cause == LEASE_CAUSE_CLOSED ? 0 : end_lease(self, ended);
}

// What the servers are told to save or to copy is the present step.
static int look_share(struct check *self, const struct wire_save_share *share)
{
    return self->group.open && share->number == self->group.number &&
                   share->step == self->report->commits
               ? 0
               : bad(self, "group %" PRIu64 " saves or copies step %" PRIu64 " at step %" PRIu64,
                     share->number, share->step, self->report->commits);
}

static int look_close(struct check *self, const struct wire_close_group *closing)
{
    if (self->group.out_count == 0 && closing->step == self->report->commits) return 0;
    return bad(self, "group %" PRIu64 " is closed at step %" PRIu64 " with %u tasks out",
               closing->number, closing->step, self->group.out_count);
}

// ---- both ---------------------------------------------------------------------------------------

// Below the cursor all is committed but the returned.
static int look_epoch_end(struct check *self, const struct wire_epoch_end *end)
{
    uint32_t next = 0;
    if (end->step != self->report->commits)
        return bad(self, "digest pinned for step %" PRIu64 " after %" PRIu64 " commits", end->step,
                   self->report->commits);
    if (end->data_position.cursor > POSITIONS_MAX)
        return bad(self, "cursor %" PRIu64, end->data_position.cursor);
    for (uint64_t p = self->report->first_sample; p < end->data_position.cursor; p++) {
        while (next < end->data_position.returned_count &&
               p >= end->data_position.returned[next].end)
            next++;
        bool returned = next < end->data_position.returned_count &&
                        p >= end->data_position.returned[next].begin;
        if (returned == !!self->done[p])
            return bad(self, "at step %" PRIu64 " sample %" PRIu64 " is %s", end->step, p,
                       returned ? "to be dealt again and was committed" : "lost");
    }
    if (end->samples_done != self->report->samples)
        return bad(self, "%" PRIu64 " samples done, %" PRIu64 " committed", end->samples_done,
                   self->report->samples);
    self->report->digest = end->digest;
    self->report->digest_step = end->step;
    if (self->report->pinned_count < LEDGER_PINNED_MAX && !hash_is_none(&end->digest))
        self->report->pinned[self->report->pinned_count++] =
            (struct pinned_step){ end->step, end->digest };
    return 0;
}

static bool is_returned(const struct wire_data_position *at, uint64_t position)
{
    for (uint32_t i = 0; i < at->returned_count; i++)
        if (position >= at->returned[i].begin && position < at->returned[i].end) return true;
    return false;
}

// Of windows: the run goes back, and what was committed since is dealt again.
static int look_restore(struct check *self, const struct wire_record_restore *back)
{
    const struct wire_data_position *at = &back->data_position;
    uint64_t samples = 0;
    if (self->windows_open || back->step > self->report->commits)
        return bad(self, "a restore to step %" PRIu64 " after %" PRIu64 " commits, %u windows open",
                   back->step, self->report->commits, self->windows_open);
    for (uint64_t p = self->report->first_sample; p < self->most; p++) {
        const bool stays = p < at->cursor && !is_returned(at, p);
        if (stays && !self->done[p])
            return bad(self, "a restore to step %" PRIu64 " calls sample %" PRIu64 " done",
                       back->step, p);
        if (!stays) self->done[p] = TODO;
        samples += self->done[p] == DONE;
    }
    if (samples != back->samples_done)
        return bad(self,
                   "a restore to step %" PRIu64 " with %" PRIu64 " samples, said are %" PRIu64,
                   back->step, samples, back->samples_done);
    self->report->samples = samples;
    self->report->commits = back->step;
    self->report->restores++;
    return 0;
}

// The step of a memory save was committed before it.
static int look_kept(struct check *self, const struct wire_record_kept *kept)
{
    if (kept->step <= self->report->commits) return 0;
    return bad(self, "a memory save of step %" PRIu64 " after %" PRIu64 " commits", kept->step,
               self->report->commits);
}

static int look(void *arg, const struct record *record)
{
    struct check *self = arg;
    struct wire_refusal refusal;
    uint16_t kind;
    const void *body;
    self->arena.used = 0;
    self->report->records++;
    if (!wire_unpack_record(record->bytes, record->count, WIRE_LOCAL, &self->arena, &kind, &body,
                            &refusal))
        return bad(self, "record %" PRIu64 " cannot be read", record->seq);
    if (!evidence_hear(self->evidence, record->seq, kind, body))
        return bad(self, "%s", self->evidence->text);
    switch (kind) {
    case FRAME_RECORD_GENESIS:
        self->report->commits = ((const struct wire_record_genesis *)body)->step;
        self->report->first_sample = ((const struct wire_record_genesis *)body)->cursor;
        return strcmp(((const struct wire_record_genesis *)body)->run, self->run_id) == 0 &&
                       record->seq == 1
                   ? 0
                   : bad(self, "record %" PRIu64 " is a genesis", record->seq);
    case FRAME_RECORD_START: {
        uint64_t incarnation = ((const struct wire_record_start *)body)->incarnation;
        if (incarnation <= self->incarnation)
            return bad(self, "incarnation %" PRIu64 " after %" PRIu64, incarnation,
                       self->incarnation);
        self->incarnation = incarnation;
        self->report->starts++;
        return 0;
    }
    case FRAME_RECORD_MEMBER: {
        uint32_t index = ((const struct wire_member *)body)->index;
        if (index >= self->report->members) self->report->members = index + 1;
        return 0;
    }
    case FRAME_RECORD_PHASE: return enter(self, ((const struct wire_record_phase *)body)->phase);
    case FRAME_RECORD_ROUND: return look_round(self, body);
    case FRAME_RECORD_COMMIT: return look_commit(self, body);
    case FRAME_RECORD_WINDOW: return look_window(self, body);
    case FRAME_RECORD_STEPS: return look_steps(self, body);
    case FRAME_RECORD_EPOCH_END: return look_epoch_end(self, body);
    case FRAME_RECORD_RESTORE: return look_restore(self, body);
    case FRAME_RECORD_KEPT: return look_kept(self, body);
    case FRAME_RECORD_GROUP: return look_group(self, body);
    case FRAME_RECORD_LEASE: return look_lease(self, body);
    case FRAME_RECORD_LEASE_END: return look_lease_end(self, body);
    case FRAME_RECORD_SAVE:
    case FRAME_RECORD_COPY: return look_share(self, body);
    case FRAME_RECORD_CLOSE: return look_close(self, body);
    case FRAME_RECORD_SETTLED: self->group.settled = true; return 0;
    case FRAME_RECORD_CHECKPOINT:
        if (!((const struct wire_checkpoint *)body)->pieces)
            self->report->checkpoint_step = ((const struct wire_checkpoint *)body)->step;
        return 0;
    case FRAME_RECORD_EJECTION: self->report->ejections++; return 0;
    case FRAME_RECORD_FINDING: self->report->findings++; return 0;
    case FRAME_RECORD_PAUSE:
    case FRAME_RECORD_DATA: return 0;
    default: return bad(self, "record %" PRIu64 " is a %s", record->seq, wire_kind_name(kind));
    }
}

bool ledger_check(const char *dir, const char *run_id, struct ledger_report *ret_report,
                  char *ret_text, unsigned text_max)
{
    struct check *self = calloc(1, sizeof *self);
    struct ledger *ledger = NULL;
    struct why why = { 0 };
    *ret_report = (struct ledger_report){ 0 };
    *self = (struct check){ .report = ret_report,
                            .text = ret_text,
                            .text_max = text_max,
                            .run_id = run_id,
                            .arena = { .bytes = malloc(ARENA_BYTES), .max = ARENA_BYTES },
                            .done = calloc(POSITIONS_MAX, 1) };
    ret_text[0] = 0;
    int rc = ledger_open_readonly(dir, &why, &ledger);
    if (rc == 0 && strcmp(ledger_run_id(ledger), run_id) != 0)
        rc = bad(self, "a ledger of another run");
    if (rc == 0) rc = evidence_open(dir, &why, &self->evidence);
    if (rc == 0) rc = ledger_each(ledger, 1, look, self, &why);
    if (rc != 0 && !ret_text[0]) snprintf(ret_text, text_max, "%s: %s", dir, why.text);
    ledger_close(&ledger);
    evidence_close(&self->evidence);
    free(self->arena.bytes);
    free(self->done);
    free(self);
    return rc == 0;
}
