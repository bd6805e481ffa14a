// blob_spool -- a list of files, the newest last. Opening the spool reads each file from head to head. Put begins a
// new file when the newest one is full. Only the newest file may have blobs that are not synced: it is synced before
// the next one begins. A sweep leaves the newest file, so that it need not be created again for the next blob.

#include "common/bulk/blob_spool.h"
#include "common/base/dirfile.h"
#include "common/base/ensure.h"
#include "common/base/failpoint.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MAGIC = 0x50534253, CHECKED = 44 }; // "SBSP"; the head but for its check

struct spool_file {
    uint64_t number;
    uint64_t bytes, synced; // To the end of the last blob, and of the last durable one
    atomic_uint held;
    TAILQ_ENTRY(spool_file) near;
};
TAILQ_HEAD(spool_files, spool_file);

struct blob_spool {
    struct blob_spool_options is;
    int fd; // Of the newest file; -1: none is open
    struct spool_files files;
    uint64_t number; // Of the next file
};

struct name {
    char text[32];
};

static struct name name_of(uint64_t number)
{
    struct name name;
    snprintf(name.text, sizeof name.text, "spool.%" PRIu64, number);
    return name;
}

static struct spool_file *add_file(struct blob_spool *self, uint64_t number)
{
    struct spool_file *file = calloc(1, sizeof *file), *next;
    if (!file) return NULL;
    file->number = number;
    TAILQ_FOREACH(next, &self->files, near)
    if (next->number > number) break;
    if (next) TAILQ_INSERT_BEFORE(next, file, near);
    else TAILQ_INSERT_TAIL(&self->files, file, near);
    if (number >= self->number) self->number = number + 1;
    return file;
}

static void remove_file(struct blob_spool *self, struct spool_file *file)
{
    TAILQ_REMOVE(&self->files, file, near);
    unlinkat(self->is.dir_fd, name_of(file->number).text, 0);
    free(file);
}

static void close_newest(struct blob_spool *self)
{
    if (self->fd >= 0) close(self->fd);
    self->fd = -1;
}

static int failed(const struct blob_spool *self, const char *deed, uint64_t number, int error,
                  struct why *why)
{
    return why_set(why, fault_from_errno(error), "cannot %s %s/%s: %s", deed, self->is.dir,
                   name_of(number).text, strerror(error));
}

// ---- making durable -------------------------------------------------------------------------

// After a failed fdatasync the kernel may have dropped what it could not write, and a second one would
// succeed all the same. So what is not durable is cut off, and the next blob begins a file. If it cannot be
// cut off, a restart finds it, and the reader compares it with its hash.
static int sync_newest(struct blob_spool *self, struct why *why)
{
    struct spool_file *file = TAILQ_LAST(&self->files, spool_files);
    if (self->is.is_lazy || self->fd < 0 || file->synced == file->bytes) return 0;
    if (failpoint("spool_sync") == 0 && fdatasync(self->fd) == 0) {
        file->synced = file->bytes;
        return 0;
    }
    const int rc = failed(self, "make durable", file->number, errno, why);
    // mutant: what a failed sync has lost stays in the file
    (void)!ftruncate(self->fd, (off_t)file->synced);
    // mutant: a failed sync is trusted the second time
    file->bytes = file->synced;
    close_newest(self);
    return rc;
}

// Makes the names of the files durable. Negative: it failed, errno says why.
static int sync_names(const struct blob_spool *self)
{
    return self->is.is_lazy || (failpoint("spool_sync_dir") == 0 && fsync(self->is.dir_fd) == 0)
               ? 0
               : -1;
}

int blob_spool_sync(struct blob_spool *self, const struct spool_place *place, struct why *why)
{
    if (self->is.is_lazy || place->at <= place->file->synced) return 0;
    ensure(blob_spool_has(place) && place->file == TAILQ_LAST(&self->files, spool_files));
    return sync_newest(self, why);
}

bool blob_spool_has(const struct spool_place *place)
{
    return place->file && place->at <= place->file->bytes;
}

// ---- opening --------------------------------------------------------------------------------

