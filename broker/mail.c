// mail -- checks and routes letters. A letter to "broker" is a HELLO or a RECALL; a letter to
// "news" is published; any other goes to the actor of that name. A RECALL to an actor is answered
// here: it asks when that actor was last heard.
//
// 1. The frame's head can be read.
// 2. A HELLO is decided here, and goes no further.
// 3. The sender is registered, and its HELLO was welcomed on this very connection.
// 4. The frame names the registered key as its sender.
// 5. The sender's role may send this kind to that receiver.
// 6. News comes from members of the run and from its coordinator.
//
// The first check that fails is the answer to the sender.

#include "broker/broker.h"
#include "common/actor/last_heard.h"
#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/net/signed_frame.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static const char TOO_MANY[] = "too many new actors come from its network; try again later";
static const char TOO_MUCH[] = "this key was cut off for sending too much; try again later";
static const char CHALLENGED[] = "the HELLO has another connection's challenge";

// Whether one more key may come from the network of this connection. Not asked for members with a seat.
static bool may_come(struct broker *self, const struct delivery *in)
{
    struct sockaddr_storage from = { 0 };
    socklen_t bytes = sizeof from;
    return getpeername(in->fd, (struct sockaddr *)&from, &bytes) != 0 ||
           blocks_admit(&self->blocks, (struct sockaddr *)&from, in->now_ms);
}

// The HELLO names both CURVE keys of its connection. So a broker cannot use the HELLO of an actor at another
// broker, nor can an attacker in between that has our CURVE secret.
static bool is_for(const struct broker *self, const struct delivery *in,
                   const struct wire_hello *hello)
{
    // mutant: hello: one for another connection is welcome
    const bool is_here = key_equal(&hello->connection, &in->user);
    // mutant: hello: one for another broker is welcome
    return is_here && key_equal(&hello->server, &self->server);
}

// Each connection has a challenge of its own. So a copied HELLO is worthless, even to a peer that has the
// actor's CURVE secret, for example from a core dump.
static bool is_answer(struct broker *self, const struct delivery *in,
                      const struct wire_hello *hello)
{
    uint8_t challenge[CHALLENGE_BYTES];
    broker_challenge(self, in, challenge);
    // mutant: hello: a copy is welcome on another connection of its key
    return memcmp(hello->challenge, challenge, CHALLENGE_BYTES) == 0;
}

// A key that is on no list is refused at its first HELLO, before it is challenged. Its network is not counted for
// that (may_come), so that it uses up nothing of its neighbours' rate. The signature costs most, and comes after these.
static const char *judge_hello(struct broker *self, const struct delivery *in,
                               const struct wire_head *head, const struct wire_hello *hello,
                               struct key *ret_key)
{
    const char *reason;
    *ret_key = head->sender;
    const bool has_seat = broker_has_seat(self, ret_key, hello->role);
    if (post_office_knows(self->office, &in->sender, ret_key, &in->user, hello))
        return post_office_hello(self->office, &in->sender, ret_key, &in->user, hello, has_seat,
                                 in->now_ms);
    if (!is_for(self, in, hello)) return "the HELLO is not for this connection";
    reason = admission_refuses(self->admission, ret_key);
    if (reason) return reason;
    if (!is_answer(self, in, hello)) return CHALLENGED;
    if (penalties_has(&self->penalties, ret_key, in->now_ms)) return TOO_MUCH;
    if (!has_seat && !may_come(self, in)) return TOO_MANY;
    if (!signed_frame_verify(in->frame, in->count, head)) return "the signature does not verify";
    reason =
        admission_hello(self->admission, ret_key, hello->role, head->run, hello->invitation.data,
                        hello->invitation.count, clock_unix_ms() / 1000);
    return reason ? reason
                  : post_office_hello(self->office, &in->sender, ret_key, &in->user, hello,
                                      has_seat, in->now_ms);
}

