// One trainer alone, as a person runs it: to the same bits with and without an interruption, and
// what it says when the learning rate is absurd or memory is short.

#include "common/base/process.h"
#include "tests/unit/folder_fixture.h"
#include "tests/test.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

enum { OUTPUT_MAX = 64 << 10, TEXT_BYTES = 400 << 10 };

static char program[PATH_MAX];  // <build>/bin/shoal; this test is <build>/live/train_test
static char output[OUTPUT_MAX]; // Of the last command, both streams

static void find_program(void)
{
    char self[PATH_MAX - 16];
    ssize_t count = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(count > 0);
    self[count] = 0;
    for (int i = 0; i < 2; i++) *strrchr(self, '/') = 0;
    snprintf(program, sizeof program, "%s/bin/shoal", self);
}

// A command line of words without blanks; a word's "@" stands for the test's folder.
static pid_t start(const char *line)
{
    struct arguments args = { 0 };
    struct why why = { 0 };
    char words[4096];
    const char *log = path_of("output");
    pid_t pid = 0;
    snprintf(words, sizeof words, "%s", line);
    arguments_add(&args, "%s", program);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
        const int before = (int)strcspn(word, "@");
        arguments_add(&args, "%.*s%s%s", before, word, word[before] ? folder : "",
                      word + before + (word[before] == '@'));
    }
    unlink(log);
    assert_int_equal(
        process_start(&(struct process_options){ .arguments = &args, .log = log }, &why, &pid), 0);
    return pid;
}

static size_t slurp(const char *name, char *bytes, size_t max)
{
    FILE *file = fopen(path_of(name), "rb");
    size_t count = file ? fread(bytes, 1, max - 1, file) : 0;
    if (file) fclose(file);
    bytes[count] = 0;
    return count;
}

static int finish(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    slurp("output", output, sizeof output);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void expect(const char *line, int code, const char *says)
{
    const int got = finish(start(line));
    if (got != code || !strstr(output, says))
        fail_msg("shoal %s: ends with %d, not %d and \"%s\":\n%s", line, got, code, says, output);
}

// What stands in the last output after `before`, up to the end of the word.
static const char *word_after(const char *before)
{
    static char word[128];
    const char *at = strstr(output, before);
    if (!at) fail_msg("no \"%s\" in:\n%s", before, output);
    snprintf(word, sizeof word, "%.*s", (int)strcspn(at + strlen(before), " ,\n"),
             at + strlen(before));
    return word;
}

static int set_up(void **state)
{
    if (folder_set_up(state) < 0) return -1;
    find_program();
    char *text = malloc(TEXT_BYTES);
    uint64_t seed = 1;
    for (int i = 0; i < TEXT_BYTES; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        text[i] = i % 7 == 6 ? ' ' : (char)('a' + (i % 7 * 3 + (int)(seed >> 33) % 3) % 26);
    }
    put("text", text, TEXT_BYTES);
    free(text);
    expect("prepare-text --out @/data @/text", 0, "held-out");
    expect("init-model --dim 32 --layers 2 --heads 4 --kv-heads 2 --ffn 64 --seq-len 128 "
           "--out @/model",
           0, "parameters");
    return 0;
}

#define TRAIN "train config/demo/state.toml --model @/model --data @/data/train --steps 9 "

// The digest of the parameters after nine steps without an interruption.
static void resumed_bits_are_those_of_one_piece(void **state)
{
    static const char *const optimizers[] = { "--optimizer adamw --set weight_decay=0.1",
                                              "--optimizer distro" };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char line[600], whole[80];
        snprintf(line, sizeof line, TRAIN "--checkpoint-dir @/w%zu --threads 1 %s", i,
                 optimizers[i]);
        expect(line, 0, "step 9 of 9");
        snprintf(whole, sizeof whole, "%s", word_after("digest "));
        snprintf(line, sizeof line,
                 TRAIN "--checkpoint-dir @/p%zu --checkpoint-every 4 "
                       "--keep-steps 9 %s",
                 i, optimizers[i]);
        expect(line, 0, whole);
        snprintf(line, sizeof line, "rm -r '%s'/p%zu/step-00000008 '%s'/p%zu/step-00000009", folder,
                 i, folder, i);
        assert_int_equal(system(line), 0);
        snprintf(line, sizeof line, TRAIN "--checkpoint-dir @/p%zu %s", i, optimizers[i]);
        expect(line, EX_NOPERM, "holds step 4 of an earlier training");
        snprintf(line, sizeof line, TRAIN "--checkpoint-dir @/p%zu --resume --threads 3 %s", i,
                 optimizers[i]);
        expect(line, 0, whole);
        assert_null(strstr(output, "another recipe"));
        snprintf(line, sizeof line,
                 TRAIN "--checkpoint-dir @/p%zu --resume --learning-rate 1e-4 "
                       "%s",
                 i, optimizers[i]);
        expect(line, 0, "base_lr = 0.0001");
        snprintf(line, sizeof line, TRAIN "--checkpoint-dir @/p%zu --resume %s", i,
                 optimizers[1 - i]);
        expect(line, EX_NOINPUT, "was not saved"); // Another optimizer's state
    }
}

