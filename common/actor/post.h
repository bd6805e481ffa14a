#pragma once
// post -- an actor's two sockets to the broker, and what a frame must pass before a core hears it.
//
//     mail     DEALER  ─▶ ROUTER   [to][frame] out, [from][frame] in; HELLO once a heartbeat;
//                                  what is for everybody goes out as mail to "news"
//     news     SUB     ◀─ XPUB     [topic][frame], topic "<run>.<KIND>"; from the WELCOME on
//
// Both are CURVE: the broker proves the key that the ticket names, and we prove ours. With a broker
// that has another key, or that does not let us in, nothing is exchanged; post_trouble says so.
//
// A broker that has been silent for POST_SILENCE_MS, or that says by a new instance that it has
// restarted, gets new sockets or a new HELLO, and the last values of the run are asked for. One
// thread.

#include "common/actor/msg.h"
#include "common/actor/ticket.h"
#include "common/base/fault.h"
#include "common/crypto/identity.h"

enum {
    POST_PORTS = 2, // Of a broker: mail, and news on the next one
    POST_SILENCE_MS = 5000
};

struct post_options {
    const struct identity *identity;
    uint8_t role;
    const char *name, *run;
    const struct ticket *broker; // Where it is, its key, our invitation if any; copied
    bool follows_news;
    const char *const *deaf_to;
    uint64_t incarnation, instance;
    bool quiet; // Says nothing to the log: for tools that come and go
};

struct post;

// FAULT_USAGE if the broker's address is not host:port, or its key is nobody's; FAULT_BUSY if no
// descriptor is left. Later on that is a trouble, and the sockets that there are stay.
int post_new(const struct post_options *options, struct why *why, struct post **ret_post);
void post_destroy(struct post **self_p);

// What keeps us out, in one sentence, since the last WELCOME; NULL: nothing is known to.
const char *post_trouble(const struct post *self);

void *post_mail_socket(struct post *self);
void *post_news_socket(struct post *self);
bool post_is_known(const struct post *self);   // The broker has said WELCOME
uint64_t post_due_ms(const struct post *self); // When post_tick has something to do
void post_tick(struct post *self);

// Signed if the kind asks for it. False: not sent, the broker is away or the queue is full.
bool post_mail(struct post *self, const char *to, uint16_t kind, const void *body);
void post_publish(struct post *self, uint16_t kind, const void *body);

enum post_result { POST_NOTHING, POST_LETTER, POST_BAD, POST_OWN };

// What was taken: a message for the core (its strings and body live until the next post_take), or
// who sent what could not be taken and why.
struct letter {
    struct msg msg;
    char run[WIRE_RUN_MAX + 1];
    char from[ACTOR_NAME_MAX + 1];
    char reason[512];
};

// OWN: it concerned the post itself and has been dealt with. A WELCOME comes to the core when it is
// the first of a broker's life, an UNDELIVERABLE if the broker refuses the HELLO itself: another
// process has the name, for good.
enum post_result post_take(struct post *self, bool mail, struct wire_arena *arena,
                           struct letter *ret_letter);

// Splits "host:port" and writes the endpoint of port + offset. False if it is none: also a host with
// a character that libzmq refuses.
bool post_endpoint(const char *broker, unsigned offset, char *ret_endpoint, size_t max);
