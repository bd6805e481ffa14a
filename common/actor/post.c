// The post draws a CURVE pair, connects the mail and says HELLO once a second. The HELLO names the public key of
// the pair, and the challenge for this connection, which the broker sends in answer to the first HELLO. On the
// broker's WELCOME the post connects the news and asks for the last values of the run (RECALL). When the broker
// is silent for too long, it opens new sockets, with a new pair. A frame must pass in this order: two
// parts; the body decodes; the signature verifies, and that of an enclosed frame, too. What concerns
// the post itself ends here; the rest goes to the core.

#include "common/actor/post.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/net/net.h"
#include "common/net/signed_frame.h"
#include "common/net/zap.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <zmq.h>

enum {
    HELLO_MS = 1000,
    HELLO_RETRY_MS = 50,
    QUEUE_MAX = 10000,
    LINGER_MS = 500,
    NAME_AND_FRAME = 2,
    FAILURES_MAX = 3
};

struct post {
    struct post_options options;
    char run[WIRE_RUN_MAX + 1];
    struct ticket broker;
    struct curve_key broker_key;
    struct curve_pair own;                                        // Of these sockets
    uint8_t challenge[sizeof((struct wire_challenge *)0)->bytes]; // Of the mail's connection
    void *context, *mail, *news;
    void *events, *news_events; // The results of their handshakes
    uint64_t seq, hello_ms, heard_ms, broker_instance;
    uint32_t failures; // Failed handshakes in a row
    char trouble[256];
    bool refused;        // The trouble is that the broker does not let our key in
    bool news_is_deaf;   // The broker has refused the news' connection; it does not try again
    bool has_stirred[2]; // News, mail: used since it was last found empty
    struct post_frame *in_hand; // Of post_take: letters point into it
    uint8_t *buffer;            // For the frame being sent
    struct wire_arena scratch;
};

