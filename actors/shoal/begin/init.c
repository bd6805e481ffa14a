// init -- everything that a run needs, in one folder. Runs the commands that a user would run, one
// after the other, and prints each of them before: tokenize, then init-model unless --model names a
// model that exists. Then reads the model, chooses what follows from data and model (choose), and writes
// data.toml and state.toml: the annotated samples of `shoal explain` with the chosen values in them and
// both digests pinned. What a strategy needs besides is in one table (strategies). Then makes the keys.
// Last comes validate-config, so that a mistake shows now.

#include "actors/shoal/local/run_files.h"
#include "actors/shoal/local/shown_command.h"
#include "actors/shoal/model/model_folder.h"
#include "actors/shoal/model/saved.h"
#include "actors/shoal/show.h"
#include "actors/shoal/shoal.h"
#include "actors/shoal/text/text_codec.h"
#include "common/actor/command.h"
#include "common/base/durable_file.h"
#include "common/base/ensure.h"
#include "common/base/folder.h"
#include "common/base/process.h"
#include "common/config/data_config.h"
#include "common/config/print.h"
#include "common/config/run_config.h"
#include "common/crypto/identity.h"
#include "common/data/manifest.h"
#include "common/wire/wire.h"
#include <inttypes.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    INPUTS_MAX = 33,     // The folder of the run and the texts
    DIR_BYTES_MAX = 160, // testnet.c allows 180 for DIR/run and DIR/run/logs
    TEXTS_BYTES_MAX = 3000,
    SEPARATOR_BYTES = 64,
    SHUFFLE_BYTES = 32,
    STEPS_LEAST = 100, // Without --steps
    STEPS_MOST = 100000,
    PASSES = 3, // Over the data, within these bounds
    EPOCHS = 4, // At least, if they have EPOCH_ROUNDS_LEAST
    EPOCH_ROUNDS_LEAST = 5,
    SETTINGS_MAX = 32,
};

struct setting {
    const char *table, *key;
    char value[PATH_MAX];
};

struct init {
    const char *words[INPUTS_MAX]; // The folder, then texts
    size_t words_count;
    const char *data, *field, *model, *run_id_given, *strategy_name;
    uint64_t dim, layers, heads, ffn, seq_len, batch, steps, trainers, seed, heldout_every;
    bool skip_bad, json;
    // What follows from them:
    const struct strategy *strategy;
    char dir[PATH_MAX], model_dir[PATH_MAX], run_id[WIRE_RUN_MAX + 1], separator[SEPARATOR_BYTES];
    struct model_shape shape;
    struct hash genesis, dataset;
    uint32_t token_bytes;
    uint64_t tokens;       // To train on
    uint64_t epoch_rounds; // Each makes a step
    int code;              // Of the command that failed
};

// ---- what the strategies differ in --------------------------------------------------------------

// A new model is small: these are the numbers of the demo. For one that exists they are the sample's,
// which are Psyche's.
static const struct setting new_model_distro[] = {
    { "model.LLM.optimizer.Distro", "clip_grad_norm", "1.0" },
    { "model.LLM.optimizer.Distro", "compression_decay", "0.95" },
    { "model.LLM.optimizer.Distro", "compression_chunk", "32" },
    { "model.LLM.optimizer.Distro", "compression_topk", "64" },
    { "model.LLM.lr_schedule.Cosine", "base_lr", "2e-3" },
    { "model.LLM.lr_schedule.Cosine", "final_lr", "2e-4" },
};
static const struct setting new_model_adamw[] = {
    { "model.LLM.optimizer.AdamW", "clip_grad_norm", "1.0" },
    { "model.LLM.lr_schedule.Cosine", "base_lr", "2e-3" },
    { "model.LLM.lr_schedule.Cosine", "final_lr", "2e-4" },
};

