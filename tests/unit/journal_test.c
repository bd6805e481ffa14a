// The journal keeps the newest record that was written whole, and says so when one was not.

#include "common/actor/journal.h"
#include "tests/unit/folder_fixture.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

static struct why why;

static void expect_record(const struct journal *self, const char *record)
{
    const uint8_t *bytes;
    assert_int_equal(journal_read(self, &bytes), strlen(record));
    assert_memory_equal(bytes, record, strlen(record));
}

// The disk takes the first bytes of the second record. The kernel sets no errno for that.
static void a_record_that_is_written_in_part_is_a_fault(void **state)
{
    (void)state;
    struct journal *self;
    struct rlimit before, limit;
    assert_int_equal(journal_open(folder, &why, &self), 0);
    assert_int_equal(journal_write(self, "first", 5, &why), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    limit = before;
    limit.rlim_cur = 20;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    errno = 0;
    const int rc = journal_write(self, "second", 6, &why);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(rc, FAULT_DISK_FULL);
    journal_close(&self);
    assert_int_equal(journal_open(folder, &why, &self), 0);
    expect_record(self, "first");
    assert_int_equal(journal_write(self, "second", 6, &why), 0);
    journal_close(&self);
    assert_int_equal(journal_open(folder, &why, &self), 0);
    expect_record(self, "second");
    journal_close(&self);
}

static void what_is_no_journal_is_refused(void **state)
{
    (void)state;
    struct journal *self = NULL;
    put("journal", "x", 1);
    assert_int_equal(journal_open(folder, &why, &self), FAULT_CORRUPT);
    assert_null(self);
}

TESTS(FOLDER_TEST(a_record_that_is_written_in_part_is_a_fault),
      FOLDER_TEST(what_is_no_journal_is_refused))
