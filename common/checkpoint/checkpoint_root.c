// checkpoint_root -- names are made and recognised in one place: "step-" and eight digits, and the
// same with ".tmp-" and a process id. Everything else in the folder is ignored.

#include "common/checkpoint/checkpoint_root.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { STEP_DIGITS = 8, SHORT_NAME = sizeof "step-" - 1 + STEP_DIGITS };

const char *checkpoint_root_name(uint64_t step, char name[CHECKPOINT_NAME])
{
    snprintf(name, CHECKPOINT_NAME, "step-%0*" PRIu64, STEP_DIGITS, step);
    return name;
}

const char *checkpoint_root_tmp_name(uint64_t step, char name[CHECKPOINT_NAME])
{
    snprintf(name, CHECKPOINT_NAME, "step-%0*" PRIu64 ".tmp-%ld", STEP_DIGITS, step,
             (long)getpid());
    return name;
}

static size_t digits(const char *text) { return strspn(text, "0123456789"); }

static bool is_step(const char *name)
{
    return strncmp(name, "step-", 5) == 0 && digits(name + 5) == STEP_DIGITS && !name[SHORT_NAME];
}

static bool is_tmp(const char *name)
{
    return strncmp(name, "step-", 5) == 0 && digits(name + 5) == STEP_DIGITS &&
           strncmp(name + SHORT_NAME, ".tmp-", 5) == 0 && digits(name + SHORT_NAME + 5) > 0 &&
           !name[SHORT_NAME + 5 + digits(name + SHORT_NAME + 5)];
}

static int failed(const char *root, const char *doing, struct why *why)
{
    const int error = errno;
    return why_set(why, fault_from_errno(error), "checkpoints in %s: %s failed: %s", root, doing,
                   strerror(error));
}

static int open_folder(const char *root, int flags, struct why *why, int *ret_fd)
{
    const int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
    if (fd < 0) return failed(root, "opening the folder", why);
    *ret_fd = fd;
    return 0;
}

int checkpoint_root_open(const char *root, struct why *why, int *ret_fd)
{
    return open_folder(root, 0, why, ret_fd);
}

int checkpoint_root_open_own(const char *root, struct why *why, int *ret_fd)
{
    return open_folder(root, O_NOFOLLOW, why, ret_fd);
}

int checkpoint_root_lock(int fd, const char *root, struct why *why)
{
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return 0;
    if (errno != EWOULDBLOCK) return failed(root, "locking", why);
    return why_set(why, FAULT_BUSY,
                   "checkpoints in %s: another process is writing there; a folder "
                   "has one writer at a time; nothing written",
                   root);
}

// A second descriptor, so that two listings do not share a position.
static int open_listing(int fd, const char *root, struct why *why, DIR **ret_dir)
{
    const int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (again < 0) return failed(root, "listing", why);
    DIR *dir = fdopendir(again);
    if (!dir) {
        const int rc = failed(root, "listing", why);
        close(again);
        return rc;
    }
    *ret_dir = dir;
    return 0;
}

static int descending(const void *a, const void *b)
{
    const uint64_t s = *(const uint64_t *)a, t = *(const uint64_t *)b;
    return s > t ? -1 : s < t;
}

int checkpoint_root_steps(int fd, const char *root, struct why *why,
                          struct checkpoint_steps *ret_steps)
{
    DIR *dir;
    int rc = open_listing(fd, root, why, &dir);
    if (rc < 0) return rc;
    size_t count = 0;
    for (struct dirent *entry;
         rc == 0 && (rc = dirfile_next(dir, root, why, &entry)) == 0 && entry;) {
        if (!is_step(entry->d_name)) continue;
        if (count == CHECKPOINT_LIST_MAX)
            rc = why_set(why, FAULT_LIMIT, "checkpoints in %s: more than %d; not listed", root,
                         CHECKPOINT_LIST_MAX);
        else ret_steps->steps[count++] = strtoull(entry->d_name + 5, NULL, 10);
    }
    closedir(dir);
    ret_steps->count = count;
    qsort(ret_steps->steps, count, sizeof *ret_steps->steps, descending);
    return rc;
}

int checkpoint_root_clean(int fd, const char *root, struct why *why)
{
    DIR *dir;
    // A .tmp may be the old half of a swap whose writer died before the rename was durable.
    int rc = dirfile_sync_dir(fd, root, why);
    if (rc == 0) rc = open_listing(fd, root, why, &dir);
    if (rc < 0) return rc;
    for (struct dirent *entry;
         rc == 0 && (rc = dirfile_next(dir, root, why, &entry)) == 0 && entry;) {
        if (is_tmp(entry->d_name)) rc = dirfile_remove(fd, entry->d_name, why);
    }
    closedir(dir);
    return rc < 0 ? why_wrap(why, rc, "cleaning %s", root) : 0;
}
