// `shoal train` from start to end. What can refuse comes first and in the order of its cost:
// settings, the model's shape, memory, data, held-out data, the folders of checkpoints and saves, then
// the device.
// After that the loop: read, step, measure, report, save. A fault in the loop saves the state
// before it.
#include "actors/shoal/train/train_run.h"
#include "common/base/clock.h"
#include "common/base/memory.h"
#include "actors/shoal/shoal.h"
#include "actors/shoal/show.h"
#include "actors/shoal/train/train_checkpoint.h"
#include "actors/shoal/train/train_report.h"
#include "actors/shoal/train/train_saves.h"
#include "common/crypto/merkle.h"
#include "common/learner/first_state.h"
#include "common/model/recipe.h"
#include "common/model/genesis.h"
#include "common/checkpoint/hf_folder.h"
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct training {
    struct train_flags flags;
    struct train_settings settings;
    struct model_folder model;
    pool_t *pool;
    solo_t *solo;
    provider_t *data;
    uint32_t *tokens, *heldout_tokens;
    uint32_t heldout_count;
    struct train_position position;
    uint64_t saved_step; // UINT64_MAX: none yet
    struct train_saves saves;
    struct train_report report;
};

static volatile sig_atomic_t asked_to_stop;

// The end of a session (SIGHUP) is told more than once, by the kernel and by the shell: it does not kill. The reader
// of our lines (`| tee`) may have got the same signal, and what we say on the way out shall not end us.
static void stop(int number)
{
    asked_to_stop = 1;
    if (number != SIGHUP) signal(number, SIG_DFL); // The second one kills
    signal(SIGPIPE, SIG_IGN);
}

// ---- before it starts ---------------------------------------------------------------------------

static double mib(uint64_t bytes) { return (double)bytes / (1 << 20); }

static struct solo_place place_of(const struct training *self)
{
    return (struct solo_place){ &self->settings.device, &self->settings.shape, &self->model.layout,
                                self->pool };
}

// The largest half, quarter, ... of the micro-batch that fits; 0 if none does.
static uint32_t micro_batch_that_fits(const struct training *self, uint64_t bytes)
{
    const struct solo_place place = place_of(self);
    struct solo_options options = self->settings.solo;
    struct compute_memory need = { 0 };
    while (options.micro_batch > 1) {
        options.micro_batch /= 2;
        if (solo_memory(&place, &options, NULL, &need) < 0) return 0;
        if (need.host + train_saves_memory(&self->settings, self->model.floats) <= bytes)
            return options.micro_batch;
    }
    return 0;
}

static void say_memory(const struct train_settings *settings, const struct compute_memory *need,
                       uint64_t free_bytes)
{
    const bool cpu = settings->device.kind == COMPUTE_CPU;
    fprintf(stderr, "device: %s\nmemory: %.1f MiB; ", settings->device.text, mib(need->host));
    if (free_bytes)
        fprintf(stderr, "%.1f MiB %s", mib(free_bytes), settings->memory_mib ? "allowed" : "free");
    else fprintf(stderr, "the free memory cannot be read here and is not checked");
    if (!cpu) fprintf(stderr, "; on the GPU %.1f MiB", mib(need->device));
    fprintf(stderr, "; activations of %u x %u tokens%s\n", settings->solo.micro_batch,
            settings->solo.seq,
            !cpu                       ? ""
            : settings->solo.recompute ? ", computed again"
                                       : ", kept");
}

// Prints what memory it will take. Activations that do not fit are computed again rather than kept.
static int check_memory(struct training *self, struct why *why)
{
    struct train_settings *settings = &self->settings;
    const uint64_t free_bytes =
        settings->memory_mib ? settings->memory_mib << 20 : memory_available_bytes();
    const struct solo_place place = place_of(self);
    struct compute_memory need = { 0 };
    const uint64_t copy = train_saves_memory(settings, self->model.floats);
    int rc = solo_memory(&place, &settings->solo, why, &need);
    if (rc == 0 && free_bytes && need.host + copy > free_bytes) {
        settings->solo.recompute = true;
        rc = solo_memory(&place, &settings->solo, why, &need);
    }
    if (rc < 0) return rc;
    need.host += copy;
    say_memory(settings, &need, free_bytes);
    if (free_bytes == 0 || need.host <= free_bytes) return 0;
    const uint32_t fits = micro_batch_that_fits(self, free_bytes);
    if (fits)
        return why_set(why, FAULT_MEMORY,
                       "%.1f MiB are needed, there are %.1f; --micro-batch-size %u takes less "
                       "(now %u). Nothing was begun",
                       mib(need.host), mib(free_bytes), fits, settings->solo.micro_batch);
    return why_set(why, FAULT_MEMORY,
                   "%.1f MiB are needed, there are %.1f, and no --micro-batch-size takes as "
                   "little: a smaller model or max_seq_len would. Nothing was begun",
                   mib(need.host), mib(free_bytes));
}

