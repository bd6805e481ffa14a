// One step is either AdamW on the whole batch, or DisTrO with a share for each trainer and a ring
// of commits that wait `lag` steps. After that come the measure on held-out windows and the CSV
// rows.
#include "common/base/bytes.h"
#include "tests/numeric/convergence_trial.h"
#include "common/base/ensure.h"
#include "common/model/genesis.h"
#include "common/optimizer/apply.h"
#include "common/optimizer/distro_kernels.h"
#include "common/kernel/gradient.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MICRO_BATCH = 4 };

// ---- one step -----------------------------------------------------------------------------------

static float rate_of(const struct trial *self, uint64_t step)
{
    return schedule_rate(&self->settings.schedule, (uint32_t)step + 1, NULL);
}

static uint8_t *payload_of(const struct trial *self, uint64_t step, uint64_t trainer)
{
    const uint64_t slot = step % (self->settings.lag + 1) * self->settings.trainers + trainer;
    return self->payloads + slot * payload_bytes(self->form);
}

// The gradient of `count` sequences from `first` on, clipped.
static int take_gradient(struct trial *self, uint64_t first, uint64_t count, struct why *why,
                         double *ret_loss)
{
    const uint32_t seq = self->model.shape.seq_len_max;
    const struct batch batch = { self->tokens + first * (seq + 1), (uint32_t)count, seq,
                                 MICRO_BATCH };
    double norm;
    int rc = batch_gradient(self->learner, self->model.params, &batch, self->pool, self->scratch,
                            why, self->gradient, ret_loss);
    if (rc == 0)
        rc = gradient_clip(self->pool, self->gradient, self->model.floats,
                           self->settings.clip > 0 ? self->settings.clip : INFINITY, why, &norm);
    return rc;
}

// --hostile.
static void multiply(const struct trial *self, uint8_t *payload)
{
    static float values[DISTRO_ELEMENTS_MAX];
    static uint16_t numbers[DISTRO_ELEMENTS_MAX];
    uint8_t *honest = malloc(payload_bytes(self->form));
    ensure(honest);
    memcpy(honest, payload, payload_bytes(self->form));
    payload_clear(self->form, payload);
    for (uint32_t chunk = 0; chunk < chunks_count(self->chunks); chunk++) {
        const uint32_t count = payload_read(self->form, chunk, honest, numbers, values);
        for (uint32_t i = 0; i < count; i++) values[i] *= (float)self->settings.hostile;
        payload_write(self->form, chunk, numbers, values, count, payload);
    }
    free(honest);
}

// What the results say of one chunk, as apply.c sums them up, decoded into the update.
static void decode_chunk(struct trial *self, const struct apply_result *results,
                         struct apply_weights *weights, uint32_t number)
{
    static struct distro_scratch scratch;
    static float sums[DISTRO_ELEMENTS_MAX], values[DISTRO_ELEMENTS_MAX];
    static uint32_t hits[DISTRO_ELEMENTS_MAX];
    static uint16_t numbers[DISTRO_ELEMENTS_MAX];
    const struct chunk chunk = chunks_at(self->chunks, number);
    const struct chunks_part *part = chunk.part;
    uint32_t count = 0;
    memset(sums, 0, part->elements * sizeof *sums);
    memset(hits, 0, part->elements * sizeof *hits);
    apply_weigh(self->form, number, results, (uint32_t)self->settings.trainers, weights);
    for (uint64_t t = 0; t < self->settings.trainers; t++) {
        const uint32_t sent = payload_read(self->form, number, results[t].payload, numbers, values);
        for (uint32_t i = 0; i < sent; i++)
            sums[numbers[i]] += weights->factors[t] * values[i], hits[numbers[i]]++;
    }
    for (uint32_t i = 0; i < part->elements; i++) {
        if (hits[i] == 0) continue;
        numbers[count] = (uint16_t)i;
        values[count++] = sums[i] / (float)hits[i];
    }
    distro_kernels_best()->decode(part->row_dct, part->column_dct, numbers, values, count, &scratch,
                                  scratch.dense);
    for (uint32_t row = 0; row < part->row_dct->side; row++)
        memcpy(self->update + chunk.at + (size_t)row * part->columns,
               scratch.dense + (size_t)row * part->column_dct->stride,
               part->column_dct->side * sizeof(float));
}

// --no-sign.
static void apply_scaled(struct trial *self, const struct apply_result *results, float rate)
{
    const float keep = fmaf(-rate, (float)self->settings.weight_decay, 1.0f);
    struct apply_weights *weights = NULL;
    ensure(apply_weights_new(1, (uint32_t)self->settings.trainers, &weights) == 0);
    for (uint32_t i = 0; i < chunks_count(self->chunks); i++)
        decode_chunk(self, results, weights, i);
    free(weights);
    for (uint32_t i = 0; i < chunks_parts(self->chunks); i++) {
        const struct chunks_part *part = chunks_part(self->chunks, i);
        const float *x = self->update + part->begin;
        float *params = self->model.params + part->begin;
        const uint64_t count = (uint64_t)part->rows * part->columns;
        double squares = 0, signs = 0;
        for (uint64_t j = 0; j < count; j++) squares += (double)x[j] * x[j], signs += x[j] != 0;
        const float length = squares > 0 ? rate * (float)sqrt(signs / squares) : 0;
        for (uint64_t j = 0; j < count; j++) params[j] = fmaf(params[j], keep, -length * x[j]);
    }
}

