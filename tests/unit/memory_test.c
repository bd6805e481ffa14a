// The free memory where /proc/meminfo can be read, where it cannot, and where nothing tells it. What is
// hidden is hidden in a child with a mount namespace of its own.
#include "common/base/memory.h"
#include "tests/test.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANNOT_HIDE = 77 };
static const char meminfo[] = "/proc/meminfo", nodes[] = "/sys/devices/system/node";

static uint64_t all_bytes(void)
{
    struct sysinfo info;
    assert_int_equal(sysinfo(&info), 0);
    return (uint64_t)info.totalram * info.mem_unit;
}

// Others take and free memory meanwhile.
static bool is_near(uint64_t bytes, uint64_t other)
{
    return bytes > other / 2 && bytes / 2 < other;
}

static bool refuse_sysinfo(void)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sysinfo, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = { sizeof steps / sizeof *steps, steps };
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

// 0: all is as it must be; else the number of what is wrong.
static int look_without(uint64_t seen_before)
{
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("/dev/null", meminfo, NULL, MS_BIND, NULL) != 0)
        return CANNOT_HIDE;
    const uint64_t all = all_bytes(), bytes = memory_available_bytes();
    if (bytes > all || (access(nodes, F_OK) == 0 && !is_near(bytes, seen_before))) return 1;
    // A kernel without nodes: no more than there is, and not the little that is free beside caches.
    if (access(nodes, F_OK) == 0 && mount("none", nodes, "tmpfs", 0, NULL) != 0) return CANNOT_HIDE;
    if (memory_available_bytes() > all || memory_available_bytes() < bytes / 2) return 2;
    if (!refuse_sysinfo()) return CANNOT_HIDE;
    return memory_available_bytes() == 0 ? 0 : 3;
}

static void it_is_found_where_meminfo_is_hidden(void **state)
{
    (void)state;
    int status;
    const uint64_t bytes = memory_available_bytes();
    assert_true(bytes > 0 && bytes <= all_bytes());
    const pid_t child = fork();
    if (child == 0) _exit(look_without(bytes));
    assert_true(waitpid(child, &status, 0) == child && WIFEXITED(status));
    if (WEXITSTATUS(status) == CANNOT_HIDE) skip(); // Needs the right to mount
    assert_int_equal(WEXITSTATUS(status), 0);
}

TESTS(TEST(it_is_found_where_meminfo_is_hidden))