// A pin of state.toml holds for the model and data that state.toml names. The caller skips it for a
// model or data named by a flag.
static int check_pin(const struct hash *pinned, const struct hash *found, const char *key,
                     struct why *why)
{
    char ours[HASH_HEX], theirs[HASH_HEX];
    if (hash_is_none(pinned) || (found && hash_equal(pinned, found))) return 0;
    return why_set(why, FAULT_DIGEST, "%s of state.toml pins %.16s, found is %.16s", key,
                   hash_to_hex(pinned, theirs), found ? hash_to_hex(found, ours) : "no manifest");
}

// The state that an earlier run has left, for the device. A save by many workers has no item that each had for its own.
static int load_first_state(struct training *self, struct why *why)
{
    const struct layout *layout = &self->model.layout;
    struct first_state state = { 0 };
    bool is_fresh = false;
    int rc = first_state_open(self->settings.first_state, why, &state);
    if (rc < 0) return rc;
    if (state.pieces) rc = solo_load_pieces(self->solo, state.pieces, layout, why, &is_fresh);
    else {
        rc = checkpoint_load_params(state.checkpoint, layout, solo_params(self->solo), why);
        if (rc == 0) rc = solo_push(self->solo, why);
        if (rc == 0) rc = solo_load_state(self->solo, state.checkpoint, why);
    }
    first_state_close(&state);
    return rc;
}

// The parameters to begin with, for the device.
static int load_params(struct training *self, struct why *why)
{
    const struct train_settings *settings = &self->settings;
    float *params = solo_params(self->solo);
    if (settings->init) {
        genesis_fill(&settings->shape, settings->init_seed, params);
        return solo_push(self->solo, why);
    }
    const bool goes_on = settings->first_state[0];
    int rc = goes_on ? load_first_state(self, why)
                     : hf_folder_load(settings->model, &self->model.layout, params, why);
    if (rc == 0 && !self->flags.model) {
        const struct hash digest = digest_of(params, self->model.floats);
        rc = check_pin(&settings->config.model_digest, &digest, "model.digest", why);
    }
    return rc < 0 || goes_on ? rc : solo_push(self->solo, why);
}

static void say_refused(void *arg, const char *reason, const char *next)
{
    (void)arg;
    fprintf(stderr, "shoal train: %s; %s\n", reason, next);
}

// The dataset that the run's data-providers must have, opened here by their data.toml.
static int check_dataset(struct training *self, struct why *why)
{
    const struct hash digest = provider_dataset_digest(self->data);
    return check_pin(&self->settings.config.dataset_digest, hash_is_none(&digest) ? NULL : &digest,
                     "data.dataset_digest", why);
}

static int open_data(struct training *self, struct why *why)
{
    const struct train_settings *settings = &self->settings;
    const struct samples_config samples = { .seq_len = settings->solo.seq,
                                            .vocab_size = settings->shape.vocab };
    const struct source_check check = { .manifest_digest = settings->config.manifest_digest,
                                        .refused = say_refused };
    const int rc = source_open(&settings->data, &samples, &check, why, &self->data);
    if (rc < 0 || self->flags.data) return rc;
    if (settings->config.data_location == CONFIG_DATA_SERVER) return check_dataset(self, why);
    return check_pin(&settings->config.manifest_digest, provider_digest(self->data),
                     "data.manifest_digest", why);
}

static int take_tokens(uint32_t count, uint32_t seq, struct why *why, uint32_t **ret_tokens)
{
    *ret_tokens = malloc((size_t)count * (seq + 1) * sizeof **ret_tokens);
    return *ret_tokens ? 0 : why_set(why, FAULT_MEMORY, "the tokens of %u samples", count);
}

