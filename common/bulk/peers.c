// peers -- a table of requests (wants), each for one peer and one fetch. Asking checks credit, then
// room for a socket, then sends. peers_next returns one event at a time, in this order: the
// remaining requests of a peer that was found silent, answers (peers take turns), then a peer whose
// connection has ended, a peer whose request timed out, a slow peer whose connection another one needs.
// Idle connections are closed last.

#include "common/base/ensure.h"
#include "common/bulk/fetch.h"
#include "common/bulk/peers.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A list of leaves is one long message that is heard when it is whole, so it gets more patience. A request that stays
// open while its peer answers others times out after OVERDUE times the patience.
enum {
    REMEMBERED_MAX = 4096,
    LEAVES_PATIENCE = 10,
    OVERDUE = 16,
    AT_ONCE_MAX = 3, // Peers that are asked for one piece
    IDLE_MS = 30000,
    SLOT_BITS = 8
};
_Static_assert(WANTS_MAX == 1 << SLOT_BITS, "a request number holds a slot in its lowest bits");

struct want {
    struct peer *peer; // NULL: a free slot
    struct fetch *fetch;
    uint32_t request, piece, count;
    uint64_t offset, sent_ms, patience_ms;
    struct hash hash;
    bool is_leaves;
};

struct peers {
    struct handshake_self self;
    char run[WIRE_RUN_MAX + 1];
    uint32_t patience_ms;
    struct peer **list;
    uint32_t count, count_max;
    struct peer *open[PEERS_OPEN_MAX];
    uint32_t open_count, turn;
    struct want wants[WANTS_MAX];
    uint32_t wants_count, bytes, serial;
    struct peer *silent; // Its remaining requests are reported before anything else
    bool is_crowded;     // A peer was refused a socket: a slow one must give up its own
    struct bulk_mail mail;
};

struct peers *peers_new(const struct identity *identity, const char *run, uint32_t patience_ms)
{
    struct peers *self = calloc(1, sizeof *self);
    ensure(self && strlen(run) <= WIRE_RUN_MAX && patience_ms > 0);
    snprintf(self->run, sizeof self->run, "%s", run);
    self->self = bulk_line_self(identity, run);
    self->patience_ms = patience_ms;
    return self;
}

static void close_peer(struct peers *self, struct peer *peer)
{
    uint32_t i = 0;
    if (!peer->is_open) return;
    while (self->open[i] != peer) i++;
    self->open[i] = self->open[--self->open_count];
    bulk_line_close(&peer->line);
    peer->is_open = false;
}

void peers_destroy(struct peers **self_p)
{
    struct peers *self = *self_p;
    if (!self) return;
    while (self->open_count) close_peer(self, self->open[0]);
    for (uint32_t i = 0; i < self->count; i++) free(self->list[i]);
    free(self->list);
    free(self);
    *self_p = NULL;
}

// ---- the list of peers ----------------------------------------------------------------------

static uint64_t name_hash(const struct wire_holder *holder) // FNV-1a
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *c = holder->endpoint; *c; c++) hash = (hash ^ (uint8_t)*c) * 0x100000001b3u;
    for (int i = 0; i < 8; i++) hash = (hash ^ holder->key.bytes[i]) * 0x100000001b3u;
    return hash;
}

struct peer *peers_find(struct peers *self, const struct wire_holder *holder)
{
    const uint64_t hash = name_hash(holder);
    for (uint32_t i = 0; i < self->count; i++) {
        struct peer *peer = self->list[i];
        if (peer->name_hash != hash || strcmp(peer->holder.endpoint, holder->endpoint) != 0 ||
            !key_equal(&peer->holder.key, &holder->key))
            continue;
        peer->users++;
        return peer;
    }
    if (self->count == self->count_max) {
        const uint32_t count_max = self->count_max ? 2 * self->count_max : 16;
        struct peer **list = realloc(self->list, count_max * sizeof *list);
        if (!list) return NULL;
        self->list = list;
        self->count_max = count_max;
    }
    struct peer *peer = calloc(1, sizeof *peer);
    if (!peer) return NULL;
    *peer = (struct peer){
        .holder = *holder, .name_hash = hash, .users = 1, .window = PEER_WINDOW_BEGIN
    };
    return self->list[self->count++] = peer;
}

