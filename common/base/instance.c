// The file holds one decimal number and a newline. instance_take reads the last number, takes the
// present time or one more than that number, whichever is greater, and stores it before it returns.
#include "common/base/durable_file.h"
#include "common/base/instance.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DIGITS_MAX = 20 };

int instance_read(const char *dir, const char *name, struct why *why, uint64_t *ret_last)
{
    char path[4096], text[DIGITS_MAX + 2] = "", *end;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    *ret_last = 0;
    if (fd < 0 && errno == ENOENT) return 0;
    const ssize_t count = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    const int error = errno;
    if (fd >= 0) close(fd);
    if (count < 0) return why_set(why, fault_from_errno(error), "%s: %s", path, strerror(error));
    errno = 0;
    *ret_last = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && strcmp(end, "\n") == 0 && !errno &&
        *ret_last < UINT64_MAX)
        return 0;
    return why_set(why, FAULT_CORRUPT,
                   "%s: expected a number below 2^64 and a newline; remove the file "
                   "if the clock is right",
                   path);
}

int instance_write(const char *dir, const char *name, uint64_t number, struct why *why)
{
    char text[DIGITS_MAX + 2];
    const int count = snprintf(text, sizeof text, "%" PRIu64 "\n", number);
    const int rc = durable_file_write(dir, name, text, (size_t)count, why);
    return rc < 0 ? why_wrap(why, rc, "%s", dir) : 0;
}

int instance_take(const char *dir, uint64_t unix_ms, struct why *why, uint64_t *ret_instance)
{
    uint64_t last;
    int rc = instance_read(dir, "instance", why, &last);
    if (rc < 0) return rc;
    const uint64_t instance = unix_ms > last ? unix_ms : last + 1;
    rc = instance_write(dir, "instance", instance, why);
    if (rc == 0) *ret_instance = instance;
    return rc;
}
