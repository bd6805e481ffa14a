// The sockets of a process are found by their inode: /proc/PID/net/tcp says which one has that far
// end, /proc/PID/fd where it is. pidfd_getfd gives us the same socket, and connect to AF_UNSPEC ends its connection
// with a reset.

#include "tests/live/cut_link.h"
#include "common/base/clock.h"
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { INODES_MAX = 256, ESTABLISHED = 1 };

static unsigned find_inodes(pid_t pid, unsigned port, unsigned long inodes[INODES_MAX])
{
    char path[64], line[256];
    unsigned count = 0, far_port, state;
    unsigned long inode;
    snprintf(path, sizeof path, "/proc/%d/net/tcp", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, " %*d: %*x:%*x %*x:%x %x %*x:%*x %*x:%*x %*x %*u %*u %lu", &far_port,
                   &state, &inode) == 3 &&
            far_port == port && state == ESTABLISHED && count < INODES_MAX)
            inodes[count++] = inode;
    if (file) fclose(file);
    return count;
}

// The inode of a descriptor that is a socket; 0: it is none.
static unsigned long inode_of(const char *dir, const char *fd)
{
    char path[128], link[64] = "";
    unsigned long inode;
    snprintf(path, sizeof path, "%s/%.32s", dir, fd);
    if (readlink(path, link, sizeof link - 1) < 0) return 0;
    return sscanf(link, "socket:[%lu]", &inode) == 1 ? inode : 0;
}

static bool reset(int pidfd, const char *fd)
{
    const struct sockaddr nobody = { .sa_family = AF_UNSPEC };
    const int own = (int)syscall(SYS_pidfd_getfd, pidfd, atoi(fd), 0);
    if (own < 0) return false;
    const bool done = connect(own, &nobody, sizeof nobody) == 0;
    close(own);
    return done;
}

static int cut_of(pid_t pid, unsigned port, uint64_t *us)
{
    unsigned long inodes[INODES_MAX];
    char dir_path[64];
    const unsigned wanted = find_inodes(pid, port, inodes);
    int cut = 0, failed = 0;
    snprintf(dir_path, sizeof dir_path, "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(dir_path);
    const int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    for (const struct dirent *entry; dir && pidfd >= 0 && (entry = readdir(dir));) {
        const unsigned long inode = inode_of(dir_path, entry->d_name);
        for (unsigned i = 0; inode && i < wanted; i++) {
            if (inodes[i] != inode) continue;
            if (*us == 0) *us = clock_us();
            if (reset(pidfd, entry->d_name)) cut++;
            else failed++;
        }
    }
    if (dir) closedir(dir);
    if (pidfd >= 0) close(pidfd);
    return failed || !dir || pidfd < 0 ? -1 : cut;
}

int cut_link(struct cut_end a, struct cut_end b, uint64_t *ret_us)
{
    *ret_us = 0;
    const int from_a = cut_of(a.pid, b.port, ret_us), from_b = cut_of(b.pid, a.port, ret_us);
    return from_a < 0 || from_b < 0 ? -1 : from_a + from_b;
}
