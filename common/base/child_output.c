// Starts the program with its output on a pipe, reads the pipe until it ends or a limit is passed,
// and then waits for the exit code. A fault on the way kills the child first, so that the wait
// ends; the first fault is the one that is reported.
#include "common/base/child_output.h"
#include "common/base/clock.h"
#include <inttypes.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int start(const char *const argv[], int output, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    char path[4096] = "PATH=/usr/bin:/bin";
    const char *ours = getenv("PATH");
    if (ours && strlen(ours) < sizeof path - 6) snprintf(path, sizeof path, "PATH=%s", ours);
    char language[] = "LC_ALL=C";
    char *const environment[] = { path, language, NULL };

    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!error) error = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    if (!error)
        error = posix_spawnp(ret_pid, argv[0], &actions, NULL, (char *const *)argv, environment);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

// Reads to the end of the output. 0, or a fault: the child must then be killed.
static int drain(int fd, const char *name, const struct child_limits *limits,
                 child_output_sink *sink, void *context, struct why *why)
{
    const uint64_t deadline_ms = clock_ms() + limits->timeout_ms;
    uint64_t total = 0;
    char bytes[16384];
    for (;;) {
        const uint64_t now = clock_ms();
        struct pollfd ready = { .fd = fd, .events = POLLIN };
        const int events = poll(&ready, 1, now < deadline_ms ? (int)(deadline_ms - now) : 0);
        if (events < 0 && errno == EINTR) continue;
        if (events == 0)
            return why_set(why, FAULT_TIMEOUT, "%s is not done after %u ms; it was ended", name,
                           limits->timeout_ms);
        const ssize_t got = read(fd, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return why_set(why, FAULT_IO, "cannot read from %s: %s", name, strerror(errno));
        if (got == 0) return 0;
        total += (uint64_t)got;
        if (total > limits->bytes_max)
            return why_set(why, FAULT_LIMIT, "%s prints more than %" PRIu64 " bytes; it was ended",
                           name, limits->bytes_max);
        int rc = sink(context, bytes, (size_t)got, why);
        if (rc < 0) return rc;
    }
}

static int reap(pid_t pid, const char *name, struct why *why)
{
    int status;
    pid_t got;
    do got = waitpid(pid, &status, 0);
    while (got < 0 && errno == EINTR);
    if (got < 0) return why_set(why, FAULT_IO, "cannot wait for %s: %s", name, strerror(errno));
    if (WIFSIGNALED(status))
        return why_set(why, FAULT_IO, "%s was ended by signal %d", name, WTERMSIG(status));
    if (WEXITSTATUS(status))
        return why_set(why, FAULT_IO, "%s failed with exit code %d", name, WEXITSTATUS(status));
    return 0;
}

int child_output(const char *const argv[], const struct child_limits *limits,
                 child_output_sink *sink, void *context, struct why *why)
{
    int ends[2];
    pid_t pid;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return why_set(why, FAULT_IO, "no pipe for %s: %s", argv[0], strerror(errno));
    const int error = start(argv, ends[1], &pid);
    close(ends[1]);
    if (error) {
        close(ends[0]);
        return why_set(why, fault_from_errno(error), "cannot run %s: %s", argv[0], strerror(error));
    }
    int rc = drain(ends[0], argv[0], limits, sink, context, why);
    if (rc < 0) kill(pid, SIGKILL);
    close(ends[0]);
    const int left = reap(pid, argv[0], rc < 0 ? NULL : why);
    return rc < 0 ? rc : left;
}
