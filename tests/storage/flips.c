// flips -- one bit of a ledger or of a blob is flipped on the disk. A later read returns what was
// written or refuses it, and never returns anything else.

#include "tests/storage/storm.h"
#include "common/base/ensure.h"
#include "common/bulk/blob_store.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COMMITS = 40, PER_LEDGER = 500, BLOB_BYTES = 20000 };

static uint8_t *read_all(const char *path, size_t *ret_count)
{
    struct stat stat;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ensure(fd >= 0 && fstat(fd, &stat) == 0);
    uint8_t *bytes = malloc((size_t)stat.st_size);
    ensure(bytes && read(fd, bytes, (size_t)stat.st_size) == stat.st_size);
    close(fd);
    *ret_count = (size_t)stat.st_size;
    return bytes;
}

static void write_all(const char *path, const uint8_t *bytes, size_t count)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ensure(fd >= 0 && write(fd, bytes, count) == (ssize_t)count);
    close(fd);
}

static void flip_one_ledger(uint64_t flips, uint64_t seed, struct tally *tally)
{
    char dir[256], path[300];
    struct ledger *ledger;
    struct why why;
    struct position known = { 0 };
    uint64_t prng = seed;
    size_t count;
    storm_make_dir(dir);
    snprintf(path, sizeof path, "%s/data.mdb", dir);
    ensure(ledger_open(dir, "storm", NULL, &why, &ledger) == 0);
    for (int i = 0; i < COMMITS; i++) ensure(storm_commit(ledger, seed, &prng, &why, &known) == 0);
    ledger_close(&ledger);
    uint8_t *bytes = read_all(path, &count);
    for (uint64_t i = 0; i < flips; i++) {
        const size_t at = storm_roll(&prng, count);
        const uint8_t bit = (uint8_t)(1u << storm_roll(&prng, 8));
        bytes[at] ^= bit;
        write_all(path, bytes, count);
        storm_judge_apart(dir, seed, &known, tally);
        bytes[at] ^= bit;
    }
    free(bytes);
    storm_remove_dir(dir);
}

void storm_flip_ledgers(uint64_t flips, uint64_t seed, struct tally *ret_tally)
{
    struct tally *tally =
        mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ensure(tally != MAP_FAILED);
    for (uint64_t done = 0; done < flips; done += PER_LEDGER)
        flip_one_ledger(flips - done < PER_LEDGER ? flips - done : PER_LEDGER, ++seed, tally);
    *ret_tally = *tally;
    munmap(tally, sizeof *tally);
}

void storm_flip_blobs(uint64_t flips, uint64_t seed, struct tally *tally)
{
    char dir[256], path[400];
    uint8_t bytes[BLOB_BYTES];
    uint64_t prng = seed;
    struct why why;
    storm_make_dir(dir);
    snprintf(path, sizeof path, "%s/spool.0", dir);
    const struct blob_store_options options = { .dir = dir, .lazy = true };
    for (uint64_t i = 0; i < flips; i++) {
        blob_store_t *store;
        struct blob_ref ref = { 0 };
        struct hash name;
        const size_t count = 1 + storm_roll(&prng, BLOB_BYTES);
        size_t in_file;
        for (size_t n = 0; n < count; n++) bytes[n] = (uint8_t)storm_roll(&prng, 256);
        ensure(blob_store_new(&options, &why, &store) == 0);
        ensure(blob_store_put(store, bytes, count, &why, &name) == 0);
        blob_store_destroy(&store);
        uint8_t *file = read_all(path, &in_file);
        file[storm_roll(&prng, in_file)] ^= (uint8_t)(1u << storm_roll(&prng, 8));
        write_all(path, file, in_file);
        free(file);
        ensure(blob_store_new(&options, &why, &store) == 0);
        tally->trials++;
        int rc = blob_store_get(store, &name, &why, &ref);
        const bool is_refused = rc == FAULT_CORRUPT || rc == FAULT_NOT_FOUND;
        tally->refused += is_refused;
        tally->lost += !is_refused;
        if (rc == 0) blob_store_release(&ref);
        blob_store_destroy(&store);
        unlink(path); // The next one is in spool.0 again
    }
    storm_remove_dir(dir);
}
