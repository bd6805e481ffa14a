// SAVE: the held step, or one that is still pinned, as a checkpoint. The optimizer's shared state
// goes with it; a member's residual does not, since a checkpoint belongs to all members.

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

static int save(struct learner *self, const struct wire_save *job, struct why *why)
{
    const struct learner_options *options = self->options;
    if (!options->checkpoint_root)
        return why_set(why, FAULT_CONFIG, "no --checkpoint-dir was given");
    bool held = self->holding && self->step == job->step && hash_equal(&self->digest, &job->digest);
    int rc = held ? compute_pull(self->compute, why)
                  : past_gather(options->store, &job->digest, self->floats, why, self->spare);
    if (rc < 0) return rc;
    const float *params = held ? self->params : self->spare;
    struct interval *done =
        calloc((size_t)job->data_position.returned_count + job->data_position.failed_count + 1,
               sizeof *done);
    ensure(done);
    struct checkpoint_info info = { .epoch = job->epoch,
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
    // The optimizer's state that all members share
    struct state state;
    rc = state_save(self->optimizer, OPTIMIZER_SHARED, why, &state);
    char *config = model_config_with_dtype(self->config_json, "float32"); // The type of its numbers
    ensure(config);
    struct checkpoint_parts parts = { .config_json = config,
                                      .state = &state.tags,
                                      .values = state.values,
                                      .keep = options->keep,
                                      .spare = job->spare,
                                      .tokenizer_dir = tokenizer_folder(self) };
    if (rc == 0)
        rc = checkpoint_write(options->checkpoint_root, &info, &parts, &self->layout, params, why);
    free(config);
    free(done);
    return rc;
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
