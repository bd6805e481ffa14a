// folder_test -- a folder is made with those above it, what is there is left alone, and a fault names the place.

#include "common/base/folder.h"
#include "tests/unit/folder_fixture.h"
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static mode_t mode_of(const char *name)
{
    struct stat there;
    assert_int_equal(stat(path_of(name), &there), 0);
    assert_true(S_ISDIR(there.st_mode));
    return there.st_mode & 0777;
}

static void test_missing_folders_above_are_made(void **state)
{
    (void)state;
    struct why why = { 0 };
    const mode_t mask = umask(0);
    assert_int_equal(folder_make(path_of("a/b//c"), 0700, &why), 0);
    umask(mask);
    assert_int_equal(mode_of("a"), 0755);
    assert_int_equal(mode_of("a/b"), 0755);
    assert_int_equal(mode_of("a/b/c"), 0700);
    assert_int_equal(folder_make(path_of("a/b/c"), 0755, &why), 0);
    assert_int_equal(mode_of("a/b/c"), 0700);
    assert_int_equal(folder_make(path_of("a/d/"), 0755, &why), 0);
    mode_of("a/d");
}

static void test_a_file_in_the_way_is_named(void **state)
{
    (void)state;
    struct why why = { 0 };
    put("file", "x", 1);
    assert_int_equal(folder_make(path_of("file/a"), 0755, &why), FAULT_IO);
    assert_non_null(strstr(why.text, path_of("file: File exists")));
    assert_int_equal(folder_make(path_of("file"), 0755, &why), FAULT_IO);
}

static void test_a_folder_is_resolved_within_its_bound(void **state)
{
    (void)state;
    struct why why = { 0 };
    char path[PATH_MAX], again[PATH_MAX];
    assert_int_equal(folder_resolve(path_of("new/one"), PATH_MAX, path, &why), 0);
    mode_of("new/one");
    assert_int_equal(path[0], '/');
    char link[PATH_MAX];
    snprintf(link, sizeof link, "%s", path_of("link"));
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(folder_resolve(link, strlen(path), again, &why), 0);
    assert_string_equal(again, path);
    assert_int_equal(folder_resolve(link, strlen(path) - 1, again, &why), FAULT_LIMIT);
    assert_non_null(strstr(why.text, path));
}

TESTS(TEST_WITH(test_missing_folders_above_are_made, folder_set_up, folder_tear_down),
      TEST_WITH(test_a_file_in_the_way_is_named, folder_set_up, folder_tear_down),
      TEST_WITH(test_a_folder_is_resolved_within_its_bound, folder_set_up, folder_tear_down))