static void ctrl_c_saves(void **state)
{
    char whole[80], log[256], events[4096];
    (void)state;
    expect("train config/demo/state.toml --model @/model --data @/data/train --steps 20 "
           "--no-checkpoint --threads 1",
           0, "step 20 of 20");
    snprintf(whole, sizeof whole, "%s", word_after("digest "));
    // The held-out part makes each step slow enough to be interrupted
    const char *line = "train config/demo/state.toml --model @/model --data @/data/train "
                       "--steps 20 --heldout @/data/heldout --heldout-every 1 --threads 1 "
                       "--checkpoint-dir @/c --log @/c.jsonl";
    struct pollfd watch = { .fd = inotify_init1(IN_CLOEXEC), .events = POLLIN };
    assert_true(inotify_add_watch(watch.fd, folder, IN_MODIFY) >= 0);
    const pid_t pid = start(line);
    while (slurp("c.jsonl", log, sizeof log) == 0) {
        assert_int_equal(poll(&watch, 1, 30000), 1);
        assert_true(read(watch.fd, events, sizeof events) > 0);
    }
    close(watch.fd);
    // The end of a session, told twice, and Ctrl-C
    assert_int_equal(kill(pid, SIGHUP), 0);
    assert_int_equal(kill(pid, SIGHUP), 0);
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(finish(pid), EX_TEMPFAIL);
    assert_non_null(strstr(output, "--resume goes on"));
    assert_non_null(strstr(output, "checkpoint "));
    snprintf(log, sizeof log, "%s --resume", line);
    expect(log, 0, whole);
}

#define SAVING                                                                                     \
    "train @/saving.toml --model @/model --data @/data/train --steps 60 --optimizer adamw "        \
    "--checkpoint-dir @/b "

// Has a state.toml of the demo save to the folder `shared`.
static void make_saving(const char *how_often)
{
    char line[3 * PATH_MAX];
    snprintf(
        line, sizeof line,
        "mkdir -p '%s/shared' && sed 's|^\\[checkpoint\\]|&\\nshared_dir = \"%s/shared\"\\n%s|' "
        "config/demo/state.toml > '%s/saving.toml'",
        folder, folder, how_often, folder);
    assert_int_equal(system(line), 0);
}

