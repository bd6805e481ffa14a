#include "common/ledger/instance_lock.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static int refuse(int fd, const char *dir, const char *name, struct why *why)
{
    char pid[24] = "";
    ssize_t count = pread(fd, pid, sizeof pid - 1, 0);
    pid[count > 0 ? strspn(pid, "0123456789") : 0] = 0;
    return why_set(why, FAULT_BUSY,
                   "%s/%s is held by process %s: only one process may use this "
                   "directory; stop that one first, or use another directory",
                   dir, name, pid[0] ? pid : "(not known)");
}

// Writes our process id into the file, for the text of a refusal. The lock holds even if this
// fails.
static void sign(int fd)
{
    char pid[24];
    int count = snprintf(pid, sizeof pid, "%d\n", (int)getpid());
    if (pwrite(fd, pid, (size_t)count, 0) != count || ftruncate(fd, count) < 0) return;
}

int instance_lock_take(int dir_fd, const char *dir, const char *name, struct why *why, int *ret_fd)
{
    int rc = 0, fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return why_set(why, fault_from_errno(errno), "%s/%s: %s", dir, name, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        rc = errno == EWOULDBLOCK
                 ? refuse(fd, dir, name, why)
                 : why_set(why, fault_from_errno(errno), "%s/%s: %s", dir, name, strerror(errno));
    if (rc < 0) {
        close(fd);
        return rc;
    }
    sign(fd);
    *ret_fd = fd;
    return 0;
}

void instance_lock_release(int fd)
{
    if (fd >= 0) close(fd);
}