// A peer is forgotten if no list names it, no request waits for it and it has no socket. A peer
// that lied, was silent or is slow is forgotten only if there are too many of them.
static void forget_peer(struct peers *self, struct peer *peer)
{
    uint32_t i = 0;
    if (peer->users || peer->wants || peer->is_open || peer == self->silent) return;
    if (reputation_is_doubtful(&peer->reputation) && self->count < REMEMBERED_MAX) return;
    while (self->list[i] != peer) i++;
    self->list[i] = self->list[--self->count];
    free(peer);
}

void peers_leave(struct peers *self, struct peer *peer)
{
    ensure(peer->users > 0);
    peer->users--;
    forget_peer(self, peer);
}

// ---- connections ----------------------------------------------------------------------------

static struct peer *find_idle(const struct peers *self)
{
    struct peer *oldest = NULL;
    for (uint32_t i = 0; i < self->open_count; i++) {
        struct peer *peer = self->open[i];
        if (peer->wants == 0 && (!oldest || peer->used_ms < oldest->used_ms)) oldest = peer;
    }
    return oldest;
}

static bool open_peer(struct peers *self, struct peer *peer)
{
    if (peer->is_open) return true;
    if (self->open_count == PEERS_OPEN_MAX) {
        struct peer *idle = find_idle(self);
        if (!idle) return false;
        close_peer(self, idle);
        forget_peer(self, idle);
    }
    if (bulk_line_connect(&peer->line, &self->self, &peer->holder, NULL) < 0) return false;
    self->open[self->open_count++] = peer;
    peer->has_news = true; // It may be connected at once
    return peer->is_open = true;
}

// ---- asking ---------------------------------------------------------------------------------

bool peers_is_spent(const struct peers *self)
{
    return self->wants_count == WANTS_MAX || self->bytes >= PEERS_BYTES_MAX;
}

static bool has_credit(const struct peers *self, const struct peer *peer, uint32_t bytes)
{
    // mutant: fetch: the first holders take all credit
    return peer != self->silent && peer->wants < PEER_WANTS_MAX &&
           (peer->wants == 0 || peer->bytes + bytes <= peer->window) &&
           self->wants_count + peer->wants < WANTS_MAX &&
           self->bytes + peer->bytes + bytes <= PEERS_BYTES_MAX;
}

static bool has_room(const struct peers *self, const struct peer *peer)
{
    return peer->is_open || self->open_count < PEERS_OPEN_MAX || find_idle(self);
}

static bool ask(struct peers *self, const struct want *question)
{
    struct peer *peer = question->peer;
    uint32_t slot = 0;
    if (!has_credit(self, peer, question->count)) return false;
    if (!has_room(self, peer)) {
        // mutant: fetch: a slow peer keeps its connection
        self->is_crowded = true;
        return false;
    }
    while (self->wants[slot].peer) slot++;
    struct want *want = &self->wants[slot];
    *want = *question;
    want->request = ++self->serial << SLOT_BITS | slot;
    const struct wire_want piece = { want->request, want->hash, want->offset, want->count };
    const struct wire_want_leaves leaves = { want->request, want->hash };
    peer->used_ms = question->sent_ms;
    if (!open_peer(self, peer)) want->sent_ms = 0; // No connection: it times out at once
    else if (want->is_leaves)
        bulk_line_put(&peer->line, self->run, FRAME_WANT_LEAVES, &leaves, NULL, 0);
    else bulk_line_put(&peer->line, self->run, FRAME_WANT, &piece, NULL, 0);
    if (peer->wants == 0) peer->patience_ms = 0;
    if (peer->patience_ms < want->patience_ms) peer->patience_ms = want->patience_ms;
    peer->wants++;
    peer->bytes += want->count;
    self->wants_count++;
    self->bytes += want->count;
    return true;
}

bool peers_ask_piece(struct peers *self, struct peer *peer, struct fetch *fetch, uint32_t piece,
                     const struct hash *hash, uint64_t offset, uint32_t count, uint64_t now_ms)
{
    ensure(count >= 1 && count <= BULK_CHUNK_BYTES);
    return ask(self, &(struct want){ .peer = peer,
                                     .fetch = fetch,
                                     .piece = piece,
                                     .count = count,
                                     .offset = offset,
                                     .sent_ms = now_ms,
                                     .patience_ms = self->patience_ms,
                                     .hash = *hash });
}

