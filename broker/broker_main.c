// shoal-broker -- the post office as a process: mail, news, and the last value of each state topic.
//
//     ROUTER  port      mail in and out           [to][frame] from actors, [from][frame] to them
//     XPUB    port + 1  news out                  subscriptions come in
//     XSUB    port + 2  news in                   subscriptions go out
//
// Nothing is on disk: after a restart everybody says HELLO again within a second and sends again
// what was not acknowledged. State topics (RUN, ROUND, ...) are taken from the run's coordinator
// only.

#include "broker/post_office.h"
#include "common/actor/command.h"
#include "common/ensure.h"
#include "common/failpoint.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>
#include <zmq.h>

enum { TURN_MAX = 256, TOPICS_MAX = 64, ZERO_COPY_RECV = 10, HANDSHAKE_MS = 5000 };

struct bulletin {
    char topic[96];
    uint8_t *frame;
    size_t count;
    uint64_t incarnation, seq;          // Of the frame kept: an older one does not come after it
};

struct broker {
    struct command command;
    const char *bind, *port;
    void *context, *mail, *news_out, *news_in;
    int signals;
    struct post_office *office;
    uint64_t instance, seq, expire_ms, beat_ms;
    struct bulletin bulletins[TOPICS_MAX];
    uint32_t bulletins_count;
    uint8_t buffer[4096], arena_bytes[8192];
    uint64_t passed, undeliverable, published;
};

// ---- answering ----------------------------------------------------------------------------------

