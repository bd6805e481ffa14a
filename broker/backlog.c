// backlog -- counts the bytes that were sent to each receiver, and compares them with those that
// the kernel reports as acknowledged. Once a sweep it cuts: first the receivers that take nothing
// and the subscribers that are too far behind, then the largest mail receivers until all mail
// together is within its limit.

#include "broker/backlog.h"
#include "common/base/ensure.h"
#include <stdlib.h>
#include <string.h>

struct receiver {
    bool open, cut, trusted, measured;
    uint8_t where;
    uint64_t given; // Bytes of mail since the connection was opened
    uint64_t acknowledged;
    uint64_t took_ms; // The last measurement that showed progress, or that nothing waited
    // For news: bytes published and acknowledged at the last measurement that showed nothing
    // waiting.
    uint64_t published_then, acknowledged_then;
};

struct backlog {
    uint64_t published;
    int fd_end;                               // All descriptors in use are below
    struct receiver list[CONNECTIONS_FD_MAX]; // Untouched pages cost nothing
};

struct backlog *backlog_new(void)
{
    struct backlog *self = calloc(1, sizeof *self);
    ensure(self);
    return self;
}

void backlog_destroy(struct backlog **self_p)
{
    free(*self_p);
    *self_p = NULL;
}

// NULL: the connection is not open, or its event is still on the way.
static struct receiver *at(struct backlog *self, int fd)
{
    return fd >= 0 && fd < CONNECTIONS_FD_MAX && self->list[fd].open ? &self->list[fd] : NULL;
}

void backlog_opened(struct backlog *self, int fd, enum connection_where where)
{
    if (fd < 0 || fd >= CONNECTIONS_FD_MAX) return;
    self->list[fd] = (struct receiver){ .open = true,
                                        .where = (uint8_t)where,
                                        .published_then = self->published };
    if (fd >= self->fd_end) self->fd_end = fd + 1;
}

void backlog_closed(struct backlog *self, int fd, enum connection_where where)
{
    struct receiver *receiver = at(self, fd);
    if (receiver && receiver->where == where) memset(receiver, 0, sizeof *receiver);
}

void backlog_trust(struct backlog *self, int fd, bool trusted)
{
    struct receiver *receiver = at(self, fd);
    if (receiver) receiver->trusted = trusted;
}

void backlog_sent(struct backlog *self, int fd, uint64_t bytes)
{
    struct receiver *receiver = at(self, fd);
    if (receiver) receiver->given += connections_part_bytes(bytes);
}

void backlog_published(struct backlog *self, uint64_t bytes)
{
    self->published += connections_part_bytes(bytes);
}

void backlog_measured(struct backlog *self, int fd, uint64_t acknowledged, bool none_wait,
                      uint64_t now_ms)
{
    struct receiver *receiver = at(self, fd);
    if (!receiver) return;
    if (none_wait || !receiver->measured || acknowledged != receiver->acknowledged)
        receiver->took_ms = now_ms;
    receiver->measured = true;
    receiver->acknowledged = acknowledged;
    if (!none_wait) return;
    receiver->published_then = self->published;
    receiver->acknowledged_then = acknowledged;
}

static uint64_t waiting(const struct backlog *self, const struct receiver *receiver)
{
    const bool news = receiver->where == AT_NEWS;
    const uint64_t given = news ? self->published - receiver->published_then : receiver->given;
    const uint64_t taken = receiver->acknowledged - (news ? receiver->acknowledged_then : 0);
    return given > taken ? given - taken : 0;
}

bool backlog_is_full(struct backlog *self, int fd)
{
    const struct receiver *receiver = at(self, fd);
    if (!receiver) return false;
    const uint64_t max = receiver->trusted ? BACKLOG_TRUSTED_MAX : BACKLOG_MAX;
    return receiver->cut || waiting(self, receiver) > max;
}

// ---- which receivers are cut --------------------------------------------------------------------

static void cut_one(struct backlog *self, int fd, connections_cut *cut, void *arg)
{
    self->list[fd].cut = true;
    cut(arg, fd);
}

static bool counts(const struct receiver *receiver)
{
    return receiver->measured && !receiver->cut && receiver->where == AT_MAIL && !receiver->trusted;
}

static int find_largest(const struct backlog *self)
{
    int largest = -1;
    for (int fd = 0; fd < self->fd_end; fd++)
        if (counts(&self->list[fd]) &&
            (largest < 0 || waiting(self, &self->list[fd]) > waiting(self, &self->list[largest])))
            largest = fd;
    return largest;
}

static bool has_to_go(const struct backlog *self, const struct receiver *receiver, uint64_t now_ms)
{
    return now_ms - receiver->took_ms > BACKLOG_STALLED_MS ||
           (receiver->where == AT_NEWS && waiting(self, receiver) > BACKLOG_NEWS_MAX);
}

void backlog_cut_full(struct backlog *self, uint64_t now_ms, connections_cut *cut, void *arg)
{
    uint64_t all = 0;
    for (int fd = 0; fd < self->fd_end; fd++) {
        const struct receiver *receiver = &self->list[fd];
        if (!receiver->measured || receiver->cut) continue;
        if (has_to_go(self, receiver, now_ms)) cut_one(self, fd, cut, arg);
        else if (counts(receiver)) all += waiting(self, receiver);
    }
    while (all > BACKLOG_ALL_MAX) {
        const int largest = find_largest(self);
        all -= waiting(self, &self->list[largest]);
        cut_one(self, largest, cut, arg);
    }
}