// Reads the first samples of the folder once, since they are measured many times.
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

// From the newest of checkpoints and saves. `ret_born`: when the training of the saves began; 0: there are none.
static int resume(struct training *self, struct why *why, uint64_t *ret_born)
{
    const struct train_settings *settings = &self->settings;
    uint64_t saved, step = 0;
    int rc = train_saves_newest(settings, why, ret_born, &saved);
    if (rc < 0) *ret_born = 0;
    if (rc < 0 && rc != FAULT_NOT_FOUND) return rc;
    const bool has_save = rc == 0;
    if (has_save) {
        rc = train_checkpoint_newest(settings, why, &step);
        if (rc < 0 && rc != FAULT_NOT_FOUND) return rc;
        if (rc == FAULT_NOT_FOUND || saved > step)
            return train_saves_load(settings, &self->model, *ret_born, saved, self->solo, why,
                                    &self->position);
    }
    rc = train_checkpoint_load(settings, &self->model, self->solo, why, &self->position);
    if (rc == 0) self->saved_step = self->position.step;
    return rc;
}

static int prepare(struct training *self, struct why *why)
{
    uint64_t born = 0;
    const struct train_settings *settings = &self->settings;
    self->pool = pool_new((uint32_t)settings->threads);
    if (!self->pool) return why_set(why, FAULT_MEMORY, "%" PRIu64 " threads", settings->threads);
    int rc = model_folder_prepare(settings->model, why, &self->model);
    if (rc == 0) rc = check_memory(self, why);
    if (rc == 0) rc = open_data(self, why);
    if (rc == 0) fprintf(stderr, "order of the samples: %s\n", settings->order);
    if (rc == 0 && settings->heldout) rc = read_heldout(self, why);
    if (rc == 0 && settings->checkpoint_dir && !self->flags.resume)
        rc = train_checkpoint_begin(settings, why);
    if (rc == 0) rc = train_saves_check(settings, why);
    if (rc == 0 && !self->flags.resume) rc = train_saves_refuse_earlier(settings, why);
    if (rc == 0) rc = take_tokens(settings->solo.batch_max, settings->solo.seq, why, &self->tokens);
    const struct solo_place place = place_of(self);
    if (rc == 0) rc = solo_new(&place, &settings->solo, why, &self->solo);
    if (rc < 0) return rc;
    self->position = train_position_first(settings);
    rc = self->flags.resume ? resume(self, why, &born) : load_params(self, why);
    if (rc < 0) return rc;
    return train_saves_begin(&self->saves, settings, &self->model, self->solo, born,
                             provider_count(self->data), why);
}

// ---- on the way ---------------------------------------------------------------------------------

static int save(struct training *self, struct why *why)
{
    const struct train_settings *settings = &self->settings;
    if (!settings->checkpoint_dir || self->saved_step == self->position.step) return 0;
    const int rc = train_checkpoint_write(settings, &self->position, &self->model, self->solo, why);
    if (rc == 0) self->saved_step = self->position.step;
    return rc;
}

// After a fault: saves the state before it, so that no finished step is lost.
static void keep_state(struct training *self, int rc)
{
    const char *dir = self->settings.checkpoint_dir;
    struct why saving = { 0 };
    if (!dir) fprintf(stderr, "shoal train: stopped; with --no-checkpoint nothing is kept\n");
    else if (save(self, &saving) < 0)
        fprintf(stderr, "shoal train: what was learned could not be kept: %s\n", saving.text);
    else
        fprintf(stderr, "shoal train: what was learned before is kept in %s/step-%08" PRIu64 "\n",
                dir, self->position.step);
    if (rc == FAULT_NAN)
        fprintf(stderr, "shoal train: a lower --learning-rate may help%s\n",
                self->settings.solo.clip_norm > 0 ? "" : ", or --set clip_grad_norm=1");
}

static bool is_due(uint64_t every, uint64_t step) { return every && step % every == 0; }

