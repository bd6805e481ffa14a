// train -- one trainer alone, without any other actor: what a person uses to find the learning
// rate, or to make a small model.

#include "actors/shoal/memory.h"
#include "actors/shoal/shoal.h"
#include "actors/shoal/show.h"
#include "actors/shoal/train_checkpoint.h"
#include "actors/shoal/train_report.h"
#include "common/crypto/merkle.h"
#include "common/learn/genesis.h"
#include "common/learn/model_config.h"
#include "common/vector/dirfile.h"
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

struct training {
    struct train_flags flags;
    struct train_settings settings;
    char *config_json;
    struct model_folder model;
    pool_t *pool;
    solo_t *solo;
    provider_t *data;
    uint32_t *tokens, *heldout_tokens;
    uint32_t heldout_count;
    struct train_position position;
    uint64_t saved_step;                // UINT64_MAX: none yet
    struct train_report report;
};

static volatile sig_atomic_t asked_to_stop;

static void stop(int number)
{
    asked_to_stop = 1;
    signal(number, SIG_DFL);            // The second one kills
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// ---- before it starts ---------------------------------------------------------------------------

static double mib(uint64_t bytes) { return (double)bytes / (1 << 20); }

// Enough less that it fits, or 0: a smaller portion does not help.
static uint32_t micro_batch_that_fits(const struct train_settings *settings, uint64_t bytes)
{
    struct solo_options options = settings->solo;
    while (options.micro_batch > 1) {
        options.micro_batch /= 2;
        if (solo_memory(&settings->shape, &options, (uint32_t)settings->threads).total <= bytes)
            return options.micro_batch;
    }
    return 0;
}

static int check_memory(const struct training *self, struct why *why)
{
    const struct train_settings *settings = &self->settings;
    const struct solo_memory need =
        solo_memory(&settings->shape, &settings->solo, (uint32_t)settings->threads);
    const uint64_t free_bytes = settings->memory_mib ? settings->memory_mib << 20
                                                     : memory_available_bytes();
    fprintf(stderr,
            "memory: parameters %.1f + gradient %.1f + optimizer %.1f + activations of %u x %u "
            "tokens %.1f = %.1f MiB; %.1f MiB %s\n",
            mib(need.parameters), mib(need.gradient), mib(need.optimizer),
            settings->solo.micro_batch, settings->solo.seq, mib(need.activations),
            mib(need.total), mib(free_bytes), settings->memory_mib ? "allowed" : "free");
    if (free_bytes == 0 || need.total <= free_bytes) return 0;
    const uint32_t fits = micro_batch_that_fits(settings, free_bytes);
    if (fits)
        return why_set(why, FAULT_MEMORY,
                       "%.1f MiB are needed, there are %.1f; --micro-batch-size %u takes less "
                       "(now %u). Nothing was begun", mib(need.total), mib(free_bytes), fits,
                       settings->solo.micro_batch);
    return why_set(why, FAULT_MEMORY,
                   "%.1f MiB are needed, there are %.1f, and no --micro-batch-size takes as "
                   "little: a smaller model or max_seq_len would. Nothing was begun",
                   mib(need.total), mib(free_bytes));
}

static int read_config_json(struct training *self, struct why *why)
{
    size_t count;
    const int dir = open(self->settings.model, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return why_set(why, fault_from_errno(errno), "%s: %s", self->settings.model,
                       strerror(errno));
    const int rc = dirfile_slurp(dir, CHECKPOINT_CONFIG, true, MODEL_CONFIG_BYTES_MAX, why,
                                 &self->config_json, &count);
    close(dir);
    return rc;
}

static int load_model(struct training *self, struct why *why)
{
    const struct train_settings *settings = &self->settings;
    if (!settings->init && !self->flags.resume)
        return model_folder_load(settings->model, why, &self->model);
    const int rc = model_folder_prepare(&settings->shape, why, &self->model);
    if (rc == 0 && settings->init)
        genesis_fill(&settings->shape, settings->init_seed, self->model.params);
    return rc;
}

static int take_tokens(uint32_t count, uint32_t seq, struct why *why, uint32_t **ret_tokens)
{
    *ret_tokens = malloc((size_t)count * (seq + 1) * sizeof **ret_tokens);
    return *ret_tokens ? 0 : why_set(why, FAULT_MEMORY, "the tokens of %u samples", count);
}

// The head of the folder, kept: it is measured again and again.
static int read_heldout(struct training *self, struct why *why)
{
    const struct train_settings *settings = &self->settings;
    const struct samples_config config = { .token_bytes = settings->data.token_bytes,
                                           .seq_len = settings->solo.seq,
                                           .vocab_size = settings->shape.vocab };
    provider_t *provider = NULL;
    int rc = provider_open_local(settings->heldout, &config, why, &provider);
    if (rc < 0) return why_wrap(why, rc, "--heldout");
    const uint64_t samples = provider_count(provider), most = settings->heldout_samples;
    self->heldout_count = (uint32_t)(samples < most ? samples : most);
    rc = take_tokens(self->heldout_count, settings->solo.seq, why, &self->heldout_tokens);
    if (rc == 0) rc = provider_read(provider, 0, self->heldout_count, self->heldout_tokens, why);
    provider_close(&provider);
    return rc;
}

static int prepare(struct training *self, struct why *why)
{
    const struct train_settings *settings = &self->settings;
    const struct samples_config samples = { .seq_len = settings->solo.seq,
                                            .vocab_size = settings->shape.vocab };
    int rc = check_memory(self, why);
    if (rc == 0) rc = read_config_json(self, why);
    if (rc == 0) rc = source_open(&settings->data, &samples, why, &self->data);
    if (rc == 0 && settings->heldout) rc = read_heldout(self, why);
    if (rc == 0 && settings->checkpoint_dir && !self->flags.resume)
        rc = train_checkpoint_begin(settings, why);
    if (rc == 0)
        rc = take_tokens(settings->solo.batch_max, settings->solo.seq, why, &self->tokens);
    if (rc == 0) rc = load_model(self, why);
    if (rc < 0) return rc;
    self->pool = pool_new((uint32_t)settings->threads);
    if (!self->pool)
        return why_set(why, FAULT_MEMORY, "%" PRIu64 " threads", settings->threads);
    rc = solo_new(&settings->shape, &self->model.layout, self->model.params, &settings->solo,
                  self->pool, why, &self->solo);
    self->position = train_position_first(settings);
    if (rc == 0 && self->flags.resume) {
        rc = train_checkpoint_load(settings, &self->model, self->solo, why, &self->position);
        self->saved_step = self->position.step;
    }
    return rc;
}

// ---- on the way ---------------------------------------------------------------------------------

static int save(struct training *self, struct why *why)
{
    const struct train_settings *settings = &self->settings;
    if (!settings->checkpoint_dir || self->saved_step == self->position.step) return 0;
    const int rc = train_checkpoint_write(settings, &self->position, self->config_json,
                                          &self->model, self->solo, why);
    if (rc == 0) self->saved_step = self->position.step;
    return rc;
}

// What was learned before the batch that went wrong is kept, and the batch is named.
static int keep_state(struct training *self, int rc, uint32_t batch, float rate, struct why *why)
{
    const struct train_position *at = &self->position;
    struct why saving = { 0 };
    why_wrap(why, rc, "step %" PRIu64 ", samples %" PRIu64 "..%" PRIu64 ", learning rate %g",
             at->step + 1, at->sample, at->sample + batch - 1, (double)rate);
    const char *dir = self->settings.checkpoint_dir;
    if (!dir) fprintf(stderr, "shoal train: stopped; with --no-checkpoint nothing is kept\n");
    else if (save(self, &saving) < 0)
        fprintf(stderr, "shoal train: the state before it could not be kept: %s\n", saving.text);
    else
        fprintf(stderr, "shoal train: the state before it is kept in %s/step-%08" PRIu64
                "; a lower --learning-rate may help%s\n", dir, at->step,
                self->settings.solo.clip_norm > 0 ? "" : ", or --set clip_grad_norm=1");
    return rc;
}

static bool is_due(uint64_t every, uint64_t step) { return every && step % every == 0; }

// One step, and what is due after it.
static int step(struct training *self, struct why *why)
{
    const struct train_settings *settings = &self->settings;
    struct train_position *at = &self->position;
    const uint32_t batch = train_batch_size(settings, at->samples), seq = settings->solo.seq;
    const float rate = schedule_rate(&settings->schedule, (uint32_t)at->step, &settings->cold);
    const double began_s = now_s();
    struct solo_result result;
    int rc = provider_read(self->data, at->sample, batch, self->tokens, why);
    if (rc == 0) rc = solo_step(self->solo, self->tokens, batch, rate, why, &result);
    if (rc < 0) return keep_state(self, rc, batch, rate, why);
    at->step++, at->sample += batch, at->samples += batch;

    struct train_row row = { .step = at->step, .tokens = at->samples * seq, .batch = batch,
                             .loss = result.loss, .norm = result.norm, .rate = rate,
                             .seconds = now_s() - began_s,
                             .heldout = NAN };
    const bool last = at->step == settings->total_steps;
    if (settings->heldout && (last || is_due(settings->heldout_every, at->step)))
        rc = solo_loss(self->solo, self->heldout_tokens, self->heldout_count, why, &row.heldout);
    if (rc < 0) return why_wrap(why, rc, "the held-out loss after step %" PRIu64, at->step);
    rc = train_report_row(&self->report, &row, seq, (uint64_t)(now_s() * 1000), why);
    if (rc == 0 && is_due(settings->checkpoint_every, at->step)) rc = save(self, why);
    return rc;
}

static json_t *real_or_null(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

static int print_end(const struct training *self, struct why *why)
{
    const struct train_settings *settings = &self->settings;
    const struct train_report *report = &self->report;
    const struct hash digest = digest_of(self->model.params, self->model.floats);
    const double pace = report->seconds > 0 ? report->tokens / report->seconds : 0;
    const uint64_t tokens = self->position.samples * settings->solo.seq;
    char hex[HASH_HEX], text[SHOW_MAX], dir[PATH_MAX + 32] = "";
    hash_to_hex(&digest, hex);
    if (self->saved_step == self->position.step)
        snprintf(dir, sizeof dir, "%s/step-%08" PRIu64, settings->checkpoint_dir,
                 self->saved_step);
    if (self->flags.json)
        return shoal_print_json(
            json_pack("{s:s, s:I, s:b, s:I, s:o, s:o, s:f, s:s, s:s?}", "schema", "shoal.train.1",
                      "step", (json_int_t)self->position.step, "finished",
                      (int)(self->position.step == settings->total_steps), "tokens",
                      (json_int_t)tokens, "loss", real_or_null(report->loss), "heldout_loss",
                      real_or_null(report->heldout), "tokens_per_s", pace, "digest", hex,
                      "checkpoint", dir[0] ? dir : NULL),
            why);
    printf("step %" PRIu64 " of %" PRIu64, self->position.step, settings->total_steps);
    if (!isnan(report->loss)) printf(": loss %.4f (running mean)", report->loss);
    if (!isnan(report->heldout)) printf(", held out %.4f", report->heldout);
    printf(", %" PRIu64 " tokens, %s tokens/s\ndigest %s\n", tokens, show_count(pace, text), hex);
    if (dir[0]) printf("checkpoint %s\n", dir);
    return 0;
}

static int train(struct training *self, struct why *why)
{
    const struct train_settings *settings = &self->settings;
    int rc = train_report_open(&self->report, self->flags.log, self->position.step,
                               settings->total_steps, why);
    if (rc < 0) return rc;
    signal(SIGINT, stop);
    signal(SIGTERM, stop);
    while (rc == 0 && !asked_to_stop && self->position.step < settings->total_steps)
        rc = step(self, why);
    train_report_close(&self->report);
    if (rc == 0) rc = save(self, why);
    if (rc == 0) rc = print_end(self, why);
    if (rc < 0 || self->position.step == settings->total_steps) return rc;
    fprintf(stderr, "shoal train: interrupted at step %" PRIu64 "%s\n", self->position.step,
            settings->checkpoint_dir ? "; --resume goes on" : "; nothing was kept");
    return FAULT_TIMEOUT;
}

static int run(struct training *self, struct why *why)
{
    int rc = train_settings_read(&self->flags, why, &self->settings);
    if (rc == 0) rc = prepare(self, why);
    if (rc == 0) rc = train(self, why);
    solo_destroy(&self->solo);
    provider_close(&self->data);
    pool_destroy(&self->pool);
    model_folder_free(&self->model);
    free(self->tokens);
    free(self->heldout_tokens);
    free(self->config_json);
    return rc;
}

// ---- flags --------------------------------------------------------------------------------------

enum { KEY_FLAGS = 1000, KEY_SET = 2000, KEY_RESUME, KEY_NO_CHECKPOINT, KEY_JSON };

// Flags whose value is kept as it is written; their keys count from KEY_FLAGS.
#define TEXT(name, field, arg, doc, group) \
    { { name, 0, arg, 0, doc, group }, offsetof(struct train_flags, field) }
static const struct { struct argp_option option; size_t offset; } texts[] = {
    TEXT("model", model, "DIR", "The model to begin with (that of the file)", 1),
    TEXT("init-seed", init_seed, "N", "Random parameters in the model's shape", 1),
    TEXT("data", data, "DIR", "Token files (those of the file)", 1),
    TEXT("data-config", data_config, "FILE", "Or a data-provider's data.toml", 1),
    TEXT("token-bytes", token_bytes, "N", "Width of a token of --data: 2 or 4 (2)", 1),
    TEXT("shuffle-seed", shuffle_seed, "N", "Another order of the samples", 1),
    TEXT("heldout", heldout, "DIR", "Token files to measure on", 1),
    TEXT("heldout-every", heldout_every, "N", "Steps from one measure to the next (100)", 1),
    TEXT("heldout-samples", heldout_samples, "N", "Of them, from the first on (256)", 1),
    TEXT("optimizer", optimizer, "KIND", "adamw, or distro as a run with one trainer", 2),
    TEXT("learning-rate", learning_rate, "X", "base_lr of the schedule", 2),
    TEXT("batch-size", batch_size, "N", "Sequences a step, from first to last", 2),
    TEXT("steps", steps, "N", "config.total_steps; a schedule keeps its own", 2),
    TEXT("micro-batch-size", micro_batch, "N", "Sequences at a time: memory against speed (4)", 3),
    TEXT("threads", threads, "N", "Compute threads (one per processor)", 3),
    TEXT("memory-mib", memory_mib, "N", "The most it may need (what is free)", 3),
    TEXT("checkpoint-dir", checkpoint_dir, "DIR", "Where checkpoints go (checkpoints)", 4),
    TEXT("checkpoint-every", checkpoint_every, "N", "Steps between them (only at the end)", 4),
    TEXT("keep-steps", keep, "N", "The newest so many stay (3)", 4),
    TEXT("log", log, "FILE", "A row for each step: FILE.csv or FILE.jsonl", 4),
};
enum { TEXTS = sizeof texts / sizeof *texts };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct train_flags *self = state->input;
    if (key >= KEY_FLAGS && key < KEY_FLAGS + TEXTS) {
        const char **to = (void *)((char *)self + texts[key - KEY_FLAGS].offset);
        *to = arg;
        return 0;
    }
    switch (key) {
    case KEY_SET:
        if (self->sets_count == TRAIN_SETS_MAX)
            argp_error(state, "at most %d times --set", TRAIN_SETS_MAX);
        self->sets[self->sets_count++] = arg;
        break;
    case KEY_RESUME:        self->resume = true; break;
    case KEY_NO_CHECKPOINT: self->no_checkpoint = true; break;
    case KEY_JSON:          self->json = true; break;
    case ARGP_KEY_ARG:
        if (self->state_path) argp_error(state, "one state.toml, not also %s", arg);
        self->state_path = arg;
        break;
    case ARGP_KEY_END:
        if (!self->state_path) argp_error(state, "a state.toml is needed");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int shoal_train(int argc, char **argv)
{
    static struct argp_option options[TEXTS + 5] = {
        [TEXTS] = { "set", KEY_SET, "KEY=VALUE", 0,
                    "Any setting of the file: lr_schedule=Cosine", 2 },
        { "resume", KEY_RESUME, NULL, 0, "Go on from the newest checkpoint", 4 },
        { "no-checkpoint", KEY_NO_CHECKPOINT, NULL, 0, "Write none", 4 },
        { "json", KEY_JSON, NULL, 0, "Print one JSON object at the end", 4 },
    };
    static const struct argp argp = {
        options, parse, "STATE_TOML",
        "One trainer alone, without a run: to find a learning rate, or to make a small model. "
        "Ctrl-C saves. The bits are the same for any number of threads, and with --resume.\n\n"
        "  shoal train state.toml --data-config data.toml --learning-rate 1e-3\n"
        "  shoal train state.toml --data data/train --optimizer adamw --log a.csv\n",
        NULL, NULL, NULL
    };
    static struct training self = { .saved_step = UINT64_MAX };
    struct why why = { 0 };
    for (int i = 0; i < TEXTS; i++) {
        options[i] = texts[i].option;
        options[i].key = KEY_FLAGS + i;
    }
    argp_parse(&argp, argc, argv, 0, NULL, &self.flags);
    const int rc = run(&self, &why);
    return rc == FAULT_TIMEOUT && !why.text[0] ? EX_TEMPFAIL : fault_exit(rc, &why);
}