static const struct strategy {
    const char *name, *optimizer;
    uint64_t epoch_rounds_most;
    const char *waiting_s;               // waiting_for_members_extra_time
    const struct setting *for_new_model; // Not for a model that exists
    size_t for_new_model_count;
    const char *members; // How the report's sentence about members goes on
    bool saves; // Its state is divided among members: it needs DIR/saves, and copies in memory
} strategies[] = {
    // A trainer that joins later takes part from the next epoch on, so there must be one soon.
    { "distro", "Distro", 100, "3", new_model_distro,
      sizeof new_model_distro / sizeof *new_model_distro,
      "           (rounds_per_epoch) while one is left (min_clients; a trainer that is left\n"
      "           alone decides what is committed); one that joins later waits for the next\n",
      false },
    // A trainer that joins later ends the epoch and takes part at once. So the run need not wait for others: after a
    // death it goes on as soon as enough are there.
    { "allreduce", "AdamW", UINT32_MAX, "0.2", new_model_adamw,
      sizeof new_model_adamw / sizeof *new_model_adamw,
      "           (rounds_per_epoch) while one is left (min_clients); it ends early for one that\n"
      "           joins later. All trust one another; links are encrypted (strategy.link)\n",
      false },
    { "sharded", "AdamW", UINT32_MAX, "0.2", new_model_adamw,
      sizeof new_model_adamw / sizeof *new_model_adamw,
      "           (rounds_per_epoch) while one is left (min_clients); it ends early for one that\n"
      "           joins later. When one dies, the run goes back about 10 steps, to the copy in\n"
      "           its neighbour's memory, and goes on once init_min_clients trainers are here (a\n"
      "           smaller number can be written later). All trust one another and see the folder\n"
      "           saves; links are encrypted (strategy.link)\n",
      true },
    { "server", "AdamW", UINT32_MAX, "0.2", new_model_adamw,
      sizeof new_model_adamw / sizeof *new_model_adamw,
      "           (rounds_per_epoch) while one is left (min_clients); it ends early for one that\n"
      "           joins later. Two parameter servers hold the moments (strategy.server.servers);\n"
      "           when one of them dies the run waits for another, and goes back about 10 steps,\n"
      "           to what the other has in memory. All trust one another and see the folder\n"
      "           saves; links are encrypted (strategy.link)\n",
      true },
};

static const struct strategy *find_strategy(const char *name)
{
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++)
        if (strcmp(strategies[i].name, name) == 0) return &strategies[i];
    return NULL;
}

// ---- the commands of the long way ---------------------------------------------------------------

// Runs a command in a process of its own. What it prints goes to stderr: stdout has our summary.
static int run_command(struct init *self, int (*command)(int argc, char **argv),
                       struct arguments *args, struct why *why)
{
    int status;
    shown_command_print(args);
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) return why_set(why, FAULT_MEMORY, "fork: %s", strerror(errno));
    if (child == 0) {
        dup2(STDERR_FILENO, STDOUT_FILENO);
        // argv[0] is then "shoal" and not "shoal NAME" (shoal.h): messages do not name the command
        args->list[1] = args->list[0];
        exit(command((int)args->count - 1, args->list + 1));
    }
    while (waitpid(child, &status, 0) < 0) ensure(errno == EINTR);
    self->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return self->code == 0 ? 0 : why_set(why, FAULT_USAGE, "the command above failed");
}

static int tokenize(struct init *self, struct why *why)
{
    struct arguments args = { 0 };
    arguments_add(&args, "shoal");
    arguments_add(&args, "tokenize");
    arguments_add(&args, "--tokenizer=%s", self->model ? self->model : "bytes");
    if (self->separator[0]) arguments_add(&args, "--separator=%s", self->separator);
    if (self->field) arguments_add(&args, "--jsonl-field=%s", self->field);
    if (self->skip_bad) arguments_add(&args, "--skip-bad");
    if (self->heldout_every != COMMAND_NOT_GIVEN)
        arguments_add(&args, "--heldout-every=%" PRIu64, self->heldout_every);
    arguments_add(&args, "--out=%s/data", self->dir);
    if (self->data) arguments_add(&args, "%s", self->data);
    arguments_add(&args, "--"); // A name may begin with a hyphen
    for (size_t i = 1; i < self->words_count; i++) arguments_add(&args, "%s", self->words[i]);
    return run_command(self, shoal_tokenize, &args, why);
}

