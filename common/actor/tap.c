// Sends HELLO as soon as the mail is connected. On WELCOME the post sends the RECALL, and the tap
// sends a letter to an actor that does not exist. When that letter comes back, all recalled state
// has arrived. The answers to tap_ask_heard come back in the same way, under the actors' names.

#include "common/actor/tap.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/base/nearest.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <zmq.h>

enum { ARENA_BYTES = 64 << 20, KINDS_MAX = 64, TICK_MS = 1000 };

static const char NOBODY[] = "nobody"; // No actor has this name

struct tap {
    struct post *post;
    struct identity *own; // NULL: one was given
    const struct identity *identity;
    char name[ACTOR_NAME_MAX + 1]; // The post keeps the pointer for each HELLO
    char run[WIRE_RUN_MAX + 1];
    struct wire_arena arena;
    const char *deaf_to[KINDS_MAX + 1];
    uint16_t kinds[KINDS_MAX];
    size_t kinds_count;
    uint64_t ticked_ms, broker_ms;          // broker_ms: when the broker was last heard
    bool recalled, has_beat, has_run, told; // Since the newest broker process
    uint64_t ask_ms;
};

static int make_identity(struct why *why, struct identity **ret_identity)
{
    uint8_t secret[SECRET_BYTES];
    if (getrandom(secret, sizeof secret, 0) != sizeof secret)
        return why_set(why, FAULT_IO, "the system gives no random bytes: %s", strerror(errno));
    int rc = identity_from_secret(secret, why, ret_identity);
    explicit_bzero(secret, sizeof secret);
    return rc;
}

static bool wants(const struct tap *self, uint16_t kind)
{
    for (size_t i = 0; i < self->kinds_count; i++)
        if (self->kinds[i] == kind) return true;
    return self->kinds_count == 0;
}

static void choose_kinds(struct tap *self, const struct tap_options *options)
{
    size_t deaf = 0;
    ensure(options->kinds_count <= KINDS_MAX);
    for (size_t i = 0; i < options->kinds_count; i++) self->kinds[i] = options->kinds[i];
    self->kinds_count = options->kinds_count;
    for (uint16_t kind = wire_kind_next(0); kind; kind = wire_kind_next(kind))
        if (wire_kind_flags(kind) & WIRE_NEWS && !wants(self, kind)) {
            ensure(deaf < KINDS_MAX);
            self->deaf_to[deaf++] = wire_kind_name(kind);
        }
}

int tap_open(const struct tap_options *options, struct why *why, struct tap **ret_tap)
{
    struct tap *self = calloc(1, sizeof *self);
    ensure(self);
    const struct identity *identity = options->identity;
    int rc = identity ? 0 : make_identity(why, &self->own);
    if (rc < 0) goto out;
    if (!identity) identity = self->own;
    self->identity = identity;
    choose_kinds(self, options);
    actor_name(options->role, identity_key(identity), self->name);
    snprintf(self->run, sizeof self->run, "%s", options->run);
    self->arena = (struct wire_arena){ .bytes = malloc(ARENA_BYTES), .max = ARENA_BYTES };
    ensure(self->arena.bytes);
    struct ticket broker = *options->broker;
    if (self->own) broker.has_invitation = false; // A temporary key must not use it up
    struct post_options post = { .identity = identity,
                                 .quiet = true,
                                 .role = options->role,
                                 .name = self->name,
                                 .run = options->run,
                                 .broker = &broker,
                                 .follows_news = true,
                                 .deaf_to = self->deaf_to,
                                 .instance = clock_unix_ms() };
    rc = post_new(&post, why, &self->post);
    self->ticked_ms = self->broker_ms = clock_ms();
out:
    if (rc < 0) tap_close(&self);
    else *ret_tap = self;
    return rc;
}

void tap_close(struct tap **self_p)
{
    struct tap *self = *self_p;
    if (!self) return;
    post_destroy(&self->post);
    identity_destroy(&self->own);
    free(self->arena.bytes);
    free(self);
    *self_p = NULL;
}

// ---- waiting ------------------------------------------------------------------------------------

static bool is_writable(struct tap *self)
{
    int events = 0;
    size_t size = sizeof events;
    zmq_getsockopt(post_mail_socket(self->post), ZMQ_EVENTS, &events, &size);
    return events & ZMQ_POLLOUT;
}

