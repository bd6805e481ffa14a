// learner_saver -- gives the saver (common/checkpoint/saver.h) the state's parts, and says in the log what becomes
// of them.

#include "common/learner/learner_saver.h"
#include "common/base/ensure.h"
#include "common/base/log.h"
#include "common/checkpoint/shared_dir.h"
#include "common/learner/state_pieces.h"
#include <inttypes.h>

int learner_saver_check(const char *shared_dir, struct why *why)
{
    const int rc = shared_dir_check(shared_dir, why);
    if (rc < 0) why_wrap(why, rc, "checkpoint.shared_dir");
    if (rc != FAULT_DISK_FULL) return rc;
    // That passes, and must not keep a member out of a run
    log_line(LOG_WARNING, "save.no_room reason=\"%s\"; training goes on", why->text);
    return 0;
}

// ---- open ---------------------------------------------------------------------------------------

// In the saver's thread.
static int take_digest(const struct pieces_save *save, struct why *why, struct hash *ret_digest)
{
    pieces_t *pieces = NULL;
    int rc = pieces_open(save->root, save->step, save->run, why, &pieces);
    if (rc == 0) rc = state_pieces_digest(pieces, save->layout, why, ret_digest);
    pieces_close(&pieces);
    return rc;
}

static void wake(void *arg) { worker_wake(((struct learner *)arg)->worker); }

bool learner_saver_fits(const struct learner_saver *self, const struct learner_saver_place *place)
{
    return self->saver && self->born_unix_ms == place->born_unix_ms && place->bytes <= self->bytes;
}

void learner_saver_open(struct learner *learner, struct learner_saver *self,
                        const struct learner_saver_place *place, struct why *why)
{
    ensure(!self->saver);
    self->bytes = 0;
    int rc = shared_dir_root(place->shared_dir, learner->options->run_id, place->born_unix_ms, why,
                             self->root);
    const struct saver_options options = { .root = self->root,
                                           .makes_root = true,
                                           .run = learner->options->run_id,
                                           .born_unix_ms = place->born_unix_ms,
                                           .layout = &learner->layout,
                                           .bytes = place->bytes,
                                           .keep = place->keep,
                                           .digest = take_digest,
                                           .ended = wake,
                                           .arg = learner };
    if (rc == 0) rc = saver_new(&options, why, &self->saver);
    if (rc == 0) self->born_unix_ms = place->born_unix_ms, self->bytes = place->bytes;
    else
        log_line(LOG_ERR, "save.impossible reason=\"%s\"; training goes on, and is not saved",
                 why->text);
}

// ---- a save -------------------------------------------------------------------------------------

int learner_saver_take(struct learner *learner, struct learner_saver *self,
                       const struct pieces_save *save, struct interval share,
                       const struct pieces_part *more, struct why *why)
{
    struct pieces_part parts[STATE_PARTS_MAX + 1];
    struct state state;
    if (!self->saver) return why_set(why, FAULT_NOT_FOUND, "see save.impossible above");
    const int rc = state_save(learner->optimizer, OPTIMIZER_SHARED, why, &state);
    if (rc < 0) return rc;
    size_t count = state_parts(learner->optimizer, &state, learner->params, share, parts);
    for (size_t i = 0; more && i < count; i++)
        // mutant: saves: servers that have taken different pushes save nothing
        if (parts[i].tag == TAG_REPLICATE && save->worker > 0) parts[i].bytes = NULL;
    if (more) parts[count++] = *more;
    return saver_take(self->saver, save, parts, count, why);
}

bool learner_saver_is_writing(const struct learner_saver *self)
{
    return self->saver && saver_is_writing(self->saver);
}

bool learner_saver_has_ended(const struct learner_saver *self)
{
    return self->saver && saver_has_ended(self->saver);
}

// ---- what became of it --------------------------------------------------------------------------

// The group may be another one by now: the place is that in the group that saved.
static void warn_unfinished(const struct learner_saver *self, const struct saver_result *result)
{
    log_line(LOG_WARNING,
             "save.unfinished step=%" PRIu64
             " because=\"the part of place %u of the group, counted "
             "from 0, is not in %s: does that member see this folder under this path, and can it "
             "write there?\"; training goes on, and this step is not saved",
             result->unfinished, result->unfinished_missing, self->root);
}

static void say(const struct learner_saver *self, const struct saver_result *result)
{
    if (result->unfinished) warn_unfinished(self, result);
    if (result->rc < 0)
        log_line(LOG_ERR, "save.failed step=%" PRIu64 " reason=\"%s\"; training goes on",
                 result->step, result->why.text);
    else if (result->missing < result->workers)
        log_line(LOG_INFO,
                 "save.written step=%" PRIu64 " bytes=%" PRIu64 " write_ms=%" PRIu64
                 "; not all parts of the %u members are there yet",
                 result->step, result->bytes, result->write_us / 1000, result->workers);
    else
        log_line(LOG_INFO,
                 "save.whole step=%" PRIu64 " bytes=%" PRIu64 " write_ms=%" PRIu64
                 " parts=%u folder=%s/step-%08" PRIu64,
                 result->step, result->bytes, result->write_us / 1000, result->workers, self->root,
                 result->step);
    if (result->digest_why.text[0])
        log_line(LOG_ERR,
                 "save.unregistered step=%" PRIu64 " reason=\"%s\"; the run cannot go back to this "
                 "step",
                 result->step, result->digest_why.text);
    if (result->rc == 0 && result->why.text[0])
        log_line(LOG_WARNING,
                 "save.not_cleaned step=%" PRIu64 " reason=\"%s\"; it takes room until somebody "
                 "removes it",
                 result->step, result->why.text);
}

bool learner_saver_result(struct learner_saver *self, struct saver_result *ret_result)
{
    if (!self->saver || !saver_result(self->saver, ret_result)) return false;
    say(self, ret_result);
    return true;
}

bool learner_saver_wait(struct learner_saver *self, struct saver_result *ret_result)
{
    if (!self->saver || !saver_wait(self->saver, ret_result)) return false;
    say(self, ret_result);
    return true;
}

bool learner_saver_close(struct learner_saver *self, struct saver_result *ret_result)
{
    const bool ended = learner_saver_wait(self, ret_result);
    saver_destroy(&self->saver);
    return ended;
}
