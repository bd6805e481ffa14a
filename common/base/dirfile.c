// Names first, then reading, writing and removing, each relative to an open directory. Every
// writing step passes a failpoint, so that a test can let it fail as a full disk or a crash would.
#include "common/base/dirfile.h"
#include "common/base/ensure.h"
#include "common/base/plain_name.h"
#include "common/base/failpoint.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Large enough that system calls do not count, small enough for the second-level cache.
enum { BLOCK_BYTES = 1 << 20, FILE_MODE = 0644 };

// Past the cache whole blocks of the disk are written, from memory that begins at such a block.
enum { DIRECT_BYTES = 4096, DIRECT_BLOCK = 1 << 20 };

static int failed(const char *place, const char *doing, struct why *why)
{
    const int error = errno;
    return why_set(why, fault_from_errno(error), "%s: %s failed: %s", place, doing,
                   strerror(error));
}

bool dirfile_name_valid(const char *name)
{
    return name[0] != '.' && name[0] != '-' && plain_name(name, DIRFILE_NAME_MAX);
}

int dirfile_open(int dir, const char *name, bool follow, struct why *why, int *ret_fd,
                 uint64_t *ret_bytes)
{
    // Not blocking, so that a pipe planted under the name cannot hold us up before it is refused.
    const int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW));
    if (fd < 0) return failed(name, "opening", why);
    struct stat stat;
    if (fstat(fd, &stat) < 0 || !S_ISREG(stat.st_mode)) {
        close(fd);
        return why_set(why, FAULT_FORMAT, "%s: not a regular file; refused", name);
    }
    *ret_fd = fd;
    *ret_bytes = (uint64_t)stat.st_size;
    return 0;
}

int dirfile_read(int fd, const char *place, uint64_t offset, void *bytes, size_t count,
                 struct why *why)
{
    for (size_t done = 0; done < count;) {
        const ssize_t n = pread(fd, (char *)bytes + done, count - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return failed(place, "reading", why);
        if (n == 0)
            return why_set(why, FAULT_CORRUPT,
                           "%s: ends at byte %" PRIu64 " while bytes up to "
                           "%" PRIu64 " were there before: it is being changed; not read further",
                           place, offset + done, offset + count);
        done += (size_t)n;
    }
    return 0;
}

int dirfile_slurp(int dir, const char *name, bool follow, size_t bytes_max, struct why *why,
                  char **ret_bytes, size_t *ret_count)
{
    int fd;
    uint64_t size;
    int rc = dirfile_open(dir, name, follow, why, &fd, &size);
    if (rc < 0) return rc;
    char *bytes = NULL;
    if (size > bytes_max)
        rc = why_set(why, FAULT_LIMIT, "%s: %" PRIu64 " bytes, allowed are %zu; not read", name,
                     size, bytes_max);
    else if (!(bytes = malloc((size_t)size + 1)))
        rc = why_set(why, FAULT_MEMORY, "%s: %" PRIu64 " bytes wanted; not read", name, size);
    else rc = dirfile_read(fd, name, 0, bytes, (size_t)size, why);
    close(fd);
    if (rc < 0) {
        free(bytes);
        return rc;
    }
    bytes[size] = 0;
    *ret_bytes = bytes;
    *ret_count = (size_t)size;
    return 0;
}

int dirfile_hash(int fd, const char *place, uint64_t count, struct why *why, struct hash *ret_hash)
{
    char *block = malloc(BLOCK_BYTES);
    if (!block) return why_set(why, FAULT_MEMORY, "%s: no memory to hash it", place);
    struct hasher hasher;
    hasher_init(&hasher);
    int rc = 0;
    for (uint64_t at = 0; at < count && rc == 0;) {
        const size_t n = count - at < BLOCK_BYTES ? (size_t)(count - at) : BLOCK_BYTES;
        rc = dirfile_read(fd, place, at, block, n, why);
        if (rc == 0) hasher_add(&hasher, block, n);
        at += n;
    }
    const struct hash hash = hasher_end(&hasher);
    free(block);
    if (rc == 0) *ret_hash = hash;
    return rc;
}

int dirfile_begin_unhashed(struct dirfile *self, int dir, const char *name, struct why *why)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    const int fd = failpoint("checkpoint_create") < 0 ? -1 : openat(dir, name, flags, FILE_MODE);
    if (fd < 0) return failed(name, "creating", why);
    *self = (struct dirfile){ .fd = fd, .name = name };
    return 0;
}

int dirfile_begin(struct dirfile *self, int dir, const char *name, struct why *why)
{
    const int rc = dirfile_begin_unhashed(self, dir, name, why);
    if (rc < 0) return rc;
    self->hashes = true;
    hasher_init(&self->hasher);
    return 0;
}

// Past the cache, or not any more. Where the file system knows no such thing, nothing changes.
static void set_direct(int fd, bool direct)
{
    const int flags = fcntl(fd, F_GETFL);
    if (flags >= 0) (void)fcntl(fd, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT);
}

