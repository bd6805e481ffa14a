// Asks the kernel for three limits and keeps the least: what the machine has available, what each
// control group above us leaves, and what the limit of our address space leaves. A limit that cannot
// be read does not count.
#include "common/base/memory.h"
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

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

// The sum over the lines of a node's meminfo, "Node 0 Inactive(file):  2048 kB", that count memory
// which the kernel frees on demand.
static uint64_t cache_of_node(const char *path)
{
    static const char *const keys[] = { "Active(file)", "Inactive(file)", "SReclaimable" };
    char line[256], key[64];
    uint64_t sum = 0, kib;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (sscanf(line, "Node %*u %63[^:]: %" SCNu64, key, &kib) == 2 &&
                strcmp(key, keys[i]) == 0)
                sum += kib << 10;
    if (file) fclose(file);
    return sum;
}

// Without /proc/meminfo, which a unit with ProcSubset=pid does not see: the free memory, and the
// caches of all nodes. A kernel without nodes does not tell how large the caches are; then all
// memory of the machine counts, as the free memory alone would be too little by far.
static uint64_t machine_bytes(void)
{
    struct sysinfo info;
    uint64_t cache = 0;
    glob_t nodes;
    if (sysinfo(&info) != 0) return 0;
    if (glob("/sys/devices/system/node/node[0-9]*/meminfo", 0, NULL, &nodes) == 0) {
        for (size_t i = 0; i < nodes.gl_pathc; i++) cache += cache_of_node(nodes.gl_pathv[i]);
        globfree(&nodes);
    }
    const uint64_t all = (uint64_t)info.totalram * info.mem_unit;
    const uint64_t available = (uint64_t)info.freeram * info.mem_unit + cache;
    return cache == 0 || available > all ? all : available;
}

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
    uint64_t bytes = 0, kib, used_kib, machine;
    struct rlimit limit;
    if (number_in("/proc/meminfo", "MemAvailable:", &kib)) least(&bytes, kib << 10);
    else if ((machine = machine_bytes()) > 0) least(&bytes, machine);
    ask_groups(&bytes);
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        number_in("/proc/self/status", "VmSize:", &used_kib))
        least(&bytes, left(limit.rlim_cur, used_kib << 10));
    return bytes;
}