// Saves are written beside the training. It is killed when the first is there, and goes on from the newest,
// to the same bits; what the kill left of a save that was being written is gone.
static void a_killed_training_goes_on_from_its_saves(void **state)
{
    char whole[80], line[PATH_MAX], events[4096];
    (void)state;
    make_saving("steps = 4");
    expect("train config/demo/state.toml --model @/model --data @/data/train --steps 60 "
           "--optimizer adamw --no-checkpoint --threads 1",
           0, "step 60 of 60");
    snprintf(whole, sizeof whole, "%s", word_after("digest "));
    struct pollfd watch = { .fd = inotify_init1(IN_CLOEXEC), .events = POLLIN };
    assert_true(inotify_add_watch(watch.fd, folder, IN_MODIFY) >= 0);
    const pid_t pid =
        start(SAVING "--heldout @/data/heldout --heldout-every 1 --threads 1 --log @/b.jsonl");
    while (slurp("output", output, sizeof output), !strstr(output, "saved ")) {
        assert_int_equal(poll(&watch, 1, 30000), 1);
        assert_true(read(watch.fd, events, sizeof events) > 0);
    }
    close(watch.fd);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(finish(pid), 128 + SIGKILL);
    expect(SAVING, EX_NOPERM, "of an earlier training; --resume goes on");
    expect(SAVING "--resume --threads 2", 0, whole);
    assert_non_null(strstr(output, "resumes from"));
    snprintf(line, sizeof line, "test -z \"$(ls -d '%s'/shared/*/*.save-* 2>/dev/null)\"", folder);
    assert_int_equal(system(line), 0);
    snprintf(line, sizeof line, "test $(ls -d '%s'/shared/*/step-* | wc -l) = 3", folder);
    assert_int_equal(system(line), 0);
    // The last save and the checkpoint of the end are the same model; a damaged save is none
    snprintf(line, sizeof line, "cp -r '%s'/shared/*/ '%s/root'", folder, folder);
    assert_int_equal(system(line), 0);
    expect("export --model @/b/step-00000060 --out @/from-checkpoint", 0, "BF16");
    expect("checkpoint export --save @/root/step-00000060 --model @/model --out @/from-save", 0,
           "BF16");
    snprintf(line, sizeof line, "cmp '%s'/from-*/model.safetensors", folder);
    assert_int_equal(system(line), 0);
    snprintf(line, sizeof line,
             "printf X | dd of=\"$(ls '%s'/root/step-00000060/parameters.*)\" bs=1 seek=70001 "
             "conv=notrunc 2>/dev/null",
             folder);
    assert_int_equal(system(line), 0);
    expect("checkpoint export --save @/root/step-00000060 --model @/model --out @/damaged",
           EX_DATAERR, "parameters");
    assert_int_equal(access(path_of("damaged"), F_OK), -1);
    // Newer than all saves is the checkpoint of the end
    expect(SAVING "--resume", 0, whole);
    assert_null(strstr(output, "resumes from"));
    // Without its saves it does not go on from what may be far behind them
    snprintf(line, sizeof line, "mv '%s/shared' '%s/gone' && mkdir '%s/shared'", folder, folder,
             folder);
    assert_int_equal(system(line), 0);
    expect(SAVING "--resume", EX_IOERR, "to go on from its checkpoints with --resume");
    // On another machine that sees the saves, and nothing else of the training
    snprintf(line, sizeof line, "rm -r '%s/shared' '%s/b' && mv '%s/gone' '%s/shared'", folder,
             folder, folder, folder);
    assert_int_equal(system(line), 0);
    expect(SAVING "--resume", 0, whole);
    assert_non_null(strstr(output, "resumes from"));
}

// The part held out has a pass of 128 samples, and 60 steps take 240.
#define SHORT_PASS "--data @/data/heldout --batch-size 4"

// A save a pass, and a folder that cannot be used is refused before anything begins.
static void saves_by_passes_and_where_none_can_be(void **state)
{
    char line[PATH_MAX];
    (void)state;
    make_saving("passes = 1");
    expect(SAVING "--resume --no-checkpoint", EX_USAGE, "--no-checkpoint");
    snprintf(line, sizeof line, "rm -rf '%s'/shared/* '%s/b'", folder, folder);
    assert_int_equal(system(line), 0);
    expect(SAVING SHORT_PASS, 0, "saved ");
    assert_null(strstr(strstr(output, "saved ") + 1, "saved "));
    make_saving("epochs = 1"); // DLRover's word for it
    snprintf(line, sizeof line, "rm -rf '%s'/shared/* '%s/b'", folder, folder);
    assert_int_equal(system(line), 0);
    expect(SAVING SHORT_PASS, 0, "saved ");
    assert_null(strstr(strstr(output, "saved ") + 1, "saved "));
    snprintf(line, sizeof line, "rm -rf '%s/shared' '%s/b'", folder, folder);
    assert_int_equal(system(line), 0);
    expect(SAVING, EX_NOINPUT, "this folder cannot be used for saves");
    snprintf(line, sizeof line, "test -z \"$(ls -A '%s/b')\"", folder);
    assert_int_equal(system(line), 0);
}

// Absurd rates end in numbers that are none; what was learned before is kept.
static void a_nan_stops_the_batch_and_keeps_the_state(void **state)
{
    char line[600], kept[32], digest[80];
    (void)state;
#define ABSURD                                                                                     \
    "train config/demo/state.toml --model @/model --data @/data/train "                            \
    "--set warmup_steps=0 --learning-rate 10 --batch-size 8 "
    expect(ABSURD "--checkpoint-dir @/n", EX_DATAERR, "learning rate");
    const long failed = strtol(word_after("is not: step "), NULL, 10);
    assert_true(failed >= 2 && failed <= 600);
    snprintf(line, sizeof line, "samples %ld..%ld", (failed - 1) * 8, failed * 8 - 1);
    assert_non_null(strstr(output, line));
    snprintf(kept, sizeof kept, "step-%08ld", failed - 1);
    assert_non_null(strstr(output, kept));
    snprintf(line, sizeof line, ABSURD "--no-checkpoint --steps %ld", failed - 1);
    expect(line, 0, "digest");
    snprintf(digest, sizeof digest, "%s", word_after("digest "));
    snprintf(line, sizeof line, ABSURD "--resume --checkpoint-dir @/n --steps %ld", failed - 1);
    expect(line, 0, digest);
}

