// command_test -- a table of flags parses a command line: fields, defaults, environment twins,
// lists, and each refusal with its sentence.

#include "common/actor/command.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

enum { FILES_MAX = 3, SETS_MAX = 2, WORDS_MAX = 24, TEXT_MAX = 4096 };

struct tool {
    struct command command;
    const char *model, *files[FILES_MAX], *sets[SETS_MAX];
    size_t files_count, sets_count;
    uint64_t tokens, limit;
    double warmth;
    bool quick;
};

static const struct flag flags[] = {
    FLAG("model", 'm', "DIR", TO_TEXT(struct tool, model), "A folder (env TOOL_MODEL)",
         .env = "TOOL_MODEL", .needed = true),
    FLAG("tokens", 'n', "N", TO_NUMBER(struct tool, tokens, 1, 100), "(7; env TOOL_TOKENS)",
         .env = "TOOL_TOKENS"),
    FLAG("limit", 0, "N", TO_NUMBER(struct tool, limit, 1, 9), "At most (all)"),
    FLAG("warmth", 0, "T", TO_REAL(struct tool, warmth, 0, 10), "(0.5)"),
    FLAG("set", 0, "K=V", TO_LIST(struct tool, sets, sets_count, SETS_MAX), "May come again"),
    FLAG("quick", 'q', NULL, TO_SWITCH(struct tool, quick), "Sooner"),
    FLAGS_OF(command_flags, struct tool, command),
    { 0 },
};

static int check(const void *line, struct why *why)
{
    const struct tool *self = line;
    return self->quick && self->limit != COMMAND_NOT_GIVEN
               ? why_set(why, FAULT_USAGE, "--quick has no --limit")
               : 0;
}

static const struct command_line line = {
    .flags = flags,
    .usage = "FILE...",
    .about = "A tool.\n\n  tool -m a b\n  tool -m a -n 2 b\n",
    .arguments = TO_LIST(struct tool, files, files_count, FILES_MAX),
    .none = "a file is needed",
    .check = check,
};

// `text` is a command line without the program's name, words apart by one space.
static int parse(const char *text, struct tool *self, struct why *why)
{
    static char words[TEXT_MAX];
    char *argv[WORDS_MAX] = { (char[]){ "tool" } }, *rest = words;
    int argc = 1;
    snprintf(words, sizeof words, "%s", text);
    for (char *word; (word = strsep(&rest, " ")) && argc < WORDS_MAX - 1;) argv[argc++] = word;
    *self = (struct tool){ .tokens = 7, .limit = COMMAND_NOT_GIVEN, .warmth = 0.5 };
    return command_parse(&line, argc, argv, self, why);
}

static struct tool parsed(const char *text)
{
    struct tool self;
    struct why why = { 0 };
    if (parse(text, &self, &why) < 0) fail_msg("%s: %s", text, why.text);
    return self;
}

static void test_defaults_stay(void **state)
{
    (void)state;
    const struct tool self = parsed("-m a b");
    assert_string_equal(self.model, "a");
    assert_int_equal(self.files_count, 1);
    assert_int_equal(self.tokens, 7);
    assert_true(self.limit == COMMAND_NOT_GIVEN);
    assert_true(self.warmth == 0.5 && !self.quick && !self.command.json);
    assert_null(self.command.run_id);
}

static void test_all_kinds(void **state)
{
    (void)state;
    const struct tool self =
        parsed("--model=a -n 100 --warmth 10 --set x --set y -q b -vv c --json");
    assert_int_equal(self.tokens, 100);
    assert_true(self.warmth == 10);
    assert_int_equal(self.sets_count, 2);
    assert_string_equal(self.sets[0], "x");
    assert_string_equal(self.sets[1], "y");
    assert_int_equal(self.files_count, 2);
    assert_string_equal(self.files[1], "c");
    assert_true(self.quick && self.command.json);
    assert_int_equal(self.command.verbose, 2);
}

// What only looks like a mistyped flag: a value, a beginning, an argument behind "--".
static void test_words_that_are_no_mistakes(void **state)
{
    (void)state;
    assert_string_equal(parsed("-m --modle b").model, "--modle");
    assert_string_equal(parsed("-qm --modle b").model, "--modle");
    assert_string_equal(parsed("--model --modle b").model, "--modle");
    assert_string_equal(parsed("--model=--modle b").model, "--modle");
    assert_string_equal(parsed("--mod --modle b").model, "--modle");
    assert_int_equal(parsed("-m a --tok 3 b").tokens, 3);
    assert_string_equal(parsed("-m a -- --tokns").files[0], "--tokns");
    assert_string_equal(parsed("-m a -").files[0], "-");
}

