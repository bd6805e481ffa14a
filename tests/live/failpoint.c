// failpoint -- ends its process with SIGKILL at the n-th call of a kind. Loaded with LD_PRELOAD:
//
//     SHOAL_FAILPOINT=sync:12:after shoal-coordinator ...
//
//     write   write: sockets' wake-ups, the log   before  the call is not made
//     pwrite  pwrite, writev: the ledger's pages  after   it is
//     sync    fsync, fdatasync, msync             half    a pwrite of the first half of its bytes is,
//     send    send, sendto, sendmsg                       a writev of the first half of its parts
//
// Calls are counted from the start of the process, over all threads.

#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

// None is in a header under these conditions: they are the C library's own, taken over.
ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t at);
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t at);

enum kind { NONE, WRITE, PWRITE, SYNC, SEND };
enum when { BEFORE, AFTER, HALF };

static enum kind chosen;
static enum when when;
static long at_call;
static atomic_long calls;

__attribute__((constructor)) static void read_choice(void)
{
    static const char *const kinds[] = { "", "write:", "pwrite:", "sync:", "send:" };
    const char *text = getenv("SHOAL_FAILPOINT");
    for (int i = WRITE; text && i <= SEND; i++)
        if (strncmp(text, kinds[i], strlen(kinds[i])) == 0) {
            char *end;
            at_call = strtol(text + strlen(kinds[i]), &end, 10);
            when = strcmp(end, ":after") == 0 ? AFTER : strcmp(end, ":half") == 0 ? HALF : BEFORE;
            chosen = (enum kind)i;
        }
}

static void die(void)
{
    syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    for (;;) pause();
}

// True if this is the call; does not return if it is not to be made.
static int is_it(enum kind kind)
{
    if (kind != chosen || atomic_fetch_add(&calls, 1) + 1 != at_call) return 0;
    if (when == BEFORE) die();
    return 1;
}

#define REAL(name) static __typeof__(&name) real; if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name)

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

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) { return pwrite64(fd, bytes, count, at); }

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

ssize_t sendto(int fd, const void *bytes, size_t count, int flags, __CONST_SOCKADDR_ARG to, socklen_t size)
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
