// One table entry per descriptor. The monitor opens and closes entries; each message proves a key
// and adds to what its connection delivered. The cutting functions then choose, in this order of
// use: the oldest unknown connections above a socket's room, all connections of a key, connections that
// hold too many bytes. A connection that was cut stays in the table
// until its close event arrives, and no longer counts.

#include "common/base/ensure.h"
#include "common/net/connections.h"
#include <stdlib.h>
#include <string.h>

// A part of n bytes on the wire, ZMTP 3 with CURVE: flags and length, "MESSAGE", nonce, box, n.
enum { CURVE_PART_BYTES = 33, SHORT_MAX = 255, SHORT_BYTES = 2, LONG_BYTES = 9 };

struct connections {
    struct connections_limits limits[CONNECTIONS_SOCKETS_MAX];
    uint32_t sockets, counts[CONNECTIONS_SOCKETS_MAX];
    uint64_t pending_all_max;
    int fd_end;                                 // All descriptors in use are below
    struct connection list[CONNECTIONS_FD_MAX]; // Untouched pages cost nothing
};

struct connections *connections_new(const struct connections_limits *limits, uint32_t sockets,
                                    uint64_t pending_all_max)
{
    struct connections *self = calloc(1, sizeof *self);
    ensure(self && sockets <= CONNECTIONS_SOCKETS_MAX);
    memcpy(self->limits, limits, sockets * sizeof *limits);
    self->sockets = sockets;
    self->pending_all_max = pending_all_max;
    return self;
}

void connections_destroy(struct connections **self_p)
{
    free(*self_p);
    *self_p = NULL;
}

uint32_t connections_count(const struct connections *self, uint32_t where)
{
    return self->counts[where];
}

static struct connection *at(struct connections *self, int fd)
{
    return fd >= 0 && fd < CONNECTIONS_FD_MAX ? &self->list[fd] : NULL;
}

static void forget(struct connections *self, struct connection *connection)
{
    if (!connection->open) return;
    if (!connection->cut) self->counts[connection->where]--;
    memset(connection, 0, sizeof *connection);
}

void connections_closed(struct connections *self, int fd, uint32_t where)
{
    struct connection *connection = at(self, fd);
    if (connection && connection->where == where) forget(self, connection);
}

void connections_opened(struct connections *self, int fd, uint32_t where, uint64_t now_ms)
{
    struct connection *connection = at(self, fd);
    if (!connection) return;
    forget(self, connection);
    *connection =
        (struct connection){ .open = true, .where = (uint8_t)where, .accepted_ms = now_ms };
    self->counts[where]++;
    if (fd >= self->fd_end) self->fd_end = fd + 1;
}

static bool same_key(const struct curve_key *a, const struct curve_key *b)
{
    return memcmp(a->bytes, b->bytes, CURVE_BYTES) == 0;
}

uint64_t connections_part_bytes(uint64_t bytes)
{
    const uint64_t box = bytes + CURVE_PART_BYTES;
    return box + (box > SHORT_MAX ? LONG_BYTES : SHORT_BYTES);
}

struct connection *connections_heard(struct connections *self, int fd, uint32_t where,
                                     const struct curve_key *key, uint64_t wire_bytes,
                                     uint64_t now_ms)
{
    struct connection *connection = at(self, fd);
    if (!connection) return NULL;
    bool other = !connection->open || connection->where != where ||
                 (connection->proven && !same_key(&connection->key, key));
    if (other) connections_opened(self, fd, where, now_ms); // Its event is still on the way
    connection->proven = true;
    connection->key = *key;
    connection->taken += wire_bytes;
    return connection;
}

static bool has(const struct connection *connection, uint32_t where, const struct curve_key *key)
{
    return connection->open && !connection->cut && connection->proven &&
           connection->where == where && same_key(&connection->key, key);
}

bool connections_has(const struct connections *self, int fd, uint32_t where,
                     const struct curve_key *key)
{
    return fd >= 0 && fd < self->fd_end && has(&self->list[fd], where, key);
}

struct connection *connections_find(struct connections *self, int fd, uint32_t where,
                                    const struct curve_key *key)
{
    return connections_has(self, fd, where, key) ? &self->list[fd] : NULL;
}

// ---- which connections are cut ------------------------------------------------------------------

void connections_cut_one(struct connections *self, int fd, connections_cut *cut, void *arg)
{
    struct connection *connection = at(self, fd);
    if (!connection || !connection->open || connection->cut) return;
    connection->cut = true;
    self->counts[connection->where]--;
    cut(arg, fd);
}

void connections_cut_key(struct connections *self, const struct curve_key *key,
                         connections_cut *cut, void *arg)
{
    for (int fd = 0; fd < self->fd_end; fd++)
        if (self->list[fd].proven && same_key(&self->list[fd].key, key))
            connections_cut_one(self, fd, cut, arg);
}

