// One sum: which message goes out next, where one that comes goes, and when a segment can be added.
//
// The vector is cut in shares, one a member, at borders of leaves; a share in segments; a segment in
// pieces, one for each channel (one, if there is one channel). Members send their nodes of share j to
// its owner, segment by segment. The owner has room for `ahead` segments of each node. It adds a
// segment once all of it is here, and sends the sum to all. A vector of at most FLAT_MAX bytes is one
// share that everybody owns.
//
// Why it cannot stand still, while all live and no link ends:
//   1. A result can always be taken: its place is in the caller's result. A part can be taken once
//      its segment is fewer than `ahead` ahead of the first one that is not added. On each channel
//      the parts come in rising order. So what stands before the parts of the first segment that is
//      not added can be taken, and then they can.
//   2. Adding waits for parts only, never for room to send: a sum is sent from the result itself.
//      (A flat sum waits until its own parts are sent, since the result may be one of them; there,
//      nothing that is sent waits for a sum.)
//   3. What is sent waits for room in the socket only, hence by 1 for nothing that waits for it: the
//      next segment of each share is always added, until all are, and all results are taken.
// A member that has returned from a sum may begin the next one. Its messages wait in the sockets
// of the others; it cannot have sent them before all of this sum.
//
// A member whose link has ended, that has said BREAK, or that is in a later window sends no more. That
// ends the sum only if something of it is missing, and only once its channel has ended, too: what is
// said on the control connection overtakes what is still on its way. A member that leaves after the
// sum is done says how many sums it has done; what it sent of them is waited for.

#include "common/group/group_inside.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>

enum { GRACE_MS = 100 };

// ---- shares ---------------------------------------------------------------------------------

static struct byte_range range_of(const struct sum *sum, uint32_t members, uint32_t member)
{
    const uint64_t floats = sum->bytes / sizeof(float);
    const uint64_t leaves = (floats + GROUP_LEAF_FLOATS - 1) / GROUP_LEAF_FLOATS;
    const struct interval at = interval_share(leaves, member, members);
    const uint64_t leaf = GROUP_LEAF_FLOATS * sizeof(float);
    if (sum->flat) return (struct byte_range){ 0, sum->bytes };
    return (struct byte_range){ at.begin * leaf < sum->bytes ? at.begin * leaf : sum->bytes,
                                at.end * leaf < sum->bytes ? at.end * leaf : sum->bytes };
}

static uint64_t length(struct byte_range range) { return range.end - range.begin; }

struct interval group_share(const group_t *self, uint64_t floats, uint32_t member)
{
    const struct sum sum = { .bytes = floats * sizeof(float),
                             .flat = floats * sizeof(float) <= FLAT_MAX };
    ensure(member < self->member_count);
    const struct byte_range range = range_of(&sum, self->member_count, member);
    return (struct interval){ range.begin / sizeof(float), range.end / sizeof(float) };
}

static struct byte_range share(const group_t *self, uint32_t member)
{
    return range_of(&self->sum, self->member_count, member);
}

static size_t at_most(uint64_t count, size_t most) { return count < most ? (size_t)count : most; }

// ---- the cut --------------------------------------------------------------------------------

static void cut(group_t *self)
{
    struct sum *sum = &self->sum;
    const size_t leaf = GROUP_LEAF_FLOATS * sizeof(float);
    const uint32_t connections = self->options.connections, total = self->tree.total;
    const uint32_t channels = connections * (self->member_count > 1 ? self->member_count - 1 : 1);
    const size_t room = SLOTS_MAX / total;
    sum->segment = at_most(room / AHEAD_MIN / leaf * leaf, SEGMENT_MAX);
    sum->ahead = connections == 1 ? AHEAD_MIN : (uint32_t)at_most(room / sum->segment, AHEAD_MAX);
    sum->piece = sum->segment / connections / 4096 * 4096;
    if (sum->piece < 16 << 10) sum->piece = 16 << 10;
    if (sum->flat) sum->piece = sum->segment = FLAT_MAX;
    sum->record = at_most(RECORD_ROOM_MAX / channels, RECORD_MAX) >> 12 << 12;
    if (sum->record < 4096) sum->record = 4096;
}

