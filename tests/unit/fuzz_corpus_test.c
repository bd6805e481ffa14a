// fuzz_corpus_test -- every file of tests/fuzz/corpus through its target: what a fuzzer once found
// stays found. A file's name may say what must become of it: accepted-.., refused-..

#include "tests/fuzz/fuzz.h"
#include "tests/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t fuzz_mutate_blindly(uint8_t *bytes, size_t count, size_t max)
{
    (void)bytes, (void)max;
    return count;
}

static bool judge(const struct fuzz_target *target, const char *path)
{
    static uint8_t room[1 << 20];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t count = fread(room, 1, sizeof room, file);
    fclose(file);
    uint8_t *exact = malloc(count + !count); // Its own block: a byte beyond it would be seen
    assert_non_null(exact);
    memcpy(exact, room, count);
    const bool accepted = target->check(exact, count);
    free(exact);
    return accepted;
}

static void the_corpus_is_judged_as_its_names_say(void **state)
{
    const struct fuzz_target *target = *state;
    char path[512];
    int judged = 0;
    snprintf(path, sizeof path, "tests/fuzz/corpus/%s", target->name);
    DIR *files = opendir(path);
    if (!files) fail_msg("%s is not there; run this from the root of the repository", path);
    for (const struct dirent *entry; (entry = readdir(files));) {
        const char *name = entry->d_name;
        if (name[0] == '.') continue;
        snprintf(path, sizeof path, "tests/fuzz/corpus/%s/%s", target->name, name);
        const bool accepted = judge(target, path);
        if ((!accepted && strncmp(name, "accepted", 8) == 0) ||
            (accepted && strncmp(name, "refused", 7) == 0))
            fail_msg("%s is %s", path, accepted ? "accepted" : "refused");
        judged++;
    }
    closedir(files);
    assert_true(judged > 0);
}

int main(void)
{
    enum { TARGETS_MAX = 64 };
    static struct CMUnitTest tests[TARGETS_MAX];
    size_t count = 0;
    for (; fuzz_targets[count].name && count < TARGETS_MAX; count++)
        tests[count] =
            (struct CMUnitTest){ .name = fuzz_targets[count].name,
                                 .test_func = the_corpus_is_judged_as_its_names_say,
                                 .initial_state = (void *)(uintptr_t)&fuzz_targets[count] };
    return _cmocka_run_group_tests("fuzz_corpus_test", tests, count, NULL, NULL);
}
