// The blob store: references, threads, the directory, pins and the stage.
#include "common/base/failpoint.h"
#include "common/bulk/blob_spool.h"
#include "common/bulk/blob_store.h"
#include "common/crypto/merkle.h"
#include "tests/test.h"
#include "tests/unit/pin_fixture.h"
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LISTED_MAX = 8192 };

static struct why why;

// Stores with a directory are lazy in some tests. Fsyncs are counted, and a call may be made to fail.
static bool is_lazy;
static atomic_uint syncs, name_syncs;
static _Atomic(const char *) fails; // Once

int failpoint_reached(const char *name)
{
    if (strcmp(name, "spool_sync") == 0) syncs++;
    if (strcmp(name, "spool_sync_dir") == 0) name_syncs++;
    if (!fails || strcmp(name, fails) != 0) return 0;
    fails = NULL;
    errno = EIO;
    return -1;
}

static blob_store_t *new_store(const char *dir)
{
    blob_store_t *store = NULL;
    const struct blob_store_options options = { .dir = dir, .lazy = is_lazy };
    assert_int_equal(blob_store_new(&options, &why, &store), 0);
    return store;
}

static struct hash put(blob_store_t *store, const char *text)
{
    struct hash hash;
    assert_int_equal(blob_store_put(store, text, strlen(text), &why, &hash), 0);
    const struct hash expected = hash_of(text, strlen(text));
    assert_true(hash_equal(&hash, &expected));
    return hash;
}

static void expect(blob_store_t *store, const struct hash *hash, const char *text)
{
    struct blob_ref ref;
    assert_int_equal(blob_store_get(store, hash, &why, &ref), 0);
    assert_int_equal(ref.count, strlen(text));
    if (ref.count) assert_memory_equal(ref.bytes, text, ref.count);
    blob_store_release(&ref);
    assert_null(ref.held);
}

static bool has(blob_store_t *store, const struct hash *hash)
{
    size_t bytes;
    return blob_store_size(store, hash, &bytes);
}

static void forget(blob_store_t *store, const struct hash *hash)
{
    blob_store_drop(store, hash);
    blob_store_sweep(store, hash);
}

static struct wire_blob listed[LISTED_MAX];

static uint32_t count_of(blob_store_t *store) { return blob_store_list(store, listed, LISTED_MAX); }

static uint64_t bytes_of(blob_store_t *store)
{
    uint64_t bytes = 0;
    for (uint32_t i = count_of(store); i-- > 0;) bytes += listed[i].bytes;
    return bytes;
}

// ---- memory ---------------------------------------------------------------------------------

static void test_put_get_forget(void **state)
{
    (void)state;
    blob_store_t *store = new_store(NULL);
    const struct hash a = put(store, "alpha"), b = put(store, "beta"), none = { { 0 } };
    put(store, "alpha");
    const struct hash empty = put(store, "");
    assert_int_equal(count_of(store), 3);
    assert_int_equal(bytes_of(store), 9);
    expect(store, &a, "alpha");
    expect(store, &b, "beta");
    expect(store, &empty, "");
    forget(store, &b);
    forget(store, &b);
    struct blob_ref ref;
    assert_int_equal(blob_store_get(store, &b, &why, &ref), FAULT_NOT_FOUND);
    assert_int_equal(blob_store_get(store, &none, &why, &ref), FAULT_NOT_FOUND);
    assert_false(has(store, &b));
    assert_int_equal(bytes_of(store), 5);
    blob_store_destroy(&store);
    assert_null(store);
    blob_store_destroy(&store);
}

static void test_a_reference_outlives_forgetting(void **state)
{
    (void)state;
    blob_store_t *store = new_store(NULL);
    const struct hash a = put(store, "alpha");
    struct blob_ref one, two;
    assert_int_equal(blob_store_get(store, &a, &why, &one), 0);
    assert_int_equal(blob_store_get(store, &a, &why, &two), 0);
    forget(store, &a);
    assert_int_equal(count_of(store), 0);
    blob_store_release(&one);
    assert_memory_equal(two.bytes, "alpha", 5);
    put(store, "alpha"); // Anew, beside the one that is still referred to
    blob_store_release(&two);
    expect(store, &a, "alpha");
    blob_store_destroy(&store);
}

