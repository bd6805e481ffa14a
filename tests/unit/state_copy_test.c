// state_copy_test -- a copy in a file has no name, also on a file system without O_TMPFILE, where
// two may be made at once; and what is said of a disk that fails.

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int openat_fixture(int dir_fd, const char *name, int flags, mode_t mode);
static int unlinkat_fixture(int dir_fd, const char *name, int flags);
#define openat   openat_fixture
#define unlinkat unlinkat_fixture
#include "common/bulk/state_copy.c"
#undef openat
#undef unlinkat

#include "common/bulk/blob_store.h"
#include "tests/unit/folder_fixture.h"
#include "tests/test.h"
#include <dirent.h>

static bool has_tmpfile, removes = true;

static int openat_fixture(int dir_fd, const char *name, int flags, mode_t mode)
{
    if (has_tmpfile || (flags & O_TMPFILE) != O_TMPFILE) return openat(dir_fd, name, flags, mode);
    errno = EOPNOTSUPP;
    return -1;
}

static int unlinkat_fixture(int dir_fd, const char *name, int flags)
{
    return removes ? unlinkat(dir_fd, name, flags) : 0;
}

static unsigned files(void)
{
    unsigned count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) count += entry->d_type == DT_REG;
    closedir(dir);
    return count;
}

static void assert_holds(const struct state_copy *copy)
{
    char back[6] = "";
    assert_int_equal(state_copy_put(copy, 3, "state", 6, NULL), 0);
    assert_int_equal(state_copy_get(copy, 3, back, 6, NULL), 0);
    assert_string_equal(back, "state");
}

static void a_copy_has_no_name(void **state)
{
    (void)state;
    struct state_copy copy;
    const int dir_fd = open(folder, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 2; i++) {
        has_tmpfile = i == 0;
        assert_int_equal(state_copy_new(dir_fd, 100, NULL, &copy), 0);
        assert_true(copy.fd >= 0);
        assert_int_equal(files(), 0);
        assert_holds(&copy);
        state_copy_free(&copy);
    }
    assert_int_equal(state_copy_new(-1, 100, NULL, &copy), 0);
    assert_true(copy.fd < 0);
    assert_holds(&copy);
    state_copy_free(&copy);
    close(dir_fd);
}

// Two threads are between the making and the removing of their files at once, and the process dies.
static void two_are_made_at_once(void **state)
{
    (void)state;
    struct state_copy copies[2];
    blob_store_t *store;
    const int dir_fd = open(folder, O_RDONLY | O_DIRECTORY);
    has_tmpfile = removes = false;
    put(".other.tmp", "", 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(state_copy_new(dir_fd, 100, NULL, &copies[i]), 0);
        assert_true(copies[i].fd >= 0);
    }
    removes = true;
    assert_int_equal(files(), 3);
    for (int i = 0; i < 2; i++) state_copy_free(&copies[i]);
    close(dir_fd);
    const struct blob_store_options options = { .dir = folder, .lazy = true };
    assert_int_equal(blob_store_new(&options, NULL, &store), 0);
    assert_int_equal(files(), 1);
    blob_store_destroy(&store);
}

static void a_fault_names_the_bytes_of_the_call(void **state)
{
    (void)state;
    struct state_copy copy;
    struct why why = { 0 };
    char back[8];
    const int dir_fd = open(folder, O_RDONLY | O_DIRECTORY);
    assert_int_equal(state_copy_new(dir_fd, 100, &why, &copy), 0);
    assert_int_equal(state_copy_get(&copy, 100, back, sizeof back, &why), FAULT_IO);
    assert_string_equal(why.text, "reading 8 bytes of a copy of the state: Input/output error");
    state_copy_free(&copy);
    assert_true(state_copy_new(dir_fd, UINT64_C(1) << 62, &why, &copy) < 0);
    assert_non_null(strstr(why.text, "making a copy of the state of 4611686018427387904 bytes: "));
    close(dir_fd);
}

TESTS(FOLDER_TEST(a_copy_has_no_name), FOLDER_TEST(two_are_made_at_once),
      FOLDER_TEST(a_fault_names_the_bytes_of_the_call))
