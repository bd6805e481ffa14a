// One sum: which message goes out next, where one that comes goes, and when a segment can be added.
//
// The vector is cut in buckets, a bucket in shares, one a member, at borders of leaves:
//
//     bucket  0           1           2           3            turns: 3, 2, 1, 0: from the end down,
//             ├─0─┼─1─┼─2─┼─0─┼─1─┼─2─┼─0─┼─1─┼─2─┼0┼1┼2┤      as a backward pass makes a gradient
//             │       member 1's segment of turn 2  │          final. All members go alike.
//                                                   `ready`: what is behind it is final here
//
// A member's share of a bucket is a segment, and is cut in pieces, one for each channel (one, if there
// is one channel). Members send their nodes of a segment to its owner once these are final. The owner
// has room for `ahead` segments of each node. It adds a segment once all of it is here, and sends the
// sum to all. So several buckets are on their way at a time, while earlier ones are not final yet. A
// vector of at most FLAT_MAX bytes is one bucket, and everybody owns all of it.
//
// A sum that is scattered, and a vector that is gathered, has shares that are whole intervals:
//
//     share   0              1              2              turns: again from the end down, here the end
//             ├─0─┼─1─┼─2─┼─3┼─0─┼─1─┼─2─┼─3┼─0─┼─1─┼─2─┼─3┤      of each share
//
// The first share becomes final last, so less of such a sum goes behind a backward pass. Scattered, no
// results are sent; gathered, all segments count as added from the beginning, and there are no parts.
//
// Why it cannot stand still, while all live and no link ends, once all is final:
//   1. A result can always be taken: its place is in the caller's result. A part can be taken once
//      its turn is fewer than `ahead` ahead of the first one that is not added. On each channel
//      the parts come in the order of turns. So what stands before the parts of the first segment that
//      is not added can be taken, and then they can.
//   2. Adding waits for parts only, never for room to send: a sum is sent from the result itself.
//      (A flat sum waits until its own parts are sent, since the result may be one of them; there,
//      nothing that is sent waits for a sum.)
//   3. What is sent waits only for room in a socket. By 1 the receiver makes that room. So no
//      sending waits for a sum: the next segment of each owner is always added, until all are, and
//      all results are taken.
// A member that has returned from a sum may begin the next one. Its messages wait in the sockets
// of the others; it cannot have sent them before all of this sum.
//
// A piece is given its place once, when its head is read, and counted once all of its bytes are there.
// So when the count says that all is here, no byte of this sum is still to be written: the caller may
// free its result, and the next sum the slots.

#include "common/group/group_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>

// ---- buckets and shares ---------------------------------------------------------------------

enum { LEAF = GROUP_LEAF_FLOATS * sizeof(float) };

static uint64_t leaves_in(uint64_t bytes) { return (bytes + LEAF - 1) / LEAF; }

struct interval group_interval(uint64_t floats, uint32_t member, uint32_t members)
{
    struct interval at = interval_share(leaves_in(floats * sizeof(float)), member, members);
    at.begin *= GROUP_LEAF_FLOATS, at.end *= GROUP_LEAF_FLOATS;
    return (struct interval){ at.begin < floats ? at.begin : floats,
                              at.end < floats ? at.end : floats };
}

static bool owns(const struct sum *sum, uint32_t member) { return member >= sum->first_owner; }

// A share that is a whole interval; of a member that owns none, none.
static struct byte_range share_of(const struct sum *sum, uint32_t member)
{
    if (!owns(sum, member)) return (struct byte_range){ 0, 0 };
    const struct interval at =
        group_interval(sum->bytes / sizeof(float), member - sum->first_owner, sum->owners);
    return (struct byte_range){ at.begin * sizeof(float), at.end * sizeof(float) };
}