static void test_limits(void **state)
{
    (void)state;
    blob_store_t *store = new_store(NULL);
    struct hash hash = { { 7 } };
    const struct hash before = hash;
    uint8_t *bytes = malloc(6);
    memcpy(bytes, "gamma!", 6);
    assert_int_equal(blob_store_put(store, bytes, (size_t)BLOB_BYTES_MAX + 1, &why, &hash),
                     FAULT_LIMIT);
    assert_non_null(strstr(why.text, "a blob of 1073741825 bytes, allowed are 1073741824"));
    assert_int_equal(blob_store_take(store, &bytes, (size_t)BLOB_BYTES_MAX + 1, &why, &hash),
                     FAULT_LIMIT);
    assert_non_null(bytes); // Still ours
    assert_true(hash_equal(&hash, &before));
    assert_int_equal(count_of(store), 0);
    assert_int_equal(blob_store_take(store, &bytes, 5, &why, &hash), 0);
    assert_null(bytes);
    expect(store, &hash, "gamma");
    blob_store_destroy(&store);
}

static void test_many(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    blob_store_t *store = new_store(NULL);
    struct hash *hashes = malloc(MANY * sizeof *hashes);
    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(blob_store_put(store, &i, sizeof i, &why, &hashes[i]), 0);
    for (uint32_t i = 0; i < MANY; i += 3) forget(store, &hashes[i]);
    for (uint32_t i = 0; i < MANY; i++) {
        struct blob_ref ref;
        const int rc = blob_store_get(store, &hashes[i], &why, &ref);
        assert_int_equal(rc, i % 3 == 0 ? FAULT_NOT_FOUND : 0);
        if (rc < 0) continue;
        assert_memory_equal(ref.bytes, &i, sizeof i);
        blob_store_release(&ref);
    }
    assert_int_equal(count_of(store), MANY - (MANY + 2) / 3);
    free(hashes);
    blob_store_destroy(&store);
}

// ---- the directory --------------------------------------------------------------------------

static char dir[64];

