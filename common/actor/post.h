#pragma once
// post -- an actor's two sockets to the broker, and the checks that a frame must pass before the
// core gets it.
//
//     mail     DEALER  ─▶ ROUTER   [to][frame] out, [from][frame] in; HELLO once a second;
//                                  news go out as mail to "news"
//     news     SUB     ◀─ XPUB     [topic][frame], topic "<run>.<KIND>"; from the WELCOME on
//
// Both use CURVE: the broker proves the key that the ticket names; our end has a key that is drawn for
// these sockets alone, and the HELLO, which our identity signs, says that they are ours. A broker with another key
// is sent nothing; one that does not admit us gets HELLOs only. post_trouble tells the reason. A broker with another
// key is not called silent, but the post tries again all the same.
//
// If the ticket names the run's owner, what another coordinator says is dropped.
//
// If the broker is silent for POST_SILENCE_MS, the post opens new sockets. If a WELCOME has a new
// instance, the broker has restarted: the post asks again for the last values of the run. One
// thread.

#include "common/actor/msg.h"
#include "common/actor/ticket.h"
#include "common/base/fault.h"
#include "common/crypto/identity.h"
#include <zmq.h>

enum {
    POST_PORTS = 2, // Ports of a broker: mail, and news on the next one
    POST_SILENCE_MS = 5000
};

struct post_options {
    const struct identity *identity;
    uint8_t role;
    const char *name, *run;
    const struct ticket *broker; // Its address and key, the owner's, our invitation if any; copied
    bool follows_news;
    const char *const *deaf_to;
    uint64_t incarnation, instance;
    // Whether frames of this kind are only hints now: the core believes nothing because of them. Then their
    // signatures are not verified, and the message has no frame. NULL: no kind is a hint.
    bool (*is_hint)(const void *arg, uint16_t kind);
    const void *is_hint_arg;
    bool quiet;    // Logs nothing: for short-lived tools
    bool is_guest; // In somebody else's run: a broker with another key is another run of the owner
};

struct post;

// FAULT_USAGE if the broker's address is not host:port; FAULT_BUSY if no descriptor is left. If descriptors run
// out later, post_trouble tells so and the old sockets stay.
int post_new(const struct post_options *options, struct why *why, struct post **ret_post);
void post_destroy(struct post **self_p);

// The reason why the broker cannot be used, in one sentence; NULL: none since the last WELCOME.
const char *post_trouble(const struct post *self);
bool post_is_refused(const struct post *self); // The broker does not let our key in

void *post_mail_socket(struct post *self);
void *post_news_socket(struct post *self);

// For a loop that polls by itself. The descriptor becomes readable once for each change: then receive until there is
// nothing. post_waits is true if something may wait that the descriptor does not announce again: ask it before
// polling. (ZeroMQ's own zmq_poll costs four calls of the kernel for each socket that it looks at.)
int post_descriptor(const struct post *self, bool mail);
bool post_waits(struct post *self, bool mail);
bool post_is_known(const struct post *self);   // The broker has said WELCOME
uint64_t post_due_ms(const struct post *self); // When post_tick is due
void post_tick(struct post *self);

// Signs the frame if its kind requires it. False: not sent, the broker is away or the queue is
// full.
bool post_mail(struct post *self, const char *to, uint16_t kind, const void *body);
void post_publish(struct post *self, uint16_t kind, const void *body);

// A frame as it came: only its head has been read. `sender` is the key that it names. The broker vouches that this
// actor was welcomed on the connection that the frame came by. None: it is the broker's own, or no frame.
struct post_frame {
    zmq_msg_t part;
    struct key sender;
    uint16_t kind; // FRAME_NONE: no frame
    char from[ACTOR_NAME_MAX + 1];
    int parts;
    bool mail;
};

// Receives a frame, which the caller owns until post_release. NULL: none has come.
struct post_frame *post_receive(struct post *self, bool mail);
void post_release(struct post_frame **frame_p);

enum post_result { POST_NOTHING, POST_LETTER, POST_BAD, POST_OWN, POST_RETURNED };

// A frame that was opened: a message for the core, whose strings and body live as long as the frame and the
// arena; or, if POST_BAD, the sender's name and the reason why it was dropped.
struct letter {
    struct msg msg;
    char run[WIRE_RUN_MAX + 1];
    char from[ACTOR_NAME_MAX + 1];
    char reason[512];
};

// Checks the frame. POST_OWN: it concerned the post itself, which has handled it. The first WELCOME of a
// broker process is a letter; so is the UNDELIVERABLE with which the broker refuses the HELLO for
// good. POST_RETURNED: mail of ours that was not delivered; the message is the UNDELIVERABLE that
// says why, and is not for the core. Never POST_NOTHING.
enum post_result post_open(struct post *self, const struct post_frame *frame,
                           struct wire_arena *arena, struct letter *ret_letter);

// Receives and opens the next frame, which lives until the next call. POST_NOTHING: none has come.
enum post_result post_take(struct post *self, bool mail, struct wire_arena *arena,
                           struct letter *ret_letter);

// Splits "host:port" and writes the endpoint of port + offset. False if the text is not host:port,
// or the host has a character that libzmq refuses.
bool post_endpoint(const char *broker, unsigned offset, char *ret_endpoint, size_t max);
