// Every single write and sync that a ledger makes fails once. LMDB's calls come here first, since a
// program's own functions go before those of the C library.

#include "tests/unit/ledger_fixture.h"
#include "tests/test.h"
#include <errno.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { COMMITS = 6 };

static long calls, fail_at, fail_with; // Counted from 1; 0: none fails
static bool disk_is_full;

static bool fails(void)
{
    if (++calls != fail_at) return false;
    errno = (int)fail_with;
    return true;
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at)
{
    return fails() ? -1 : syscall(SYS_pwrite64, fd, bytes, count, at);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at)
{
    return fails() ? -1 : syscall(SYS_pwritev, fd, parts, (long)count, (long)at, 0l);
}

// Nothing is cut off here, so nothing need reach the disk.
int fdatasync(int fd) { return (void)fd, fails() ? -1 : 0; }
int fsync(int fd) { return (void)fd, fails() ? -1 : 0; }

int fstatvfs(int fd, struct statvfs *ret_space)
{
    (void)fd;
    *ret_space = (struct statvfs){ .f_frsize = 4096, .f_bavail = disk_is_full ? 3 : 1 << 20 };
    return 0;
}

// Commits until it is done or something fails; tells how far it surely came.
static int use(uint64_t *ret_acknowledged)
{
    struct ledger *ledger;
    struct why again;
    *ret_acknowledged = 0;
    int rc = ledger_open(dir, "run", NULL, &why, &ledger);
    if (rc < 0) return rc;
    for (int i = 0; i < COMMITS && rc == 0; i++) {
        rc = ledger_begin(ledger, &why);
        if (rc == 0) append(ledger, 2);
        if (rc == 0 && i % 2) rc = ledger_put_snapshot(ledger, "state", 5, &why);
        if (rc == 0) rc = ledger_commit(ledger, &why);
        if (rc == 0) *ret_acknowledged = head_of(ledger);
        else assert_non_null(strstr(why.text, "must end"));
    }
    if (rc < 0) { // The same answer for ever, and no more writing
        long before = calls;
        assert_int_equal(ledger_begin(ledger, &again), rc);
        assert_string_equal(again.text, why.text);
        assert_true(calls == before);
    }
    ledger_close(&ledger);
    return rc;
}

static void a_failure_at(long at, int error, int fault)
{
    uint64_t acknowledged;
    calls = 0, fail_at = at, fail_with = error;
    assert_int_equal(use(&acknowledged), fault);
    fail_at = 0;
    struct ledger *ledger = open_ledger(NULL);
    uint64_t head = head_of(ledger);
    assert_true(head == acknowledged || head == acknowledged + 2);
    assert_holds(ledger, 1, head);
    ledger_close(&ledger);
}

// The ones that are only told or tidied (the lock's pid) may fail without harm.
static void a_failing_call_is_an_error_or_harmless(void **state)
{
    uint64_t acknowledged;
    long all, harmless = 0;
    calls = fail_at = 0;
    assert_int_equal(use(&acknowledged), 0);
    assert_true(acknowledged == 2 * COMMITS);
    all = calls;
    assert_true(all > 3 * COMMITS); // Pages, sync, meta page
    for (long at = 1; at <= all; at++) {
        teardown(state), setup(state);
        calls = 0, fail_at = at, fail_with = EIO;
        int rc = use(&acknowledged);
        assert_true(rc == FAULT_IO || rc == 0);
        harmless += rc == 0;
        teardown(state), setup(state);
        if (rc < 0) a_failure_at(at, EIO, FAULT_IO);
        teardown(state), setup(state);
        if (rc < 0) a_failure_at(at, ENOSPC, FAULT_DISK_FULL);
    }
    teardown(state), setup(state);
    disk_is_full = true; // LMDB says EIO of a write that was cut short
    a_failure_at(all, EIO, FAULT_DISK_FULL);
    disk_is_full = false;
    assert_int_equal(harmless, 1);
}

TESTS(LEDGER_TEST(a_failing_call_is_an_error_or_harmless))
