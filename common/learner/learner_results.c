// The strategy `distro`: what a replica does under rounds. A result is made from samples and waits as a
// candidate; a commit's payloads move the parameters. Both first check that the replica holds the
// step that the job is about.

#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/learner/learner_inside.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// ---- BUILD --------------------------------------------------------------------------------------

// The settings of DisTrO come from CONFIG.
static int read_part(struct learner *self, const void *part, struct why *why)
{
    const struct wire_rounds_config *rounds = part;
    self->rounds = *rounds;
    self->same_bits = rounds->verification_percent > 0;
    self->optimizer_kind = &optimizer_distro;
    self->settings = (struct optimizer_settings){ .weight_decay = (double)self->config.weight_decay,
                                                  .decay = rounds->compression_decay,
                                                  .keeps_former = self->same_bits,
                                                  .chunk = rounds->chunk,
                                                  .topk = rounds->topk,
                                                  .one_bit = rounds->one_bit };
    if (self->same_bits && self->options->trains && self->options->device.kind != COMPUTE_CPU)
        return why_set(why, FAULT_CONFIG,
                       "the run recomputes results (verification_percent %u), and the results "
                       "of a GPU cannot be recomputed to the bit; use --device cpu",
                       rounds->verification_percent);
    return 0;
}

// An audit needs the parameters of an earlier step, in a vector of its own.
static uint64_t spare_bytes(const struct learner *self)
{
    const bool audits = self->rounds.verification_percent && self->options->trains;
    return audits ? (self->floats * sizeof(float) + 63) / 64 * 64 : 0;
}

static uint64_t memory_of_results(struct learner *self, uint64_t *ret_later)
{
    (void)ret_later;
    return spare_bytes(self) + payload_bytes(result_form(self->optimizer));
}

static int open_results(struct learner *self, struct why *why)
{
    if (self->same_bits && self->floats > BLOB_BYTES_MAX / sizeof(float))
        return why_set(why, FAULT_LIMIT,
                       "a model of %" PRIu64 " parameters; the run recomputes results, "
                       "and a residual of more than %zu cannot be revealed",
                       self->floats, BLOB_BYTES_MAX / sizeof(float));
    self->form = result_form(self->optimizer);
    self->payload = malloc(payload_bytes(self->form));
    const uint64_t spare = spare_bytes(self);
    if (spare) self->spare = aligned_alloc(64, spare);
    if (self->payload && (self->spare || !spare)) return 0;
    return why_set(why, FAULT_MEMORY, "a result of %zu bytes and a vector of %" PRIu64,
                   payload_bytes(self->form), spare);
}

static void close_results(struct learner *self)
{
    past_clear(&self->past);
    free(self->payload), free(self->spare);
    self->payload = NULL, self->spare = NULL;
    self->spare_digest = self->gradient_of = (struct hash){ { 0 } };
    self->form = NULL;
}

// ---- TRAIN --------------------------------------------------------------------------------------

// Samples, gradient, clip, result, hashes, store: the order of a result. The candidate residual
// waits for the commit that names the payload.
static int train(struct learner *self, const struct wire_train *job, struct why *why,
                 struct wire_trained *ret_trained)
{
    uint64_t began_us = clock_us(), count = 0;
    double loss = 0, norm;
    float rate;
    const struct learner_samples samples = { .list = job->samples,
                                             .list_count = job->samples_count,
                                             .providers = job->providers,
                                             .providers_count = job->providers_count,
                                             .data = job->data,
                                             .order = job->order };
    self->candidate = (struct hash){ { 0 } };
    memcpy(&rate, &job->lr_bits, sizeof rate);
    if (!self->holding || !self->options->trains || job->step != self->step)
        return why_set(why, FAULT_RANGE,
                       "asked to train step %" PRIu64 ", step %" PRIu64 " is held", job->step,
                       self->step);
    result_discard(self->optimizer);
    // mutant: audit: what was trained is taken for the gradient of another result
    self->gradient_of = (struct hash){ { 0 } };
    int rc = job->from_zero ? optimizer_forget(self->optimizer, why) : 0;
    if (rc == 0) rc = learner_read_samples(self, &samples, why, &count);
    if (rc == 0) rc = compute_gradient(self->compute, self->tokens, (uint32_t)count, why, &loss);
    if (rc == 0 && self->config.clip_norm > 0)
        rc = compute_clip(self->compute, (double)self->config.clip_norm, why, &norm);
    if (rc == 0) rc = result_make(self->optimizer, rate, why, self->payload);
    if (rc == 0 && self->same_bits) // Only an auditor asks for a residual
        rc = result_hashes(self->optimizer, why, &ret_trained->residual_from,
                           &ret_trained->residual_to);
    if (rc == 0)
        rc = learner_keep(self, self->payload, payload_bytes(self->form), why, &self->candidate);
    if (rc < 0) return rc;
    ret_trained->payload = self->candidate;
    uint64_t took_us = clock_us() - began_us;
    ret_trained->base = self->digest;
    ret_trained->payload_bytes = (uint32_t)payload_bytes(self->form);
    ret_trained->loss = (float)loss;
    ret_trained->train_ms = (uint32_t)(took_us / 1000);
    ret_trained->tokens_per_s =
        (float)((double)count * self->config.seq_len * 1e6 / (double)(took_us + 1));
    return 0;
}

