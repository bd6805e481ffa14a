// convergence -- one training run in one process, to see how far a way to learn gets and what
// limits it: AdamW, or DisTrO with any number of trainers, each with its own share of the batch and
// its own residual, as a run of actors does it.
//
//     batch ─┬▶ share 0 ─▶ gradient ─▶ clip ─▶ compress (residual 0) ─┐
//            ├▶ share 1 ─▶ ...                                        ├─▶ commit ─▶ apply
//            └▶ share n-1 ...                                         ┘   waits `lag` steps
//
// With lag 0 and signs it is the product's arithmetic: one trainer gives the bits of `shoal train
// --optimizer distro`. Two variants exist here alone, as experiments:
//
//     --lag L     a commit is applied L steps after its gradients were taken, at its own rate;
//                 1 is Psyche's overlap (without its look-ahead)
//     --no-sign   p <- p·keep - rate·s·x instead of rate·sign(x), where x is the decoded mean and s,
//                 one number per tensor, gives the update the length that its signs would have
//
// Genesis and the order of the data come from --seed. Prints CSV: tokens, mean training loss since
// the row before, held-out loss in nats per token, and over how many windows that is. Driven by
// convergence.py; `make convergence`.

#include "actors/shoal/model_folder.h"
#include "common/actor/command.h"
#include "common/crypto/merkle.h"
#include "common/data/provider.h"
#include "common/ensure.h"
#include "common/learn/adamw.h"
#include "common/learn/apply.h"
#include "common/learn/batch.h"
#include "common/learn/distro.h"
#include "common/learn/distro_kernels.h"
#include "common/learn/genesis.h"
#include "common/learn/gradient.h"
#include "common/run/schedule.h"

#include <argp.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MICRO_BATCH = 4, TRAINERS_MAX = 64, LAG_MAX = 16, HELDOUT_MAX = 65536 };

// ---- what is asked for --------------------------------------------------------------------------

struct settings {
    const char *config, *train, *heldout;
    bool adamw, one_bit, sign, whole;
    uint64_t trainers, chunk, top_k, batch, steps, warmup, seed, lag, threads;
    uint64_t heldout_every, heldout_samples;
    double decay, clip, weight_decay, beta1, beta2;
    struct schedule schedule;
};

static const struct {
    const char *name;
    size_t at;
    double min, max;
} reals[] = {
    { "learning-rate", offsetof(struct settings, schedule.base_lr), 0, 10 },
    { "final-rate", offsetof(struct settings, schedule.final_lr), 0, 10 },
    { "compression-decay", offsetof(struct settings, decay), 0, 0.999999 },
    { "clip", offsetof(struct settings, clip), 0, 1e9 },
    { "weight-decay", offsetof(struct settings, weight_decay), 0, 100 },
    { "beta1", offsetof(struct settings, beta1), 0, 0.999999 },
    { "beta2", offsetof(struct settings, beta2), 0, 0.999999 },
};

static const struct {
    const char *name;
    size_t at;
    uint64_t min, max;
} wholes[] = {
    { "trainers", offsetof(struct settings, trainers), 1, TRAINERS_MAX },
    { "chunk", offsetof(struct settings, chunk), 1, DCT_SIDE_MAX },
    { "topk", offsetof(struct settings, top_k), 1, PAYLOAD_TOP_K_MAX },
    { "batch", offsetof(struct settings, batch), 1, 65536 },
    { "steps", offsetof(struct settings, steps), 1, 10000000 },
    { "warmup", offsetof(struct settings, warmup), 0, 10000000 },
    { "seed", offsetof(struct settings, seed), 0, UINT64_MAX },
    { "lag", offsetof(struct settings, lag), 0, LAG_MAX },
    { "threads", offsetof(struct settings, threads), 1, POOL_THREADS_MAX },
    { "heldout-every", offsetof(struct settings, heldout_every), 1, UINT32_MAX },
    { "heldout-samples", offsetof(struct settings, heldout_samples), 1, HELDOUT_MAX },
};

enum { REALS = sizeof reals / sizeof *reals, WHOLES = sizeof wholes / sizeof *wholes };
enum { KEY_REAL = 1000, KEY_WHOLE = 1100, KEY_CONFIG = 1200, KEY_TRAIN, KEY_HELDOUT, KEY_OPTIMIZER,
       KEY_SCHEDULE, KEY_FLOAT_VALUES, KEY_NO_SIGN, KEY_WHOLE_HELDOUT };

