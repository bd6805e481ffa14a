// saver_bench -- how long the work waits for a save of its share (common/checkpoint/saver.h),
// beside a memcpy of the same bytes.
//
//     make bench T=saver_bench                    96 MiB: a quarter of 32 M parameters with AdamW; 15 turns
//     build/bench/saver_bench MIB TURNS FOLDER
//
// In turns: a memcpy to memory that was written before, then saver_take, then a wait until the save
// is written, so that the disk does not slow the next memcpy. Before either, other memory is
// written, as a step of training does: neither finds anything in a cache. Medians. The three parts
// of a share are parameters and AdamW's two moments.

#include "common/base/ensure.h"
#include "common/checkpoint/saver.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TURNS_MAX = 200, PARTS = 3, OTHER = 1 << 30 };

static const double AIM = 1.1; // The longest wait, by a memcpy

static struct why why;

static void must(int rc)
{
    if (rc < 0) exit(fault_exit(rc, &why));
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

// More than any cache has.
static void work(uint8_t *other)
{
    static uint8_t round;
    memset(other, ++round, OTHER);
    __asm__ volatile("" : : "r"(other) : "memory"); // It is read
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *times, size_t count)
{
    qsort(times, count, sizeof *times, compare);
    return times[count / 2];
}

int main(int argc, char **argv)
{
    static const char *const names[PARTS] = { "parameters", "adamw-m", "adamw-v" };
    const uint64_t mib = argc > 1 ? strtoull(argv[1], NULL, 10) : 96;
    const size_t turns = argc > 2 ? strtoull(argv[2], NULL, 10) : 15;
    const char *temporary = getenv("TMPDIR");
    char root[512], command[600];
    snprintf(root, sizeof root, "%s/saver-bench-XXXXXX",
             argc > 3    ? argv[3]
             : temporary ? temporary
                         : P_tmpdir);
    if (mib < 1 || mib > 1 << 20 || turns < 1 || turns > TURNS_MAX || !mkdtemp(root)) {
        fprintf(stderr, "saver_bench: MIB 1..1048576, TURNS 1..%d, a FOLDER to write to\n",
                TURNS_MAX);
        return 64;
    }
    const uint64_t bytes = (mib << 20) / PARTS / 4 * 4 * PARTS;
    uint8_t *state = malloc(bytes), *copy = malloc(bytes), *other = malloc(OTHER);
    ensure(state && copy && other);
    for (uint64_t i = 0; i < bytes; i++) state[i] = (uint8_t)(i * 2654435761u >> 7);
    memset(copy, 1, bytes);

    saver_t *saver;
    const struct saver_options options = {
        .root = root, .run = "bench", .born_unix_ms = 1, .bytes = bytes, .keep = 1
    };
    must(saver_new(&options, &why, &saver));
    double copies[TURNS_MAX], takes[TURNS_MAX], writes[TURNS_MAX];
    for (size_t turn = 0; turn < turns; turn++) {
        struct pieces_part parts[PARTS];
        struct saver_result result;
        const struct pieces_save save = { .step = turn + 1, .attempt = 1, .workers = 1 };
        for (size_t i = 0; i < PARTS; i++)
            parts[i] = (struct pieces_part){ names[i], TAG_RESHARD, 4, bytes / PARTS / 4,
                                             state + bytes / PARTS * i };
        work(other);
        double from = now_ms();
        memcpy(copy, state, bytes);
        __asm__ volatile("" : : "r"(copy) : "memory"); // It is read
        copies[turn] = now_ms() - from;
        work(other);
        from = now_ms();
        must(saver_take(saver, &save, parts, PARTS, &why));
        takes[turn] = now_ms() - from;
        ensure(saver_wait(saver, &result));
        why = result.why;
        must(result.rc);
        writes[turn] = (double)result.write_us / 1e3;
    }
    saver_destroy(&saver);
    snprintf(command, sizeof command, "rm -rf %s", root);
    ensure(system(command) == 0);
    const double copied = median(copies, turns), took = median(takes, turns);
    printf(
        "%.0f MiB, %zu turns: memcpy %.2f ms, saver_take %.2f ms, ratio %.3f (aim %.1f); the save "
        "is whole after %.0f ms\n",
        (double)bytes / (1 << 20), turns, copied, took, took / copied, AIM, median(writes, turns));
    free(state);
    free(copy);
    free(other);
    return took / copied > AIM;
}