static int apply(struct trial *self, uint64_t step, struct why *why)
{
    struct apply_result results[TRIAL_TRAINERS_MAX];
    const struct apply_step how = { .rate = rate_of(self, step),
                                    .weight_decay = (float)self->settings.weight_decay };
    const uint32_t count = (uint32_t)self->settings.trainers;
    for (uint32_t t = 0; t < count; t++)
        results[t] =
            (struct apply_result){ t, payload_of(self, step, t), payload_bytes(self->form) };
    if (self->settings.no_sign) {
        apply_scaled(self, results, how.rate);
        return 0;
    }
    return apply_commit(self->form, results, count, &how, self->pool, self->model.params, why);
}

// Every trainer's share; then the commit whose turn it is.
static int step_distro(struct trial *self, uint64_t step, struct why *why, double *ret_loss)
{
    const struct trial_settings *settings = &self->settings;
    double loss, sum = 0;
    for (uint64_t t = 0; t < settings->trainers; t++) {
        const uint64_t first = settings->batch * t / settings->trainers;
        const uint64_t count = settings->batch * (t + 1) / settings->trainers - first;
        int rc = take_gradient(self, first, count, why, &loss);
        if (rc == 0)
            rc = distro_compress(self->trainers[t], self->gradient, rate_of(self, step),
                                 payload_of(self, step, t), why);
        if (rc < 0) return why_wrap(why, rc, "trainer %" PRIu64, t);
        distro_adopt(self->trainers[t]);
        if (t + 1 == settings->trainers && settings->hostile != 1.0)
            multiply(self, payload_of(self, step, t));
        sum += loss * (double)count;
    }
    *ret_loss = sum / (double)settings->batch;
    return step >= settings->lag ? apply(self, step - settings->lag, why) : 0;
}

static int step(struct trial *self, uint64_t number, struct why *why, double *ret_loss)
{
    const struct trial_settings *settings = &self->settings;
    int rc = provider_read(self->data, number * settings->batch, (uint32_t)settings->batch,
                           self->tokens, why);
    if (rc == 0 && !settings->adamw) rc = step_distro(self, number, why, ret_loss);
    else if (rc == 0) {
        rc = take_gradient(self, 0, settings->batch, why, ret_loss);
        if (rc == 0)
            adamw_step(&self->adamw, self->gradient, rate_of(self, number), self->model.params);
    }
    return rc < 0 ? why_wrap(why, rc, "step %" PRIu64, number) : 0;
}

// ---- what is measured ---------------------------------------------------------------------------

// Windows `at`, at + 1, ... of `samples` spread evenly over all that is held out, or its first.
static int read_windows(struct trial *self, uint64_t at, uint32_t count, uint64_t samples,
                        struct why *why)
{
    const size_t row = (size_t)self->model.shape.seq_len_max + 1;
    const uint64_t all = provider_count(self->heldout);
    int rc = 0;
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        const uint64_t position = self->settings.spread ? (at + i) * all / samples : at + i;
        rc = provider_read(self->heldout, position, 1, self->heldout_tokens + i * row, why);
    }
    return rc;
}

static int heldout_loss(struct trial *self, uint64_t samples, struct why *why, double *ret_loss)
{
    const uint32_t seq = self->model.shape.seq_len_max;
    double loss = 0, sum = 0;
    for (uint64_t at = 0; at < samples; at += MICRO_BATCH) {
        const uint32_t count = samples - at < MICRO_BATCH ? (uint32_t)(samples - at) : MICRO_BATCH;
        int rc = read_windows(self, at, count, samples, why);
        if (rc == 0)
            rc = model_loss(self->learner, self->model.params, self->heldout_tokens, count, seq,
                            why, &loss);
        if (rc < 0) return why_wrap(why, rc, "the held-out loss");
        sum += loss * count;
    }
    *ret_loss = sum / (double)samples;
    return 0;
}

// Over at most `most` windows.
static int print_row(struct trial *self, uint64_t steps, double train, uint64_t most,
                     struct why *why)
{
    const uint64_t all = provider_count(self->heldout), samples = most < all ? most : all;
    const uint64_t tokens = steps * self->settings.batch * self->model.shape.seq_len_max;
    double heldout = 0;
    const int rc = heldout_loss(self, samples, why, &heldout);
    if (rc == 0) printf("%" PRIu64 ",%.6f,%.6f,%" PRIu64 "\n", tokens, train, heldout, samples);
    fflush(stdout);
    return rc;
}

