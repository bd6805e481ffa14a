// quota_of FRACTION PID -- gives a process a fraction of a processor (actors/shoal/local/quota.h) until SIGTERM. For
// benchmarks, where no control group may be made.

#include "actors/shoal/local/quota.h"
#include "common/base/clock.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>

static volatile sig_atomic_t ends;

static void end(int signal)
{
    (void)signal;
    ends = 1;
}

int main(int argc, char **argv)
{
    const double fraction = argc == 3 ? strtod(argv[1], NULL) : 0;
    const pid_t pid = argc == 3 ? (pid_t)strtol(argv[2], NULL, 10) : 0;
    if (!(fraction > 0 && fraction <= 64) || pid <= 1)
        return fprintf(stderr, "usage: quota_of FRACTION PID (0.25: a quarter of a processor)\n"),
               64;
    signal(SIGTERM, end);
    struct quota quota = { .fraction = fraction };
    while (!ends && kill(pid, 0) == 0) {
        const uint64_t now_ms = clock_ms(), due_ms = quota_tick(&quota, pid, clock_us());
        const uint64_t wait_ms = due_ms > now_ms ? due_ms - now_ms : 1;
        const struct timespec wait = { .tv_nsec = (long)(wait_ms < 100 ? wait_ms : 100) * 1000000 };
        nanosleep(&wait, NULL);
    }
    quota_lift(&quota, pid);
    return 0;
}
