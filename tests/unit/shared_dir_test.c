// shared_dir_test -- whether a folder is fit for saves is tried out before anything begins; each
// run has a folder of its own in it, and the newest with a whole save is found.

#include "common/checkpoint/shared_dir.h"
#include "tests/unit/pieces_fixture.h"

#include <string.h>
#include <sys/stat.h>

static char found[PATH_MAX];

static void run_command(const char *format, const char *argument)
{
    char line[PATH_MAX + 100];
    snprintf(line, sizeof line, format, argument);
    assert_int_equal(system(line), 0);
}

static void expect_empty(void) { run_command("test -z \"$(ls -A %s)\"", root); }

static void save_step(const char *in, uint64_t step, bool whole)
{
    const uint32_t number = 7;
    const struct pieces_part part = { "numbers", TAG_RESHARD, 4, 1, &number };
    struct pieces_save save = save_of(step, 1, 0, whole ? 1 : 2);
    uint32_t missing;
    save.root = in;
    if (pieces_write(&save, &part, 1, &why) != 0) fail_msg("%s", why.text);
    assert_int_equal(pieces_seal(&save, &why, &missing), 0);
    assert_int_equal(missing, 1);
}

static void a_good_folder_is_left_as_it_was(void **unused)
{
    (void)unused;
    if (shared_dir_check(root, &why) != 0) fail_msg("%s", why.text);
    expect_empty();
    assert_int_equal(shared_dir_check(root, &why), 0);
}

static void what_is_wrong_is_named(void **unused)
{
    char path[300];
    (void)unused;
    snprintf(path, sizeof path, "%s/none", root);
    assert_int_equal(shared_dir_check(path, &why), FAULT_NOT_FOUND);
    assert_non_null(strstr(why.text, path));
    run_command("touch %s/file", root);
    snprintf(path, sizeof path, "%s/file", root);
    assert_true(shared_dir_check(path, &why) < 0);
    assert_non_null(strstr(why.text, path));
    assert_true(shared_dir_check("/proc", &why) < 0); // Nobody may write there, not even root
    assert_non_null(strstr(why.text, "/proc"));
    assert_non_null(strstr(why.text, "mkdir"));
    if (geteuid() == 0) return; // Root may write anywhere else
    assert_int_equal(chmod(root, 0555), 0);
    assert_int_equal(shared_dir_check(root, &why), FAULT_DENIED);
    assert_non_null(strstr(why.text, "mkdir"));
    assert_int_equal(chmod(root, 0755), 0);
}

static void each_run_has_its_own_folder(void **unused)
{
    char again[PATH_MAX];
    (void)unused;
    assert_int_equal(shared_dir_begin(root, "a", 1000, &why, found), 0);
    assert_non_null(strstr(found, "/a-1000"));
    assert_int_equal(shared_dir_begin(root, "a", 1000, &why, again), FAULT_BUSY);
    assert_int_equal(shared_dir_begin(root, "a", 2000, &why, again), 0);
    assert_string_not_equal(found, again);
    assert_int_equal(shared_dir_begin(root, "../a", 3000, &why, again), FAULT_RANGE);
}

static void the_newest_with_a_whole_save_is_found(void **unused)
{
    uint64_t born, step;
    (void)unused;
    assert_int_equal(shared_dir_newest(root, "a", &why, &born, &step), FAULT_NOT_FOUND);
    const uint64_t times[] = { 1000, 900, 2000, 3000 };
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(shared_dir_begin(root, "a", times[i], &why, found), 0);
        if (times[i] < 3000) save_step(found, 10 + times[i], true);
        else save_step(found, 50, false); // Worker 1 has not written
    }
    assert_int_equal(shared_dir_begin(root, "a-b", 4000, &why, found), 0); // Another run
    save_step(found, 20, true);
    run_command("mkdir %s/a-5000x", root);
    run_command("mkdir %s/a-05000", root);
    assert_int_equal(shared_dir_newest(root, "a", &why, &born, &step), 0);
    assert_int_equal(born, 2000);
    assert_int_equal(step, 2010);
    // One that is newer and cannot be read is not passed over
    run_command("ln -s nowhere %s/a-6000", root);
    assert_int_equal(shared_dir_newest(root, "a", &why, &born, &step), FAULT_IO);
    assert_non_null(strstr(why.text, "a-6000"));
}

#define IN_FOLDER(test) TEST_WITH(test, set_up, tear_down)

TESTS(IN_FOLDER(a_good_folder_is_left_as_it_was), IN_FOLDER(what_is_wrong_is_named),
      IN_FOLDER(each_run_has_its_own_folder), IN_FOLDER(the_newest_with_a_whole_save_is_found))
