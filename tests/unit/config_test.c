// Configurations, good and bad. What is printed of a bad one stands beside it in
// tests/golden/config/bad and is compared to the letter; Psyche's own files are in
// tests/golden/config/psyche.

#include <stdlib.h>

#include <glob.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/nearest.h"
#include "common/config/data_config.h"
#include "common/config/print.h"
#include "common/config/run_config.h"
#include "common/config/value.h"
#include "tests/test.h"

#define GOLDEN "tests/golden/config/"
static struct config_faults faults; // 60 KiB: better not on a stack

static char *slurp(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *bytes = calloc(1, 1 << 20);
    assert_non_null(bytes);
    assert_true(fread(bytes, 1, (1 << 20) - 1, file) < (1 << 20) - 1);
    fclose(file);
    return bytes;
}

static char *printed_faults(void)
{
    char *text = NULL;
    size_t count = 0;
    FILE *out = open_memstream(&text, &count);
    config_faults_print(&faults, out);
    fclose(out);
    return text;
}

// Loads as what the name says, and checks that a refusal writes nothing.
static int load_any(const char *path, const char *name)
{
    struct run_config run;
    struct data_config data;
    memset(&run, 0x5a, sizeof run);
    memset(&data, 0x5a, sizeof data);
    const bool is_data = strncmp(name, "data-", 5) == 0;
    const int rc =
        is_data ? config_load_data(path, &data, &faults) : config_load_run(path, &run, &faults);
    const unsigned char *bytes = is_data ? (unsigned char *)&data : (unsigned char *)&run;
    for (size_t i = 0; rc < 0 && i < (is_data ? sizeof data : sizeof run); i++)
        assert_int_equal(bytes[i], 0x5a);
    return rc;
}

static void every_bad_file_is_refused_as_written(void **state)
{
    char here[4096], expected_name[300];
    glob_t found;
    (void)state;
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(glob(GOLDEN "bad/*.toml", 0, NULL, &found), 0);
    assert_true(found.gl_pathc >= 50);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *path = found.gl_pathv[i], *name = strrchr(path, '/') + 1;
        assert_int_equal(chdir(GOLDEN "bad"), 0); // Messages bear names of files, not of folders
        const int rc = load_any(name, name);
        assert_int_equal(chdir(here), 0);
        assert_int_equal(rc, FAULT_CONFIG);
        snprintf(expected_name, sizeof expected_name, "%.*stxt", (int)strlen(path) - 4, path);
        char *expected = slurp(expected_name), *printed = printed_faults();
        assert_string_equal(printed, expected);
        free(expected);
        free(printed);
    }
    globfree(&found);
}

// Psyche's shipped files: how many errors, and what the first ones are about; none: it loads.
// Those for Solana have no run_id: there the name of a run is not part of its configuration.
static const struct {
    const char *name;
    unsigned errors, warnings;
    const char *about[4];
} psyche[] = {
    { "llama2-20m-dolma-noverify-first-checkpointer", 0, 1, { NULL } },
    { "llama2-20m-dolma-noverify-no-checkpointer", 0, 1, { NULL } },
    { "older-keys", 0, 7, { NULL } },
    { "kill-test-short-epoch-checkpoint", 0, 1, { NULL } },
    { "kill-test-newer", 0, 2, { NULL } },
    { "llama2-20m-dolma-verify-first-checkpointer", 1, 1, { "config.cooldown_time" } },
    { "consilience-match-llama2-20m-fineweb-pretrain-dev",
      1,
      1,
      { "config.max_round_train_time: 3000 s must be below" } },
    { "consilience-match-newer", 1, 2, { "config.max_round_train_time: 3000 s must be below" } },
    { "consilience", 2, 0, { "HfDeepseek is not supported", "WeightedHttp is not supported" } },
    { "consilience-40b-devnet",
      3,
      0,
      { "run_id: missing", "HfDeepseek is not supported", "WeightedHttp is not" } },
    { "hermes-4-8b",
      4,
      0,
      { "run_id: missing", "HfAuto is not", "Finetuning is not", "Preprocessed is not" } },
    { "test",
      3,
      0,
      { "checkpoint: Dummy is not", "optimizer: Dummy is not", "data_location: Dummy is not" } },
    { "test-newer",
      4,
      0,
      { "data_location: missing", "optimizer: Dummy", "data_locations: not", "checkpoint:" } },
    { "solana-nano", 1, 1, { "run_id: missing" } },
    { "solana-nano-newer", 1, 3, { "run_id: missing" } },
    { "solana-1b", 1, 2, { "run_id: missing" } },
    { "solana-two-clients", 1, 1, { "run_id: missing" } },
    { "solana-light",
      3,
      1,
      { "run_id: missing", "config.warmup_time: 30 s", "config.max_round_train_time: 30 s" } },
    { "solana-light-gcs", 2, 1, { "run_id: missing", "NoUploadGcs is not supported" } },
    { "solana-light-moe",
      4,
      0,
      { "run_id: missing", "config.warmup_time: 900 s", "Torchtitan is", "WeightedHttp is" } },
    { "solana-preprocessed",
      4,
      0,
      { "run_id: missing", "HfAuto is not", "Finetuning is not", "HuggingFacePreprocessed" } },
    { "solana-python", 2, 1, { "run_id: missing", "HfAuto is not supported" } },
    { "solana-dummy",
      3,
      0,
      { "run_id: missing", "data_location: Dummy is not", "checkpoint: Dummy is not" } },
    { "solana-conflict", 1, 0, { "expected keys, tables, whitespace or comments, saw '<'" } },
    { "data-test", 0, 0, { NULL } },
    { "data-dolma", 0, 0, { NULL } },
    { "data-fineweb", 0, 0, { NULL } },
};

