// run_log_test -- the files that a coordinator writes of its run: TensorBoard's byte by byte, as
// TensorBoard's own writer makes them, and the CSV across restarts.

#include "actors/coordinator/log_shell.h"
#include "tests/unit/folder_fixture.h"
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <signal.h>
#include <unistd.h>

static char content[64 << 10];

static size_t slurp(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t count = fread(content, 1, sizeof content - 1, file);
    fclose(file);
    content[count] = 0;
    return count;
}

// The only event file of the folder, or the last by name.
static const char *event_path(void)
{
    static char path[512];
    glob_t found;
    assert_int_equal(glob(path_of("events.out.tfevents.*"), 0, NULL, &found), 0);
    snprintf(path, sizeof path, "%s", found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    return path;
}

// Made by tensorboard 2.20's RecordWriter, event_pb2 and summary_pb2 (PyPI) of the same events.
static void it_writes_what_tensorboard_writes(void **state)
{
    (void)state;
    static const char golden[] =
        "1800000000000000a37f4b220900001040fc54d9411a0d627261696e2e4576656e743a32338d2fe9"
        "31000000000000009d8383e90900006040fc54d94110ac022a230a0b0a046c6f737315000020400a140a0d"
        "6c6561726e696e675f72617465150000803ba7117877";
    static const struct event_scalar scalars[] = { { "loss", 2.5f },
                                                   { "learning_rate", 1 / 256.f } };
    struct event_file file;
    struct why why = { 0 };
    char hex[2 * sizeof content];
    assert_int_equal(event_file_create(&file, folder, 1700000000250, 7, &why), 0);
    assert_int_equal(event_file_add(&file, 1700000001500, 300, scalars, 2, &why), 0);
    event_file_close(&file);
    assert_non_null(strstr(event_path(), "/events.out.tfevents.1700000000."));
    const size_t count = slurp(event_path());
    for (size_t i = 0; i < count; i++) sprintf(hex + 2 * i, "%02x", (unsigned char)content[i]);
    assert_string_equal(hex, golden);
    // Two lives never write into one file.
    assert_int_equal(event_file_create(&file, folder, 1700000000250, 7, &why), FAULT_BUSY);
}

static struct coordinator *core;
static struct log_shell shell;

static void open_log(uint64_t life)
{
    struct why why = { 0 };
    shell = (struct log_shell){ .core = core, .dir = folder };
    if (log_shell_open(&shell, life, &why) < 0) fail_msg("%s", why.text);
}

static void commit(uint64_t step, float loss, float rate)
{
    struct wire_commit record = { .step = step - 1,
                                  .outcome = OUTCOME_COMMITTED,
                                  .accepted_count = 3 };
    memcpy(&record.lr_bits, &rate, sizeof rate);
    core->run.step = step;
    core->run.samples_done = 8 * step;
    core->news.run.loss = loss;
    log_shell_hear(&shell, FRAME_RECORD_COMMIT, &record);
    log_shell_turn(&shell);
    log_shell_turn(&shell); // A turn without a commit writes nothing
}

static size_t rows(void)
{
    size_t count = 0;
    slurp(path_of("run.csv"));
    for (const char *c = content; *c; c++) count += *c == '\n';
    return count - 1;
}

static void a_restart_goes_on_with_the_rows(void **state)
{
    (void)state;
    open_log(1);
    const struct wire_commit none = { .outcome = OUTCOME_VOID };
    log_shell_hear(&shell, FRAME_RECORD_COMMIT, &none);
    log_shell_turn(&shell);
    assert_int_equal(rows(), 0);
    commit(1, 0, 0.001f); // No trainer has told a loss yet
    usleep(2000);
    commit(2, 5.25f, 0.002f);
    log_shell_close(&shell);
    slurp(path_of("run.csv"));
    assert_int_equal(strncmp(content,
                             "step,tokens,loss,learning_rate,seconds,tokens_per_s,results,unix_ms\n"
                             "1,128,,0.00100000005,,,3,",
                             92),
                     0);
    assert_non_null(strstr(content, "\n2,256,5.25,0.00200000009,0.0"));
    // Killed within a row.
    const size_t count = slurp(path_of("run.csv"));
    strcpy(content + count, "3,384,5");
    put("run.csv", content, count + 7);
    open_log(2);
    commit(3, 5, 0.003f);
    log_shell_close(&shell);
    assert_int_equal(rows(), 3);
    assert_non_null(strstr(content, "\n3,384,5,0.00300000003,,,3,"));
    assert_null(strstr(strstr(content, "step") + 1, "step,"));
    // The second life wrote into a file of its own: one commit.
    char *at = content;
    size_t left = slurp(event_path()), records = 0;
    for (uint64_t length; left; records++, at += length + 16, left -= length + 16)
        memcpy(&length, at, sizeof length), assert_true(left >= length + 16);
    assert_int_equal(records, 2);
}

// What cannot be written is left out whole, and the rows go on afterwards.
static void a_full_disk_leaves_whole_rows(void **state)
{
    (void)state;
    open_log(1);
    commit(1, 5, 0.001f);
    const struct rlimit before = { RLIM_INFINITY, RLIM_INFINITY };
    const struct rlimit full = { (rlim_t)shell.csv_bytes + 5, RLIM_INFINITY };
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
    commit(2, 4, 0.001f);
    assert_true(shell.failed);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    commit(3, 3, 0.001f);
    assert_false(shell.failed);
    log_shell_close(&shell);
    assert_int_equal(rows(), 2);
    assert_non_null(strstr(content, "\n3,384,3,"));
}

static void without_a_folder_nothing_is_written(void **state)
{
    (void)state;
    struct why why = { 0 };
    shell = (struct log_shell){ .core = core };
    assert_int_equal(log_shell_open(&shell, 1, &why), 0);
    commit(1, 5, 0.001f);
    log_shell_close(&shell);
    assert_int_not_equal(access(path_of("run.csv"), F_OK), 0);
}

// A pace of a test: a record of its commits has several steps, and it tells no facts.
static struct interval ends(uint16_t kind, const void *record)
{
    const struct wire_epoch_end *end = record;
    return (struct interval){ 0, kind == FRAME_RECORD_EPOCH_END ? end->step : 0 };
}

static void any_pace_has_rows(void **state)
{
    (void)state;
    const struct pace pace = { .commits = ends };
    const struct wire_epoch_end end = { .step = 5 };
    core->pace = &pace;
    open_log(1);
    commit(4, 5, 0.001f); // Another's pace
    assert_int_equal(rows(), 0);
    core->run.step = 5, core->run.samples_done = 40;
    log_shell_hear(&shell, FRAME_RECORD_EPOCH_END, &end);
    log_shell_turn(&shell);
    log_shell_close(&shell);
    assert_int_equal(rows(), 1);
    assert_non_null(strstr(content, "\n5,640,5,0,,,0,"));
}

static int set_up(void **state)
{
    core = calloc(1, sizeof *core);
    core->rules.seq_len = 16;
    core->pace = paces[0];
    return core ? folder_set_up(state) : -1;
}

static int tear_down(void **state)
{
    free(core);
    return folder_tear_down(state);
}

TESTS(TEST_WITH(it_writes_what_tensorboard_writes, set_up, tear_down),
      TEST_WITH(a_restart_goes_on_with_the_rows, set_up, tear_down),
      TEST_WITH(a_full_disk_leaves_whole_rows, set_up, tear_down),
      TEST_WITH(any_pace_has_rows, set_up, tear_down),
      TEST_WITH(without_a_folder_nothing_is_written, set_up, tear_down))
