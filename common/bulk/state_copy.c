// state_copy -- memory is from large_pages.h and begins at a cache line. A file is made with
// O_TMPFILE; on a file system without it, with a random name that is removed at once. Random, since
// two threads of a trainer make copies. A crash in between leaves an empty file, which
// blob_store_new removes.

#include "common/bulk/state_copy.h"
#include "common/base/ensure.h"
#include "common/base/failpoint.h"
#include "common/base/hash.h"
#include "common/base/large_pages.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static int open_file(int dir_fd)
{
    struct hash random;
    char hex[HASH_HEX], name[HASH_HEX + 8];
    const int flags = O_RDWR | O_CLOEXEC;
    int fd = openat(dir_fd, ".", O_TMPFILE | flags, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)) return fd;
    if (getrandom(&random, sizeof random, 0) != sizeof random) return -1;
    snprintf(name, sizeof name, ".%s.tmp", hash_to_hex(&random, hex));
    fd = openat(dir_fd, name, O_CREAT | O_EXCL | flags, 0600);
    if (fd >= 0) unlinkat(dir_fd, name, 0);
    return fd;
}

static int part_fault(int error, const char *what, size_t count, struct why *why)
{
    return why_set(why, fault_from_errno(error), "%s %zu bytes of a copy of the state: %s", what,
                   count, strerror(error));
}

int state_copy_new(int dir_fd, uint64_t bytes, struct why *why, struct state_copy *ret_copy)
{
    *ret_copy = no_state_copy;
    if (dir_fd < 0) {
        ret_copy->bytes = large_pages_new(bytes);
        if (ret_copy->bytes) return 0;
        return why_set(why, FAULT_MEMORY, "a copy of the state of %" PRIu64 " bytes", bytes);
    }
    int fd = failpoint("state_copy") < 0 ? -1 : open_file(dir_fd);
    int error = fd < 0 ? errno : bytes ? posix_fallocate(fd, 0, (off_t)bytes) : 0;
    if (error == 0) {
        ret_copy->fd = fd;
        return 0;
    }
    if (fd >= 0) close(fd);
    return why_set(why, fault_from_errno(error),
                   "making a copy of the state of %" PRIu64 " bytes: %s", bytes, strerror(error));
}

void state_copy_free(struct state_copy *self)
{
    free(self->bytes);
    if (self->fd >= 0) close(self->fd);
    if (self->view) self->view->destroy(self->view);
    *self = no_state_copy;
}

int state_copy_put(const struct state_copy *self, uint64_t offset, const void *from, size_t count,
                   struct why *why)
{
    ensure(!self->view);
    if (self->fd < 0) {
        memcpy(self->bytes + offset, from, count);
        return 0;
    }
    for (size_t done = 0; done < count;) {
        const ssize_t n =
            pwrite(self->fd, (const char *)from + done, count - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return part_fault(errno, "writing", count, why);
        done += (size_t)n;
    }
    return 0;
}

int state_copy_get(const struct state_copy *self, uint64_t offset, void *to, size_t count,
                   struct why *why)
{
    if (self->view) return self->view->get(self->view, offset, to, count, why);
    if (self->fd < 0) {
        memcpy(to, self->bytes + offset, count);
        return 0;
    }
    for (size_t done = 0; done < count;) {
        const ssize_t n = pread(self->fd, (char *)to + done, count - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return part_fault(n < 0 ? errno : EIO, "reading", count, why);
        done += (size_t)n;
    }
    return 0;
}
