// One turn of the loop: wait, then signals, mail and news (senders take turns), answers of workers, the alarm; each
// message is one step of the core. Then the turn's stores become durable together, then the other effects
// are performed in order. Last come the post's HELLO, the watchdog, a line about what the actor
// waits for, its Status, and the time limit of leaving.

#include "common/actor/shell.h"
#include "common/actor/cost.h"
#include "common/actor/inbox.h"
#include "common/actor/post.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/base/failpoint.h"
#include "common/base/log.h"
#include <inttypes.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

// A turn ends when half of the outbox is full; the other half is for one more step. The largest
// step drops all of MEMBERS_MAX at once, with a record and a note for each.
enum {
    EFFECTS_MAX = 1 << 17,
    OUTBOX_BYTES = 64 << 20,
    ARENA_BYTES = 64 << 20,
    AWAITED_MAX = 480,
    GATHER_MAX = 1024
};

struct shell {
    struct shell_options options;
    char name[ACTOR_NAME_MAX + 1];
    struct post *post;
    struct inbox *inbox; // Of struct post_frame
    struct outbox out;
    struct wire_arena arena; // Of the message in hand
    int signals;
    uint64_t alarm_ms, watchdog_ms, patience_ms;
    uint64_t dropped, dropped_log_ms;
    uint64_t known_ms, admitted_ms, coordinator_ms; // When the broker last knew us, when we were
                                                    // last admitted, the coordinator last heard
    bool coordinator_heard, coordinator_missing;    // Missing: mail to it came back
    uint64_t complete_ms;                           // When the run last lacked nothing
    uint64_t waiting_ms;                            // No line about waiting before this
    uint64_t progress_ms;                           // No line about progress before this
    uint64_t status_ms;                             // No Status before this
    char status[SHELL_STATUS_MAX];                  // The one that was told last
    bool quitting;
    int exit_code;
};

static void drop(struct shell *self, const char *from, const char *reason)
{
    self->dropped++;
    uint64_t now_ms = clock_ms();
    if (now_ms < self->dropped_log_ms) return;
    self->dropped_log_ms = now_ms + 1000;
    log_line(LOG_WARNING, "frame.dropped from=%s count=%" PRIu64 " reason=\"%s\"",
             from[0] ? from : "news", self->dropped, reason);
}

// ---- life ---------------------------------------------------------------------------------------

sigset_t shell_block_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    return set;
}

