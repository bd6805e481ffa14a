// step_times -- loaded with LD_PRELOAD. One thread, the learner's, passes these places.

#include "tests/live/step_times.h"
#include "common/base/failpoint.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static struct step_times *times;

__attribute__((constructor)) static void map_file(void)
{
    const char *path = getenv("SHOAL_STEP_TIMES");
    const int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644) : -1;
    if (fd < 0) return;
    void *map = MAP_FAILED;
    if (ftruncate(fd, sizeof *times) == 0)
        map = mmap(NULL, sizeof *times, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED) times = map;
    close(fd);
}

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

int failpoint_reached(const char *name)
{
    if (!times) return 0;
    const uint64_t number = atomic_load(&times->applied), at = number % STEP_TIMES_MAX;
    if (strcmp(name, "learner_train") == 0) times->begun_us[at] = now_us();
    if (strcmp(name, "learner_applied") == 0) {
        times->applied_us[at] = now_us();
        atomic_store(&times->applied, number + 1);
    }
    return 0;
}