static void read_real(struct settings *self, int which, const char *text, struct argp_state *state)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end || !(value >= reals[which].min && value <= reals[which].max))
        argp_error(state, "--%s %s: a number from %g to %g", reals[which].name, text,
                   reals[which].min, reals[which].max);
    memcpy((char *)self + reals[which].at, &value, sizeof value);
}

static void read_whole(struct settings *self, int which, const char *text,
                       struct argp_state *state)
{
    struct why why = { 0 };
    uint64_t value = 0;
    if (command_number(wholes[which].name, text, wholes[which].min, wholes[which].max, &why,
                       &value) < 0)
        argp_error(state, "%s", why.text);
    memcpy((char *)self + wholes[which].at, &value, sizeof value);
}

static void read_schedule(struct settings *self, const char *text, struct argp_state *state)
{
    if (strcmp(text, "linear") == 0) self->schedule.kind = SCHEDULE_LINEAR;
    else if (strcmp(text, "cosine") == 0) self->schedule.kind = SCHEDULE_COSINE;
    else if (strcmp(text, "constant") == 0) self->schedule.kind = SCHEDULE_CONSTANT;
    else argp_error(state, "--schedule %s: linear, cosine or constant", text);
}

// What two flags together must hold to.
static void check(struct settings *self, struct argp_state *state)
{
    if (!self->config || !self->train || !self->heldout)
        argp_error(state, "--config, --train and --heldout are needed");
    if (self->adamw && (self->trainers != 1 || self->lag || !self->sign))
        argp_error(state, "--trainers, --lag and --no-sign belong to --optimizer distro");
    if (self->trainers > self->batch)
        argp_error(state, "%" PRIu64 " trainers and a batch of %" PRIu64 ": each needs a sequence",
                   self->trainers, self->batch);
    self->schedule.warmup_steps = (uint32_t)self->warmup;
    self->schedule.total_steps = (uint32_t)self->steps;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct settings *self = state->input;
    if (key >= KEY_REAL && key < KEY_REAL + REALS) read_real(self, key - KEY_REAL, arg, state);
    else if (key >= KEY_WHOLE && key < KEY_WHOLE + WHOLES)
        read_whole(self, key - KEY_WHOLE, arg, state);
    else if (key == KEY_CONFIG) self->config = arg;
    else if (key == KEY_TRAIN) self->train = arg;
    else if (key == KEY_HELDOUT) self->heldout = arg;
    else if (key == KEY_SCHEDULE) read_schedule(self, arg, state);
    else if (key == KEY_FLOAT_VALUES) self->one_bit = false;
    else if (key == KEY_NO_SIGN) self->sign = false;
    else if (key == KEY_WHOLE_HELDOUT) self->whole = true;
    else if (key == KEY_OPTIMIZER) {
        self->adamw = strcmp(arg, "adamw") == 0;
        if (!self->adamw && strcmp(arg, "distro") != 0)
            argp_error(state, "--optimizer %s: adamw or distro", arg);
    } else if (key == ARGP_KEY_END) check(self, state);
    else return ARGP_ERR_UNKNOWN;
    return 0;
}

static void read_settings(int argc, char **argv, struct settings *self)
{
    static struct argp_option options[REALS + WHOLES + 9] = {
        { "config", KEY_CONFIG, "FILE", 0, "config.json of the model", 0 },
        { "train", KEY_TRAIN, "DIR", 0, "Token files to learn from, two bytes each", 0 },
        { "heldout", KEY_HELDOUT, "DIR", 0, "Token files to be measured on", 0 },
        { "optimizer", KEY_OPTIMIZER, "NAME", 0, "adamw, or distro (what is meant without)", 0 },
        { "schedule", KEY_SCHEDULE, "KIND", 0, "linear (meant without), cosine, constant", 0 },
        { "float-values", KEY_FLOAT_VALUES, 0, 0, "Send coefficients, not their signs", 0 },
        { "no-sign", KEY_NO_SIGN, 0, 0, "Apply the scaled mean, not its signs", 0 },
        { "whole-heldout", KEY_WHOLE_HELDOUT, 0, 0, "At the end also over all", 0 },
    };
    for (int i = 0; i < REALS; i++)
        options[8 + i] = (struct argp_option){ reals[i].name, KEY_REAL + i, "X", 0, "", 1 };
    for (int i = 0; i < WHOLES; i++)
        options[8 + REALS + i] =
            (struct argp_option){ wholes[i].name, KEY_WHOLE + i, "N", 0, "", 1 };
    const struct argp argp = { options, parse, NULL,
                               "Trains one model in one process and prints its losses as CSV.",
                               NULL, NULL, NULL };
    argp_parse(&argp, argc, argv, 0, NULL, self);
}

