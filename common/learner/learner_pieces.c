// learner_pieces -- a member's part of the saves of a run (common/checkpoint/pieces.h): after every
// so many steps, or passes over the data, each member of the group writes its share of the state to
// the shared folder, beside the steps that follow.
//
// 1. A step is told by HAVE, which says whether the member is still writing an earlier save.
// 2. The step is applied, if all have told. All know the same of each other by then, so all save
//    or nobody does.
// 3. The share is copied (saver_take), and the next step begins. A thread writes the copy. The
//    member that writes last makes the save whole.
//
// The shares are equal, and begin at leaves of the digest. So the digest of the saved state follows
// from the pieces (state_pieces_digest). A window that is closed in the middle of a step leaves parts of a
// save behind, which the next save removes. That a save failed is a line in the log: training goes
// on. A number that changed by itself in somebody's memory is saved as it is, if the check of its leaf
// (learner_check.c) has not found it yet.

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/learner/learner_saver.h"
#include "common/learner/learner_windows.h"
#include "common/learner/state_pieces.h"
#include <inttypes.h>
#include <string.h>

static const struct wire_windows_config *config_of(const struct learner *self)
{
    return &self->window->config;
}

static bool are_on(const struct learner *self)
{
    const struct wire_windows_config *config = config_of(self);
    return self->options->trains && (config->save_steps > 0 || config->save_passes > 0);
}

// By the step that was applied last, and by its samples.
static bool is_due(const struct learner *self)
{
    const struct learner_window_work *work = self->window;
    const uint64_t steps = work->config.save_steps, done = work->samples_done;
    const uint64_t samples = work->config.save_passes * work->now->said.pass_samples;
    if (steps > 0) return self->step % steps == 0;
    return samples > 0 && done / samples > (done - work->batch) / samples;
}

int learner_pieces_check(const struct learner *self, struct why *why)
{
    return are_on(self) ? learner_saver_check(config_of(self)->shared_dir, why) : 0;
}

uint64_t learner_pieces_memory(const struct learner *self, struct interval share)
{
    return are_on(self) ? state_parts_bytes(self->optimizer, share) : 0;
}

// ---- the saver ----------------------------------------------------------------------------------

static struct interval share_of(const struct learner *self, struct learner_owner of)
{
    return group_interval(self->floats, of.owner, of.owners);
}

static void hear_result(struct learner *self, const struct saver_result *result)
{
    if (result->rc < 0 || result->missing < result->workers) return;
    const struct wire_whole whole = { result->attempt, result->step, result->digest };
    if (!hash_is_none(&whole.digest)) // The core registers it with the coordinator
        worker_answer(self->worker, FRAME_WHOLE, &whole);
}

void learner_pieces_look(struct learner *self)
{
    struct saver_result result;
    if (learner_saver_result(&self->window->pieces.saver, &result)) hear_result(self, &result);
}

void learner_pieces_close(struct learner *self)
{
    struct saver_result result;
    if (learner_saver_close(&self->window->pieces.saver, &result)) hear_result(self, &result);
}

bool learner_pieces_has_ended(const struct learner *self)
{
    return learner_saver_has_ended(&self->window->pieces.saver);
}

// Memory for the copy is taken when a group begins, not between two steps.
void learner_pieces_begin(struct learner *self, const struct wire_take_window *window)
{
    struct learner_pieces *pieces = &self->window->pieces;
    const struct wire_windows_config *config = config_of(self);
    struct why why = { 0 };
    const struct learner_owner of = learner_owner_in(self, window);
    if (!are_on(self) || of.owner == OWNER_NONE) return;
    const struct learner_saver_place place = {
        .shared_dir = config->shared_dir,
        .keep = config->keep,
        .born_unix_ms = window->born_unix_ms,
        .bytes = state_parts_bytes(self->optimizer, share_of(self, of)),
    };
    if (learner_saver_fits(&pieces->saver, &place) || learner_saver_is_writing(&pieces->saver))
        return;
    learner_pieces_close(self);
    learner_saver_open(self, &pieces->saver, &place, &why);
}

// ---- a save -------------------------------------------------------------------------------------

bool learner_pieces_is_busy(struct learner *self)
{
    learner_pieces_look(self);
    return learner_saver_is_writing(&self->window->pieces.saver);
}

static int take(struct learner *self, struct why *why)
{
    struct learner_pieces *pieces = &self->window->pieces;
    const struct wire_take_window *window = &self->window->now->said;
    const struct learner_owner of = learner_owner_in(self, window);
    const struct pieces_save save = { .step = self->step,
                                      .attempt = (uint32_t)window->number,
                                      .spare = window->spare,
                                      .worker = of.owner,
                                      .workers = of.owners };
    learner_pieces_begin(self, window); // The group may have changed while a save was written
    return learner_saver_take(self, &pieces->saver, &save, share_of(self, of), NULL, why);
}

void learner_pieces_stepped(struct learner *self)
{
    struct learner_pieces *pieces = &self->window->pieces;
    struct why why = { 0 };
    if (!are_on(self) || !is_due(self)) return;
    if (pieces->somebody_writes) {
        log_line(LOG_WARNING,
                 "save.skipped step=%" PRIu64 " because=\"a member is still writing an earlier "
                 "save\"; all members skip it",
                 self->step);
        return;
    }
    const uint64_t from_us = clock_us();
    const struct learner_owner of = learner_owner_in(self, &self->window->now->said);
    if (of.owner != OWNER_NONE && take(self, &why) < 0) {
        log_line(LOG_ERR, "save.failed step=%" PRIu64 " reason=\"%s\"; training goes on",
                 self->step, why.text);
        return;
    }
    pieces->taken = self->step;
    pieces->taken_window = self->window->now->said.number;
    if (of.owner == OWNER_NONE) return;
    log_line(LOG_INFO, "save.copied step=%" PRIu64 " waited_us=%" PRIu64, self->step,
             clock_us() - from_us);
}