static struct byte_range range_of(const struct sum *sum, uint32_t member, uint64_t bucket)
{
    if (sum->flat) return (struct byte_range){ 0, sum->bytes };
    if (!owns(sum, member)) return (struct byte_range){ 0, 0 };
    if (sum->ask->way != GROUP_ALL) {
        const struct byte_range share = share_of(sum, member);
        const uint64_t begin = bucket * sum->segment, bytes = range_length(share);
        return (struct byte_range){
            share.begin + (begin < bytes ? begin : bytes),
            share.begin + (begin + sum->segment < bytes ? begin + sum->segment : bytes)
        };
    }
    const uint64_t begin = bucket * sum->bucket, bytes = at_most(sum->bytes - begin, sum->bucket);
    const struct interval at =
        interval_share(leaves_in(bytes), member - sum->first_owner, sum->owners);
    return (struct byte_range){ begin + (at.begin * LEAF < bytes ? at.begin * LEAF : bytes),
                                begin + (at.end * LEAF < bytes ? at.end * LEAF : bytes) };
}

// Buckets of equal shares, as long as the slots allow; only the last bucket may be shorter.
static void cut(struct sum *sum, uint32_t members, uint32_t nodes)
{
    sum->owners = sum->ask->owners ? sum->ask->owners : members;
    ensure(sum->owners <= members && sum->ask->computers <= members);
    sum->first_owner = members - sum->owners;
    const uint64_t share = (leaves_in(sum->bytes) + sum->owners - 1) / sum->owners;
    const uint64_t most = at_most(SLOTS_MAX / nodes / AHEAD_MIN, SEGMENT_MAX) / LEAF;
    const uint64_t buckets = (share + most - 1) / most;
    sum->flat = sum->ask->way == GROUP_ALL && sum->bytes <= FLAT_MAX;
    sum->segment = sum->flat ? FLAT_MAX : (size_t)((share + buckets - 1) / buckets * LEAF);
    sum->bucket = sum->flat ? FLAT_MAX : sum->segment * sum->owners;
    sum->buckets = sum->flat ? 1 : (share * LEAF + sum->segment - 1) / sum->segment;
}

static struct tree *tree_for(group_t *self, const struct group_sum *ask)
{
    struct tree *tree = &self->tree;
    const uint32_t computers = ask->computers ? ask->computers : self->member_count;
    if (tree->lanes != ask->lanes || tree->batch != ask->batch || tree->members != computers)
        tree_make(tree, ask->lanes, ask->batch, computers);
    return tree;
}

uint64_t group_buckets(group_t *self, const struct group_sum *ask)
{
    struct sum sum = { .ask = ask, .bytes = ask->floats * sizeof(float) };
    cut(&sum, self->member_count, tree_for(self, ask)->total);
    return sum.buckets;
}

struct interval group_share(group_t *self, const struct group_sum *ask, uint64_t bucket,
                            uint32_t member)
{
    struct sum sum = { .ask = ask, .bytes = ask->floats * sizeof(float) };
    cut(&sum, self->member_count, tree_for(self, ask)->total);
    ensure(member < self->member_count && bucket < sum.buckets);
    const struct byte_range range = range_of(&sum, member, bucket);
    return (struct interval){ range.begin / sizeof(float), range.end / sizeof(float) };
}

static struct byte_range range_at(const group_t *self, uint32_t member, uint64_t turn)
{
    const struct sum *sum = &self->sum;
    return range_of(sum, member, sum->buckets - 1 - turn);
}

uint64_t sum_share_bytes(const group_t *self, uint32_t member)
{
    const struct sum *sum = &self->sum;
    if (sum->ask->way != GROUP_ALL) return range_length(share_of(sum, member));
    if (!sum->flat && !owns(sum, member)) return 0;
    return (sum->buckets - 1) * sum->segment + range_length(range_at(self, member, 0));
}

// The turn of a byte that lies in the owner's share.
static uint64_t turn_of(const group_t *self, uint32_t owner, uint64_t offset)
{
    const struct sum *sum = &self->sum;
    const uint64_t bucket = sum->ask->way == GROUP_ALL
                                ? offset / sum->bucket
                                : (offset - share_of(sum, owner).begin) / sum->segment;
    return sum->buckets - 1 - bucket;
}

