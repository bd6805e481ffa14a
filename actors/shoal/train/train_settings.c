// state.toml is read, flags are laid over it, then model and data are found and the learner's
// options derived. Each setting has one source; a flag that contradicts another one is refused.
#include "actors/shoal/train/train_settings.h"
#include "common/actor/command.h"
#include "common/base/bytes.h"
#include "common/base/ensure.h"
#include "common/config/text.h"
#include "common/config/data_config.h"
#include "common/config/override.h"
#include "common/model/model.h"
#include "common/data/token_files.h"
#include "common/learner/products.h"
#include "common/model/recipe.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// ---- state.toml, and what flags make of it ------------------------------------------------------

static int override(struct run_config *config, const char *key, const char *value, struct why *why)
{
    char assignment[CONFIG_FAULT_TEXT];
    const int count = snprintf(assignment, sizeof assignment, "%s=%s", key, value);
    return (size_t)count < sizeof assignment
               ? config_override(config, assignment, why)
               : why_set(why, FAULT_USAGE, "a value of %zu bytes for %s", strlen(value), key);
}

static bool is_set(const struct run_config *config, const char *path)
{
    const struct config_schema *schema = &config_run_schema;
    return config->origin.line[config_key_index(schema, config_key_find(schema, path))] != 0;
}

// By the flag's word, with defaults for settings that must be there and that a file written for another optimizer does
// not have.
static int choose_optimizer(const char *word, struct run_config *config, struct why *why)
{
    static const struct {
        const char *word, *name, *betas; // NULL: it has none
    } optimizers[] = { { "adamw", "AdamW", "0.9,0.95" },
                       { "adam", "Adam", "0.9,0.999" },
                       { "sgd", "SGD", NULL },
                       { "distro", "Distro", NULL } };
    size_t i = 0;
    while (i < sizeof optimizers / sizeof *optimizers && strcmp(optimizers[i].word, word) != 0) i++;
    if (i == sizeof optimizers / sizeof *optimizers)
        return why_set(why, FAULT_USAGE, "--optimizer %s: adamw, adam, sgd or distro", word);
    int rc = override(config, "model.LLM.optimizer", optimizers[i].name, why);
    if (rc < 0 || !optimizers[i].betas) return rc;
    char key[64];
    snprintf(key, sizeof key, "model.LLM.optimizer.%s.eps", optimizers[i].name);
    if (!is_set(config, key)) rc = override(config, key, "1e-8", why);
    snprintf(key, sizeof key, "model.LLM.optimizer.%s.betas", optimizers[i].name);
    if (rc == 0 && !is_set(config, key)) rc = override(config, key, optimizers[i].betas, why);
    return rc;
}

// Flags with a name of their own are settings like any other; --set comes after them.
static int change_config(const struct train_flags *flags, struct run_config *config,
                         struct why *why)
{
    const struct {
        const char *flag, *value, *key;
    } named[] = {
        { "--learning-rate", flags->learning_rate, "base_lr" },
        { "--batch-size", flags->batch_size, "config.global_batch_size_start" },
        { "--batch-size", flags->batch_size, "config.global_batch_size_end" },
        { "--steps", flags->steps, "config.total_steps" },
    };
    int rc = 0;
    if (flags->optimizer) rc = choose_optimizer(flags->optimizer, config, why);
    for (size_t i = 0; i < sizeof named / sizeof *named && rc == 0; i++) {
        if (!named[i].value) continue;
        rc = override(config, named[i].key, named[i].value, why);
        if (rc < 0) rc = why_wrap(why, rc, "%s", named[i].flag);
    }
    for (size_t i = 0; i < flags->sets_count && rc == 0; i++)
        rc = config_override(config, flags->sets[i], why);
    return rc < 0 ? rc : config_override_check(config, why);
}

// Limits that no rule of state.toml covers: the model's, and those of `shoal train`.
static int check_settings(const struct train_settings *self, struct why *why)
{
    const struct run_config *config = &self->config;
    if (config->max_seq_len > model_seq_len(&self->shape))
        return why_set(why, FAULT_RANGE,
                       "max_seq_len = %" PRIu64 ", the model's config.json allows 1..%u",
                       config->max_seq_len, model_seq_len(&self->shape));
    if (self->total_steps > CHECKPOINT_STEP_MAX)
        return why_set(why, FAULT_RANGE, "total_steps = %" PRIu64 ", a checkpoint counts to %d",
                       self->total_steps, CHECKPOINT_STEP_MAX);
    return 0;
}

// ---- model and data -----------------------------------------------------------------------------

