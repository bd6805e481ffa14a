#pragma once
// broker -- the post office as a process: its state, its life, and what its parts share. Only
// broker/ includes this.
//
//     broker_main.c   flags and policy                post_office.[ch]  names, routes, permissions
//     broker.c        sockets, loop, end              admission.[ch]    which keys are welcome
//     mail.c          judges and routes letters       budget.[ch]       rate limit of a connection
//     news.c          publishes; keeps state topics   penalties.[ch]    keys cut for flooding
//                                                     blocks.[ch]       strangers of one network
//     letter.[ch]     takes and sends one letter      backlog.[ch]      bytes waiting for receivers
//     gate.c          handshakes, budgets, cutting off
//     seats.c         which keys are members, by ROSTER and MEMBERS
//
// Each file calls only those behind it: broker.c ▶ mail.c ▶ news.c ▶ letter.c ▶ gate.c ▶ the right
// column.
//
// Resources and their limits:
//
//     idle TCP connections          ZMQ_HANDSHAKE_IVL (5 s), and the room for connections
//     handshakes                    of each address so many at once, then so many a second (common/net/callers.h:
//                                   probes); loopback any number
//     connections without an actor  MUTE_MS (gate.c)
//     connections of an actor       ACTOR_CONNECTIONS_MAX at each socket: the oldest one is cut
//     HELLOs                        a key that was cut for flooding is refused for a while (penalties.h);
//                                   the news let in only keys that the mail has welcomed
//     frames                        the budget of the connection (budget.h)
//     bytes that make no message    CONNECTION_PENDING_MAX of each, CONNECTIONS_PENDING_MAX of all
//                                   (common/net/connections.h)
//     what waits for a receiver     backlog.h
//     subscriptions                 SUBSCRIBED_MAX bytes in the life of a connection to the news
//     one frame                     ZMQ_MAXMSGSIZE

#include "broker/admission.h"
#include "broker/backlog.h"
#include "broker/budget.h"
#include "broker/letter.h"
#include "broker/blocks.h"
#include "broker/penalties.h"
#include "broker/post_office.h"
#include "common/base/fault.h"
#include "common/net/callers.h"
#include "common/net/connections.h"
#include <zmq.h>

enum {
    BULLETINS_MAX = 64,
    CHALLENGE_BYTES = 16,
    CONNECTION_PENDING_MAX = 12 << 20,
    SUBSCRIBED_MAX = 64 << 10
};
#define CONNECTIONS_PENDING_MAX (256ull << 20)

struct bulletin {
    char topic[96];
    uint8_t *frame;
    size_t count;
    uint64_t incarnation, seq; // Of the frame kept: an older frame does not replace it
    uint64_t kept_ms;          // When it came
};

// A member of the newest roster, in its role. No stranger takes its place in the post office.
struct seat {
    struct key key;
    uint8_t role;
    bool takes_part; // Not dropped, and has not left
};

struct broker {
    const char *bind, *admit; // Address to listen on; the policy, for the log
    uint16_t port;            // Of the mail; the news are on the next one
    struct identity *identity;
    struct key server; // Of our connections, as tickets have it
    struct admission *admission;
    void *context, *mail, *news, *zap, *events[WHERE_COUNT];
    int signals;
    struct post_office *office;
    struct connections *connections; // Known: registered at the mail, or may listen to the news;
                                     // trusted: the coordinator's
    struct backlog *backlog;
    struct penalties penalties;
    struct blocks blocks;
    struct callers callers;
    struct seat *seats; // In the order of the keys
    uint32_t seats_count;
    uint64_t instance, seq, expire_ms, look_ms, sweep_ms, swept_kib, log_ms, hellos_ms;
    uint32_t hellos; // Logged since hellos_ms
    uint64_t cut_ms; // When connections of banned keys are cut; 0: no key waits for that
    struct bulletin bulletins[BULLETINS_MAX];
    uint32_t bulletins_count;
    uint8_t buffer[4096], arena_bytes[8192];
    uint64_t opened; // Rounds that the coordinator has opened since this process began
    uint64_t passed, undeliverable, published, refused, dropped, cut,
        crowded; // crowded: since the last sweep
};

// broker.c. The caller fills in bind, admit, port, identity and admission before broker_open; the
// broker then owns identity and admission. FAULT_BUSY: the ports are taken. broker_run returns on
// SIGTERM or SIGINT; SIGHUP reads the allowlist again. Close it also if opening failed.
int broker_open(struct broker *self, struct why *why);
void broker_run(struct broker *self);
void broker_close(struct broker *self);

// mail.c
bool broker_take_mail(struct broker *self, uint64_t now_ms); // False: none was waiting

// news.c
void broker_publish(struct broker *self, const struct peer *from, const struct wire_head *head,
                    const uint8_t *frame, size_t count);
void broker_recall(struct broker *self, const struct route *sender,
                   const struct wire_recall *recall);
uint64_t broker_beat_ms(const struct broker *self,
                        const char *run); // When the run's newest BEAT came; 0: none came
// The coordinator is a new process, and its ledger may be new: the next frame of a topic replaces
// the one kept, even if it looks older.
void broker_doubt_bulletins(struct broker *self);
bool broker_take_subscription(struct broker *self, uint64_t now_ms);

// gate.c
struct zap_request;
struct connections *broker_connections_new(uint32_t room);   // Room at each socket
void broker_mind_gate(struct broker *self, uint64_t now_ms); // Once a turn, before all else
// Measures the connections and cuts those above a limit, if a sweep is due.
void broker_sweep(struct broker *self, uint64_t now_ms);
// Bans the ejected keys among these members. Their frames are ignored from now on; their connections are
// cut half a second later, so that the coordinator's refusal still reaches them.
void broker_eject(struct broker *self, const struct wire_member *members, uint32_t count);
// seats.c: from now on the members of the roster have a seat, and no other key but the owner's.
void broker_keep_seats(struct broker *self, const struct wire_roster *roster);
void broker_change_seats(struct broker *self, const struct wire_members *change);
bool broker_has_seat(const struct broker *self, const struct key *key, uint8_t role);
// Whether it may publish and has the budget of a member; a peer without a seat may only join. Before the first
// ROSTER no member is known, and every peer may.
bool broker_takes_part(const struct broker *self, const struct peer *peer);
// gate.c: after the list was read again. Cuts the connections of actors whose key may not take their role any more.
void broker_cut_unlisted(struct broker *self);

// Every CURVE key may connect to the mail; to the news, only that of an actor that the mail has welcomed. A key
// that was cut for flooding may connect to neither for a while.
bool broker_lets_in(const struct broker *self, const struct zap_request *request, uint64_t now_ms);

// False: ignore the letter; its connection is over its budget, or is being cut.
bool broker_may_say(struct broker *self, const struct delivery *letter, const struct peer *from);
bool broker_may_send(struct broker *self, int fd); // False: too many bytes wait for that connection
bool broker_is_connected(const struct broker *self, const struct peer *peer);

// The challenge that the HELLO on this letter's connection must have: drawn once for each connection.
void broker_challenge(struct broker *self, const struct delivery *letter,
                      uint8_t ret_bytes[CHALLENGE_BYTES]);
// Records that the actor has proved to hold the letter's connection. A new connection belongs to no actor, even
// if it has the descriptor, the routing id and the CURVE key of one that is gone.
void broker_welcomed(struct broker *self, const struct delivery *letter, const struct key *actor);
bool broker_has_welcomed(struct broker *self, const struct delivery *letter);
void broker_hear_subscriber(struct broker *self, zmq_msg_t *part, uint64_t now_ms);
