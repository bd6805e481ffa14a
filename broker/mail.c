#include "broker/broker.h"
#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/net/zap.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

// ---- answering ----------------------------------------------------------------------------------

bool broker_send(struct broker *self, const struct route *to, const char *from, const void *frame,
                 size_t count)
{
    if (!broker_may_send(self, to->fd)) {
        errno = EAGAIN;
        return false;
    }
    if (zmq_send(self->mail, to->bytes, to->count, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) return false;
    zmq_send(self->mail, from, strlen(from), ZMQ_SNDMORE | ZMQ_DONTWAIT);
    if (zmq_send(self->mail, frame, count, ZMQ_DONTWAIT) < 0) return false;
    backlog_sent(self->backlog, to->fd, strlen(from));
    backlog_sent(self->backlog, to->fd, count);
    return true;
}

static void answer(struct broker *self, const struct route *to, uint16_t kind, const void *body)
{
    struct wire_head head = { .kind = kind, .incarnation = self->instance, .seq = ++self->seq };
    size_t count = wire_pack(&head, body, self->buffer, sizeof self->buffer);
    if (count > 0)
        broker_send(self, to, "broker", self->buffer, count); // 0: it would quote what is no text
}

static void undeliverable(struct broker *self, const struct route *sender, const char *to,
                          uint16_t kind, const char *reason)
{
    struct wire_undeliverable no = { .kind = kind };
    snprintf(no.to, sizeof no.to, "%.47s", to);
    snprintf(no.reason, sizeof no.reason, "%s", reason);
    self->undeliverable++;
    answer(self, sender, FRAME_UNDELIVERABLE, &no);
}

// ---- mail ---------------------------------------------------------------------------------------

bool broker_is_signed_well(const uint8_t *frame, size_t count, const struct wire_head *head)
{
    struct signature signature;
    const uint8_t *bytes = wire_signature(frame, count);
    if (!bytes) return false;
    memcpy(signature.bytes, bytes, sizeof signature.bytes);
    return signature_verify(&head->sender, frame, wire_signed_bytes(frame, count), &signature);
}

// The key that signs must be the one that the connection has proven: nobody speaks for another, and
// a HELLO that was heard on the way is worth nothing.
static const char *judge_hello(struct broker *self, const struct delivery *in,
                               const struct wire_head *head, const struct wire_hello *hello,
                               struct key *ret_key)
{
    struct curve_key curve;
    *ret_key = head->sender;
    if (post_office_knows(self->office, &in->sender, ret_key, &in->user, hello))
        return post_office_hello(self->office, &in->sender, ret_key, &in->user, hello, in->now_ms);
    if (!curve_of_key(ret_key, &curve) || memcmp(curve.bytes, in->user.bytes, CURVE_BYTES) != 0)
        return "the key is not the one of this connection";
    if (!broker_is_signed_well(in->frame, in->count, head)) return "the signature does not verify";
    const char *reason =
        admission_hello(self->admission, ret_key, hello->role, head->run, hello->invitation.data,
                        hello->invitation.count, clock_unix_ms() / 1000);
    return reason ? reason
                  : post_office_hello(self->office, &in->sender, ret_key, &in->user, hello,
                                      in->now_ms);
}

static void hear_hello(struct broker *self, const struct delivery *in)
{
    struct wire_arena arena = { .bytes = self->arena_bytes, .max = sizeof self->arena_bytes };
    struct wire_head head;
    struct wire_refusal refusal;
    struct key key;
    const void *body;
    if (!wire_unpack(in->frame, in->count, WIRE_MAIL, &arena, &head, &body, &refusal)) return;
    const struct wire_hello *hello = body;
    const struct peer *before = post_office_named(self->office, hello->name);
    bool renewed = before != NULL, reborn = !before || before->instance != hello->instance;
    failpoint("broker_hello");
    const char *reason = judge_hello(self, in, &head, hello, &key);
    if (reason) { // Of kind HELLO: for good, and the actor gives up
        bool later = reason == POST_OFFICE_FULL || reason == ADMISSION_LATER;
        undeliverable(self, &in->sender, "broker", later ? FRAME_NONE : FRAME_HELLO, reason);
        return;
    }
    if (!renewed)
        log_line(LOG_INFO, "actor.hello name=%s actors=%u", hello->name, self->office->count);
    if (hello->role == ACTOR_COORDINATOR && reborn) broker_doubt_bulletins(self);
    struct wire_welcome welcome = { .instance = self->instance };
    memcpy(welcome.name, hello->name, sizeof welcome.name);
    answer(self, &in->sender, FRAME_WELCOME, &welcome);
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

static void deliver(struct broker *self, const struct delivery *in, const struct peer *from,
                    const struct wire_head *head)
{
    const struct peer *receiver = post_office_named(self->office, in->to);
    if (!receiver) {
        undeliverable(self, &in->sender, in->to, head->kind, "nobody of that name");
        return;
    }
    const char *forbidden = post_office_forbids_mail(from->role, head->kind, receiver->role);
    if (forbidden) {
        undeliverable(self, &in->sender, in->to, head->kind, forbidden);
        return;
    }
    failpoint("broker_pass");
    if (broker_send(self, &receiver->route, from->name, in->frame, in->count)) {
        failpoint("broker_passed");
        self->passed++;
        return;
    }
    int error = errno;
    undeliverable(self, &in->sender, in->to, head->kind,
                  error == EHOSTUNREACH ? "its connection is gone" : "its queue is full");
    struct route gone = receiver->route;
    if (error == EHOSTUNREACH) post_office_forget(self->office, &gone);
}

static void publish(struct broker *self, const struct delivery *in, const struct peer *from,
                    const struct wire_head *head)
{
    const char *forbidden = post_office_forbids_news(from->role, head->kind);
    if (forbidden) undeliverable(self, &in->sender, "news", head->kind, forbidden);
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
        undeliverable(self, &in->sender, in->to, 0, text);
        return;
    }
    if (is_ours && head.kind == FRAME_HELLO) {
        hear_hello(self, in);
        return;
    }
    if (!from) {
        undeliverable(self, &in->sender, "", head.kind, "say HELLO first");
        return;
    }
    if (!key_equal(&from->key, &head.sender))
        undeliverable(self, &in->sender, in->to, head.kind, "the sender is not who is connected");
    else if (is_ours && head.kind == FRAME_RECALL) hear_recall(self, in);
    else if (is_news) publish(self, in, from, &head);
    else deliver(self, in, from, &head);
}

// Who was registered on this connection and is another now, by the word of the handshake, took over
// a routing id that was free again: the registration is not theirs.
static const struct peer *find_sender(struct broker *self, const struct delivery *in)
{
    const struct peer *from = post_office_sender(self->office, &in->sender, in->now_ms);
    if (!from || key_equal(&from->connection, &in->user)) return from;
    post_office_forget(self->office, &in->sender);
    return NULL;
}

static bool take_route(struct delivery *in, zmq_msg_t *part)
{
    if (zmq_msg_size(part) > ROUTE_MAX) return false;
    in->sender.count = (uint8_t)zmq_msg_size(part);
    memcpy(in->sender.bytes, zmq_msg_data(part), in->sender.count);
    return true;
}

static bool take_name(struct delivery *in, zmq_msg_t *part)
{
    size_t count = zmq_msg_size(part);
    if (count > ACTOR_NAME_MAX) return false;
    memcpy(in->to, zmq_msg_data(part), count);
    in->to[count] = 0;
    for (size_t i = 0; i < count; i++)
        if ((uint8_t)in->to[i] < 0x20) return false; // Quoted in answers
    return true;
}

// [routing id][to][frame]; anything else is thrown away whole.
bool broker_take_mail(struct broker *self, uint64_t now_ms)
{
    struct delivery in = { .fd = -1, .now_ms = now_ms };
    struct curve_key user;
    zmq_msg_t part;
    uint32_t parts = 0;
    uint64_t bytes = 0;
    bool fits = true, more = true;
    zmq_msg_init(&part);
    for (; more; parts++) {
        zmq_msg_close(&part);
        zmq_msg_init(&part);
        if (zmq_msg_recv(&part, self->mail, ZMQ_DONTWAIT) < 0) {
            zmq_msg_close(&part);
            return false;
        }
        more = zmq_msg_more(&part);
        if (parts > 0) bytes += zmq_msg_size(&part);
        if (parts == 0) fits = take_route(&in, &part);
        if (parts == 1) fits &= take_name(&in, &part);
    }
    bool proven = parts > 1 && zap_user(&part, &user);
    if (proven) {
        memcpy(in.user.bytes, user.bytes, CURVE_BYTES);
        in.fd = in.sender.fd = zmq_msg_get(&part, ZMQ_SRCFD);
        in.frame = zmq_msg_data(&part);
        in.count = zmq_msg_size(&part);
        const struct peer *from = find_sender(self, &in);
        if (broker_may_say(self, &in, from, parts - 1, bytes) && parts == 3 && fits)
            pass_on(self, &in, from);
    }
    zmq_msg_close(&part);
    return true;
}
