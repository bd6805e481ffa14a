// group_ask, group_hear_answer, group_hear_question, group_answer: what goes between two members is their own
// affair, and nobody else waits for it.
//
// With each other member there is one talk, in one phase (talk_phase, drawn in group_inside.h). A question and an
// answer are alike on the way: a message with the header, which says how many bytes of floats come behind it, then
// messages with one piece of the floats each. The pieces are fixed by the number of bytes, so that of each is known
// where it begins, how long it is, and whether it has come.
//
// Why nothing here can stand still for a peer, or grow: those that ask send questions alone, and those that answer
// send answers alone. An answer has its place in the vector of the one that asked. A question has its place in the
// room of its sender, which has no more than one under way; the room is as long as the caller of group_hear_question
// says. So whatever may come can be taken at once, and what comes that may not ends the link. With several channels
// alone a piece may overtake the header of its vector; it then waits in its channel.
//
// All links are moved in turns, a bounded part of each. The caller's floats are copied by the socket, never lent to
// it as those of a large sum are: one that gives up a question may change them at once.

#include "common/group/group_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    PIECE_BYTES = 128 << 10, // Of a vector, in one message
    TURN_MESSAGES = 8,       // To and from a member in one turn
    TURNS_MAX = 32,          // After so many it looks up from its work: is it called, is time over?
    SLICE_BYTES = 256 << 10, // Of an answer: copied, and sent while it is in the cache
};

// ---- one vector on its way --------------------------------------------------------------------

static uint64_t pieces_in(uint64_t bytes) { return (bytes + PIECE_BYTES - 1) / PIECE_BYTES; }

// A vector is to come, to `floats`; none of it is here.
static void expect(struct letter *letter, uint64_t bytes, void *floats)
{
    const size_t needs = pieces_in(bytes) / 8 + 1;
    if (needs > letter->taken_room) {
        free(letter->taken);
        letter->taken = malloc(needs);
        ensure(letter->taken);
        letter->taken_room = needs;
    }
    memset(letter->taken, 0, needs);
    letter->bytes = bytes;
    letter->floats = floats;
    letter->at = 0;
    letter->header_count = 0;
    letter->header_done = false;
}

static void prepare(struct letter *letter, const struct group_letter *said, const void *floats)
{
    ensure(said->count >= 1 && said->count <= GROUP_HEADER_MAX);
    memcpy(letter->header, said->header, said->count);
    letter->header_count = (uint32_t)said->count;
    letter->header_done = false;
    letter->floats = (uint8_t *)(uintptr_t)floats;
    letter->bytes = said->floats_count * sizeof(float);
    letter->at = letter->ready = 0;
}

static bool is_given(const struct letter *letter)
{
    return letter->header_done && letter->at == letter->bytes;
}

static struct group_letter letter_said(const struct letter *letter)
{
    return (struct group_letter){ .header = letter->header,
                                  .count = letter->header_count,
                                  .floats = letter->bytes
                                                ? (const float *)(const void *)letter->floats
                                                : NULL,
                                  .floats_count = letter->bytes / sizeof(float) };
}

void talk_end(struct peer *peer)
{
    free(peer->talk.room);
    free(peer->talk.in.taken);
    peer->talk = (struct talk){ 0 };
}

bool talk_is_under_way(const struct peer *peer)
{
    const enum talk_phase phase = peer->talk.phase;
    return phase == TALK_ASKED || phase == TALK_COMES || phase == TALK_WAITS ||
           phase == TALK_LENT || (phase == TALK_ANSWERS && !is_given(&peer->talk.out));
}

// ---- out ------------------------------------------------------------------------------------

