// reshard_bench -- what it costs to load a state that OLD workers have saved as NEW workers, and to
// save it again: as pieces (common/checkpoint/pieces.h), beside reading and writing the same bytes
// once.
//
//     make bench T=reshard_bench                  4 GiB, 8 to 6 workers, 3 turns
//     build/bench/reshard_bench MIB OLD NEW TURNS FOLDER
//
// Each worker is a process; all of a world run at once. Pieces: each new worker opens the save,
// reads its share from the pieces that have some of it, each leaf checked, writes it as a piece of
// the next save, each leaf hashed, and makes it durable; one seals. Plain: each reads its share of
// one file into memory and writes it to a file of its own, with fsync. Before each, the files to be
// read are put out of the page cache. In turns; medians. Memory is the largest resident set of a
// new worker, less its share.

#include "common/base/ensure.h"
#include "common/checkpoint/pieces.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TURNS_MAX = 20, BLOCK = 1 << 20 };

static const double RATIO_AIM = 1.3, BESIDE_AIM_MIB = 64;

static struct why why;
static char root[512];
static uint64_t floats;
static uint32_t old_workers = 8, new_workers = 6;

static void must(int rc)
{
    if (rc < 0) exit(fault_exit(rc, &why));
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct pieces_save save_of(uint64_t step, uint32_t worker, uint32_t workers)
{
    return (struct pieces_save){ .root = root,
                                 .run = "bench",
                                 .born_unix_ms = 1,
                                 .step = step,
                                 .attempt = 1,
                                 .worker = worker,
                                 .workers = workers };
}

static float *take(struct interval at)
{
    float *values = malloc(interval_length(at) * sizeof *values);
    ensure(values);
    return values;
}

// ---- the deeds of a worker ----------------------------------------------------------------------

static void write_pieces(uint64_t step, uint32_t worker, uint32_t workers, const float *values)
{
    const struct pieces_save save = save_of(step, worker, workers);
    const struct pieces_part part = { "m", TAG_RESHARD, sizeof(float),
                                      interval_length(interval_share(floats, worker, workers)),
                                      values };
    must(pieces_write(&save, &part, 1, &why));
}

static void begin_as_old(uint32_t worker)
{
    const struct interval at = interval_share(floats, worker, old_workers);
    float *values = take(at);
    for (uint64_t i = at.begin; i < at.end; i++) values[i - at.begin] = (float)(i % 16777216);
    write_pieces(1, worker, old_workers, values);
}

static void reshard(uint32_t worker)
{
    const struct interval at = interval_share(floats, worker, new_workers);
    float *values = take(at);
    pieces_t *pieces;
    must(pieces_open(root, 1, "bench", &why, &pieces));
    must(pieces_read(pieces, pieces_find(pieces, "m"), at, values, &why));
    ensure(values[0] == (float)(at.begin % 16777216));
    pieces_close(&pieces);
    write_pieces(2, worker, new_workers, values);
}

static void move(int fd, bool in, uint8_t *bytes, uint64_t count, uint64_t offset)
{
    for (uint64_t done = 0; done < count;) {
        const size_t block = count - done < BLOCK ? (size_t)(count - done) : BLOCK;
        const ssize_t n = in ? pread(fd, bytes + done, block, (off_t)(offset + done))
                             : write(fd, bytes + done, block);
        ensure(n > 0);
        done += (uint64_t)n;
    }
}

static int open_in_root(const char *name, int flags)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", root, name);
    const int fd = open(path, flags | O_CLOEXEC, 0600);
    ensure(fd >= 0);
    return fd;
}

static void copy_plainly(uint32_t worker)
{
    const struct interval at = interval_share(floats, worker, new_workers);
    const uint64_t bytes = interval_length(at) * sizeof(float);
    float *values = take(at);
    char name[32];
    int fd = open_in_root("plain", O_RDONLY);
    move(fd, true, (uint8_t *)values, bytes, at.begin * sizeof(float));
    close(fd);
    snprintf(name, sizeof name, "copy-%u", worker);
    fd = open_in_root(name, O_WRONLY | O_CREAT | O_TRUNC);
    move(fd, false, (uint8_t *)values, bytes, 0);
    ensure(fsync(fd) == 0);
    close(fd);
}

static void begin_plainly(uint32_t worker)
{
    const struct interval at = interval_share(floats, worker, old_workers);
    float *values = take(at);
    for (uint64_t i = 0; i < interval_length(at); i++) values[i] = (float)(i % 16777216);
    const int fd = open_in_root("plain", O_WRONLY | O_CREAT);
    ensure(lseek(fd, (off_t)(at.begin * sizeof(float)), SEEK_SET) >= 0);
    move(fd, false, (uint8_t *)values, interval_length(at) * sizeof(float), 0);
    ensure(fsync(fd) == 0);
    close(fd);
}

