// reach_shell -- each try is a connection at the place that reach gave it, on which a probe of
// common/net/handshake.h goes on until the key is proved or somebody hangs up.

#include "actors/coordinator/reach_shell.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/base/log.h"
#include "common/bulk/bulk_line.h"
#include "common/net/handshake.h"
#include "common/net/knock.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 16,
    TIMER = REACH_PLACES
}; // Events are known by their place; the timer's is none

struct connection {
    int fd;
    bool is_made;
    struct handshake handshake;
};

struct reach_shell {
    reach_tell_fn *tell;
    void *arg;
    struct handshake_self self;
    int events, timer;
    struct reach reach;
    struct connection connections[REACH_PLACES];
};

// ---- life ---------------------------------------------------------------------------------------

int reach_shell_new(const struct identity *identity, const char *run, reach_tell_fn *tell,
                    void *arg, struct why *why, struct reach_shell **ret_shell)
{
    struct reach_shell *self = calloc(1, sizeof *self);
    struct epoll_event timer = { .events = EPOLLIN, .data.u32 = TIMER };
    ensure(self);
    self->tell = tell;
    self->self = bulk_line_self(identity, run);
    self->arg = arg;
    self->events = epoll_create1(EPOLL_CLOEXEC);
    self->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (self->events < 0 || self->timer < 0 ||
        epoll_ctl(self->events, EPOLL_CTL_ADD, self->timer, &timer) != 0) {
        const int error = errno;
        reach_shell_destroy(&self);
        return why_set(why, FAULT_BUSY, "no descriptor is left to try addresses: %s",
                       strerror(error));
    }
    *ret_shell = self;
    return 0;
}

void reach_shell_destroy(struct reach_shell **self_p)
{
    struct reach_shell *self = *self_p;
    if (!self) return;
    for (uint32_t i = 0; i < REACH_PLACES; i++)
        if (self->connections[i].fd > 0) close(self->connections[i].fd);
    if (self->timer >= 0) close(self->timer);
    if (self->events >= 0) close(self->events);
    free(self);
    *self_p = NULL;
}

int reach_shell_fd(const struct reach_shell *self) { return self->events; }

// ---- a try --------------------------------------------------------------------------------------

static void arm(struct reach_shell *self)
{
    const uint64_t due_ms = reach_due_ms(&self->reach), now_ms = clock_ms();
    struct itimerspec in = { 0 }; // All zero: never
    if (due_ms != UINT64_MAX) {
        const uint64_t left_ms = due_ms > now_ms ? due_ms - now_ms : 1;
        in.it_value.tv_sec = (time_t)(left_ms / 1000);
        in.it_value.tv_nsec = (long)(left_ms % 1000) * 1000000;
    }
    ensure(timerfd_settime(self->timer, 0, &in, NULL) == 0);
}

static void finish(struct reach_shell *self, uint32_t place, enum reach_end end, int error)
{
    struct connection *connection = &self->connections[place];
    struct reach_answer answer;
    if (connection->fd > 0) close(connection->fd);
    *connection = (struct connection){ 0 };
    reach_end(&self->reach, place, end, error, clock_ms(), &answer);
    if (answer.kind == FRAME_REFUSED)
        log_line(LOG_INFO, "address.refused to=%s %s", answer.to, answer.refused.text);
    self->tell(self->arg, &answer);
}

static void try(struct reach_shell *self, uint32_t at)
{
    const struct reach_place *place = &self->reach.places[at];
    struct connection *connection = &self->connections[at];
    struct epoll_event event = { .events = EPOLLOUT, .data.u32 = at };
    const struct handshake_party asker = { .key = place->key };
    const struct handshake_purpose purpose = { .probe = true };
    handshake_connect(&connection->handshake, &self->self, &asker, &purpose);
    int error = knock_begin(place->endpoint, &connection->fd);
    if (error == 0 && epoll_ctl(self->events, EPOLL_CTL_ADD, connection->fd, &event) != 0)
        error = errno;
    if (error != 0) finish(self, at, REACH_FAILED, error);
}

static void hear(struct reach_shell *self, uint32_t at)
{
    struct connection *connection = &self->connections[at];
    struct why why;
    const int rc = handshake_move(&connection->handshake, connection->fd, &why);
    const bool is_busy =
        rc == FAULT_DENIED && connection->handshake.refusal == HANDSHAKE_REFUSED_BUSY;
    if (rc != 0) finish(self, at, rc == 1 ? REACH_PROVED : is_busy ? REACH_BUSY : REACH_OTHER, 0);
}

// It is made, or cannot be.
static void greet(struct reach_shell *self, uint32_t at)
{
    struct connection *connection = &self->connections[at];
    struct epoll_event event = { .events = EPOLLIN, .data.u32 = at };
    int error = 0;
    socklen_t size = sizeof error;
    ensure(getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0);
    if (error != 0) {
        finish(self, at, REACH_FAILED, error);
        return;
    }
    connection->is_made = true;
    ensure(epoll_ctl(self->events, EPOLL_CTL_MOD, connection->fd, &event) == 0);
    hear(self, at); // Its HELLO fits into the buffer of a new connection
}

// ---- events -------------------------------------------------------------------------------------

void reach_shell_hear(struct reach_shell *self, const struct msg *in)
{
    struct reach_answer answer;
    uint32_t place;
    switch (reach_hear(&self->reach, in, &place, &answer)) {
    case REACH_TRY: try(self, place); break;
    case REACH_SAYS: self->tell(self->arg, &answer); break;
    case REACH_NOTHING: break;
    }
    arm(self);
}

bool reach_shell_holds_back(const struct reach_shell *self, const struct msg *in)
{
    return reach_holds_back(&self->reach, &in->sender, in->now_ms);
}

void reach_shell_take(struct reach_shell *self)
{
    struct epoll_event events[EVENTS_MAX];
    uint32_t late;
    if (self->reach.tries == 0) return;
    const int count = epoll_wait(self->events, events, EVENTS_MAX, 0);
    for (int i = 0; i < count; i++) {
        const uint32_t at = events[i].data.u32;
        if (at == TIMER || !self->reach.places[at].is_tried) continue;
        if (self->connections[at].is_made) hear(self, at);
        else greet(self, at);
    }
    while ((late = reach_late(&self->reach, clock_ms())) < REACH_PLACES) {
        const bool is_made = self->connections[late].is_made;
        finish(self, late, is_made ? REACH_LATE : REACH_FAILED, ETIMEDOUT);
    }
    arm(self); // Also takes the timer's event away
}