static int make_model(struct init *self, struct why *why)
{
    struct arguments args = { 0 };
    arguments_add(&args, "shoal");
    arguments_add(&args, "init-model");
    arguments_add(&args, "--dim=%" PRIu64, self->dim);
    arguments_add(&args, "--layers=%" PRIu64, self->layers);
    arguments_add(&args, "--heads=%" PRIu64, self->heads);
    arguments_add(&args, "--ffn=%" PRIu64, self->ffn);
    arguments_add(&args, "--seq-len=%" PRIu64, self->seq_len);
    arguments_add(&args, "--seed=%" PRIu64, self->seed);
    arguments_add(&args, "--out=%s", self->model_dir);
    return run_command(self, shoal_init_model, &args, why);
}

static int validate(struct init *self, struct why *why)
{
    struct arguments args = { 0 };
    arguments_add(&args, "shoal");
    arguments_add(&args, "validate-config");
    arguments_add(&args, "--state=%s/state.toml", self->dir);
    arguments_add(&args, "--data-config=%s/data.toml", self->dir);
    return run_command(self, shoal_validate_config, &args, why);
}

// ---- the folder ---------------------------------------------------------------------------------

// --run-id, or the beginning of the folder's name, with '-' for each character that no run_id may have.
static void name_run(struct init *self)
{
    const char *base = strrchr(self->dir, '/') + 1;
    snprintf(self->run_id, sizeof self->run_id, "%s",
             self->run_id_given ? self->run_id_given : base);
    for (char *c = self->run_id; *c && !self->run_id_given; c++)
        if (!isalnum((unsigned char)*c) && !strchr("._-", *c)) *c = '-';
}

static int open_folder(struct init *self, struct why *why)
{
    const char *dir = self->words[0];
    // rmdir succeeds only on an empty folder. folder_resolve makes it again, and names any other fault of mkdir
    if (mkdir(dir, 0755) != 0 && errno == EEXIST && rmdir(dir) != 0)
        return why_set(why, FAULT_DENIED,
                       "%s exists and is not an empty folder of ours; name a new folder, or "
                       "remove this one if a shoal init was interrupted in it",
                       dir);
    const int rc = folder_resolve(dir, DIR_BYTES_MAX, self->dir, why);
    if (rc == 0) name_run(self);
    return rc;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status, (void)type, (void)place;
    return remove(path);
}

// All in the folder is ours, since it was new or empty: after a fault the same line can be tried
// again.
static void remove_folder(const struct init *self)
{
    if (nftw(self->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) != 0) perror(self->dir);
}

// ---- a model that exists ------------------------------------------------------------------------

// The token that goes after each document: the model's end-of-text token, as its tokenizer names
// it.
static int find_separator(struct init *self, struct why *why)
{
    char *text;
    const int rc = text_codec_end_token(self->model, "tokenizer_config.json", why, &text);
    const bool fits = !text || strlen(text) < sizeof self->separator;
    if (text && fits) strcpy(self->separator, text);
    free(text);
    return fits ? rc
                : why_set(why, FAULT_LIMIT,
                          "%s/tokenizer_config.json: eos_token has more than %zu bytes",
                          self->model, sizeof self->separator - 1);
}

static int read_model(struct init *self, struct why *why)
{
    struct model_folder model;
    const int rc = model_folder_load(self->model_dir, why, &model);
    if (rc < 0) return rc;
    self->shape = model.shape;
    self->genesis = model.digest;
    model_folder_free(&model);
    return 0;
}