// ---- worlds -------------------------------------------------------------------------------------

// All workers of a world at once. Returns the largest resident set of one, in bytes.
static uint64_t run_world(void (*deed)(uint32_t worker), uint32_t workers)
{
    uint64_t most = 0;
    for (uint32_t w = 0; w < workers; w++) {
        const pid_t child = fork();
        ensure(child >= 0);
        if (child) continue;
        deed(w);
        _exit(0);
    }
    for (uint32_t w = 0; w < workers; w++) {
        struct rusage use;
        int status;
        ensure(wait4(-1, &status, 0, &use) > 0 && status == 0);
        if ((uint64_t)use.ru_maxrss * 1024 > most) most = (uint64_t)use.ru_maxrss * 1024;
    }
    return most;
}

static void seal(uint64_t step, uint32_t workers)
{
    uint32_t missing;
    const struct pieces_save save = save_of(step, 0, workers);
    must(pieces_seal(&save, &why, &missing));
    ensure(missing == workers);
}

// Puts the files of a folder out of the page cache. They are durable, so that they can go.
static void forget(const char *folder)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", root, folder);
    DIR *list = opendir(path);
    ensure(list);
    for (const struct dirent *entry; (entry = readdir(list));) {
        const int fd = openat(dirfd(list), entry->d_name, O_RDONLY | O_CLOEXEC);
        if (fd < 0) continue;
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
    closedir(list);
}

static void remove_in_root(const char *what)
{
    char line[700];
    snprintf(line, sizeof line, "rm -rf %s/%s", root, what);
    ensure(system(line) == 0);
}

static double measure_pieces(uint64_t *ret_most)
{
    remove_in_root("step-00000002*");
    forget("step-00000001");
    const double began = now_s();
    *ret_most = run_world(reshard, new_workers);
    seal(2, new_workers);
    return now_s() - began;
}

static double measure_plain(void)
{
    remove_in_root("copy-*");
    forget(".");
    const double began = now_s();
    run_world(copy_plainly, new_workers);
    return now_s() - began;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *numbers, unsigned count)
{
    qsort(numbers, count, sizeof *numbers, by_size);
    return numbers[count / 2];
}

int main(int argc, char **argv)
{
    const uint64_t mib = argc > 1 ? strtoull(argv[1], NULL, 10) : 4096;
    if (argc > 2) old_workers = (uint32_t)atoi(argv[2]);
    if (argc > 3) new_workers = (uint32_t)atoi(argv[3]);
    const unsigned turns = argc > 4 ? (unsigned)atoi(argv[4]) : 3;
    const char *temporary = getenv("TMPDIR");
    const char *folder = argc > 5 ? argv[5] : temporary ? temporary : P_tmpdir;
    if (mib < 1 || old_workers < 1 || new_workers < 1 || turns < 1 || turns > TURNS_MAX)
        return fprintf(stderr, "usage: reshard_bench MIB OLD NEW TURNS FOLDER\n"), 64;
    snprintf(root, sizeof root, "%s/reshard-XXXXXX", folder);
    ensure(mkdtemp(root));
    floats = mib << 18;
    fprintf(stderr, "%" PRIu64 " MiB in %s: written twice first, by %u workers\n", mib, root,
            old_workers);
    run_world(begin_as_old, old_workers);
    seal(1, old_workers);
    run_world(begin_plainly, old_workers);
    double ours[TURNS_MAX], plain[TURNS_MAX], ratios[TURNS_MAX];
    uint64_t most = 0, share = interval_length(interval_share(floats, 0, new_workers)) * 4;
    for (unsigned turn = 0; turn < turns; turn++) {
        uint64_t now;
        plain[turn] = measure_plain();
        ours[turn] = measure_pieces(&now);
        ratios[turn] = ours[turn] / plain[turn];
        if (now > most) most = now;
        fprintf(stderr, "turn %u/%u: pieces %.2f s, plain %.2f s\n", turn + 1, turns, ours[turn],
                plain[turn]);
    }
    remove_in_root("");
    const double ratio = median(ratios, turns), beside = ((double)most - (double)share) / 1048576;
    printf("%" PRIu64 " MiB, %u to %u workers: pieces %.2f s, one read and one write %.2f s, ratio "
           "%.2f (aim %.1f); a worker's memory is its share and %.1f MiB (aim %.0f)\n",
           mib, old_workers, new_workers, median(ours, turns), median(plain, turns), ratio,
           RATIO_AIM, beside, BESIDE_AIM_MIB);
    return ratio > RATIO_AIM || beside > BESIDE_AIM_MIB;
}