bool talk_next(group_t *self, struct peer *peer, struct message *ret_message,
               const uint8_t **ret_from)
{
    struct talk *talk = &peer->talk;
    struct letter *out = &talk->out;
    if ((talk->phase != TALK_ASKED && talk->phase != TALK_ANSWERS) || talk->turn_left == 0)
        return false;
    *ret_message = (struct message){ .window = self->window, .number = talk->number };
    if (!out->header_done) {
        ret_message->kind = talk->phase == TALK_ASKED ? MESSAGE_QUESTION : MESSAGE_ANSWER;
        ret_message->length = out->header_count;
        ret_message->offset = out->bytes;
        *ret_from = out->header;
        out->header_done = true;
    } else {
        const size_t count = at_most(out->bytes - out->at, PIECE_BYTES);
        if (count == 0 || out->at + count > out->ready) return false;
        ret_message->kind = MESSAGE_FLOATS;
        ret_message->length = (uint32_t)count;
        ret_message->offset = out->at;
        *ret_from = out->floats + out->at;
        out->at += count;
    }
    talk->turn_left--;
    return true;
}

// ---- in -------------------------------------------------------------------------------------

static enum sum_place refuse(struct peer *peer, const struct message *message, const char *what)
{
    char name[PEER_NAME_MAX];
    peer->fault = 0; // Says more than that a connection ended
    peer_end(peer, FAULT_FORMAT,
             "%s: %s: kind %u, window %" PRIu64 ", question %" PRIu64 ", %u bytes at %" PRIu64,
             peer_name(peer, name), what, (unsigned)message->kind, message->window, message->number,
             message->length, message->offset);
    return SUM_WRONG;
}

// What is written is on its way as a whole.
static bool is_sent(const group_t *self, const struct peer *peer)
{
    return is_given(&peer->talk.out) && channels_idle(self, peer);
}

static bool is_header(const struct message *message, uint64_t bytes)
{
    return message->length >= 1 && message->length <= GROUP_HEADER_MAX && message->node == 0 &&
           (message->offset == 0 || message->offset == bytes);
}

// A room is kept for the next question. Its pages are taken when they are first written.
static void lend_room(struct talk *talk, uint64_t bytes)
{
    const size_t page = bytes < 2 << 20 ? 4096 : 2 << 20, room = (bytes + page - 1) / page * page;
    if (bytes <= talk->room_bytes) return;
    free(talk->room);
    talk->room = aligned_alloc(page, room);
    ensure(talk->room);
    if (page > 4096) madvise(talk->room, room, MADV_HUGEPAGE);
    talk->room_bytes = room;
}

static enum sum_place place_question(group_t *self, struct peer *peer,
                                     const struct message *message, uint8_t **ret_to)
{
    struct talk *talk = &peer->talk;
    const bool may = talk->phase == TALK_NONE || (talk->phase == TALK_ANSWERS &&
                                                  is_sent(self, peer)); // The answer has reached it
    if (self->traffic != TRAFFIC_ANSWERS)
        return refuse(peer, message, "it sent a question to a member that asks");
    // mutant: group: a question comes before the answer to the one before it
    if (!may || message->number != talk->number + 1)
        return refuse(peer, message, "it sent a question before the answer to the last one");
    // mutant: group: a question brings as many floats as it likes
    if (!is_header(message, self->question_bytes))
        return refuse(peer, message, "it sent a question of the wrong size");
    if (message->offset) lend_room(talk, message->offset);
    expect(&talk->in, message->offset, talk->room);
    talk->phase = TALK_COMES;
    talk->number = message->number;
    talk->in.header_count = message->length;
    *ret_to = talk->in.header;
    return SUM_TAKEN;
}

static enum sum_place place_answer(group_t *self, struct peer *peer, const struct message *message,
                                   uint8_t **ret_to)
{
    struct talk *talk = &peer->talk;
    if (talk->phase != TALK_ASKED || message->number != talk->number || talk->in.header_count ||
        !is_sent(self, peer))
        return refuse(peer, message, "it sent an answer to no question");
    if (!is_header(message, talk->wanted_bytes))
        return refuse(peer, message, "it sent an answer of the wrong size");
    talk->in.bytes = message->offset;
    talk->in.header_count = message->length;
    *ret_to = talk->in.header;
    return SUM_TAKEN;
}