size_t sum_next_bytes(const group_t *self)
{
    const struct sum *sum = &self->sum;
    return sum->added == sum->buckets
               ? 0
               : (size_t)range_length(range_at(self, self->place, sum->added));
}

// The first turn in which a member has a share. Only the last bucket, whose turn is the first, can be too short for all
// owners to have one.
static uint64_t first_turn(const group_t *self, uint32_t member)
{
    const struct sum *sum = &self->sum;
    if (!sum->flat && !owns(sum, member)) return sum->buckets;
    return range_length(range_at(self, member, 0)) == 0;
}

// ---- a sum begins ---------------------------------------------------------------------------

static void size_messages(group_t *self)
{
    struct sum *sum = &self->sum;
    const uint32_t connections = self->options.connections;
    sum->ahead = connections == 1
                     ? AHEAD_MIN
                     : (uint32_t)at_most(SLOTS_MAX / self->tree.total / sum->segment, AHEAD_MAX);
    sum->piece = sum->segment / connections / 4096 * 4096;
    if (sum->piece < PIECE_MIN) sum->piece = PIECE_MIN;
    if (sum->flat) sum->piece = FLAT_MAX;
}

static void lay_slots(group_t *self)
{
    struct sum *sum = &self->sum;
    uint32_t others = 0;
    for (uint32_t m = 0; m < self->member_count; m++)
        if (self->members[m] && (sum->flat || owns(sum, self->place)))
            others += sum_brings(self, m);
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
        at += (size_t)sum_brings(self, m) * sum->ahead * sum->segment;
    }
}

static float *slot(const group_t *self, const struct peer *peer, uint64_t turn, uint32_t node)
{
    const struct sum *sum = &self->sum;
    const uint64_t index = turn % sum->ahead * sum_brings(self, peer->place) + node;
    return (float *)(void *)(peer->slots + index * sum->segment);
}

static void forget_taken(struct peer *peer, uint64_t turns)
{
    if (turns > peer->results_room) {
        free(peer->results_taken);
        peer->results_taken = malloc(turns * sizeof *peer->results_taken);
        ensure(peer->results_taken);
        peer->results_room = turns;
    }
    memset(peer->results_taken, 0, turns * sizeof *peer->results_taken);
    memset(peer->parts_taken, 0, sizeof peer->parts_taken);
}

void sum_begin(group_t *self, const struct group_sum *ask)
{
    struct sum *sum = &self->sum;
    const uint64_t bytes = ask->floats * sizeof(float);
    const struct tree *tree = tree_for(self, ask);
    *sum = (struct sum){ .ask = ask, .bytes = bytes };
    // Without nodes there is nothing to become final, and the others may be done with a bucket at once
    if (sum_brings(self, self->place) > 0) sum->ready = bytes;
    cut(sum, self->member_count, tree->total);
    const uint64_t share = sum_share_bytes(self, self->place);
    const uint64_t first = first_turn(self, self->place);
    sum->whole = sum_takes_results(self, self->place) || sum->flat ? bytes : share;
    sum->got = ask->way == GROUP_GATHER ? share : 0;
    sum->added = ask->way == GROUP_GATHER ? sum->buckets : first;
    sum->spliced = self->options.link == GROUP_PLAIN && self->options.connections == 1 &&
                   self->member_count > 1 && bytes >= SPLICE_MIN;
    size_messages(self);
    lay_slots(self);
    for (uint32_t m = 0; m < self->member_count; m++) {
        struct peer *peer = self->members[m];
        if (!peer) continue;
        peer->part = (struct cursor){ .turn = first_turn(self, m) };
        peer->result = (struct cursor){ .turn = first };
        peer->results_got = peer->parts_whole = 0;
        peer->done_said = false;
        memset(peer->parts_got, 0, sizeof peer->parts_got);
        forget_taken(peer, sum->buckets);
        for (uint32_t c = 0; c < self->options.connections; c++)
            if (peer->channels[c].held) peer->channels[c].may_read = true;
    }
}