// A HELLO on a socket that is not connected yet would be lost, and the state would come a second
// later. So the first one waits for the connection, but the post ticks at least once a second.
static void tick(struct tap *self)
{
    uint64_t now_ms = clock_ms();
    if (now_ms < post_due_ms(self->post)) return;
    bool writable = is_writable(self);
    if (!writable && now_ms < self->ticked_ms + TICK_MS) return;
    self->ticked_ms = now_ms;
    post_tick(self->post);
}

bool tap_wait(struct tap *self, int fd, uint64_t until_ms)
{
    tick(self);
    uint64_t now_ms = clock_ms(), due_ms = post_due_ms(self->post);
    bool connecting = due_ms <= now_ms;
    if (until_ms > now_ms + TICK_MS) until_ms = now_ms + TICK_MS;
    if (!connecting && due_ms < until_ms) until_ms = due_ms;
    zmq_pollitem_t items[] = {
        { .socket = post_mail_socket(self->post),
          .events = (short)(ZMQ_POLLIN | (connecting ? ZMQ_POLLOUT : 0)) },
        { .socket = post_news_socket(self->post), .events = ZMQ_POLLIN },
        { .fd = fd, .events = ZMQ_POLLIN },
    };
    int rc = zmq_poll(items, fd < 0 ? 2 : 3, until_ms > now_ms ? (long)(until_ms - now_ms) : 0);
    ensure(rc >= 0 || errno == EINTR);
    tick(self);
    return rc > 0 && fd >= 0 && items[2].revents;
}

// ---- hearing ------------------------------------------------------------------------------------

// A new broker process: the post has sent the RECALL.
static void hear_welcome(struct tap *self)
{
    const struct wire_ask ask = { .topic = TOPIC_RUN };
    self->recalled = self->has_beat = self->has_run = self->told = false;
    post_mail(self->post, NOBODY, FRAME_ASK, &ask);
}

static bool is_complete(struct tap *self)
{
    if (!self->recalled || self->told || (self->has_beat && !self->has_run)) return false;
    return self->told = true;
}

// Mail of ours has come back: the letter to nobody, or an answer to tap_ask_heard.
static enum tap_result hear_returned(struct tap *self, const struct letter *letter)
{
    const struct wire_undeliverable *no = letter->msg.body;
    struct last_heard heard;
    if (tap_heard(letter, &heard)) return TAP_HEARD;
    if (strcmp(no->to, NOBODY) == 0) self->recalled = true;
    return is_complete(self) ? TAP_COMPLETE : TAP_NOTHING;
}

// A broker that started after the coordinator may have a BEAT of it but no RUN yet. Then the
// coordinator is asked for RUN, once a second, until it arrives.
static void ask_for_run(struct tap *self)
{
    const struct wire_ask ask = { .topic = TOPIC_RUN };
    uint64_t now_ms = clock_ms();
    if (self->has_run || !self->has_beat || !self->recalled || now_ms < self->ask_ms) return;
    if (post_mail(self->post, "coordinator", FRAME_ASK, &ask)) self->ask_ms = now_ms + TICK_MS;
}

static enum tap_result take(struct tap *self, bool mail, struct letter *ret_letter, bool *ret_empty)
{
    *ret_empty = false;
    enum post_result got = post_take(self->post, mail, &self->arena, ret_letter);
    if (got == POST_NOTHING) *ret_empty = true;
    else if (mail) self->broker_ms = clock_ms();
    switch (got) {
    case POST_NOTHING:
    case POST_OWN: return TAP_NOTHING;
    case POST_BAD: return TAP_BAD;
    case POST_RETURNED: return hear_returned(self, ret_letter);
    case POST_LETTER: break;
    }
    if (ret_letter->msg.kind == FRAME_UNDELIVERABLE) return TAP_NOTHING; // tap_is_refused is true
    if (ret_letter->msg.kind == FRAME_WELCOME) {
        hear_welcome(self);
        return TAP_NOTHING;
    }
    self->has_run = self->has_run || ret_letter->msg.kind == FRAME_RUN;
    self->has_beat = self->has_beat || wire_kind_flags(ret_letter->msg.kind) & WIRE_STATE;
    bool is_news = wire_kind_flags(ret_letter->msg.kind) & WIRE_NEWS;
    return !is_news || wants(self, ret_letter->msg.kind) ? TAP_FRAME : TAP_NOTHING;
}

