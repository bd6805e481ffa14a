// The blob store: references, threads, the directory, pins and the stage.
#include "common/bulk/blob_spool.h"
#include "common/bulk/blob_store.h"
#include "common/crypto/merkle.h"
#include "tests/test.h"
#include "tests/unit/pin_fixture.h"
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LISTED_MAX = 8192 };

static struct why why;

static blob_store_t *new_store(const char *dir)
{
    blob_store_t *store = NULL;
    const struct blob_store_options options = { .dir = dir };
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
    snprintf(dir, sizeof dir, "/tmp/shoal-store-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command);
}

static const char *path_of(const struct hash *hash)
{
    static char path[256];
    char name[HASH_HEX];
    snprintf(path, sizeof path, "%s/%s", dir, hash_to_hex(hash, name));
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
    const struct hash a = put(store, "alpha"), b = put(store, "beta"), empty = put(store, "");
    forget(store, &b);
    assert_int_equal(access(path_of(&b), F_OK), -1);
    blob_store_destroy(&store);
    char leftover[128], other[128], name[HASH_HEX];
    snprintf(leftover, sizeof leftover, "%s/.%s.tmp", dir, hash_to_hex(&b, name));
    snprintf(other, sizeof other, "%s/README", dir);
    write_file(leftover, "bet");
    write_file(other, "mine");

    store = new_store(dir);
    assert_int_equal(access(leftover, F_OK), -1);
    assert_int_equal(access(other, F_OK), 0);
    assert_int_equal(count_of(store), 2);
    assert_int_equal(bytes_of(store), 5);
    assert_true(has(store, &a));
    assert_false(has(store, &b));
    expect(store, &a, "alpha");
    expect(store, &a, "alpha");
    expect(store, &empty, "");
    forget(store, &a); // Read, and gone for good
    forget(store, &empty);
    blob_store_destroy(&store);
    assert_int_equal(count_files(), 1);
}

static void test_damaged_files_are_removed(void **state)
{
    (void)state;
    blob_store_t *store = new_store(dir);
    const struct hash a = put(store, "alpha"), b = put(store, "beta"), c = put(store, "gamma");
    blob_store_destroy(&store);
    write_file(path_of(&a), "alphb");
    write_file(path_of(&b), "bet");
    store = new_store(dir);
    struct blob_ref ref;
    assert_int_equal(blob_store_get(store, &a, &why, &ref), FAULT_CORRUPT);
    assert_non_null(strstr(why.text, "is damaged and was removed"));
    assert_int_equal(access(path_of(&a), F_OK), -1);
    assert_int_equal(blob_store_get(store, &a, &why, &ref), FAULT_NOT_FOUND);
    put(store, "beta"); // Over a damaged file that was never read
    expect(store, &b, "beta");
    expect(store, &c, "gamma");
    assert_int_equal(bytes_of(store), 9);
    blob_store_destroy(&store);
    store = new_store(dir);
    expect(store, &b, "beta");
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
    assert_int_equal(mkdir(dir, 0755), 0);
    put(store, "alpha"); // Tried again
    assert_int_equal(access(path_of(&hash), F_OK), 0);
    blob_store_destroy(&store);
    blob_store_t *other = NULL;
    const struct blob_store_options options = { .dir = "/nowhere/at/all" };
    assert_int_equal(blob_store_new(&options, &why, &other), FAULT_NOT_FOUND);
    assert_null(other);
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
    assert_true(has(store, &hash));
    assert_int_equal(count_files(), 0);
    const struct hash small = put(store, "alpha");
    blob_store_destroy(&store);
    store = new_store(dir);
    assert_int_equal(count_of(store), 1);
    expect(store, &small, "alpha");
    blob_store_destroy(&store);
    free(large);
    assert_int_equal(umount(dir), 0);
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

// Whatever the order of events, in the end the files are those of the table.
static void test_threads_with_a_directory(void **state)
{
    (void)state;
    blob_store_t *store = new_store(dir);
    disturb_at_once(store);
    const uint64_t count = count_of(store);
    assert_int_equal(count_files(), (int)count);
    blob_store_destroy(&store);
    store = new_store(dir);
    assert_int_equal(count_of(store), count);
    disturb_at_once(store);
    blob_store_destroy(&store);
}

// ---- the spool of a lazy store --------------------------------------------------------------

static blob_store_t *new_lazy_store(void)
{
    blob_store_t *store = NULL;
    const struct blob_store_options options = { .dir = dir, .lazy = true };
    assert_int_equal(blob_store_new(&options, &why, &store), 0);
    return store;
}

static const char *path_in(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
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

static void test_a_spool_survives_a_restart(void **state)
{
    (void)state;
    blob_store_t *store = new_lazy_store();
    const struct hash a = put(store, "alpha"), empty = put(store, ""), b = put(store, "beta");
    assert_int_equal(count_files(), 1);
    blob_store_destroy(&store);
    write_file(path_of(&a), "alpha"); // As an earlier version kept them
    store = new_lazy_store();
    assert_int_equal(access(path_of(&a), F_OK), -1);
    assert_int_equal(count_of(store), 3);
    assert_int_equal(bytes_of(store), 9);
    const struct hash c = put(store, "gamma"); // In a file of its own: the old one is only read
    assert_int_equal(count_files(), 2);
    expect(store, &a, "alpha");
    expect(store, &empty, "");
    forget(store, &a);
    forget(store, &b);
    assert_int_equal(count_files(), 2);
    forget(store, &empty);
    assert_int_equal(count_files(), 1);
    blob_store_destroy(&store);
    store = new_lazy_store();
    assert_int_equal(count_of(store), 1);
    expect(store, &c, "gamma");
    forget(store, &c);
    assert_int_equal(count_files(), 0);
    blob_store_destroy(&store);
}

// Blobs come and go, as in a run: what is on the disk does not grow.
static void test_a_spool_does_not_grow(void **state)
{
    (void)state;
    enum { BLOBS = 600, BYTES = 20000, KEPT = 20 };
    struct hash hashes[BLOBS];
    uint8_t bytes[BYTES] = { 0 };
    blob_store_t *store = new_lazy_store();
    int most = 0;
    for (uint32_t i = 0; i < BLOBS; i++) {
        memcpy(bytes, &i, sizeof i);
        assert_int_equal(blob_store_put(store, bytes, BYTES, &why, &hashes[i]), 0);
        if (i >= KEPT) forget(store, &hashes[i - KEPT]);
        if (count_files() > most) most = count_files();
    }
    assert_int_equal(most, 2);
    blob_store_destroy(&store);
    store = new_lazy_store();
    assert_in_range(count_of(store), KEPT, KEPT + SPOOL_FILE_BYTES / BYTES);
    for (uint32_t i = BLOBS - KEPT; i < BLOBS; i++) {
        struct blob_ref ref;
        assert_int_equal(blob_store_get(store, &hashes[i], &why, &ref), 0);
        assert_memory_equal(ref.bytes, &i, sizeof i);
        blob_store_release(&ref);
    }
    blob_store_destroy(&store);
}

static void test_a_damaged_spool(void **state)
{
    (void)state;
    struct blob_ref ref;
    blob_store_t *store = new_lazy_store();
    const struct hash a = put(store, "alpha"), b = put(store, "beta"), c = put(store, "gamma"),
                      d = put(store, "delta");
    blob_store_destroy(&store);
    const char *path = path_in("spool.0");
    change_byte(path, SPOOL_HEAD + 2);                                   // The bytes of the first
    assert_int_equal(truncate(path, 4 * SPOOL_HEAD + 5 + 4 + 5 + 4), 0); // One of the last lacks
    store = new_lazy_store();
    assert_int_equal(count_of(store), 3);
    assert_int_equal(blob_store_get(store, &a, &why, &ref), FAULT_CORRUPT);
    assert_non_null(strstr(why.text, "is damaged and was removed"));
    assert_false(has(store, &a) || has(store, &d));
    put(store, "alpha");
    expect(store, &a, "alpha");
    expect(store, &b, "beta");
    blob_store_destroy(&store);
    change_byte(path,
                SPOOL_HEAD + 5 + 7); // The head of the second: it and what follows is not found
    store = new_lazy_store();
    expect(store, &a, "alpha"); // From the second file: the first one has it damaged
    assert_false(has(store, &b) || has(store, &c));
    blob_store_destroy(&store);
}

static void test_a_spool_on_a_full_disk(void **state)
{
    (void)state;
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", dir, "tmpfs", 0, "size=64k") != 0)
        skip(); // Needs the right to mount
    blob_store_t *store = new_lazy_store();
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
    store = new_lazy_store();
    assert_int_equal(count_of(store), 2);
    expect(store, &small, "alpha");
    expect(store, &other, "beta");
    blob_store_destroy(&store);
    free(large);
    assert_int_equal(umount(dir), 0);
}

static void test_threads_with_a_spool(void **state)
{
    (void)state;
    blob_store_t *store = new_lazy_store();
    disturb_at_once(store);
    const uint64_t count = count_of(store);
    blob_store_destroy(&store);
    store = new_lazy_store();
    assert_true(count_of(store) >= count); // Some that were forgotten lie in files of others
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
    keep_pins(store);
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

TESTS(TEST(test_put_get_forget), TEST(test_a_reference_outlives_forgetting), TEST(test_limits),
      TEST(test_many), TEST_WITH(test_survives_a_restart, make_dir, remove_dir),
      TEST_WITH(test_damaged_files_are_removed, make_dir, remove_dir),
      TEST_WITH(test_without_a_directory, make_dir, remove_dir), TEST(test_threads),
      TEST_WITH(test_threads_with_a_directory, make_dir, remove_dir), TEST(test_pins),
      TEST_WITH(test_pins_in_files, make_dir, remove_dir), TEST(test_equal_leaves_and_none),
      TEST(test_stage), TEST_WITH(test_a_spool_survives_a_restart, make_dir, remove_dir),
      TEST_WITH(test_a_spool_does_not_grow, make_dir, remove_dir),
      TEST_WITH(test_a_damaged_spool, make_dir, remove_dir),
      TEST_WITH(test_threads_with_a_spool, make_dir, remove_dir),
      TEST_WITH(test_a_spool_on_a_full_disk, make_dir, remove_dir),
      TEST_WITH(test_full_disk, make_dir, remove_dir))