static int make_dir(void **state)
{
    (void)state;
    is_lazy = false;
    snprintf(dir, sizeof dir, "/tmp/shoal-store-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int make_lazy_dir(void **state)
{
    const int rc = make_dir(state);
    is_lazy = true;
    return rc;
}

static int remove_dir(void **state)
{
    (void)state;
    char command[128];
    is_lazy = false;
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command);
}

static const char *path_in(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static int count_files(void)
{
    int count = 0;
    DIR *list = opendir(dir);
    for (struct dirent *entry; (entry = readdir(list));) count += strspn(entry->d_name, ".") == 0;
    closedir(list);
    return count;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void test_survives_a_restart(void **state)
{
    (void)state;
    blob_store_t *store = new_store(dir);
    const struct hash a = put(store, "alpha"), empty = put(store, ""), b = put(store, "beta");
    assert_int_equal(count_files(), 1);
    blob_store_destroy(&store);
    store = new_store(dir);
    assert_int_equal(count_of(store), 3);
    assert_int_equal(bytes_of(store), 9);
    const struct hash c = put(store, "gamma"); // In a file of its own: the old one is only read
    assert_int_equal(count_files(), 2);
    expect(store, &a, "alpha");
    expect(store, &a, "alpha");
    expect(store, &empty, "");
    forget(store, &a);
    forget(store, &b);
    assert_int_equal(count_files(), 2);
    forget(store, &empty);
    assert_int_equal(count_files(), 1);
    blob_store_destroy(&store);
    store = new_store(dir);
    assert_int_equal(count_of(store), 1);
    expect(store, &c, "gamma");
    forget(store, &c);
    assert_int_equal(count_files(), 0);
    blob_store_destroy(&store);
}

static void expect_amounts(blob_store_t *store, uint64_t blobs, uint64_t bytes, uint64_t blobs_ever,
                           uint64_t bytes_ever)
{
    const struct blob_amounts amounts = blob_store_amounts(store);
    assert_true(amounts.blobs == blobs && amounts.bytes == bytes);
    assert_true(amounts.blobs_ever == blobs_ever && amounts.bytes_ever == bytes_ever);
}

// What the bulk server gives to an asker follows from it.
static void test_amounts(void **state)
{
    (void)state;
    blob_store_t *store = new_store(dir);
    expect_amounts(store, 0, 0, 0, 0);
    const struct hash a = put(store, "alpha");
    put(store, "beta");
    put(store, "beta"); // It was there
    expect_amounts(store, 2, 9, 2, 9);
    forget(store, &a);
    expect_amounts(store, 1, 4, 2, 9);
    put(store, "alpha");
    expect_amounts(store, 2, 9, 3, 14);
    blob_store_destroy(&store);
    store = new_store(dir); // It finds them again
    expect_amounts(store, 2, 9, 2, 9);
    expect(store, &a, "alpha"); // Loaded
    expect_amounts(store, 2, 9, 2, 9);
    forget(store, &a);
    const struct hash b = hash_of("beta", 4);
    forget(store, &b);
    expect_amounts(store, 0, 0, 2, 9);
    blob_store_destroy(&store);
}

// An earlier version kept each blob in a file of its own.
static void test_older_files_are_removed(void **state)
{
    (void)state;
    const struct hash hash = hash_of("alpha", 5);
    char hex[HASH_HEX], older[256], leftover[256], longer[256], other[256];
    hash_to_hex(&hash, hex);
    snprintf(older, sizeof older, "%s", path_in(hex));
    snprintf(leftover, sizeof leftover, "%s/.%s.tmp", dir, hex);
    snprintf(longer, sizeof longer, "%s/%s.tmp", dir, hex);
    snprintf(other, sizeof other, "%s", path_in("README"));
    write_file(older, "alpha");
    write_file(leftover, "alp");
    write_file(longer, "mine");
    write_file(other, "mine");
    blob_store_t *store = new_store(dir);
    assert_int_equal(count_of(store), 0);
    assert_int_equal(access(older, F_OK), -1);
    assert_int_equal(access(leftover, F_OK), -1);
    assert_int_equal(access(longer, F_OK), 0);
    assert_int_equal(access(other, F_OK), 0);
    blob_store_destroy(&store);
}

static void change_byte(const char *path, long at)
{
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    const int byte = fgetc(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fputc(byte ^ 4, file), byte ^ 4);
    fclose(file);
}

// Blobs come and go, as in a run: what is on the disk does not grow.
static void test_files_do_not_accumulate(void **state)
{
    (void)state;
    enum { BLOBS = 600, BYTES = 20000, KEPT = 20 };
    struct hash hashes[BLOBS];
    uint8_t bytes[BYTES] = { 0 };
    blob_store_t *store = new_store(dir);
    int most = 0;
    for (uint32_t i = 0; i < BLOBS; i++) {
        memcpy(bytes, &i, sizeof i);
        assert_int_equal(blob_store_put(store, bytes, BYTES, &why, &hashes[i]), 0);
        if (i >= KEPT) forget(store, &hashes[i - KEPT]);
        if (count_files() > most) most = count_files();
    }
    assert_int_equal(most, 2);
    blob_store_destroy(&store);
    store = new_store(dir);
    assert_in_range(count_of(store), KEPT, KEPT + SPOOL_FILE_BYTES / BYTES);
    for (uint32_t i = BLOBS - KEPT; i < BLOBS; i++) {
        struct blob_ref ref;
        assert_int_equal(blob_store_get(store, &hashes[i], &why, &ref), 0);
        assert_memory_equal(ref.bytes, &i, sizeof i);
        blob_store_release(&ref);
    }
    blob_store_destroy(&store);
}

static void test_damaged_files(void **state)
{
    (void)state;
    struct blob_ref ref;
    blob_store_t *store = new_store(dir);
    const struct hash a = put(store, "alpha"), b = put(store, "beta"), c = put(store, "gamma"),
                      d = put(store, "delta");
    blob_store_destroy(&store);
    const char *path = path_in("spool.0");
    change_byte(path, SPOOL_HEAD + 2);                                   // The bytes of the first
    assert_int_equal(truncate(path, 4 * SPOOL_HEAD + 5 + 4 + 5 + 4), 0); // One of the last lacks
    store = new_store(dir);
    assert_int_equal(count_of(store), 3);
    assert_int_equal(blob_store_get(store, &a, &why, &ref), FAULT_CORRUPT);
    assert_non_null(strstr(why.text, "is damaged and was removed"));
    assert_false(has(store, &a) || has(store, &d));
    put(store, "alpha");
    expect(store, &a, "alpha");
    expect(store, &b, "beta");
    put(store, "gamma"); // Written again: what is there was never read
    blob_store_destroy(&store);
    change_byte(path,
                SPOOL_HEAD + 5 + 7); // The head of the second: it and what follows is not found
    store = new_store(dir);
    expect(store, &a, "alpha"); // From the second file: the first one has it damaged
    expect(store, &c, "gamma");
    assert_false(has(store, &b));
    blob_store_destroy(&store);
}

static void test_without_a_directory(void **state)
{
    (void)state;
    blob_store_t *store = new_store(dir);
    struct hash hash = { { 0 } };
    assert_int_equal(rmdir(dir), 0);
    assert_int_equal(blob_store_put(store, "alpha", 5, &why, &hash), FAULT_NOT_FOUND);
    assert_non_null(strstr(why.text, "is kept in memory alone"));
    assert_true(blob_store_is_kept(FAULT_NOT_FOUND));
    expect(store, &hash, "alpha");
    blob_store_destroy(&store);
    assert_int_equal(mkdir(dir, 0755), 0);
    blob_store_t *other = NULL;
    const struct blob_store_options options = { .dir = "/nowhere/at/all" };
    assert_int_equal(blob_store_new(&options, &why, &other), FAULT_NOT_FOUND);
    assert_null(other);
}

// A call for the disk fails once: the blob is in memory, and on disk when it is put again.
static void test_failed_calls(void **state)
{
    (void)state;
    static const char *const calls[] = { "spool_create", "spool_sync_dir", "spool_write",
                                         "spool_sync" };
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++) {
        blob_store_t *store = new_store(dir);
        struct hash hash;
        char text[32];
        snprintf(text, sizeof text, "alpha %u", i);
        fails = calls[i];
        assert_int_equal(blob_store_put(store, text, strlen(text), &why, &hash), FAULT_IO);
        assert_non_null(strstr(why.text, "is kept in memory alone"));
        assert_null(fails);
        expect(store, &hash, text);
        put(store, text);
        blob_store_destroy(&store);
        store = new_store(dir);
        assert_int_equal(count_of(store), i + 1);
        expect(store, &hash, text);
        blob_store_destroy(&store);
    }
    fails = "spool_found";
    blob_store_t *store = NULL;
    const struct blob_store_options options = { .dir = dir };
    assert_int_equal(blob_store_new(&options, &why, &store), FAULT_IO);
    assert_non_null(strstr(why.text, "cannot make spool."));
}

static void test_full_disk(void **state)
{
    (void)state;
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", dir, "tmpfs", 0, "size=64k") != 0)
        skip(); // Needs the right to mount
    blob_store_t *store = new_store(dir);
    struct hash hash = { { 0 } };
    uint8_t *large = calloc(1, 200000);
    assert_int_equal(blob_store_put(store, large, 200000, &why, &hash), FAULT_DISK_FULL);
    assert_non_null(strstr(why.text, "is kept in memory alone"));
    assert_true(has(store, &hash));
    assert_int_equal(count_files(), 0);
    const struct hash small = put(store, "alpha");
    large[0] = 1;
    assert_int_equal(blob_store_put(store, large, 200000, &why, &hash), FAULT_DISK_FULL);
    const struct hash other =
        put(store, "beta"); // Behind the first: nothing is left of the large one
    blob_store_destroy(&store);
    store = new_store(dir);
    assert_int_equal(count_of(store), 2);
    expect(store, &small, "alpha");
    expect(store, &other, "beta");
    blob_store_destroy(&store);
    free(large);
    assert_int_equal(umount(dir), 0);
}

// ---- durable --------------------------------------------------------------------------------

static struct hash take(blob_store_t *store, const char *text)
{
    const struct hash hash = hash_of(text, strlen(text));
    uint8_t *bytes = (uint8_t *)strdup(text);
    assert_int_equal(blob_store_take_known(store, &hash, &bytes, strlen(text), &why), 0);
    return hash;
}

static void test_a_put_is_one_sync(void **state)
{
    (void)state;
    syncs = name_syncs = 0;
    blob_store_t *store = new_store(dir);
    const struct hash a = put(store, "alpha");
    put(store, "beta");
    put(store, "beta");
    assert_int_equal(syncs, 2);
    const struct hash c = take(store, "gamma"), d = take(store, "delta");
    assert_int_equal(syncs, 2);
    assert_int_equal(blob_store_sync(store, &c, &why), 0);
    assert_int_equal(blob_store_sync(store, &d, &why), 0);
    assert_int_equal(blob_store_sync(store, &a, &why), 0);
    assert_int_equal(syncs, 3); // Together
    assert_int_equal(name_syncs, 1);
    blob_store_destroy(&store);
    is_lazy = true;
    syncs = name_syncs = 0;
    store = new_store(dir);
    put(store, "epsilon");
    take(store, "zeta");
    assert_int_equal(blob_store_sync(store, &a, &why), 0);
    assert_int_equal(syncs + name_syncs, 0);
    blob_store_destroy(&store);
}

static long size_of(const char *name)
{
    struct stat stat_of;
    assert_int_equal(stat(path_in(name), &stat_of), 0);
    return (long)stat_of.st_size;
}

// The second sync of a file may succeed although the first one has lost bytes: it must not be trusted.
static void test_a_failed_sync_cuts_the_file(void **state)
{
    (void)state;
    blob_store_t *store = new_store(dir);
    const struct hash a = put(store, "alpha"), b = take(store, "beta"), c = take(store, "gamma");
    fails = "spool_sync";
    assert_int_equal(blob_store_sync(store, &b, &why), FAULT_IO);
    assert_int_equal(size_of("spool.0"), SPOOL_HEAD + 5);
    assert_int_equal(blob_store_sync(store, &c, &why), 0); // Written again
    assert_int_equal(size_of("spool.1"), SPOOL_HEAD + 5);
    expect(store, &b, "beta");
    blob_store_destroy(&store);
    store = new_store(dir);
    assert_int_equal(count_of(store), 2);
    expect(store, &a, "alpha");
    expect(store, &c, "gamma");
    blob_store_destroy(&store);
}

// A file is synced before the next one begins; what that loses is written again.
static void test_a_full_file_is_synced(void **state)
{
    (void)state;
    enum { BYTES = SPOOL_FILE_BYTES * 2 / 3 };
    blob_store_t *store = new_store(dir);
    struct hash hashes[4];
    syncs = 0;
    for (uint8_t i = 0; i < 4; i++) {
        uint8_t *bytes = calloc(1, BYTES);
        bytes[0] = i;
        hashes[i] = hash_of(bytes, BYTES);
        if (i == 2) fails = "spool_sync"; // Of the second
        assert_int_equal(blob_store_take_known(store, &hashes[i], &bytes, BYTES, &why), 0);
    }
    assert_int_equal(syncs, 3);
    for (int i = 0; i < 4; i++) assert_int_equal(blob_store_sync(store, &hashes[i], &why), 0);
    assert_int_equal(syncs, 5); // The fourth when the second comes again, and that one
    blob_store_destroy(&store);
    store = new_store(dir);
    for (uint8_t i = 0; i < 4; i++) {
        struct blob_ref ref;
        assert_int_equal(blob_store_get(store, &hashes[i], &why, &ref), 0);
        assert_int_equal(ref.bytes[0], i);
        blob_store_release(&ref);
    }
    blob_store_destroy(&store);
}

static void test_a_failed_write_loses_no_other(void **state)
{
    (void)state;
    blob_store_t *store = new_store(dir);
    const struct hash a = take(store, "alpha"), c = hash_of("gamma", 5);
    uint8_t *bytes = (uint8_t *)strdup("gamma");
    fails = "spool_write";
    assert_int_equal(blob_store_take_known(store, &c, &bytes, 5, &why), FAULT_IO);
    const struct hash b = put(store, "beta");
    assert_int_equal(blob_store_sync(store, &a, &why), 0);
    blob_store_destroy(&store);
    store = new_store(dir);
    assert_int_equal(count_of(store), 2);
    expect(store, &a, "alpha");
    expect(store, &b, "beta");
    blob_store_destroy(&store);
}

// A crash leaves any part of what was written, or zeros in its place: each blob is there whole or not at
// all, and what is put after it is not hidden by what it left.
static void test_torn_anywhere(void **state)
{
    (void)state;
    static const char *const texts[] = { "alpha", "", "beta", "gamma" };
    enum { TEXTS = 4 };
    blob_store_t *store = new_store(dir);
    struct hash hashes[TEXTS];
    char image[1024];
    for (int i = 0; i < TEXTS; i++) hashes[i] = put(store, texts[i]);
    blob_store_destroy(&store);
    const long size = size_of("spool.0");
    FILE *file = fopen(path_in("spool.0"), "r");
    assert_int_equal(fread(image, 1, sizeof image, file), size);
    fclose(file);
    is_lazy = true; // Where the disk is not asked, the files are the same
    for (long cut = 0; cut <= size; cut++)
        for (int zeros = 0; zeros < 2; zeros++) {
            file = fopen(path_in("spool.0"), "w");
            assert_int_equal(fwrite(image, 1, (size_t)cut, file), cut);
            fclose(file);
            assert_int_equal(truncate(path_in("spool.0"), zeros ? size : cut), 0);
            store = new_store(dir);
            const struct hash omega = put(store, "omega");
            blob_store_destroy(&store);
            store = new_store(dir);
            expect(store, &omega, "omega");
            long end = 0;
            for (int i = 0; i < TEXTS; i++) {
                struct blob_ref ref;
                end += SPOOL_HEAD + (long)strlen(texts[i]);
                const int rc = blob_store_get(store, &hashes[i], &why, &ref);
                assert_true(rc == 0 || rc == FAULT_NOT_FOUND || rc == FAULT_CORRUPT);
                assert_int_equal(rc == 0, end <= cut);
                if (rc == 0) assert_memory_equal(ref.bytes, texts[i], strlen(texts[i]));
                if (rc == 0) blob_store_release(&ref);
            }
            forget(store, &omega);
            for (int i = 0; i < TEXTS; i++) forget(store, &hashes[i]);
            blob_store_destroy(&store);
            assert_int_equal(count_files(), 0);
        }
}

// ---- threads --------------------------------------------------------------------------------

enum { THREADS = 4, TURNS = 200, NAMES = 5 };

static void *disturb(void *arg)
{
    blob_store_t *store = arg;
    static _Atomic uint64_t seeds;
    uint64_t seed = ++seeds;
    for (int i = 0; i < TURNS; i++) {
        struct hash hash;
        struct blob_ref ref;
        char text[32];
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        snprintf(text, sizeof text, "name %u", (unsigned)(seed >> 40) % NAMES);
        hash = hash_of(text, strlen(text));
        switch (seed >> 60 & 3) {
        case 0:
            if (blob_store_put(store, text, strlen(text), NULL, &hash) < 0) return arg;
            break;
        case 1: forget(store, &hash); break;
        default:
            if (blob_store_get(store, &hash, NULL, &ref) < 0) break;
            if (ref.count != strlen(text) || memcmp(ref.bytes, text, ref.count) != 0) return arg;
            blob_store_release(&ref);
        }
    }
    return NULL;
}

static void disturb_at_once(blob_store_t *store)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, disturb, store);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}

