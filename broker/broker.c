// broker -- opens the sockets, runs the loop, and closes them.
//
//     ROUTER  port      mail in and out           [to][frame] from actors, [from][frame] to them;
//                                                 mail to "news" is published to all subscribers
//     XPUB    port + 1  news out                  [topic][frame]; subscriptions come in
//
// A turn takes what waits in this order: signals, handshakes and connections, subscriptions, mail.
// A turn takes at most TURN_MAX letters, so that a flood of mail does not delay the rest for long.

#include "broker/broker.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/base/log.h"
#include "common/net/addresses.h"
#include "common/net/descriptors.h"
#include "common/net/net.h"
#include "common/net/zap.h"
#include <inttypes.h>
#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

enum {
    TURN_MAX = 256,       // Letters
    QUEUE_MAX = 4096,     // Frames that wait for one receiver (SNDHWM)
    DIALING_MAX = 4096,   // Connections that the kernel has accepted and we have not
    TURN_MS = 100,        // At most, if nothing arrives
    DESCRIPTORS_OWN = 64, // That are not connections
    ROOM_MAX = 65536,     // Connections at each socket
    SUBSCRIPTIONS_TURN_MAX = 1024
};

// ---- life ---------------------------------------------------------------------------------------

static void *new_socket(struct broker *self, int type, const struct curve_pair *own,
                        const char *domain)
{
    void *socket = net_socket_new(self->context, type, WIRE_FRAME_MAX, QUEUE_MAX);
    ensure(socket);
    zap_secure_server(socket, own, domain);
    net_set(socket, ZMQ_BACKLOG, DIALING_MAX); // After a restart every member connects at once
    if (type == ZMQ_XPUB) net_set(socket, ZMQ_XPUB_VERBOSE, 1);
    return socket;
}

static int bind_socket(struct broker *self, void *socket, unsigned port, struct why *why)
{
    char endpoint[128];
    snprintf(endpoint, sizeof endpoint, "tcp://%s:%u", self->bind, port);
    if (zmq_bind(socket, endpoint) == 0) return 0;
    const int error = zmq_errno(), rc = addresses_refuse(self->bind, error, why);
    if (rc < 0) return why_wrap(why, rc, "--bind");
    if (error != EADDRINUSE)
        return why_set(why, error == EACCES ? FAULT_DENIED : FAULT_UNAVAILABLE,
                       "cannot listen on %s: %s", endpoint, zmq_strerror(error));
    return why_set(why, FAULT_BUSY,
                   "cannot listen on %s: %s; another broker? choose --server-port, two ports in a "
                   "row",
                   endpoint, zmq_strerror(error));
}

static void watch_signals(struct broker *self)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    self->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    ensure(self->signals >= 0);
}

// Room for connections at each socket: half of the descriptors that the process may have.
static uint32_t find_room(void)
{
    uint32_t most = descriptors_raise();
    uint32_t room = most > 2 * DESCRIPTORS_OWN ? (most - DESCRIPTORS_OWN) / 2 : DESCRIPTORS_OWN / 2;
    return room < ROOM_MAX ? room : ROOM_MAX;
}

static void open_sockets(struct broker *self)
{
    struct curve_pair own;
    curve_of_broker(self->identity, &own);
    memcpy(self->server.bytes, own.public.bytes, KEY_BYTES);
    self->mail = new_socket(self, ZMQ_ROUTER, &own, "member");
    self->news = new_socket(self, ZMQ_XPUB, &own, "monitor");
    explicit_bzero(&own, sizeof own);
}

int broker_open(struct broker *self, struct why *why)
{
    watch_signals(self);
    self->office = calloc(1, sizeof *self->office);
    self->connections = broker_connections_new(find_room());
    self->backlog = backlog_new();
    self->context = net_context_new(1);
    ensure(self->office && self->context);
    self->instance = clock_unix_ms();
    randombytes_buf(self->callers.seed, sizeof self->callers.seed);
    // ZeroMQ numbers peers that choose no name, from a number that it draws with rand(), and aborts when a peer has
    // chosen that number as its name. So nobody may guess where the numbers begin.
    srand(randombytes_random());
    self->zap = zap_open(self->context);
    open_sockets(self);
    self->events[AT_MAIL] = descriptors_watch(self->context, self->mail);
    self->events[AT_NEWS] = descriptors_watch(self->context, self->news);
    ensure(self->events[AT_MAIL] && self->events[AT_NEWS]);
    int rc = bind_socket(self, self->mail, self->port, why);
    return rc < 0 ? rc : bind_socket(self, self->news, self->port + 1u, why);
}