static int watch_signals(void)
{
    sigset_t set = shell_block_signals();
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

int shell_new(const struct shell_options *options, struct why *why, struct shell **ret_shell)
{
    struct shell *self = calloc(1, sizeof *self);
    ensure(self);
    self->options = *options;
    self->signals = watch_signals();
    self->alarm_ms = UINT64_MAX;
    self->known_ms = self->admitted_ms = self->coordinator_ms = self->complete_ms = clock_ms();
    self->out = (struct outbox){ .effects = calloc(EFFECTS_MAX, sizeof(struct effect)),
                                 .count_max = EFFECTS_MAX,
                                 .bytes = malloc(OUTBOX_BYTES),
                                 .bytes_max = OUTBOX_BYTES };
    self->arena = (struct wire_arena){ .bytes = malloc(ARENA_BYTES), .max = ARENA_BYTES };
    self->inbox = calloc(1, sizeof *self->inbox);
    ensure(self->out.effects && self->out.bytes && self->arena.bytes && self->inbox &&
           self->signals >= 0);
    if (options->name && options->name[0])
        snprintf(self->name, sizeof self->name, "%s", options->name);
    else actor_name(options->role, identity_key(options->identity), self->name);
    struct post_options post = { .identity = options->identity,
                                 .role = options->role,
                                 .name = self->name,
                                 .run = options->run,
                                 .broker = options->broker,
                                 .follows_news = options->follows_news,
                                 .is_guest = options->is_guest,
                                 .is_hint = options->is_hint,
                                 .is_hint_arg = options->after_turn_arg,
                                 .deaf_to = options->deaf_to,
                                 .incarnation = options->incarnation,
                                 .instance = options->instance };
    int rc = post_new(&post, why, &self->post);
    if (rc < 0) {
        shell_destroy(&self);
        return rc;
    }
    *ret_shell = self;
    return 0;
}

static void throw_away_letters(struct shell *self)
{
    for (struct post_frame *frame; (frame = inbox_next(self->inbox)); post_release(&frame))
        inbox_charge(self->inbox, 0);
    free(self->inbox);
}

void shell_destroy(struct shell **self_p)
{
    struct shell *self = *self_p;
    if (!self) return;
    throw_away_letters(self);
    post_destroy(&self->post);
    if (self->signals >= 0) close(self->signals);
    free(self->out.effects);
    free(self->out.bytes);
    free(self->arena.bytes);
    free(self);
    *self_p = NULL;
}

void shell_mail(struct shell *self, const char *to, uint16_t kind, const void *body)
{
    if (!post_mail(self->post, to, kind, body) && post_is_known(self->post))
        drop(self, to,
             "not sent: the broker is away or its queue is full; resent until acknowledged");
}

// ---- effects ------------------------------------------------------------------------------------

static const void *unpack(struct shell *self, const struct effect *effect)
{
    struct wire_refusal refusal;
    const void *body = NULL;
    self->arena.used = 0;
    ensure(
        wire_unpack_body(effect->body, effect->bytes, effect->kind, &self->arena, &body, &refusal));
    return body;
}

// A frame that is about to be sent.
static const void *unpack_frame(struct shell *self, const struct effect *effect)
{
    void *body = (void *)(uintptr_t)unpack(self, effect); // In our arena, so ours to change
    if (self->options.fill_in)
        self->options.fill_in(self->options.after_turn_arg, effect->kind, body);
    return body;
}

static void give_to_worker(struct shell *self, const struct effect *effect)
{
    for (uint32_t i = 0; i < self->options.workers_count; i++)
        if (worker_port(self->options.workers[i]) == effect->port) {
            worker_send(self->options.workers[i], effect->kind, effect->body, effect->bytes);
            return;
        }
    ensure_failed("a worker behind this port", __FILE__, __LINE__);
}

static int perform(struct shell *self, const struct effect *effect, struct why *why)
{
    switch (effect->port) {
    case PORT_MAIL:
        failpoint("mail");
        shell_mail(self, effect->to, effect->kind, unpack_frame(self, effect));
        failpoint("mailed");
        return 0;
    case PORT_NEWS:
        failpoint("news");
        post_publish(self->post, effect->kind, unpack_frame(self, effect));
        failpoint("published");
        return 0;
    case PORT_DISK:
        return self->options.disk.job ? self->options.disk.job(self->options.disk.arg, effect->kind,
                                                               unpack(self, effect), why)
                                      : 0;
    case PORT_CLOCK: {
        const struct wire_wake *wake = unpack(self, effect);
        if (wake->at_ms < self->alarm_ms) self->alarm_ms = wake->at_ms;
        return 0;
    }
    case PORT_LOG: {
        const struct wire_note *note = unpack(self, effect);
        log_line(LOG_INFO, "%s", note->text);
        return 0;
    }
    case PORT_SHELL: {
        const struct wire_quit *quit = unpack(self, effect);
        self->quitting = true;
        self->exit_code = quit->code;
        log_line(quit->code ? LOG_ERR : LOG_INFO, "actor.ends code=%u reason=\"%s\"", quit->code,
                 quit->text);
        return 0;
    }
    default: give_to_worker(self, effect); return 0;
    }
}

static bool is_store(const struct effect *effect)
{
    return effect->port == PORT_DISK && effect->kind != FRAME_SEND_COMMITS &&
           effect->kind != FRAME_POSITION && effect->kind != FRAME_FORGET;
}

// Makes all stores of the turn durable at once, then performs all other effects in order.
static int flush(struct shell *self, struct why *why)
{
    struct disk *disk = &self->options.disk;
    int rc = 0;
    bool open = false;
    for (uint32_t i = 0; i < self->out.count && rc >= 0; i++) {
        const struct effect *effect = &self->out.effects[i];
        if (!is_store(effect)) continue;
        if (!open) failpoint("turn_begin");
        if (!open) rc = disk->begin(disk->arg, why);
        open = true;
        if (rc >= 0) rc = disk->store(disk->arg, effect->kind, effect->body, effect->bytes, why);
    }
    if (open) failpoint("turn_commit");
    if (rc >= 0 && open) rc = disk->commit(disk->arg, why);
    if (open) failpoint("turn_committed");
    for (uint32_t i = 0; i < self->out.count && rc >= 0; i++)
        if (!is_store(&self->out.effects[i])) rc = perform(self, &self->out.effects[i], why);
    if (open) failpoint("turn_said");
    outbox_clear(&self->out);
    return rc;
}

// ---- events -------------------------------------------------------------------------------------

static void step(struct shell *self, struct msg *in)
{
    in->now_ms = clock_ms();
    if (self->options.verbose && in->kind != FRAME_WAKE) {
        char line[512];
        wire_print(in->kind, in->body, line, sizeof line);
        log_line(LOG_DEBUG, "hear from=%s %s", in->from, line);
    }
    self->options.actor->step(self->options.state, in, &self->out);
}

static void step_local(struct shell *self, uint16_t kind, const void *body)
{
    struct msg in = { .kind = kind, .run = "", .from = "", .body = body };
    step(self, &in);
}

static bool has_room(const struct shell *self)
{
    return self->out.count < EFFECTS_MAX / 2 && self->out.used < OUTBOX_BYTES / 2;
}

// The broker has refused our HELLO for good, for example because a newer process has our name.
static void give_up(struct shell *self, const struct wire_undeliverable *no)
{
    self->quitting = true;
    self->exit_code = EX_NOPERM;
    log_line(LOG_ERR, "actor.ends code=%d reason=\"the broker refuses %s: %s\"", EX_NOPERM,
             self->name, no->reason);
}

// State that the broker kept comes by mail without a sender: it does not show that the coordinator
// lives.
static void note_coordinator(struct shell *self, const struct letter *letter, bool mail)
{
    const bool is_its = mail ? strcmp(letter->from, "coordinator") == 0
                             : wire_kind_flags(letter->msg.kind) & WIRE_STATE;
    if (!is_its) return;
    self->coordinator_heard = true;
    self->coordinator_missing = false;
    self->coordinator_ms = clock_ms();
}

static void hear_returned(struct shell *self, const struct wire_undeliverable *no)
{
    if (strcmp(no->to, "coordinator") == 0) self->coordinator_missing = true;
}

// Puts the frames that have come into the inbox, where they wait for the turns of their senders.
static void gather(struct shell *self, bool mail)
{
    for (int n = 0; n < GATHER_MAX; n++) {
        struct post_frame *frame = post_receive(self->post, mail);
        if (!frame) return;
        if (inbox_put(self->inbox, &frame->sender, frame, zmq_msg_size(&frame->part))) continue;
        drop(self, frame->from, "too much of this sender waits already; dropped");
        post_release(&frame);
    }
}

static void hear(struct shell *self, const struct post_frame *frame)
{
    struct letter letter;
    enum post_result got = post_open(self->post, frame, &self->arena, &letter);
    if (got == POST_BAD) drop(self, letter.from, letter.reason);
    if (got == POST_RETURNED) hear_returned(self, letter.msg.body);
    if (got == POST_LETTER) note_coordinator(self, &letter, frame->mail);
    if (got == POST_LETTER && letter.msg.kind == FRAME_UNDELIVERABLE)
        give_up(self, letter.msg.body);
    else if (got == POST_LETTER) step(self, &letter.msg);
}

// Hears the frame whose turn it is. False: none waits.
static bool hear_next(struct shell *self)
{
    struct post_frame *frame = inbox_next(self->inbox);
    if (!frame) return false;
    const uint32_t before = self->out.count;
    hear(self, frame);
    inbox_charge(self->inbox, cost_of_hearing(frame->kind, zmq_msg_size(&frame->part)) +
                                  cost_of_effects(&self->out, before));
    post_release(&frame);
    return true;
}

static void take_answers(struct shell *self)
{
    for (uint32_t i = 0; i < self->options.workers_count; i++) {
        uint16_t kind;
        const void *body;
        self->arena.used = 0;
        while (has_room(self) &&
               worker_take(self->options.workers[i], &self->arena, &kind, &body)) {
            step_local(self, kind, body);
            self->arena.used = 0;
        }
    }
}

static void take_signals(struct shell *self)
{
    struct signalfd_siginfo info;
    while (read(self->signals, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGHUP) continue;
        if (self->patience_ms) {
            self->quitting = true; // The second signal ends the process at once
            continue;
        }
        log_line(LOG_INFO, "actor.asked_to_stop leaving the run");
        sd_notify(0, "STOPPING=1");
        failpoint("quit");
        self->patience_ms = clock_ms() + SHELL_PATIENCE_MS;
        step_local(self, FRAME_QUIT, &(struct wire_quit){ 0 });
    }
}

static void take_alarm(struct shell *self)
{
    uint64_t now_ms = clock_ms();
    if (now_ms < self->alarm_ms) return;
    self->alarm_ms = UINT64_MAX;
    step_local(self, FRAME_WAKE, &(struct wire_wake){ now_ms });
}

static void mind_the_watchdog(struct shell *self)
{
    uint64_t period_us = 0, now_ms = clock_ms();
    if (now_ms < self->watchdog_ms || sd_watchdog_enabled(0, &period_us) <= 0) return;
    self->watchdog_ms = now_ms + period_us / 4000;
    sd_notify(0, "WATCHDOG=1");
}

// What the actor waits for, and since when. False: for no other actor.
static bool awaits(const struct shell *self, char text[AWAITED_MAX], uint64_t *ret_since_ms)
{
    const char *run = self->options.run, *trouble = post_trouble(self->post);
    const char *address = self->options.broker->address;
    const bool is_guest = self->options.is_guest;
    const char *whose = is_guest ? "the owner's" : "the";
    const uint64_t silent_ms = clock_ms() - self->coordinator_ms;
    *ret_since_ms = self->known_ms;
    if (!post_is_known(self->post)) {
        if (trouble) snprintf(text, AWAITED_MAX, "%s: %s", address, trouble);
        else if (is_guest)
            snprintf(
                text, AWAITED_MAX,
                "the run's owner does not answer at %s: the run is stopped or finished, or the "
                "network is down; this goes on by itself when it is back, and Ctrl-C ends it",
                address);
        else snprintf(text, AWAITED_MAX, "no broker answers at %s", address);
        return true;
    }
    if (!self->options.is_admitted) return false;
    const bool admitted = self->options.is_admitted(self->options.after_turn_arg);
    *ret_since_ms = admitted ? self->coordinator_ms : self->admitted_ms;
    if (self->coordinator_heard && (self->coordinator_missing || silent_ms >= SHELL_WAITING_MS))
        snprintf(text, AWAITED_MAX, "%s coordinator of run \"%s\" was last heard %" PRIu64 " s ago",
                 whose, run, (uint64_t)(silent_ms / 1000));
    else if (self->coordinator_missing)
        snprintf(text, AWAITED_MAX,
                 is_guest ? "the owner's coordinator of run \"%s\" is not there yet"
                          : "no coordinator of run \"%s\" yet",
                 run);
    else if (!admitted)
        snprintf(text, AWAITED_MAX, "%s coordinator of run \"%s\" has not admitted this actor yet",
                 whose, run);
    else return false;
    return true;
}

// "waiting: no broker answers at ...", once that is so for some time. False: no other actor is
// waited for.
static bool waits_for_another(const struct shell *self, uint64_t now_ms,
                              char line[SHELL_STATUS_MAX])
{
    char text[AWAITED_MAX];
    uint64_t since_ms;
    if (!awaits(self, text, &since_ms) || now_ms < since_ms + SHELL_WAITING_MS) return false;
    snprintf(line, SHELL_STATUS_MAX, "waiting: %s", text);
    return true;
}

// The same for what the run lacks, which has a sentence of its own.
static bool waits_with_the_run(struct shell *self, uint64_t now_ms, char line[SHELL_STATUS_MAX])
{
    line[0] = 0;
    if (self->options.lacks) self->options.lacks(self->options.after_turn_arg, line);
    if (!line[0]) self->complete_ms = now_ms;
    return now_ms >= self->complete_ms + SHELL_WAITING_MS;
}

static void say_progress(struct shell *self, uint64_t now_ms)
{
    char line[SHELL_STATUS_MAX] = "";
    if (!self->options.progress || now_ms < self->progress_ms || self->patience_ms) return;
    self->options.progress(self->options.after_turn_arg, line);
    if (!line[0]) return;
    self->progress_ms = now_ms + SHELL_WAITING_AGAIN_MS;
    log_line(LOG_INFO, "%s", line);
}

static void say_what_we_wait_for(struct shell *self)
{
    char line[SHELL_STATUS_MAX];
    const uint64_t now_ms = clock_ms();
    if (post_is_known(self->post)) self->known_ms = now_ms;
    if (self->options.is_admitted && self->options.is_admitted(self->options.after_turn_arg))
        self->admitted_ms = now_ms;
    const bool waits_alone = waits_for_another(self, now_ms, line);
    const bool waits = waits_alone || waits_with_the_run(self, now_ms, line);
    if (!waits_alone) say_progress(self, now_ms);
    if (!waits || now_ms < self->waiting_ms || self->patience_ms) return;
    self->waiting_ms = now_ms + SHELL_WAITING_AGAIN_MS;
    log_line(LOG_INFO, "%s", line);
}

// Only a Status that has changed is told. While no other actor is waited for, it is the actor's own.
static void tell_status(struct shell *self)
{
    char text[SHELL_STATUS_MAX];
    const uint64_t now_ms = clock_ms();
    if (!self->options.status || now_ms < self->status_ms) return;
    self->status_ms = now_ms + 1000;
    if (self->patience_ms) snprintf(text, sizeof text, "leaving the run");
    else if (!waits_for_another(self, now_ms, text))
        self->options.status(self->options.after_turn_arg, text);
    if (strcmp(text, self->status) == 0) return;
    memcpy(self->status, text, sizeof self->status);
    sd_notifyf(0, "STATUS=%s", text);
}

static long wait_ms(struct shell *self)
{
    uint64_t now_ms = clock_ms(), until = now_ms + 1000;
    uint64_t post_ms = post_due_ms(self->post);
    if (self->alarm_ms < until) until = self->alarm_ms;
    if (post_ms < until) until = post_ms;
    if (self->patience_ms && self->patience_ms < until) until = self->patience_ms;
    return until > now_ms ? (long)(until - now_ms) : 0;
}

// What this turn looks at. To look at a socket where nothing has happened costs a call of the kernel and finds nothing.
struct moved {
    bool mail, news, signals;
};

static struct moved wait(struct shell *self)
{
    enum { MAIL, NEWS, SIGNALS, OTHERS };
    struct pollfd items[OTHERS + SHELL_WORKERS_MAX + 1] = {
        [MAIL] = { .fd = post_descriptor(self->post, true), .events = POLLIN },
        [NEWS] = { .fd = post_descriptor(self->post, false), .events = POLLIN },
        [SIGNALS] = { .fd = self->signals, .events = POLLIN },
    };
    nfds_t count = OTHERS;
    for (uint32_t i = 0; i < self->options.workers_count; i++)
        items[count++] =
            (struct pollfd){ .fd = worker_answers_fd(self->options.workers[i]), .events = POLLIN };
    if (self->options.ready_fd)
        items[count++] = (struct pollfd){ .fd = self->options.ready_fd, .events = POLLIN };
    const bool mail = post_waits(self->post, true), news = post_waits(self->post, false);
    const bool now = mail || news || self->inbox->count > 0;
    const int rc = poll(items, count, now ? 0 : (int)wait_ms(self));
    ensure(rc >= 0 || errno == EINTR);
    return (struct moved){ .mail = mail || items[MAIL].revents,
                           .news = news || items[NEWS].revents,
                           .signals = items[SIGNALS].revents };
}

static int turn(struct shell *self, struct why *why)
{
    const struct moved moved = wait(self);
    if (moved.signals) take_signals(self);
    if (moved.mail) gather(self, true);
    if (moved.news) gather(self, false);
    for (int n = 0; n < SHELL_TURN_MAX && has_room(self) && hear_next(self); n++) continue;
    take_answers(self);
    take_alarm(self);
    if (self->options.take) self->options.take(self->options.after_turn_arg);
    int rc = flush(self, why);
    if (rc < 0) return rc;
    if (self->options.after_turn) self->options.after_turn(self->options.after_turn_arg);
    post_tick(self->post);
    mind_the_watchdog(self);
    say_what_we_wait_for(self);
    tell_status(self);
    if (self->patience_ms && !self->quitting && clock_ms() >= self->patience_ms) {
        log_line(LOG_WARNING, "actor.ends code=0 reason=\"left without an answer\"");
        self->quitting = true;
    }
    return 0;
}

int shell_run(struct shell *self, struct why *why)
{
    struct wire_start start = { .incarnation = self->options.incarnation,
                                .instance = self->options.instance,
                                .unix_ms = clock_unix_ms() };
    for (int i = 0; i < 4 && self->options.first[i].body; i++)
        step_local(self, self->options.first[i].kind, self->options.first[i].body);
    step_local(self, FRAME_START, &start);
    int rc = flush(self, why);
    failpoint("ready");
    sd_notify(0, "READY=1");
    while (rc >= 0 && !self->quitting) rc = turn(self, why);
    return rc < 0 ? rc : self->exit_code;
}
