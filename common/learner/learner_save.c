// SAVE: the held step, or one that is still pinned, as a checkpoint. The items of the optimizer that
// members hold alike go with it, of the same step; a member's residual does not, since a checkpoint
// belongs to all members.

#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/checkpoint/checkpoint.h"
#include "common/learner/learner_inside.h"
#include "common/learner/state.h"
#include "common/model/model_config.h"
#include <inttypes.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The samples that are done, as the manifest lists them: all below the cursor, except those to be trained
// again and those given up.
static size_t done_list(const struct wire_data_position *data_position, struct interval *ret_list)
{
    const struct interval *returned = data_position->returned, *failed = data_position->failed;
    const struct interval *returned_end = returned + data_position->returned_count;
    // mutant: a checkpoint counts what failed as trained
    const struct interval *failed_end = failed + data_position->failed_count;
    size_t count = 0;
    uint64_t at = 0;
    while (at < data_position->cursor) {
        struct interval next = { data_position->cursor, data_position->cursor };
        if (returned < returned_end && (failed == failed_end || returned->begin < failed->begin))
            next = *returned++;
        else if (failed < failed_end) next = *failed++;
        if (at < next.begin) ret_list[count++] = (struct interval){ at, next.begin };
        at = next.end;
    }
    return count;
}

// The folder that was named, or that of the run's first model. A machine may lack the latter; its
// checkpoints are complete without a tokenizer.
static const char *tokenizer_folder(const struct learner *self)
{
    const char *named = self->options->tokenizer_dir, *genesis = self->config.genesis;
    if (named) return named;
    if (access(genesis, F_OK) == 0) return genesis;
    log_line(LOG_WARNING,
             "checkpoint.no_tokenizer folder=%s reason=\"%s\"; saved without one, --tokenizer-dir "
             "names another",
             genesis, strerror(errno));
    return NULL;
}

static int write_state(struct learner *self, const struct wire_save *job, const struct state *state,
                       const float *params, struct why *why)
{
    const struct learner_options *options = self->options;
    struct interval *done =
        calloc((size_t)job->data_position.returned_count + job->data_position.failed_count + 1,
               sizeof *done);
    ensure(done);
    struct checkpoint_info info = { .born_unix_ms = job->born_unix_ms,
                                    .epoch = job->epoch,
                                    .step = job->step,
                                    .digest = job->digest,
                                    .protocol = WIRE_PROTOCOL,
                                    .created_unix_s = clock_unix_ms() / 1000,
                                    .pass_length = CHECKPOINT_NUMBER_MAX,
                                    .cursor = job->data_position.cursor,
                                    .done = done,
                                    .done_count = done_list(&job->data_position, done),
                                    .failed = job->data_position.failed,
                                    .failed_count = job->data_position.failed_count };
    snprintf(info.run, sizeof info.run, "%s", options->run_id);
    char *config = model_config_with_dtype(self->config_json, "float32"); // The type of its numbers
    ensure(config);
    struct checkpoint_parts parts = { .config_json = config,
                                      .state = &state->tags,
                                      .values = state->values,
                                      .keep = options->keep,
                                      .spare = job->spare,
                                      .tokenizer_dir = tokenizer_folder(self) };
    const int rc =
        checkpoint_write(options->checkpoint_root, &info, &parts, &self->layout, params, why);
    free(config);
    free(done);
    return rc;
}

static int save_held(struct learner *self, const struct wire_save *job, struct why *why)
{
    struct state state;
    int rc = compute_pull(self->compute, why);
    if (rc == 0) rc = state_save(self->optimizer, OPTIMIZER_SHARED, why, &state);
    return rc == 0 ? write_state(self, job, &state, self->params, why) : rc;
}

// Out of the pin itself, which cannot go meanwhile.
static int save_pinned(struct learner *self, const struct wire_save *job, struct why *why)
{
    struct blob_ref pinned;
    struct state_cut cut;
    struct state state;
    int rc = blob_store_pinned(self->options->store, &job->digest, why, &pinned, &cut);
    if (rc < 0) return rc;
    rc = state_cut_equal(&cut, &self->cut)
             ? state_save(self->optimizer, OPTIMIZER_SHARED, why, &state)
             : why_set(why, FAULT_CORRUPT,
                       "step %" PRIu64 " is pinned with %u items of state, the "
                       "model has %u",
                       job->step, cut.count, self->cut.count);
    if (rc == 0) {
        state_point(&state, &cut, pinned.bytes);
        rc = write_state(self, job, &state, (const float *)(const void *)pinned.bytes, why);
    }
    blob_store_release(&pinned);
    return rc;
}

static int save(struct learner *self, const struct wire_save *job, struct why *why)
{
    if (!self->options->checkpoint_root)
        return why_set(why, FAULT_CONFIG, "no --checkpoint-dir was given");
    const bool held =
        self->holding && self->step == job->step && hash_equal(&self->digest, &job->digest);
    return held ? save_held(self, job, why) : save_pinned(self, job, why);
}

void learner_save(struct learner *self, const struct wire_save *job)
{
    struct why why = { 0 };
    failpoint("learner_save");
    struct wire_saved saved = { .ok = save(self, job, &why) == 0,
                                .epoch = job->epoch,
                                .step = job->step,
                                .digest = job->digest };
    snprintf(saved.name, sizeof saved.name, "step-%08" PRIu64, job->step);
    learner_put_reason(saved.reason, &why);
    failpoint("learner_saved");
    worker_answer(self->worker, FRAME_SAVED, &saved);
}
