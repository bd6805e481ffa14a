// cuts -- the power goes at any instant. Every write and sync of a ledger's life is recorded; an
// image is what the disk may hold after a cut: all that a sync or a synchronous write had
// confirmed, and of each later write nothing, all, its beginning, or any of its sectors of 512
// bytes.
//
// LMDB's calls come here first: the linker prefers a program's own functions to those of the C
// library. A second kind of image tears the write of the meta page inside its sector, which disks
// promise not to do: LMDB cannot always survive that, and then the hash chain detects it.

#include "tests/storage/storm.h"
#include "common/base/ensure.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    OPS_MAX = 512,
    FILE_MAX = 4 << 20,
    SECTOR = 512,
    WORD = 8,
    PER_INSTANT = 24,
    COMMITS_MAX = 14
};

struct op {
    enum { WRITE, SYNCED_WRITE, SYNC } kind;
    size_t at, count;
    uint8_t *bytes;
    struct position confirmed; // As it was when the call was made
};

static struct op ops[OPS_MAX];
static unsigned ops_count;
static bool recording;
static struct position confirmed;
static char data[320];

// ---- recording ----------------------------------------------------------------------------------

static bool is_data(int fd)
{
    struct stat file, named;
    return recording && fstat(fd, &file) == 0 && stat(data, &named) == 0 &&
           file.st_ino == named.st_ino && file.st_dev == named.st_dev;
}

static void record(int fd, const void *bytes, size_t count, off_t at)
{
    if (!is_data(fd)) return;
    ensure(ops_count < OPS_MAX && (size_t)at + count <= FILE_MAX);
    struct op *op = &ops[ops_count++];
    *op = (struct op){ .kind = fcntl(fd, F_GETFL) & O_DSYNC ? SYNCED_WRITE : WRITE,
                       .at = (size_t)at,
                       .count = count,
                       .bytes = malloc(count),
                       .confirmed = confirmed };
    ensure(op->bytes);
    memcpy(op->bytes, bytes, count);
}

static void record_parts(int fd, const struct iovec *parts, int count, off_t at)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += parts[i].iov_len;
    uint8_t *whole = malloc(bytes + 1), *to = whole;
    ensure(whole);
    for (int i = 0; i < count; to += parts[i++].iov_len)
        memcpy(to, parts[i].iov_base, parts[i].iov_len);
    record(fd, whole, bytes, at);
    free(whole);
}

static void record_sync(int fd)
{
    if (!is_data(fd)) return;
    ensure(ops_count < OPS_MAX);
    ops[ops_count++] = (struct op){ .kind = SYNC, .confirmed = confirmed };
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at)
{
    record(fd, bytes, count, at);
    return syscall(SYS_pwrite64, fd, bytes, count, at);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    record_parts(fd, parts, count, lseek(fd, 0, SEEK_CUR));
    return syscall(SYS_writev, fd, parts, (long)count);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at)
{
    record_parts(fd, parts, count, at);
    return syscall(SYS_pwritev, fd, parts, (long)count, (long)at, 0l);
}

int fdatasync(int fd) { return record_sync(fd), 0; }
int fsync(int fd) { return record_sync(fd), 0; }

static void live(const char *dir, uint64_t seed)
{
    struct ledger_options options = { .map_bytes_start = 1 << 20 };
    struct ledger *ledger;
    struct why why;
    uint64_t prng = seed, commits = 4 + storm_roll(&prng, COMMITS_MAX - 4);
    confirmed = (struct position){ 0 };
    recording = true;
    ensure(ledger_open(dir, "storm", &options, &why, &ledger) == 0);
    for (uint64_t i = 0; i < commits; i++) {
        ensure(storm_commit(ledger, seed, &prng, &why, &confirmed) == 0);
        if (storm_roll(&prng, 5)) continue;
        ledger_close(&ledger); // Another life, another incarnation
        ensure(ledger_open(dir, "storm", &options, &why, &ledger) == 0);
    }
    ledger_close(&ledger);
    recording = false;
}

// ---- images -------------------------------------------------------------------------------------

struct image {
    uint8_t *bytes;
    size_t count;
};

static void put(struct image *image, const struct op *op, size_t from, size_t count)
{
    memcpy(image->bytes + op->at + from, op->bytes + from, count);
    if (op->at + from + count > image->count) image->count = op->at + from + count;
}

