// bulk_server -- one thread, one loop: hear what moved, give some answers in turns, look after the
// seats. An asker is in the ring of turns as long as one of its connections has a question whose
// answer has room and can be paid for. One whose purse is empty is looked at again with the seats.
// Reading samples blocks the thread.

#include "common/bulk/bulk_server.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/bulk/bulk_server_inside.h"
#include "common/net/addresses.h"
#include "common/net/descriptors.h"
#include "common/net/tcp.h"
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { EVENTS_MAX = 64, ANSWERS_MAX = 16 };

// ---- whose turn it is -----------------------------------------------------------------------

// One key may take a fixed fraction of what is free, so that something is left for the next key,
// however many take their full share (Choudhury and Hahne, "Dynamic queue length thresholds",
// 1998).
static uint64_t share(const struct bulk_server *self)
{
    const uint64_t taken = self->waiting < BULK_WAITING_MAX ? self->waiting : BULK_WAITING_MAX;
    return (BULK_WAITING_MAX - taken) / BULK_WAITING_SHARES;
}

static bool has_room(const struct bulk_server *self) { return self->waiting < BULK_WAITING_MAX; }

// The connection of an asker whose question is answered next; NULL: none has a question, room, and
// something left in the purse for it.
static struct seat *next_seat(const struct bulk_server *self, const struct asker *asker)
{
    struct seat *seat;
    if (asker->waiting > 0 && asker->waiting >= share(self)) return NULL;
    TAILQ_FOREACH(seat, &asker->seats, near)
    // mutant: bulk: an asker may have the same without end
    if (seat->has_question && seat->line.out_bytes <= BULK_LINE_WAITING &&
        bulk_may_have(self, seat, clock_ms()))
        return seat;
    return NULL;
}

void bulk_settle_asker(struct bulk_server *self, struct asker *asker)
{
    if (next_seat(self, asker)) turns_add(&self->turns, &asker->turn);
    else turns_remove(&self->turns, &asker->turn);
}

void bulk_settle(struct bulk_server *self, struct seat *seat, uint64_t now_ms)
{
    struct asker *asker = seat->asker;
    const size_t waits = seat->line.out_bytes;
    if (!asker) return;
    if (waits < seat->counted || seat->counted == 0) seat->moved_ms = now_ms;
    asker->waiting += waits - seat->counted; // Modulo 2^64: may be less
    self->waiting += waits - seat->counted;
    seat->counted = waits;
    bulk_settle_asker(self, asker);
}

// Answers the question of the asker whose turn it is.
static void answer_one(struct bulk_server *self, struct asker *asker, uint64_t now_ms)
{
    struct seat *seat = next_seat(self, asker);
    if (!seat || !asker->is_guest) {
        if (seat) bulk_seat_end(self, seat, true);
        bulk_settle_asker(self, asker);
        return;
    }
    const uint64_t began_us = clock_us();
    const uint64_t bytes = bulk_answer(self, seat);
    // The time to read and hash an answer is charged too: it keeps the others waiting as its bytes do
    turns_charge(&asker->turn, bytes + (clock_us() - began_us) * BULK_BYTES_A_US);
    seat->has_question = false;
    TAILQ_REMOVE(&asker->seats, seat, near); // Its other connections come first
    TAILQ_INSERT_TAIL(&asker->seats, seat, near);
    bulk_settle(self, seat, now_ms);
    bulk_seat_move(self, seat, now_ms); // Sends, and takes its next question
}

static void answer_some(struct bulk_server *self)
{
    struct waiter *waiter;
    for (int n = 0; n < ANSWERS_MAX && has_room(self) && (waiter = turns_next(&self->turns)); n++)
        answer_one(self, (struct asker *)waiter, clock_ms());
}

// ---- the loop -------------------------------------------------------------------------------

static int timeout_ms(const struct bulk_server *self)
{
    if (self->turns.now && has_room(self)) return 0;
    return self->count > 0 || self->accept_at_ms ? BULK_LOOK_MS : -1;
}

// The peer has: nobody waits for what it had asked.
static void hang_up(struct bulk_server *self, struct seat *seat)
{
    if (seat->line.fd >= 0) bulk_seat_end(self, seat, false);
}