static void psyches_files_load_or_are_refused_by_name(void **state)
{
    char path[300];
    (void)state;
    for (size_t i = 0; i < sizeof psyche / sizeof *psyche; i++) {
        snprintf(path, sizeof path, GOLDEN "psyche/%s.toml", psyche[i].name);
        assert_int_equal(load_any(path, psyche[i].name), psyche[i].errors ? FAULT_CONFIG : 0);
        assert_int_equal(faults.errors, psyche[i].errors);
        assert_int_equal(faults.warnings, psyche[i].warnings);
        unsigned seen = 0;
        for (unsigned j = 0; j < faults.count; j++) {
            if (faults.list[j].warning) continue;
            assert_non_null(strstr(faults.list[j].text, psyche[i].about[seen]));
            seen++;
        }
    }
}

static void a_missing_run_id_is_all_that_keeps_solanas_files(void **state)
{
    static const char *const names[] = { "solana-nano", "solana-nano-newer", "solana-1b",
                                         "solana-two-clients" };
    char path[300], other[] = P_tmpdir "/shoal-config-XXXXXX";
    struct run_config config;
    (void)state;
    const int descriptor = mkstemp(other);
    assert_true(descriptor >= 0);
    close(descriptor);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, GOLDEN "psyche/%s.toml", names[i]);
        char *text = slurp(path);
        FILE *out = fopen(other, "w");
        fprintf(out, "run_id = \"solana\"\n%s", text);
        fclose(out);
        free(text);
        assert_int_equal(config_load_run(other, &config, &faults), 0);
        assert_int_equal(config.data_location, CONFIG_DATA_HTTP);
    }
    unlink(other);
}

static void a_file_becomes_fields(void **state)
{
    struct run_config config;
    (void)state;
    assert_int_equal(config_load_run(GOLDEN "psyche/solana-light.toml", &config, &faults),
                     FAULT_CONFIG);
    assert_int_equal(config_load_run(GOLDEN "psyche/kill-test-newer.toml", &config, &faults), 0);
    assert_string_equal(config.run_id, "llama2-20m-dolma");
    assert_int_equal(config.run_state, CONFIG_RUN_STATE_WAITING);
    assert_int_equal(config.epoch_ms, 150000);
    assert_int_equal(config.rounds_per_epoch, 0);
    assert_int_equal(config.batch_start, 128);
    assert_int_equal(config.lease_ms, 10000);
    assert_int_equal(config.max_seq_len, 2048);
    assert_int_equal(config.data_location, CONFIG_DATA_SERVER);
    assert_string_equal(config.data_server, "127.0.0.1:20001");
    assert_int_equal(config.checkpoint, CONFIG_CHECKPOINT_HUB);
    assert_string_equal(config.checkpoint_folder, "emozilla/llama2-20m-init");
    assert_int_equal(config.lr_schedule, CONFIG_SCHEDULE_COSINE);
    assert_true(config.lr_base == 4e-4 && config.lr_final == 4e-5 && config.lr_warmup_init == 0);
    assert_int_equal(config.lr_warmup_steps, 500);
    assert_int_equal(config.lr_total_steps, 25000);
    assert_int_equal(config.optimizer, CONFIG_OPTIMIZER_DISTRO);
    assert_int_equal(config.compression_chunk, 64);
    assert_true(config.quantize_1bit && config.ignored && !config.witness_standalone);
    assert_true(hash_is_none(&config.model_digest));
    assert_string_equal(config.broker_mail, "tcp://127.0.0.1:5550");
}

static void the_demo_loads_and_agrees_with_itself(void **state)
{
    struct run_config run;
    struct data_config data;
    char folder[CONFIG_PATH_MAX];
    (void)state;
    assert_int_equal(config_load_run("config/demo/state.toml", &run, &faults), 0);
    assert_int_equal(faults.count, 0);
    assert_string_equal(run.run_id, "demo");
    assert_int_equal(config_load_data("config/demo/data.toml", &data, &faults), 0);
    assert_int_equal(data.seq_len, run.max_seq_len);
    assert_int_equal(config_token_bytes(data.token_size), 2);
    assert_int_equal(data.shuffle_seed[31], 32);
    assert_int_equal(config_resolve(&data.origin, data.dir, folder, sizeof folder), 0);
    assert_string_equal(folder, "config/demo/data/train");
    assert_int_equal(config_resolve(&data.origin, "/data", folder, sizeof folder), 0);
    assert_string_equal(folder, "/data");
    assert_int_equal(config_resolve(&data.origin, "data", folder, 16), FAULT_LIMIT);
}

