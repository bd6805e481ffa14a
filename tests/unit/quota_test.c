// quota_test -- a child that computes without end gets the fraction of a processor that it may have, and no more;
// without its quota it goes on.

#include "actors/shoal/local/quota.c" // The front command's own parts are in no library
#include "common/base/clock.h"
#include "tests/test.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t start_child(void)
{
    const pid_t pid = fork();
    assert_true(pid >= 0);
    for (volatile unsigned i = 0; pid == 0; i++) continue;
    return pid;
}

static void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

// Until this time. A machine that has other work gives it less, never more.
static void run(struct quota *quota, pid_t pid, uint64_t until_ms)
{
    while (clock_ms() < until_ms) {
        const uint64_t due_ms = quota_tick(quota, pid, clock_us()), now_ms = clock_ms();
        assert_true(due_ms > now_ms - 1 && due_ms <= now_ms + 1000);
        if (due_ms > now_ms) poll(NULL, 0, (int)(due_ms - now_ms));
    }
}

static void a_child_gets_its_fraction_and_no_more(void **state)
{
    const pid_t pid = start_child();
    struct quota quota = { .fraction = 0.2 };
    const uint64_t began_us = clock_us(), before_us = spent_us(pid, 0);
    (void)state;
    run(&quota, pid, clock_ms() + 700);
    const uint64_t took_us = clock_us() - began_us, used_us = spent_us(pid, 0) - before_us;
    print_message("# used %.3f of a processor\n", (double)used_us / (double)took_us);
    assert_true(used_us > 0 && used_us < took_us / 2); // A look may come late
    quota_lift(&quota, pid);
    assert_int_equal(quota_tick(&quota, pid, clock_us()), UINT64_MAX);
    for (const uint64_t used = spent_us(pid, 0); spent_us(pid, 0) == used;) continue; // It goes on
    end_child(pid);
}

static void another_process_begins_anew(void **state)
{
    const pid_t first = start_child();
    struct quota quota = { .fraction = 0.05 };
    (void)state;
    while (!quota.stopped) run(&quota, first, clock_ms() + 20);
    end_child(first);
    const pid_t second = start_child();
    quota_tick(&quota, second, clock_us());
    assert_true(quota.pid == second && !quota.stopped);
    end_child(second);
    assert_int_equal(quota_tick(&quota, 0, clock_us()), UINT64_MAX); // It does not run
}

TESTS(TEST(a_child_gets_its_fraction_and_no_more), TEST(another_process_begins_anew))