// Any of the write's pieces; a piece ends where the file's next sector (or word) begins.
static void put_some(struct image *image, const struct op *op, size_t piece, uint64_t *prng)
{
    for (size_t from = 0, count; from < op->count; from += count) {
        count = piece - (op->at + from) % piece;
        if (count > op->count - from) count = op->count - from;
        if (storm_roll(prng, 2)) put(image, op, from, count);
    }
}

static void put_perhaps(struct image *image, const struct op *op, uint64_t *prng)
{
    size_t sectors = (op->count + SECTOR - 1) / SECTOR;
    switch (storm_roll(prng, 4)) {
    case 0: break;
    case 1: put(image, op, 0, op->count); break;
    case 2: {
        size_t count = storm_roll(prng, sectors + 1) * SECTOR; // A sector is whole or not there
        size_t first = SECTOR - op->at % SECTOR;
        if (count > 0) count = first + count - SECTOR;
        put(image, op, 0, count < op->count ? count : op->count);
        break;
    }
    default: put_some(image, op, SECTOR, prng);
    }
}

static void lay_down(const char *dir, const struct image *image)
{
    int fd = open(data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ensure(fd >= 0 && chdir(dir) == 0);
    ensure(syscall(SYS_pwrite64, fd, image->bytes, image->count, 0l) == (long)image->count);
    close(fd);
}

static bool is_meta(const struct op *op) { return op->kind == SYNCED_WRITE; }

// What the disk may hold if the power goes while call `now` is under way.
static void cut_at(const char *dir, uint64_t seed, unsigned now, unsigned synced,
                   const struct image *durable, bool tear, uint64_t *prng, struct tally *tally)
{
    static uint8_t bytes[FILE_MAX];
    struct image image = { bytes, durable->count };
    memset(bytes, 0, FILE_MAX);
    memcpy(bytes, durable->bytes, durable->count);
    for (unsigned i = synced; i < now; i++)
        if (ops[i].kind == WRITE) put_perhaps(&image, &ops[i], prng);
        else if (ops[i].kind == SYNCED_WRITE) put(&image, &ops[i], 0, ops[i].count);
    if (tear) put_some(&image, &ops[now], WORD, prng);
    else if (ops[now].kind != SYNC) put_perhaps(&image, &ops[now], prng);
    lay_down(dir, &image);
    if (tear) storm_judge_apart(dir, seed, &ops[now].confirmed, tally);
    else storm_judge(dir, seed, &ops[now].confirmed, false, tally);
}

static void cut_life(const char *dir, uint64_t seed, uint64_t *left, uint64_t *prng,
                     struct tally *whole, struct tally *torn)
{
    static uint8_t bytes[FILE_MAX];
    struct image durable = { bytes, 0 };
    unsigned synced = 0;
    memset(bytes, 0, FILE_MAX);
    for (unsigned now = 0; now<ops_count && * left> 0; now++) {
        for (int i = 0; i<PER_INSTANT && * left> 0; i++, --*left)
            cut_at(dir, seed, now, synced, &durable, false, prng, whole);
        for (int i = 0; i < PER_INSTANT / 8 && is_meta(&ops[now]); i++)
            cut_at(dir, seed, now, synced, &durable, true, prng, torn);
        if (ops[now].kind != SYNC) continue;
        for (; synced <= now; synced++)
            if (ops[synced].kind != SYNC) put(&durable, &ops[synced], 0, ops[synced].count);
    }
}

void storm_cuts(uint64_t images, uint64_t seed, struct tally *ret_whole, struct tally *ret_torn)
{
    char dir[256];
    uint64_t prng = seed;
    struct tally *torn =
        mmap(NULL, sizeof *torn, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ensure(torn != MAP_FAILED);
    while (images > 0) {
        storm_make_dir(dir);
        snprintf(data, sizeof data, "%s/data.mdb", dir);
        live(dir, ++seed);
        cut_life(dir, seed, &images, &prng, ret_whole, torn);
        for (unsigned i = 0; i < ops_count; i++) free(ops[i].bytes);
        ops_count = 0;
        ensure(chdir("/") == 0);
        storm_remove_dir(dir);
    }
    *ret_torn = *torn;
    munmap(torn, sizeof *torn);
}
