// Faults that can be seen before the fork are returned; those of the child come as exit codes. The
// order in the child matters: its own group first, then the death signal, then the check that the
// parent still lives, which closes the gap between fork and prctl.
#include "common/base/process.h"
#include "common/base/ensure.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

void arguments_add(struct arguments *self, const char *format, ...)
{
    char *at = self->bytes + self->used;
    va_list args;
    va_start(args, format);
    int count = vsnprintf(at, ARGUMENTS_BYTES - self->used, format, args);
    va_end(args);
    ensure(count >= 0 && self->used + (uint32_t)count < ARGUMENTS_BYTES &&
           self->count < ARGUMENTS_MAX);
    self->list[self->count++] = at;
    self->used += (uint32_t)count + 1;
}

// The added variables come before our own: of two with one name getenv finds the first.
static char **make_env(const char *const *added)
{
    size_t ours = 0, more = 0;
    while (environ[ours]) ours++;
    while (added && added[more]) more++;
    char **env = calloc(more + ours + 1, sizeof *env);
    ensure(env);
    for (size_t i = 0; i < more; i++) env[i] = (char *)(uintptr_t)added[i];
    memcpy(env + more, environ, ours * sizeof *env);
    return env;
}

// Runs in the child. Between fork and exec only system calls: other threads may have held any lock.
_Noreturn static void become(const struct process_options *options, char *const *env, int log,
                             int null, pid_t parent)
{
    char *const *list = options->arguments->list;
    sigset_t none;
    sigemptyset(&none);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(EX_TEMPFAIL); // The parent died in between
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(null, STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    if (!options->dir || chdir(options->dir) == 0) execve(list[0], list, env);
    _exit(EX_CONFIG);
}

int process_start(const struct process_options *options, struct why *why, pid_t *ret_pid)
{
    const char *program = options->arguments->list[0];
    if (access(program, X_OK) != 0)
        return why_set(why, fault_from_errno(errno), "%s: %s", program, strerror(errno));
    int log = open(options->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log < 0)
        return why_set(why, fault_from_errno(errno), "%s: %s", options->log, strerror(errno));
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    char **env = make_env(options->env);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) become(options, env, log, null, parent);
    int error = errno;
    free(env);
    close(log);
    if (null >= 0) close(null);
    if (pid < 0) return why_set(why, FAULT_MEMORY, "%s: %s", program, strerror(error));
    *ret_pid = pid;
    return 0;
}

void process_print_end(int status, char *text, size_t max)
{
    if (WIFSIGNALED(status))
        snprintf(text, max, "was ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else snprintf(text, max, "ended with code %d", WEXITSTATUS(status));
}