// ---- what is chosen -----------------------------------------------------------------------------

static uint64_t clamp(uint64_t value, uint64_t least, uint64_t most)
{
    return value < least ? least : value > most ? most : value;
}

// The shape of a new model, from its width alone: heads of 32, as wide a feed-forward part as
// Llama's (8/3 of the width, in steps of 16).
static void choose_shape(struct init *self)
{
    if (self->heads == 0) self->heads = self->dim % 32 == 0 ? self->dim / 32 : 1;
    if (self->layers == 0) self->layers = clamp(self->dim / 32, 2, 24);
    if (self->ffn == 0) self->ffn = (self->dim * 8 / 3 + 15) / 16 * 16;
    if (self->seq_len == 0) self->seq_len = 128;
}

static int count_tokens(struct init *self, struct why *why)
{
    struct manifest manifest;
    char dir[PATH_MAX + 16];
    snprintf(dir, sizeof dir, "%s/data/train", self->dir);
    const int rc = manifest_read(dir, why, &manifest);
    if (rc < 0) return rc;
    self->token_bytes = manifest.token_bytes;
    for (uint32_t i = 0; i < manifest.file_count; i++)
        self->tokens += manifest.files[i].bytes / manifest.token_bytes;
    manifest_free(&manifest);
    return 0;
}

// The length of a sequence, then the steps, then the rounds of an epoch: each follows from the one before.
static int choose(struct init *self, struct why *why)
{
    const uint64_t longest = model_seq_len(&self->shape);
    if (self->seq_len == 0) self->seq_len = longest < 512 ? longest : 512;
    if (self->seq_len > longest)
        return why_set(why, FAULT_USAGE, "--seq-len %" PRIu64 ": the model takes at most %" PRIu64,
                       self->seq_len, longest);
    const int rc = count_tokens(self, why);
    if (rc < 0) return rc;
    if (self->tokens < self->seq_len + 1) // The last token of a sequence is only a target
        return why_set(why, FAULT_USAGE,
                       "%" PRIu64 " tokens are not one sequence of %" PRIu64
                       "; give more text, or a shorter --seq-len",
                       self->tokens, self->seq_len);
    if (self->steps == 0)
        self->steps =
            clamp(PASSES * self->tokens / (self->batch * self->seq_len), STEPS_LEAST, STEPS_MOST);
    self->epoch_rounds =
        clamp(self->steps / EPOCHS, EPOCH_ROUNDS_LEAST, self->strategy->epoch_rounds_most);
    return 0;
}

// ---- the files ----------------------------------------------------------------------------------

// The annotated sample with these settings, as a text that the caller frees.
static int make_text(const struct init *self, const struct config_schema *schema,
                     const struct setting *settings, size_t count, struct why *why, char **ret_text)
{
    const struct config_choice choices[] = { { "strategy.kind", self->strategy->name },
                                             { "model.LLM.optimizer", self->strategy->optimizer },
                                             { 0 } };
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    ensure(out);
    config_print_sample(schema, choices, out);
    ensure(fclose(out) == 0);
    for (size_t i = 0; i < count; i++) {
        const int rc =
            run_files_set(&text, settings[i].table, settings[i].key, settings[i].value, why);
        if (rc < 0) {
            free(text);
            return rc;
        }
    }
    *ret_text = text;
    return 0;
}

static int write_file(const struct init *self, const char *name, const struct config_schema *schema,
                      const struct setting *settings, size_t count, struct why *why)
{
    char *text = NULL;
    int rc = make_text(self, schema, settings, count, why, &text);
    if (rc == 0) rc = durable_file_write(self->dir, name, text, strlen(text), why);
    free(text);
    return rc;
}

static void put_number(struct setting *setting, uint64_t value)
{
    snprintf(setting->value, sizeof setting->value, "%" PRIu64, value);
}