// The demo of each strategy has the same text, model and steps.
static void the_demos_agree(void **state)
{
    struct run_config distro, sums;
    (void)state;
    assert_int_equal(config_load_run("config/demo/state.toml", &distro, &faults), 0);
    assert_int_equal(config_load_run("config/demo/allreduce.toml", &sums, &faults), 0);
    assert_int_equal(faults.count, 0);
    assert_int_equal(sums.strategy, CONFIG_STRATEGY_ALLREDUCE);
    assert_int_equal(sums.link, CONFIG_LINK_PLAIN);
    assert_int_equal(sums.total_steps, distro.total_steps);
    assert_int_equal(sums.batch_start, distro.batch_start);
    assert_int_equal(sums.batch_end, distro.batch_end);
    assert_int_equal(sums.max_seq_len, distro.max_seq_len);
    assert_int_equal(sums.init_min_clients, distro.init_min_clients);
    assert_string_equal(sums.checkpoint_folder, distro.checkpoint_folder);
    assert_string_equal(sums.run_id, distro.run_id);
    const struct run_config whole = sums;
    assert_int_equal(config_load_run("config/demo/sharded.toml", &sums, &faults), 0);
    assert_int_equal(faults.count, 0);
    assert_int_equal(sums.strategy, CONFIG_STRATEGY_SHARDED);
    assert_int_equal(sums.parts, CONFIG_PARTS_MOMENTS);
    assert_int_equal(sums.total_steps, whole.total_steps);
    assert_int_equal(sums.lanes, whole.lanes);
    assert_int_equal(sums.checkpoint_steps, 40);
}

static void every_word_and_table_becomes_fields(void **state)
{
    struct run_config config;
    (void)state;
    assert_int_equal(config_load_run(GOLDEN "other.toml", &config, &faults), 0);
    assert_int_equal(faults.count, 0);
    assert_int_equal(config.run_state, CONFIG_RUN_STATE_PAUSED);
    assert_int_equal(config.cooldown_ms, 250);
    assert_int_equal(config.round_train_ms, 1500);
    assert_int_equal(config.round_witness_ms, 1);
    assert_int_equal(config.epoch_ms, 12750);
    assert_int_equal(config.total_steps, UINT32_MAX);
    assert_int_equal(config.batch_warmup_tokens, 549755813888);
    assert_int_equal(config.progress_data_index, 19200);
    assert_int_equal(config.heartbeat_ms, 250);
    assert_true(config.witness_standalone && !config.quantize_1bit);
    assert_int_equal(config.manifest_digest.bytes[1], 0xff);
    assert_int_equal(config.model_digest.bytes[7], 0xef);
    assert_string_equal(config.broker_mail, "ipc:///run/shoal/mail");
    assert_int_equal(config.snapshot_rounds, 4);
    assert_int_equal(config.http_token_size, CONFIG_TOKEN_SIZE_FOUR);
    assert_int_equal(config.http_shuffle, CONFIG_SHUFFLE_SEEDED);
    assert_int_equal(config.http_seed[16], 240);
    assert_int_equal(config.http_location, CONFIG_LOCATION_NUMBERED);
    assert_string_equal(config.http_url, "https://example.org/a b/\"{}\".bin");
    assert_int_equal(config.http_file_digits, 5);
    assert_int_equal(config.checkpoint, CONFIG_CHECKPOINT_P2P);
    assert_int_equal(config.lr_schedule, CONFIG_SCHEDULE_LINEAR);
    assert_true(config.lr_base == 1 && config.lr_final == 0.1 && config.clip_grad_norm == 0.5);
}

// The words of both modes, and which settings have a meaning in which.
static void an_asynchronous_run_loads(void **state)
{
    struct run_config config, other;
    (void)state;
    assert_int_equal(config_load_run(GOLDEN "async.toml", &config, &faults), 0);
    assert_int_equal(faults.count, 0);
    assert_true(config_is_async(&config) && config_sums(&config) && config_shares(&config));
    assert_int_equal(config.push_every, 2);
    assert_int_equal(config.pull_every, 3);
    assert_true(config.staleness == 2.5 && !config.pass_barrier);
    assert_int_equal(config.task_samples, 96);
    assert_int_equal(config.task_ms, 90500);
    assert_int_equal(config.task_failures, 1);
    assert_int_equal(config.checkpoint_steps, 10);
    assert_int_equal(config.step_timeout_ms, 12000);
    const struct config_schema *schema = &config_run_schema;
    assert_true(config_path_active(schema, "strategy.server.task_samples", &config));
    assert_false(config_path_active(schema, "strategy.lanes", &config));
    assert_true(config_path_active(schema, "strategy.link", &config));
    // Under another strategy the word of the mode has no meaning, whatever the file says
    other = config;
    other.strategy = CONFIG_STRATEGY_ALLREDUCE;
    assert_false(config_is_async(&other));
    assert_true(config_path_active(schema, "strategy.lanes", &other));
    assert_false(config_path_active(schema, "strategy.server.mode", &other));
    assert_false(config_path_active(schema, "strategy.server.task_samples", &other));
    assert_int_equal(config_load_run("config/demo/server.toml", &other, &faults), 0);
    assert_int_equal(faults.count, 0);
    assert_false(config_is_async(&other));
    assert_int_equal(config_load_run("config/demo/async.toml", &other, &faults), 0);
    assert_int_equal(faults.count, 0);
    assert_true(config_is_async(&other));
}

