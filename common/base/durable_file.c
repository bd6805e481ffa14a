// The order decides what a crash leaves behind: write the hidden file, fsync it, rename it over the
// name, fsync the folder. A failpoint precedes each of these steps. A failed commit removes the hidden file.
// durable_file_rename_only leaves out both fsyncs, and has no failpoint.
#include "common/base/durable_file.h"
#include "common/base/ensure.h"
#include "common/base/failpoint.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// The new content has its name, but that may not be durable.
static int fail_late(const struct durable_file *self, struct why *why)
{
    const int error = errno;
    return why_set(why, fault_from_errno(error),
                   "%s is written, but its folder cannot be made durable: %s; a power cut may "
                   "bring back what was there before",
                   self->name, strerror(error));
}

static int fail(const struct durable_file *self, const char *deed, struct why *why)
{
    const int error = errno;
    return why_set(why, fault_from_errno(error), "%s %s: %s; what was there before stays", deed,
                   self->name, strerror(error));
}

static void end(struct durable_file *self)
{
    if (self->fd >= 0) close(self->fd);
    if (self->dir_fd >= 0) close(self->dir_fd);
    self->fd = self->dir_fd = -1;
}

int durable_file_create(const char *dir, const char *name, struct why *why,
                        struct durable_file *ret_file)
{
    ensure(*name && !strchr(name, '/') && strlen(name) <= DURABLE_FILE_NAME_MAX);
    struct durable_file self = { .dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                                 .fd = -1 };
    snprintf(self.name, sizeof self.name, "%s", name);
    snprintf(self.temporary, sizeof self.temporary, ".%s.tmp", name);
    if (self.dir_fd < 0) {
        const int error = errno;
        return why_set(why, fault_from_errno(error), "cannot open the folder %s: %s", dir,
                       strerror(error));
    }
    if (failpoint("file_create") == 0)
        self.fd =
            openat(self.dir_fd, self.temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (self.fd < 0) {
        int rc = fail(&self, "cannot create", why);
        end(&self);
        return why_wrap(why, rc, "%s", dir);
    }
    *ret_file = self;
    return 0;
}

int durable_file_append(struct durable_file *self, const void *bytes, size_t count, struct why *why)
{
    const char *at = bytes;
    for (size_t left = count; left > 0;) {
        const ssize_t wrote = failpoint("file_write") < 0 ? -1 : write(self->fd, at, left);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return fail(self, "cannot write", why);
        at += wrote;
        left -= (size_t)wrote;
    }
    self->bytes += count;
    return 0;
}

int durable_file_commit(struct durable_file *self, struct why *why)
{
    int rc = 0;
    if (failpoint("file_sync") < 0 || fsync(self->fd) < 0 || failpoint("file_rename") < 0 ||
        renameat(self->dir_fd, self->temporary, self->dir_fd, self->name) < 0)
        rc = fail(self, "cannot make durable", why);
    else if (failpoint("file_renamed") < 0 || fsync(self->dir_fd) < 0) rc = fail_late(self, why);
    if (rc < 0) unlinkat(self->dir_fd, self->temporary, 0);
    end(self);
    return rc;
}

int durable_file_rename_only(struct durable_file *self, struct why *why)
{
    int rc = renameat(self->dir_fd, self->temporary, self->dir_fd, self->name) < 0
                 ? fail(self, "cannot rename", why)
                 : 0;
    if (rc < 0) unlinkat(self->dir_fd, self->temporary, 0);
    end(self);
    return rc;
}

void durable_file_abandon(struct durable_file *self)
{
    if (self->fd >= 0) unlinkat(self->dir_fd, self->temporary, 0);
    end(self);
}

int durable_file_write(const char *dir, const char *name, const void *bytes, size_t count,
                       struct why *why)
{
    struct durable_file file;
    int rc = durable_file_create(dir, name, why, &file);
    if (rc < 0) return rc;
    rc = durable_file_append(&file, bytes, count, why);
    if (rc < 0) durable_file_abandon(&file);
    else rc = durable_file_commit(&file, why);
    return rc;
}
