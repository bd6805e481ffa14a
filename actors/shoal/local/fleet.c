// fleet -- starts children, reaps them and restarts them. What follows from a child's end is
// decided in `bury`, in this order: while the fleet stops, nothing; exit code 0, the child is done;
// a code that a restart cannot change, or too many quick deaths in a row, a fault; otherwise a
// restart after a wait that doubles with each quick death. A child that we killed ourselves does
// not count as a quick death, since the demo and --random-kill-num do so.

#include "actors/shoal/local/fleet.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

enum {
    BACKOFF_MIN_MS = 200,
    BACKOFF_MAX_MS = 5000,
    QUICK_MS = 3000,
    QUICK_DEATHS_MAX = 6,
    QUICK_DEATHS_TOLD = 2, // From this one on, with the last words
    STOP_MS = 5000,
    TAIL_BYTES = 4096
};

__attribute__((format(printf, 2, 3))) static void say(struct fleet *self, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (self->say) self->say(self->arg, line);
}

int fleet_init(struct fleet *self, fleet_say *say_line, void *arg, struct why *why)
{
    *self = (struct fleet){ .say = say_line, .arg = arg };
    ssize_t count = readlink("/proc/self/exe", self->dir, sizeof self->dir - 1);
    if (count <= 0)
        return why_set(why, FAULT_IO,
                       "/proc/self/exe: %s; the folder of the other programs is unknown",
                       strerror(errno));
    self->dir[count] = 0;
    char *slash = strrchr(self->dir, '/');
    ensure(slash);
    *slash = 0;
    self->children = calloc(FLEET_MAX, sizeof *self->children);
    ensure(self->children);
    return 0;
}

struct child *fleet_add(struct fleet *self, const char *name, const char *program,
                        const char *log_dir)
{
    ensure(self->count < FLEET_MAX);
    struct child *child = &self->children[self->count++];
    snprintf(child->name, sizeof child->name, "%s", name);
    ensure(snprintf(child->log, sizeof child->log, "%s/%s.log", log_dir, name) <
           (int)sizeof child->log);
    arguments_add(&child->arguments, "%s/%s", self->dir, program);
    return child;
}

// ---- starting -----------------------------------------------------------------------------------

int fleet_start(struct child *child, struct why *why)
{
    const struct process_options options = { .arguments = &child->arguments, .log = child->log };
    int rc = process_start(&options, why, &child->pid);
    if (rc < 0) return why_wrap(why, rc, "%s cannot be started", child->name);
    child->started_ms = clock_ms();
    child->due_ms = 0;
    child->killed = false;
    return 0;
}

void fleet_last_words(const struct child *child, char *text, size_t max)
{
    char tail[TAIL_BYTES + 1];
    text[0] = 0;
    int log = open(child->log, O_RDONLY | O_CLOEXEC);
    if (log < 0) return;
    off_t end = lseek(log, 0, SEEK_END);
    ssize_t count = pread(log, tail, TAIL_BYTES, end > TAIL_BYTES ? end - TAIL_BYTES : 0);
    close(log);
    while (count > 0 && tail[count - 1] == '\n') count--;
    if (count <= 0) return;
    tail[count] = 0;
    const char *line = strrchr(tail, '\n');
    snprintf(text, max, "%s", line ? line + 1 : tail);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20) *c = ' ';
}

// ---- dying --------------------------------------------------------------------------------------

static int fault_of_code(int code)
{
    switch (code) {
    case EX_USAGE: return FAULT_USAGE;
    case EX_NOPERM: return FAULT_DENIED;
    case EX_CONFIG: return FAULT_CONFIG;
    case EX_TEMPFAIL: return FAULT_BUSY;
    case EX_DATAERR: return FAULT_FORMAT;
    case EX_NOINPUT: return FAULT_NOT_FOUND;
    case EX_IOERR: return FAULT_IO;
    default: return FAULT_UNREACHABLE;
    }
}

static int give_up(const struct child *child, int code, const char *how, struct why *why)
{
    char words[700];
    fleet_last_words(child, words, sizeof words);
    return why_set(why, fault_of_code(code), "%s %s; the last line of %s: %s", child->name, how,
                   child->log, words[0] ? words : "(none)");
}

