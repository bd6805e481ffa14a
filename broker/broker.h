#pragma once
// broker -- the post office as a process: its state, its life, and what its parts share. Only broker/
// includes this.
//
//     broker_main.c   flags and policy                    post_office.[ch]  names and routes
//     broker.c        sockets, the loop, the end          admission.[ch]    who may come in
//     mail.c          what comes by mail, where it goes   budget.[ch]       who says too much
//     news.c          what is for everybody               penalties.[ch]    who stays out for it
//     letter.[ch]     one letter, taken and sent          backlog.[ch]      who reads too little
//     gate.c          handshakes, budgets, cutting off
//
// Each calls only what stands below it: broker.c ▶ mail.c ▶ news.c ▶ letter.c ▶ gate.c ▶ the right column.
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
#include "broker/letter.h"
#include "broker/penalties.h"
#include "broker/post_office.h"
#include "common/base/fault.h"
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
    const char *bind, *admit; // Address to listen on; the policy, for the log
    uint16_t port;            // Of the mail; the news are on the next one
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

// broker.c. Filled in before it is opened: bind, admit, port, identity, admission, the latter two then
// the broker's. FAULT_BUSY if the ports are taken. It runs until SIGTERM or SIGINT; SIGHUP has the list
// of who may come in read again. To be closed also where opening failed.
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
bool broker_may_say(struct broker *self, const struct delivery *letter, const struct peer *from);
bool broker_may_send(struct broker *self, int fd); // False: too much waits for that connection
void broker_hear_subscriber(struct broker *self, zmq_msg_t *part, uint64_t now_ms);