// ---- out ------------------------------------------------------------------------------------

bool sum_parts_are_sent(const group_t *self, const struct peer *peer)
{
    return sum_brings(self, self->place) == 0 || peer->part.turn == self->sum.buckets;
}

bool sum_results_are_sent(const group_t *self, const struct peer *peer)
{
    return !sum_takes_results(self, peer->place) || peer->result.turn == self->sum.buckets;
}

// The next piece of a cursor's segment: its place and length; moves on. A segment is sent `nodes`
// times.
static struct message next_piece(const struct sum *sum, struct cursor *at,
                                 struct byte_range segment, uint32_t nodes)
{
    const size_t count = at_most(range_length(segment) - at->offset, sum->piece);
    const struct message message = { .node = at->node,
                                     .length = (uint32_t)count,
                                     .offset = segment.begin + at->offset };
    at->offset += count;
    if (at->offset == range_length(segment)) {
        at->offset = 0;
        if (++at->node == nodes) {
            at->node = 0;
            at->turn++;
        }
    }
    return message;
}

// A result, or a part that is final.
bool sum_next(group_t *self, struct peer *peer, struct message *ret_message,
              const uint8_t **ret_from)
{
    const struct sum *sum = &self->sum;
    const bool has_result = sum_takes_results(self, peer->place) && peer->result.turn < sum->added;
    if (peer_has_left(self, peer) || (!has_result && sum_parts_are_sent(self, peer))) return false;
    const struct byte_range segment = has_result ? range_at(self, self->place, peer->result.turn)
                                                 : range_at(self, peer->place, peer->part.turn);
    if (segment.begin < sum->ready) return false;
    if (has_result) {
        *ret_message = next_piece(sum, &peer->result, segment, 1);
        ret_message->kind = MESSAGE_RESULT;
        *ret_from = (const uint8_t *)sum->ask->result + ret_message->offset;
    } else {
        *ret_message = next_piece(sum, &peer->part, segment, sum_brings(self, self->place));
        ret_message->kind = MESSAGE_PART;
        *ret_from = (const uint8_t *)sum->ask->nodes[ret_message->node] + ret_message->offset;
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

// Whether a message is a piece of an owner's segment, as the sender must cut it. If so: the turn, and
// the byte of the segment.
static bool is_piece(const group_t *self, uint32_t owner, const struct message *message,
                     uint64_t *ret_turn, uint64_t *ret_inside)
{
    const struct sum *sum = &self->sum;
    if (message->offset >= sum->bytes) return false;
    if (sum->ask->way != GROUP_ALL) {
        const struct byte_range share = share_of(sum, owner);
        if (message->offset < share.begin || message->offset >= share.end) return false;
    }
    const uint64_t turn = turn_of(self, owner, message->offset);
    const struct byte_range segment = range_at(self, owner, turn);
    if (message->offset < segment.begin || message->offset >= segment.end) return false;
    *ret_turn = turn;
    *ret_inside = message->offset - segment.begin;
    return *ret_inside % sum->piece == 0 &&
           message->length == at_most(segment.end - message->offset, sum->piece);
}

// Takes the bit of a piece in those of its segment. False: that piece was given its place before.
static bool take_piece(const struct sum *sum, uint32_t *taken, uint64_t inside)
{
    const uint32_t bit = (uint32_t)1 << inside / sum->piece;
    if (*taken & bit) return false;
    *taken |= bit;
    return true;
}

static enum sum_place place_part(const group_t *self, struct peer *peer,
                                 const struct message *message, uint8_t **ret_to)
{
    const struct sum *sum = &self->sum;
    uint64_t turn, inside;
    if (message->node >= sum_brings(self, peer->place) ||
        !is_piece(self, self->place, message, &turn, &inside))
        return refuse(peer, message, "it sent a part that is none of our share");
    if (turn >= sum->added + sum->ahead) return SUM_HELD;
    // mutant: group: a part is given its place twice
    if (turn < sum->added ||
        !take_piece(sum, &peer->parts_taken[turn % sum->ahead][message->node], inside))
        return refuse(peer, message, "it sent a part twice");
    *ret_to = (uint8_t *)slot(self, peer, turn, message->node) + inside;
    return SUM_TAKEN;
}

// No owner has a sum before our parts of it.
static enum sum_place place_result(const group_t *self, struct peer *peer,
                                   const struct message *message, uint8_t **ret_to)
{
    const struct sum *sum = &self->sum;
    uint64_t turn, inside;
    if (message->kind != MESSAGE_RESULT || !sum_takes_results(self, self->place) ||
        message->node != 0 || !is_piece(self, peer->place, message, &turn, &inside) ||
        message->offset < sum->ready)
        return refuse(peer, message, "it sent a result that is none of its share");
    // mutant: group: a result is given its place twice
    if (!take_piece(sum, &peer->results_taken[turn], inside))
        return refuse(peer, message, "it sent a result twice");
    *ret_to = (uint8_t *)sum->ask->result + message->offset;
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
    return (message->kind == MESSAGE_PART ? place_part : place_result)(self, peer, message, ret_to);
}

void sum_arrived(group_t *self, struct peer *peer, const struct message *message)
{
    struct sum *sum = &self->sum;
    if (message->kind == MESSAGE_RESULT) {
        peer->results_got += message->length;
        sum->got += message->length;
        return;
    }
    const uint64_t turn = turn_of(self, self->place, message->offset);
    peer->parts_got[turn % sum->ahead] += message->length;
    peer->parts_whole += message->length;
}

// ---- adding ---------------------------------------------------------------------------------

static bool is_segment_here(const group_t *self, size_t bytes)
{
    const struct sum *sum = &self->sum;
    for (uint32_t m = 0; m < self->member_count; m++) {
        const struct peer *peer = self->members[m];
        if (!peer) continue;
        if (peer->parts_got[sum->added % sum->ahead] < bytes * sum_brings(self, m)) return false;
        // The result may be one of our parts
        if (sum->flat && !peer_has_left(self, peer) &&
            !(sum_parts_are_sent(self, peer) && channels_idle(self, peer)))
            return false;
    }
    return true;
}

static void tell_leaves(const struct sum *sum, struct byte_range segment)
{
    for (uint64_t at = segment.begin; sum->ask->summed && at < segment.end; at += LEAF) {
        const uint64_t first = at / sizeof(float);
        const size_t count = at_most(segment.end - at, LEAF) / sizeof(float);
        sum->ask->summed(sum->ask->arg, (struct interval){ first, first + count },
                         sum->ask->result + first);
    }
}

// Adds our next segment if all of it is here.
bool sum_add_segment(group_t *self)
{
    struct sum *sum = &self->sum;
    const size_t bytes = sum_next_bytes(self);
    if (bytes == 0) return false;
    const struct byte_range segment = range_at(self, self->place, sum->added);
    if (segment.begin < sum->ready || !is_segment_here(self, bytes)) return false;
    const uint64_t first = segment.begin / sizeof(float);
    struct tree_leaves leaves;
    for (uint32_t m = 0; m < self->member_count; m++) {
        struct peer *peer = self->members[m];
        for (uint32_t k = 0; k < self->tree.brings[m]; k++)
            leaves.of[m][k] = peer ? slot(self, peer, sum->added, k) : sum->ask->nodes[k] + first;
        if (!peer) continue;
        peer->parts_got[sum->added % sum->ahead] = 0;
        memset(peer->parts_taken[sum->added % sum->ahead], 0, sizeof peer->parts_taken[0]);
    }
    tree_add(&self->tree, &leaves, bytes / sizeof(float), sum->ask->result + first);
    tell_leaves(sum, segment);
    sum->added++;
    sum->got += bytes;
    return true;
}
