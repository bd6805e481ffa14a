// The life of a group, its faults, and the one place where it sleeps.
//
// A window that is broken stays broken: the first fault is kept and given again by every call until
// group_form. The others are told (BREAK) on the control connections, and the channels are shut, so
// that behind the last byte an end is read and nobody waits for what will not come.

#include "common/group/group_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

// ---- life -----------------------------------------------------------------------------------

static int check(const struct group_options *options, struct why *why)
{
    if (options->connections < 1 || options->connections > GROUP_CONNECTIONS_MAX)
        return why_set(why, FAULT_RANGE, "connections = %u: write 1 to %d", options->connections,
                       GROUP_CONNECTIONS_MAX);
    return 0;
}

// FAULT_CONFIG of tcp_listen: it is no address at all.
static int listen_at(group_t *self, const char *bind, struct why *why)
{
    const int rc = tcp_listen(bind, why, &self->listener, &self->port);
    const bool is_public = rc != FAULT_CONFIG && !tcp_names_private(bind);
    return self->options.link == GROUP_PLAIN && is_public ? links_public(bind, why) : rc;
}

int group_new(const struct group_options *options, struct why *why, group_t **ret_group)
{
    int rc = check(options, why);
    if (rc < 0) return rc;
    group_t *self = calloc(1, sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "no memory for a group");
    self->options = *options;
    self->key = *identity_key(options->identity);
    self->self = (struct handshake_self){ .protocol = GROUP_PROTOCOL,
                                          .identity = options->identity,
                                          .run = hash_of(options->run, strlen(options->run)),
                                          .instance = options->instance,
                                          .judge = links_judge,
                                          .judge_arg = self };
    randombytes_buf(self->callers.seed, sizeof self->callers.seed);
    self->blame.member = UINT32_MAX;
    self->listener = -1;
    self->fault = FAULT_NOT_NOW;
    why_set(&self->why, 0, "no window has been formed");
    self->abort_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (self->abort_fd < 0)
        rc = why_set(why, fault_from_errno(errno), "an event of a group: %s", strerror(errno));
    if (rc == 0) rc = listen_at(self, options->bind, why);
    if (rc < 0) group_destroy(&self);
    else *ret_group = self;
    return rc;
}

void group_destroy(group_t **self_p)
{
    group_t *self = *self_p;
    if (!self) return;
    links_destroy(self);
    words_drop(self);
    free(self->told);
    free(self->slots);
    free(self->polls);
    free(self->waiters);
    if (self->listener >= 0) close(self->listener);
    if (self->abort_fd >= 0) close(self->abort_fd);
    free(self);
    *self_p = NULL;
}

uint16_t group_port(const group_t *self) { return self->port; }

void group_abort(group_t *self)
{
    const uint64_t one = 1;
    ensure(write(self->abort_fd, &one, sizeof one) == sizeof one || errno == EAGAIN);
}

// ---- faults ---------------------------------------------------------------------------------

const char *peer_name(const struct peer *peer, char text[PEER_NAME_MAX])
{
    char hex[KEY_HEX];
    key_to_hex(&peer->who.key, hex);
    if (peer->place == UINT32_MAX) snprintf(text, PEER_NAME_MAX, "%.8s", hex);
    else snprintf(text, PEER_NAME_MAX, "member %u (%.8s)", peer->place, hex);
    return text;
}

void peer_end(struct peer *peer, int fault, const char *format, ...)
{
    va_list args;
    if (peer->fault) return;
    peer->fault = fault;
    peer->dirty = true;
    peer->moved_ms = clock_ms();
    va_start(args, format);
    vsnprintf(peer->said, sizeof peer->said, format, args);
    va_end(args);
}

// Whether its process is dead: a new connection is refused.
static bool is_dead(group_t *self, struct peer *peer)
{
    int error;
    group_probe(self, &peer, 1, &error);
    return error == ECONNREFUSED;
}

