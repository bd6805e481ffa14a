#pragma once
// folder_fixture -- a fresh folder for each test, and files in it.

#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>

static char folder[256];

static int folder_set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s/shoal-test-XXXXXX", P_tmpdir);
    return mkdtemp(folder) ? 0 : -1;
}

static int folder_tear_down(void **state)
{
    (void)state;
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

// Overwritten by the next call.
static const char *path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const void *bytes, size_t count)
{
    FILE *file = fopen(path_of(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

#define FOLDER_TEST(name) TEST_WITH(name, folder_set_up, folder_tear_down)
