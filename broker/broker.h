#pragma once
// broker -- the post office as a process: what its parts share. Only broker/ includes this.
//
//     broker_main.c   flags, sockets, the loop            post_office.[ch]  names and routes
//     mail.c          what comes by mail, where it goes   admission.[ch]    who may come in
//     news.c          what is for everybody               budget.[ch]       who says too much
//     gate.c          handshakes, budgets, cutting off    penalties.[ch]    who stays out for it
//                                                         backlog.[ch]      who reads too little
//
// What bounds what:
//
//     idle TCP connections          ZMQ_HANDSHAKE_IVL (5 s), and the room for connections
//     who gets past the handshake   ZAP, and the penalty of a key that was cut for what it said
//     frames                        the budget of the connection (budget.h)
//     bytes that make no message    CONNECTION_PENDING_MAX of each, CONNECTIONS_PENDING_MAX of all
//                                   (common/net/connections.h)
//     what waits for a receiver     backlog.h
//     subscriptions                 SUBSCRIBED_MAX bytes in the life of a connection to the news
//     one frame                     ZMQ_MAXMSGSIZE

#include "broker/admission.h"
#include "broker/backlog.h"
#include "broker/budget.h"
#include "broker/penalties.h"
#include "broker/post_office.h"
#include "common/actor/command.h"
#include "common/net/connections.h"
#include <zmq.h>

enum { BULLETINS_MAX = 64, CONNECTION_PENDING_MAX = 12 << 20, SUBSCRIBED_MAX = 64 << 10 };
#define CONNECTIONS_PENDING_MAX (256ull << 20)

struct bulletin {
    char topic[96];
    uint8_t *frame;
    size_t count;
    uint64_t incarnation, seq; // Of the frame kept: an older one does not come after it
};

struct broker {
    struct command command;
    const char *bind, *port, *admit, *owner_hex;
    struct identity *identity;
    struct admission *admission;
    void *context, *mail, *news, *zap, *events[WHERE_COUNT];
    int signals;
    struct post_office *office;
    struct connections *connections; // Known: registered at the mail, or may listen to the news;
                                     // trusted: the coordinator's
    struct backlog *backlog;
    struct penalties penalties;
    uint64_t instance, seq, expire_ms, look_ms, sweep_ms, swept_kib, log_ms;
    uint64_t cut_ms; // When those who were banned are cut off; 0: nobody was
    struct bulletin bulletins[BULLETINS_MAX];
    uint32_t bulletins_count;
    uint8_t buffer[4096], arena_bytes[8192];
    uint64_t passed, undeliverable, published, refused, dropped, cut;
};

// One letter, as it came. `user`: by the word of the handshake.
struct delivery {
    struct route sender;
    char to[ACTOR_NAME_MAX + 1];
    const uint8_t *frame;
    size_t count;
    struct key user;
    int fd;
    uint64_t now_ms;
};

// mail.c
bool broker_take_mail(struct broker *self, uint64_t now_ms); // False: none was waiting
// False: not sent, and errno says why: EHOSTUNREACH, gone; EAGAIN, too much waits for it already.
bool broker_send(struct broker *self, const struct route *to, const char *from, const void *frame,
                 size_t count);
bool broker_is_signed_well(const uint8_t *frame, size_t count, const struct wire_head *head);

// news.c
void broker_publish(struct broker *self, const struct peer *from, const struct wire_head *head,
                    const uint8_t *frame, size_t count);
void broker_recall(struct broker *self, const struct route *sender,
                   const struct wire_recall *recall);
void broker_doubt_bulletins(struct broker *self); // The coordinator is another process: its ledger
                                                  // may be a new one
bool broker_take_subscription(struct broker *self, uint64_t now_ms);

// gate.c
struct connections *broker_connections_new(uint32_t room);   // For so many at each socket
void broker_mind_gate(struct broker *self, uint64_t now_ms); // Once a turn, before all else
void broker_sweep(struct broker *self, uint64_t now_ms);
// Not listened to from now on, and cut off half a second later: the coordinator's word to it that it
// was ejected is on its way.
void broker_eject(struct broker *self, const struct wire_roster *roster);
void broker_cut_unlisted(struct broker *self); // After the list was read again

// False: what came is over the budget of its connection, and not looked at.
bool broker_may_say(struct broker *self, const struct delivery *delivery, const struct peer *from,
                    uint32_t parts, uint64_t bytes);
bool broker_may_send(struct broker *self, int fd); // False: too much waits for that connection
void broker_hear_subscriber(struct broker *self, zmq_msg_t *part, uint64_t now_ms);
