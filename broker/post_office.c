// post_office -- keeps peers in a fixed array with three open-addressing tables, by route, by name and
// by CURVE key; the labels of names do not count. A HELLO is checked in three steps: its name must follow from
// its key; the peer that holds the name must allow it; no other peer may have the connection's CURVE key. Then it
// replaces what was registered under the name and on the connection. The table `rules` says what each role may
// send.

#include "broker/post_office.h"
#include "common/base/ensure.h"
#include <string.h>

enum { SLOTS = 4 * POST_OFFICE_PEERS_MAX };

static uint32_t hash_bytes(const void *bytes, size_t count)
{
    uint32_t hash = 2166136261u; // FNV-1a
    for (size_t i = 0; i < count; i++) hash = (hash ^ ((const uint8_t *)bytes)[i]) * 16777619u;
    return hash % SLOTS;
}

static uint32_t route_slot(const struct route *route)
{
    return hash_bytes(route->bytes, route->count);
}
static uint32_t name_slot(const char *name)
{
    char plain[ACTOR_NAME_MAX + 1];
    actor_name_plain(name, plain);
    return hash_bytes(plain, strlen(plain));
}

static uint32_t connection_slot(const struct key *connection)
{
    return hash_bytes(connection->bytes, KEY_BYTES);
}

static bool same_route(const struct route *a, const struct route *b)
{
    return a->count == b->count && memcmp(a->bytes, b->bytes, a->count) == 0;
}

// The slot that leads to the peer with this route (or name), or the empty slot where it belongs.
static uint32_t find_route(const struct post_office *self, const struct route *route)
{
    uint32_t slot = route_slot(route);
    while (self->by_route[slot] && !same_route(&self->peers[self->by_route[slot] - 1].route, route))
        slot = (slot + 1) % SLOTS;
    return slot;
}

static uint32_t find_name(const struct post_office *self, const char *name)
{
    uint32_t slot = name_slot(name);
    while (self->by_name[slot] &&
           !actor_name_is_same(self->peers[self->by_name[slot] - 1].name, name))
        slot = (slot + 1) % SLOTS;
    return slot;
}

static uint32_t find_connection(const struct post_office *self, const struct key *connection)
{
    uint32_t slot = connection_slot(connection);
    while (self->by_connection[slot] &&
           !key_equal(&self->peers[self->by_connection[slot] - 1].connection, connection))
        slot = (slot + 1) % SLOTS;
    return slot;
}

static uint32_t home_of(const struct post_office *self, const uint32_t *table,
                        const struct peer *peer)
{
    return table == self->by_name    ? name_slot(peer->name)
           : table == self->by_route ? route_slot(&peer->route)
                                     : connection_slot(&peer->connection);
}

// Empties a slot. The entries that follow without a gap move up, so that searches still find them.
static void empty_slot(struct post_office *self, uint32_t *table, uint32_t hole)
{
    for (uint32_t i = (hole + 1) % SLOTS; table[i]; i = (i + 1) % SLOTS) {
        uint32_t home = home_of(self, table, &self->peers[table[i] - 1]);
        bool stays = hole <= i ? hole < home && home <= i : hole < home || home <= i;
        if (stays) continue;
        table[hole] = table[i];
        hole = i;
    }
    table[hole] = 0;
}

static void remove_peer(struct post_office *self, uint32_t place)
{
    struct peer *peer = &self->peers[place];
    empty_slot(self, self->by_route, find_route(self, &peer->route));
    empty_slot(self, self->by_name, find_name(self, peer->name));
    empty_slot(self, self->by_connection, find_connection(self, &peer->connection));
    memset(peer, 0, sizeof *peer);
    self->free_places[self->free_count++] = place;
    self->count--;
}

static void add_peer(struct post_office *self, const struct peer *peer)
{
    uint32_t place = self->free_count ? self->free_places[--self->free_count] : self->used_places++;
    ensure(place < POST_OFFICE_PEERS_MAX);
    self->peers[place] = *peer;
    self->by_route[find_route(self, &peer->route)] = place + 1;
    self->by_name[find_name(self, peer->name)] = place + 1;
    self->by_connection[find_connection(self, &peer->connection)] = place + 1;
    self->count++;
}

