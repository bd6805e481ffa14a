// blob_store -- the table of blobs is changed under `lock`; the directory is made to agree with it
// afterwards, under `disk`, blob by blob (settle). So no thread waits for the disk while it holds
// the table, and put and forget of one blob may race: the last word is the table's. References
// count under `lock`; the thread that releases the last one frees the bytes outside it. A blob in the
// table holds its place in the spool (blob_spool.h). Pins: blob_store_pins.c. Shares: blob_store_shares.c.

#include "common/base/ensure.h"
#include "common/base/failpoint.h"
#include "common/bulk/blob_store_inside.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUCKETS_AT_FIRST = 64 };

// ---- references -----------------------------------------------------------------------------

static void free_blob(struct blob_held *held)
{
    struct blob *blob = (struct blob *)held;
    free(blob->bytes);
    free(blob);
}

// Under the lock: a new reference for a caller.
static struct blob_ref refer(struct blob *blob)
{
    blob_held_add(&blob->held);
    blob->held.store->refs++;
    return (struct blob_ref){ blob->bytes, blob->count, &blob->held };
}

void blob_store_release(struct blob_ref *ref)
{
    struct blob_held *held = ref->held;
    if (held) {
        struct blob_store *store = held->store;
        blob_store_lock(store);
        store->refs--;
        const bool was_last = blob_held_drop(held);
        blob_store_unlock(store);
        if (was_last) held->free(held);
    }
    *ref = (struct blob_ref){ 0 };
}

// ---- the table, under the lock --------------------------------------------------------------

static struct blob **bucket(struct blob_store *self, const struct hash *hash)
{
    return &self->buckets[hash_to_number(hash) & (self->bucket_count - 1)];
}

static struct blob *find(struct blob_store *self, const struct hash *hash)
{
    struct blob *blob = *bucket(self, hash);
    while (blob && !hash_equal(&blob->hash, hash)) blob = blob->next;
    return blob;
}

// A blob that is found on disk, or again, has its size later.
static void set_count(struct blob *blob, size_t count)
{
    struct blob_store *store = blob->held.store;
    store->bytes += count - blob->count; // Modulo 2^64: may be less
    if (count > blob->count) store->bytes_ever += count - blob->count;
    blob->count = count;
}

static void insert(struct blob_store *self, struct blob *blob)
{
    const size_t count = blob->count;
    blob->count = 0;
    set_count(blob, count);
    struct blob **place = bucket(self, &blob->hash);
    blob->next = *place;
    *place = blob;
    self->count++;
    self->count_ever++;
}

// Doubles the buckets when there are as many blobs as buckets. Without memory the chains grow
// longer.
static void grow(struct blob_store *self)
{
    struct blob **old = self->buckets, **buckets;
    const size_t old_count = self->bucket_count;
    if (self->count < old_count || !(buckets = calloc(2 * old_count, sizeof *buckets))) return;
    self->buckets = buckets;
    self->bucket_count = 2 * old_count;
    for (size_t i = 0; i < old_count; i++) {
        while (old[i]) {
            struct blob *blob = old[i], **place = bucket(self, &blob->hash);
            old[i] = blob->next;
            blob->next = *place;
            *place = blob;
        }
    }
    free(old);
}

// Takes a blob out of the table. True: nobody else refers to it, the caller frees it.
static bool take_out(struct blob_store *self, struct blob *blob)
{
    struct blob **place = bucket(self, &blob->hash);
    while (*place != blob) place = &(*place)->next;
    *place = blob->next;
    self->count--;
    self->bytes -= blob->count;
    blob_spool_leave(&blob->place);
    return blob_held_drop(&blob->held);
}

// ---- the directory --------------------------------------------------------------------------

// Under `disk`. If the blob was taken out of the table meanwhile, its place is left at once.
static int write_blob(struct blob_store *self, struct blob *blob, const struct blob_ref *ref,
                      struct why *why, struct spool_place *ret_place)
{
    struct spool_place place = { 0 };
    const int rc = blob_spool_put(self->spool, &blob->hash, ref->bytes, ref->count, why, &place);
    if (rc < 0) return rc;
    blob_store_lock(self);
    if (find(self, &blob->hash) == blob) {
        blob_spool_leave(&blob->place); // Zero, or lost by a failed sync
        blob->place = place;
    } else blob_spool_leave(&place);
    blob_store_unlock(self);
    *ret_place = place;
    return 0;
}