static enum sum_place place_floats(group_t *self, struct peer *peer, const struct message *message,
                                   uint8_t **ret_to)
{
    struct talk *talk = &peer->talk;
    struct letter *in = &talk->in;
    const bool comes = talk->phase == TALK_COMES || (talk->phase == TALK_ASKED && in->header_count);
    const uint64_t number = talk->number + (self->traffic == TRAFFIC_ANSWERS && !comes);
    if (message->number != number) return refuse(peer, message, "it sent floats of no question");
    if (!comes)
        return self->options.connections > 1
                   ? SUM_HELD
                   : refuse(peer, message, "it sent floats before their header");
    const uint64_t piece = message->offset / PIECE_BYTES;
    if (message->node != 0 || message->offset % PIECE_BYTES != 0 || message->offset >= in->bytes ||
        message->length != at_most(in->bytes - message->offset, PIECE_BYTES))
        return refuse(peer, message, "it sent what is no piece of its vector");
    if (in->taken[piece / 8] >> piece % 8 & 1)
        return refuse(peer, message, "it sent a piece twice");
    in->taken[piece / 8] |= (uint8_t)(1u << piece % 8);
    *ret_to = in->floats + message->offset;
    return SUM_TAKEN;
}

enum sum_place talk_place(group_t *self, struct peer *peer, const struct message *message,
                          uint8_t **ret_to)
{
    if (message->window != self->window || peer->place == UINT32_MAX)
        return refuse(peer, message, "it sent a message of another window");
    switch (message->kind) {
    case MESSAGE_QUESTION: return place_question(self, peer, message, ret_to);
    case MESSAGE_ANSWER: return place_answer(self, peer, message, ret_to);
    case MESSAGE_FLOATS: return place_floats(self, peer, message, ret_to);
    default: return refuse(peer, message, "it sent what is part of no question");
    }
}

void talk_arrived(group_t *self, struct peer *peer, const struct message *message)
{
    struct talk *talk = &peer->talk;
    if (message->kind == MESSAGE_FLOATS) talk->in.at += message->length;
    else talk->in.header_done = true;
    if (!is_given(&talk->in)) return;
    talk->phase = talk->phase == TALK_COMES ? TALK_WAITS : TALK_ANSWERED;
    talk->whole_at = ++self->whole_count;
}

// ---- turns ----------------------------------------------------------------------------------

// Nothing more is read of it, or written to it; and what waits in the system does not wake us.
static void close_channels(const group_t *self, struct peer *peer)
{
    for (uint32_t c = 0; c < self->options.connections; c++) channel_close(&peer->channels[c]);
    peer->dirty = true;
}

static bool move_peer(group_t *self, struct peer *peer)
{
    bool moved;
    if (peer->fault == FAULT_FORMAT) {
        close_channels(self, peer);
        return false;
    }
    peer->talk.turn_left = TURN_MESSAGES;
    moved = channels_write(self, peer);
    for (int i = 0; i < TURN_MESSAGES && channels_read(self, peer); i++) moved = true;
    return moved;
}

// One turn over all links. True: something moved. What a member sent before it left is still read.
static bool move(group_t *self)
{
    bool moved = false;
    for (uint32_t i = 1; i < self->member_count; i++)
        moved |= move_peer(self, self->members[(self->place + i) % self->member_count]);
    return moved;
}

// The first of those that became whole, of a phase. NULL: none is.
static struct peer *first_whole(const group_t *self, enum talk_phase phase)
{
    struct peer *first = NULL;
    for (uint32_t m = 0; m < self->member_count; m++) {
        struct peer *peer = self->members[m];
        if (peer && peer->talk.phase == phase &&
            (!first || peer->talk.whole_at < first->talk.whole_at))
            first = peer;
    }
    return first;
}

// Whether the caller is to hear now that a member has left: it waits for its answer, or may yet have a question of
// it. A question that is whole is heard first.
static bool is_missed(const group_t *self, const struct peer *peer)
{
    const enum talk_phase phase = peer->talk.phase;
    if (!peer_has_left(self, peer)) return false;
    if (self->traffic == TRAFFIC_ASKS) return phase == TALK_ASKED;
    // mutant: group: the end of a member overtakes its question
    return phase != TALK_WAITS && phase != TALK_LENT && !peer->talk.end_told;
}

