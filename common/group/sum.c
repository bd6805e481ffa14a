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

#include "common/group/group_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>

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

struct interval group_share(const group_t *self, uint64_t floats, uint32_t member)
{
    const struct sum sum = { .bytes = floats * sizeof(float),
                             .flat = floats * sizeof(float) <= FLAT_MAX };
    ensure(member < self->member_count);
    const struct byte_range range = range_of(&sum, self->member_count, member);
    return (struct interval){ range.begin / sizeof(float), range.end / sizeof(float) };
}

struct byte_range sum_share(const group_t *self, uint32_t member)
{
    return range_of(&self->sum, self->member_count, member);
}

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

void sum_begin(group_t *self, const struct group_sum *ask)
{
    struct sum *sum = &self->sum;
    const uint64_t bytes = ask->floats * sizeof(float);
    if (self->tree.lanes != ask->lanes || self->tree.batch != ask->batch ||
        self->tree.members != self->member_count)
        tree_make(&self->tree, ask->lanes, ask->batch, self->member_count);
    *sum = (struct sum){ .ask = ask, .bytes = bytes, .flat = bytes <= FLAT_MAX };
    sum->spliced = self->options.link == GROUP_PLAIN && self->options.connections == 1 &&
                   self->member_count > 1 && bytes >= SPLICE_MIN;
    sum->own = sum_share(self, self->place);
    cut(self);
    lay_slots(self);
    for (uint32_t m = 0; m < self->member_count; m++) {
        struct peer *peer = self->members[m];
        if (!peer) continue;
        peer->part = (struct cursor){ .segment = sum_share(self, m).begin };
        peer->result = (struct cursor){ .segment = sum->own.begin };
        peer->results_got = peer->parts_whole = 0;
        peer->done_said = false;
        memset(peer->parts_got, 0, sizeof peer->parts_got);
        for (uint32_t c = 0; c < self->options.connections; c++)
            if (peer->channels[c].held) peer->channels[c].may_read = true;
    }
}

// ---- out ------------------------------------------------------------------------------------

bool sum_parts_are_sent(const group_t *self, const struct peer *peer)
{
    return self->tree.brings[self->place] == 0 ||
           peer->part.segment >= sum_share(self, peer->place).end;
}

bool sum_results_are_sent(const group_t *self, const struct peer *peer)
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
    } else if (!sum_parts_are_sent(self, peer)) {
        *ret_message = next_piece(sum, &peer->part, sum_share(self, peer->place).end,
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
    const uint64_t segment = at_most(range_length(range) - (in_range - inside), sum->segment);
    return inside % sum->piece == 0 && message->length == at_most(segment - inside, sum->piece);
}

static enum sum_place place_part(group_t *self, struct peer *peer, const struct message *message,
                                 uint8_t **ret_to)
{
    const struct sum *sum = &self->sum;
    if (message->node >= self->tree.brings[peer->place] || !is_piece(sum, sum->own, message))
        return refuse(peer, message, "it sent a part that is none of our share");
    const uint64_t at = message->offset - sum->own.begin, segment = at / sum->segment;
    if (segment < sum->summed / sum->segment || sum->summed == range_length(sum->own))
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
        !is_piece(sum, sum_share(self, peer->place), message) || message->node != 0)
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
        if (peer->results_got > range_length(sum_share(self, peer->place)))
            refuse(peer, message, "it sent a result twice");
        return;
    }
    const uint64_t at = message->offset - sum->own.begin, segment = at / sum->segment;
    const size_t bytes = at_most(range_length(sum->own) - segment * sum->segment, sum->segment);
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
            !(sum_parts_are_sent(self, peer) && channels_idle(self, peer)))
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
bool sum_add_segment(group_t *self)
{
    struct sum *sum = &self->sum;
    const size_t bytes = at_most(range_length(sum->own) - sum->summed, sum->segment);
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