// Makes the directory agree with the table about one blob. A blob that is in the table alone is written; with
// `and_sync` it becomes durable. If the table does not have it, spool files that hold no blob are removed. In whatever
// order put and forget race, the directory ends as the table.
static int settle(struct blob_store *self, const struct hash *hash, bool and_sync, struct why *why)
{
    char name[HASH_HEX];
    int rc = 0;
    if (!self->spool) return 0;
    ensure(pthread_mutex_lock(&self->disk) == 0);
    blob_store_lock(self);
    struct blob *blob = find(self, hash);
    struct blob_ref ref = { 0 };
    struct spool_place place = { 0 };
    if (blob) place = blob->place;
    if (blob && blob->is_loaded && !blob_spool_has(&place)) ref = refer(blob);
    blob_store_unlock(self);
    if (ref.held) {
        rc = write_blob(self, blob, &ref, why, &place);
        blob_store_release(&ref);
    } else if (!blob) blob_spool_sweep(self->spool);
    if (rc == 0 && and_sync && place.file) rc = blob_spool_sync(self->spool, &place, why);
    ensure(pthread_mutex_unlock(&self->disk) == 0);
    return rc < 0 ? why_wrap(why, rc, "blob %.16s is kept in memory alone", hash_to_hex(hash, name))
                  : 0;
}

static struct blob *add_found(struct blob_store *self, const struct hash *hash)
{
    struct blob *blob = calloc(1, sizeof *blob);
    ensure(blob);
    *blob = (struct blob){ .held = { self, 1, free_blob }, .hash = *hash };
    grow(self);
    insert(self, blob);
    return blob;
}