// All that it has sent us is read first: that it has left overtakes what it said before.
static void read_out(group_t *self, struct peer *peer)
{
    for (uint32_t c = 0; c < self->options.connections; c++)
        peer->channels[c].may_read = peer->channels[c].fd >= 0;
    while (peer->fault != FAULT_FORMAT && channels_read(self, peer)) {
    }
}

static struct peer *find_left(group_t *self)
{
    for (uint32_t m = 0; m < self->member_count; m++) {
        struct peer *peer = self->members[m];
        if (!peer || !is_missed(self, peer)) continue;
        read_out(self, peer);
        if (is_missed(self, peer)) return peer;
    }
    return NULL;
}

// As peer_why, but nobody is asked whether it is dead: the others would wait for that.
static int tell_left(const group_t *self, const struct peer *peer, struct why *why,
                     struct group_blame *ret_blame)
{
    char name[PEER_NAME_MAX];
    *ret_blame = (struct group_blame){ .member = peer->place };
    if (peer->fault) return why_set(why, peer->fault, "%s", peer->said);
    if (peer->broke)
        return why_set(why, FAULT_UNREACHABLE, "%s cannot go on", peer_name(peer, name));
    return why_set(why, FAULT_UNREACHABLE, "%s is in window %" PRIu64 " already; ours is %" PRIu64,
                   peer_name(peer, name), peer->formed, self->window);
}

// Moves all links until a talk is whole in this phase, a member is missed, or time is over: 0 and one of *ret_whole
// and *ret_left, or neither.
static int run(group_t *self, enum talk_phase phase, uint32_t timeout_ms, struct why *why,
               struct peer **ret_whole, struct peer **ret_left)
{
    const uint64_t until_ms = clock_ms() + timeout_ms;
    int rc = group_wait(self, 0, true, why); // One that always has work looks up from it, too
    *ret_whole = *ret_left = NULL;
    for (uint32_t turns = 1; rc == 0; turns++) {
        const bool moved = move(self);
        if ((*ret_left = find_left(self))) return 0;
        if ((*ret_whole = first_whole(self, phase))) return 0;
        if (moved && turns % TURNS_MAX) continue;
        if (clock_ms() >= until_ms) return 0;
        rc = group_wait(self, moved ? 0 : until_ms, true, why);
    }
    return rc;
}

// ---- the calls ------------------------------------------------------------------------------

static void begin(group_t *self, enum traffic traffic)
{
    ensure(self->traffic == TRAFFIC_NONE || self->traffic == traffic);
    if (self->traffic == traffic) return;
    self->traffic = traffic;
    self->sum = (struct sum){ 0 }; // Of an earlier window
}

int group_ask(group_t *self, const struct group_question *ask, struct why *why,
              struct group_blame *ret_blame)
{
    const int rc = group_again(self, why, ret_blame);
    if (rc < 0) return rc;
    ensure(ask->to < self->member_count && ask->to != self->place);
    struct peer *peer = self->members[ask->to];
    struct talk *talk = &peer->talk;
    begin(self, TRAFFIC_ASKS);
    ensure(talk->phase == TALK_NONE);
    if (peer_has_left(self, peer)) return tell_left(self, peer, why, ret_blame);
    *ret_blame = (struct group_blame){ .member = UINT32_MAX };
    prepare(&talk->out, &ask->said, ask->said.floats);
    talk->out.ready = talk->out.bytes;
    talk->wanted_bytes = ask->answer_floats * sizeof(float);
    expect(&talk->in, talk->wanted_bytes, ask->ret_floats);
    talk->number++;
    talk->phase = TALK_ASKED;
    talk->turn_left = TURN_MESSAGES;
    channels_write(self, peer);
    return 0;
}