static void put_text(struct setting *setting, const char *text)
{
    ensure(snprintf(setting->value, sizeof setting->value, "\"%s\"", text) <
           (int)sizeof setting->value);
}

static int write_data(struct init *self, struct why *why)
{
    // Static, as each has PATH_MAX bytes: so this works once in a process, as write_state does
    static struct setting settings[] = { { "", "dir", "\"data/train\"" },
                                         { "", "token_size", "" },
                                         { "", "seq_len", "" },
                                         { "", "shuffle_seed", "[" } };
    uint8_t seed[SHUFFLE_BYTES];
    char path[PATH_MAX + 16], *list = settings[3].value;
    put_text(&settings[1], self->token_bytes == 2 ? "TwoBytes" : "FourBytes");
    put_number(&settings[2], self->seq_len);
    ensure(getrandom(seed, sizeof seed, 0) == sizeof seed);
    for (int i = 0; i < SHUFFLE_BYTES; i++)
        sprintf(list + strlen(list), "%u%s", seed[i], i + 1 < SHUFFLE_BYTES ? ", " : "]");
    int rc = write_file(self, "data.toml", &config_data_schema, settings,
                        sizeof settings / sizeof *settings, why);
    snprintf(path, sizeof path, "%s/data.toml", self->dir);
    return rc < 0 ? rc : run_files_dataset(path, why, &self->dataset);
}

static int write_state(struct init *self, struct why *why)
{
    enum {
        RUN_ID,
        STEPS,
        LR_STEPS,
        BATCH,
        BATCH_END,
        INIT_MIN_CLIENTS,
        MIN_CLIENTS,
        SEQ_LEN,
        MODEL,
        DIGEST,
        DATASET,
        LR_WARMUP,
        EPOCH,
        WAITING,
        COOLDOWN,
        COMMON // So many for each strategy
    };
    static struct setting settings[SETTINGS_MAX] = {
        [RUN_ID] = { "", "run_id", "" },
        [STEPS] = { "config", "total_steps", "" },
        [LR_STEPS] = { "model.LLM.lr_schedule.Cosine", "total_steps", "" },
        [BATCH] = { "config", "global_batch_size_start", "" },
        [BATCH_END] = { "config", "global_batch_size_end", "" },
        [INIT_MIN_CLIENTS] = { "config", "init_min_clients", "" },
        [MIN_CLIENTS] = { "config", "min_clients", "1" },
        [SEQ_LEN] = { "model.LLM", "max_seq_len", "" },
        [MODEL] = { "model.LLM.checkpoint.Hub", "repo_id", "" },
        [DIGEST] = { "model", "digest", "" },
        [DATASET] = { "data", "dataset_digest", "" },
        [LR_WARMUP] = { "model.LLM.lr_schedule.Cosine", "warmup_steps", "" },
        [EPOCH] = { "config", "rounds_per_epoch", "" },
        [WAITING] = { "config", "waiting_for_members_extra_time", "" },
        [COOLDOWN] = { "config", "cooldown_time", "60" },
    };
    size_t count = COMMON;
    const size_t more = self->model ? 0 : self->strategy->for_new_model_count;
    ensure(COMMON + more + 3 <= SETTINGS_MAX);
    memcpy(settings + count, self->strategy->for_new_model, more * sizeof *settings);
    count += more;
    if (self->strategy->saves) {
        char saves[PATH_MAX + 16];
        snprintf(saves, sizeof saves, "%s/saves", self->dir);
        const int rc = folder_make(saves, 0755, why);
        if (rc < 0) return rc;
        settings[count] = (struct setting){ "checkpoint", "shared_dir", "" };
        put_text(&settings[count++], saves);
        settings[count] = (struct setting){ "checkpoint", "steps", "" };
        // A shorter run saves its last step
        put_number(&settings[count++], clamp(self->steps, 1, 100));
        settings[count] = (struct setting){ "strategy", "memory_every", "" };
        put_number(&settings[count++], clamp(self->steps, 1, 10));
    }
    char hex[HASH_HEX];
    put_text(&settings[RUN_ID], self->run_id);
    put_number(&settings[STEPS], self->steps);
    put_number(&settings[LR_STEPS], self->steps);
    put_number(&settings[LR_WARMUP], clamp(self->steps / 20, 1, self->model ? 250 : 15));
    put_number(&settings[EPOCH], self->epoch_rounds);
    snprintf(settings[WAITING].value, sizeof settings[WAITING].value, "%s",
             self->strategy->waiting_s);
    put_number(&settings[BATCH], self->batch);
    put_number(&settings[BATCH_END], self->batch);
    put_number(&settings[INIT_MIN_CLIENTS], self->trainers);
    put_number(&settings[SEQ_LEN], self->seq_len);
    put_text(&settings[MODEL], self->model ? self->model_dir : "model");
    put_text(&settings[DIGEST], hash_to_hex(&self->genesis, hex));
    put_text(&settings[DATASET], hash_to_hex(&self->dataset, hex));
    return write_file(self, "state.toml", &config_run_schema, settings, count, why);
}