// The hashes are those of the golden files, as sha256sum gives them.
static const struct {
    const char *name, *digest;
} canonical[] = {
    { "good", "23e770fd2cddeb6d853a27ccb08e26cc0d47c46feecbac562a22bea40b524d56" },
    { "other", "dfac5c0722a90350b93dc01e043bb1f386c1ae09e8b959f0f75fca7bcec55c5f" },
    { "allreduce", "39c15efc512400ef5fc143c0c0c5c4c984f37cf1cc5e7e2326bffbc242922e3d" },
    { "async", "3afbdaf02a5bfe2f8c90d340fef4d049f226a0069c436035a2c999e09348aa22" },
};

static void canonical_bytes_are_golden(void **state)
{
    static char bytes[CONFIG_CANONICAL_MAX];
    struct run_config config;
    char path[300], hex[HASH_HEX];
    (void)state;
    for (size_t i = 0; i < sizeof canonical / sizeof *canonical; i++) {
        snprintf(path, sizeof path, GOLDEN "%s.toml", canonical[i].name);
        assert_int_equal(config_load_run(path, &config, &faults), 0);
        snprintf(path, sizeof path, GOLDEN "%s.canonical.txt", canonical[i].name);
        char *expected = slurp(path);
        assert_int_equal(config_canonical(&config, bytes), strlen(expected));
        assert_string_equal(bytes, expected);
        free(expected);
        const struct hash digest = config_digest(&config);
        assert_string_equal(hash_to_hex(&digest, hex), canonical[i].digest);
    }
}

static void the_digest_knows_the_run_and_not_the_machine(void **state)
{
    struct run_config config, other;
    struct config_difference difference;
    (void)state;
    assert_int_equal(config_load_run(GOLDEN "good.toml", &config, &faults), 0);
    const struct hash digest = config_digest(&config);

    other = config;
    strcpy(other.broker_mail, "tcp://10.0.0.1:1");
    strcpy(other.data_server, "elsewhere");
    other.map_mib_max = other.checkpoint_keep = 77;
    other.lr_stable_steps = 7; // Of a schedule that is not chosen
    struct hash same = config_digest(&other);
    assert_true(hash_equal(&digest, &same));
    assert_false(config_first_difference(&config, &other, &difference));

    other.lease_ms = 10500;
    other.total_steps = 101;
    same = config_digest(&other);
    assert_false(hash_equal(&digest, &same));
    assert_true(config_first_difference(&config, &other, &difference));
    assert_string_equal(difference.path, "config.total_steps");
    assert_string_equal(difference.a, "100");
    assert_string_equal(difference.b, "101");

    other = config;
    other.model_digest.bytes[0] = 1;
    assert_true(config_first_difference(&config, &other, &difference));
    assert_string_equal(difference.path, "model.digest");
    assert_string_equal(difference.a, "(not set)");
}

static void the_sample_loads_and_holds_every_key(void **state)
{
    char path[] = P_tmpdir "/shoal-sample-XXXXXX", line[300];
    struct run_config config;
    (void)state;
    FILE *out = fdopen(mkstemp(path), "w");
    assert_non_null(out);
    config_print_sample(&config_run_schema, NULL, out);
    fclose(out);
    assert_int_equal(config_load_run(path, &config, &faults), 0);
    assert_int_equal(faults.count, 0);
    char *text = slurp(path);
    for (size_t i = 0; i < config_run_schema.count; i++) {
        const struct config_key *key = &config_run_schema.keys[i];
        if (key->type == CONFIG_IGNORED || key->type == CONFIG_REFUSED) continue;
        snprintf(line, sizeof line, "# %s\n", key->sentence);
        assert_non_null(strstr(text, line));
    }
    free(text);

    out = fopen(path, "w");
    config_print_sample(&config_data_schema, NULL, out);
    fclose(out);
    struct data_config data;
    assert_int_equal(config_load_data(path, &data, &faults), 0);
    unlink(path);
}