// An earlier version kept each blob as the file <64 hex digits>, and wrote it as .<64 hex digits>.tmp. This version
// cannot read the results in them. (state_copy.c may leave an empty file with such a name.)
static void remove_older(const struct blob_store *self, const char *name)
{
    char plain[HASH_HEX] = "", spelled[HASH_HEX];
    struct stat stat;
    struct hash hash;
    const bool is_hidden = name[0] == '.';
    snprintf(plain, sizeof plain, "%s", name + is_hidden);
    if (strcmp(name + is_hidden + strlen(plain), is_hidden ? ".tmp" : "") != 0) return;
    if (!hash_from_hex(plain, &hash) || strcmp(hash_to_hex(&hash, spelled), plain) != 0) return;
    if (fstatat(self->dir_fd, name, &stat, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(stat.st_mode))
        unlinkat(self->dir_fd, name, 0);
}

// A blob that is found twice was put again after it was forgotten or found damaged: the later one counts.
static bool find_spooled(void *arg, const struct hash *hash, uint64_t count,
                         const struct spool_place *place)
{
    struct blob_store *self = arg;
    if (count > BLOB_BYTES_MAX) return false;
    struct blob *blob = find(self, hash);
    if (!blob) blob = add_found(self, hash);
    blob_spool_leave(&blob->place);
    blob->place = *place;
    set_count(blob, (size_t)count);
    return true;
}

static int open_dir(struct blob_store *self, const char *dir, bool is_lazy, struct why *why)
{
    self->dir = strdup(dir);
    ensure(self->dir);
    self->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = self->dir_fd < 0 ? NULL : opendir(dir);
    if (!list)
        return why_set(why, fault_from_errno(errno), "blob directory %s: %s", dir, strerror(errno));
    for (struct dirent *entry; (entry = readdir(list));) remove_older(self, entry->d_name);
    closedir(list);
    const struct blob_spool_options spool = { .dir_fd = self->dir_fd,
                                              .dir = self->dir,
                                              .is_lazy = is_lazy,
                                              .found = find_spooled,
                                              .arg = self };
    return blob_spool_open(&spool, why, &self->spool);
}

// ---- its life -------------------------------------------------------------------------------

int blob_store_new(const struct blob_store_options *options, struct why *why,
                   blob_store_t **ret_self)
{
    static const struct blob_store_options defaults;
    if (!options) options = &defaults;
    struct blob_store *self = calloc(1, sizeof *self);
    ensure(self);
    self->dir_fd = -1;
    self->pins_max = BLOB_PINS_MAX;
    self->stage.copy = no_state_copy;
    self->bucket_count = BUCKETS_AT_FIRST;
    self->buckets = calloc(self->bucket_count, sizeof *self->buckets);
    ensure(self->buckets);
    ensure(pthread_mutex_init(&self->lock, NULL) == 0 &&
           pthread_mutex_init(&self->disk, NULL) == 0);
    const int rc = options->dir ? open_dir(self, options->dir, options->lazy, why) : 0;
    if (rc < 0) blob_store_destroy(&self);
    else *ret_self = self;
    return rc;
}

void blob_store_destroy(blob_store_t **self_p)
{
    struct blob_store *self = *self_p;
    if (!self) return;
    ensure(self->refs == 0);
    for (size_t i = 0; i < self->bucket_count; i++)
        for (struct blob *blob; (blob = self->buckets[i]);)
            if (take_out(self, blob)) free_blob(&blob->held);
    blob_store_drop_pins(self);
    blob_store_free_shares(self);
    blob_spool_close(&self->spool);
    pthread_mutex_destroy(&self->lock);
    pthread_mutex_destroy(&self->disk);
    if (self->dir_fd >= 0) close(self->dir_fd);
    free(self->buckets);
    free(self->dir);
    free(self);
    *self_p = NULL;
}

// ---- blobs ----------------------------------------------------------------------------------

static int check_size(size_t count, struct why *why)
{
    return count <= BLOB_BYTES_MAX
               ? 0
               : why_set(why, FAULT_LIMIT, "a blob of %zu bytes, allowed are %d; not kept", count,
                         BLOB_BYTES_MAX);
}

// A blob that is on disk but was never read gets these bytes. Its file was not checked, so it is
// written again.
static void load(struct blob *blob, uint8_t **bytes_p, size_t count)
{
    blob->bytes = *bytes_p;
    set_count(blob, count);
    blob->is_loaded = true;
    *bytes_p = NULL;
}

int blob_store_take_known(blob_store_t *self, const struct hash *hash, uint8_t **bytes_p,
                          size_t count, struct why *why)
{
    struct blob *fresh = calloc(1, sizeof *fresh);
    int rc = check_size(count, why);
    if (!fresh && rc == 0) rc = why_set(why, FAULT_MEMORY, "a blob of %zu bytes; not kept", count);
    if (rc < 0) goto out;
    *fresh = (struct blob){ .held = { self, 1, free_blob }, .hash = *hash };
    blob_store_lock(self);
    struct blob *there = find(self, hash);
    if (there && !there->is_loaded) {
        load(there, bytes_p, count);
        blob_spool_leave(&there->place);
    } else if (!there) {
        fresh->bytes = *bytes_p;
        fresh->count = count;
        fresh->is_loaded = true;
        grow(self);
        insert(self, fresh);
        fresh = NULL;
        *bytes_p = NULL;
    }
    blob_store_unlock(self);
    free(*bytes_p); // The store had these bytes already
    *bytes_p = NULL;
    rc = settle(self, hash, false, why);
out:
    free(fresh);
    return rc;
}

int blob_store_sync(blob_store_t *self, const struct hash *hash, struct why *why)
{
    return settle(self, hash, true, why);
}

int blob_store_take(blob_store_t *self, uint8_t **bytes_p, size_t count, struct why *why,
                    struct hash *ret_hash)
{
    int rc = check_size(count, why);
    if (rc < 0) return rc;
    const struct hash hash = hash_of(*bytes_p ? *bytes_p : (const uint8_t *)"", count);
    rc = blob_store_take_known(self, &hash, bytes_p, count, why);
    if (rc == 0) rc = blob_store_sync(self, &hash, why);
    if (blob_store_is_kept(rc)) *ret_hash = hash;
    return rc;
}

int blob_store_put(blob_store_t *self, const void *bytes, size_t count, struct why *why,
                   struct hash *ret_hash)
{
    int rc = check_size(count, why);
    uint8_t *copy = NULL;
    if (rc == 0 && count > 0 && !(copy = malloc(count)))
        rc = why_set(why, FAULT_MEMORY, "a blob of %zu bytes; not kept", count);
    if (rc < 0) return rc;
    if (count > 0) memcpy(copy, bytes, count);
    rc = blob_store_take(self, &copy, count, why, ret_hash);
    free(copy); // NULL unless nothing was kept
    return rc;
}

// Reads the bytes of a blob that is on disk alone. FAULT_NOT_FOUND: it is not on disk any more.
static int read_blob(struct blob_store *self, const struct hash *hash, struct why *why,
                     uint8_t **ret_bytes, size_t *ret_count)
{
    struct spool_place place = { 0 };
    blob_store_lock(self);
    const struct blob *blob = find(self, hash);
    if (blob) place = blob->place, *ret_count = blob->count;
    if (place.file) blob_spool_hold(&place);
    blob_store_unlock(self);
    if (!place.file) return FAULT_NOT_FOUND;
    const int rc = blob_spool_read(self->spool, &place, *ret_count, why, ret_bytes);
    blob_spool_leave(&place);
    return rc;
}

// Loads a blob that is on disk alone. Two threads may both do it: one copy is kept.
static int load_file(struct blob_store *self, const struct hash *hash, struct why *why)
{
    char name[HASH_HEX];
    uint8_t *bytes = NULL;
    size_t count = 0;
    hash_to_hex(hash, name);
    failpoint("blob_load");
    int rc = read_blob(self, hash, why, &bytes, &count);
    if (rc == FAULT_MEMORY) return rc;
    const struct hash is = rc < 0 ? (struct hash){ { 0 } } : hash_of(bytes, count);
    const bool is_sound = rc == 0 && hash_equal(&is, hash);
    blob_store_lock(self);
    struct blob *blob = find(self, hash);
    if (is_sound && blob && !blob->is_loaded) load(blob, &bytes, count);
    const bool is_bad = !is_sound && blob && !blob->is_loaded;
    const bool was_last = is_bad && take_out(self, blob);
    blob_store_unlock(self);
    free(bytes);
    if (!is_bad) return 0; // Loaded, forgotten or put again meanwhile: the caller looks again
    if (was_last) free_blob(&blob->held);
    settle(self, hash, false, NULL);
    if (rc == 0) why_set(why, FAULT_CORRUPT, "its bytes do not match its hash");
    return why_wrap(why, FAULT_CORRUPT, "%s: blob %s is damaged and was removed", self->dir, name);
}

int blob_store_get(blob_store_t *self, const struct hash *hash, struct why *why,
                   struct blob_ref *ret_ref)
{
    for (bool is_read = false;; is_read = true) {
        blob_store_lock(self);
        struct blob *blob = find(self, hash);
        const bool is_here = blob && blob->is_loaded;
        if (is_here) *ret_ref = refer(blob);
        uint64_t place;
        const bool is_leaf = !blob && blob_store_find_leaf(self, hash, ret_ref, &place);
        blob_store_unlock(self);
        if (is_leaf && !ret_ref->bytes)
            return blob_store_read_leaf(self, hash, place, why, ret_ref);
        if (is_here || is_leaf) return 0;
        if (!blob || is_read) break;
        const int rc = load_file(self, hash, why);
        if (rc < 0) return rc;
    }
    char name[HASH_HEX];
    return why_set(why, FAULT_NOT_FOUND, "no blob and no leaf %.16s", hash_to_hex(hash, name));
}

bool blob_store_size(blob_store_t *self, const struct hash *hash, size_t *ret_bytes)
{
    blob_store_lock(self);
    const struct blob *blob = find(self, hash);
    if (blob) *ret_bytes = blob->count;
    blob_store_unlock(self);
    return blob != NULL;
}

struct blob_amounts blob_store_amounts(blob_store_t *self)
{
    blob_store_lock(self);
    const uint64_t pin = blob_store_pin_bytes(self), share = blob_store_share_bytes(self);
    const struct blob_amounts amounts = { .blobs = self->count,
                                          .bytes = self->bytes,
                                          .blobs_ever = self->count_ever,
                                          .bytes_ever = self->bytes_ever,
                                          .state = pin > share ? pin : share,
                                          .state_ever = self->share_bytes_ever };
    blob_store_unlock(self);
    return amounts;
}

void blob_store_drop(blob_store_t *self, const struct hash *hash)
{
    blob_store_lock(self);
    struct blob *blob = find(self, hash);
    const bool was_last = blob && take_out(self, blob);
    blob_store_unlock(self);
    if (was_last) free_blob(&blob->held);
}

void blob_store_sweep(blob_store_t *self, const struct hash *hash)
{
    settle(self, hash, false, NULL);
}

uint32_t blob_store_list(blob_store_t *self, struct wire_blob *ret_blobs, uint32_t max)
{
    uint32_t count = 0;
    blob_store_lock(self);
    for (size_t i = 0; i < self->bucket_count; i++)
        for (const struct blob *blob = self->buckets[i]; blob && count < max; blob = blob->next)
            ret_blobs[count++] = (struct wire_blob){ blob->hash, (uint32_t)blob->count };
    blob_store_unlock(self);
    return count;
}