static void test_threads(void **state)
{
    (void)state;
    blob_store_t *store = new_store(NULL);
    for (int i = 0; i < 20; i++) disturb_at_once(store);
    blob_store_destroy(&store);
}

// Whatever the order of events, in the end the blobs of the table are on the disk.
static void test_threads_with_a_directory(void **state)
{
    (void)state;
    blob_store_t *store = new_store(dir);
    disturb_at_once(store);
    const uint32_t count = count_of(store);
    struct wire_blob kept[NAMES];
    assert_in_range(count, 0, NAMES);
    memcpy(kept, listed, count * sizeof *kept);
    blob_store_destroy(&store);
    store = new_store(dir); // Some that were forgotten may lie beside them
    for (uint32_t i = 0; i < count; i++) assert_true(has(store, &kept[i].hash));
    disturb_at_once(store);
    blob_store_destroy(&store);
}

// ---- pins and the stage ---------------------------------------------------------------------

enum { FLOATS = 2 * DIGEST_LEAF_FLOATS + 5, LEAVES = 3 };

static struct hash pin(blob_store_t *store, uint64_t step, float value,
                       struct hash ret_leaves[LEAVES])
{
    float *params = malloc(FLOATS * sizeof *params);
    for (int i = 0; i < FLOATS; i++) params[i] = value + (float)i;
    digest_fill_leaves(params, FLOATS, 0, LEAVES, ret_leaves);
    const struct hash digest = pin_vector(store, step, params, FLOATS);
    free(params);
    return digest;
}