// The keys of parameter servers and trainers are made by `shoal up`.
static int make_keys(const struct init *self, struct why *why)
{
    static const char *const names[] = { "broker", "coordinator", "data-provider", "checkpointer" };
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/run/keys", self->dir);
    int rc = folder_make(path, 0700, why);
    for (size_t i = 0; i < sizeof names / sizeof *names && rc == 0; i++) {
        snprintf(path, sizeof path, "%s/run/keys/%s.key", self->dir, names[i]);
        rc = identity_create(path, why);
    }
    return rc;
}

// ---- the command --------------------------------------------------------------------------------

static int report(const struct init *self, struct why *why)
{
    char parameters[SHOW_MAX], tokens[SHOW_MAX], hex[HASH_HEX], dataset[HASH_HEX];
    const uint64_t per_step = self->batch * self->seq_len;
    if (self->json)
        return shoal_print_json(
            json_pack("{s:s, s:o, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "schema",
                      "shoal.init.1", "folder", shoal_text(self->dir), "run_id", self->run_id,
                      "model_digest", hash_to_hex(&self->genesis, hex), "dataset_digest",
                      hash_to_hex(&self->dataset, dataset), "parameters",
                      (json_int_t)model_parameter_count(&self->shape), "train_tokens",
                      (json_int_t)self->tokens, "steps", (json_int_t)self->steps, "batch",
                      (json_int_t)self->batch, "seq_len", (json_int_t)self->seq_len),
            why);
    show_count((double)model_parameter_count(&self->shape), parameters);
    show_count((double)self->tokens, tokens);
    printf(
        "run \"%s\" in %s\n"
        "  model    %s parameters: dim %u, %u layer%s, %u head%s; %s\n"
        "  data     %s tokens of %u bytes to train on, shuffled by a seed of its own%s%s\n"
        "  steps    %" PRIu64 " of %" PRIu64 " sequences of %" PRIu64
        " tokens: %.1f passes over the data\n"
        "  members  an epoch begins with %" PRIu64
        " trainer%s (init_min_clients) and goes on for %" PRIu64 " steps\n"
        "%s"
        "Every setting is in state.toml and data.toml, with its meaning; both digests are pinned."
        "\n%s%s%s\n  shoal up",
        self->run_id, self->dir, parameters, self->shape.dim, self->shape.layers,
        show_s(self->shape.layers), self->shape.heads, show_s(self->shape.heads),
        self->model ? self->model_dir : "new, from a seed", tokens, self->token_bytes,
        self->separator[0] ? ", after each document " : "", self->separator, self->steps,
        self->batch, self->seq_len, (double)self->steps * (double)per_step / (double)self->tokens,
        self->trainers, show_s(self->trainers), self->epoch_rounds, self->strategy->members,
        self->model ? "The model stays in " : "", self->model ? self->model_dir : "",
        self->model ? ": do not move it while the run lives.\n" : "");
    shown_command_word(stdout, self->words[0]);
    putchar('\n');
    return 0;
}