static void too_much_memory_is_refused_with_the_knob(void **state)
{
    static char line[PATH_MAX + 1024];
    (void)state;
    expect(TRAIN "--batch-size 64 --micro-batch-size 64 --memory-mib 20 --no-checkpoint", EX_OSERR,
           "MiB are needed, there are 20.0");
    snprintf(line, sizeof line,
             TRAIN "--batch-size 64 --memory-mib 20 --no-checkpoint "
                   "--micro-batch-size %s",
             word_after("--micro-batch-size "));
    expect(line, 0, "step 9 of 9");
    expect(TRAIN "--memory-mib 1 --no-checkpoint", EX_OSERR, "no --micro-batch-size");
    // And what there is is asked of the system
    snprintf(line, sizeof line,
             "ulimit -v 300000; '%s' train config/demo/state.toml --model "
             "'%s/model' --data '%s/data/train' --no-checkpoint --batch-size 4096 "
             "--micro-batch-size 4096 --threads 1 > '%s/output' 2>&1",
             program, folder, folder, folder);
    assert_int_equal(WEXITSTATUS(system(line)), EX_OSERR);
    slurp("output", output, sizeof output);
    assert_non_null(strstr(output, "takes less (now 4096)"));
}

// Each of Psyche's kinds, the cold start and the growing batch, as the log shows them.
static void schedules_are_the_runs(void **state)
{
    static const struct {
        const char *sets;
        int column;
        const char *values;
    } cases[] = {
        { "--set lr_schedule=Constant --set warmup_steps=4 --set base_lr=0.008", 5,
          "0.002 0.004 0.006 0.008 0.008 0.008 0.008 0.008 " },
        { "--set warmup_steps=0 --set Linear.total_steps=4 --set base_lr=0.008", 5,
          "0.008 0.006 0.004 0.002 0 0 0 0 " },
        { "--set lr_schedule=Cosine --set warmup_steps=0 --set Cosine.total_steps=4 "
          "--set base_lr=0.008",
          5, "0.008 0.00682842728 0.004 0.00117157283 0 0 0 0 " },
        { "--set lr_schedule=WarmupStableDecay --set warmup_steps=2 --set base_lr=0.008 "
          "--set stable_steps=1 --set cosine_decay_steps=2 --set cosine_decay_final_lr=0.004 "
          "--set linear_decay_steps=2 --set linear_decay_final_lr=0",
          5, "0.004 0.008 0.008 0.008 0.006 0.004 0.002 0 " },
        { "--set lr_schedule=Constant --set warmup_steps=0 --set base_lr=0.008 "
          "--set cold_start_warmup_steps=4",
          5, "0.002 0.004 0.006 0.008 0.008 0.008 0.008 0.008 " },
        // 128 tokens a sequence: 512 after the first step, 1280 after the second
        { "--set global_batch_size_start=4 --set global_batch_size_end=8 "
          "--set global_batch_size_warmup_tokens=2048",
          3, "4 5 6 8 8 8 8 8 " },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[900], rows[8192], seen[300] = "", name[32];
        snprintf(name, sizeof name, "s%zu.csv", i);
        snprintf(line, sizeof line, TRAIN "--no-checkpoint --log @/%s --steps 8 %s", name,
                 cases[i].sets);
        expect(line, 0, "step 8 of 8");
        slurp(name, rows, sizeof rows);
        for (const char *row = strchr(rows, '\n') + 1; *row; row = strchr(row, '\n') + 1) {
            const char *at = row;
            for (int column = 1; column < cases[i].column; column++) at = strchr(at, ',') + 1;
            snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%g ", strtod(at, NULL));
        }
        char expected[300] = "";
        for (const char *at = cases[i].values; *at; at = strchr(at, ' ') + 1)
            snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%g ",
                     strtod(at, NULL));
        assert_string_equal(seen, expected);
    }
}