static void keep_pins(blob_store_t *store)
{
    struct hash first[LEAVES], leaves[LEAVES];
    struct blob_ref ref, list;
    struct state_cut cut;
    const struct hash one = pin(store, 1, 0.5f, first);
    assert_int_equal(blob_store_get(store, &first[2], &why, &ref), 0);
    assert_int_equal(ref.count, 5 * sizeof(float));
    assert_int_equal(blob_store_leaves(store, &one, &why, &list, &cut), 0);
    assert_true(cut.count == 1 && cut.bytes[0] == FLOATS * sizeof(float));
    assert_int_equal(list.count, sizeof first);
    for (uint64_t step = 2; step <= 4; step++) pin(store, step, (float)step, leaves);
    assert_int_equal(blob_store_leaves(store, &one, &why, &(struct blob_ref){ 0 }, &cut),
                     FAULT_NOT_FOUND);
    assert_int_equal(blob_store_get(store, &first[0], &why, &(struct blob_ref){ 0 }),
                     FAULT_NOT_FOUND);
    assert_memory_equal(list.bytes, first, sizeof first); // Still referred to
    float value;
    memcpy(&value, ref.bytes + 4 * sizeof value, sizeof value);
    assert_true(value == 0.5f + (float)(FLOATS - 1));
    blob_store_release(&ref);
    blob_store_release(&list);
    assert_int_equal(blob_store_get(store, &leaves[1], &why, &ref), 0);
    assert_int_equal(ref.count, DIGEST_LEAF_FLOATS * sizeof(float));
    const struct hash again = pin(store, 4, 9.0f, leaves); // The same step: replaced
    assert_int_equal(blob_store_leaves(store, &again, &why, &list, &cut), 0);
    blob_store_release(&list);
    blob_store_release(&ref);
    assert_int_equal(count_of(store), 0);
}

