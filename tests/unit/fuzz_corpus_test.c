// fuzz_corpus_test -- every input of tests/fuzz/corpus through its target: what a fuzzer once found
// stays found. An input's name may say what must become of it: accepted-.., refused-..

#include "tests/fuzz/bundle.h"
#include "tests/fuzz/fuzz.h"
#include "tests/test.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 200 };

size_t fuzz_mutate_blindly(uint8_t *bytes, size_t count, size_t max)
{
    (void)bytes, (void)max;
    return count;
}

static void judge(void *context, const char *name, const uint8_t *bytes, size_t count)
{
    const struct fuzz_target *target = context;
    const bool accepted = target->check(bytes, count);
    if (strncmp(name, accepted ? "refused" : "accepted", accepted ? 7 : 8) == 0)
        fail_msg("%s: %s is %s", target->name, name, accepted ? "accepted" : "refused");
}

static void the_corpus_is_judged_as_its_names_say(void **state)
{
    const struct fuzz_target *target = *state;
    const char *wrong = bundle_read_of(target->name, judge, *state);
    if (wrong) fail_msg("tests/fuzz/corpus/%s.hex: %s", target->name, wrong);
}

static void print(void *text, const char *name, const uint8_t *bytes, size_t count)
{
    FILE *file = fmemopen(text, TEXT_MAX, "a");
    assert_non_null(file);
    assert_true(bundle_write(file, name, bytes, count));
    assert_int_equal(fclose(file), 0);
}

// What is written of what was read, with what is wrong behind it.
static void assert_read(const char *bundle, const char *expected)
{
    char text[TEXT_MAX] = "";
    FILE *file = fmemopen((void *)(uintptr_t)bundle, strlen(bundle), "r");
    assert_non_null(file);
    const char *wrong = bundle_read(file, print, text);
    assert_int_equal(fclose(file), 0);
    if (wrong) strcat(text, wrong);
    assert_string_equal(text, expected);
}

static void malformed_bundles_are_refused(void **state)
{
    (void)state;
    assert_read("a 00ff\na-b \nb.c_9 7F\n", "a 00ff\na-b \nb.c_9 7f\n");
    assert_read("\n", "line 1 has no space behind its name");
    assert_read("a 00\nb 01", "a 00\nline 2 is cut off, or no text");
    assert_read("a\n", "line 1 has no space behind its name");
    assert_read(" 00\n", "line 1 has a name that no file should have");
    assert_read(".a 00\n", "line 1 has a name that no file should have");
    assert_read("../a 00\n", "line 1 has a name that no file should have");
    assert_read("b 00\na 00\n", "b 00\nline 2 does not ascend by name (LC_ALL=C sort)");
    assert_read("a 00\na 00\n", "a 00\nline 2 does not ascend by name (LC_ALL=C sort)");
    assert_read("a 0\n", "line 1 has something else than pairs of hexadecimal digits");
    assert_read("a 0g\n", "line 1 has something else than pairs of hexadecimal digits");
    assert_read("a 00 \n", "line 1 has something else than pairs of hexadecimal digits");
}

int main(void)
{
    enum { TARGETS_MAX = 64 };
    static struct CMUnitTest tests[TARGETS_MAX];
    size_t count = 0;
    for (; fuzz_targets[count].name && count < TARGETS_MAX - 1; count++)
        tests[count] =
            (struct CMUnitTest){ .name = fuzz_targets[count].name,
                                 .test_func = the_corpus_is_judged_as_its_names_say,
                                 .initial_state = (void *)(uintptr_t)&fuzz_targets[count] };
    tests[count++] = (struct CMUnitTest)TEST(malformed_bundles_are_refused);
    return _cmocka_run_group_tests("fuzz_corpus_test", tests, count, NULL, NULL);
}
