// Pins and applied commits are kept in two rings. To make the parameters of a step, the newest pin
// at or before the step is gathered from the blob store, the commits after it are applied in order,
// and the result is compared with the digest of the run. The rings forget the oldest entries first.
#include "common/base/log.h"
#include "common/learner/past.h"
#include "common/base/ensure.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void past_pinned(struct past *self, uint64_t step, const struct hash *digest)
{
    for (uint32_t i = 0; i < PAST_PINS; i++)
        if (self->pins[i].step == step && hash_equal(&self->pins[i].digest, digest)) return;
    const uint32_t place = self->pins_next++ % PAST_PINS;
    self->pins[place].step = step;
    self->pins[place].digest = *digest;
}

void past_applied(struct past *self, const struct wire_apply *job)
{
    struct past_step *past = &self->steps[job->step % PAST_STEPS];
    free(past->payloads);
    *past = (struct past_step){ .step = job->step,
                                .lr_bits = job->lr_bits,
                                .count = job->payloads_count };
    past->payloads = calloc(past->count ? past->count : 1, sizeof *past->payloads);
    ensure(past->payloads);
    for (uint32_t i = 0; i < past->count; i++) past->payloads[i] = job->payloads[i].hash;
}

void past_clear(struct past *self)
{
    for (uint32_t i = 0; i < PAST_STEPS; i++) free(self->steps[i].payloads);
    memset(self, 0, sizeof *self);
}

int past_gather(blob_store_t *store, const struct hash *digest, uint64_t floats, struct why *why,
                float *ret_params)
{
    return blob_store_pinned_params(store, digest, floats * sizeof *ret_params, why, ret_params);
}

struct check_job {
    const payload_form_t *form;
    const struct hash *payloads, *own;
    const struct blob_ref *refs;
    bool *valid; // Of each
};

// What this process made itself is valid.
static void check_task(void *arg, uint32_t task, uint32_t worker)
{
    const struct check_job *job = arg;
    const struct blob_ref *ref = &job->refs[task];
    (void)worker;
    // mutant: a result of another member is taken for our own
    job->valid[task] = hash_equal(&job->payloads[task], job->own) ||
                       payload_check(job->form, ref->bytes, ref->count, NULL) == 0;
}

static void say_skipped(const struct check_job *job, uint32_t result, uint64_t step)
{
    struct why why = { 0 };
    payload_check(job->form, job->refs[result].bytes, job->refs[result].count, &why);
    log_line(LOG_WARNING, "apply.skipped step=%" PRIu64 " result=%u reason=\"%s\"", step, result,
             why.text);
}

int past_results_take(const struct past_means *means, const struct past_step *past,
                      const struct hash *own, struct why *why, struct past_results *ret)
{
    const uint32_t count = past->count;
    *ret = (struct past_results){ .results = calloc(count + 1, sizeof *ret->results),
                                  .refs = calloc(count + 1, sizeof *ret->refs) };
    struct check_job job = { means->form, past->payloads, own, ret->refs, calloc(count + 1, 1) };
    int rc = 0;
    if (!ret->results || !ret->refs || !job.valid)
        rc = why_set(why, FAULT_MEMORY, "%u results", count);
    for (; rc == 0 && ret->held < count; ret->held += rc == 0)
        rc = blob_store_get(means->store, &past->payloads[ret->held], why, &ret->refs[ret->held]);
    if (rc == 0) pool_run(means->pool, count, check_task, &job);
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        const struct apply_result result = { .begin = i,
                                             .payload = ret->refs[i].bytes,
                                             .bytes = ret->refs[i].count,
                                             .is_checked = true };
        if (job.valid[i]) ret->results[ret->sound++] = result;
        else say_skipped(&job, i, past->step);
    }
    free(job.valid);
    return rc;
}

void past_results_release(struct past_results *self)
{
    for (uint32_t i = 0; self->refs && i < self->held; i++) blob_store_release(&self->refs[i]);
    free(self->refs);
    free(self->results);
    *self = (struct past_results){ 0 };
}

static int apply_again(const struct past_step *past, const struct past_means *means,
                       struct why *why, float *params)
{
    struct apply_step step = { .weight_decay = means->weight_decay };
    struct past_results taken;
    memcpy(&step.rate, &past->lr_bits, sizeof step.rate);
    static const struct hash nobody;
    int rc = past_results_take(means, past, &nobody, why, &taken);
    if (rc == 0 && taken.sound > 0)
        rc = apply_commit(means->form, taken.results, taken.sound, &step, means->pool, params, why);
    past_results_release(&taken);
    return rc;
}

int past_params(const struct past *self, const struct past_means *means, uint64_t step,
                const struct hash *digest, struct why *why, float *ret_params)
{
    int rc = FAULT_NOT_FOUND;
    uint64_t at = 0;
    bool found = false;
    for (uint32_t i = 0; i < PAST_PINS; i++) { // The newest that the store still has
        const struct hash *pin = &self->pins[i].digest;
        const uint64_t pinned = self->pins[i].step;
        if (hash_is_none(pin) || pinned > step || (found && pinned < at)) continue;
        if (past_gather(means->store, pin, means->floats, why, ret_params) < 0) continue;
        found = true;
        at = pinned;
    }
    if (!found)
        return why_set(why, FAULT_NOT_FOUND, "no step before %" PRIu64 " is pinned here", step);
    for (rc = 0; rc == 0 && at < step; at++) {
        const struct past_step *past = &self->steps[at % PAST_STEPS];
        if (!past->payloads || past->step != at)
            return why_set(why, FAULT_NOT_FOUND, "commit %" PRIu64 " is no longer known here", at);
        rc = apply_again(past, means, why, ret_params);
    }
    if (rc < 0) return rc;
    struct hash root;
    rc = apply_digest(ret_params, means->floats, means->pool, &root);
    if (rc < 0 || hash_equal(&root, digest)) return rc;
    return why_set(why, FAULT_DIGEST, "the parameters of step %" PRIu64 " are not those of the run",
                   step);
}
