// A file is there whole or not at all, and what a failed commit says of it is true: at each step that can fail, what
// lies under the name, and whether a half-written file is left.

#include "common/base/durable_file.h"
#include "tests/test.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *fails_at; // The name of a failpoint (common/base/failpoint.h); NULL: none fails

int failpoint_reached(const char *name);
int failpoint_reached(const char *name)
{
    if (!fails_at || strcmp(name, fails_at) != 0) return 0;
    errno = EIO;
    return -1;
}

static void what_a_failed_commit_says_is_true(void **state)
{
    (void)state;
    static const struct {
        const char *at, *content, *says;
    } steps[] = {
        { "file_create", "old", "what was there before stays" },
        { "file_write", "old", "what was there before stays" },
        { "file_sync", "old", "what was there before stays" },
        { "file_rename", "old", "what was there before stays" },
        { "file_renamed", "new", "a power cut may bring back what was there before" },
    };
    char dir[] = "/tmp/durable-file-XXXXXX", path[64], hidden[64];
    struct why why = { 0 };
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/a", dir);
    snprintf(hidden, sizeof hidden, "%s/.a.tmp", dir);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        fails_at = NULL;
        assert_int_equal(durable_file_write(dir, "a", "old", 3, &why), 0);
        fails_at = steps[i].at;
        assert_int_equal(durable_file_write(dir, "a", "new", 3, &why), FAULT_IO);
        if (!strstr(why.text, steps[i].says)) fail_msg("%s: %s", steps[i].at, why.text);
        char text[4] = "";
        FILE *file = fopen(path, "r");
        assert_true(file && fread(text, 1, 3, file) == 3);
        fclose(file);
        assert_string_equal(text, steps[i].content);
        assert_int_equal(access(hidden, F_OK), -1);
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

TESTS(TEST(what_a_failed_commit_says_is_true))