int trial_run(struct trial *self, struct why *why)
{
    const struct trial_settings *settings = &self->settings;
    const uint64_t step_tokens = settings->batch * self->model.shape.seq_len_max;
    double loss, sum = 0;
    uint64_t summed = 0;
    printf("tokens,train,heldout,windows\n");
    for (uint64_t i = 0; i < settings->steps; i++) {
        const bool last = i + 1 == settings->steps;
        int rc = step(self, i, why, &loss);
        if (rc < 0) return rc;
        sum += loss, summed++;
        for (uint64_t l = settings->lag; last && l > 0 && rc == 0; l--) // What still waits
            if (i + 1 >= l) rc = apply(self, i + 1 - l, why);
        if (last || (i + 1) * step_tokens / settings->heldout_every !=
                        i * step_tokens / settings->heldout_every) {
            const double train = sum / (double)summed;
            if (rc == 0) rc = print_row(self, i + 1, train, settings->heldout_samples, why);
            if (rc == 0 && last && settings->spread)
                rc = print_row(self, i + 1, train, UINT64_MAX, why);
            sum = 0, summed = 0;
        }
        if (rc < 0) return rc;
    }
    return 0;
}

// ---- before and after ---------------------------------------------------------------------------

static int open_data(struct trial *self, struct why *why)
{
    struct samples_config config = { .token_bytes = 2,
                                     .seq_len = self->model.shape.seq_len_max,
                                     .vocab_size = self->model.shape.vocab };
    int rc = provider_open_local(self->settings.heldout, &config, why, &self->heldout);
    config.shuffled = true; // As shoal train --shuffle-seed
    le_put(config.seed, self->settings.seed, 8);
    return rc < 0 ? rc : provider_open_local(self->settings.train, &config, why, &self->data);
}

static int open_optimizer(struct trial *self, struct why *why)
{
    const struct trial_settings *settings = &self->settings;
    const struct adamw_options adamw = { settings->beta1, settings->beta2, 1e-8,
                                         settings->weight_decay };
    const uint64_t floats = self->model.floats;
    const uint64_t vectors = settings->adamw ? 2 : 2 * settings->trainers;
    self->state = calloc(vectors * floats, sizeof *self->state);
    ensure(self->state);
    self->adamw = (struct adamw){ .options = adamw,
                                  .layout = &self->model.layout,
                                  .at = { 0, floats },
                                  .pool = self->pool,
                                  .m = self->state,
                                  .v = self->state + floats };
    if (settings->adamw) return adamw_check(&adamw, why);
    int rc = chunks_of_model(&self->model.shape, (uint32_t)settings->chunk, why, &self->chunks);
    if (rc == 0)
        rc = payload_form_new(self->chunks, (uint32_t)settings->top_k, !settings->float_values, why,
                              &self->form);
    for (uint64_t t = 0; t < settings->trainers && rc == 0; t++) {
        float *const residual[2] = { self->state + 2 * t * floats,
                                     self->state + (2 * t + 1) * floats };
        rc = distro_new(self->form, (float)settings->decay, self->pool, residual, why,
                        &self->trainers[t]);
    }
    if (rc < 0) return rc;
    self->payloads = malloc((settings->lag + 1) * settings->trainers * payload_bytes(self->form));
    ensure(self->payloads);
    fprintf(stderr, "%.2f bytes per 4096 parameters and result\n",
            (double)payload_bytes(self->form) * 4096 / (double)self->model.floats);
    return 0;
}

int trial_open(struct trial *self, struct why *why)
{
    const struct trial_settings *settings = &self->settings;
    int rc = model_folder_prepare(settings->model, why, &self->model);
    if (rc < 0) return rc;
    const struct model_shape shape = self->model.shape;
    const struct model_options options = { MICRO_BATCH, shape.seq_len_max, GEMM_BF16, false };
    const size_t row = (size_t)shape.seq_len_max + 1, bytes = self->model.floats * sizeof(float);
    self->model.params = aligned_alloc(64, (bytes + 63) / 64 * 64);
    ensure(self->model.params);
    genesis_fill(&shape, settings->seed, self->model.params);
    self->pool = pool_new((uint32_t)settings->threads);
    self->gradient = aligned_alloc(64, (bytes + 63) / 64 * 64);
    self->scratch = aligned_alloc(64, (bytes + 63) / 64 * 64);
    self->update = malloc(bytes);
    self->tokens = malloc(settings->batch * row * sizeof(uint32_t));
    self->heldout_tokens = malloc(MICRO_BATCH * row * sizeof(uint32_t));
    ensure(self->pool && self->gradient && self->scratch && self->update && self->tokens &&
           self->heldout_tokens);
    rc = model_new(&shape, &options, self->pool, why, &self->learner);
    if (rc == 0) rc = open_data(self, why);
    return rc < 0 ? rc : open_optimizer(self, why);
}

void trial_close(struct trial *self)
{
    for (int t = 0; t < TRIAL_TRAINERS_MAX; t++) distro_destroy(&self->trainers[t]);
    payload_form_destroy(&self->form);
    chunks_destroy(&self->chunks);
    model_destroy(&self->learner);
    provider_close(&self->data);
    provider_close(&self->heldout);
    pool_destroy(&self->pool);
    model_folder_free(&self->model);
    free(self->state);
    free(self->gradient);
    free(self->scratch);
    free(self->update);
    free(self->tokens);
    free(self->heldout_tokens);
    free(self->payloads);
}