// ---- one run ------------------------------------------------------------------------------------

struct trial {
    struct settings settings;
    struct model_folder model;
    pool_t *pool;
    model_t *learner;
    provider_t *data, *heldout;
    uint32_t *tokens, *heldout_tokens;
    float *gradient, *scratch, *update; // update: where signs are not taken
    adamw_t *adamw;
    chunks_t *chunks;
    payload_form_t *form;
    distro_t *trainers[TRAINERS_MAX];
    uint8_t *payloads;                  // [LAG_MAX + 1][trainers]: a ring of commits
};

static float rate_of(const struct trial *self, uint64_t step)
{
    return schedule_rate(&self->settings.schedule, (uint32_t)step, NULL);
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

// What the results say of one chunk, as apply.c sums them up, decoded into the update.
static void decode_chunk(struct trial *self, uint64_t step, uint32_t number)
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
    for (uint64_t t = 0; t < self->settings.trainers; t++) {
        const uint32_t sent =
            payload_read(self->form, number, payload_of(self, step, t), numbers, values);
        for (uint32_t i = 0; i < sent; i++) sums[numbers[i]] += values[i], hits[numbers[i]]++;
    }
    for (uint32_t i = 0; i < part->elements; i++) {
        if (hits[i] == 0) continue;
        numbers[count] = (uint16_t)i;
        values[count++] = sums[i] / (float)hits[i];
    }
    distro_kernels_best()->decode(part->row_dct, part->column_dct, numbers, values, count,
                                  &scratch, scratch.dense);
    for (uint32_t row = 0; row < part->row_dct->side; row++)
        memcpy(self->update + chunk.at + (size_t)row * part->columns,
               scratch.dense + (size_t)row * part->column_dct->stride,
               part->column_dct->side * sizeof(float));
}

// --no-sign.
static void apply_scaled(struct trial *self, uint64_t step, float rate)
{
    const float keep = fmaf(-rate, (float)self->settings.weight_decay, 1.0f);
    for (uint32_t i = 0; i < chunks_count(self->chunks); i++) decode_chunk(self, step, i);
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
    struct apply_result results[TRAINERS_MAX];
    const struct apply_step how = { .rate = rate_of(self, step),
                                    .weight_decay = (float)self->settings.weight_decay };
    if (!self->settings.sign) {
        apply_scaled(self, step, how.rate);
        return 0;
    }
    for (uint64_t t = 0; t < self->settings.trainers; t++)
        results[t] = (struct apply_result){ t, payload_of(self, step, t),
                                            payload_bytes(self->form) };
    return apply_commit(self->form, results, (uint32_t)self->settings.trainers, &how, self->pool,
                        self->model.params, why);
}

// Every trainer's share; then the commit whose turn it is.
static int step_distro(struct trial *self, uint64_t step, struct why *why, double *ret_loss)
{
    const struct settings *settings = &self->settings;
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
        sum += loss * (double)count;
    }
    *ret_loss = sum / (double)settings->batch;
    return step >= settings->lag ? apply(self, step - settings->lag, why) : 0;
}

static int step(struct trial *self, uint64_t number, struct why *why, double *ret_loss)
{
    const struct settings *settings = &self->settings;
    int rc = provider_read(self->data, number * settings->batch, (uint32_t)settings->batch,
                           self->tokens, why);
    if (rc == 0 && !self->adamw) rc = step_distro(self, number, why, ret_loss);
    else if (rc == 0) {
        rc = take_gradient(self, 0, settings->batch, why, ret_loss);
        if (rc == 0)
            adamw_step(self->adamw, self->gradient, rate_of(self, number), self->model.params);
    }
    return rc < 0 ? why_wrap(why, rc, "step %" PRIu64, number) : 0;
}

// ---- what is measured ---------------------------------------------------------------------------