int peer_why(group_t *self, struct peer *peer, struct why *ret_why, struct group_blame *ret_blame)
{
    char name[PEER_NAME_MAX];
    peer_name(peer, name);
    *ret_blame = (struct group_blame){ .member = UINT32_MAX };
    if (peer->fault && !(peer->fault == FAULT_UNREACHABLE && peer->broke)) {
        *ret_blame = (struct group_blame){ .member = peer->place };
        ret_blame->gone = peer->fault == FAULT_UNREACHABLE && is_dead(self, peer);
        return why_set(ret_why, peer->fault, "%s", peer->said);
    }
    if (!peer->broke)
        return why_set(ret_why, FAULT_UNREACHABLE, "%s is in window %" PRIu64 " already", name,
                       peer->formed);
    if (!peer->broke_for || peer->broke_for - 1 == self->place)
        return why_set(ret_why, FAULT_UNREACHABLE, "%s cannot go on%s", name,
                       peer->broke_for ? ": it lacks our bytes" : "");
    const uint32_t missing = peer->broke_for - 1;
    const bool dead = is_dead(self, self->members[missing]); // Its end may be on its way to us
    if (dead) *ret_blame = (struct group_blame){ .member = missing, .gone = true };
    return why_set(ret_why, FAULT_UNREACHABLE, "%s cannot go on: it lacks the bytes of member %u%s",
                   name, missing, dead ? ", which is dead" : "");
}

int group_break_for(group_t *self, struct peer *peer, struct why *why,
                    struct group_blame *ret_blame)
{
    struct why reason;
    struct group_blame blame;
    const int fault = peer_why(self, peer, &reason, &blame);
    return group_break(self, fault, blame.member, blame.gone, why, ret_blame, "%s", reason.text);
}

bool peer_has_left(const group_t *self, const struct peer *peer)
{
    return peer->fault || peer->broke || peer->formed > self->window;
}

int group_again(const group_t *self, struct why *why, struct group_blame *ret_blame)
{
    if (self->fault == 0) return 0;
    *ret_blame = self->blame;
    return why_set(why, self->fault, "%s", self->why.text);
}

int group_break(group_t *self, int fault, uint32_t member, bool gone, struct why *why,
                struct group_blame *ret_blame, const char *format, ...)
{
    const struct message message = { .kind = MESSAGE_BREAK,
                                     .window = self->window,
                                     .number = member == UINT32_MAX ? 0 : member + 1 };
    va_list args;
    ensure(self->fault == 0);
    va_start(args, format);
    vsnprintf(self->why.text, sizeof self->why.text, format, args);
    va_end(args);
    self->fault = fault;
    self->blame = (struct group_blame){ member, gone };
    if (fault == FAULT_TIMEOUT && member != UINT32_MAX) self->members[member]->silent = true;
    for (uint32_t m = 0; m < self->member_count; m++) {
        struct peer *peer = self->members[m];
        if (!peer) continue;
        if (peer->control.fd >= 0) control_say(self, peer, &message, NULL);
        for (uint32_t c = 0; c < self->options.connections; c++)
            if (peer->channels[c].fd >= 0) shutdown(peer->channels[c].fd, SHUT_WR);
    }
    return group_again(self, why, ret_blame);
}

// ---- messages -------------------------------------------------------------------------------

void message_pack(const struct message *self, uint8_t ret_bytes[HEAD_BYTES])
{
    ret_bytes[0] = (uint8_t)self->kind;
    ret_bytes[1] = (uint8_t)self->node;
    le_put(ret_bytes + 2, self->record, 2);
    le_put(ret_bytes + 4, self->length, 4);
    le_put(ret_bytes + 8, self->window, 8);
    le_put(ret_bytes + 16, self->number, 8);
    le_put(ret_bytes + 24, self->offset, 8);
}

void message_unpack(const uint8_t bytes[HEAD_BYTES], struct message *ret_message)
{
    *ret_message = (struct message){ .kind = bytes[0],
                                     .node = bytes[1],
                                     .record = (uint32_t)le_get(bytes + 2, 2),
                                     .length = (uint32_t)le_get(bytes + 4, 4),
                                     .window = le_get(bytes + 8, 8),
                                     .number = le_get(bytes + 16, 8),
                                     .offset = le_get(bytes + 24, 8) };
}