// What fills the open folder.
static int fill(struct init *self, struct why *why)
{
    int rc = tokenize(self, why);
    if (rc == 0 && !self->model) choose_shape(self);
    if (rc == 0 && !self->model) rc = make_model(self, why);
    if (rc == 0) rc = read_model(self, why);
    if (rc == 0) rc = choose(self, why);
    if (rc == 0) rc = write_data(self, why);
    if (rc == 0) rc = write_state(self, why);
    if (rc == 0) rc = make_keys(self, why);
    return rc == 0 ? validate(self, why) : rc;
}

static int make_run(struct init *self, struct why *why)
{
    int rc = 0;
    if (self->model && !realpath(self->model, self->model_dir))
        return why_set(why, fault_from_errno(errno), "--model %s: %s", self->model,
                       strerror(errno));
    if (self->model && pieces_is_save(self->model_dir))
        return why_set(
            why, FAULT_USAGE,
            "--model %s: this is a save in pieces; first: shoal checkpoint export --save "
            "%s --model MODEL --dtype f32 --out OUT",
            self->model, self->model);
    if (self->model) rc = find_separator(self, why);
    if (rc == 0) rc = open_folder(self, why);
    if (rc < 0) return rc;
    if (!self->model) snprintf(self->model_dir, sizeof self->model_dir, "%.4000s/model", self->dir);
    rc = fill(self, why);
    if (rc < 0) remove_folder(self);
    return rc < 0 ? rc : report(self, why);
}

static const struct flag flags[] = {
    FLAG("data", 0, "FILE", TO_TEXT(struct init, data),
         "Text files, records (.jsonl, .json), folders of them, also compressed; more may follow",
         .group = 1),
    FLAG("jsonl-field", 0, "NAME", TO_TEXT(struct init, field), "Of a record, has the text (text)",
         .group = 1),
    FLAG("skip-bad", 0, NULL, TO_SWITCH(struct init, skip_bad),
         "Pass over bad records, name and count them", .group = 1),
    FLAG("model", 'm', "DIR", TO_TEXT(struct init, model),
         "Begin with this model, a folder in Hugging Face layout with its tokenizer", .group = 1),
    FLAG("dim", 0, "N", TO_NUMBER(struct init, dim, 16, MODEL_DIM_MAX),
         "Or make a new one, a token for each byte: its width (128)", .group = 1),
    FLAG("layers", 0, "N", TO_NUMBER(struct init, layers, 1, MODEL_LAYERS_MAX),
         "Its layers (--dim / 32, 2 to 24)", .group = 1),
    FLAG("heads", 0, "N", TO_NUMBER(struct init, heads, 1, MODEL_HEADS_MAX),
         "Its heads (--dim / 32, or 1 if that is not whole)", .group = 1),
    FLAG("ffn", 0, "N", TO_NUMBER(struct init, ffn, 1, MODEL_FFN_MAX),
         "Width of its feed-forward part (8/3 of --dim)", .group = 1),
    FLAG("seed", 0, "N", TO_NUMBER(struct init, seed, 0, INT64_MAX), "Of its random parameters (1)",
         .group = 1),
    FLAG("run-id", 0, "ID", TO_TEXT(struct init, run_id_given), "The run's name (the folder's)",
         .group = 2),
    FLAG("trainers", 0, "N", TO_NUMBER(struct init, trainers, 1, 256),
         "Trainers with which it begins: so many `shoal up` starts (1)", .group = 2),
    FLAG(
        "strategy", 0, "KIND", TO_TEXT(struct init, strategy_name),
        "distro; or for trainers that trust one another allreduce, plain AdamW; sharded, each with "
        "its share of AdamW's moments; or server, with parameter servers that hold them (distro)",
        .group = 2),
    FLAG("steps", 0, "N", TO_NUMBER(struct init, steps, 1, UINT32_MAX),
         "Steps of the run (three passes, 100 to 100000)", .group = 2),
    FLAG("batch", 0, "N", TO_NUMBER(struct init, batch, 1, 65535), "Sequences of a step (16)",
         .group = 2),
    FLAG("seq-len", 0, "N", TO_NUMBER(struct init, seq_len, 1, MODEL_SEQ_LEN_MAX),
         "Tokens of a sequence (128; of --model: its longest, at most 512)", .group = 2),
    FLAG("heldout-every", 0, "N", TO_NUMBER(struct init, heldout_every, 0, 1 << 20),
         "One block of N is held out; 0: none (20)", .group = 2),
    FLAG("json", 0, NULL, TO_SWITCH(struct init, json), "Print one JSON object", .group = 3),
    { 0 },
};