static bool make_room(struct post_office *self)
{
    uint32_t oldest = POST_OFFICE_PEERS_MAX;
    for (uint32_t i = 0; i < self->used_places; i++)
        if (self->peers[i].name[0] && !self->peers[i].has_seat &&
            (oldest == POST_OFFICE_PEERS_MAX ||
             self->peers[i].heard_ms < self->peers[oldest].heard_ms))
            oldest = i;
    if (oldest == POST_OFFICE_PEERS_MAX) return false;
    remove_peer(self, oldest);
    return true;
}

const char POST_OFFICE_FULL[] = "the post office is full; try again later";
const char POST_OFFICE_HELD[] = "the name is held by another key; try again later";
const char POST_OFFICE_SHARED[] =
    "another connection has its CURVE key, under another name; try again later";

// Whether another peer has the CURVE key. Registrations that do not count: the one that this HELLO replaces, and
// one whose lease is over.
static bool is_shared(const struct post_office *self, const struct peer *fresh, uint64_t now_ms)
{
    const struct peer *other = post_office_at(self, &fresh->connection);
    return other && !same_route(&other->route, &fresh->route) &&
           !actor_name_is_same(other->name, fresh->name) &&
           now_ms - other->heard_ms <= POST_OFFICE_LEASE_MS;
}

static void remove_at(struct post_office *self, uint32_t place_and_one)
{
    if (place_and_one) remove_peer(self, place_and_one - 1);
}

const char *post_office_hello(struct post_office *self, const struct route *route,
                              const struct key *key, const struct key *connection,
                              const struct wire_hello *hello, bool has_seat, uint64_t now_ms)
{
    if (!actor_name_fits(hello->name, hello->role, key))
        return "the name is not one of this role and key; a label has " ACTOR_LABEL_RULE;
    uint32_t held = self->by_name[find_name(self, hello->name)];
    if (held) {
        const struct peer *holder = &self->peers[held - 1];
        bool alive = now_ms - holder->heard_ms <= POST_OFFICE_LEASE_MS;
        if (!key_equal(&holder->key, key) && alive) return POST_OFFICE_HELD;
        if (key_equal(&holder->key, key) && hello->instance < holder->instance)
            return "a newer process uses this identity; stop one of the two, an identity is for "
                   "one process";
    }
    struct peer peer = { .route = *route,
                         .key = *key,
                         .connection = *connection,
                         .role = hello->role,
                         .has_seat = has_seat,
                         .instance = hello->instance,
                         .heard_ms = now_ms };
    memcpy(peer.name, hello->name, sizeof peer.name);
    if (is_shared(self, &peer, now_ms)) return POST_OFFICE_SHARED;
    // mutant: a new connection has a budget of its own
    if (held && key_equal(&self->peers[held - 1].key, key))
        memcpy(peer.own, self->peers[held - 1].own, PEER_OWN_BYTES);
    remove_at(self, held);
    remove_at(self, self->by_route[find_route(self, route)]); // A connection has one name
    remove_at(self, self->by_connection[find_connection(self, connection)]);
    // mutant: strangers take every seat
    if (self->count == POST_OFFICE_PEERS_MAX && !(has_seat && make_room(self)))
        return POST_OFFICE_FULL;
    add_peer(self, &peer);
    return NULL;
}

const struct peer *post_office_sender(struct post_office *self, const struct route *route,
                                      uint64_t now_ms)
{
    uint32_t place = self->by_route[find_route(self, route)];
    if (!place) return NULL;
    self->peers[place - 1].heard_ms = now_ms;
    return &self->peers[place - 1];
}

uint8_t *post_office_own(struct post_office *self, const struct peer *peer)
{
    return self->peers[peer - self->peers].own;
}

const struct peer *post_office_named(const struct post_office *self, const char *name)
{
    uint32_t place = self->by_name[find_name(self, name)];
    return place ? &self->peers[place - 1] : NULL;
}

const struct peer *post_office_at(const struct post_office *self, const struct key *connection)
{
    uint32_t place = self->by_connection[find_connection(self, connection)];
    return place ? &self->peers[place - 1] : NULL;
}