// A seed of parameters is init-model's, and each order of the samples is another training.
static void seeds_are_what_they_say(void **state)
{
    char made[80], digest[3][80];
    (void)state;
    expect("init-model --config @/model/config.json --seed 42 --out @/seeded", 0, "seed 42");
    expect("train config/demo/state.toml --model @/seeded --data @/data/train --steps 3 "
           "--no-checkpoint",
           0, "digest");
    snprintf(made, sizeof made, "%s", word_after("digest "));
    expect("train config/demo/state.toml --model @/model --init-seed 42 --data @/data/train "
           "--steps 3 --no-checkpoint",
           0, made);
    for (int i = 0; i < 3; i++) {
        char line[600];
        snprintf(line, sizeof line, TRAIN "--no-checkpoint --shuffle-seed %d", i / 2);
        expect(line, 0, "digest");
        snprintf(digest[i], sizeof digest[i], "%s", word_after("digest "));
    }
    assert_string_equal(digest[0], digest[1]);
    assert_string_not_equal(digest[0], digest[2]);
    // Files named by --data are shuffled, unless a flag says otherwise
    expect(TRAIN "--no-checkpoint", 0, digest[0]);
    assert_non_null(strstr(output, "order of the samples: shuffled, seed 0; --no-shuffle"));
    expect(TRAIN "--no-checkpoint --no-shuffle", 0, "order of the samples: that of the files\n");
    assert_null(strstr(output, digest[0]));
    assert_null(strstr(output, digest[2]));
}

// Without --data the files say the order: a data.toml its seed, a folder of state.toml none.
static void the_order_is_that_of_the_files_named(void **state)
{
    char command[1024];
    (void)state;
    snprintf(command, sizeof command,
             "cp config/demo/*.toml '%s' && sed 's#^Server = .*#Local = \"data/train\"#' "
             "config/demo/state.toml > '%s/local.toml'",
             folder, folder);
    assert_int_equal(system(command), 0);
    expect("train @/state.toml --model @/model --data-config @/data.toml --steps 1 --no-checkpoint",
           0, "order of the samples: shuffled, as ");
    expect("train @/state.toml --model @/model --data-config @/data.toml --steps 1 "
           "--no-checkpoint --no-shuffle",
           0, "order of the samples: that of the files\n");
    expect("train @/local.toml --model @/model --steps 1 --no-checkpoint", 0,
           "order of the samples: that of the files, as in a run by ");
}

// What state.toml pins and names must fit; what a flag names is meant.
static void pinned_digests_hold(void **state)
{
    static const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000001";
    char command[1024];
    (void)state;
    snprintf(command, sizeof command,
             "cp config/demo/*.toml '%s' && sed -i 's/^# digest = .*/digest = \"%s\"/' "
             "'%s/state.toml'",
             folder, zeros, folder);
    assert_int_equal(system(command), 0);
    expect("train @/state.toml --data @/data/train --no-checkpoint --steps 2", EX_DATAERR,
           "model.digest of state.toml pins 0000000000000000");
    expect("train @/state.toml --model @/model --data @/data/train --no-checkpoint --steps 2", 0,
           "step 2 of 2");
    snprintf(command, sizeof command,
             "sed -i -e 's/^digest = .*//' -e 's/^# dataset_digest = .*/dataset_digest = "
             "\"%s\"/' '%s/state.toml'",
             zeros, folder);
    assert_int_equal(system(command), 0);
    expect("train @/state.toml --data-config @/data.toml --no-checkpoint --steps 2", EX_DATAERR,
           "data.dataset_digest of state.toml pins");
    expect("train @/state.toml --data @/data/train --no-checkpoint --steps 2", 0, "step 2 of 2");
}

