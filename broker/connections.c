#include "broker/connections.h"
#include "common/ensure.h"
#include <stdlib.h>
#include <string.h>

// A part of n bytes on the wire, ZMTP 3 with CURVE: flags and length, "MESSAGE", nonce, box, n.
enum { CURVE_PART_BYTES = 33, SHORT_MAX = 255, SHORT_BYTES = 2, LONG_BYTES = 9 };

struct penalty { struct curve_key key; uint64_t until_ms; };

struct connections {
    uint32_t room, counts[WHERE_COUNT];
    int fd_end;                                     // All descriptors in use are below
    struct penalty penalties[PENALTIES_MAX];
    uint32_t penalties_next;
    struct connection list[CONNECTIONS_FD_MAX];     // Untouched pages cost nothing
};

struct connections *connections_new(uint32_t room)
{
    struct connections *self = calloc(1, sizeof *self);
    ensure(self);
    self->room = room;
    return self;
}

void connections_destroy(struct connections **self_p)
{
    free(*self_p);
    *self_p = NULL;
}

uint32_t connections_count(const struct connections *self, enum connection_where where)
{
    return self->counts[where];
}

static struct connection *at(struct connections *self, int fd)
{
    return fd >= 0 && fd < CONNECTIONS_FD_MAX ? &self->list[fd] : NULL;
}

void connections_closed(struct connections *self, int fd)
{
    struct connection *connection = at(self, fd);
    if (!connection || !connection->open) return;
    if (!connection->cut) self->counts[connection->where]--;
    memset(connection, 0, sizeof *connection);
}

void connections_opened(struct connections *self, int fd, enum connection_where where,
                        uint64_t now_ms)
{
    struct connection *connection = at(self, fd);
    if (!connection) return;
    connections_closed(self, fd);
    *connection = (struct connection){ .open = true, .where = (uint8_t)where,
                                       .accepted_ms = now_ms };
    self->counts[where]++;
    if (fd >= self->fd_end) self->fd_end = fd + 1;
}

static bool same_key(const struct curve_key *a, const struct curve_key *b)
{
    return memcmp(a->bytes, b->bytes, CURVE_BYTES) == 0;
}

struct connection *connections_heard(struct connections *self, int fd, enum connection_where where,
                                     const struct curve_key *key, uint32_t parts, uint64_t bytes,
                                     uint64_t now_ms)
{
    struct connection *connection = at(self, fd);
    if (!connection) return NULL;
    bool other = !connection->open || connection->where != where ||
                 (connection->proven && !same_key(&connection->key, key));
    if (other) connections_opened(self, fd, where, now_ms);     // Its event is still on the way
    connection->proven = true;
    connection->known |= where == AT_NEWS;
    connection->key = *key;
    connection->taken += bytes + (uint64_t)parts * (CURVE_PART_BYTES + SHORT_BYTES) +
                         (bytes + CURVE_PART_BYTES > SHORT_MAX ? LONG_BYTES - SHORT_BYTES : 0);
    return connection;
}

void connections_allow(struct connection *connection, const struct budget *budget, uint64_t now_ms)
{
    if (memcmp(&connection->budget, budget, sizeof *budget) == 0) return;
    connection->budget = *budget;
    bucket_fill(&connection->bucket, budget, now_ms);
}

// ---- who has to go ------------------------------------------------------------------------------

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

struct unknown { uint64_t accepted_ms; int fd; };

static int by_age(const void *x, const void *y)
{
    const struct unknown *a = x, *b = y;
    if (a->accepted_ms != b->accepted_ms) return a->accepted_ms < b->accepted_ms ? -1 : 1;
    return (a->fd > b->fd) - (a->fd < b->fd);
}

// A newcomer takes milliseconds to become known: whoever is unknown longest is least likely one.
static void cut_surplus_at(struct connections *self, enum connection_where where,
                           connections_cut *cut, void *arg)
{
    uint32_t count = 0, surplus = self->counts[where] - self->room;
    struct unknown *list = malloc((size_t)self->counts[where] * sizeof *list);
    ensure(list);
    for (int fd = 0; fd < self->fd_end; fd++) {
        const struct connection *connection = &self->list[fd];
        if (!connection->open || connection->cut || connection->where != where) continue;
        if (!connection->known) list[count++] = (struct unknown){ connection->accepted_ms, fd };
    }
    qsort(list, count, sizeof *list, by_age);
    for (uint32_t i = 0; i < count && i < surplus; i++) connections_cut_one(self, list[i].fd, cut, arg);
    free(list);
}

void connections_cut_surplus(struct connections *self, connections_cut *cut, void *arg)
{
    for (enum connection_where where = 0; where < WHERE_COUNT; where++)
        if (self->counts[where] > self->room) cut_surplus_at(self, where, cut, arg);
}

static uint64_t pending_max(const struct connection *connection)
{
    if (connection->where == AT_NEWS) return SUBSCRIBED_MAX;
    return connection->trusted ? CONNECTIONS_PENDING_MAX : CONNECTION_PENDING_MAX;
}

void connections_cut_hoarders(struct connections *self, connections_received *received,
                              connections_cut *cut, void *arg)
{
    uint64_t all = 0;
    for (int fd = 0; fd < self->fd_end; fd++) {
        struct connection *connection = &self->list[fd];
        if (!connection->open || connection->cut) continue;
        int64_t bytes = received(arg, fd);
        if (connection->where == AT_NEWS) connection->taken = 0;    // What a subscription is, stays
        connection->pending = bytes > 0 && (uint64_t)bytes > connection->taken
                                  ? (uint64_t)bytes - connection->taken : 0;
        if (connection->pending > pending_max(connection)) connections_cut_one(self, fd, cut, arg);
        else all += connection->pending;
    }
    while (all > CONNECTIONS_PENDING_MAX) {
        int largest = 0;
        for (int fd = 1; fd < self->fd_end; fd++)
            if (self->list[fd].open && !self->list[fd].cut &&
                (self->list[largest].cut || self->list[fd].pending > self->list[largest].pending))
                largest = fd;
        all -= self->list[largest].pending;
        if (!self->list[largest].open || self->list[largest].cut) return;
        connections_cut_one(self, largest, cut, arg);
    }
}

void connections_punish(struct connections *self, const struct curve_key *key, uint64_t now_ms)
{
    self->penalties[self->penalties_next++ % PENALTIES_MAX] =
        (struct penalty){ *key, now_ms + PENALTY_MS };
}

bool connections_is_punished(const struct connections *self, const struct curve_key *key,
                             uint64_t now_ms)
{
    for (uint32_t i = 0; i < PENALTIES_MAX; i++)
        if (self->penalties[i].until_ms > now_ms && same_key(&self->penalties[i].key, key))
            return true;
    return false;
}