// Whom we still wait for; UINT32_MAX: nobody.
static uint32_t first_asked(const group_t *self)
{
    for (uint32_t m = 0; m < self->member_count; m++)
        if (self->members[m] && (self->members[m]->talk.phase == TALK_ASKED ||
                                 self->members[m]->talk.phase == TALK_ANSWERED))
            return m;
    return UINT32_MAX;
}

int group_hear_answer(group_t *self, uint32_t timeout_ms, struct why *why,
                      struct group_blame *ret_blame, uint32_t *ret_member,
                      struct group_letter *ret_answer)
{
    struct peer *whole, *left;
    int rc = group_again(self, why, ret_blame);
    if (rc < 0) return rc;
    ensure(self->traffic == TRAFFIC_ASKS && first_asked(self) != UINT32_MAX);
    *ret_blame = (struct group_blame){ .member = UINT32_MAX };
    rc = run(self, TALK_ANSWERED, timeout_ms, why, &whole, &left);
    if (rc < 0) return rc;
    if (whole) {
        whole->talk.phase = TALK_NONE;
        *ret_member = whole->place;
        *ret_answer = letter_said(&whole->talk.in);
        return 0;
    }
    if (left) {
        left->talk.phase = TALK_NONE;
        close_channels(self, left);
        return tell_left(self, left, why, ret_blame);
    }
    ret_blame->member = first_asked(self);
    char name[PEER_NAME_MAX];
    return why_set(why, FAULT_TIMEOUT, "no answer of %s within %u ms",
                   peer_name(self->members[ret_blame->member], name), timeout_ms);
}

int group_hear_question(group_t *self, uint64_t floats, uint32_t timeout_ms, struct why *why,
                        struct group_blame *ret_blame, uint32_t *ret_member,
                        struct group_letter *ret_question)
{
    struct peer *whole, *left;
    int rc = group_again(self, why, ret_blame);
    if (rc < 0) return rc;
    if (self->traffic == TRAFFIC_NONE) self->question_bytes = floats * sizeof(float);
    begin(self, TRAFFIC_ANSWERS);
    ensure(self->question_bytes == floats * sizeof(float));
    *ret_blame = (struct group_blame){ .member = UINT32_MAX };
    rc = run(self, TALK_WAITS, timeout_ms, why, &whole, &left);
    if (rc < 0) return rc;
    if (whole) {
        whole->talk.phase = TALK_LENT;
        *ret_member = whole->place;
        *ret_question = letter_said(&whole->talk.in);
        return 0;
    }
    if (left) {
        left->talk.end_told = true;
        left->talk.phase = TALK_NONE;
        close_channels(self, left);
        return tell_left(self, left, why, ret_blame);
    }
    return why_set(why, FAULT_TIMEOUT, "no question came within %u ms", timeout_ms);
}

// Slice by slice into the room, and out of it while it is in the cache. The answer may lie in the room itself.
void group_answer(group_t *self, uint32_t member, const struct group_letter *answer)
{
    ensure(self->traffic == TRAFFIC_ANSWERS && member < self->member_count);
    struct peer *peer = self->members[member];
    ensure(peer && peer->talk.phase == TALK_LENT);
    struct talk *talk = &peer->talk;
    struct letter *out = &talk->out;
    const uint8_t *from = (const uint8_t *)answer->floats;
    uint8_t *before = NULL;
    if (answer->floats_count * sizeof(float) > talk->room_bytes) {
        before = talk->room;
        talk->room = NULL;
        talk->room_bytes = 0;
        lend_room(talk, answer->floats_count * sizeof(float));
    }
    prepare(out, answer, talk->room);
    talk->phase = TALK_ANSWERS;
    do {
        const size_t count = at_most(out->bytes - out->ready, SLICE_BYTES);
        if (count) memmove(out->floats + out->ready, from + out->ready, count);
        out->ready += count;
        talk->turn_left = 2 * TURN_MESSAGES;
        channels_write(self, peer);
    } while (out->ready < out->bytes);
    free(before);
}
