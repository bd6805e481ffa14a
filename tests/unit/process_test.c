// process_test -- a child gets the arguments, the folder and the environment that it is started
// with, reads nothing, writes to its log, and does not outlive its parent; a failed start is a
// fault.

#include "common/base/process.h"
#include "common/base/ensure.h"
#include "tests/unit/folder_fixture.h"
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// Runs a script of the shell to its end; its log is in `said`.
static char said[4096];
static void expect(const struct process_options *more, const char *script, const char *end)
{
    struct arguments args = { 0 };
    struct process_options options = *more;
    struct why why = { 0 };
    char log[512], how[100];
    pid_t pid;
    int status;
    snprintf(log, sizeof log, "%s", path_of("log"));
    arguments_add(&args, "/bin/%s", "sh");
    arguments_add(&args, "-c");
    arguments_add(&args, "%s", script);
    options.arguments = &args;
    options.log = log;
    assert_int_equal(process_start(&options, &why, &pid), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    process_print_end(status, how, sizeof how);
    assert_string_equal(how, end);
    FILE *file = fopen(log, "r");
    assert_non_null(file);
    said[fread(said, 1, sizeof said - 1, file)] = 0;
    fclose(file);
}

static void test_what_a_child_gets(void **state)
{
    (void)state;
    setenv("PROCESS_TEST", "ours", 1);
    const char *const env[] = { "PROCESS_TEST_TOO=its own", NULL };
    expect(&(struct process_options){ .dir = folder, .env = env },
           "printenv PROCESS_TEST PROCESS_TEST_TOO; pwd -P >&2; cat; exit 70",
           "ended with code 70");
    char wanted[600];
    snprintf(wanted, sizeof wanted, "ours\nits own\n%s\n", folder);
    assert_string_equal(said, wanted);
    expect(&(struct process_options){ 0 }, "echo again; kill -9 $$", // The log is added to
           "was ended by signal 9 (Killed)");
    strcat(wanted, "again\n");
    assert_string_equal(said, wanted);
    expect(&(struct process_options){ .dir = "/nowhere" }, "true", "ended with code 78");
}

static void test_what_cannot_start(void **state)
{
    (void)state;
    struct arguments missing = { 0 }, shell = { 0 };
    struct why why = { 0 };
    pid_t pid;
    put("a", "x", 1);
    arguments_add(&missing, "%s", path_of("missing"));
    arguments_add(&shell, "/bin/sh");
    assert_int_equal(
        process_start(&(struct process_options){ &missing, .log = path_of("log") }, &why, &pid),
        FAULT_NOT_FOUND);
    assert_non_null(strstr(why.text, "missing: No such file"));
    assert_int_equal(
        process_start(&(struct process_options){ &shell, .log = path_of("a/log") }, &why, &pid),
        FAULT_NOT_FOUND);
}

// The parent dies without a signal to the child; the kernel ends the child and so closes its end of
// the pipe.
static void test_a_child_dies_with_us(void **state)
{
    (void)state;
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    const pid_t starter = fork();
    assert_true(starter >= 0);
    if (starter == 0) {
        struct arguments args = { 0 };
        pid_t pid;
        arguments_add(&args, "/bin/sh");
        arguments_add(&args, "-c");
        arguments_add(&args, "echo >&%d; exec sleep 600", ends[1]);
        ensure(process_start(&(struct process_options){ &args, .log = path_of("log") }, NULL,
                             &pid) == 0);
        for (;;) pause();
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1); // It runs
    kill(starter, SIGKILL);
    assert_int_equal(waitpid(starter, NULL, 0), starter);
    assert_int_equal(read(ends[0], &byte, 1), 0);
    close(ends[0]);
}

TESTS(TEST_WITH(test_what_a_child_gets, folder_set_up, folder_tear_down),
      TEST_WITH(test_what_cannot_start, folder_set_up, folder_tear_down),
      TEST_WITH(test_a_child_dies_with_us, folder_set_up, folder_tear_down))
