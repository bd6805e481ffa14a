#include "common/data/token_dir.h"
#include "common/data/samples.h"
#include <inttypes.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool ends_in(const char *name, const char *suffix)
{
    const size_t count = strlen(name), tail = strlen(suffix);
    return count > tail && strcmp(name + count - tail, suffix) == 0;
}

bool token_dir_is_name(const char *name)
{
    return name[0] != '.' && !strchr(name, '/') && strlen(name) <= TOKEN_NAME_MAX &&
           (ends_in(name, ".bin") || ends_in(name, ".npy") || ends_in(name, ".ds"));
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add(struct token_dir *self, const char *dir, const char *name, struct why *why)
{
    if (self->count == SAMPLES_FILES_MAX)
        return why_set(why, FAULT_LIMIT, "%s: more than %d token files", dir, SAMPLES_FILES_MAX);
    if ((self->count & (self->count - 1)) == 0) {
        const size_t capacity = self->count ? 2 * (size_t)self->count : 1;
        char **names = realloc(self->names, capacity * sizeof *names);
        if (!names) return why_set(why, FAULT_MEMORY, "%s: a list of %zu names", dir, capacity);
        self->names = names;
    }
    self->names[self->count] = strdup(name);
    if (!self->names[self->count]) return why_set(why, FAULT_MEMORY, "%s: the name %s", dir, name);
    self->count++;
    return 0;
}

int token_dir_list(const char *dir, struct why *why, struct token_dir *ret_list)
{
    struct token_dir self = { 0 };
    int rc = 0;
    DIR *stream = opendir(dir);
    if (!stream) {
        const int error = errno;
        return why_set(why, fault_from_errno(error), "cannot open the data folder %s: %s", dir,
                       strerror(error));
    }
    struct dirent *entry;
    while (rc == 0 && (errno = 0, entry = readdir(stream)) != NULL)
        if (token_dir_is_name(entry->d_name)) rc = add(&self, dir, entry->d_name, why);
    if (rc == 0 && errno != 0)
        rc = why_set(why, FAULT_IO, "cannot list the data folder %s: %s", dir, strerror(errno));
    if (rc == 0 && self.count == 0)
        rc =
            why_set(why, FAULT_NOT_FOUND, "%s: no token file (*.bin, *.npy or *.ds) is in it", dir);
    closedir(stream);
    if (rc < 0) {
        token_dir_free(&self);
        return rc;
    }
    qsort(self.names, self.count, sizeof *self.names, by_name);
    *ret_list = self;
    return 0;
}

void token_dir_free(struct token_dir *self)
{
    for (uint32_t i = 0; i < self->count; i++) free(self->names[i]);
    free(self->names);
    *self = (struct token_dir){ 0 };
}

char *token_dir_path(const char *dir, const char *name)
{
    char *path;
    return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

int token_dir_open(const char *path, struct why *why, int *ret_fd, uint64_t *ret_bytes)
{
    struct stat stat;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // Does not wait if it is a pipe
    if (fd < 0 || fstat(fd, &stat) < 0) {
        const int error = errno;
        if (fd >= 0) close(fd);
        return why_set(why, fault_from_errno(error), "cannot open %s: %s", path, strerror(error));
    }
    if (!S_ISREG(stat.st_mode)) {
        close(fd);
        return why_set(why, FAULT_FORMAT, "%s is not a plain file", path);
    }
    *ret_fd = fd;
    *ret_bytes = (uint64_t)stat.st_size;
    return 0;
}

int token_dir_read(int fd, const char *path, uint64_t offset, size_t count, void *out,
                   struct why *why)
{
    for (size_t done = 0; done < count;) {
        const ssize_t got = pread(fd, (char *)out + done, count - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            const int error = errno;
            return why_set(why, fault_from_errno(error), "cannot read %s at byte %" PRIu64 ": %s",
                           path, (uint64_t)(offset + done), strerror(error));
        }
        if (got == 0)
            return why_set(why, FAULT_CORRUPT,
                           "%s ends at byte %" PRIu64 "; it was longer when it was"
                           " opened",
                           path, (uint64_t)(offset + done));
        done += (size_t)got;
    }
    return 0;
}