static void lay_slots(group_t *self)
{
    struct sum *sum = &self->sum;
    const uint32_t others = self->tree.total - self->tree.brings[self->place];
    const size_t bytes = (size_t)others * sum->ahead * sum->segment;
    const size_t page = 2 << 20;
    if (bytes > self->slots_bytes) {
        free(self->slots);
        self->slots_bytes = (bytes + page - 1) / page * page;
        self->slots = aligned_alloc(page, self->slots_bytes);
        ensure(self->slots);
        madvise(self->slots, self->slots_bytes, MADV_HUGEPAGE);
    }
    uint8_t *at = self->slots;
    for (uint32_t m = 0; m < self->member_count; m++) {
        if (!self->members[m]) continue;
        self->members[m]->slots = at;
        at += (size_t)self->tree.brings[m] * sum->ahead * sum->segment;
    }
}

static float *slot(const group_t *self, const struct peer *peer, uint64_t segment, uint32_t node)
{
    const struct sum *sum = &self->sum;
    const uint64_t index = segment % sum->ahead * self->tree.brings[peer->place] + node;
    return (float *)(void *)(peer->slots + index * sum->segment);
}

static void begin(group_t *self, const struct group_sum *ask)
{
    struct sum *sum = &self->sum;
    const uint64_t bytes = ask->floats * sizeof(float);
    if (self->tree.lanes != ask->lanes || self->tree.batch != ask->batch ||
        self->tree.members != self->member_count)
        tree_make(&self->tree, ask->lanes, ask->batch, self->member_count);
    *sum = (struct sum){ .ask = ask, .bytes = bytes, .flat = bytes <= FLAT_MAX };
    sum->spliced = self->options.link == GROUP_PLAIN && self->options.connections == 1 &&
                   self->member_count > 1 && bytes >= SPLICE_MIN;
    sum->own = share(self, self->place);
    cut(self);
    lay_slots(self);
    for (uint32_t m = 0; m < self->member_count; m++) {
        struct peer *peer = self->members[m];
        if (!peer) continue;
        peer->part = (struct cursor){ .segment = share(self, m).begin };
        peer->result = (struct cursor){ .segment = sum->own.begin };
        peer->results_got = peer->parts_whole = 0;
        peer->done_said = false;
        memset(peer->parts_got, 0, sizeof peer->parts_got);
        for (uint32_t c = 0; c < self->options.connections; c++)
            if (peer->channels[c].held) peer->channels[c].may_read = true;
    }
}

// ---- out ------------------------------------------------------------------------------------

static bool parts_are_sent(const group_t *self, const struct peer *peer)
{
    return self->tree.brings[self->place] == 0 ||
           peer->part.segment >= share(self, peer->place).end;
}

static bool results_are_sent(const group_t *self, const struct peer *peer)
{
    return self->sum.flat || peer->result.segment >= self->sum.own.end;
}

// The next piece under a cursor over [.., end): its place and length; moves on. A segment is sent
// `nodes` times.
static struct message next_piece(const struct sum *sum, struct cursor *at, uint64_t end,
                                 uint32_t nodes)
{
    const size_t segment = at_most(end - at->segment, sum->segment);
    const size_t count = at_most(segment - at->offset, sum->piece);
    const struct message message = { .node = at->node,
                                     .length = (uint32_t)count,
                                     .offset = at->segment + at->offset };
    at->offset += count;
    if (at->offset == segment) {
        at->offset = 0;
        if (++at->node == nodes) {
            at->node = 0;
            at->segment += segment;
        }
    }
    return message;
}

bool sum_next(group_t *self, struct peer *peer, struct message *ret_message,
              const uint8_t **ret_from)
{
    const struct sum *sum = &self->sum;
    const uint64_t added = sum->own.begin + sum->summed;
    if (peer_has_left(self, peer)) return false;
    if (!sum->flat && peer->result.segment < added) {
        *ret_message = next_piece(sum, &peer->result, added, 1);
        ret_message->kind = MESSAGE_RESULT;
        *ret_from = (const uint8_t *)sum->ask->result + ret_message->offset;
    } else if (!parts_are_sent(self, peer)) {
        *ret_message = next_piece(sum, &peer->part, share(self, peer->place).end,
                                  self->tree.brings[self->place]);
        ret_message->kind = MESSAGE_PART;
        *ret_from = (const uint8_t *)sum->ask->nodes[ret_message->node] + ret_message->offset;
    } else {
        return false;
    }
    ret_message->window = self->window;
    ret_message->number = sum->ask->number;
    return true;
}

// ---- in -------------------------------------------------------------------------------------

static enum sum_place refuse(struct peer *peer, const struct message *message, const char *what)
{
    char name[PEER_NAME_MAX];
    peer->fault = 0; // Says more than that a connection ended
    peer_end(peer, FAULT_FORMAT,
             "%s: %s: kind %u, window %" PRIu64 ", sum %" PRIu64 ", node %u, %u bytes at %" PRIu64,
             peer_name(peer, name), what, (unsigned)message->kind, message->window, message->number,
             message->node, message->length, message->offset);
    return SUM_WRONG;
}

