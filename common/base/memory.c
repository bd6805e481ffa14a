// Asks the kernel for three limits and keeps the least: what /proc/meminfo says is available, what
// each control group above us leaves, and what the limit of our address space leaves. A limit that
// cannot be read does not count.
#include "common/base/memory.h"
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

// The number after `key` in a file of "key number" lines; with "", that of the first line.
static bool number_in(const char *path, const char *key, uint64_t *ret_number)
{
    char line[256];
    bool found = false;
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line, file))
        found = strncmp(line, key, strlen(key)) == 0 &&
                sscanf(line + strlen(key), "%" SCNu64, ret_number) == 1;
    if (file) fclose(file);
    return found;
}

static void least(uint64_t *least_bytes, uint64_t bytes)
{
    if (*least_bytes == 0 || bytes < *least_bytes) *least_bytes = bytes ? bytes : 1;
}

static uint64_t left(uint64_t limit, uint64_t used) { return limit > used ? limit - used : 0; }

// Control groups, version 2: our own and all above it. "max" is not a number and sets no limit.
static void ask_groups(uint64_t *least_bytes)
{
    char line[PATH_MAX], path[PATH_MAX + 64];
    uint64_t limit, used, files;
    FILE *file = fopen("/proc/self/cgroup", "re");
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) found = strncmp(line, "0::/", 4) == 0;
    if (file) fclose(file);
    if (!found) return;
    line[strcspn(line, "\n")] = 0;
    for (char *end = line + strlen(line); end; end = strrchr(line + 3, '/')) {
        *end = 0;
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", line + 3);
        const bool limited = number_in(path, "", &limit);
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.current", line + 3);
        if (!limited || !number_in(path, "", &used)) continue;
        // The page cache counts as used in this file, but the kernel frees it on demand
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.stat", line + 3);
        if (!number_in(path, "inactive_file", &files)) files = 0;
        least(least_bytes, left(limit, left(used, files)));
    }
}

uint64_t memory_available_bytes(void)
{
    uint64_t bytes = 0, kib, used_kib;
    struct rlimit limit;
    if (number_in("/proc/meminfo", "MemAvailable:", &kib)) least(&bytes, kib << 10);
    ask_groups(&bytes);
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        number_in("/proc/self/status", "VmSize:", &used_kib))
        least(&bytes, left(limit.rlim_cur, used_kib << 10));
    return bytes;
}
