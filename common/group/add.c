// group_begin, group_offer, group_end: turns over all links until the sum is done, and how it ends
// otherwise.
//
// A member whose link has ended, that has said BREAK, or that is in a later window sends no more. That
// ends the sum only if something of it is missing, and only once its channel has ended, too: what is
// said on the control connection overtakes what is still on its way. A member that leaves after the
// sum is done says how many sums it has done; what it sent of them is waited for.

#include "common/group/group_inside.h"

#include <inttypes.h>
#include <signal.h>

enum { GRACE_MS = 100 };

// ---- the end --------------------------------------------------------------------------------

static bool is_whole(const struct sum *sum)
{
    return sum->got >= sum->whole && sum->added == sum->buckets;
}

static bool lacks_parts(const group_t *self, const struct peer *peer)
{
    return peer->parts_whole < sum_share_bytes(self, self->place) * sum_brings(self, peer->place);
}

static bool lacks_results(const group_t *self, const struct peer *peer)
{
    return sum_takes_results(self, self->place) &&
           peer->results_got < sum_share_bytes(self, peer->place);
}

// With pages on their way (spliced), a member's DONE is awaited. One that said BREAK or is in a later
// window reads no more; of one whose link has ended we do not know.
static bool is_done_with(group_t *self, struct peer *peer)
{
    const bool has_read = !self->sum.spliced || peer->done > self->sum.ask->number;
    if (peer->broke || peer->formed > self->window) return true;
    if (peer->fault) return has_read;
    return sum_parts_are_sent(self, peer) && sum_results_are_sent(self, peer) &&
           channels_idle(self, peer) && has_read;
}

static bool is_finished(group_t *self)
{
    if (!is_whole(&self->sum)) return false;
    for (uint32_t m = 0; m < self->member_count; m++)
        if (self->members[m] && !is_done_with(self, self->members[m])) return false;
    return true;
}

static void say_done(group_t *self)
{
    const struct message message = { .kind = MESSAGE_DONE,
                                     .window = self->window,
                                     .number = self->sum.ask->number };
    for (uint32_t m = 0; m < self->member_count; m++) {
        struct peer *peer = self->members[m];
        if (!peer || peer->done_said) continue;
        peer->done_said = true;
        control_say(self, peer, &message, NULL);
    }
}

// The sum ends for what a member lacks; unless all that is missing is the DONE of the dead.
static int end_for(group_t *self, struct peer *peer, struct why *why, struct group_blame *ret_blame)
{
    struct why reason;
    struct group_blame blame;
    const int fault = peer_why(self, peer, &reason, &blame);
    if (blame.member == peer->place && blame.gone && !lacks_parts(self, peer) &&
        !lacks_results(self, peer)) {
        peer->done = UINT64_MAX;
        return 0;
    }
    return group_break(self, fault, blame.member, blame.gone, why, ret_blame, "sum %" PRIu64 ": %s",
                       self->sum.ask->number, reason.text);
}

static bool is_missed(group_t *self, struct peer *peer)
{
    return lacks_parts(self, peer) || lacks_results(self, peer) || !is_done_with(self, peer);
}

// Whether nothing more comes of a member that has left. Bytes may be on their way though we know
// that it has left: its channels end behind the last of them, and what it did and whether it lives is
// said on its control connection. One of the two may be late, or be cut alone.
static bool is_final(const group_t *self, const struct peer *peer, uint64_t now_ms)
{
    bool ended = true, held = false;
    if (peer->fault == FAULT_FORMAT) return true;
    for (uint32_t c = 0; c < self->options.connections; c++) {
        ended &= peer->channels[c].fd < 0;
        held |= peer->channels[c].held;
    }
    if (peer->formed > self->window)
        return ended || peer->left_sums <= self->sum.ask->number; // Else all of it is on its way
    if (ended && (peer->broke || peer->control.fd < 0)) return true;
    return (peer->broke || !held) && now_ms >= peer->moved_ms + GRACE_MS;
}