// One step, and what is due after it.
static int step(struct training *self, struct why *why)
{
    const struct train_settings *settings = &self->settings;
    struct train_position *at = &self->position;
    const uint32_t batch = recipe_batch_size(&settings->config, at->samples),
                   seq = settings->solo.seq;
    const float rate = schedule_rate(&settings->schedule, (uint32_t)at->step + 1, &settings->cold);
    const double began_s = clock_s();
    const struct train_position before = *at;
    struct solo_result result;
    int rc = provider_read(self->data, at->sample, batch, self->tokens, why);
    if (rc == 0) rc = solo_step(self->solo, self->tokens, batch, rate, why, &result);
    if (rc < 0)
        return why_wrap(why, rc,
                        "step %" PRIu64 ", samples %" PRIu64 "..%" PRIu64 ", learning rate %g",
                        at->step + 1, at->sample, at->sample + batch - 1, (double)rate);
    at->step++, at->sample += batch, at->samples += batch;

    struct train_row row = { .step = at->step,
                             .tokens = at->samples * seq,
                             .batch = batch,
                             .loss = result.loss,
                             .norm = result.norm,
                             .rate = rate,
                             .seconds = clock_s() - began_s,
                             .heldout = NAN };
    const bool last = at->step == settings->total_steps;
    if (settings->heldout && (last || is_due(settings->heldout_every, at->step)))
        rc = solo_loss(self->solo, self->heldout_tokens, self->heldout_count, why, &row.heldout);
    if (rc < 0) return why_wrap(why, rc, "the held-out loss after step %" PRIu64, at->step);
    rc = train_report_row(&self->report, &row, seq, clock_ms(), why);
    if (rc == 0 && is_due(settings->checkpoint_every, at->step)) rc = save(self, why);
    if (rc == 0) rc = train_saves_look(&self->saves, settings, &before, at, self->solo, why);
    return rc;
}

static int print_end(struct training *self, struct why *why)
{
    struct hash digest, state;
    const int rc = solo_digest(self->solo, why, &digest, &state);
    if (rc < 0) return rc;
    const struct train_settings *settings = &self->settings;
    const struct train_report *report = &self->report;
    const double pace = report->seconds > 0 ? report->tokens / report->seconds : 0;
    const uint64_t tokens = self->position.samples * settings->solo.seq;
    char hex[HASH_HEX], state_hex[HASH_HEX], text[SHOW_MAX], dir[PATH_MAX + 32] = "";
    hash_to_hex(&digest, hex), hash_to_hex(&state, state_hex);
    if (self->saved_step == self->position.step)
        snprintf(dir, sizeof dir, "%s/step-%08" PRIu64, settings->checkpoint_dir, self->saved_step);
    if (self->flags.json)
        return shoal_print_json(
            json_pack("{s:s, s:I, s:b, s:I, s:o, s:o, s:f, s:s, s:s, s:o}", "schema",
                      "shoal.train.1", "step", (json_int_t)self->position.step, "finished",
                      (int)(self->position.step == settings->total_steps), "tokens",
                      (json_int_t)tokens, "loss", shoal_number(report->loss), "heldout_loss",
                      shoal_number(report->heldout), "tokens_per_s", pace, "digest", hex,
                      "state_digest", state_hex, "checkpoint",
                      dir[0] ? shoal_text(dir) : json_null()),
            why);
    printf("step %" PRIu64 " of %" PRIu64, self->position.step, settings->total_steps);
    if (!isnan(report->loss)) printf(": loss %.4f (running mean)", report->loss);
    if (!isnan(report->heldout)) printf(", held out %.4f", report->heldout);
    printf(", %" PRIu64 " tokens, %s tokens/s\ndigest %s\n", tokens, show_count(pace, text), hex);
    if (!hash_equal(&digest, &state))
        printf("state digest %s, with what the optimizer keeps\n", state_hex);
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
    if (signal(SIGHUP, stop) == SIG_IGN) signal(SIGHUP, SIG_IGN); // Under nohup
    while (rc == 0 && !asked_to_stop && self->position.step < settings->total_steps)
        rc = step(self, why);
    train_report_close(&self->report);
    train_saves_end(&self->saves);
    if (rc < 0) keep_state(self, rc);
    else rc = save(self, why);
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
    train_saves_end(&self->saves);
    solo_destroy(&self->solo);
    provider_close(&self->data);
    pool_destroy(&self->pool);
    model_folder_free(&self->model);
    free(self->tokens);
    free(self->heldout_tokens);
    return rc;
}

int train_run(const struct train_flags *flags, struct why *why)
{
    static struct training self = { .saved_step = UINT64_MAX };
    self.flags = *flags;
    return run(&self, why);
}
