#pragma once
// post_office -- which actor is on which connection, and which role may send what to which role.
//
// An actor sends HELLO on a connection, signed by its key; from then on mail to its name goes
// there. The name must follow from role and key (common/actor/name.h), so no actor can take
// another's name. Only the name "coordinator" does not depend on the key: the first key that sends a
// HELLO for it has it until its lease ends (admission.h says which keys may). A later process with the same key
// takes the name over; an earlier one cannot take it back.
//
// The label in a name is only shown. A peer is registered and found by role and key, so a key has
// one entry for each role, with the label of its newest process, and mail finds it under any label.
//
//     connection ──HELLO──▶ registered ──silent for POST_OFFICE_LEASE_MS──▶ forgotten
//
// A CURVE key belongs to one peer at a time. The news let in only CURVE keys of peers (post_office_at).
//
// Pure: it opens no socket. No pointers: all memory is in the struct (6.5 MiB, zeroed). One thread.

#include "common/actor/msg.h"

enum { POST_OFFICE_PEERS_MAX = 16384 + 1024, POST_OFFICE_LEASE_MS = 10000, ROUTE_MAX = 32 };

// A connection: ZeroMQ's routing id, and its descriptor.
struct route {
    uint8_t count, bytes[ROUTE_MAX];
    int fd;
};

enum { PEER_OWN_BYTES = 160 };

struct peer {
    struct route route;
    char name[ACTOR_NAME_MAX + 1]; // As it said it, label included. "": the entry is free
    struct key key, connection;    // The actor's key, and the CURVE key of its connections
    uint8_t role;
    bool has_seat; // The owner, or a member of the roster
    uint64_t instance, heard_ms;
    uint8_t own[PEER_OWN_BYTES]; // Free for the broker; zeros at first. It outlives the connection
};

struct post_office {
    uint32_t count;
    uint32_t by_route[4 * POST_OFFICE_PEERS_MAX]; // Open addressing; index + 1, 0 is empty
    uint32_t by_name[4 * POST_OFFICE_PEERS_MAX];
    uint32_t by_connection[4 * POST_OFFICE_PEERS_MAX];
    struct peer peers[POST_OFFICE_PEERS_MAX];
    uint32_t free_places[POST_OFFICE_PEERS_MAX], free_count, used_places;
};

// Registers the actor, or renews its registration. When all entries are taken, an actor with a seat replaces the
// actor without one that was heard longest ago: strangers keep no member and no owner out, however many names
// they make. NULL if it is welcome, else the reason for UNDELIVERABLE.
// Every reason but these three is final: a retry would not help.
extern const char POST_OFFICE_FULL[], POST_OFFICE_HELD[], POST_OFFICE_SHARED[];
const char *post_office_hello(struct post_office *self, const struct route *route,
                              const struct key *key, const struct key *connection,
                              const struct wire_hello *hello, bool has_seat, uint64_t now_ms);

// True if this HELLO repeats the registration of its connection; then it need not be verified
// again.
bool post_office_knows(const struct post_office *self, const struct route *route,
                       const struct key *key, const struct key *connection,
                       const struct wire_hello *hello);

// The peer that is registered on a connection, under a name, or with a CURVE key; NULL: none.
// post_office_sender renews its lease.
const struct peer *post_office_sender(struct post_office *self, const struct route *route,
                                      uint64_t now_ms);
// The bytes of `peer`, one of this office, that are free for the broker.
uint8_t *post_office_own(struct post_office *self, const struct peer *peer);
const struct peer *post_office_named(const struct post_office *self, const char *name);
const struct peer *post_office_at(const struct post_office *self, const struct key *connection);

// NULL if role `from` may send mail of this kind to role `to`, or publish it as news; else the
// reason. Mail that no line of the table allows is forbidden.
const char *post_office_forbids_mail(uint8_t from, uint16_t kind, uint8_t to);
const char *post_office_forbids_news(uint8_t from, uint16_t kind);

// post_office_forget removes the peer of a connection that is gone; post_office_expire removes all
// peers that were silent for POST_OFFICE_LEASE_MS.
void post_office_forget(struct post_office *self, const struct route *route);
void post_office_expire(struct post_office *self, uint64_t now_ms);