// ---- sleeping -------------------------------------------------------------------------------

enum waiter_kind {
    WAITS_ABORT,
    WAITS_CALLED,
    WAITS_LISTENER,
    WAITS_ATTEMPT,
    WAITS_CONTROL,
    WAITS_CHANNEL,
    WAITS_PROBE
};

struct waiter {
    enum waiter_kind kind;
    void *what;
};

static void watch(group_t *self, int fd, short events, enum waiter_kind kind, void *what)
{
    if (fd < 0) return;
    if (self->poll_count == self->poll_room) {
        self->poll_room = self->poll_room ? 2 * self->poll_room : 64;
        self->polls = realloc(self->polls, self->poll_room * sizeof *self->polls);
        self->waiters = realloc(self->waiters, self->poll_room * sizeof *self->waiters);
        ensure(self->polls && self->waiters);
    }
    self->polls[self->poll_count] = (struct pollfd){ .fd = fd, .events = events };
    self->waiters[self->poll_count++] = (struct waiter){ kind, what };
}

static void watch_channel(group_t *self, struct channel *channel)
{
    const bool writes = channel->iov_count || channel->piped || channel->from_left;
    // A held message waits in the socket; a connection that hung up behind it would only wake us.
    if (channel->held && channel->hung_up) return;
    watch(self, channel->fd, (short)((channel->held ? 0 : POLLIN) | (writes ? POLLOUT : 0)),
          WAITS_CHANNEL, channel);
}

static void watch_links(group_t *self)
{
    self->poll_count = 0;
    if (links_may_accept(self)) watch(self, self->listener, POLLIN, WAITS_LISTENER, NULL);
    for (struct attempt *a = self->attempts; a; a = a->next)
        watch(self, a->fd, a->stands ? handshake_events(&a->handshake) : POLLOUT, WAITS_ATTEMPT, a);
}

static bool is_called(const group_t *self)
{
    return self->options.called && !self->hears_out &&
           self->options.called(self->options.called_arg);
}

static void watch_called(group_t *self)
{
    if (self->options.called && !self->hears_out)
        watch(self, self->options.called_fd, POLLIN, WAITS_CALLED, NULL);
}

static void watch_all(group_t *self, bool channels)
{
    watch_links(self);
    watch_called(self);
    watch(self, self->abort_fd, POLLIN, WAITS_ABORT, NULL);
    for (uint32_t i = 0; i < self->peer_count; i++) {
        struct peer *peer = self->peers[i];
        watch(self, peer->control.fd, (short)(POLLIN | (peer->control.out_count ? POLLOUT : 0)),
              WAITS_CONTROL, peer);
        for (uint32_t c = 0; channels && peer->place != UINT32_MAX && c < self->options.connections;
             c++)
            watch_channel(self, &peer->channels[c]);
    }
}

static void mark_channel(struct channel *channel, short events)
{
    if (events & (POLLHUP | POLLERR)) channel->hung_up = true;
    if (events & (POLLIN | POLLHUP | POLLERR)) channel->may_read = true;
    if (events & (POLLOUT | POLLERR)) channel->may_write = true;
}

static void serve_control(group_t *self, struct peer *peer, short events)
{
    if (events & POLLOUT) control_write(peer);
    if (peer->control.fd >= 0 && events & ~POLLOUT) {
        peer->control.may_read = true;
        control_read(self, peer);
    }
}

// Attempts and peers may go away while they are served; nothing is served twice, and the kinds
// come in the order in which they were watched.
static bool serve(group_t *self)
{
    bool called = false;
    uint64_t count;
    for (size_t i = 0; i < self->poll_count; i++) {
        const short events = self->polls[i].revents;
        struct waiter waiter = self->waiters[i];
        if (!events) continue;
        switch (waiter.kind) {
        case WAITS_ABORT:
            called |= read(self->abort_fd, &count, sizeof count) == sizeof count;
            break;
        case WAITS_CALLED: called |= is_called(self); break;
        case WAITS_LISTENER: break; // Last: it changes the list of attempts
        case WAITS_ATTEMPT: links_move(self, waiter.what); break;
        case WAITS_CONTROL: serve_control(self, waiter.what, events); break;
        case WAITS_CHANNEL: mark_channel(waiter.what, events); break;
        case WAITS_PROBE: break;
        }
    }
    for (size_t i = 0; i < self->poll_count; i++)
        if (self->waiters[i].kind == WAITS_LISTENER && self->polls[i].revents) links_accept(self);
    return called;
}

