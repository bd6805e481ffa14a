// group_form: each member says FORM on the control connections once it is in the window, and waits
// for the FORM of all others. So no message of a window reaches a member that is not in it. If
// either end of a link says that its channels may hold half a message, or that one has ended, both
// close those of earlier windows, and connect new ones.

#include "common/group/group_inside.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>

enum { PROBE_AFTER_MS = 100 }; // The other end should have connected by then: is it there at all?

static int take_members(group_t *self, const struct group_member *members, uint32_t count,
                        uint32_t place, struct why *why, struct group_blame *ret_blame)
{
    for (uint32_t i = 0; i < self->peer_count; i++) self->peers[i]->place = UINT32_MAX;
    for (uint32_t m = 0; m < count; m++) {
        if (m == place) continue;
        ensure(!key_equal(&members[m].key, &self->key));
        const int rc = links_check(self, &members[m], why);
        struct peer *peer = links_find(self, &members[m].key, members[m].instance);
        *ret_blame = (struct group_blame){ .member = m };
        if (rc < 0) return rc;
        if (!peer && self->peer_count == PEERS_MAX) {
            links_drop_others(self); // Members so far have a place
            ensure(self->peer_count < PEERS_MAX);
        }
        if (!peer) peer = links_peer_new(self, &members[m]);
        memcpy(peer->who.endpoint, members[m].endpoint, sizeof peer->who.endpoint);
        peer->place = m;
        self->members[m] = peer;
    }
    links_drop_others(self);
    return 0;
}

// Channels are read in a sum of their member, and nowhere else.
static void close_channels(const group_t *self, struct peer *peer)
{
    for (uint32_t c = 0; c < self->options.connections; c++) {
        peer->dirty |= peer->channels[c].fd >= 0;
        channel_close(&peer->channels[c]);
        free(peer->channels[c].room);
        peer->channels[c].room = NULL;
    }
}

static void begin(group_t *self)
{
    const uint64_t now_ms = clock_ms();
    words_drop(self);
    for (uint32_t i = 0; i < self->peer_count; i++) {
        struct peer *peer = self->peers[i];
        peer->dirty |= self->fault != 0 || peer->broke || talk_is_under_way(peer);
        talk_end(peer);
        if (peer->silent) control_close(peer); // It may lead nowhere: another one takes its place
        if (peer->silent || peer->place == UINT32_MAX) close_channels(self, peer);
        peer->fault = peer->form_fault = 0;
        peer->broke = peer->form_said = peer->renewed = peer->end_told = peer->silent = false;
        peer->done = 0;
        peer->idle_messages = 0;
        peer->pause_ms = 0;
        peer->retry_at_ms = 0;
        peer->probe_at_ms = now_ms + PROBE_AFTER_MS;
    }
    self->fault = 0;
    self->traffic = TRAFFIC_NONE;
    self->blame = (struct group_blame){ .member = UINT32_MAX };
    self->done_before = self->done;
    self->next_sum = self->done = 0;
    self->form_ms = now_ms;
}

// Whether we are to connect a channel of a member (0: its control connection), and have not begun.
static bool is_to_connect(const group_t *self, const struct peer *peer, uint32_t channel)
{
    const int fd = channel ? peer->channels[channel - 1].fd : peer->control.fd;
    return peer->we_connect && fd < 0 && !links_is_attempted(self, peer, channel);
}

// Asks whether those are there at all that should have connected by now. All at once: one that does not answer
// takes the time of nobody else.
static void probe_due(group_t *self)
{
    const uint64_t now_ms = clock_ms();
    struct peer *due[GROUP_MEMBERS_MAX];
    int errors[GROUP_MEMBERS_MAX];
    uint32_t count = 0;
    for (uint32_t m = 0; m < self->member_count; m++) {
        struct peer *peer = self->members[m];
        if (peer && !peer->we_connect && peer->control.fd < 0 && now_ms >= peer->probe_at_ms)
            due[count++] = peer;
    }
    if (count == 0) return;
    group_probe(self, due, count, errors);
    for (uint32_t i = 0; i < count; i++) {
        struct why why = { 0 };
        due[i]->probe_at_ms = errors[i] ? clock_ms() + PROBE_AFTER_MS : UINT64_MAX;
        if (errors[i] == 0) continue;
        why_set(&why, 0, "%s", strerror(errors[i]));
        links_refuse(due[i], FAULT_UNREACHABLE, links_refuses(self, due[i], errors[i]), &why);
    }
}

static bool has_channels(const group_t *self, const struct peer *peer)
{
    for (uint32_t c = 0; c < self->options.connections; c++)
        if (peer->channels[c].fd < 0) return false;
    return true;
}

// A sum that only one of the two had begun may have left whole messages there: a member without
// samples is not waited for, so the others may be done with a sum whose parts it has never read.
static bool is_dirty(const group_t *self, const struct peer *peer)
{
    return peer->dirty || peer->formed_dirty || peer->left_sums != self->done_before;
}

static void connect_channels(group_t *self, struct peer *peer, uint64_t now_ms)
{
    if (!peer->renewed && is_dirty(self, peer))
        for (uint32_t c = 0; c < self->options.connections; c++)
            if (peer->channels[c].window < self->window) channel_close(&peer->channels[c]);
    peer->renewed = true;
    for (uint32_t c = 1; c <= self->options.connections; c++)
        if (now_ms >= peer->retry_at_ms && is_to_connect(self, peer, c))
            links_connect(self, peer, c);
}