// A setting without a meaning is no part of the run: with it the digest is the same.
static void settings_without_meaning_do_not_count(void **state)
{
    static const char *const added[] = { "[model.sync]\nsnapshot_rounds = 99\n",
                                         "[members]\nunhealthy_rounds = 200\n",
                                         "[witness]\nstandalone = false\n" };
    char path[] = P_tmpdir "/shoal-unused-XXXXXX";
    struct run_config config, other;
    (void)state;
    close(mkstemp(path));
    assert_int_equal(config_load_run(GOLDEN "allreduce.toml", &config, &faults), 0);
    assert_int_equal(faults.count, 1);
    assert_string_equal(faults.list[0].text, "config.global_batch_size_start: a batch of 4 in 6 "
                                             "lanes, for 2 trainers or more");
    assert_string_equal(faults.list[0].note, "at first a step has work for at most 4 of them");
    const struct hash digest = config_digest(&config);
    char *text = slurp(GOLDEN "allreduce.toml");
    for (size_t i = 0; i < sizeof added / sizeof *added; i++) {
        FILE *out = fopen(path, "w");
        fprintf(out, "%s\n%s", text, added[i]);
        fclose(out);
        assert_int_equal(config_load_run(path, &other, &faults), 0);
        assert_int_equal(faults.warnings, 1 + (i < 2));
        const struct hash same = config_digest(&other);
        assert_true(hash_equal(&digest, &same));
        assert_int_equal(other.snapshot_rounds, config.snapshot_rounds);
    }
    free(text);
    unlink(path);
}

// Saves that are asked for and never come, or never count. What is written after the last table.
static const struct {
    const char *strategy, *checkpoint, *text, *note; // text NULL: no warning
    int rc;
} saves[] = {
    { "", "steps = 50", NULL, NULL, 0 },
    { "memory_every = 10", "steps = 50", NULL, NULL, 0 },
    { "memory_every = 10\nbuddies = 1", "steps = 50", NULL, NULL, 0 },
    { "memory_every = 50", "steps = 50", NULL, NULL, 0 },
    { "", "steps = 101", "checkpoint.steps: 101 is more than config.total_steps (100)",
      "the run never saves its state in shared_dir before its end", 0 },
    { "memory_every = 51", "steps = 50",
      "strategy.memory_every: 51 is more than checkpoint.steps (50)",
      "a save in shared_dir is always newer than the copies in memory", 0 },
    { "memory_every = 101", "passes = 1",
      "strategy.memory_every: 101 is more than config.total_steps (100)",
      "no copy in memory is ever made", 0 },
    { "buddies = 1", "steps = 50", "strategy.buddies: without strategy.memory_every",
      "no copies are made; set memory_every, or drop buddies", 0 },
    { "memory_every = 10\nbuddies = 2", "steps = 50",
      "strategy.buddies: 2 others, for 2 trainers or more",
      "with so few trainers each one keeps the shares of all others", 0 },
    { "memory_every = 0", "steps = 50", "strategy.memory_every: integer 0 is out of range",
      "range 1..99999999; leave it out for none", FAULT_CONFIG },
    { "", "steps = 50\npasses = 1", "checkpoint.passes: checkpoint.steps is set too",
      "only one of 'steps' or 'passes' should be set", FAULT_CONFIG },
    { "", "passes = 1\nepochs = 1", "checkpoint.epochs: checkpoint.passes is set too",
      "epochs is another word for passes: set one of the three", FAULT_CONFIG },
};

static void saves_in_vain_are_named(void **state)
{
    static const char kind[] = "kind = \"allreduce\"\n";
    char path[] = P_tmpdir "/shoal-saves-XXXXXX";
    struct run_config config;
    (void)state;
    close(mkstemp(path));
    char *text = slurp(GOLDEN "allreduce.toml"), *at = strstr(text, kind);
    assert_non_null(at);
    for (size_t i = 0; i < sizeof saves / sizeof *saves; i++) {
        const struct config_fault *fault = &faults.list[0];
        FILE *out = fopen(path, "w");
        fprintf(out, "%.*skind = \"sharded\"\n%s\n%s\n[checkpoint]\nshared_dir = \"/tmp\"\n%s\n",
                (int)(at - text), text, saves[i].strategy, at + strlen(kind), saves[i].checkpoint);
        fclose(out);
        assert_int_equal(config_load_run(path, &config, &faults), saves[i].rc);
        for (; fault < faults.list + faults.count; fault++) // The batch of this file has idle lanes
            if (!strstr(fault->text, "in 6 lanes")) break;
        assert_int_equal(fault < faults.list + faults.count, saves[i].text != NULL);
        if (!saves[i].text) continue;
        assert_string_equal(fault->text, saves[i].text);
        assert_string_equal(fault->note, saves[i].note);
    }
    free(text);
    unlink(path);
}

static void a_relative_shared_dir_is_refused(void **state)
{
    char path[] = P_tmpdir "/shoal-relative-XXXXXX";
    struct run_config config;
    (void)state;
    close(mkstemp(path));
    char *text = slurp(GOLDEN "allreduce.toml");
    FILE *out = fopen(path, "w");
    fprintf(out, "%s\n[checkpoint]\nshared_dir = \"saves\"\nsteps = 50\n", text);
    fclose(out);
    assert_int_equal(config_load_run(path, &config, &faults), FAULT_CONFIG);
    assert_string_equal(faults.list[faults.count - 1].text,
                        "checkpoint.shared_dir: \"saves\" is relative");
    assert_string_equal(faults.list[faults.count - 1].note,
                        "write the whole path, from / on: every trainer opens the folder there");
    free(text);
    unlink(path);
}

