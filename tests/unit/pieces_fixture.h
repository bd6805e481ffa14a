#pragma once
// pieces_fixture -- a folder for saves of pieces per test. In memory where there is some: what is tested
// is the order of deeds, and a disk takes its time to fsync.

#include "common/checkpoint/pieces.h"
#include "tests/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char root[256];
static struct why why;

static inline int set_up(void **unused)
{
    (void)unused;
    snprintf(root, sizeof root, "%s/pieces-test-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : P_tmpdir);
    assert_non_null(mkdtemp(root));
    return 0;
}

static inline int tear_down(void **unused)
{
    char line[300];
    (void)unused;
    snprintf(line, sizeof line, "rm -rf %s", root);
    assert_int_equal(system(line), 0);
    return 0;
}

static inline struct pieces_save save_of(uint64_t step, uint32_t attempt, uint32_t worker,
                                         uint32_t workers)
{
    return (struct pieces_save){ .root = root,
                                 .run = "a",
                                 .born_unix_ms = 7,
                                 .step = step,
                                 .attempt = attempt,
                                 .spare = UINT64_MAX,
                                 .worker = worker,
                                 .workers = workers };
}

static inline int clean(uint64_t step, uint32_t attempt, unsigned keep, uint64_t spare)
{
    struct pieces_save save = save_of(step, attempt, 0, 1);
    save.spare = spare;
    return pieces_clean(&save, keep, &why);
}

// What this process has read so far, by the kernel's count. Reading the count reads some, too.
enum { COUNT_BYTES = 256 };
static inline uint64_t bytes_read(void)
{
    char line[128];
    uint64_t count = 0;
    FILE *file = fopen("/proc/self/io", "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) (void)!sscanf(line, "rchar: %" SCNu64, &count);
    fclose(file);
    return count;
}
