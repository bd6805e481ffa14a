// model_corpus_test -- the regression corpus of model_fuzz: a file's name says what must become of
// it.

#define MODEL_FUZZ_LIBFUZZER                // The target without its main
#include "tests/fuzz/model_fuzz.c"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void the_corpus_is_judged_as_its_names_say(void **state)
{
    (void)state;
    static uint8_t room[1 << 16];
    int judged = 0;
    DIR *files = opendir("tests/fuzz/corpus/model");
    if (!files) fail_msg("the corpus is not there; run this from the root of the repository");
    for (const struct dirent *entry; (entry = readdir(files)); ) {
        char path[512];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "tests/fuzz/corpus/model/%s", entry->d_name);
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        const size_t count = fread(room, 1, sizeof room, file);
        fclose(file);
        uint8_t *exact = malloc(count);
        memcpy(exact, room, count);
        if (accepted(exact, count) != (strncmp(entry->d_name, "accepted", 8) == 0))
            fail_msg("%s is judged wrongly", entry->d_name);
        free(exact);
        judged++;
    }
    closedir(files);
    assert_true(judged >= 13);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(the_corpus_is_judged_as_its_names_say) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