enum tap_result tap_take(struct tap *self, struct letter *ret_letter)
{
    if (is_complete(self)) return TAP_COMPLETE;
    ask_for_run(self);
    for (int mail = 1; mail >= 0; mail--)
        for (bool empty = false; !empty;) {
            enum tap_result result = take(self, mail, ret_letter, &empty);
            if (result != TAP_NOTHING) return result;
        }
    return TAP_NOTHING;
}

bool tap_mail(struct tap *self, const char *to, uint16_t kind, const void *body)
{
    return post_mail(self->post, to, kind, body);
}

void tap_ask_heard(struct tap *self, const char *name)
{
    struct wire_recall recall;
    memcpy(recall.run, self->run, sizeof recall.run);
    post_mail(self->post, name, FRAME_RECALL, &recall);
}

const char *tap_heard(const struct letter *letter, struct last_heard *ret_heard)
{
    const struct wire_undeliverable *no = letter->msg.body;
    if (letter->msg.kind != FRAME_UNDELIVERABLE || no->kind != FRAME_RECALL) return NULL;
    return last_heard_parse(no->reason, ret_heard) ? no->to : NULL;
}

const struct identity *tap_identity(const struct tap *self) { return self->identity; }
bool tap_is_connected(const struct tap *self) { return post_is_known(self->post); }
bool tap_is_refused(const struct tap *self) { return post_is_refused(self->post); }
bool tap_knows_run(const struct tap *self) { return self->has_run || self->has_beat; }

uint64_t tap_silent_ms(const struct tap *self) { return clock_ms() - self->broker_ms; }

int tap_no_answer(const struct tap *self, const char *address, unsigned patience_ms,
                  struct why *why)
{
    const char *trouble = post_trouble(self->post);
    if (tap_is_refused(self))
        return why_set(why, FAULT_DENIED, "%s: %s%s", address, trouble,
                       self->own ? "; give a key that it admits, with -i FILE" : "");
    if (trouble) return why_set(why, FAULT_UNREACHABLE, "%s: %s", address, trouble);
    return why_set(why, FAULT_UNREACHABLE,
                   "no broker answers at %s within %g s: does it run, and is the address right?",
                   address, patience_ms / 1000.0);
}

struct wire_head tap_head(const struct letter *letter)
{
    struct wire_head head = { .kind = letter->msg.kind,
                              .incarnation = letter->msg.incarnation,
                              .seq = letter->msg.seq };
    memcpy(head.run, letter->run, sizeof head.run);
    head.sender = letter->msg.sender;
    return head;
}

// ---- topics -------------------------------------------------------------------------------------

static int no_topic(const char *name, struct why *why)
{
    struct nearest near = { .wanted = name };
    char all[256] = "";
    for (uint16_t kind = wire_kind_next(0); kind; kind = wire_kind_next(kind)) {
        if (!(wire_kind_flags(kind) & WIRE_NEWS)) continue;
        nearest_offer(&near, wire_kind_name(kind), strlen(wire_kind_name(kind)));
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, " %s", wire_kind_name(kind));
    }
    return why_set(why, FAULT_USAGE, "--topic %s is no topic%s%s%s; there are:%s", name,
                   near.best[0] ? ", did you mean " : "", near.best, near.best[0] ? "?" : "", all);
}

int tap_parse_topics(const char *list, size_t max, struct why *why, uint16_t *ret_kinds,
                     size_t *ret_count)
{
    size_t count = 0;
    for (const char *at = list; *at;) {
        char name[32];
        size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)(length < 31 ? length : 31), at);
        for (char *c = name; *c; c++)
            if (*c >= 'a' && *c <= 'z') *c = (char)(*c - 'a' + 'A');
        uint16_t kind = wire_kind_from_name(name);
        if (!(wire_kind_flags(kind) & WIRE_NEWS)) return no_topic(name, why);
        if (count == max) return why_set(why, FAULT_USAGE, "--topic: at most %zu topics", max);
        ret_kinds[count++] = kind;
        at += length + (at[length] == ',');
    }
    if (count == 0) return why_set(why, FAULT_USAGE, "--topic: a list such as RUN,COMMIT");
    *ret_count = count;
    return 0;
}