static int ms_until(uint64_t at_ms)
{
    const uint64_t now_ms = clock_ms();
    return at_ms <= now_ms ? 0 : at_ms - now_ms > 60000 ? 60000 : (int)(at_ms - now_ms);
}

int group_wait(group_t *self, uint64_t until_ms, bool channels, struct why *why)
{
    links_begin_due(self);
    if (is_called(self)) return why_set(why, FAULT_INTERRUPTED, "called away");
    const uint64_t due_ms = links_next_ms(self);
    watch_all(self, channels);
    const int rc =
        poll(self->polls, self->poll_count, ms_until(due_ms < until_ms ? due_ms : until_ms));
    ensure(rc >= 0 || errno == EINTR);
    if (rc > 0 && serve(self)) return why_set(why, FAULT_INTERRUPTED, "called away");
    return 0;
}

// ---- whether a process is there --------------------------------------------------------------

static bool is_probing(const struct tcp_probe *probes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (probes[i].fd >= 0) return true;
    return false;
}

// Moves the probes until all are over, or their time is. Handshakes are served meanwhile: the others may probe us.
// `calls`: it ends early if the caller is called away.
static void move_probes(group_t *self, struct tcp_probe *probes, uint32_t count, bool calls)
{
    const uint64_t until_ms = clock_ms() + PROBE_MS;
    bool called = calls && is_called(self);
    while (!called && is_probing(probes, count) && clock_ms() < until_ms) {
        watch_links(self);
        if (calls) watch_called(self);
        for (uint32_t i = 0; i < count; i++)
            watch(self, probes[i].fd, tcp_probe_events(&probes[i]), WAITS_PROBE, NULL);
        const int rc = poll(self->polls, self->poll_count, ms_until(until_ms));
        ensure(rc >= 0 || errno == EINTR);
        if (rc > 0) serve(self);
        for (uint32_t i = 0; i < count; i++) tcp_probe_move(&probes[i]);
        called = calls && is_called(self);
    }
    for (uint32_t i = 0; i < count; i++) tcp_probe_end(&probes[i]);
}

void group_probe(group_t *self, struct peer *const *peers, uint32_t count, int *ret_errors)
{
    struct tcp_probe probes[GROUP_MEMBERS_MAX];
    for (uint32_t i = 0; i < count; i++) tcp_probe_begin(&probes[i], peers[i]->who.endpoint);
    move_probes(self, probes, count, true);
    for (uint32_t i = 0; i < count; i++) ret_errors[i] = probes[i].error;
}

// Reads what came over the control connections: a link may have ended, and nobody has seen it yet.
static void look_at_controls(group_t *self)
{
    self->poll_count = 0;
    for (uint32_t m = 0; m < self->member_count; m++)
        if (self->members[m])
            watch(self, self->members[m]->control.fd, POLLIN, WAITS_CONTROL, self->members[m]);
    if (poll(self->polls, self->poll_count, 0) > 0) serve(self);
}

uint64_t group_dead(group_t *self)
{
    struct tcp_probe probes[GROUP_MEMBERS_MAX];
    uint32_t places[GROUP_MEMBERS_MAX], count = 0;
    uint64_t dead = 0;
    look_at_controls(self);
    for (uint32_t m = 0; m < self->member_count; m++) {
        const struct peer *peer = self->members[m];
        if (!peer || !peer->was_linked || peer->control.fd >= 0) continue;
        tcp_probe_begin(&probes[count], peer->who.endpoint);
        places[count++] = m;
    }
    move_probes(self, probes, count, false);
    for (uint32_t i = 0; i < count; i++)
        if (probes[i].error == ECONNREFUSED) dead |= (uint64_t)1 << places[i];
    return dead;
}