static bool send_parts(struct broker *self, const struct route *to, const char *from,
                       const void *frame, size_t count)
{
    if (zmq_send(self->mail, to->bytes, to->count, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) return false;
    zmq_send(self->mail, from, strlen(from), ZMQ_SNDMORE | ZMQ_DONTWAIT);
    return zmq_send(self->mail, frame, count, ZMQ_DONTWAIT) >= 0;
}

static void answer(struct broker *self, const struct route *to, uint16_t kind, const void *body)
{
    struct wire_head head = { .kind = kind, .incarnation = self->instance, .seq = ++self->seq };
    size_t count = wire_pack(&head, body, self->buffer, sizeof self->buffer);
    if (count > 0)
        send_parts(self, to, "broker", self->buffer, count); // 0: it would quote what is no text
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

static bool is_signed_well(const uint8_t *frame, size_t count, const struct wire_head *head)
{
    struct key key;
    struct signature signature;
    const uint8_t *bytes = wire_signature(frame, count);
    if (!bytes) return false;
    memcpy(key.bytes, head->sender, sizeof key.bytes);
    memcpy(signature.bytes, bytes, sizeof signature.bytes);
    return signature_verify(&key, frame, wire_signed_bytes(frame, count), &signature);
}

static void hear_hello(struct broker *self, const struct route *sender, const uint8_t *frame,
                       size_t count, uint64_t now_ms)
{
    struct wire_arena arena = { .bytes = self->arena_bytes, .max = sizeof self->arena_bytes };
    struct wire_head head;
    struct wire_refusal refusal;
    struct hash key;
    const void *body;
    if (!wire_unpack(frame, count, WIRE_MAIL, &arena, &head, &body, &refusal)) return;
    if (!is_signed_well(frame, count, &head)) {
        undeliverable(self, sender, "broker", FRAME_HELLO, "the signature does not verify");
        return;
    }
    memcpy(key.bytes, head.sender, sizeof key.bytes);
    const struct wire_hello *hello = body;
    const struct peer *before = post_office_named(self->office, hello->name);
    bool renewed = before != NULL, reborn = !before || before->instance != hello->instance;
    failpoint("broker_hello");
    const char *reason = post_office_hello(self->office, sender, &key, hello, now_ms);
    if (reason) { // Of kind HELLO: for good, and the actor gives up
        undeliverable(self, sender, "broker", reason == POST_OFFICE_FULL ? FRAME_NONE : FRAME_HELLO,
                      reason);
        return;
    }
    if (!renewed) shell_log(6, "actor.hello name=%s actors=%u", hello->name, self->office->count);
    if (hello->role == ACTOR_COORDINATOR && reborn)     // Its ledger may be a new one
        for (uint32_t i = 0; i < self->bulletins_count; i++)
            self->bulletins[i].incarnation = self->bulletins[i].seq = 0;
    struct wire_welcome welcome = { .instance = self->instance };
    memcpy(welcome.name, hello->name, sizeof welcome.name);
    answer(self, sender, FRAME_WELCOME, &welcome);
    failpoint("broker_welcomed");
}

static void hear_recall(struct broker *self, const struct route *sender, const uint8_t *frame,
                        size_t count)
{
    struct wire_arena arena = { .bytes = self->arena_bytes, .max = sizeof self->arena_bytes };
    struct wire_head head;
    struct wire_refusal refusal;
    const void *body;
    if (!wire_unpack(frame, count, WIRE_MAIL, &arena, &head, &body, &refusal)) return;
    const struct wire_recall *recall = body;
    failpoint("broker_recall");
    size_t length = strlen(recall->run);
    for (uint32_t i = 0; i < self->bulletins_count; i++) {
        const struct bulletin *kept = &self->bulletins[i];
        if (strncmp(kept->topic, recall->run, length) == 0 && kept->topic[length] == '.')
            send_parts(self, sender, "", kept->frame, kept->count);
    }
}

static void pass_on(struct broker *self, const struct route *sender, const char *to,
                    const uint8_t *frame, size_t count, uint64_t now_ms)
{
    struct wire_head head;
    struct wire_refusal refusal;
    if (!wire_unpack_head(frame, count, WIRE_MAIL, &head, &refusal)) {
        char text[WIRE_REFUSAL_TEXT_MAX];
        wire_refusal_text(&refusal, text, sizeof text);
        undeliverable(self, sender, to, 0, text);
        return;
    }
    if (strcmp(to, "broker") == 0 && head.kind == FRAME_HELLO) {
        hear_hello(self, sender, frame, count, now_ms);
        return;
    }
    const struct peer *from = post_office_sender(self->office, sender, now_ms);
    if (!from) {
        undeliverable(self, sender, "", head.kind, "say HELLO first");
        return;
    }
    if (strcmp(to, "broker") == 0 && head.kind == FRAME_RECALL) {
        hear_recall(self, sender, frame, count);
        return;
    }
    const struct peer *receiver = post_office_named(self->office, to);
    if (!receiver || !post_office_passes(head.kind)) {
        undeliverable(self, sender, to, head.kind,
                      receiver ? "not passed on" : "nobody of that name");
        return;
    }
    failpoint("broker_pass");
    if (send_parts(self, &receiver->route, from->name, frame, count)) {
        failpoint("broker_passed");
        self->passed++;
        return;
    }
    int error = errno;
    undeliverable(self, sender, to, head.kind, error == EHOSTUNREACH ? "its connection is gone"
                                                                     : "its queue is full");
    struct route gone = receiver->route;
    if (error == EHOSTUNREACH) post_office_forget(self->office, &gone);
}

// [routing id][to][frame]; anything else is thrown away whole.
static bool take_mail(struct broker *self, uint64_t now_ms)
{
    struct route sender = { 0 };
    char to[ACTOR_NAME_MAX + 1] = "";
    zmq_msg_t part;
    int parts = 0;
    bool fits = true, more = true;
    zmq_msg_init(&part);
    for (; more; parts++) {
        zmq_msg_close(&part);
        zmq_msg_init(&part);
        if (zmq_msg_recv(&part, self->mail, ZMQ_DONTWAIT) < 0) {
            zmq_msg_close(&part);
            return false;
        }
        size_t count = zmq_msg_size(&part);
        more = zmq_msg_more(&part);
        if (parts == 0 && (fits = count <= ROUTE_MAX)) {
            sender.count = (uint8_t)count;
            memcpy(sender.bytes, zmq_msg_data(&part), count);
        }
        if (parts == 1 && (fits &= count <= ACTOR_NAME_MAX)) {
            memcpy(to, zmq_msg_data(&part), count);
            to[count] = 0;
            for (size_t i = 0; i < count; i++) fits &= (uint8_t)to[i] >= 0x20; // Quoted in answers
        }
    }
    if (parts == 3 && fits)
        pass_on(self, &sender, to, zmq_msg_data(&part), zmq_msg_size(&part), now_ms);
    zmq_msg_close(&part);
    return true;
}

// ---- news ---------------------------------------------------------------------------------------

// False for a frame that is older than the one kept: signed once, said again by somebody else.
static bool keep(struct broker *self, const char *topic, const struct wire_head *head,
                 const void *frame, size_t count)
{
    struct bulletin *kept = NULL;
    for (uint32_t i = 0; i < self->bulletins_count && !kept; i++)
        if (strcmp(self->bulletins[i].topic, topic) == 0) kept = &self->bulletins[i];
    if (!kept && self->bulletins_count < TOPICS_MAX) {
        kept = &self->bulletins[self->bulletins_count++];
        snprintf(kept->topic, sizeof kept->topic, "%s", topic);
    }
    if (!kept) return true;
    if (head->incarnation < kept->incarnation ||
        (head->incarnation == kept->incarnation && head->seq <= kept->seq)) return false;
    kept->frame = realloc(kept->frame, count);
    ensure(kept->frame);
    memcpy(kept->frame, frame, count);
    kept->count = count;
    kept->incarnation = head->incarnation;
    kept->seq = head->seq;
    return true;
}

// A state topic speaks for the run: only what its coordinator signed is passed on and kept.
static bool may_publish(struct broker *self, const char *topic, const uint8_t *frame, size_t count)
{
    struct wire_head head;
    struct wire_refusal refusal;
    char expected[96];
    if (!wire_unpack_head(frame, count, WIRE_NEWS, &head, &refusal)) return false;
    snprintf(expected, sizeof expected, "%s.%s", head.run, wire_kind_name(head.kind));
    if (strcmp(topic, expected) != 0) return false;
    if (!(wire_kind_flags(head.kind) & WIRE_STATE)) return true;
    const struct peer *coordinator = post_office_named(self->office, "coordinator");
    if (!coordinator || memcmp(coordinator->key.bytes, head.sender, HASH_BYTES) != 0) return false;
    if (!is_signed_well(frame, count, &head)) return false;
    return keep(self, topic, &head, frame, count);
}

static bool take_news(struct broker *self)
{
    char topic[96];
    int count = zmq_recv(self->news_in, topic, sizeof topic - 1, ZMQ_DONTWAIT);
    if (count < 0) return false;
    topic[count < (int)sizeof topic ? count : (int)sizeof topic - 1] = 0;
    zmq_msg_t part;
    zmq_msg_init(&part);
    int parts = 1, more = 0;
    size_t size = sizeof more;
    zmq_getsockopt(self->news_in, ZMQ_RCVMORE, &more, &size);
    for (; more; parts++) {
        zmq_msg_close(&part);
        zmq_msg_init(&part);
        if (zmq_msg_recv(&part, self->news_in, 0) < 0) break;
        more = zmq_msg_more(&part);
    }
    if (parts == 2 && count < (int)sizeof topic &&
        may_publish(self, topic, zmq_msg_data(&part), zmq_msg_size(&part))) {
        failpoint("broker_publish");
        zmq_send(self->news_out, topic, (size_t)count, ZMQ_SNDMORE | ZMQ_DONTWAIT);
        if (zmq_msg_send(&part, self->news_out, ZMQ_DONTWAIT) >= 0) self->published++;
    }
    zmq_msg_close(&part);
    return true;
}

static bool take_subscription(struct broker *self)
{
    uint8_t bytes[256];
    int count = zmq_recv(self->news_out, bytes, sizeof bytes, ZMQ_DONTWAIT);
    if (count < 0) return false;
    if (count <= (int)sizeof bytes) zmq_send(self->news_in, bytes, (size_t)count, ZMQ_DONTWAIT);
    return true;
}

// ---- life ---------------------------------------------------------------------------------------

static void *bind_socket(struct broker *self, int type, unsigned long port, struct why *why,
                         int *ret_fault)
{
    char endpoint[128];
    int64_t bytes_max = WIRE_FRAME_MAX + 1024;
    void *socket = zmq_socket(self->context, type);
    ensure(socket);
    static const struct { int option, value;
    } limits[] = {
        { ZMQ_LINGER, 0 },        { ZMQ_SNDHWM, 4096 },
        { ZMQ_RCVHWM, 4096 },     { ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS },
        { ZMQ_TCP_KEEPALIVE, 1 }, { ZMQ_TCP_KEEPALIVE_IDLE, 15 },
        { ZMQ_BACKLOG, 4096 },
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        ensure(zmq_setsockopt(socket, limits[i].option, &limits[i].value, sizeof(int)) == 0);
    ensure(zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &bytes_max, sizeof bytes_max) == 0);
    int on = 1;
    if (type == ZMQ_ROUTER)
        ensure(zmq_setsockopt(socket, ZMQ_ROUTER_MANDATORY, &on, sizeof on) == 0);
    snprintf(endpoint, sizeof endpoint, "tcp://%s:%lu", self->bind, port);
    if (zmq_bind(socket, endpoint) != 0 && *ret_fault == 0)
        *ret_fault = why_set(why, errno == EADDRINUSE ? FAULT_BUSY : FAULT_UNREACHABLE,
                             "cannot listen on %s: "
                             "%s; another broker? choose --server-port, three ports in a row",
                             endpoint, zmq_strerror(errno));
    return socket;
}

static int open_broker(struct broker *self, struct why *why)
{
    uint64_t port;
    int rc = command_number("--server-port", self->port, 1, 65533, why, &port);
    char address[128];
    snprintf(address, sizeof address, "%s:%s", self->bind, self->port);
    if (rc == 0) rc = command_require_loopback("--bind", address, self->command.insecure, why);
    if (rc < 0) return rc;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    self->signals = signalfd(-1, &set, SFD_CLOEXEC);
    self->office = calloc(1, sizeof *self->office);
    self->context = zmq_ctx_new();
    ensure(self->office && self->context && self->signals >= 0);
    zmq_ctx_set(self->context, ZERO_COPY_RECV, 0);
    zmq_ctx_set(self->context, ZMQ_MAX_SOCKETS, 64);
    self->instance = shell_unix_ms();
    self->mail = bind_socket(self, ZMQ_ROUTER, port, why, &rc);
    self->news_out = bind_socket(self, ZMQ_XPUB, port + 1, why, &rc);
    self->news_in = bind_socket(self, ZMQ_XSUB, port + 2, why, &rc);
    return rc;
}

static void close_broker(struct broker *self)
{
    void *sockets[] = { self->mail, self->news_out, self->news_in };
    for (int i = 0; i < 3; i++)
        if (sockets[i]) zmq_close(sockets[i]);
    if (self->context) zmq_ctx_term(self->context);
    for (uint32_t i = 0; i < self->bulletins_count; i++) free(self->bulletins[i].frame);
    free(self->office);
}

static void run(struct broker *self)
{
    shell_log(6, "broker.ready mail=%s:%s", self->bind, self->port);
    sd_notify(0, "READY=1");
    for (;;) {
        zmq_pollitem_t items[] = {
            { .socket = self->mail, .events = ZMQ_POLLIN },
            { .socket = self->news_in, .events = ZMQ_POLLIN },
            { .socket = self->news_out, .events = ZMQ_POLLIN },
            { .fd = self->signals, .events = ZMQ_POLLIN },
        };
        int rc = zmq_poll(items, 4, 1000);
        ensure(rc >= 0 || errno == EINTR);
        if (items[3].revents) break;
        uint64_t now_ms = shell_now_ms();
        for (int n = 0; n < TURN_MAX && take_subscription(self); n++) continue;
        for (int n = 0; n < TURN_MAX && take_mail(self, now_ms); n++) continue;
        for (int n = 0; n < TURN_MAX && take_news(self); n++) continue;
        if (now_ms < self->expire_ms) continue;
        self->expire_ms = now_ms + 1000;
        post_office_expire(self->office, now_ms);
        sd_notify(0, "WATCHDOG=1");
        sd_notifyf(0, "STATUS=%u actors, %llu letters, %llu news", self->office->count,
                   (unsigned long long)self->passed, (unsigned long long)self->published);
    }
    shell_log(6, "broker.ends letters=%llu news=%llu undeliverable=%llu",
              (unsigned long long)self->passed, (unsigned long long)self->published,
              (unsigned long long)self->undeliverable);
}

// ---- command line -------------------------------------------------------------------------------

static const struct argp_option options[] = {
    { "server-port", 's', "PORT", 0,
      "First of three ports: mail, news, publishing (5550; env SERVER_PORT)", 0 },
    { "bind", 'b', "HOST", 0, "Address to listen on (127.0.0.1)", 0 },
    { 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct broker *self = state->input;
    if (key == ARGP_KEY_INIT) state->child_inputs[0] = &self->command;
    else if (key == 's') self->port = arg;
    else if (key == 'b') self->bind = arg;
    else return ARGP_ERR_UNKNOWN;
    return 0;
}

int main(int argc, char **argv)
{
    static struct broker self;
    static const struct argp_child children[] = { { &command_argp, 0, NULL, 1 }, { 0 } };
    static const struct argp argp = { options, parse, NULL,
        "The post office of Shoal's actors.\n\n"
        "  shoal-broker                          for this machine alone\n"
        "  shoal-broker -b 10.0.0.1 --insecure   for others too\n", children, NULL, NULL };
    struct why why = { 0 };
    const char *port = command_env("SERVER_PORT");
    self.port = port ? port : "5550";
    self.bind = "127.0.0.1";
    argp_parse(&argp, argc, argv, 0, NULL, &self);
    int rc = open_broker(&self, &why);
    if (rc == 0) run(&self);
    close_broker(&self);
    return fault_exit(rc, &why);
}