static void *serve(void *arg)
{
    struct bulk_server *self = arg;
    struct epoll_event events[EVENTS_MAX];
    for (;;) {
        const int count = epoll_wait(self->events, events, EVENTS_MAX, timeout_ms(self));
        const uint64_t now_ms = clock_ms();
        for (int i = 0; i < count; i++) {
            void *what = events[i].data.ptr;
            if (what == &self->stop) return NULL;
            if (what == &self->listener) bulk_accept(self, now_ms);
            else if (events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) hang_up(self, what);
            else bulk_seat_move(self, what, now_ms);
        }
        answer_some(self);
        bulk_look(self, now_ms);
        bulk_bury(self);
    }
}

// ---- guests ---------------------------------------------------------------------------------

static struct bulk_bucket *bucket_of(struct bulk_server *self, const struct key *key)
{
    uint32_t number;
    memcpy(&number, key->bytes, sizeof number); // Key bytes are as good as random
    return &self->buckets[number % BULK_BUCKETS];
}

static struct asker *find(struct bulk_server *self, const struct key *key)
{
    struct asker *asker;
    LIST_FOREACH(asker, bucket_of(self, key), bucket)
    if (key_equal(&asker->key, key)) return asker;
    return NULL;
}

struct asker *bulk_find_asker(struct bulk_server *self, const struct key *key)
{
    ensure(pthread_mutex_lock(&self->lock) == 0);
    struct asker *asker = find(self, key);
    ensure(pthread_mutex_unlock(&self->lock) == 0);
    return asker;
}

void bulk_server_admit(bulk_server_t *self, const struct key *key, bool is_guest)
{
    ensure(pthread_mutex_lock(&self->lock) == 0);
    struct asker *asker = find(self, key);
    if (asker) asker->is_guest = is_guest;
    if (!asker && is_guest) {
        asker = calloc(1, sizeof *asker);
        ensure(asker);
        asker->key = *key;
        asker->is_guest = true;
        TAILQ_INIT(&asker->seats);
        LIST_INSERT_HEAD(bucket_of(self, key), asker, bucket);
    }
    ensure(pthread_mutex_unlock(&self->lock) == 0);
}

// ---- its life -------------------------------------------------------------------------------

static int refuse_endpoint(const char *endpoint, struct why *why)
{
    return why_set(why, FAULT_CONFIG,
                   "bulk endpoint '%s': must be tcp://ADDRESS:PORT, PORT 1..65535 or *; not bound",
                   endpoint);
}

