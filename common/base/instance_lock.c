#include "common/base/instance_lock.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HOLDER_ENDS_MS = 1000 };

static void read_holder(int fd, char pid[24])
{
    const ssize_t count = pread(fd, pid, 23, 0);
    pid[count > 0 ? count : 0] = 0;
    pid[strspn(pid, "0123456789")] = 0;
}

// A process that was killed a moment ago holds its lock until the kernel has taken it apart. Waits
// for its end, so that a restart at once does not fail.
static void await_end_of_holder(int fd)
{
    char pid[24];
    read_holder(fd, pid);
    const int holder = (int)syscall(SYS_pidfd_open, atoi(pid), 0);
    if (holder < 0) return; // It is gone already, or the file does not name it
    poll(&(struct pollfd){ .fd = holder, .events = POLLIN }, 1, HOLDER_ENDS_MS);
    close(holder);
}

static int refuse(int fd, const char *dir, const char *name, struct why *why)
{
    char pid[24];
    read_holder(fd, pid);
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
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) await_end_of_holder(fd);
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
