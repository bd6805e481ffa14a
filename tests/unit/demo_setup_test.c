// demo_setup_test -- which folders a demo takes, what it leaves of one that it refuses, and that it
// may go on where the emptying of an earlier demo was interrupted.

#include "actors/shoal/local/demo_setup.c" // The front command's own parts are in no library
#include "actors/shoal/local/run_files.c"
#include "actors/shoal/local/toml_edit.c"
#include "actors/shoal/model/model_folder.c"
#include "tests/unit/folder_fixture.h"
#include "tests/test.h"

static struct demo_setup setup;
static struct why why;

static bool is_there(const char *name) { return access(path_of(name), F_OK) == 0; }

static void an_empty_folder_is_taken_as_it_is(void **state)
{
    (void)state;
    struct stat before, after;
    assert_int_equal(stat(folder, &before), 0);
    assert_int_equal(before.st_mode & 0777, 0700);
    assert_int_equal(open_folder(&setup, folder, &why), 0);
    assert_int_equal(stat(folder, &after), 0);
    assert_int_equal(after.st_ino, before.st_ino); // A shell in it is not left in a deleted one
    assert_int_equal(after.st_mode & 0777, 0700);
    assert_true(is_there(MARKER));
}

static void a_folder_of_somebody_else_is_left_alone(void **state)
{
    (void)state;
    put("thesis", "x", 1);
    assert_int_equal(open_folder(&setup, folder, &why), FAULT_DENIED);
    assert_non_null(strstr(why.text, "is not empty and no demo made it"));
    assert_true(is_there("thesis"));
    assert_false(is_there(MARKER));
    assert_int_equal(open_folder(&setup, path_of("thesis"), &why), FAULT_IO); // It is a file
    assert_null(strstr(why.text, "no demo made it"));
}

static void an_earlier_demo_is_removed(void **state)
{
    (void)state;
    put(MARKER, "", 0);
    assert_int_equal(mkdir(path_of("run"), 0755), 0);
    put("run/old", "x", 1);
    put("run/" MARKER, "x", 1); // Only that of the folder itself is kept
    assert_int_equal(open_folder(&setup, folder, &why), 0);
    assert_false(is_there("run"));
    assert_true(is_there(MARKER));
}

// What is killed while it empties the folder has removed some files, and never the marker.
static void the_marker_outlives_the_emptying(void **state)
{
    (void)state;
    put(MARKER, "", 0);
    put("old", "x", 1);
    assert_int_equal(empty_folder(folder, &why), 0);
    assert_true(is_there(MARKER));
    assert_false(is_there("old"));
}

static void a_configuration_without_a_model_removes_nothing(void **state)
{
    (void)state;
    char demo[PATH_MAX];
    assert_int_equal(mkdir(path_of("demo"), 0755), 0);
    assert_int_equal(mkdir(path_of("config"), 0755), 0);
    put("demo/" MARKER, "", 0);
    put("demo/old", "x", 1);
    snprintf(demo, sizeof demo, "%s", path_of("demo"));
    const struct demo_place place = { .dir = demo, .config_dir = path_of("config") };
    assert_int_equal(demo_set_up(&setup, &place, NULL, NULL, &why), FAULT_NOT_FOUND);
    assert_non_null(strstr(why.text, "model.json"));
    assert_true(is_there("demo/old"));
}

TESTS(FOLDER_TEST(an_empty_folder_is_taken_as_it_is),
      FOLDER_TEST(a_folder_of_somebody_else_is_left_alone), FOLDER_TEST(an_earlier_demo_is_removed),
      FOLDER_TEST(the_marker_outlives_the_emptying),
      FOLDER_TEST(a_configuration_without_a_model_removes_nothing))