static int find_model(struct train_settings *self, const struct train_flags *flags, struct why *why)
{
    char path[PATH_MAX + 16];
    const struct run_config *config = &self->config;
    int rc = flags->model ? (strlen(flags->model) < sizeof self->model ? 0 : FAULT_LIMIT)
                          : config_resolve(&config->origin, config->checkpoint_folder, self->model,
                                           sizeof self->model);
    if (rc < 0) return why_set(why, FAULT_USAGE, "the path of the model's folder is too long");
    if (flags->model) snprintf(self->model, sizeof self->model, "%s", flags->model);
    snprintf(path, sizeof path, "%s/config.json", self->model);
    rc = model_folder_read_shape(path, why, &self->shape);
    if (rc == FAULT_NOT_FOUND)
        rc = why_wrap(why, rc,
                      "no model to begin with; make one with shoal init-model, or name "
                      "its folder with --model");
    if (rc < 0 || !flags->init_seed) return rc;
    self->init = true;
    return command_number("--init-seed", flags->init_seed, 0, UINT64_MAX, why, &self->init_seed);
}

static int take_data_config(struct train_settings *self, const char *path, struct why *why)
{
    static struct config_faults faults;
    static struct data_config data;
    int rc = config_load_data(path, &data, &faults);
    config_faults_print(&faults, stderr);
    if (rc < 0) return why_set(why, rc, "%s", path);
    if (data.seq_len != self->config.max_seq_len)
        return why_set(why, FAULT_CONFIG, "%s: seq_len = %" PRIu64 ", max_seq_len = %" PRIu64, path,
                       data.seq_len, self->config.max_seq_len);
    rc = source_of_data_config(&data, why, &self->data);
    return rc < 0 ? why_wrap(why, rc, "%s", path) : 0;
}

static int take_data_folder(struct train_settings *self, const struct train_flags *flags,
                            struct why *why)
{
    uint32_t token_bytes = (uint32_t)flags->token_bytes;
    if (flags->data[0] == 0 || strlen(flags->data) >= sizeof self->data.where)
        return why_set(why, FAULT_USAGE, "--data: a path of 1 to %zu bytes",
                       sizeof self->data.where - 1);
    int rc = token_bytes ? 0 : token_files_width(flags->data, why, &token_bytes);
    if (rc < 0) return why_wrap(why, rc, "--data");
    self->data =
        (struct wire_data_source){ .kind = DATA_LOCAL, .token_bytes = (uint8_t)token_bytes };
    snprintf(self->data.where, sizeof self->data.where, "%s", flags->data);
    return 0;
}

// The order of the samples: a flag says it, else data.toml or state.toml does. --data names files
// alone, so they are shuffled: neighbours in a text are alike, and a batch of them teaches less.
static int choose_order(struct train_settings *self, const struct train_flags *flags,
                        struct why *why)
{
    const size_t max = sizeof self->order;
    uint64_t seed = 0;
    int rc = 0;
    if (flags->no_shuffle) {
        self->data.seeded = false;
        snprintf(self->order, max, "that of the files");
    } else if (flags->shuffle_seed || flags->data) {
        if (flags->shuffle_seed)
            rc = command_number("--shuffle-seed", flags->shuffle_seed, 0, UINT64_MAX, why, &seed);
        memset(self->data.seed, 0, sizeof self->data.seed);
        le_put(self->data.seed, seed, 8);
        self->data.seeded = true;
        snprintf(self->order, max, "shuffled, seed %" PRIu64 "%s", seed,
                 flags->shuffle_seed ? "" : "; --no-shuffle takes that of the files");
    } else if (self->data.seeded) {
        snprintf(self->order, max, "shuffled, as %.100s says",
                 flags->data_config ? flags->data_config : flags->state_path);
    } else {
        snprintf(self->order, max,
                 "that of the files, as in a run by %.60s; --shuffle-seed N "
                 "shuffles",
                 flags->state_path);
    }
    return rc;
}

static int find_data(struct train_settings *self, const struct train_flags *flags, struct why *why)
{
    int rc = flags->data_config ? take_data_config(self, flags->data_config, why)
             : flags->data      ? take_data_folder(self, flags, why)
                                : source_of_config(&self->config, why, &self->data);
    if (rc == 0 && self->data.kind == DATA_SERVER)
        rc = why_set(why, FAULT_USAGE,
                     "data_location is the actor \"%s\", which shoal train does not ask: "
                     "name its files with --data-config data.toml or --data DIR",
                     self->data.where);
    if (rc == 0 && flags->token_bytes && !flags->data)
        rc = why_set(why, FAULT_USAGE, "--token-bytes belongs to --data");
    return rc < 0 ? rc : choose_order(self, flags, why);
}

// ---- the rest -----------------------------------------------------------------------------------

static const struct optimizer_kind *optimizer_of(const struct run_config *config)
{
    const struct optimizer_kind *kind = optimizer_named(config_word_of(config->optimizer)->name);
    ensure(kind); // The words that a state.toml may have are those of the table
    return kind;
}

