#pragma once
// post_office -- who is where, and who may speak to whom.
//
// An actor says HELLO on a connection, signed by its key; from then on mail to its name goes there.
// The name must be the one that follows from role and key, so nobody can be called what another is
// called; only "coordinator" is given to whoever holds it first, and stays with that key while it
// lives. A later process with the same key takes its name over, an earlier one does not get it
// back.
//
//     connection ──HELLO──▶ registered ──silent for POST_OFFICE_LEASE_MS──▶ forgotten
//
// Pure: the sockets are broker_main's. No pointers; memory is the struct's own (4 MiB, zeroed).

#include "common/actor/msg.h"

enum { POST_OFFICE_PEERS_MAX = 16384 + 1024, POST_OFFICE_LEASE_MS = 10000, ROUTE_MAX = 32 };

// How a connection is told apart: ZeroMQ's routing id. Its descriptor, for whoever minds connections.
struct route {
    uint8_t count, bytes[ROUTE_MAX];
    int fd;
};

struct peer {
    struct route route;
    char name[ACTOR_NAME_MAX + 1]; // "" where the place is free
    struct key key, connection;    // Who it is, and the CURVE key that follows from it
    uint8_t role;
    uint64_t instance, heard_ms;
};

struct post_office {
    uint32_t count;
    uint32_t by_route[4 * POST_OFFICE_PEERS_MAX]; // Open addressing; place + 1, 0 is empty
    uint32_t by_name[4 * POST_OFFICE_PEERS_MAX];
    struct peer peers[POST_OFFICE_PEERS_MAX];
    uint32_t free_places[POST_OFFICE_PEERS_MAX], free_count, used_places;
};

// Registers or renews. NULL if it is welcome, else the reason, for UNDELIVERABLE; all but FULL are
// for good.
extern const char POST_OFFICE_FULL[];
const char *post_office_hello(struct post_office *self, const struct route *route,
                              const struct key *key, const struct key *connection,
                              const struct wire_hello *hello, uint64_t now_ms);

// Whether this HELLO says again what is known of the connection: then nothing needs to be proven.
bool post_office_knows(const struct post_office *self, const struct route *route,
                       const struct key *key, const struct key *connection,
                       const struct wire_hello *hello);

// Who is registered on a connection, or under a name; NULL: nobody. Hearing from one renews its
// lease.
const struct peer *post_office_sender(struct post_office *self, const struct route *route,
                                      uint64_t now_ms);
const struct peer *post_office_named(const struct post_office *self, const char *name);

// Who may say what to whom: NULL if this role may send mail of this kind to that one, or publish it
// as news; else the reason. What no line of the table allows is forbidden.
const char *post_office_forbids_mail(uint8_t from, uint16_t kind, uint8_t to);
const char *post_office_forbids_news(uint8_t from, uint16_t kind);

// The connection turned out to be gone.
void post_office_forget(struct post_office *self, const struct route *route);
void post_office_expire(struct post_office *self, uint64_t now_ms);
