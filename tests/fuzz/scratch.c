// scratch -- makes the folder at the first call and removes it when the process ends.

#include "tests/fuzz/scratch.h"
#include "common/base/dirfile.h"
#include "common/base/ensure.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];
static int dir_fd = -1;

static void clean(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    if (system(command) != 0) fprintf(stderr, "%s: not removed\n", dir);
}

// In memory where there is such a folder: a fuzzer writes a thousand files a second.
int scratch_fd(void)
{
    if (dir_fd >= 0) return dir_fd;
    const bool shared = access("/dev/shm", W_OK) == 0;
    snprintf(dir, sizeof dir, "%s/shoal-fuzz-XXXXXX", shared ? "/dev/shm" : "/tmp");
    ensure(mkdtemp(dir));
    dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ensure(dir_fd >= 0);
    atexit(clean);
    return dir_fd;
}

const char *scratch_dir(void)
{
    scratch_fd();
    return dir;
}

const char *scratch_path(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", scratch_dir(), name);
    return path;
}

void scratch_put(const char *name, const void *bytes, size_t count)
{
    const int fd = openat(scratch_fd(), name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ensure(fd >= 0 && (count == 0 || write(fd, bytes, count) == (ssize_t)count));
    close(fd);
}

void scratch_remove(const char *name) { dirfile_remove(scratch_fd(), name, NULL); }

void scratch_make_folder(const char *name) { ensure(mkdirat(scratch_fd(), name, 0700) == 0); }