static void test_pins(void **state)
{
    (void)state;
    blob_store_t *store = new_store(NULL);
    assert_false(blob_store_plan_pins(store, BLOB_PINS_MAX, true)); // It has no directory
    assert_int_equal(blob_store_amounts(store).state, 0);
    keep_pins(store);
    assert_true(blob_store_amounts(store).state > 0);
    blob_store_destroy(&store);
}

// An open file without a name, of this size; -1: there is none.
static int nameless(off_t bytes)
{
    struct stat stat;
    for (int fd = 3; fd < 64; fd++)
        if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_nlink == 0 &&
            stat.st_size == bytes)
            return fd;
    return -1;
}

static void test_pins_in_files(void **state)
{
    (void)state;
    const off_t room = LEAVES * (off_t)STATE_LEAF_BYTES;
    blob_store_t *store = new_store(dir);
    struct hash leaves[LEAVES];
    struct blob_ref ref;
    struct state_cut cut;
    float params[FLOATS];
    if (!blob_store_plan_pins(store, BLOB_PINS_MAX, true)) {
        blob_store_destroy(&store);
        print_message("%s is a file system in memory; pins are not in files there\n", dir);
        skip();
    }
    assert_int_equal(nameless(room), -1);
    keep_pins(store);
    assert_int_equal(count_files(), 0);
    const struct hash digest = pin(store, 9, 1.5f, leaves);
    assert_int_equal(blob_store_pinned(store, &digest, &why, &ref, &cut), 0);
    assert_true(ref.count == (size_t)room);
    assert_int_equal(blob_store_pinned_params(store, &digest, sizeof params, &why, params), 0);
    assert_memory_equal(ref.bytes, params, sizeof params);
    assert_true(params[FLOATS - 1] == 1.5f + (float)(FLOATS - 1));
    blob_store_release(&ref);
    assert_int_equal(blob_store_pinned_params(store, &digest, 8, &why, params), FAULT_CORRUPT);

    // A wrong leaf is not served
    blob_store_plan_pins(store, 1, true);
    const int fd = nameless(room);
    assert_true(fd >= 0 && pwrite(fd, "x", 1, STATE_LEAF_BYTES) == 1);
    assert_int_equal(blob_store_get(store, &leaves[1], &why, &ref), FAULT_CORRUPT);
    assert_int_equal(blob_store_get(store, &leaves[0], &why, &ref), 0);
    blob_store_release(&ref);
    assert_true(ftruncate(fd, STATE_LEAF_BYTES) == 0);
    assert_int_equal(blob_store_get(store, &leaves[1], &why, &ref), FAULT_IO);
    blob_store_destroy(&store);
    assert_int_equal(nameless(STATE_LEAF_BYTES), -1);
}