static void fill_head(uint8_t head[SPOOL_HEAD], const struct hash *hash, uint64_t count)
{
    le_put(head, MAGIC, 4);
    le_put(head + 4, count, 8);
    memcpy(head + 12, hash->bytes, HASH_BYTES);
    const struct hash check = hash_of(head, CHECKED);
    memcpy(head + CHECKED, check.bytes, SPOOL_HEAD - CHECKED);
}

static bool read_head(const uint8_t head[SPOOL_HEAD], struct hash *ret_hash, uint64_t *ret_count)
{
    uint8_t right[SPOOL_HEAD];
    *ret_count = le_get(head + 4, 8);
    memcpy(ret_hash->bytes, head + 12, HASH_BYTES);
    fill_head(right, ret_hash, *ret_count);
    return memcmp(head, right, SPOOL_HEAD) == 0;
}

// The process that wrote the file may have ended before it synced. So the file is synced here, and every blob that is
// found is durable.
static int walk(struct blob_spool *self, struct spool_file *file, struct why *why)
{
    const struct name name = name_of(file->number);
    uint8_t head[SPOOL_HEAD];
    struct hash hash;
    uint64_t bytes, at, count;
    int fd = -1, rc = dirfile_open(self->is.dir_fd, name.text, false, why, &fd, &bytes);
    for (at = 0; rc == 0 && bytes - at >= SPOOL_HEAD; at += SPOOL_HEAD + count) {
        rc = dirfile_read(fd, name.text, at, head, sizeof head, why);
        if (rc < 0 || !read_head(head, &hash, &count) || count > bytes - at - SPOOL_HEAD) break;
        const struct spool_place place = { file, at + SPOOL_HEAD };
        if (self->is.found(self->is.arg, &hash, count, &place)) blob_spool_hold(&place);
    }
    file->bytes = file->synced = at;
    if (rc == 0 && !self->is.is_lazy && (failpoint("spool_found") < 0 || fdatasync(fd) < 0))
        rc = why_set(why, fault_from_errno(errno), "cannot make %s durable: %s", name.text,
                     strerror(errno));
    if (fd >= 0) close(fd);
    return rc < 0 ? why_wrap(why, rc, "%s", self->is.dir) : 0;
}

