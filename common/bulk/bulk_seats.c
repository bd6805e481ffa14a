// Connections, from accept to their end. One is a stranger until its handshake is done; a stranger that
// has named a guest's key is greeted, and crowded out last, since honest newcomers are among those. Then
// it sits with the others of its key. What has ended is freed after the events in hand, some of which may
// be about it.

#include "common/bulk/bulk_server_inside.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/net/tcp.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { HANDSHAKE_MS = 5000, ACCEPTS_MAX = 16, NO_ROOM_MS = 1000, TAKES_NOTHING_MS = 20000 };

static struct seats *seats_of(struct bulk_server *self, const struct seat *seat)
{
    return seat->asker ? &seat->asker->seats : seat->is_greeted ? &self->greeted : &self->strangers;
}

void bulk_seat_end(struct bulk_server *self, struct seat *seat, bool is_cut)
{
    struct asker *asker = seat->asker;
    TAILQ_REMOVE(seats_of(self, seat), seat, near);
    if (is_cut) bulk_line_cut(&seat->line);
    else bulk_line_close(&seat->line);
    seat->has_question = false;
    bulk_settle(self, seat, 0);
    if (asker) asker->count--;
    seat->asker = NULL;
    self->count--;
    TAILQ_INSERT_TAIL(&self->dead, seat, near);
}

void bulk_bury(struct bulk_server *self)
{
    struct seat *seat;
    while ((seat = TAILQ_FIRST(&self->dead))) {
        TAILQ_REMOVE(&self->dead, seat, near);
        free(seat);
    }
}

// ---- newcomers ----------------------------------------------------------------------------------

// Whether the address at the other end may have an answer that is signed.
static bool may_call(struct bulk_server *self, const struct key *key)
{
    const struct sockaddr_storage from = tcp_other_end(self->judged->line.fd);
    return callers_admit(&self->callers, (const struct sockaddr *)&from, key, clock_ms());
}

enum handshake_refusal bulk_judge_probe(void *arg, const struct handshake_party *from,
                                        const struct handshake_purpose *purpose)
{
    (void)from, (void)purpose;
    // mutant: bulk: any number of probes is answered
    return may_call(arg, NULL) ? HANDSHAKE_REFUSED_NONE : HANDSHAKE_REFUSED_BUSY;
}

// The cheapest first. The name of a guest is known to others: also a HELLO with it may come from
// anybody.
enum handshake_refusal bulk_judge(void *arg, const struct handshake_party *from,
                                  const struct handshake_purpose *purpose)
{
    struct bulk_server *self = arg;
    const struct asker *asker = bulk_find_asker(self, &from->key);
    if (!asker || !asker->is_guest) return HANDSHAKE_REFUSED_STRANGER;
    if (purpose->channel || purpose->channels || purpose->number) return HANDSHAKE_REFUSED_PURPOSE;
    if (!purpose->sealed && !tcp_is_loopback(self->judged->line.fd))
        return HANDSHAKE_REFUSED_PURPOSE;
    return may_call(self, &from->key) ? HANDSHAKE_REFUSED_NONE : HANDSHAKE_REFUSED_BUSY;
}

// False: all the room belongs to guests.
static bool make_room(struct bulk_server *self)
{
    struct seat *oldest = TAILQ_FIRST(&self->strangers);
    if (self->count < self->room) return true;
    if (!oldest) oldest = TAILQ_FIRST(&self->greeted);
    if (oldest) bulk_seat_end(self, oldest, true);
    return oldest;
}

void bulk_accept(struct bulk_server *self, uint64_t now_ms)
{
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        const int fd = tcp_accept(self->listener);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
            // The connection stays, and would wake us
            ensure(epoll_ctl(self->events, EPOLL_CTL_DEL, self->listener, NULL) == 0);
            self->accept_at_ms = now_ms + NO_ROOM_MS;
        }
        if (fd < 0) return;
        if (!make_room(self)) {
            close(fd);
            continue;
        }
        struct seat *seat = calloc(1, sizeof *seat);
        ensure(seat);
        struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                     .data.ptr = seat };
        bulk_line_accept(&seat->line, &self->self, fd);
        seat->accepted_ms = now_ms;
        TAILQ_INSERT_TAIL(&self->strangers, seat, near);
        self->count++;
        ensure(epoll_ctl(self->events, EPOLL_CTL_ADD, fd, &event) == 0);
    }
}

// Beyond its number of connections the oldest one of a key is cut off.
static void cut_crowd(struct bulk_server *self, struct asker *asker)
{
    struct seat *seat, *oldest = NULL;
    if (asker->count <= self->key_connections_max) return;
    TAILQ_FOREACH(seat, &asker->seats, near)
    if (!oldest || seat->accepted_ms < oldest->accepted_ms) oldest = seat;
    bulk_seat_end(self, oldest, true);
}