static int heldout_loss(struct trial *self, uint64_t samples, struct why *why, double *ret_loss)
{
    const uint32_t seq = self->model.shape.seq_len_max;
    double loss = 0, sum = 0;
    for (uint64_t at = 0; at < samples; at += MICRO_BATCH) {
        const uint32_t count = samples - at < MICRO_BATCH ? (uint32_t)(samples - at) : MICRO_BATCH;
        int rc = provider_read(self->heldout, at, count, self->heldout_tokens, why);
        if (rc == 0)
            rc = model_loss(self->learner, self->model.params, self->heldout_tokens, count, seq,
                            why, &loss);
        if (rc < 0) return why_wrap(why, rc, "the held-out loss");
        sum += loss * count;
    }
    *ret_loss = sum / (double)samples;
    return 0;
}

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

static int learn(struct trial *self, struct why *why)
{
    const struct settings *settings = &self->settings;
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
            if (rc == 0 && last && settings->whole)
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
    config.shuffled = true;             // As shoal train --shuffle-seed
    for (int i = 0; i < 8; i++) config.seed[i] = (uint8_t)(self->settings.seed >> 8 * i);
    return rc < 0 ? rc : provider_open_local(self->settings.train, &config, why, &self->data);
}

static int open_optimizer(struct trial *self, struct why *why)
{
    const struct settings *settings = &self->settings;
    const struct adamw_options adamw = { settings->beta1, settings->beta2, 1e-8,
                                         settings->weight_decay };
    if (settings->adamw)
        return adamw_new(&self->model.layout, &adamw, self->pool, why, &self->adamw);
    int rc = chunks_of_model(&self->model.shape, (uint32_t)settings->chunk, why, &self->chunks);
    if (rc == 0)
        rc = payload_form_new(self->chunks, (uint32_t)settings->top_k, settings->one_bit, why,
                              &self->form);
    for (uint64_t t = 0; t < settings->trainers && rc == 0; t++)
        rc = distro_new(self->form, (float)settings->decay, self->pool, why, &self->trainers[t]);
    if (rc < 0) return rc;
    self->payloads = malloc((settings->lag + 1) * settings->trainers * payload_bytes(self->form));
    ensure(self->payloads);
    fprintf(stderr, "%.2f bytes per 4096 parameters and result\n",
            (double)payload_bytes(self->form) * 4096 / (double)self->model.floats);
    return 0;
}

static int open_trial(struct trial *self, struct why *why)
{
    const struct settings *settings = &self->settings;
    struct model_shape shape;
    int rc = model_folder_read_shape(settings->config, why, &shape);
    if (rc == 0) rc = model_folder_prepare(&shape, why, &self->model);
    if (rc < 0) return rc;
    const struct model_options options = { MICRO_BATCH, shape.seq_len_max, GEMM_BF16, false };
    const size_t row = (size_t)shape.seq_len_max + 1, bytes = self->model.floats * sizeof(float);
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

static void close_trial(struct trial *self)
{
    for (int t = 0; t < TRAINERS_MAX; t++) distro_destroy(&self->trainers[t]);
    adamw_destroy(&self->adamw);
    payload_form_destroy(&self->form);
    chunks_destroy(&self->chunks);
    model_destroy(&self->learner);
    provider_close(&self->data);
    provider_close(&self->heldout);
    pool_destroy(&self->pool);
    model_folder_free(&self->model);
    free(self->gradient);
    free(self->scratch);
    free(self->update);
    free(self->tokens);
    free(self->heldout_tokens);
    free(self->payloads);
}

int main(int argc, char **argv)
{
    static struct trial self = {
        .settings = { .one_bit = true, .sign = true, .trainers = 1, .chunk = 64, .top_k = 8,
                      .batch = 8, .steps = 600, .warmup = 20, .threads = 2,
                      .heldout_every = 61440, .heldout_samples = 256, .decay = 0.95, .clip = 1.0,
                      .beta1 = 0.9, .beta2 = 0.95,
                      .schedule = { .kind = SCHEDULE_LINEAR, .base_lr = 2e-3 } }
    };
    struct why why = { 0 };
    char hex[HASH_HEX];
    read_settings(argc, argv, &self.settings);
    int rc = open_trial(&self, &why);
    if (rc == 0) rc = learn(&self, &why);
    if (rc == 0) {
        const struct hash digest = digest_of(self.model.params, self.model.floats);
        fprintf(stderr, "digest %s\n", hash_to_hex(&digest, hex));
    }
    close_trial(&self);
    return rc < 0 ? fault_exit(rc, &why) : 0;
}