// A key may take other roles and labels as often as it likes, and each line costs the disk.
static void log_hello(struct broker *self, const char *name, uint64_t now_ms)
{
    enum { LINES_A_SECOND = 50 };
    if (now_ms - self->hellos_ms >= 1000) {
        self->hellos_ms = now_ms;
        self->hellos = 0;
    }
    if (self->hellos < LINES_A_SECOND)
        log_line(LOG_INFO, "actor.hello name=%s actors=%u", name, self->office->count);
    else if (self->hellos == LINES_A_SECOND)
        log_line(LOG_WARNING, "actor.hello more than %d in a second; the rest is not written",
                 LINES_A_SECOND);
    self->hellos++;
}

static void log_pin(const struct key *key)
{
    char hex[KEY_HEX];
    log_line(LOG_INFO,
             "gate.owner key=%s is the coordinator until this broker ends; --owner would say so "
             "for good",
             key_to_hex(key, hex));
}

static void challenge(struct broker *self, const struct delivery *in)
{
    struct wire_challenge challenge;
    broker_challenge(self, in, challenge.bytes);
    letter_answer(self, &in->sender, FRAME_CHALLENGE, &challenge);
}

// post_office.def says what the kind in the UNDELIVERABLE means.
static void refuse_hello(struct broker *self, const struct delivery *in, const char *reason)
{
    const bool later = reason == POST_OFFICE_FULL || reason == POST_OFFICE_HELD ||
                       reason == POST_OFFICE_SHARED || reason == ADMISSION_LATER ||
                       reason == ADMISSION_PINNED || reason == TOO_MANY || reason == TOO_MUCH;
    self->refused++;
    letter_refuse(self, in, "broker",
                  reason == ADMISSION_UNLISTED ? FRAME_WELCOME
                  : later                      ? FRAME_NONE
                                               : FRAME_HELLO,
                  reason);
}

static void hear_hello(struct broker *self, const struct delivery *in)
{
    struct wire_arena arena = { .bytes = self->arena_bytes, .max = sizeof self->arena_bytes };
    struct wire_head head;
    struct wire_refusal refusal;
    struct key key;
    const void *body;
    if (!wire_unpack(in->frame, in->count, WIRE_MAIL, &arena, &head, &body, &refusal)) {
        char text[WIRE_REFUSAL_TEXT_MAX];
        wire_refusal_text(&refusal, text, sizeof text);
        refuse_hello(self, in, text);
        return;
    }
    const struct wire_hello *hello = body;
    const struct peer *before = post_office_named(self->office, hello->name);
    bool renewed = before && strcmp(before->name, hello->name) == 0,
         reborn = !before || before->instance != hello->instance;
    failpoint("broker_hello");
    const char *reason = judge_hello(self, in, &head, hello, &key);
    if (reason) {
        if (reason == CHALLENGED) challenge(self, in);
        else refuse_hello(self, in, reason);
        return;
    }
    broker_welcomed(self, in, &key);
    if (!renewed) log_hello(self, hello->name, in->now_ms);
    if (hello->role == ACTOR_COORDINATOR && admission_pin(self->admission, &key)) log_pin(&key);
    if (hello->role == ACTOR_COORDINATOR && reborn) broker_doubt_bulletins(self);
    struct wire_welcome welcome = { .instance = self->instance };
    memcpy(welcome.name, hello->name, sizeof welcome.name);
    letter_answer(self, &in->sender, FRAME_WELCOME, &welcome);
    failpoint("broker_welcomed");
}

static void hear_recall(struct broker *self, const struct delivery *in)
{
    struct wire_arena arena = { .bytes = self->arena_bytes, .max = sizeof self->arena_bytes };
    struct wire_head head;
    struct wire_refusal refusal;
    const void *body;
    if (wire_unpack(in->frame, in->count, WIRE_MAIL, &arena, &head, &body, &refusal))
        broker_recall(self, &in->sender, body);
}

// The answer to a RECALL that is addressed to an actor (last_heard.h). A coordinator that was
// silent for so long that it is forgotten was last heard when its newest BEAT came.
static void tell_last_heard(struct broker *self, const struct delivery *in,
                            const struct peer *actor, const struct wire_head *head)
{
    char text[64];
    struct last_heard heard = { .ms_ago = NEVER_HEARD };
    uint64_t heard_ms = actor ? actor->heard_ms : 0;
    if (!actor && strcmp(in->to, "coordinator") == 0) heard_ms = broker_beat_ms(self, head->run);
    if (heard_ms) heard.ms_ago = in->now_ms > heard_ms ? in->now_ms - heard_ms : 0;
    heard.connected = actor && broker_is_connected(self, actor);
    last_heard_print(&heard, text, sizeof text);
    letter_refuse(self, in, in->to, head->kind, text);
}