static void the_sample_of_a_strategy_loads(void **state)
{
    static const struct config_choice choices[] = { { "strategy.kind", "allreduce" },
                                                    { "model.LLM.optimizer", "AdamW" },
                                                    { 0 } };
    char path[] = P_tmpdir "/shoal-sample-XXXXXX";
    struct run_config config;
    (void)state;
    FILE *out = fdopen(mkstemp(path), "w");
    assert_non_null(out);
    config_print_sample(&config_run_schema, choices, out);
    fclose(out);
    assert_int_equal(config_load_run(path, &config, &faults), 0);
    assert_int_equal(faults.count, 0);
    assert_int_equal(config.strategy, CONFIG_STRATEGY_ALLREDUCE);
    assert_int_equal(config.optimizer, CONFIG_OPTIMIZER_ADAMW);
    assert_int_equal(config.lanes, 8);
    assert_int_equal(config.round_train_ms, 0); // There are no rounds
    char *text = slurp(path);                   // What it has no use for is not called required
    assert_non_null(strstr(text, "range 0.001..31536000 s; only with strategy.kind = \"distro\"\n"
                                 "# max_round_train_time = 30\n"));
    assert_non_null(strstr(text, "s; required\nwarmup_time = 30\n"));
    assert_non_null(strstr(text, "; required in this table\n# compression_chunk = "));
    assert_non_null(strstr(text, "; default 3; only with strategy.kind = \"distro\"\n"));
    free(text);
    unlink(path);
}

static char *explained(const char *path, int expected_rc)
{
    char *text = NULL;
    size_t count = 0;
    FILE *out = open_memstream(&text, &count);
    assert_int_equal(config_explain(&config_run_schema, path, out), expected_rc);
    fclose(out);
    return text;
}

static void keys_explain_themselves(void **state)
{
    (void)state;
    char *text = explained("config.min_clients", 0);
    assert_string_equal(
        text,
        "config.min_clients (integer)\n"
        "  An epoch ends early when fewer members than this are healthy. If only so many "
        "trainers are left, they alone decide what the model is: among strangers, more than may "
        "lie together.\n"
        "  range 1..16384 members; required\n"
        "  Part of the run: every member must have the same.\n");
    free(text);
    text = explained("model.LLM.optimizer.SGD", 0);
    assert_non_null(strstr(text, "[model.LLM.optimizer.SGD]\n"));
    assert_non_null(strstr(text, "\nmomentum (number)\n"));
    assert_null(strstr(text, "betas"));
    free(text);
    text = explained("min_client", FAULT_NOT_FOUND);
    assert_string_equal(text,
                        "min_client: no key of state.toml; did you mean `config.min_clients`?\n");
    free(text);
    text = explained("checkpoint.shared_dir", 0);
    assert_non_null(strstr(text, "and is the same on each machine."));
    assert_non_null(strstr(text, "  The coordinator's value holds for all trainers.\n"));
    free(text);
    text = explained("checkpoint.steps", 0);
    assert_non_null(strstr(text, "  The coordinator's value holds for all trainers.\n"));
    free(text);
    text = explained("checkpoint.keep", 0);
    assert_non_null(strstr(text, "the newest saves in shared_dir"));
    free(text);
    text = explained("broker.mail", 0);
    assert_non_null(strstr(text, "  Of this machine only: other machines may differ.\n"));
    free(text);
    text = explained("strategy.connections", 0);
    assert_non_null(strstr(
        text, "  Used only with strategy.kind = \"allreduce\" or \"sharded\" or \"server\".\n"));
    free(text);
}

// The edges of every number, from the table itself.
static void ranges_hold_at_their_edges(void **state)
{
    struct run_config config;
    char text[400], note[400];
    unsigned tried = 0;
    (void)state;
    for (size_t i = 0; i < config_run_schema.count; i++) {
        const struct config_key *key = &config_run_schema.keys[i];
        if (key->type != CONFIG_COUNT && key->type != CONFIG_SECONDS && key->type != CONFIG_REAL)
            continue;
        const bool whole = key->type == CONFIG_COUNT;
        const double step = whole || key->max > 1e9 ? 1 : key->max / 1e6;
        const double values[] = { key->min, key->max, key->min - step, key->max + 2 * step };
        for (unsigned j = 0; j < 4; j++) {
            const struct toml_node node = { .type = whole ? TOML_INTEGER : TOML_FLOAT,
                                            .integer = (int64_t)values[j],
                                            .real = values[j] };
            struct config_complaint complaint = { config_text_in(text, sizeof text),
                                                  config_text_in(note, sizeof note), NULL };
            assert_int_equal(config_value_read(key, &node, &config, &complaint), j < 2);
            tried++;
        }
    }
    assert_true(tried > 200);
}