// Rounded as CONFIG carries them to the trainers of a run, so that the bits are those of a run. A run
// with DisTrO has no lanes: a trainer sums from the first sample to the last.
static struct solo_options solo_options_of(const struct run_config *config,
                                           const struct train_flags *flags)
{
    const uint64_t micro_batch = flags->micro_batch ? flags->micro_batch : config->micro_batch;
    const uint64_t lanes = optimizer_of(config) == &optimizer_distro ? 1 : config->lanes;
    const uint32_t batch_max = (uint32_t)config->batch_end;
    return (struct solo_options){
        .optimizer = optimizer_of(config),
        .settings = { .weight_decay = config->weight_decay,
                      .beta1 = config->betas[0],
                      .beta2 = config->betas[1],
                      .eps = config->eps,
                      .momentum = config->momentum,
                      .nesterov = config->nesterov,
                      .decay = (float)config->compression_decay,
                      .chunk = (uint32_t)config->compression_chunk,
                      .topk = (uint32_t)config->compression_topk,
                      .one_bit = config->quantize_1bit },
        .clip_norm = recipe_clip_norm(config),
        .seq = (uint32_t)config->max_seq_len,
        .batch_max = batch_max,
        .micro_batch = micro_batch < batch_max ? (uint32_t)micro_batch : batch_max,
        .lanes = (uint32_t)(flags->lanes ? flags->lanes : lanes),
        .precision = products_precision(products_of_config(config->products)),
    };
}

static int find_first_state(struct train_settings *self, const struct train_flags *flags,
                            struct why *why)
{
    if (self->config.progress_state[0] && (flags->model || flags->init_seed))
        return why_set(why, FAULT_USAGE,
                       "%s, and progress.state of state.toml: the training begins with one of them",
                       flags->model ? "--model" : "--init-seed");
    const int rc = run_first_state(&self->config, why, self->first_state);
    return rc < 0 ? why_wrap(why, rc, "progress.state") : 0;
}

static int derive(struct train_settings *self, const struct train_flags *flags, struct why *why)
{
    const struct run_config *config = &self->config;
    snprintf(self->run, sizeof self->run, "%.32s.train", config->run_id);
    self->threads = flags->threads;
    self->memory_mib = flags->memory_mib;
    self->heldout = flags->heldout;
    self->heldout_every = flags->heldout_every;
    self->heldout_samples = flags->heldout_samples;
    self->checkpoint_dir = flags->no_checkpoint    ? NULL
                           : flags->checkpoint_dir ? flags->checkpoint_dir
                                                   : "checkpoints";
    self->checkpoint_every = flags->checkpoint_every;
    self->keep = flags->keep;
    self->schedule = recipe_schedule(config);
    self->first_step = config->progress_step - 1;
    self->total_steps = config->total_steps;
    self->cold =
        (struct cold_start){ (uint32_t)self->first_step, (uint32_t)config->cold_start_steps };
    self->solo = solo_options_of(config, flags);
    int rc = find_first_state(self, flags, why);
    if (rc == 0) rc = compute_find(flags->device, why, &self->device);
    return rc < 0 ? rc : check_settings(self, why);
}

int train_settings_read(const struct train_flags *flags, struct why *why,
                        struct train_settings *ret_settings)
{
    static struct config_faults faults;
    static struct train_settings self;
    memset(&self, 0, sizeof self);
    if (flags->data && flags->data_config)
        return why_set(why, FAULT_USAGE, "--data and --data-config: the tokens come from one");
    if (flags->no_shuffle && flags->shuffle_seed)
        return why_set(why, FAULT_USAGE, "--no-shuffle and --shuffle-seed: one of them");
    if (flags->no_checkpoint && (flags->resume || flags->checkpoint_dir || flags->checkpoint_every))
        return why_set(why, FAULT_USAGE, "--no-checkpoint, and another flag speaks of checkpoints");
    int rc = config_load_run(flags->state_path, &self.config, &faults);
    config_faults_print(&faults, stderr);
    if (rc < 0) return why_set(why, rc, "%s", flags->state_path);
    rc = change_config(flags, &self.config, why);
    if (rc == 0) rc = find_model(&self, flags, why);
    if (rc == 0) rc = find_data(&self, flags, why);
    if (rc == 0) rc = derive(&self, flags, why);
    if (rc == 0) *ret_settings = self;
    return rc;
}

void train_settings_recipe(const struct train_settings *self, char ret_text[TRAIN_RECIPE_MAX])
{
    char canonical[CONFIG_CANONICAL_MAX], seed[2 * sizeof self->data.seed + 1] = "none";
    const size_t count = config_canonical(&self->config, canonical);
    struct config_text text = config_text_in(ret_text, TRAIN_RECIPE_MAX);
    for (size_t i = 0; self->data.seeded && i < sizeof self->data.seed; i++)
        snprintf(seed + 2 * i, 3, "%02x", self->data.seed[i]);
    config_text_add(&text, "%.*s", (int)count, canonical);
    const char *library = gemm_library(self->solo.precision);
    config_text_add(&text, "micro batch = %u\nlanes = %u\n", self->solo.micro_batch,
                    self->solo.lanes);
    config_text_add(&text, "device = %s\n",
                    self->device.kind == COMPUTE_CUDA ? "cuda"
                    : library                         ? library
                                                      : "cpu");
    config_text_add(&text, "data = %s\ntoken bytes = %u\nshuffle seed = %s\n", self->data.where,
                    self->data.token_bytes, seed);
}