// A list is sent whole, as chunks are: it has the time of as many of them as it is long.
static uint64_t list_patience(const struct peers *self, uint32_t leaves)
{
    const uint64_t chunks = (uint64_t)leaves * HASH_BYTES / BULK_CHUNK_BYTES + 1;
    return self->patience_ms * (chunks > LEAVES_PATIENCE ? chunks : LEAVES_PATIENCE);
}

bool peers_ask_leaves(struct peers *self, struct peer *peer, struct fetch *fetch,
                      const struct hash *digest, uint32_t leaves, uint64_t now_ms)
{
    return ask(self, &(struct want){ .peer = peer,
                                     .fetch = fetch,
                                     .piece = PIECE_LEAVES,
                                     .sent_ms = now_ms,
                                     .hash = *digest,
                                     .patience_ms = list_patience(self, leaves),
                                     .is_leaves = true });
}

static bool is_late(const struct want *want, uint64_t now_ms)
{
    return now_ms > want->sent_ms + want->patience_ms / 2;
}

// Open requests for the piece. With a peer: those to it alone.
static uint32_t count_asked(const struct peers *self, const struct peer *peer,
                            const struct fetch *fetch, uint32_t piece)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < WANTS_MAX; i++) {
        const struct want *want = &self->wants[i];
        count += want->peer && want->fetch == fetch && want->piece == piece &&
                 (!peer || want->peer == peer);
    }
    return count;
}

bool peers_await(const struct peers *self, const struct fetch *fetch, uint32_t piece)
{
    return count_asked(self, NULL, fetch, piece) > 0;
}

// Late, or of a fetch that is urgent since `urgent_ms`, and not answered quickly. It does not matter
// whether its peer sends other pieces meanwhile, or parts of this one: that would let it say how long
// we wait.
static bool may_repeat(const struct want *want, uint64_t urgent_ms, uint64_t now_ms)
{
    if (is_late(want, now_ms)) return true;
    const uint64_t since_ms = want->sent_ms > urgent_ms ? want->sent_ms : urgent_ms;
    // mutant: fetch: what is urgent has as much patience as all
    return urgent_ms && (reputation_is_doubtful(&want->peer->reputation) ||
                         now_ms >= since_ms + PEERS_URGENT_MS);
}

bool peers_ask_again(struct peers *self, struct peer *peer, struct fetch *fetch, uint64_t urgent_ms,
                     uint64_t now_ms)
{
    const struct want *oldest = NULL;
    if (peer->reputation.is_slow) return false;
    for (uint32_t i = 0; i < WANTS_MAX; i++) {
        const struct want *want = &self->wants[i];
        if (want->peer && want->fetch == fetch && may_repeat(want, urgent_ms, now_ms) &&
            (!oldest || want->sent_ms < oldest->sent_ms) &&
            count_asked(self, NULL, fetch, want->piece) < AT_ONCE_MAX &&
            !count_asked(self, peer, fetch, want->piece) &&
            (!fetch->may_have || fetch->may_have(fetch, peer, want->piece)))
            oldest = want;
    }
    if (!oldest) return false;
    struct want question = *oldest;
    question.peer = peer;
    question.sent_ms = now_ms;
    return ask(self, &question);
}

uint32_t peers_forget_piece(struct peers *self, const struct fetch *fetch, uint32_t piece)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < WANTS_MAX; i++) {
        struct want *want = &self->wants[i];
        if (want->fetch != fetch || want->piece != piece) continue;
        want->fetch = NULL;
        count++;
    }
    return count;
}

void peers_forget_fetch(struct peers *self, const struct fetch *fetch)
{
    for (uint32_t i = 0; i < WANTS_MAX; i++)
        if (self->wants[i].fetch == fetch) self->wants[i].fetch = NULL;
}

// ---- answers --------------------------------------------------------------------------------

static uint64_t deadline_ms(const struct want *want)
{
    const uint64_t heard_ms = want->peer->heard_ms, patience_ms = want->peer->patience_ms;
    const uint64_t since_ms = want->sent_ms > heard_ms ? want->sent_ms : heard_ms;
    const uint64_t quiet_ms = since_ms + patience_ms;
    const uint64_t overdue_ms = want->sent_ms + patience_ms * OVERDUE;
    return quiet_ms < overdue_ms ? quiet_ms : overdue_ms;
}