uint64_t form_next_ms(const group_t *self, const struct peer *peer)
{
    if (!self->forming || peer->place == UINT32_MAX) return UINT64_MAX;
    if (!peer->we_connect && peer->control.fd < 0) return peer->probe_at_ms;
    if (is_to_connect(self, peer, 0)) return peer->retry_at_ms;
    for (uint32_t c = 1; peer->formed == self->window && c <= self->options.connections; c++)
        if (is_to_connect(self, peer, c)) return peer->retry_at_ms;
    return UINT64_MAX;
}

// A channel may have ended since the last window, and nobody has read that yet.
static void close_ended(const group_t *self, struct peer *peer)
{
    for (uint32_t c = 0; c < self->options.connections; c++) {
        struct channel *channel = &peer->channels[c];
        char byte;
        const ssize_t n =
            channel->fd < 0 ? 1 : recv(channel->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        if (n > 0 || (n < 0 && errno == EAGAIN)) continue;
        channel_close(channel);
        peer->dirty = true;
    }
}

// One step further with the link to a member. True: it stands, and the member is in the window.
static bool advance(group_t *self, struct peer *peer)
{
    const uint64_t now_ms = clock_ms();
    if (peer->control.fd < 0) {
        if (peer->fault) {
            peer->probe_at_ms = 0; // It was there a moment ago
            links_pause(peer);
        }
        peer->fault = 0;
        peer->renewed = false;
        if (now_ms >= peer->retry_at_ms && is_to_connect(self, peer, 0))
            links_connect(self, peer, 0);
        return false;
    }
    if (!peer->form_said) {
        close_ended(self, peer);
        const struct message message = { .kind = MESSAGE_FORM,
                                         .window = self->window,
                                         .number = peer->dirty,
                                         .offset = self->done_before };
        control_say(self, peer, &message, NULL);
        peer->form_said = true;
    }
    if (peer->formed != self->window) return false;
    connect_channels(self, peer, now_ms);
    return has_channels(self, peer) && peer->control.out_count == 0;
}

static int fail_form(group_t *self, const struct peer *peer, struct why *why,
                     struct group_blame *ret_blame)
{
    char name[PEER_NAME_MAX];
    int fault = peer->form_fault;
    const bool refused = fault == FAULT_UNREACHABLE && peer->form_final;
    if (fault == FAULT_PROTOCOL || fault == FAULT_SIGNATURE) fault = FAULT_DENIED;
    if (fault)
        return group_break(self, fault, peer->place, refused && peer->was_linked, why, ret_blame,
                           "window %" PRIu64 ": no link to %s: %s", self->window,
                           peer_name(peer, name), peer->said);
    return group_break(self, FAULT_TIMEOUT, peer->place, false, why, ret_blame,
                       peer->control.fd < 0 ? "window %" PRIu64 ": %s has not connected to us; is "
                                              "port %u open to it?"
                                            : "window %" PRIu64 ": %s has not come to this window",
                       self->window, peer_name(peer, name), self->port);
}

static int form(group_t *self, uint64_t until_ms, struct why *why, struct group_blame *ret_blame)
{
    for (;;) {
        const struct peer *missing = NULL;
        probe_due(self);
        for (uint32_t m = 0; m < self->member_count; m++) {
            struct peer *peer = self->members[m];
            if (!peer || advance(self, peer)) continue;
            if (peer->form_fault && peer->form_final) return fail_form(self, peer, why, ret_blame);
            if (peer->formed > self->window)
                return group_break(self, FAULT_NOT_NOW, peer->place, false, why, ret_blame,
                                   "window %" PRIu64 ": member %u is in window %" PRIu64 " already",
                                   self->window, peer->place, peer->formed);
            missing = missing ? missing : peer;
        }
        if (!missing) return 0;
        if (clock_ms() >= until_ms) return fail_form(self, missing, why, ret_blame);
        const int rc = group_wait(self, until_ms, false, why);
        if (rc < 0)
            return group_break(self, rc, UINT32_MAX, false, why, ret_blame,
                               "called away while window %" PRIu64 " was formed", self->window);
    }
}

int group_form(group_t *self, uint64_t window, const struct group_member *members, uint32_t count,
               uint32_t place, uint32_t timeout_ms, struct why *why, struct group_blame *ret_blame)
{
    ensure(window > self->window && count >= 1 && count <= GROUP_MEMBERS_MAX && place < count);
    ensure(key_equal(&members[place].key, &self->key));
    memset(self->members, 0, sizeof self->members);
    self->member_count = count;
    self->place = place;
    self->window = window;
    struct why refused = { 0 };
    int rc = take_members(self, members, count, place, &refused, ret_blame);
    begin(self);
    links_hurry(self);
    if (rc < 0)
        return group_break(self, rc, ret_blame->member, false, why, ret_blame, "%s", refused.text);
    self->forming = true;
    rc = form(self, clock_ms() + timeout_ms, why, ret_blame);
    self->forming = false;
    if (rc < 0) return rc;
    for (uint32_t m = 0; m < count; m++) {
        if (!self->members[m]) continue;
        self->members[m]->dirty = false;
        self->members[m]->fault = 0;
    }
    *ret_blame = self->blame;
    return 0;
}
