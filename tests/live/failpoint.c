// failpoint -- makes a process die, stop or fail at a chosen instant. Loaded with LD_PRELOAD:
//
//     SHOAL_FAILPOINT=sync:12:after shoal-coordinator ...     At the n-th call of a kind: SIGKILL
//
//     write   write: sockets' wake-ups, the log   before  the call is not made
//     pwrite  pwrite, writev: the ledger's pages  after   it is
//     sync    fsync, fdatasync, msync             half    a pwrite of the first half of its bytes
//     send    send, sendto, sendmsg                       is, a writev of half of its parts
//
//     SHOAL_FAILPOINT=turn_committed:3:kill shoal-coordinator ...    At the n-th passing of a place
//
//     places: failpoints.def                      kill    SIGKILL     stop   SIGSTOP
//     "3+" is the third time and ever after       eio     the call at the place fails with EIO
//                                                 enospc  with ENOSPC
//                                                 500     500 ms go by
//
// Both are counted from the start of the process, over all threads. What happens at a place is said
// on stderr before: "failpoint.reached name=turn_committed time=3 action=kill". To
// learn which places a process passed, name a file in SHOAL_FAILPOINT_LIST: each is added to it
// once. A place that is not in failpoints.def ends the process, so that the list is complete.

#include "common/base/failpoint.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

// No header declares them under these conditions: they replace the C library's own.
ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t at);
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t at);

enum kind { NONE, WRITE, PWRITE, SYNC, SEND };
enum when { BEFORE, AFTER, HALF };

static enum kind chosen;
static enum when when;
static long at_call;
static atomic_long calls;

// ---- places -------------------------------------------------------------------------------------

static const char *const names[] = {
#define FAILPOINT(name, reached_by, actions) #name,
#define ELSEWHERE(name)                      #name,
#include "tests/live/failpoints.def"
};
enum { NAMES = sizeof names / sizeof *names };

enum action { ACT_KILL, ACT_STOP, ACT_FAIL, ACT_WAIT };

static int place = -1; // The chosen one, by its number in `names`
static enum action action;
static bool ever_after;
static long at_time, wait_ms;
static int fail_with, list_fd = -1;
static atomic_long passed[NAMES];

static int place_of(const char *name, size_t length)
{
    for (int i = 0; i < NAMES; i++)
        if (strlen(names[i]) == length && strncmp(names[i], name, length) == 0) return i;
    return -1;
}

// Logs without our own write, which counts calls.
static void say(int fd, const char *text) { (void)syscall(SYS_write, fd, text, strlen(text)); }

static void refuse(const char *what, const char *which)
{
    char text[200];
    snprintf(text, sizeof text, "failpoint: %s: %s\n", what, which);
    say(2, text);
    syscall(SYS_exit_group, 99);
}

// NAME:TIME[+]:ACTION
static void read_place(const char *text)
{
    static const char *const actions[] = { "kill", "stop", "eio", "enospc" };
    char *end;
    const char *colon = strchr(text, ':');
    place = colon ? place_of(text, (size_t)(colon - text)) : -1;
    if (place < 0) refuse("no such place", text);
    at_time = strtol(colon + 1, &end, 10);
    if ((ever_after = *end == '+')) end++;
    if (at_time < 1 || *end != ':') refuse("expected NAME:TIME:ACTION", text);
    int which = 0;
    while (which < 4 && strcmp(end + 1, actions[which]) != 0) which++;
    action = which < 2 ? (enum action)which : which < 4 ? ACT_FAIL : ACT_WAIT;
    fail_with = which == 2 ? EIO : ENOSPC;
    wait_ms = strtol(end + 1, &end, 10);
    if (action == ACT_WAIT && (wait_ms < 1 || *end)) refuse("no such action", text);
}

static int act(long time)
{
    static const char *const words[] = { "kill", "stop", "fail", "wait" };
    const struct timespec length = { wait_ms / 1000, wait_ms % 1000 * 1000000 };
    char text[160];
    snprintf(text, sizeof text, "failpoint.reached name=%s time=%ld action=%s\n", names[place],
             time, words[action]);
    say(2, text);
    switch (action) {
    case ACT_KILL: syscall(SYS_kill, syscall(SYS_getpid), SIGKILL); break;
    case ACT_STOP: syscall(SYS_kill, syscall(SYS_getpid), SIGSTOP); break;
    case ACT_WAIT: nanosleep(&length, NULL); break;
    case ACT_FAIL: errno = fail_with; return -1;
    }
    return 0;
}