static void test_equal_leaves_and_none(void **state)
{
    (void)state;
    blob_store_t *store = new_store(NULL);
    float *params = calloc(FLOATS, sizeof *params);
    struct hash leaves[LEAVES];
    struct blob_ref ref;
    digest_fill_leaves(params, FLOATS, 0, LEAVES, leaves);
    assert_true(hash_equal(&leaves[0], &leaves[1]));
    pin_vector(store, 0, params, FLOATS);
    for (int i = 0; i < LEAVES; i++) {
        assert_int_equal(blob_store_get(store, &leaves[i], &why, &ref), 0);
        blob_store_release(&ref);
    }
    const struct hash none = pin_vector(store, 1, params, 0);
    assert_true(hash_is_none(&none));
    assert_int_equal(blob_store_get(store, &none, &why, &ref), FAULT_NOT_FOUND);
    free(params);
    blob_store_destroy(&store);
}

static void test_stage(void **state)
{
    (void)state;
    blob_store_t *store = new_store(NULL);
    const struct blob_snapshot staged = { 7, { { 1 } }, state_cut_of_floats(10) };
    struct blob_snapshot got;
    struct state_copy copy;
    for (int i = 0; i < 2; i++) { // The second takes the place of the first
        assert_int_equal(blob_store_new_copy(store, 10 * sizeof(float), &why, &copy), 0);
        copy.bytes[3] = (uint8_t)i;
        blob_store_stage(store, &staged, &copy);
        assert_null(copy.bytes);
    }
    assert_false(blob_store_unstage(store, 8, &got, &copy));
    assert_true(blob_store_unstage(store, 7, &got, &copy));
    assert_true(copy.bytes[3] == 1 && got.step == 7 && hash_equal(&got.digest, &staged.digest));
    assert_true(state_cut_equal(&got.cut, &staged.cut));
    assert_false(blob_store_unstage(store, 7, &got, &(struct state_copy){ 0 }));
    blob_store_stage(store, &staged, &copy);
    blob_store_destroy(&store);
}