static void test_environment(void **state)
{
    (void)state;
    setenv("TOOL_MODEL", "there", 1);
    setenv("TOOL_TOKENS", "none", 1);
    setenv("RUN_ID", "demo", 1);
    setenv("TICKET", "", 1);
    const struct tool self = parsed("-n 3 b"); // The flag wins over a bad twin
    assert_string_equal(self.model, "there");
    assert_int_equal(self.tokens, 3);
    assert_string_equal(self.command.run_id, "demo");
    assert_null(self.command.ticket_text);
    struct tool bad;
    struct why why = { 0 };
    assert_int_equal(parse("b", &bad, &why), FAULT_USAGE);
    assert_string_equal(why.text, "--tokens none: a whole number from 1 to 100");
    unsetenv("TOOL_MODEL"), unsetenv("TOOL_TOKENS"), unsetenv("RUN_ID"), unsetenv("TICKET");
}

static void test_numbers_out_of_range(void **state)
{
    (void)state;
    static const struct {
        const char *line, *text;
    } cases[] = {
        { "-m a -n 0 b", "--tokens 0: a whole number from 1 to 100" },
        { "-m a -n 101 b", "--tokens 101: a whole number from 1 to 100" },
        { "-m a -n -1 b", "--tokens -1: a whole number from 1 to 100" },
        { "-m a -n 1x b", "--tokens 1x: a whole number from 1 to 100" },
        { "-m a --warmth 10.1 b", "--warmth 10.1: a number from 0 to 10" },
        { "-m a --warmth nan b", "--warmth nan: a number from 0 to 10" },
        { "-m a --warmth  b", "--warmth : a number from 0 to 10" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tool self;
        struct why why = { 0 };
        assert_int_equal(parse(cases[i].line, &self, &why), FAULT_USAGE);
        assert_string_equal(why.text, cases[i].text);
    }
}

// The exit code of a process that parses the line, and what it printed.
static int printed(const char *text, char ret_output[TEXT_MAX])
{
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        struct tool self;
        struct why why = { 0 };
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        parse(text, &self, &why);
        fflush(NULL);
        _exit(EX_SOFTWARE); // A line that should have ended the process
    }
    close(ends[1]);
    size_t count = 0;
    for (ssize_t got; (got = read(ends[0], ret_output + count, TEXT_MAX - 1 - count)) > 0;)
        count += (size_t)got;
    ret_output[count] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_lines_that_end_it(void **state)
{
    (void)state;
    static const struct {
        const char *line, *text;
    } cases[] = {
        { "b", "--model DIR is needed" },
        { "-m a", "a file is needed" },
        { "-m a b c d e", "at most 3 of FILE..." },
        { "-m a --set 1 --set 2 --set 3 b", "at most 2 times --set" },
        { "-m a -q --limit 3 b", "--quick has no --limit" },
        { "-m a --bogus b", "unrecognized option" },
        { "-m a --tokns 3 b", "tool: no flag --tokns; did you mean --tokens?" },
        { "-m a --tocket=x b", "no flag --tocket; did you mean --ticket?" },
        { "-qm --modle --run_id x", "no flag --run_id; did you mean --run-id?" },
        { "-m a --wandb-rum=x b", "unrecognized option" }, // Not to one that is refused
        { "-m a --wandb-run=x b", "--wandb-run is Psyche's and not supported: there is no W&B" },
        { "-m a --tui b", "--tui is Psyche's and not supported: there is no terminal" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char output[TEXT_MAX];
        assert_int_equal(printed(cases[i].line, output), EX_USAGE);
        if (!strstr(output, cases[i].text)) fail_msg("%s: %s", cases[i].line, output);
    }
}

static void test_help(void **state)
{
    (void)state;
    char output[TEXT_MAX];
    assert_int_equal(printed("--help", output), 0);
    assert_non_null(strstr(output, "FILE..."));
    assert_non_null(strstr(output, "  tool -m a b\n  tool -m a -n 2 b\n"));
    assert_non_null(strstr(output, "-n, --tokens=N"));
    const char *own = strstr(output, "--warmth=T"), *shared = strstr(output, "--run-id=ID");
    assert_true(own && shared && own < shared);
    assert_null(strstr(output, "wandb"));
    assert_int_equal(printed("--version", output), 0);
    assert_string_equal(output, "shoal " SHOAL_VERSION "\n");
}

TESTS(TEST(test_defaults_stay), TEST(test_all_kinds), TEST(test_words_that_are_no_mistakes),
      TEST(test_environment), TEST(test_numbers_out_of_range), TEST(test_lines_that_end_it),
      TEST(test_help))
