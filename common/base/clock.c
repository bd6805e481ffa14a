// The two clocks of the kernel. A clock that cannot be read is our own mistake: the process ends.
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include <time.h>

static struct timespec read_clock(clockid_t clock)
{
    struct timespec now;
    ensure(clock_gettime(clock, &now) == 0);
    return now;
}

static uint64_t ms_of(struct timespec at)
{
    return (uint64_t)at.tv_sec * 1000 + (uint64_t)at.tv_nsec / 1000000;
}

uint64_t clock_ms(void) { return ms_of(read_clock(CLOCK_MONOTONIC)); }

uint64_t clock_us(void)
{
    const struct timespec now = read_clock(CLOCK_MONOTONIC);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

double clock_s(void)
{
    const struct timespec now = read_clock(CLOCK_MONOTONIC);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

uint64_t clock_unix_ms(void) { return ms_of(read_clock(CLOCK_REALTIME)); }