// Its key is proved. A while has passed since the HELLO.
static void take_seat(struct bulk_server *self, struct seat *seat, uint64_t now_ms)
{
    struct asker *asker = bulk_find_asker(self, &seat->line.key);
    if (!asker || !asker->is_guest) {
        bulk_seat_end(self, seat, true);
        return;
    }
    TAILQ_REMOVE(seats_of(self, seat), seat, near);
    seat->asker = asker;
    seat->moved_ms = now_ms;
    TAILQ_INSERT_TAIL(&asker->seats, seat, near);
    asker->count++;
    cut_crowd(self, asker);
}

static bool shake_hands(struct bulk_server *self, struct seat *seat, uint64_t now_ms)
{
    struct why why;
    self->judged = seat;
    const int rc = bulk_line_move(&seat->line, &why);
    if (rc < 0) bulk_seat_end(self, seat, false);
    else if (rc == 1) take_seat(self, seat, now_ms);
    else if (!seat->is_greeted && bulk_line_is_greeted(&seat->line)) {
        TAILQ_REMOVE(&self->strangers, seat, near);
        seat->is_greeted = true;
        TAILQ_INSERT_TAIL(&self->greeted, seat, near);
    }
    return seat->asker;
}

void bulk_seat_move(struct bulk_server *self, struct seat *seat, uint64_t now_ms)
{
    struct why why;
    if (seat->line.fd < 0) return; // It has ended since
    if (!seat->asker && !shake_hands(self, seat, now_ms)) return;
    bool goes_on = bulk_line_move(&seat->line, &why) == 1, is_sound = true;
    if (goes_on && !seat->has_question) {
        const enum bulk_heard heard = bulk_line_recv(&seat->line, &seat->mail, &why);
        is_sound = heard != BULK_MAIL || bulk_is_question(self, &seat->mail);
        seat->has_question = heard == BULK_MAIL && is_sound;
        if (seat->has_question) seat->purse = bulk_purse_of(self, &seat->mail);
        goes_on = heard != BULK_ENDED && is_sound;
    }
    if (goes_on) bulk_settle(self, seat, now_ms);
    else bulk_seat_end(self, seat, !is_sound);
}

// ---- now and then -------------------------------------------------------------------------------

static void end_late(struct bulk_server *self, const struct seats *seats, uint64_t now_ms)
{
    struct seat *seat, *next;
    for (seat = TAILQ_FIRST(seats); seat; seat = next) { // Not in the order in which they came
        next = TAILQ_NEXT(seat, near);
        if (now_ms >= seat->accepted_ms + HANDSHAKE_MS) bulk_seat_end(self, seat, true);
    }
}

static void look_at(struct bulk_server *self, struct asker *asker, uint64_t now_ms)
{
    struct seat *seat, *next;
    for (seat = TAILQ_FIRST(&asker->seats); seat; seat = next) {
        next = TAILQ_NEXT(seat, near);
        if (!asker->is_guest || (seat->counted && now_ms >= seat->moved_ms + TAKES_NOTHING_MS))
            bulk_seat_end(self, seat, true);
    }
    bulk_settle_asker(self, asker);
}

void bulk_look(struct bulk_server *self, uint64_t now_ms)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = &self->listener };
    struct asker *asker;
    if (now_ms < self->look_ms) return;
    self->look_ms = now_ms + BULK_LOOK_MS;
    if (self->accept_at_ms && now_ms >= self->accept_at_ms) {
        ensure(epoll_ctl(self->events, EPOLL_CTL_ADD, self->listener, &event) == 0);
        self->accept_at_ms = 0;
    }
    end_late(self, &self->strangers, now_ms);
    end_late(self, &self->greeted, now_ms);
    ensure(pthread_mutex_lock(&self->lock) == 0);
    for (int i = 0; i < BULK_BUCKETS; i++)
        LIST_FOREACH(asker, &self->buckets[i], bucket) look_at(self, asker, now_ms);
    ensure(pthread_mutex_unlock(&self->lock) == 0);
}

void bulk_end_all(struct bulk_server *self)
{
    struct seat *seat;
    struct asker *asker;
    while ((seat = TAILQ_FIRST(&self->strangers))) bulk_seat_end(self, seat, true);
    while ((seat = TAILQ_FIRST(&self->greeted))) bulk_seat_end(self, seat, true);
    for (int i = 0; i < BULK_BUCKETS; i++) LIST_FOREACH(asker, &self->buckets[i], bucket)
    while ((seat = TAILQ_FIRST(&asker->seats))) bulk_seat_end(self, seat, true);
    bulk_bury(self);
}
