// A slot is a connection under way. Each turn of the loop fills the free slots, waits until one of
// them is connected or the earliest is given up, and frees what is decided.
#include "common/net/knock.h"

#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/net/endpoint.h"
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_LEAST_MS = 250 };

struct slots {
    struct pollfd fds[KNOCK_AT_ONCE];
    struct knock *knocks[KNOCK_AT_ONCE]; // Whose connection it is
    uint64_t due_ms[KNOCK_AT_ONCE];      // When it is given up
    nfds_t count;
};

// Numbers only, so getaddrinfo asks nobody.
int knock_begin(const char *endpoint, int *ret_fd)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                                    .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
    struct addrinfo *found = NULL;
    char host[64];
    *ret_fd = -1;
    if (!endpoint_is_numeric(endpoint)) return EINVAL;
    const int brackets = endpoint_is_ipv6(endpoint);
    const char *from = endpoint + strlen("tcp://") + brackets, *colon = strrchr(from, ':');
    snprintf(host, sizeof host, "%.*s", (int)(colon - from) - brackets, from);
    if (getaddrinfo(host, colon + 1, &hints, &found) != 0) return EINVAL;
    const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int rc = fd < 0 ? -1 : connect(fd, found->ai_addr, found->ai_addrlen);
    int error = rc == 0 || errno == EINPROGRESS ? 0 : errno;
    if (error == EINVAL) error = EHOSTUNREACH; // What a route of kind blackhole says
    freeaddrinfo(found);
    if (error == 0) *ret_fd = fd;
    else if (fd >= 0) close(fd);
    return error;
}

static void fill(struct slots *self, struct knock *knock, uint64_t due_ms)
{
    int fd = -1;
    knock->error = knock_begin(knock->endpoint, &fd);
    if (knock->error != 0) return;
    self->fds[self->count] = (struct pollfd){ .fd = fd, .events = POLLOUT };
    self->knocks[self->count] = knock;
    self->due_ms[self->count++] = due_ms;
}

static void decide(struct slots *self, nfds_t i, int error)
{
    const nfds_t last = --self->count;
    self->knocks[i]->error = error;
    close(self->fds[i].fd);
    self->fds[i] = self->fds[last];
    self->knocks[i] = self->knocks[last];
    self->due_ms[i] = self->due_ms[last];
}

static void wait_for_one(struct slots *self)
{
    uint64_t due_ms = UINT64_MAX, now_ms = clock_ms();
    for (nfds_t i = 0; i < self->count; i++)
        if (self->due_ms[i] < due_ms) due_ms = self->due_ms[i];
    const int rc = poll(self->fds, self->count, due_ms > now_ms ? (int)(due_ms - now_ms) : 0);
    ensure(rc >= 0 || errno == EINTR);
    if (rc < 0) return;
    now_ms = clock_ms();
    for (nfds_t i = self->count; i-- > 0;) {
        int error = 0;
        socklen_t size = sizeof error;
        if (self->fds[i].revents) {
            getsockopt(self->fds[i].fd, SOL_SOCKET, SO_ERROR, &error, &size);
            decide(self, i, error);
        } else if (now_ms >= self->due_ms[i]) decide(self, i, ETIMEDOUT);
    }
}

void knock_all(struct knock *list, uint32_t count, unsigned ms)
{
    struct slots slots = { .count = 0 };
    const uint64_t end_ms = clock_ms() + ms;
    const unsigned turns = (count + KNOCK_AT_ONCE - 1) / KNOCK_AT_ONCE;
    unsigned patience_ms = turns > 1 ? ms / turns : ms;
    uint32_t next = 0;
    if (patience_ms < PATIENCE_LEAST_MS) patience_ms = PATIENCE_LEAST_MS;
    for (uint32_t i = 0; i < count; i++) list[i].error = ECANCELED;
    while (next < count || slots.count) {
        const uint64_t now_ms = clock_ms(), due_ms = now_ms + patience_ms;
        if (now_ms >= end_ms) next = count; // The rest keeps ECANCELED
        while (next < count && slots.count < KNOCK_AT_ONCE)
            fill(&slots, &list[next++], due_ms < end_ms ? due_ms : end_ms);
        if (slots.count) wait_for_one(&slots);
    }
}

const char *knock_says(int error)
{
    switch (error) {
    case 0: return "answers";
    case ECONNREFUSED: return "refuses the connection: nobody listens there";
    case ETIMEDOUT: return "does not answer: a firewall, or the machine is off";
    case ENETUNREACH:
    case EHOSTUNREACH: return "cannot be reached from here: no route to it";
    case ECANCELED: return "was not asked: there are too many for the time";
    case EINVAL: return "has announced no address in numbers";
    default: return strerror(error);
    }
}