int peers_timeout_ms(const struct peers *self, uint64_t now_ms)
{
    uint64_t first_ms = UINT64_MAX;
    for (uint32_t i = 0; i < WANTS_MAX; i++) {
        if (!self->wants[i].peer) continue;
        const uint64_t at_ms = deadline_ms(&self->wants[i]);
        if (at_ms < first_ms) first_ms = at_ms;
    }
    for (uint32_t i = 0; i < self->open_count; i++)
        if (self->open[i]->has_news) return 0;
    if (self->silent) return 0;
    if (first_ms == UINT64_MAX) return -1;
    return first_ms <= now_ms ? 0 : (int)(first_ms - now_ms);
}

int peers_fill_items(const struct peers *self, struct pollfd *items)
{
    for (uint32_t i = 0; i < self->open_count; i++)
        items[i] = (struct pollfd){ .fd = self->open[i]->line.fd,
                                    .events = bulk_line_events(&self->open[i]->line) };
    return (int)self->open_count;
}

void peers_hear_items(struct peers *self, const struct pollfd *items)
{
    for (uint32_t i = 0; i < self->open_count; i++)
        if (items[i].revents) self->open[i]->has_news = true;
}

void peers_send(struct peers *self)
{
    for (uint32_t i = 0; i < self->open_count; i++) {
        struct peer *peer = self->open[i];
        if (peer->line.out && bulk_line_move(&peer->line, NULL) < 0)
            peer->has_news = true; // The connection has ended
    }
}

// The window is halved at most once for all requests that were sent before the last halving.
static void judge_pace(const struct want *want, uint64_t now_ms)
{
    struct peer *peer = want->peer;
    // mutant: fetch: nobody is slow
    peer->reputation.is_slow = is_late(want, now_ms);
    if (!peer->reputation.is_slow) {
        peer->window += BULK_CHUNK_BYTES;
        if (peer->window > PEER_WINDOW_MAX) peer->window = PEER_WINDOW_MAX;
    } else if (want->sent_ms >= peer->halved_ms) {
        peer->window /= 2;
        peer->halved_ms = now_ms;
    }
}

// Ends a request and fills in the answer.
static void finish(struct peers *self, struct want *want, enum answer_kind kind, struct answer *ret)
{
    struct peer *peer = want->peer;
    ret->kind = kind;
    ret->fetch = want->fetch;
    ret->peer = peer;
    ret->piece = want->piece;
    peer->wants--;
    peer->bytes -= want->count;
    self->wants_count--;
    self->bytes -= want->count;
    want->peer = NULL;
    want->fetch = NULL;
}

static struct want *find_want(struct peers *self, const struct peer *peer, uint32_t request)
{
    struct want *want = &self->wants[request & (WANTS_MAX - 1)];
    return want->peer == peer && want->request == request ? want : NULL;
}

static enum answer_kind judge_chunk(const struct want *want, const struct wire_chunk *chunk,
                                    size_t count)
{
    if (want->is_leaves || !hash_equal(&chunk->hash, &want->hash) ||
        chunk->offset != want->offset || chunk->offset > chunk->total)
        return ANSWER_WRONG;
    const uint64_t rest = chunk->total - chunk->offset;
    return count == (rest < want->count ? rest : want->count) ? ANSWER_CHUNK : ANSWER_WRONG;
}

// False: the message answers no open request.
static bool hear(struct peers *self, struct peer *peer, uint64_t now_ms, struct answer *ret)
{
    const struct bulk_mail *mail = &self->mail;
    *ret = (struct answer){ .bytes = mail->raw, .count = mail->raw_count };
    enum answer_kind kind;
    struct want *want;
    if (mail->head.kind == FRAME_CHUNK && mail->raw) {
        const struct wire_chunk *chunk = mail->body;
        if (!(want = find_want(self, peer, chunk->request))) return false;
        kind = judge_chunk(want, chunk, ret->count);
        ret->total = chunk->total;
    } else if (mail->head.kind == FRAME_LEAVES && mail->raw) {
        const struct wire_leaves *leaves = mail->body;
        if (!(want = find_want(self, peer, leaves->request))) return false;
        kind = want->is_leaves && hash_equal(&leaves->digest, &want->hash) ? ANSWER_LEAVES
                                                                           : ANSWER_WRONG;
    } else if (mail->head.kind == FRAME_LACKING) {
        const struct wire_lacking *lacking = mail->body;
        if (!(want = find_want(self, peer, lacking->request))) return false;
        kind = ANSWER_LACKING;
    } else {
        return false;
    }
    peer->heard_ms = now_ms;
    peer->reputation.failed_ms = 0;
    if (kind == ANSWER_WRONG) peer->reputation.has_lied = true;
    else judge_pace(want, now_ms);
    finish(self, want, kind, ret);
    return true;
}

