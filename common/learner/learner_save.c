// SAVE: the held step, or one that is still pinned, as a checkpoint. The items of the optimizer that
// members hold alike go with it, of the same step; a member's residual does not, since a checkpoint
// belongs to all members.
//
//     learner   SAVE ─ a pin of the step ─┬─ the next jobs ─────────────┬─ SAVED
//     a thread of its own                 └─ hashes and writes the pin ─┘
//
// So a job after SAVE waits at most until the state is copied into a pin, and not at all if the step is pinned
// already. The thread holds the pin until the checkpoint is written, also when newer pins have replaced it. One
// checkpoint is written at a time. The learner waits for the thread before BUILD, before its end, before another
// SAVE, and before LOAD of a checkpoint: the first two free memory that the thread reads, and the thread may remove
// the checkpoint that LOAD reads.

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
#include <pthread.h>
#include <stdatomic.h>
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

// All that the thread needs to write a checkpoint. Besides this it reads only fields of the learner that BUILD alone
// changes.
struct learner_saving {
    const struct learner *learner;
    struct wire_save job;
    struct interval *lists; // Those of the job
    struct blob_ref pinned;
    struct state state;
    struct wire_saved saved; // The answer
    uint64_t began_us, copied_us;
    pthread_t thread;
    _Atomic bool ended;
};

static int write_state(const struct learner_saving *self, struct why *why)
{
    const struct wire_save *job = &self->job;
    const struct learner *learner = self->learner;
    const struct learner_options *options = learner->options;
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
    char *config = model_config_with_dtype(learner->config_json, "float32"); // Of its numbers
    ensure(config);
    struct checkpoint_parts parts = { .config_json = config,
                                      .state = &self->state.tags,
                                      .values = self->state.values,
                                      .keep = options->keep,
                                      .spare = job->spare,
                                      .tokenizer_dir = tokenizer_folder(learner) };
    const int rc = checkpoint_write(options->checkpoint_root, &info, &parts, &learner->layout,
                                    (const float *)(const void *)self->pinned.bytes, why);
    free(config);
    free(done);
    return rc;
}

static void *write_and_wake(void *arg)
{
    struct learner_saving *self = arg;
    struct why why = { 0 };
    self->saved.ok = write_state(self, &why) == 0;
    if (self->saved.ok) // copy_ms: for so long the next job had to wait
        log_line(LOG_INFO,
                 "checkpoint.written step=%" PRIu64 " bytes=%zu copy_ms=%" PRIu64
                 " write_ms=%" PRIu64,
                 self->job.step, self->pinned.count, (self->copied_us - self->began_us) / 1000,
                 (clock_us() - self->copied_us) / 1000);
    if (self->saved.ok && why.text[0])
        log_line(LOG_WARNING,
                 "checkpoint.not_cleaned step=%" PRIu64 " reason=\"%s\"; it takes room until "
                 "somebody removes it",
                 self->job.step, why.text);
    if (!self->saved.ok) learner_put_reason(self->saved.reason, &why);
    failpoint("learner_saved");
    atomic_store(&self->ended, true);
    worker_wake(self->learner->worker);
    return NULL;
}

// Gets the step as a pin, which does not change. If the learner holds the step and it is not pinned yet, it is pinned
// now.
static int take_pin(struct learner *self, struct learner_saving *saving, struct why *why)
{
    const struct wire_save *job = &saving->job;
    struct state_cut cut;
    int rc = 0;
    if (self->holding && self->step == job->step && hash_equal(&self->digest, &job->digest))
        rc = learner_pin(self, why);
    learner_pin_wait(self);
    if (rc == 0)
        rc = blob_store_pinned(self->options->store, &job->digest, why, &saving->pinned, &cut);
    if (rc < 0) return rc;
    if (!state_cut_equal(&cut, &self->cut))
        return why_set(why, FAULT_CORRUPT,
                       "step %" PRIu64 " is pinned with %u items of state, the "
                       "model has %u",
                       job->step, cut.count, self->cut.count);
    rc = state_save(self->optimizer, OPTIMIZER_SHARED, why, &saving->state);
    if (rc == 0) state_point(&saving->state, &cut, saving->pinned.bytes);
    return rc;
}

// The job's lists lie in the worker's arena, which the next job overwrites.
static void keep_job(struct learner_saving *self, const struct wire_save *job)
{
    struct wire_data_position *at = &self->job.data_position;
    self->job = *job;
    self->lists = calloc((size_t)at->returned_count + at->failed_count + 1, sizeof *self->lists);
    ensure(self->lists);
    struct interval *failed = self->lists + at->returned_count;
    if (at->returned_count)
        memcpy(self->lists, at->returned, at->returned_count * sizeof *self->lists);
    if (at->failed_count) memcpy(failed, at->failed, at->failed_count * sizeof *failed);
    at->returned = self->lists;
    at->failed = failed;
}

static int begin(struct learner *self, struct learner_saving *saving, struct why *why)
{
    if (!self->options->checkpoint_root)
        return why_set(why, FAULT_CONFIG, "no --checkpoint-dir was given");
    if (!self->built) return why_set(why, FAULT_CONFIG, "no model has been built");
    saving->began_us = clock_us();
    const int rc = take_pin(self, saving, why);
    saving->copied_us = clock_us();
    if (rc < 0) return rc;
    const int error = pthread_create(&saving->thread, NULL, write_and_wake, saving);
    return error
               ? why_set(why, fault_from_errno(error), "no thread to write it: %s", strerror(error))
               : 0;
}

static void answer(struct learner *self, struct learner_saving *saving)
{
    worker_answer(self->worker, FRAME_SAVED, &saving->saved);
    blob_store_release(&saving->pinned);
    free(saving->lists);
    free(saving);
}

void learner_save(struct learner *self, const struct wire_save *job)
{
    struct why why = { 0 };
    learner_save_wait(self);
    failpoint("learner_save");
    struct learner_saving *saving = calloc(1, sizeof *saving);
    ensure(saving);
    saving->learner = self;
    keep_job(saving, job);
    saving->saved =
        (struct wire_saved){ .epoch = job->epoch, .step = job->step, .digest = job->digest };
    snprintf(saving->saved.name, sizeof saving->saved.name, "step-%08" PRIu64, job->step);
    if (begin(self, saving, &why) == 0) {
        self->saving = saving;
        return;
    }
    learner_put_reason(saving->saved.reason, &why);
    answer(self, saving);
}

void learner_save_wait(struct learner *self)
{
    struct learner_saving *saving = self->saving;
    if (!saving) return;
    ensure(pthread_join(saving->thread, NULL) == 0);
    self->saving = NULL;
    answer(self, saving);
}

bool learner_save_has_ended(const struct learner *self)
{
    return self->saving && atomic_load(&self->saving->ended);
}

void learner_save_look(struct learner *self)
{
    if (learner_save_has_ended(self)) learner_save_wait(self);
}