static void nearest_names_are_near(void **state)
{
    struct nearest near = { .wanted = "min_clinets" };
    (void)state;
    assert_true(nearest_offer(&near, "min_clients", 11)); // Two neighbours swapped
    assert_int_equal(near.distance, 1);
    assert_false(nearest_offer(&near, "init_min_clients", 16));
    assert_string_equal(near.best, "min_clients");
    near = (struct nearest){ .wanted = "zebra" };
    assert_false(nearest_offer(&near, "broker", 6));
    assert_int_equal(near.best[0], 0);
}

static void write_bytes(const char *path, const char *bytes, size_t count)
{
    unlink(path); // Rewriting in place would wait for the disk
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, count, out), count);
    fclose(out);
}

static void files_are_bounded_before_they_are_believed(void **state)
{
    char path[] = P_tmpdir "/shoal-large-XXXXXX";
    struct run_config config;
    (void)state;
    close(mkstemp(path));
    char *bytes = malloc(TOML_BYTES_MAX + 1);
    memset(bytes, '\n', TOML_BYTES_MAX + 1);
    write_bytes(path, bytes, TOML_BYTES_MAX + 1);
    assert_int_equal(config_load_run(path, &config, &faults), FAULT_LIMIT);
    assert_string_equal(faults.list[0].text, "larger than 1048576 bytes");
    write_bytes(path, bytes, TOML_BYTES_MAX); // As large as a file may be: only empty
    assert_int_equal(config_load_run(path, &config, &faults), FAULT_CONFIG);
    assert_int_equal(faults.errors, 3);

    size_t count = (size_t)sprintf(bytes, "x = [\n");
    for (unsigned i = 0; i < TOML_NODES_MAX; i++)
        count += (size_t)sprintf(bytes + count, "%u,\n", i);
    count += (size_t)sprintf(bytes + count, "]\n");
    write_bytes(path, bytes, count);
    assert_int_equal(config_load_run(path, &config, &faults), FAULT_CONFIG);
    assert_string_equal(faults.list[0].text, "more than 4096 values");
    assert_int_equal(faults.list[0].line, 4096);
    free(bytes);
    unlink(path);

    assert_int_equal(config_load_run(path, &config, &faults), FAULT_NOT_FOUND);
    assert_int_equal(faults.errors, 1);
    assert_int_equal(config_load_run("config", &config, &faults), FAULT_FORMAT);
}

#define WEB                                                                                        \
    "{ Http = { token_size_in_bytes = \"TwoBytes\", shuffle = \"DontShuffle\", "                   \
    "location = { SingleUrl = \"http://a/t\" } } }\n"
#define LLM                                                                                        \
    "[model.LLM]\nmax_seq_len = 512\ncold_start_warmup_steps = 0\narchitecture = \"HfLlama\"\n"    \
    "data_type = \"Pretraining\"\ndata_location = "
#define PIN "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// One change to the good file, and what becomes of it.
static const struct {
    const char *from, *to;
    int rc;
    unsigned warnings;
} changes[] = {
    { "Cosine]", "Constant]", FAULT_CONFIG, 0 }, // It has no total_steps and no final_lr
    { "total_steps = 100\nfinal_lr = 4.0e-5\n", "total_steps = 20\nfinal_lr = 4e-4\n", 0, 0 },
    { "{ Server = \"data-provider\" }", "{ Local = \"data\" }", 0, 1 }, // Nothing is pinned
    { "{ Server = \"data-provider\" }\n", WEB, 0, 1 },
    { LLM "{ Server = \"data-provider\" }\n", "[data]\nmirror = \"http://b/t\"\n" LLM WEB, 0, 1 },
    { LLM "{ Server = \"data-provider\" }\n", "[data]\nmanifest_digest = \"" PIN "\"\n" LLM WEB, 0,
      0 },
    { "[model.LLM]", "[data]\ndataset_digest = \"" PIN "\"\n[model.LLM]", 0, 0 },
    { "[model.LLM]", "[data]\nmanifest_digest = \"" PIN "\"\n[model.LLM]", FAULT_CONFIG, 0 },
    { LLM "{ Server = \"data-provider\" }\n", "[data]\ndataset_digest = \"" PIN "\"\n" LLM WEB,
      FAULT_CONFIG, 1 },
    { "[model.LLM]", "[data]\nmirror = \"http://b/t\"\n[model.LLM]", FAULT_CONFIG, 0 },
    { "global_batch_size_start = 4", "global_batch_size_start = 1", 0, 1 }, // One trainer idles
    { "witness_nodes = 1", "witness_nodes = 2", 0, 0 },
    { "witness_nodes = 1", "witness_nodes = 3", FAULT_CONFIG, 0 },
    { "[model.LLM]", "[witness]\nstandalone = true\n[model.LLM]", 0, 0 },
    { "cold_start_warmup_steps = 0", "cold_start_warmup_steps = 20", 0, 0 },
    { "cold_start_warmup_steps = 0", "cold_start_warmup_steps = 21", FAULT_CONFIG, 0 },
    { "[config]", "epoch_state = { rounds = [1, { x = 2 }] }\n[config]", 0, 1 },
    { "[config]", "\"run_id\\u0000x\" = \"good\"\n[config]", FAULT_CONFIG, 0 },
    { "\"HfLlama\"", "\"HfLlama\\u0000\"", FAULT_CONFIG, 0 },
    { "compression_topk = 8", "compression_topk = 4096", 0, 0 },
    { "compression_topk = 8", "compression_topk = 4097", FAULT_CONFIG, 0 },
};