// All texts go into one command line (struct arguments).
static int check_texts(const struct init *self, struct why *why)
{
    size_t bytes = (self->data ? strlen(self->data) : 0) + (self->model ? strlen(self->model) : 0) +
                   (self->field ? strlen(self->field) : 0);
    for (size_t i = 1; i < self->words_count; i++) bytes += strlen(self->words[i]) + 1;
    if (bytes > TEXTS_BYTES_MAX)
        return why_set(
            why, FAULT_USAGE,
            "the names of the texts, --model and --jsonl-field have %zu bytes, allowed 1..%d: put "
            "the texts into a folder and name that",
            bytes, TEXTS_BYTES_MAX);
    return 0;
}

static int check(const void *line, struct why *why)
{
    const struct init *self = line;
    if (!self->data && self->words_count < 2)
        return why_set(why, FAULT_USAGE, "--data FILE is needed: the text to train on");
    if (!find_strategy(self->strategy_name))
        return why_set(why, FAULT_USAGE, "--strategy %.40s: distro, allreduce, sharded or server",
                       self->strategy_name);
    if (self->model && (self->dim || self->layers || self->heads || self->ffn))
        return why_set(why, FAULT_USAGE,
                       "--model has its own shape: no --dim, --layers, --heads, "
                       "--ffn beside it");
    const int rc = self->run_id_given ? command_check_run(self->run_id_given, why) : 0;
    return rc < 0 ? rc : check_texts(self, why);
}

static const struct command_line line = {
    .flags = flags,
    .usage = "DIR --data FILE...",
    .about = "Makes a run in a new folder: token files, model, keys, state.toml and data.toml, and "
             "prints each command that it runs. Then `shoal up DIR`.\n\n"
             "  shoal init my-run --data books/ notes.txt\n"
             "  shoal init my-run --model SmolLM-135M --data web.jsonl\n"
             "  shoal init my-run --strategy allreduce --trainers 4 --data books/\n",
    .arguments = TO_LIST(struct init, words, words_count, INPUTS_MAX),
    .none = "the name of a new folder is needed",
    .check = check,
};

int shoal_init(int argc, char **argv)
{
    static struct init self = { .strategy_name = "distro",
                                .batch = 16,
                                .trainers = 1,
                                .seed = 1,
                                .heldout_every = COMMAND_NOT_GIVEN };
    struct why why = { 0 };
    int rc = command_parse(&line, argc, argv, &self, &why);
    // Not a default of the table: `check` must see whether --dim was given
    if (rc == 0 && !self.model && self.dim == 0) self.dim = 128;
    if (rc == 0) {
        self.strategy = find_strategy(self.strategy_name);
        rc = make_run(&self, &why);
    }
    if (self.code == 0) return fault_exit(rc, &why);
    fprintf(stderr, "shoal init: the command above failed, so %s is not made\n", self.words[0]);
    return self.code;
}
