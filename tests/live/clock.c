// clock -- shifts the wall clock of a process by the number of seconds in a file. Loaded with
// LD_PRELOAD:
//
//     SHOAL_CLOCK=FILE shoal-trainer ...          FILE: one int64_t, which may change at any time
//
// Only what a wrong NTP server or an operator can change: CLOCK_MONOTONIC is not touched.

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *off_by_s;

__attribute__((constructor)) static void map_file(void)
{
    const char *file = getenv("SHOAL_CLOCK");
    int fd = file ? open(file, O_RDONLY | O_CLOEXEC) : -1;
    void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *off_by_s, PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    if (map != MAP_FAILED) off_by_s = map;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    long rc = syscall(SYS_clock_gettime, clock, now);
    if (rc == 0 && clock == CLOCK_REALTIME && off_by_s) now->tv_sec += *off_by_s;
    return (int)rc;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec precise;
    (void)zone;
    int rc = clock_gettime(CLOCK_REALTIME, &precise);
    if (rc == 0) *now = (struct timeval){ precise.tv_sec, precise.tv_nsec / 1000 };
    return rc;
}

time_t time(time_t *ret_now)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (ret_now) *ret_now = now.tv_sec;
    return now.tv_sec;
}