// A member that is missed and has left the sum for good. NULL: there is none; one may be at *wake_ms.
static struct peer *find_left(group_t *self, uint64_t *wake_ms)
{
    const uint64_t now_ms = clock_ms();
    struct peer *broke = NULL;
    for (uint32_t m = 0; m < self->member_count; m++) {
        struct peer *peer = self->members[m];
        if (!peer || !peer_has_left(self, peer)) continue;
        if (!is_missed(self, peer) && peer->fault != FAULT_FORMAT) continue;
        if (!is_final(self, peer, now_ms)) {
            if (peer->moved_ms + GRACE_MS > now_ms && peer->moved_ms + GRACE_MS < *wake_ms)
                *wake_ms = peer->moved_ms + GRACE_MS;
            continue;
        }
        broke = peer;
        if (peer->fault && !peer->broke)
            break; // Rather the one that died than one that knows of it
    }
    return broke;
}

// Whether the sum ends, since a member that is missed has left it. A member that lacks only its DONE does
// not end the sum. find_left may name it first; so we ask again at once: no later event may wake us.
static int check_left(group_t *self, uint64_t *wake_ms, struct why *why,
                      struct group_blame *ret_blame)
{
    int rc = 0;
    struct peer *left;
    while (rc == 0 && (left = find_left(self, wake_ms))) rc = end_for(self, left, why, ret_blame);
    return rc;
}

// Whether the next segment of our share waits for a member.
static bool holds_up(const group_t *self, const struct peer *peer)
{
    const struct sum *sum = &self->sum;
    return peer->parts_got[sum->added % sum->ahead] <
           sum_next_bytes(self) * sum_brings(self, peer->place);
}

static void note_waited(const group_t *self, uint64_t us)
{
    for (uint32_t m = 0; m < self->member_count; m++)
        if (self->members[m] && holds_up(self, self->members[m])) self->sum.ask->waited_us[m] += us;
}

static int time_is_over(group_t *self, struct why *why, struct group_blame *ret_blame)
{
    char name[PEER_NAME_MAX];
    struct peer *slow = NULL;
    for (uint32_t m = 0; m < self->member_count; m++) {
        struct peer *peer = self->members[m];
        if (!peer) continue;
        if (holds_up(self, peer))
            return group_break(self, FAULT_TIMEOUT, m, false, why, ret_blame,
                               "sum %" PRIu64 ": no part of %s for our share within %u ms",
                               self->sum.ask->number, peer_name(peer, name),
                               self->sum.ask->timeout_ms);
        if (!slow && (lacks_results(self, peer) || !is_done_with(self, peer))) slow = peer;
    }
    // What is gathered waits for nobody else
    if (slow && self->sum.ask->way == GROUP_GATHER && lacks_results(self, slow))
        return group_break(self, FAULT_TIMEOUT, slow->place, false, why, ret_blame,
                           "sum %" PRIu64 ": not all of the share of %s within %u ms",
                           self->sum.ask->number, peer_name(slow, name), self->sum.ask->timeout_ms);
    return group_break(self, FAULT_TIMEOUT, UINT32_MAX, false, why, ret_blame,
                       "sum %" PRIu64 ": not done within %u ms; waiting for %s, which may wait "
                       "for others",
                       self->sum.ask->number, self->sum.ask->timeout_ms,
                       slow ? peer_name(slow, name) : "nobody");
}

// ---- the calls ------------------------------------------------------------------------------

// One turn over all links. True: something moved.
static bool move(group_t *self)
{
    bool moved = sum_add_segment(self);
    for (uint32_t i = 1; i < self->member_count; i++) {
        struct peer *peer = self->members[(self->place + i) % self->member_count];
        moved |= channels_write(self, peer);
        if (channels_read(self, peer)) {
            moved = true;
            sum_add_segment(self);
        }
    }
    if (self->sum.spliced && is_whole(&self->sum)) say_done(self);
    return moved;
}