// Ends the next request of the silent peer. When none is left, its socket is closed, its window is
// the smallest again, and it is marked as silent.
static bool next_silence(struct peers *self, uint64_t now_ms, struct answer *ret)
{
    struct peer *peer = self->silent;
    for (uint32_t i = 0; i < WANTS_MAX; i++) {
        if (self->wants[i].peer != peer) continue;
        *ret = (struct answer){ 0 };
        finish(self, &self->wants[i], ANSWER_SILENT, ret);
        return true;
    }
    self->silent = NULL;
    close_peer(self, peer);
    peer->window = PEER_WINDOW_BEGIN;
    peer->reputation.failed_ms = now_ms;
    forget_peer(self, peer);
    return false;
}

static bool find_silent(struct peers *self, uint64_t now_ms)
{
    for (uint32_t i = 0; i < WANTS_MAX; i++) {
        const struct want *want = &self->wants[i];
        if (!want->peer) continue;
        if (is_late(want, now_ms)) judge_pace(want, now_ms);
        if (now_ms < deadline_ms(want)) continue;
        self->silent = want->peer;
        return true;
    }
    return false;
}

static bool find_who_gives_way(struct peers *self)
{
    const bool is_crowded = self->is_crowded;
    self->is_crowded = false;
    for (uint32_t i = 0; i < self->open_count && is_crowded; i++) {
        if (!self->open[i]->reputation.is_slow) continue;
        self->silent = self->open[i];
        return true;
    }
    return false;
}

static void close_idle(struct peers *self, uint64_t now_ms)
{
    for (uint32_t i = self->open_count; i-- > 0;) {
        struct peer *peer = self->open[i];
        if (peer->wants || now_ms < peer->used_ms + IDLE_MS) continue;
        close_peer(self, peer);
        forget_peer(self, peer);
    }
}

// The longest answer that may still come from a peer.
static size_t longest_answer(const struct peers *self, const struct peer *peer)
{
    size_t longest = 0;
    for (uint32_t i = 0; i < WANTS_MAX; i++) {
        const struct want *want = &self->wants[i];
        const size_t count = want->is_leaves ? BULK_ANSWER_BYTES_MAX : want->count;
        if (want->peer == peer && count > longest) longest = count;
    }
    return longest;
}

// True: *ret is an answer of this peer. Else it may have become silent: its connection has ended, or it
// says what nobody asked.
static bool hear_peer(struct peers *self, struct peer *peer, uint64_t now_ms, struct answer *ret)
{
    enum bulk_heard heard = BULK_NOTHING;
    if (!peer->has_news) return false;
    const int rc = bulk_line_move(&peer->line, NULL);
    if (rc == 1) {
        peer->line.raw_max = longest_answer(self, peer);
        heard = bulk_line_recv(&peer->line, &self->mail, NULL);
    }
    if (heard == BULK_MAIL && hear(self, peer, now_ms, ret)) return true;
    // mutant: fetch: a peer may say what nobody asked
    if (heard == BULK_MAIL) peer->reputation.has_lied = true;
    if (rc >= 0 && heard == BULK_NOTHING) return peer->has_news = false;
    if (peer->wants || heard == BULK_MAIL) self->silent = peer;
    else { // It may: nothing was asked
        close_peer(self, peer);
        forget_peer(self, peer);
    }
    return false;
}

bool peers_next(struct peers *self, uint64_t now_ms, struct answer *ret_answer)
{
    if (self->silent && next_silence(self, now_ms, ret_answer)) return true;
    for (uint32_t tried = 0; tried < self->open_count; tried++) {
        if (hear_peer(self, self->open[self->turn++ % self->open_count], now_ms, ret_answer))
            return true;
        if (self->silent && next_silence(self, now_ms, ret_answer)) return true;
    }
    if ((find_silent(self, now_ms) || find_who_gives_way(self)) &&
        next_silence(self, now_ms, ret_answer))
        return true;
    close_idle(self, now_ms);
    return false;
}