void connections_cut_if(struct connections *self, connections_is_out *is_out, connections_cut *cut,
                        void *arg)
{
    for (int fd = 0; fd < self->fd_end; fd++)
        if (self->list[fd].proven && is_out(arg, &self->list[fd]))
            connections_cut_one(self, fd, cut, arg);
}

void connections_cut_mute(struct connections *self, uint64_t before_ms, connections_cut *cut,
                          void *arg)
{
    for (int fd = 0; fd < self->fd_end; fd++) {
        const struct connection *connection = &self->list[fd];
        if (connection->open && !connection->known && key_is_none(&connection->actor) &&
            connection->accepted_ms < before_ms)
            connections_cut_one(self, fd, cut, arg);
    }
}

void connections_cut_crowd(struct connections *self, uint32_t where, const struct key *actor,
                           uint32_t most, connections_cut *cut, void *arg)
{
    for (;;) {
        uint32_t count = 0;
        int oldest = -1;
        for (int fd = 0; fd < self->fd_end; fd++) {
            const struct connection *connection = &self->list[fd];
            if (!connection->open || connection->cut || connection->where != where ||
                !key_equal(&connection->actor, actor))
                continue;
            count++;
            if (oldest < 0 || connection->accepted_ms < self->list[oldest].accepted_ms) oldest = fd;
        }
        if (count <= most) return;
        connections_cut_one(self, oldest, cut, arg);
    }
}

struct unknown {
    uint64_t accepted_ms;
    int fd;
};

static int by_age(const void *x, const void *y)
{
    const struct unknown *a = x, *b = y;
    if (a->accepted_ms != b->accepted_ms) return a->accepted_ms < b->accepted_ms ? -1 : 1;
    return (a->fd > b->fd) - (a->fd < b->fd);
}

// An honest newcomer becomes known within milliseconds. So the connection that has been unknown for
// the longest time is the least likely to be one, and is cut first.
static void cut_surplus_at(struct connections *self, uint32_t where, connections_cut *cut,
                           void *arg)
{
    uint32_t count = 0, surplus = self->counts[where] - self->limits[where].room;
    struct unknown *list = malloc((size_t)self->counts[where] * sizeof *list);
    ensure(list);
    for (int fd = 0; fd < self->fd_end; fd++) {
        const struct connection *connection = &self->list[fd];
        if (!connection->open || connection->cut || connection->where != where) continue;
        if (!connection->known) list[count++] = (struct unknown){ connection->accepted_ms, fd };
    }
    qsort(list, count, sizeof *list, by_age);
    for (uint32_t i = 0; i < count && i < surplus; i++)
        connections_cut_one(self, list[i].fd, cut, arg);
    free(list);
}

void connections_cut_surplus(struct connections *self, connections_cut *cut, void *arg)
{
    for (uint32_t where = 0; where < self->sockets; where++)
        if (self->counts[where] > self->limits[where].room) cut_surplus_at(self, where, cut, arg);
}

// False: the connection is closed, and its entry is removed. This also removes an entry that a late
// message opened again after the close event.
static bool measure_one(struct connections *self, int fd, connections_measure *measure, void *arg)
{
    struct connection *connection = &self->list[fd];
    struct connection_counts counts;
    if (!measure(arg, fd, &counts)) {
        forget(self, connection);
        return false;
    }
    const uint64_t taken = self->limits[connection->where].keeps_all ? 0 : connection->taken;
    connection->pending = counts.received > taken ? counts.received - taken : 0;
    return true;
}

static uint64_t pending_max(const struct connections *self, const struct connection *connection)
{
    return connection->trusted ? self->pending_all_max
                               : self->limits[connection->where].pending_max;
}

void connections_cut_hoarders(struct connections *self, connections_measure *measure,
                              connections_cut *cut, void *arg)
{
    uint64_t pending = 0;
    for (int fd = 0; fd < self->fd_end; fd++) {
        struct connection *connection = &self->list[fd];
        if (!connection->open || connection->cut) continue;
        if (!measure_one(self, fd, measure, arg)) continue;
        if (connection->pending > pending_max(self, connection))
            connections_cut_one(self, fd, cut, arg);
        else pending += connection->pending;
    }
    while (pending > self->pending_all_max) {
        int largest = 0;
        for (int fd = 1; fd < self->fd_end; fd++)
            if (self->list[fd].open && !self->list[fd].cut &&
                (self->list[largest].cut || self->list[fd].pending > self->list[largest].pending))
                largest = fd;
        pending -= self->list[largest].pending;
        if (!self->list[largest].open || self->list[largest].cut) return;
        connections_cut_one(self, largest, cut, arg);
    }
}