// True for a host that libzmq accepts: a name or an address, also [::1%eth0]. Other text may make
// libzmq end the process.
static bool is_host(const char *text, size_t count)
{
    static const char inside[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-:%[]_";
    return count >= 1 && count <= 64 && strspn(text, inside) >= count && !memchr(".-%]_", *text, 5);
}

bool post_endpoint(const char *broker, unsigned offset, char *ret_endpoint, size_t max)
{
    const char *address = strncmp(broker, "tcp://", 6) == 0 ? broker + 6 : broker;
    const char *colon = strrchr(address, ':');
    if (!colon || !is_host(address, (size_t)(colon - address))) return false;
    const size_t digits = strspn(colon + 1, "0123456789");
    if (digits < 1 || digits > 5 || colon[1 + digits]) return false;
    const unsigned long port = strtoul(colon + 1, NULL, 10);
    if (port == 0 || port + offset > 65535) return false;
    return snprintf(ret_endpoint, max, "tcp://%.*s:%lu", (int)(colon - address), address,
                    port + offset) < (int)max;
}

// Frames that are sent just before the end, such as LEAVE, get LINGER_MS to leave. Mail is not
// queued while no broker is connected. NULL: no descriptor is left.
static void *new_socket(struct post *self, int type, const struct curve_pair *own)
{
    void *socket = net_socket_new(self->context, type, WIRE_FRAME_MAX, QUEUE_MAX);
    if (!socket) return NULL;
    net_set(socket, ZMQ_LINGER, LINGER_MS);
    if (type == ZMQ_DEALER) net_set(socket, ZMQ_IMMEDIATE, 1);
    zap_secure_client(socket, own, &self->broker_key);
    return socket;
}

static void connect_socket(struct post *self, void *socket, unsigned offset)
{
    char endpoint[128];
    ensure(post_endpoint(self->broker.address, offset, endpoint, sizeof endpoint));
    ensure(zmq_connect(socket, endpoint) == 0);
}

// ZeroMQ has no subscription to all but some topics, so each wanted kind is named.
static void subscribe(struct post *self)
{
    char topic[96];
    if (!self->options.follows_news) return;
    for (uint16_t kind = wire_kind_next(0); kind; kind = wire_kind_next(kind)) {
        bool wanted = wire_kind_flags(kind) & WIRE_NEWS;
        for (const char *const *name = self->options.deaf_to; name && *name; name++)
            if (strcmp(*name, wire_kind_name(kind)) == 0) wanted = false;
        int count = snprintf(topic, sizeof topic, "%s.%s", self->run, wire_kind_name(kind));
        if (wanted) ensure(zmq_setsockopt(self->news, ZMQ_SUBSCRIBE, topic, (size_t)count) == 0);
    }
}

// A socket is closed before the socket of its events, so that the events have a reader as long as they are written.
static void close_news(struct post *self)
{
    net_socket_close(&self->news);
    net_socket_close(&self->news_events);
}

static void close_sockets(struct post *self)
{
    net_socket_close(&self->mail);
    net_socket_close(&self->events);
    close_news(self);
    explicit_bzero(&self->own, sizeof self->own);
}

// False: no descriptor is left.
static bool new_news(struct post *self, const struct curve_pair *own, struct post *ret_fresh)
{
    ret_fresh->news = new_socket(self, ZMQ_SUB, own);
    if (ret_fresh->news)
        ret_fresh->news_events =
            net_watch(self->context, ret_fresh->news, ZMQ_EVENT_HANDSHAKE_FAILED_AUTH);
    if (ret_fresh->news_events) return true;
    close_news(ret_fresh);
    return false;
}

// A refused socket never connects again (net.h), so a new one takes its place.
static bool reopen_news(struct post *self)
{
    struct post fresh = { .news = NULL };
    if (!new_news(self, &self->own, &fresh)) return false;
    close_news(self);
    self->news = fresh.news;
    self->news_events = fresh.news_events;
    self->news_is_deaf = false;
    subscribe(self);
    return true;
}

// A broker with another key than the ticket's closes every connection without an answer.
static bool has_another_key(const struct post *self) { return self->failures >= FAILURES_MAX; }

// Opens new sockets in place of the old ones. The news socket connects only after the first
// WELCOME: a broker that does not know us yet would refuse it, and a refused socket does not
// reconnect. False: no descriptor is left, and the old sockets stay.
static bool open_sockets(struct post *self)
{
    failpoint("connect");
    struct post fresh = { .news = NULL };
    curve_draw(&fresh.own);
    if (new_news(self, &fresh.own, &fresh)) fresh.mail = new_socket(self, ZMQ_DEALER, &fresh.own);
    if (fresh.mail)
        fresh.events = net_watch(self->context, fresh.mail,
                                 ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
                                     ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                                     ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL);
    if (!fresh.events) {
        close_sockets(&fresh);
        return false;
    }
    close_sockets(self);
    self->own = fresh.own;
    explicit_bzero(&fresh.own, sizeof fresh.own);
    self->news = fresh.news;
    self->news_events = fresh.news_events;
    self->news_is_deaf = false;
    self->mail = fresh.mail;
    self->events = fresh.events;
    self->has_stirred[false] = self->has_stirred[true] = true;
    subscribe(self);
    connect_socket(self, self->mail, 0);
    self->hello_ms = 0;
    self->heard_ms = clock_ms();
    self->broker_instance = 0;
    if (!has_another_key(self)) self->trouble[0] = 0; // Else true until the new sockets know better
    self->failures = 0;
    self->refused = false;
    return true;
}

static const char *no_descriptor(char text[256])
{
    struct rlimit limit;
    ensure(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    snprintf(text, 256,
             "no descriptor is left for a socket to the broker, %" PRIu64 " are allowed: raise "
             "LimitNOFILE of the unit, or ulimit -n",
             limit.rlim_cur);
    return text;
}

int post_new(const struct post_options *options, struct why *why, struct post **ret_post)
{
    char endpoint[128], text[256];
    if (!post_endpoint(options->broker->address, POST_PORTS - 1, endpoint, sizeof endpoint))
        return why_set(why, FAULT_USAGE,
                       "broker address \"%s\": expected HOST:PORT with PORT 1..%d (mail there, "
                       "news on PORT+1)",
                       options->broker->address, 65536 - POST_PORTS);
    struct post *self = calloc(1, sizeof *self);
    ensure(self);
    self->options = *options;
    snprintf(self->run, sizeof self->run, "%s", options->run);
    self->broker = *options->broker;
    memcpy(self->broker_key.bytes, self->broker.server.bytes, CURVE_BYTES);
    self->buffer = malloc(WIRE_FRAME_MAX);
    self->scratch = (struct wire_arena){ .bytes = malloc(WIRE_FRAME_MAX), .max = WIRE_FRAME_MAX };
    self->context = net_context_new(1);
    ensure(self->buffer && self->scratch.bytes);
    if (!self->context || !open_sockets(self)) {
        post_destroy(&self);
        return why_set(why, FAULT_BUSY, "%s", no_descriptor(text));
    }
    *ret_post = self;
    return 0;
}

void post_destroy(struct post **self_p)
{
    struct post *self = *self_p;
    if (!self) return;
    close_sockets(self);
    post_release(&self->in_hand);
    net_context_destroy(&self->context);
    free(self->buffer);
    free(self->scratch.bytes);
    free(self);
    *self_p = NULL;
}

const char *post_trouble(const struct post *self)
{
    return self->trouble[0] ? self->trouble : NULL;
}
bool post_is_refused(const struct post *self) { return self->refused; }
void *post_mail_socket(struct post *self) { return self->mail; }
void *post_news_socket(struct post *self) { return self->news; }

int post_descriptor(const struct post *self, bool mail)
{
    int fd = -1;
    size_t size = sizeof fd;
    ensure(zmq_getsockopt(mail ? self->mail : self->news, ZMQ_FD, &fd, &size) == 0);
    return fd;
}

bool post_waits(struct post *self, bool mail)
{
    int events = 0;
    size_t size = sizeof events;
    if (!self->has_stirred[mail]) return false;
    ensure(zmq_getsockopt(mail ? self->mail : self->news, ZMQ_EVENTS, &events, &size) == 0);
    return self->has_stirred[mail] = events & ZMQ_POLLIN;
}

bool post_is_known(const struct post *self) { return self->broker_instance != 0; }
uint64_t post_due_ms(const struct post *self) { return self->hello_ms; }

// ---- sending ------------------------------------------------------------------------------------

static size_t seal(struct post *self, uint16_t kind, const void *body)
{
    struct wire_head head = { .kind = kind,
                              .incarnation = self->options.incarnation,
                              .seq = ++self->seq };
    memcpy(head.run, self->run, sizeof head.run);
    head.sender = *identity_key(self->options.identity);
    size_t count = wire_pack(&head, body, self->buffer, WIRE_FRAME_MAX);
    ensure(count > 0);
    if (!(wire_kind_flags(kind) & WIRE_SIGNED)) return count;
    count = signed_frame_sign(self->options.identity, self->buffer, count, WIRE_FRAME_MAX);
    ensure(count > 0);
    return count;
}

bool post_mail(struct post *self, const char *to, uint16_t kind, const void *body)
{
    size_t count = seal(self, kind, body);
    self->has_stirred[true] = true;
    if (zmq_send(self->mail, to, strlen(to), ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) return false;
    return zmq_send(self->mail, self->buffer, count, ZMQ_DONTWAIT) >= 0;
}

void post_publish(struct post *self, uint16_t kind, const void *body)
{
    post_mail(self, "news", kind, body); // News may be lost
}

// ---- failed handshakes --------------------------------------------------------------------------

// That an old ticket of a guest leads to another run is said by the shell, as what it waits for.
static void be_in_trouble(struct post *self, const char *text)
{
    if (strcmp(self->trouble, text) == 0) return;
    snprintf(self->trouble, sizeof self->trouble, "%s", text);
    if (!self->options.quiet && !(self->options.is_guest && has_another_key(self)))
        log_line(LOG_ERR, "broker.refused address=%s reason=\"%s\"; trying again",
                 self->broker.address, text);
}

static void be_unlisted(struct post *self)
{
    char text[256], hex[KEY_HEX];
    self->refused = true;
    key_to_hex(identity_key(self->options.identity), hex);
    snprintf(text, sizeof text,
             "the broker does not admit our key %s: its owner must list the key "
             "or invite us",
             hex);
    be_in_trouble(self, text);
}

static void hear_event(struct post *self, uint16_t event)
{
    char text[256], hex[KEY_HEX];
    if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
        self->failures = 0;
        self->trouble[0] = 0;
        self->refused = false;
    } else if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH) {
        be_in_trouble(self, "the broker has cut our connection off for sending too much");
    } else if (++self->failures >= FAILURES_MAX && self->options.is_guest) {
        be_in_trouble(self, "this ticket is for another run than the one that is there now: ask "
                            "its owner for the new one");
    } else if (has_another_key(self)) {
        key_to_hex(&self->broker.server, hex);
        snprintf(text, sizeof text,
                 "the server there does not hold the key %s: is the ticket "
                 "(or --server-key) that of this broker, and is it the broker's port?",
                 hex);
        be_in_trouble(self, text);
    }
}

static void hear_events(struct post *self)
{
    struct net_event event;
    while (net_hear(self->events, &event)) hear_event(self, event.kind);
    while (net_hear(self->news_events, &event)) self->news_is_deaf = true;
}

static bool say_hello(struct post *self)
{
    struct wire_hello hello = { .role = self->options.role, .instance = self->options.instance };
    snprintf(hello.name, sizeof hello.name, "%s", self->options.name);
    memcpy(hello.connection.bytes, self->own.public.bytes, KEY_BYTES);
    hello.server = self->broker.server;
    memcpy(hello.challenge, self->challenge, sizeof hello.challenge);
    if (self->broker.has_invitation)
        hello.invitation = (struct wire_bytes){ self->broker.invitation, INVITATION_BYTES };
    return post_mail(self, "broker", FRAME_HELLO, &hello);
}

void post_tick(struct post *self)
{
    char text[256];
    uint64_t now_ms = clock_ms();
    if (now_ms < self->hello_ms) return;
    hear_events(self);
    self->hello_ms = now_ms + HELLO_MS;
    if (now_ms - self->heard_ms > POST_SILENCE_MS) {
        if (!self->options.quiet && !has_another_key(self))
            log_line(LOG_WARNING, "broker.silent address=%s for_ms=%" PRIu64 "; connecting again",
                     self->broker.address, (uint64_t)(now_ms - self->heard_ms));
        const bool is_open = open_sockets(self);
        self->hello_ms = now_ms + HELLO_MS;
        if (!is_open) {
            be_in_trouble(self, no_descriptor(text));
            return;
        }
    }
    failpoint("hello");
    if (!say_hello(self)) self->hello_ms = now_ms + HELLO_RETRY_MS;
}

// ---- receiving ----------------------------------------------------------------------------------

// Reads one message whole and returns its number of parts; 0: none waits. `first` gets the first
// part, cut to fit; `part` keeps the last one.
static int receive(void *socket, char *first, size_t first_max, zmq_msg_t *part)
{
    zmq_msg_t head;
    zmq_msg_init(&head);
    if (zmq_msg_recv(&head, socket, ZMQ_DONTWAIT) < 0) {
        zmq_msg_close(&head);
        return 0;
    }
    int parts = 1;
    size_t count = zmq_msg_size(&head) < first_max - 1 ? zmq_msg_size(&head) : first_max - 1;
    memcpy(first, zmq_msg_data(&head), count);
    first[count] = 0;
    bool more = zmq_msg_more(&head);
    zmq_msg_close(&head);
    for (; more; parts++) {
        zmq_msg_close(part);
        zmq_msg_init(part);
        if (zmq_msg_recv(part, socket, 0) < 0) break;
        more = zmq_msg_more(part);
    }
    return parts;
}

// True if it is the first WELCOME of this broker process: the core may have to send again what the
// previous process lost.
static bool hear_welcome(struct post *self, const struct wire_welcome *welcome)
{
    char text[256];
    const bool is_new = welcome->instance != self->broker_instance;
    if (!is_new && !self->news_is_deaf) return false;
    // The previous process may have refused the old socket, too
    if (self->broker_instance && !reopen_news(self)) { // Retried at the next WELCOME, in a second
        be_in_trouble(self, no_descriptor(text));
        return false;
    }
    if (self->options.follows_news) connect_socket(self, self->news, 1);
    self->has_stirred[false] = true;
    if (!is_new) return false;
    self->trouble[0] = 0;
    self->refused = false;
    if (!self->options.quiet)
        log_line(LOG_INFO, "broker.welcome address=%s name=%s", self->broker.address,
                 self->options.name);
    self->broker_instance = welcome->instance;
    failpoint("welcome");
    if (!self->options.follows_news) return true;
    struct wire_recall recall;
    memcpy(recall.run, self->run, sizeof recall.run);
    post_mail(self, "broker", FRAME_RECALL, &recall);
    return true;
}

// The broker has one challenge for each connection. The same one again answers a HELLO that was on its way when the
// first came: it is ignored, or HELLO and CHALLENGE would answer each other for ever.
static void hear_challenge(struct post *self, const struct wire_challenge *challenge)
{
    if (memcmp(self->challenge, challenge->bytes, sizeof self->challenge) == 0) return;
    memcpy(self->challenge, challenge->bytes, sizeof self->challenge);
    say_hello(self);
}

// What a frame of the broker itself is to the caller. An UNDELIVERABLE without a name: the broker
// does not know us any more, so we say HELLO at once. post_office.def says what its kind means if our HELLO was
// refused; if that is for good, the shell ends the process.
static enum post_result hear_broker(struct post *self, uint16_t kind, const void *body)
{
    const struct wire_undeliverable *no = body;
    if (kind == FRAME_WELCOME) return hear_welcome(self, body) ? POST_LETTER : POST_OWN;
    if (kind == FRAME_CHALLENGE) hear_challenge(self, body);
    if (kind != FRAME_UNDELIVERABLE) return POST_OWN;
    if (!no->to[0]) self->hello_ms = 0;
    if (no->kind == FRAME_NONE && strcmp(no->to, "broker") == 0) be_in_trouble(self, no->reason);
    if (no->kind == FRAME_WELCOME) be_unlisted(self);
    if (no->kind != FRAME_HELLO) return no->to[0] ? POST_RETURNED : POST_OWN;
    snprintf(self->trouble, sizeof self->trouble, "the broker refuses us: %s", no->reason);
    self->refused = true;
    return POST_LETTER;
}

static enum post_result bad(struct letter *letter, const char *reason)
{
    snprintf(letter->reason, sizeof letter->reason, "%s", reason);
    return POST_BAD;
}

// True if the enclosed frame is signed by the sender that it names.
static bool is_true_copy(const struct wire_bytes *frame)
{
    struct wire_head head;
    struct wire_refusal refusal;
    return wire_unpack_head(frame->data, frame->count, WIRE_MAIL, &head, &refusal) &&
           wire_kind_flags(head.kind) & WIRE_SIGNED &&
           signed_frame_verify(frame->data, frame->count, &head);
}

// What only a coordinator says is by the owner that the ticket names, whatever the broker lets through.
static bool is_by_owner(const struct post *self, const struct letter *letter,
                        const struct wire_head *head)
{
    const bool is_coordinators = strcmp(letter->from, "coordinator") == 0 ||
                                 wire_kind_flags(head->kind) & (WIRE_STATE | WIRE_ORDER);
    return !is_coordinators || key_is_none(&self->broker.owner) ||
           key_equal(&letter->msg.sender, &self->broker.owner);
}

struct post_frame *post_receive(struct post *self, bool mail)
{
    char first[128];
    struct wire_head head;
    struct wire_refusal refusal;
    struct post_frame *frame = calloc(1, sizeof *frame);
    ensure(frame);
    zmq_msg_init(&frame->part);
    frame->mail = mail;
    frame->parts = receive(mail ? self->mail : self->news, first, sizeof first, &frame->part);
    self->has_stirred[mail] = frame->parts > 0;
    if (frame->parts == 0) {
        post_release(&frame);
        return NULL;
    }
    if (mail) snprintf(frame->from, sizeof frame->from, "%.*s", ACTOR_NAME_MAX, first);
    if (mail) self->heard_ms = clock_ms();
    if (wire_unpack_head(zmq_msg_data(&frame->part), zmq_msg_size(&frame->part),
                         WIRE_MAIL | WIRE_NEWS, &head, &refusal))
        frame->sender = head.sender, frame->kind = head.kind;
    return frame;
}

void post_release(struct post_frame **frame_p)
{
    if (!*frame_p) return;
    zmq_msg_close(&(*frame_p)->part);
    free(*frame_p);
    *frame_p = NULL;
}

enum post_result post_open(struct post *self, const struct post_frame *frame,
                           struct wire_arena *arena, struct letter *ret_letter)
{
    struct wire_head head;
    struct wire_refusal refusal;
    zmq_msg_t *part = (zmq_msg_t *)(uintptr_t)&frame->part; // ZeroMQ has no const
    *ret_letter = (struct letter){ .from = "" };
    memcpy(ret_letter->from, frame->from, sizeof ret_letter->from);
    if (frame->parts != NAME_AND_FRAME) return bad(ret_letter, "not two parts; dropped");
    const uint8_t *bytes = zmq_msg_data(part);
    size_t count = zmq_msg_size(part);
    const void *body;
    arena->used = 0;
    // The answers to a RECALL come by mail with an empty sender: they are news.
    unsigned allowed = !frame->mail || !ret_letter->from[0] ? WIRE_NEWS : WIRE_MAIL;
    if (!wire_unpack(bytes, count, allowed, arena, &head, &body, &refusal)) {
        wire_refusal_text(&refusal, ret_letter->reason, sizeof ret_letter->reason);
        return POST_BAD;
    }
    if (self->options.is_hint && self->options.is_hint(self->options.is_hint_arg, head.kind)) {
        ret_letter->msg.sender = head.sender;
    } else if (wire_kind_flags(head.kind) & WIRE_SIGNED) {
        if (!signed_frame_verify(bytes, count, &head))
            return bad(ret_letter, "the signature does not verify; dropped");
        ret_letter->msg.sender = head.sender;
        ret_letter->msg.frame = bytes;
        ret_letter->msg.frame_bytes = (uint32_t)count;
    }
    if (wire_kind_flags(head.kind) & WIRE_COPY && !is_true_copy(body))
        return bad(ret_letter, "the enclosed frame is not signed by its sender; dropped");
    if (!is_by_owner(self, ret_letter, &head))
        return bad(ret_letter,
                   "by another coordinator than the one that the ticket names; dropped");
    const bool is_of_broker = strcmp(ret_letter->from, "broker") == 0;
    const enum post_result result = is_of_broker ? hear_broker(self, head.kind, body) : POST_LETTER;
    if (result == POST_OWN) return POST_OWN;
    ret_letter->msg.kind = head.kind;
    memcpy(ret_letter->run, head.run, sizeof ret_letter->run);
    ret_letter->msg.run = ret_letter->run;
    ret_letter->msg.from = ret_letter->from;
    ret_letter->msg.incarnation = head.incarnation;
    ret_letter->msg.seq = head.seq;
    ret_letter->msg.body = body;
    return result;
}

enum post_result post_take(struct post *self, bool mail, struct wire_arena *arena,
                           struct letter *ret_letter)
{
    post_release(&self->in_hand);
    self->in_hand = post_receive(self, mail);
    return self->in_hand ? post_open(self, self->in_hand, arena, ret_letter) : POST_NOTHING;
}