static int find_files(struct blob_spool *self, struct why *why)
{
    const int fd = openat(self->is.dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (!list)
        return why_set(why, fault_from_errno(errno), "%s: %s", self->is.dir, strerror(errno));
    bool fits = true;
    for (struct dirent *entry; fits && (entry = readdir(list));) {
        char *end;
        if (strncmp(entry->d_name, "spool.", 6) != 0) continue;
        const uint64_t number = strtoull(entry->d_name + 6, &end, 10);
        if (strcmp(entry->d_name, name_of(number).text) == 0 && number < UINT64_MAX)
            fits = add_file(self, number);
    }
    closedir(list);
    return fits ? 0 : why_set(why, FAULT_MEMORY, "%s: no memory for its files", self->is.dir);
}

int blob_spool_open(const struct blob_spool_options *options, struct why *why,
                    struct blob_spool **ret_self)
{
    struct blob_spool *self = calloc(1, sizeof *self);
    struct spool_file *file;
    ensure(self);
    *self = (struct blob_spool){ .is = *options, .fd = -1 };
    TAILQ_INIT(&self->files);
    int rc = find_files(self, why);
    TAILQ_FOREACH(file, &self->files, near)
    if (rc == 0) rc = walk(self, file, why);
    if (rc == 0 && !TAILQ_EMPTY(&self->files) && sync_names(self) < 0)
        rc = why_set(why, fault_from_errno(errno), "%s: cannot make its files durable: %s",
                     self->is.dir, strerror(errno));
    if (rc == 0) blob_spool_sweep(self);
    *ret_self = self;
    return rc;
}

void blob_spool_close(struct blob_spool **self_p)
{
    struct blob_spool *self = *self_p;
    struct spool_file *file;
    if (!self) return;
    close_newest(self);
    while ((file = TAILQ_FIRST(&self->files))) {
        TAILQ_REMOVE(&self->files, file, near);
        free(file);
    }
    free(self);
    *self_p = NULL;
}

// ---- putting --------------------------------------------------------------------------------

// If the previous file cannot be synced, its blobs that were not durable are lost. That is no fault here:
// blob_spool_has tells it of each, and the store puts them again when it syncs them.
static int begin_file(struct blob_spool *self, struct why *why)
{
    const struct name name = name_of(self->number);
    (void)sync_newest(self, NULL);
    close_newest(self);
    if (failpoint("spool_create") == 0)
        self->fd =
            openat(self->is.dir_fd, name.text, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    // mutant: a new file of blobs is not in its folder for good
    if (self->fd >= 0 && sync_names(self) == 0 && add_file(self, self->number)) return 0;
    const int error = errno;
    if (self->fd >= 0) unlinkat(self->is.dir_fd, name.text, 0);
    close_newest(self);
    return failed(self, "create", self->number, error, why);
}

static int write_both(int fd, const uint8_t head[SPOOL_HEAD], const void *bytes, size_t count,
                      uint64_t at)
{
    struct iovec parts[2] = { { (void *)(uintptr_t)head, SPOOL_HEAD },
                              { (void *)(uintptr_t)bytes, count } };
    for (int i = 0; i < 2;) {
        ssize_t n = failpoint("spool_write") < 0 ? -1 : pwritev(fd, parts + i, 2 - i, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        at += (uint64_t)n;
        for (; i < 2 && (size_t)n >= parts[i].iov_len; i++) n -= (ssize_t)parts[i].iov_len;
        if (i == 2) break;
        parts[i].iov_base = (char *)parts[i].iov_base + n;
        parts[i].iov_len -= (size_t)n;
    }
    return 0;
}

// After a failed write: what was written of the blob is cut off, since blobs behind it would not be found.
static void give_up(struct blob_spool *self, struct spool_file *file)
{
    if (file->bytes > 0 && ftruncate(self->fd, (off_t)file->bytes) == 0) return;
    (void)sync_newest(self, NULL); // As in begin_file: the next blob begins a new file
    close_newest(self);
    if (file->bytes == 0 && atomic_load(&file->held) == 0) remove_file(self, file);
}

int blob_spool_put(struct blob_spool *self, const struct hash *hash, const void *bytes,
                   size_t count, struct why *why, struct spool_place *ret_place)
{
    struct spool_file *file = TAILQ_LAST(&self->files, spool_files);
    uint8_t head[SPOOL_HEAD];
    const bool fits = self->fd >= 0 && file->bytes + SPOOL_HEAD + count <= SPOOL_FILE_BYTES;
    int rc = fits ? 0 : begin_file(self, why);
    if (rc < 0) return rc;
    file = TAILQ_LAST(&self->files, spool_files);
    fill_head(head, hash, count);
    if (write_both(self->fd, head, bytes, count, file->bytes) < 0) {
        rc = failed(self, "write to", file->number, errno, why);
        give_up(self, file);
        return rc;
    }
    *ret_place = (struct spool_place){ file, file->bytes + SPOOL_HEAD };
    file->bytes += SPOOL_HEAD + count;
    blob_spool_hold(ret_place);
    return 0;
}

// ---- reading and leaving --------------------------------------------------------------------

int blob_spool_read(const struct blob_spool *self, const struct spool_place *place, size_t count,
                    struct why *why, uint8_t **ret_bytes)
{
    const struct name name = name_of(place->file->number);
    uint64_t bytes;
    int fd, rc = dirfile_open(self->is.dir_fd, name.text, false, why, &fd, &bytes);
    if (rc < 0) return rc;
    *ret_bytes = malloc(count + 1);
    if (!*ret_bytes) rc = why_set(why, FAULT_MEMORY, "a blob of %zu bytes", count);
    else rc = dirfile_read(fd, name.text, place->at, *ret_bytes, count, why);
    close(fd);
    if (rc < 0) free(*ret_bytes), *ret_bytes = NULL;
    return rc;
}

void blob_spool_hold(const struct spool_place *place) { atomic_fetch_add(&place->file->held, 1); }

void blob_spool_leave(struct spool_place *place)
{
    if (place->file) ensure(atomic_fetch_sub(&place->file->held, 1) > 0);
    *place = (struct spool_place){ 0 };
}

void blob_spool_sweep(struct blob_spool *self)
{
    struct spool_file *file, *next;
    for (file = TAILQ_FIRST(&self->files); file; file = next) {
        next = TAILQ_NEXT(file, near);
        if (atomic_load(&file->held) == 0 && (next || self->fd < 0)) remove_file(self, file);
    }
}