int dirfile_begin_direct(struct dirfile *self, int dir, const char *name, struct why *why)
{
    uint8_t *block = aligned_alloc(DIRECT_BYTES, DIRECT_BLOCK);
    if (!block) return why_set(why, FAULT_MEMORY, "%s: no memory to write it", name);
    const int rc = dirfile_begin_unhashed(self, dir, name, why);
    if (rc < 0) {
        free(block);
        return rc;
    }
    self->block = block;
    set_direct(self->fd, true);
    return 0;
}

static int write_all(struct dirfile *self, const uint8_t *bytes, size_t count, struct why *why)
{
    for (size_t done = 0; done < count;) {
        const size_t block = count - done < BLOCK_BYTES ? count - done : BLOCK_BYTES;
        const ssize_t n =
            failpoint("checkpoint_write") < 0 ? -1 : write(self->fd, bytes + done, block);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EINVAL && self->block && (fcntl(self->fd, F_GETFL) & O_DIRECT)) {
            set_direct(self->fd, false); // The file system took the flag, and cannot do it
            continue;
        }
        if (n < 0) return failed(self->name, "writing", why);
        if (self->hashes) hasher_add(&self->hasher, bytes + done, (size_t)n);
        done += (size_t)n;
        self->bytes += (uint64_t)n;
    }
    return 0;
}

static int add_direct(struct dirfile *self, const uint8_t *bytes, size_t count, struct why *why)
{
    while (count > 0) {
        const size_t room = DIRECT_BLOCK - self->block_count, n = count < room ? count : room;
        memcpy(self->block + self->block_count, bytes, n);
        self->block_count += n;
        bytes += n, count -= n;
        if (self->block_count < DIRECT_BLOCK) break;
        self->block_count = 0;
        const int rc = write_all(self, self->block, DIRECT_BLOCK, why);
        if (rc < 0) return rc;
    }
    return 0;
}

int dirfile_add(struct dirfile *self, const void *bytes, size_t count, struct why *why)
{
    return self->block ? add_direct(self, bytes, count, why) : write_all(self, bytes, count, why);
}

// What is left is no whole block of a disk: it goes through the cache.
static int end_direct(struct dirfile *self, struct why *why)
{
    const size_t whole = self->block_count / DIRECT_BYTES * DIRECT_BYTES;
    int rc = write_all(self, self->block, whole, why);
    set_direct(self->fd, false);
    if (rc == 0) rc = write_all(self, self->block + whole, self->block_count - whole, why);
    free(self->block);
    return rc;
}

int dirfile_end(struct dirfile *self, struct why *why, struct hash *ret_hash, uint64_t *ret_bytes)
{
    ensure(self->hashes == (ret_hash != NULL));
    int rc = self->block ? end_direct(self, why) : 0;
    if (rc == 0 && (failpoint("checkpoint_sync") < 0 || fsync(self->fd) < 0))
        rc = failed(self->name, "making it durable", why);
    if (close(self->fd) < 0 && rc == 0) rc = failed(self->name, "closing", why);
    const struct hash hash = self->hashes ? hasher_end(&self->hasher) : (struct hash){ { 0 } };
    if (rc < 0) return rc;
    if (ret_hash) *ret_hash = hash;
    *ret_bytes = self->bytes;
    return 0;
}

void dirfile_abandon(struct dirfile *self)
{
    close(self->fd);
    free(self->block);
    if (self->hashes) (void)hasher_end(&self->hasher);
}

int dirfile_sync_dir(int dir, const char *place, struct why *why)
{
    return failpoint("checkpoint_sync_dir") < 0 || fsync(dir) < 0
               ? failed(place, "making the directory durable", why)
               : 0;
}

int dirfile_next(DIR *list, const char *place, struct why *why, struct dirent **ret_entry)
{
    errno = 0;
    *ret_entry = readdir(list);
    return !*ret_entry && errno != 0 ? failed(place, "listing", why) : 0;
}

// Takes `fd`.
static int empty(int fd, const char *name, struct why *why)
{
    DIR *dir = fdopendir(fd);
    if (!dir) {
        const int rc = failed(name, "listing", why);
        close(fd);
        return rc;
    }
    int rc = 0;
    for (struct dirent *entry;
         rc == 0 && (rc = dirfile_next(dir, name, why, &entry)) == 0 && entry;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (unlinkat(fd, entry->d_name, 0) < 0 && errno != ENOENT)
            rc = failed(name, "removing a file in it", why);
    }
    closedir(dir);
    return rc;
}

int dirfile_remove(int dir, const char *name, struct why *why)
{
    const int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) { // Not a directory: a file or a link
        if (errno == ENOENT || unlinkat(dir, name, 0) == 0 || errno == ENOENT) return 0;
        return failed(name, "removing", why);
    }
    const int rc = empty(fd, name, why);
    if (rc < 0) return rc;
    return unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? failed(name, "removing", why)
                                                                    : 0;
}