static void one_change_at_a_time(void **state)
{
    char path[] = P_tmpdir "/shoal-change-XXXXXX", text[4096];
    struct run_config config;
    (void)state;
    close(mkstemp(path));
    char *good = slurp(GOLDEN "good.toml");
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        const char *at = strstr(good, changes[i].from);
        assert_non_null(at);
        const int before = (int)(at - good);
        const int count = snprintf(text, sizeof text, "%.*s%s%s", before, good, changes[i].to,
                                   at + strlen(changes[i].from));
        write_bytes(path, text, (size_t)count);
        assert_int_equal(config_load_run(path, &config, &faults), changes[i].rc);
        assert_int_equal(faults.warnings, changes[i].warnings);
    }
    free(good);
    unlink(path);
}

// The worst that fits the bounds of a line: thousands of tables, each in the one before. They are
// freed by recursion, so what matters is that this returns at all.
static void deep_trees_are_refused_and_freed(void **state)
{
    static char text[1 << 17], key[1024];
    struct toml_document document;
    struct toml_error error;
    (void)state;
    for (size_t i = 0; i < 960; i += 2) memcpy(key + i, i ? ".a" : " a", 3);
    size_t count = (size_t)sprintf(text, "[%s]\n%s = [\n", key, key);
    for (unsigned i = 0; i < 7; i++) count += (size_t)sprintf(text + count, "{%s = [\n", key);
    for (unsigned i = 0; i < 7; i++) count += (size_t)sprintf(text + count, "]}\n");
    count += (size_t)sprintf(text + count, "]\n");
    assert_int_equal(toml_document_parse(text, count, &error, &document), FAULT_LIMIT);
    assert_string_equal(error.text, "deeper than 16 tables and arrays");
}

// A thousand small accidents to a good file: each is loaded or refused in words, none is survived
// by luck.
static void damaged_files_are_loaded_or_refused(void **state)
{
    static const char marks[] = "=[]{}\"'#.,\n\0x\xff-0e\\";
    char path[] = P_tmpdir "/shoal-damaged-XXXXXX";
    struct run_config config;
    unsigned random = 12345, loaded = 0, refused = 0;
    (void)state;
    close(mkstemp(path));
    char *good = slurp(GOLDEN "good.toml");
    const size_t count = strlen(good);
    char *bytes = malloc(count);
    for (unsigned i = 0; i < 1000; i++) {
        memcpy(bytes, good, count);
        for (unsigned j = 0; j <= i % 3; j++) {
            random = random * 1664525 + 1013904223;
            bytes[random / 256 % count] = marks[random / 64 % (sizeof marks - 1)];
        }
        write_bytes(path, bytes, count);
        const int rc = config_load_run(path, &config, &faults);
        assert_true(rc == 0 || (rc == FAULT_CONFIG && faults.errors > 0));
        char *text = printed_faults();
        for (const char *at = text; *at; at++)
            assert_true(*at == '\n' || (unsigned char)*at >= 0x20);
        free(text);
        rc == 0 ? loaded++ : refused++;
    }
    assert_true(loaded > 20 && refused > 500);
    free(bytes);
    free(good);
    unlink(path);
}

TESTS(TEST(every_bad_file_is_refused_as_written), TEST(psyches_files_load_or_are_refused_by_name),
      TEST(a_missing_run_id_is_all_that_keeps_solanas_files), TEST(a_file_becomes_fields),
      TEST(every_word_and_table_becomes_fields), TEST(the_demo_loads_and_agrees_with_itself),
      TEST(the_demos_agree), TEST(canonical_bytes_are_golden), TEST(an_asynchronous_run_loads),
      TEST(the_digest_knows_the_run_and_not_the_machine),
      TEST(settings_without_meaning_do_not_count), TEST(the_sample_loads_and_holds_every_key),
      TEST(the_sample_of_a_strategy_loads), TEST(saves_in_vain_are_named),
      TEST(a_relative_shared_dir_is_refused), TEST(keys_explain_themselves),
      TEST(ranges_hold_at_their_edges), TEST(nearest_names_are_near),
      TEST(files_are_bounded_before_they_are_believed), TEST(one_change_at_a_time),
      TEST(deep_trees_are_refused_and_freed), TEST(damaged_files_are_loaded_or_refused))