static void hear_train(struct learner *self, const struct wire_train *job)
{
    struct why why = { 0 };
    struct wire_trained trained = { .round = job->round };
    failpoint("learner_train");
    int rc = train(self, job, &why, &trained);
    failpoint("learner_trained");
    trained.ok = rc == 0;
    if (rc < 0 && why.text[0] == 0) why_set(&why, rc, "%s", fault_sentence(rc));
    learner_put_reason(trained.reason, &why);
    worker_answer(self->worker, FRAME_TRAINED, &trained);
}

// ---- APPLY --------------------------------------------------------------------------------------

// An audit recomputes a result of the newest commit, so it needs the parameters that the commit moves.
static void keep_params(struct learner *self)
{
    if (!self->spare) return;
    memcpy(self->spare, self->params, self->floats * sizeof *self->params);
    self->spare_step = self->step, self->spare_digest = self->digest;
}

// Moves the parameters by a commit. If the commit names our own payload, the candidate becomes the
// residual; otherwise it is dropped.
static int apply(struct learner *self, const struct wire_apply *job, struct why *why)
{
    struct apply_step step = { .weight_decay = self->config.weight_decay };
    memcpy(&step.rate, &job->lr_bits, sizeof step.rate);
    if (!self->holding || job->step != self->step)
        return why_set(why, FAULT_RANGE,
                       "asked to apply commit %" PRIu64 ", step %" PRIu64 " is held", job->step,
                       self->step);
    const struct past_means means = { self->options->store, self->form, self->pool,
                                      self->config.weight_decay, self->floats };
    const struct hash own =
        result_has_candidate(self->optimizer) ? self->candidate : (struct hash){ { 0 } };
    learner_pin_wait(self);
    keep_params(self);
    past_applied(&self->past, job);
    const struct past_step *past = &self->past.steps[job->step % PAST_STEPS];
    struct past_results taken;
    int rc = past_results_take(&means, past, &own, why, &taken);
    if (rc == 0 && taken.sound > 0)
        rc = result_apply(self->optimizer, taken.results, taken.sound, &step, why);
    past_results_release(&taken);
    if (rc < 0) return rc;
    if (result_has_candidate(self->optimizer)) {
        if (!hash_is_none(&job->own_payload) && hash_equal(&job->own_payload, &self->candidate))
            result_adopt(self->optimizer);
        else result_discard(self->optimizer);
    }
    self->step = job->step + 1;
    rc = learner_take_digest(self, why);
    return rc == 0 && job->pin ? learner_pin(self, why) : rc;
}

static void hear_apply(struct learner *self, const struct wire_apply *job)
{
    struct why why = { 0 };
    failpoint("learner_apply");
    struct wire_applied applied = { .ok = apply(self, job, &why) == 0 };
    failpoint("learner_applied");
    applied.step = self->step;
    applied.digest = self->digest;
    learner_put_reason(applied.reason, &why);
    worker_answer(self->worker, FRAME_APPLIED, &applied);
}

// ---- the strategy -------------------------------------------------------------------------------

static bool hear(struct learner *self, const struct job *job)
{
    switch (job->kind) {
    case FRAME_TRAIN: hear_train(self, job->body); return true;
    case FRAME_APPLY: hear_apply(self, job->body); return true;
    case FRAME_SHOW: learner_show(self, job->body); return true;
    case FRAME_RECOMPUTE: learner_recompute(self, job->body); return true;
    default: return false;
    }
}

static bool pins_in_files(const struct learner *self)
{
    (void)self;
    return true;
}

const struct learner_strategy learner_results = {
    .config = FRAME_ROUNDS_CONFIG,
    .read = read_part,
    .memory = memory_of_results,
    .pins = BLOB_PINS_MAX,
    .pins_in_files = pins_in_files,
    .open = open_results,
    .close = close_results,
    .hear = hear,
};