#define BOTH_TEST(NAME)                                                                            \
    TEST_WITH(NAME, make_dir, remove_dir), TEST_WITH(NAME, make_lazy_dir, remove_dir)

TESTS(TEST(test_put_get_forget), TEST(test_a_reference_outlives_forgetting), TEST(test_limits),
      TEST(test_many), BOTH_TEST(test_survives_a_restart),
      TEST_WITH(test_amounts, make_dir, remove_dir), BOTH_TEST(test_older_files_are_removed),
      TEST_WITH(test_files_do_not_accumulate, make_lazy_dir, remove_dir),
      BOTH_TEST(test_damaged_files), BOTH_TEST(test_without_a_directory),
      TEST_WITH(test_failed_calls, make_dir, remove_dir),
      TEST_WITH(test_a_put_is_one_sync, make_dir, remove_dir),
      TEST_WITH(test_a_failed_sync_cuts_the_file, make_dir, remove_dir),
      TEST_WITH(test_a_full_file_is_synced, make_dir, remove_dir),
      TEST_WITH(test_a_failed_write_loses_no_other, make_dir, remove_dir),
      TEST_WITH(test_torn_anywhere, make_dir, remove_dir), TEST(test_threads),
      BOTH_TEST(test_threads_with_a_directory), TEST(test_pins),
      TEST_WITH(test_pins_in_files, make_dir, remove_dir), TEST(test_equal_leaves_and_none),
      TEST(test_stage), BOTH_TEST(test_full_disk))