bool post_office_knows(const struct post_office *self, const struct route *route,
                       const struct key *key, const struct key *connection,
                       const struct wire_hello *hello)
{
    uint32_t place = self->by_route[find_route(self, route)];
    const struct peer *peer = place ? &self->peers[place - 1] : NULL;
    return peer && key_equal(&peer->key, key) && key_equal(&peer->connection, connection) &&
           peer->role == hello->role && peer->instance == hello->instance &&
           strcmp(peer->name, hello->name) == 0;
}

// ---- permissions --------------------------------------------------------------------------------

enum {
    COORDINATOR = 1 << ACTOR_COORDINATOR,
    TRAINER = 1 << ACTOR_TRAINER,
    WITNESS = 1 << ACTOR_WITNESS,
    CHECKPOINTER = 1 << ACTOR_CHECKPOINTER,
    OPERATOR = 1 << ACTOR_OPERATOR,
    SERVER = 1 << ACTOR_SERVER,
    ONLOOKERS = 1 << ACTOR_MONITOR | OPERATOR,
    ALL = (1 << ACTOR_COUNT) - 1,
    MEMBERS = ALL & ~ONLOOKERS & ~COORDINATOR
};

static const struct {
    uint16_t kind;
    uint8_t from, to;
} rules[] = {
    { FRAME_JOIN, MEMBERS, COORDINATOR },
    { FRAME_PING, MEMBERS, COORDINATOR },
    { FRAME_ASK, ALL, COORDINATOR },
    { FRAME_HOLDS, MEMBERS, COORDINATOR },
    { FRAME_UNREAD, TRAINER | SERVER, COORDINATOR },
    { FRAME_CHECKPOINT, CHECKPOINTER, COORDINATOR },
    { FRAME_LEAVE, MEMBERS, COORDINATOR },
    { FRAME_CONTROL, OPERATOR, COORDINATOR },
    { FRAME_CONTROL, COORDINATOR, CHECKPOINTER },
    { FRAME_ADMITTED, COORDINATOR, MEMBERS },
    { FRAME_CONFIG, COORDINATOR, ALL },
    { FRAME_REFUSED, COORDINATOR, ALL },
    { FRAME_ACK, MEMBERS | COORDINATOR, ALL },
    { FRAME_RUN, COORDINATOR, ALL },
    { FRAME_ROSTER, COORDINATOR, ALL },
    { FRAME_EPOCH_END, COORDINATOR, ALL },
    { FRAME_POSITION, ALL, COORDINATOR },
    { FRAME_REACH, ALL, COORDINATOR },
};

// The frames of a pace say in its .def which way they go.
static bool is_of_pace(uint8_t from, uint16_t kind, uint8_t to)
{
    const unsigned flags = wire_kind_flags(kind), sender = 1u << from, receiver = 1u << to;
    return (flags & WIRE_ORDER && sender == COORDINATOR) ||
           (flags & WIRE_REPORT && sender & (TRAINER | SERVER | WITNESS) &&
            receiver == COORDINATOR) ||
           (flags & WIRE_PEER && sender == TRAINER && receiver & (TRAINER | WITNESS));
}

const char *post_office_forbids_mail(uint8_t from, uint16_t kind, uint8_t to)
{
    if (is_of_pace(from, kind, to)) return NULL;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].kind == kind && rules[i].from & 1 << from && rules[i].to & 1 << to)
            return NULL;
    return "this role may not send this kind to that role";
}

const char *post_office_forbids_news(uint8_t from, uint16_t kind)
{
    const unsigned flags = wire_kind_flags(kind);
    if (!(flags & WIRE_NEWS)) return "this kind is not news";
    if (ONLOOKERS & 1 << from) return "monitors and operators may not publish";
    if (flags & (WIRE_STATE | WIRE_ORDER))
        return from == ACTOR_COORDINATOR ? NULL : "only the coordinator may publish this";
    return (TRAINER | SERVER) & 1 << from ? NULL : "only a trainer or a server may publish this";
}

void post_office_forget(struct post_office *self, const struct route *route)
{
    remove_at(self, self->by_route[find_route(self, route)]);
}

void post_office_expire(struct post_office *self, uint64_t now_ms)
{
    for (uint32_t i = 0; i < self->used_places; i++)
        if (self->peers[i].name[0] && now_ms - self->peers[i].heard_ms > POST_OFFICE_LEASE_MS)
            remove_peer(self, i);
}