static void deliver(struct broker *self, const struct delivery *in, const struct peer *from,
                    const struct wire_head *head)
{
    const struct peer *receiver = post_office_named(self->office, in->to);
    if (head->kind == FRAME_RECALL) {
        tell_last_heard(self, in, receiver, head);
        return;
    }
    if (!receiver) {
        letter_refuse(self, in, in->to, head->kind, "no actor has this name");
        return;
    }
    const char *forbidden = post_office_forbids_mail(from->role, head->kind, receiver->role);
    if (forbidden) {
        letter_refuse(self, in, in->to, head->kind, forbidden);
        return;
    }
    failpoint("broker_pass");
    if (letter_send(self, &receiver->route, from->name, in->frame, in->count)) {
        failpoint("broker_passed");
        self->passed++;
        return;
    }
    int error = errno;
    letter_refuse(self, in, in->to, head->kind,
                  error == EHOSTUNREACH ? "its connection is gone" : "its queue is full");
    struct route gone = receiver->route;
    if (error == EHOSTUNREACH) post_office_forget(self->office, &gone);
}

static void publish(struct broker *self, const struct delivery *in, const struct peer *from,
                    const struct wire_head *head)
{
    const char *forbidden = post_office_forbids_news(from->role, head->kind);
    // News goes to everybody: from one that never joined, it would cost all of them
    if (!forbidden && !broker_takes_part(self, from))
        forbidden = "only members of the run publish; JOIN it first";
    if (forbidden) letter_refuse(self, in, "news", head->kind, forbidden);
    else broker_publish(self, from, head, in->frame, in->count);
}

static void pass_on(struct broker *self, const struct delivery *in, const struct peer *from)
{
    struct wire_head head;
    struct wire_refusal refusal;
    bool is_news = strcmp(in->to, "news") == 0, is_ours = strcmp(in->to, "broker") == 0;
    if (!wire_unpack_head(in->frame, in->count, is_news ? WIRE_NEWS : WIRE_MAIL, &head, &refusal)) {
        char text[WIRE_REFUSAL_TEXT_MAX];
        wire_refusal_text(&refusal, text, sizeof text);
        letter_refuse(self, in, in->to, 0, text);
        return;
    }
    if (is_ours && head.kind == FRAME_HELLO) {
        hear_hello(self, in);
        return;
    }
    if (!from) {
        letter_refuse(self, in, "", head.kind, "say HELLO first");
        return;
    }
    if (!key_equal(&from->key, &head.sender))
        letter_refuse(self, in, in->to, head.kind, "the sender is not the key of this connection");
    else if (is_ours && head.kind == FRAME_RECALL) hear_recall(self, in);
    else if (is_news) publish(self, in, from, &head);
    else deliver(self, in, from, &head);
}

// ZeroMQ may give a freed routing id to a new connection, and a peer may choose its own. If the
// connection's key is not the registered one, or nobody was welcomed on it, the registration belongs
// to the old connection and is dropped.
static const struct peer *find_sender(struct broker *self, const struct delivery *in)
{
    const struct peer *from = post_office_sender(self->office, &in->sender, in->now_ms);
    // mutant: mail: the routing id and the CURVE key of a peer are enough
    const bool is_welcomed = from && broker_has_welcomed(self, in);
    if (!from || (is_welcomed && key_equal(&from->connection, &in->user))) return from;
    post_office_forget(self->office, &in->sender);
    return NULL;
}

bool broker_take_mail(struct broker *self, uint64_t now_ms)
{
    struct delivery in;
    const enum letter_result result = letter_take(self->mail, now_ms, &in);
    if (result == LETTER_TAKEN) {
        const struct peer *from = find_sender(self, &in);
        if (broker_may_say(self, &in, from) && in.is_sound) pass_on(self, &in, from);
    }
    letter_end(&in);
    return result != LETTER_NONE;
}