static bool is_port(const char *text)
{
    char *end;
    if (strcmp(text, "*") == 0) return true;
    const long number = strtol(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == 0 && number >= 1 && number <= 65535;
}

// The address in numbers and the port, as tcp_listen takes them.
static bool read_endpoint(const char *endpoint, char ret_host[TCP_ADDRESS_MAX],
                          const char **ret_port)
{
    char named[ADDRESSES_TEXT_MAX];
    const char *host = strncmp(endpoint, "tcp://", 6) == 0 ? endpoint + 6 : NULL;
    const char *port = host ? strrchr(host, ':') : NULL;
    if (!port || port == host || port - host >= TCP_ADDRESS_MAX || !is_port(port + 1)) return false;
    *ret_port = strcmp(port + 1, "*") == 0 ? "0" : port + 1;
    snprintf(ret_host, TCP_ADDRESS_MAX, "%.*s", (int)(port - host), host);
    if (strcmp(ret_host, "*") == 0) snprintf(ret_host, TCP_ADDRESS_MAX, "0.0.0.0");
    if (addresses_of_interface(ret_host, named))
        snprintf(ret_host, TCP_ADDRESS_MAX, strchr(named, ':') ? "[%s]" : "%s", named);
    return true;
}

static int listen_at(struct bulk_server *self, struct why *why)
{
    char host[TCP_ADDRESS_MAX], place[TCP_ADDRESS_MAX + 8];
    const char *port, *wanted = self->options.endpoint;
    uint16_t bound;
    if (!read_endpoint(wanted, host, &port)) return refuse_endpoint(wanted, why);
    snprintf(place, sizeof place, "%s:%s", host, port);
    const int rc = tcp_listen(place, why, &self->listener, &bound);
    if (rc < 0) return why_wrap(why, rc, "bulk endpoint '%s'", wanted);
    snprintf(self->endpoint, sizeof self->endpoint, "tcp://%s:%" PRIu16, host, bound);
    return 0;
}

static int open_events(struct bulk_server *self, struct why *why)
{
    struct epoll_event listener = { .events = EPOLLIN, .data.ptr = &self->listener };
    struct epoll_event stop = { .events = EPOLLIN, .data.ptr = &self->stop };
    self->events = epoll_create1(EPOLL_CLOEXEC);
    self->stop = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (self->events >= 0 && self->stop >= 0 &&
        epoll_ctl(self->events, EPOLL_CTL_ADD, self->listener, &listener) == 0 &&
        epoll_ctl(self->events, EPOLL_CTL_ADD, self->stop, &stop) == 0)
        return 0;
    return why_set(why, fault_from_errno(errno), "bulk server: %s", strerror(errno));
}

// Signals are for the main thread.
static void start_thread(struct bulk_server *self)
{
    sigset_t all, before;
    sigfillset(&all);
    ensure(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    ensure(pthread_create(&self->thread, NULL, serve, self) == 0);
    ensure(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
}

static void free_all(struct bulk_server *self)
{
    struct asker *asker;
    bulk_end_all(self);
    for (int i = 0; i < BULK_BUCKETS; i++)
        while ((asker = LIST_FIRST(&self->buckets[i]))) {
            LIST_REMOVE(asker, bucket);
            free(asker);
        }
    if (self->listener >= 0) close(self->listener);
    if (self->events >= 0) close(self->events);
    if (self->stop >= 0) close(self->stop);
    pthread_mutex_destroy(&self->lock);
    free(self->run);
    free(self);
}

int bulk_server_new(const struct bulk_server_options *options, struct why *why,
                    bulk_server_t **ret_self)
{
    if (strlen(options->run) > WIRE_RUN_MAX ||
        (options->answer && (options->seq_len == 0 || options->seq_len >= BULK_SAMPLES_BYTES / 4)))
        return why_set(why, FAULT_RANGE,
                       "bulk server: run of %zu bytes (allowed 0..%d), seq_len %" PRIu32
                       " (1..%d); not started",
                       strlen(options->run), WIRE_RUN_MAX, options->seq_len,
                       BULK_SAMPLES_BYTES / 4 - 1);
    struct bulk_server *self = calloc(1, sizeof *self);
    ensure(self && (self->run = strdup(options->run)));
    ensure(pthread_mutex_init(&self->lock, NULL) == 0);
    self->options = *options;
    self->self = bulk_line_self(options->identity, options->run);
    self->self.judge = bulk_judge;
    self->self.judge_probe = bulk_judge_probe;
    self->self.judge_arg = self;
    self->listener = self->events = self->stop = -1;
    self->room = descriptors_raise() / 2;
    const uint32_t most = self->room / 8 ? self->room / 8 : 1;
    self->key_connections_max = most < BULK_KEY_CONNECTIONS_MAX ? most : BULK_KEY_CONNECTIONS_MAX;
    self->turns.quantum = BULK_TURN_BYTES;
    randombytes_buf(self->callers.seed, sizeof self->callers.seed);
    TAILQ_INIT(&self->strangers);
    TAILQ_INIT(&self->greeted);
    TAILQ_INIT(&self->dead);
    int rc = listen_at(self, why);
    if (rc == 0) rc = open_events(self, why);
    if (rc < 0) {
        free_all(self);
        return rc;
    }
    start_thread(self);
    *ret_self = self;
    return 0;
}

void bulk_server_destroy(bulk_server_t **self_p)
{
    struct bulk_server *self = *self_p;
    if (!self) return;
    ensure(eventfd_write(self->stop, 1) == 0);
    ensure(pthread_join(self->thread, NULL) == 0);
    free_all(self);
    *self_p = NULL;
}

const char *bulk_server_endpoint(const bulk_server_t *self) { return self->endpoint; }