int failpoint_reached(const char *name)
{
    char line[80];
    int which = place_of(name, strlen(name));
    if (which < 0) refuse("not in failpoints.def", name);
    long time = atomic_fetch_add(&passed[which], 1) + 1;
    if (time == 1 && list_fd >= 0) {
        snprintf(line, sizeof line, "%s\n", name);
        say(list_fd, line);
    }
    return which == place && (time == at_time || (ever_after && time > at_time)) ? act(time) : 0;
}

// ---- calls --------------------------------------------------------------------------------------

__attribute__((constructor)) static void read_choice(void)
{
    const char *list = getenv("SHOAL_FAILPOINT_LIST");
    if (list) list_fd = open(list, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    static const char *const kinds[] = { "", "write:", "pwrite:", "sync:", "send:" };
    const char *text = getenv("SHOAL_FAILPOINT");
    for (int i = WRITE; text && i <= SEND; i++)
        if (strncmp(text, kinds[i], strlen(kinds[i])) == 0) {
            char *end;
            at_call = strtol(text + strlen(kinds[i]), &end, 10);
            when = strcmp(end, ":after") == 0 ? AFTER : strcmp(end, ":half") == 0 ? HALF : BEFORE;
            chosen = (enum kind)i;
        }
    if (text && !chosen) read_place(text);
}

static void die(void)
{
    syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    for (;;) pause();
}

// True if this is the chosen call. Does not return if the call must not be made.
static int is_it(enum kind kind)
{
    if (kind != chosen || atomic_fetch_add(&calls, 1) + 1 != at_call) return 0;
    if (when == BEFORE) die();
    return 1;
}

#define REAL(name)                                                                                 \
    static __typeof__(&name) real;                                                                 \
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *bytes, size_t count)
{
    REAL(write);
    int last = is_it(WRITE);
    ssize_t rc = real(fd, bytes, count);
    if (last) die();
    return rc;
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    REAL(writev);
    int last = is_it(PWRITE);
    ssize_t rc = real(fd, parts, last && when == HALF && count > 1 ? count / 2 : count);
    if (last) die();
    return rc;
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t at)
{
    REAL(pwrite64);
    int last = is_it(PWRITE);
    ssize_t rc = real(fd, bytes, last && when == HALF ? count / 2 : count, at);
    if (last) die();
    return rc;
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at)
{
    return pwrite64(fd, bytes, count, at);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t at)
{
    REAL(pwritev64);
    int last = is_it(PWRITE);
    ssize_t rc = real(fd, parts, last && when == HALF && count > 1 ? count / 2 : count, at);
    if (last) die();
    return rc;
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at)
{
    return pwritev64(fd, parts, count, at);
}

int fsync(int fd)
{
    REAL(fsync);
    int last = is_it(SYNC), rc = real(fd);
    if (last) die();
    return rc;
}

int fdatasync(int fd)
{
    REAL(fdatasync);
    int last = is_it(SYNC), rc = real(fd);
    if (last) die();
    return rc;
}

int msync(void *address, size_t count, int flags)
{
    REAL(msync);
    int last = is_it(SYNC), rc = real(address, count, flags);
    if (last) die();
    return rc;
}

ssize_t send(int fd, const void *bytes, size_t count, int flags)
{
    REAL(send);
    int last = is_it(SEND);
    ssize_t rc = real(fd, bytes, count, flags);
    if (last) die();
    return rc;
}

ssize_t sendto(int fd, const void *bytes, size_t count, int flags, __CONST_SOCKADDR_ARG to,
               socklen_t size)
{
    REAL(sendto);
    int last = is_it(SEND);
    ssize_t rc = real(fd, bytes, count, flags, to, size);
    if (last) die();
    return rc;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    REAL(sendmsg);
    int last = is_it(SEND);
    ssize_t rc = real(fd, message, flags);
    if (last) die();
    return rc;
}