void broker_close(struct broker *self)
{
    net_socket_close(&self->mail);
    net_socket_close(&self->news);
    for (int where = 0; where < WHERE_COUNT; where++) net_socket_close(&self->events[where]);
    net_socket_close(&self->zap);
    net_context_destroy(&self->context);
    for (uint32_t i = 0; i < self->bulletins_count; i++) free(self->bulletins[i].frame);
    connections_destroy(&self->connections);
    backlog_destroy(&self->backlog);
    admission_destroy(&self->admission);
    identity_destroy(&self->identity);
    free(self->seats);
    free(self->office);
}

// ---- the loop -----------------------------------------------------------------------------------

static void reload(struct broker *self)
{
    struct why why = { 0 };
    int rc = admission_reload(self->admission, &why);
    if (rc < 0) log_line(LOG_ERR, "gate.reload fault=%s reason=\"%s\"", fault_name(rc), why.text);
    else
        log_line(LOG_INFO, "gate.reload policy=%s keys=%u", self->admit,
                 admission_count(self->admission));
    if (rc == 0) broker_cut_unlisted(self);
}

// True: SIGTERM or SIGINT.
static bool take_signals(struct broker *self)
{
    struct signalfd_siginfo info;
    while (read(self->signals, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo != SIGHUP) return true;
        reload(self);
    }
    return false;
}

static void keep_house(struct broker *self, uint64_t now_ms)
{
    broker_sweep(self, now_ms);
    if (self->cut_ms && now_ms >= self->cut_ms) broker_cut_unlisted(self);
    if (now_ms < self->expire_ms) return;
    self->expire_ms = now_ms + 1000;
    post_office_expire(self->office, now_ms);
    sd_notify(0, "WATCHDOG=1");
    sd_notifyf(0,
               "STATUS=%u actors, %" PRIu64 " letters, %" PRIu64 " news, %u connections, %" PRIu64
               " refused, "
               "%" PRIu64 " cut",
               self->office->count, self->passed, self->published,
               connections_count(self->connections, AT_MAIL) +
                   connections_count(self->connections, AT_NEWS),
               self->refused, self->cut);
}

void broker_run(struct broker *self)
{
    char hex[KEY_HEX], server[KEY_HEX];
    log_line(LOG_INFO, "broker.ready mail=%s:%u admit=%s key=%s server_key=%s", self->bind,
             self->port, self->admit, key_to_hex(identity_key(self->identity), hex),
             key_to_hex(&self->server, server));
    sd_notify(0, "READY=1");
    for (;;) {
        zmq_pollitem_t items[] = {
            { .socket = self->mail, .events = ZMQ_POLLIN },
            { .socket = self->news, .events = ZMQ_POLLIN },
            { .socket = self->zap, .events = ZMQ_POLLIN },
            { .fd = self->signals, .events = ZMQ_POLLIN },
            { .socket = self->events[AT_MAIL], .events = ZMQ_POLLIN },
            { .socket = self->events[AT_NEWS], .events = ZMQ_POLLIN },
        };
        int rc = zmq_poll(items, 6, TURN_MS);
        ensure(rc >= 0 || errno == EINTR);
        if (items[3].revents && take_signals(self)) break;
        uint64_t now_ms = clock_ms();
        broker_mind_gate(self, now_ms);
        for (int n = 0; n < SUBSCRIPTIONS_TURN_MAX && broker_take_subscription(self, now_ms); n++)
            continue;
        for (int n = 0; n < TURN_MAX && broker_take_mail(self, now_ms); n++) continue;
        keep_house(self, now_ms);
    }
    log_line(LOG_INFO,
             "broker.ends letters=%" PRIu64 " news=%" PRIu64 " undeliverable=%" PRIu64
             " refused=%" PRIu64 " dropped=%" PRIu64 " "
             "cut=%" PRIu64,
             self->passed, self->published, self->undeliverable, self->refused, self->dropped,
             self->cut);
}
