// A mapping of each file is kept for as long as the process lives; a next bed has other files.

#include "tests/live/seen_steps.h"
#include "common/base/ensure.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { POLL_MS = 20 };

static struct seen {
    char path[320];
    const struct step_times *times;
} seen[TESTBED_ACTORS_MAX];

static void path_of(const struct testbed *bed, unsigned trainer, char path[320])
{
    snprintf(path, 320, "%s/trainer%u.steps", bed->dir, trainer);
}

void seen_start(struct testbed *bed, unsigned trainer)
{
    char preload[400], choice[400], path[320];
    path_of(bed, trainer, path);
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s/../live/step_times.so", bed->live);
    snprintf(choice, sizeof choice, "SHOAL_STEP_TIMES=%s", path);
    testbed_start_with(
        bed, testbed_trainer(trainer),
        &(struct testbed_launch){ .env = (const char *const[]){ preload, choice, NULL } });
}

const struct step_times *seen_steps(struct testbed *bed, unsigned trainer)
{
    char path[320];
    path_of(bed, trainer, path);
    if (strcmp(seen[trainer].path, path) == 0) return seen[trainer].times;
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    ensure(fd >= 0 && ftruncate(fd, sizeof(struct step_times)) == 0);
    void *map = mmap(NULL, sizeof(struct step_times), PROT_READ, MAP_SHARED, fd, 0);
    ensure(map != MAP_FAILED);
    close(fd);
    memcpy(seen[trainer].path, path, sizeof path);
    seen[trainer].times = map;
    return map;
}

// The first step that was begun after that instant; 0: none is applied.
static uint64_t first_after(const struct step_times *times, uint64_t after_us)
{
    const uint64_t applied = atomic_load(&times->applied);
    uint64_t found_us = 0;
    for (uint64_t i = applied; i > 0 && applied - i < STEP_TIMES_MAX - 1; i--) {
        const uint64_t at = (i - 1) % STEP_TIMES_MAX;
        if (times->begun_us[at] <= after_us) break;
        found_us = times->applied_us[at];
    }
    return found_us;
}

uint64_t seen_all(struct testbed *bed, unsigned trainers, uint64_t after_us)
{
    uint64_t last_us = 0;
    for (unsigned i = 0; i < TESTBED_ACTORS_MAX; i++) {
        if (!(trainers >> i & 1)) continue;
        const uint64_t at_us = first_after(seen_steps(bed, i), after_us);
        if (at_us == 0) return 0;
        if (at_us > last_us) last_us = at_us;
    }
    return last_us;
}

struct awaited {
    unsigned trainers;
    uint64_t after_us;
};

static bool have_applied(struct testbed *bed, const void *arg)
{
    const struct awaited *awaited = arg;
    return seen_all(bed, awaited->trainers, awaited->after_us) != 0;
}

uint64_t seen_await(struct testbed *bed, unsigned trainers, uint64_t after_us, uint64_t timeout_ms,
                    const char *what)
{
    const struct awaited awaited = { trainers, after_us };
    for (uint64_t waited_ms = 0; waited_ms < timeout_ms; waited_ms += POLL_MS)
        if (testbed_wait(bed, have_applied, &awaited, POLL_MS))
            return seen_all(bed, trainers, after_us);
    testbed_fail(bed, "%s did not come within %u ms", what, (unsigned)timeout_ms);
}

unsigned seen_gaps(struct testbed *bed, unsigned trainer, uint64_t from_us, uint64_t to_us,
                   double *ret_us, unsigned max)
{
    const struct step_times *times = seen_steps(bed, trainer);
    const uint64_t applied = atomic_load(&times->applied);
    unsigned count = 0;
    for (uint64_t i = applied; i > 1 && applied - i < STEP_TIMES_MAX - 2 && count < max; i--) {
        const uint64_t at_us = times->applied_us[(i - 1) % STEP_TIMES_MAX];
        if (at_us < from_us) break;
        if (at_us < to_us)
            ret_us[count++] = (double)(at_us - times->applied_us[(i - 2) % STEP_TIMES_MAX]);
    }
    return count;
}

unsigned seen_links_port(struct testbed *bed, unsigned trainer)
{
    char rest[200] = "";
    ensure(testbed_log_has(bed, testbed_trainer(trainer), "learner.links endpoint=", rest,
                           sizeof rest));
    const char *colon = strrchr(rest, ':');
    ensure(colon);
    return (unsigned)atoi(colon + 1);
}