// Whether a message is a piece of a range, as the sender must cut it.
static bool is_piece(const struct sum *sum, struct byte_range range, const struct message *message)
{
    if (message->offset < range.begin || message->offset >= range.end) return false;
    const uint64_t in_range = message->offset - range.begin, inside = in_range % sum->segment;
    const uint64_t segment = at_most(length(range) - (in_range - inside), sum->segment);
    return inside % sum->piece == 0 && message->length == at_most(segment - inside, sum->piece);
}

static enum sum_place place_part(group_t *self, struct peer *peer, const struct message *message,
                                 uint8_t **ret_to)
{
    const struct sum *sum = &self->sum;
    if (message->node >= self->tree.brings[peer->place] || !is_piece(sum, sum->own, message))
        return refuse(peer, message, "it sent a part that is none of our share");
    const uint64_t at = message->offset - sum->own.begin, segment = at / sum->segment;
    if (segment < sum->summed / sum->segment || sum->summed == length(sum->own))
        return refuse(peer, message, "it sent a part twice");
    if (segment >= sum->summed / sum->segment + sum->ahead) return SUM_HELD;
    *ret_to = (uint8_t *)slot(self, peer, segment, message->node) + at % sum->segment;
    return SUM_TAKEN;
}

enum sum_place sum_place(group_t *self, struct peer *peer, const struct message *message,
                         uint8_t **ret_to)
{
    const struct sum *sum = &self->sum;
    if (message->window != self->window || peer->place == UINT32_MAX)
        return refuse(peer, message, "it sent a message of another window");
    if (message->number < sum->ask->number)
        return refuse(peer, message, "it sent a message of a sum that is done");
    if (message->number > sum->ask->number) return SUM_HELD;
    if (message->kind == MESSAGE_PART) return place_part(self, peer, message, ret_to);
    if (message->kind != MESSAGE_RESULT || sum->flat ||
        !is_piece(sum, share(self, peer->place), message) || message->node != 0)
        return refuse(peer, message, "it sent a result that is none of its share");
    *ret_to = (uint8_t *)sum->ask->result + message->offset;
    return SUM_TAKEN;
}

void sum_arrived(group_t *self, struct peer *peer, const struct message *message)
{
    struct sum *sum = &self->sum;
    if (message->kind == MESSAGE_RESULT) {
        peer->results_got += message->length;
        sum->got += message->length;
        if (peer->results_got > length(share(self, peer->place)))
            refuse(peer, message, "it sent a result twice");
        return;
    }
    const uint64_t at = message->offset - sum->own.begin, segment = at / sum->segment;
    const size_t bytes = at_most(length(sum->own) - segment * sum->segment, sum->segment);
    peer->parts_got[segment % sum->ahead] += message->length;
    peer->parts_whole += message->length;
    if (peer->parts_got[segment % sum->ahead] > bytes * self->tree.brings[peer->place])
        refuse(peer, message, "it sent a part twice");
}

// ---- adding ---------------------------------------------------------------------------------

static bool is_segment_here(const group_t *self, size_t bytes)
{
    const struct sum *sum = &self->sum;
    const uint64_t slot_index = sum->summed / sum->segment % sum->ahead;
    for (uint32_t m = 0; m < self->member_count; m++) {
        const struct peer *peer = self->members[m];
        if (!peer) continue;
        if (peer->parts_got[slot_index] < bytes * self->tree.brings[m]) return false;
        // The result may be one of our parts
        if (sum->flat && !peer_has_left(self, peer) &&
            !(parts_are_sent(self, peer) && channels_idle(self, peer)))
            return false;
    }
    return true;
}

static void tell_leaves(const struct sum *sum, uint64_t begin, size_t bytes)
{
    const size_t leaf = GROUP_LEAF_FLOATS * sizeof(float);
    for (size_t at = 0; sum->ask->summed && at < bytes; at += leaf) {
        const uint64_t first = (begin + at) / sizeof(float);
        const size_t count = at_most(bytes - at, leaf) / sizeof(float);
        sum->ask->summed(sum->ask->arg, (struct interval){ first, first + count },
                         sum->ask->result + first);
    }
}