// A flag that chooses AdamW adds what the file does not say of it, and nothing else.
static void settings_of_the_file_stay(void **state)
{
    static const struct {
        const char *table, *kept;
    } cases[] = {
        { "AdamW]\\nbetas = [0, 0]\\neps = 1e-6\\nweight_decay = 0.1",
          "AdamW.betas = [0, 0]\nmodel.LLM.optimizer.AdamW.eps = 1e-06\n" },
        { "Distro]\\ncompression_decay = 0.95\\ncompression_chunk = 32\\ncompression_topk = 64\\n"
          "quantize_1bit = true\\nweight_decay = 0.1",
          "AdamW.betas = [0.9, 0.95]\nmodel.LLM.optimizer.AdamW.eps = 1e-08\n" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char command[1024], recipe[8192];
        snprintf(command, sizeof command,
                 "sed '/^.model.LLM.optimizer.Distro/,$d' "
                 "config/demo/state.toml > '%s/own.toml' && printf '[model.LLM.optimizer.%s\n' "
                 ">> '%s/own.toml' && rm -rf '%s/new'",
                 folder, cases[i].table, folder, folder);
        assert_int_equal(system(command), 0);
        expect("train @/own.toml --model @/model --data @/data/train --optimizer adamw --steps 1 "
               "--set AdamW.weight_decay=0.1 --checkpoint-dir @/new/o",
               0, "step 1 of 1");
        slurp("new/o/step-00000001/recipe.txt", recipe, sizeof recipe);
        if (!strstr(recipe, cases[i].kept)) fail_msg("%s", recipe);
    }
}

// Token files that come from elsewhere, without a manifest.
static void the_width_of_a_token_is_not_guessed(void **state)
{
    char command[1024], digest[80];
    (void)state;
    expect(TRAIN "--no-checkpoint", 0, "digest");
    snprintf(digest, sizeof digest, "%s", word_after("digest "));
    snprintf(command, sizeof command, "mkdir '%s/bare' && cp '%s/data/train/train.bin' '%s/bare'",
             folder, folder, folder);
    assert_int_equal(system(command), 0);
#define BARE "train config/demo/state.toml --model @/model --data @/bare --steps 9 --no-checkpoint "
    expect(BARE, EX_USAGE, "say --token-bytes 2 or --token-bytes 4");
    expect(BARE "--token-bytes 2", 0, digest);
    expect("eval --model @/model --data @/bare", EX_USAGE, "say --token-bytes 2");
    expect("eval --model @/model --data @/bare --token-bytes 2", 0, "nats per token");
    expect("manifest @/bare", EX_USAGE, "say --token-bytes 2");
    expect("manifest @/bare --token-bytes 2", 0, "bytes, 2 a token");
    expect("manifest @/bare", 0, "bytes, 2 a token");
    expect(BARE, 0, digest);
}

static void wrong_lines_are_refused_by_name(void **state)
{
    (void)state;
    expect("train config/demo/state.toml", EX_NOINPUT, "make one with shoal init-model");
    expect("train config/demo/state.toml --model @/model", EX_USAGE, "--data-config");
    expect(TRAIN "--data-config config/demo/data.toml", EX_USAGE, "come from one");
    expect(TRAIN "--optimizer lion", EX_USAGE, "adamw, adam, sgd or distro");
    expect(TRAIN "--set base_rl=1", EX_USAGE, "did you mean base_lr");
    expect(TRAIN "--set lr_schedule=WarmupStableDecay", EX_CONFIG, "stable_steps has no value");
    expect(TRAIN "--set global_batch_size_start=60000", EX_CONFIG, "a batch grows");
    expect(TRAIN "--set Linear.total_steps=4 --set warmup_steps=6", EX_CONFIG,
           "warmup_steps: 6 must be at most model.LLM.lr_schedule.Linear.total_steps (4)");
    expect(TRAIN "--set compression_topk=9000", EX_CONFIG, "than a square of compression_chunk");
    expect(TRAIN "--set max_seq_len=129", EX_DATAERR, "allows 1..128");
    expect(TRAIN "--log @/rows.txt --no-checkpoint", EX_USAGE, ".csv or .jsonl");
    expect(TRAIN "--resume --checkpoint-dir @/nowhere", EX_NOINPUT, "--resume from");
    expect(TRAIN "--token-bytes 3", EX_DATAERR, "2 or 4");
    expect(TRAIN "--no-checkpoint --token-bytes 4", EX_DATAERR, "configured token size is 4");
    expect(TRAIN "--no-shuffle --shuffle-seed 1", EX_USAGE, "one of them");
}

TESTS_WITH(set_up, folder_tear_down, TEST(resumed_bits_are_those_of_one_piece), TEST(ctrl_c_saves),
           TEST(a_killed_training_goes_on_from_its_saves),
           TEST(saves_by_passes_and_where_none_can_be),
           TEST(a_nan_stops_the_batch_and_keeps_the_state),
           TEST(too_much_memory_is_refused_with_the_knob), TEST(schedules_are_the_runs),
           TEST(seeds_are_what_they_say), TEST(the_order_is_that_of_the_files_named),
           TEST(pinned_digests_hold), TEST(settings_of_the_file_stay),
           TEST(the_width_of_a_token_is_not_guessed), TEST(wrong_lines_are_refused_by_name))