static int run(group_t *self, struct why *why, struct group_blame *ret_blame)
{
    enum { TURNS_MAX = 32 }; // After so many it looks up from its work: is it called, is time over?
    const uint64_t until_ms = clock_ms() + self->sum.ask->timeout_ms;
    for (uint32_t turns = 1;; turns++) {
        const bool moved = move(self);
        if (moved && turns % TURNS_MAX) continue;
        if (is_finished(self)) return 0;
        uint64_t wake_ms = until_ms;
        int rc = check_left(self, &wake_ms, why, ret_blame);
        if (rc < 0) return rc;
        if (is_finished(self)) return 0;
        if (clock_ms() >= until_ms) return time_is_over(self, why, ret_blame);
        const uint64_t slept_us = clock_us();
        rc = group_wait(self, moved ? 0 : wake_ms, true, why);
        if (self->sum.ask->waited_us) note_waited(self, clock_us() - slept_us);
        if (rc < 0)
            return group_break(self, rc, UINT32_MAX, false, why, ret_blame,
                               "sum %" PRIu64 ": called away", self->sum.ask->number);
    }
}

// splice knows no MSG_NOSIGNAL: a connection that ended would send this thread SIGPIPE.
static void hold_sigpipe(sigset_t *ret_before)
{
    sigset_t pipe_signal;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    ensure(pthread_sigmask(SIG_BLOCK, &pipe_signal, ret_before) == 0);
}

static void drop_sigpipe(const sigset_t *before)
{
    static const struct timespec now;
    sigset_t pipe_signal;
    if (sigismember(before, SIGPIPE)) return;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigtimedwait(&pipe_signal, NULL, &now);
    ensure(pthread_sigmask(SIG_SETMASK, before, NULL) == 0);
}

int group_begin(group_t *self, const struct group_sum *ask, struct why *why,
                struct group_blame *ret_blame)
{
    const int rc = group_again(self, why, ret_blame);
    if (rc < 0) return rc;
    ensure(!self->sum.ask && ask->number == self->next_sum);
    ensure(self->traffic == TRAFFIC_NONE || self->traffic == TRAFFIC_SUMS);
    self->traffic = TRAFFIC_SUMS;
    ensure(ask->floats >= 1 && ask->lanes >= 1 && ask->batch >= 1);
    sum_begin(self, ask);
    return 0;
}

// Nobody has asked the system which channels may move: each is tried.
static void try_channels(group_t *self)
{
    for (uint32_t m = 0; m < self->member_count; m++)
        for (uint32_t c = 0; self->members[m] && c < self->options.connections; c++)
            self->members[m]->channels[c].may_read = self->members[m]->channels[c].may_write = true;
}

void group_offer(group_t *self, uint64_t from)
{
    enum { TURNS_MAX = 64 };
    sigset_t before;
    ensure(self->sum.ask);
    if (from * sizeof(float) < self->sum.ready) self->sum.ready = from * sizeof(float);
    if (self->sum.flat) return;
    try_channels(self);
    hold_sigpipe(&before);
    for (int turns = 0; turns < TURNS_MAX && move(self); turns++) {
    }
    drop_sigpipe(&before);
}

int group_end(group_t *self, struct why *why, struct group_blame *ret_blame)
{
    sigset_t before;
    ensure(self->sum.ask);
    self->sum.ready = 0;
    hold_sigpipe(&before);
    const int rc = run(self, why, ret_blame);
    drop_sigpipe(&before);
    self->next_sum++;
    self->done += rc == 0;
    self->sum.ask = NULL;
    if (rc == 0) *ret_blame = (struct group_blame){ .member = UINT32_MAX };
    return rc;
}

int group_add(group_t *self, const struct group_sum *ask, struct why *why,
              struct group_blame *ret_blame)
{
    const int rc = group_begin(self, ask, why, ret_blame);
    return rc < 0 ? rc : group_end(self, why, ret_blame);
}