// Adds the next segment of our share if all of it is here.
static bool add_segment(group_t *self)
{
    struct sum *sum = &self->sum;
    const size_t bytes = at_most(length(sum->own) - sum->summed, sum->segment);
    if (bytes == 0 || !is_segment_here(self, bytes)) return false;
    const uint64_t index = sum->summed / sum->segment, begins = sum->own.begin + sum->summed;
    struct tree_leaves leaves;
    for (uint32_t m = 0; m < self->member_count; m++) {
        struct peer *peer = self->members[m];
        for (uint32_t k = 0; k < self->tree.brings[m]; k++)
            leaves.of[m][k] =
                peer ? slot(self, peer, index, k) : sum->ask->nodes[k] + begins / sizeof(float);
        if (peer) peer->parts_got[index % sum->ahead] = 0;
    }
    tree_add(&self->tree, &leaves, bytes / sizeof(float),
             sum->ask->result + begins / sizeof(float));
    tell_leaves(sum, begins, bytes);
    sum->summed += bytes;
    sum->got += bytes;
    return true;
}

// ---- the end --------------------------------------------------------------------------------

static bool is_whole(const struct sum *sum)
{
    return sum->got >= sum->bytes && sum->summed == length(sum->own);
}

static bool lacks_parts(const group_t *self, const struct peer *peer)
{
    return peer->parts_whole < length(self->sum.own) * self->tree.brings[peer->place];
}

static bool lacks_results(const group_t *self, const struct peer *peer)
{
    return !self->sum.flat && peer->results_got < length(share(self, peer->place));
}

// With pages on their way (spliced), a member's DONE is awaited. One that said BREAK or is in a later
// window reads no more; of one whose link has ended we do not know.
static bool is_done_with(group_t *self, struct peer *peer)
{
    const bool has_read = !self->sum.spliced || peer->done > self->sum.ask->number;
    if (peer->broke || peer->formed > self->window) return true;
    if (peer->fault) return has_read;
    return parts_are_sent(self, peer) && results_are_sent(self, peer) &&
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

// Whether the sum ends, since a member that is missed has left it.
static int check_left(group_t *self, uint64_t *wake_ms, struct why *why,
                      struct group_blame *ret_blame)
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
    return broke ? end_for(self, broke, why, ret_blame) : 0;
}

// Whether the next segment of our share waits for a member.
static bool holds_up(const group_t *self, const struct peer *peer)
{
    const struct sum *sum = &self->sum;
    const size_t bytes = at_most(length(sum->own) - sum->summed, sum->segment);
    return peer->parts_got[sum->summed / sum->segment % sum->ahead] <
           bytes * self->tree.brings[peer->place];
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
    return group_break(self, FAULT_TIMEOUT, UINT32_MAX, false, why, ret_blame,
                       "sum %" PRIu64 ": not done within %u ms; waiting for %s, which may wait "
                       "for others",
                       self->sum.ask->number, self->sum.ask->timeout_ms,
                       slow ? peer_name(slow, name) : "nobody");
}

// ---- group_add ------------------------------------------------------------------------------

// One turn over all links. True: something moved.
static bool move(group_t *self)
{
    bool moved = add_segment(self);
    for (uint32_t i = 1; i < self->member_count; i++) {
        struct peer *peer = self->members[(self->place + i) % self->member_count];
        moved |= channels_write(self, peer);
        if (channels_read(self, peer)) {
            moved = true;
            add_segment(self);
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
        rc = group_wait(self, moved ? 0 : wake_ms, true, why);
        if (rc < 0)
            return group_break(self, rc, UINT32_MAX, false, why, ret_blame,
                               "sum %" PRIu64 ": called away", self->sum.ask->number);
    }
}

// splice knows no MSG_NOSIGNAL: a connection that ended would send this thread SIGPIPE.
static int run_without_sigpipe(group_t *self, struct why *why, struct group_blame *ret_blame)
{
    static const struct timespec now;
    sigset_t pipe_signal, before;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    ensure(pthread_sigmask(SIG_BLOCK, &pipe_signal, &before) == 0);
    const int rc = run(self, why, ret_blame);
    if (!sigismember(&before, SIGPIPE)) {
        sigtimedwait(&pipe_signal, NULL, &now);
        ensure(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    }
    return rc;
}

int group_add(group_t *self, const struct group_sum *ask, struct why *why,
              struct group_blame *ret_blame)
{
    int rc = group_again(self, why, ret_blame);
    if (rc < 0) return rc;
    ensure(ask->number == self->next_sum && ask->floats >= 1 && ask->lanes >= 1 && ask->batch >= 1);
    begin(self, ask);
    rc = (self->sum.spliced ? run_without_sigpipe : run)(self, why, ret_blame);
    self->next_sum++;
    self->done += rc == 0;
    self->sum.ask = NULL;
    if (rc == 0) *ret_blame = (struct group_blame){ .member = UINT32_MAX };
    return rc;
}