static int bury(struct fleet *self, struct child *child, int status, struct why *why)
{
    uint64_t now_ms = clock_ms();
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    char how[100], words[300], reason[340] = "";
    process_print_end(status, how, sizeof how);
    child->pid = 0;
    if (self->stopping) return 0;
    if (code == 0) {
        say(self, "%s is done and has ended", child->name);
        return 0;
    }
    child->ended_with = code;
    if (code == EX_USAGE || code == EX_DATAERR || code == EX_NOPERM || code == EX_CONFIG)
        return give_up(child, code, how, why);
    bool quick = now_ms - child->started_ms < QUICK_MS && !child->killed;
    child->quick_deaths = quick ? child->quick_deaths + 1 : 0;
    if (child->quick_deaths >= QUICK_DEATHS_MAX) {
        size_t used = strlen(how);
        snprintf(how + used, sizeof how - used, ", %d times in a row", QUICK_DEATHS_MAX);
        return give_up(child, code, how, why);
    }
    uint64_t wait_ms = (uint64_t)BACKOFF_MIN_MS << child->quick_deaths;
    if (wait_ms > BACKOFF_MAX_MS) wait_ms = BACKOFF_MAX_MS;
    child->due_ms = now_ms + wait_ms;
    if (code > 0 || child->quick_deaths >= QUICK_DEATHS_TOLD) {
        fleet_last_words(child, words, sizeof words);
        snprintf(reason, sizeof reason, "; its log ends with: %s", words[0] ? words : "(nothing)");
    }
    say(self, "%s %s; starting it again in %.1f s%s", child->name, how, (double)wait_ms / 1000,
        reason);
    return 0;
}

int fleet_reap(struct fleet *self, struct why *why)
{
    for (uint32_t i = 0; i < self->count; i++) {
        struct child *child = &self->children[i];
        struct rusage used;
        int status;
        if (!child->pid || wait4(child->pid, &status, WNOHANG, &used) != child->pid) continue;
        const uint64_t peak = (uint64_t)used.ru_maxrss * 1024;
        if (peak > child->peak_bytes) child->peak_bytes = peak;
        int rc = bury(self, child, status, why);
        if (rc < 0) return rc;
    }
    return 0;
}

int fleet_tick(struct fleet *self, struct why *why)
{
    uint64_t now_ms = clock_ms();
    for (uint32_t i = 0; i < self->count; i++) {
        struct child *child = &self->children[i];
        if (child->pid || child->due_ms == 0 || now_ms < child->due_ms) continue;
        child->due_ms = 0; // Nor is it tried again if it cannot be started
        int rc = fleet_start(child, why);
        if (rc < 0) return rc;
    }
    return 0;
}

uint64_t fleet_due_ms(const struct fleet *self)
{
    uint64_t due_ms = UINT64_MAX;
    for (uint32_t i = 0; i < self->count; i++)
        if (self->children[i].due_ms && self->children[i].due_ms < due_ms)
            due_ms = self->children[i].due_ms;
    return due_ms;
}

void fleet_kill(struct child *child)
{
    if (!child->pid) return;
    child->killed = true;
    kill(child->pid, SIGKILL);
}

// ---- stopping -----------------------------------------------------------------------------------

static uint32_t count_running(const struct fleet *self, uint32_t from)
{
    uint32_t running = 0;
    for (uint32_t i = from; i < self->count; i++) running += self->children[i].pid != 0;
    return running;
}

static void send_signal(const struct fleet *self, uint32_t from, int signal)
{
    for (uint32_t i = from; i < self->count; i++)
        if (self->children[i].pid) kill(self->children[i].pid, signal);
}

// True when SIGINT or SIGTERM has come again.
static bool is_insisted(int signals)
{
    struct signalfd_siginfo info;
    bool insisted = false;
    while (read(signals, &info, sizeof info) == sizeof info)
        insisted |= info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM;
    return insisted;
}

void fleet_stop(struct fleet *self, uint32_t from, int signals)
{
    uint64_t end_ms = clock_ms() + STOP_MS;
    bool killed = false;
    self->stopping = true;
    for (uint32_t i = from; i < self->count; i++) self->children[i].due_ms = 0;
    send_signal(self, from, SIGTERM);
    send_signal(self, from,
                SIGCONT); // A child that is stopped (quota.h) takes SIGTERM once it goes on
    for (;;) {
        uint64_t now_ms = clock_ms();
        fleet_reap(self, NULL);
        if (count_running(self, from) == 0) return;
        struct pollfd item = { .fd = signals, .events = POLLIN };
        // A SIGCHLD may have been read elsewhere already: look again after 100 ms in any case.
        poll(&item, 1, 100);
        bool insisted = item.revents && is_insisted(signals);
        if (!killed && (insisted || now_ms >= end_ms)) {
            send_signal(self, from, SIGKILL);
            killed = true;
        }
    }
}

void fleet_free(struct fleet *self)
{
    free(self->children);
    self->children = NULL;
    self->count = 0;
}
