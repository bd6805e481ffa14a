// blob_fetch -- each turn decides how many holders may serve, then asks them in turns for missing
// chunks while they have credit. Each chunk that arrives goes into its place, and is hashed as soon as all chunks
// before it are here. When the last one is here the hash is compared: if it is wrong, all chunks are thrown away and
// one holder after the other is asked for the whole blob.

#include "common/base/ensure.h"
#include "common/base/large_pages.h"
#include "common/bulk/blob_fetch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum chunk_state { CHUNK_MISSING, CHUNK_COMING, CHUNK_HERE };

static void hear(struct fetch *fetch, const struct answer *answer);

struct blob_fetch *blob_fetch_new(struct peers *peers, const struct hash *hash, uint32_t bytes)
{
    struct blob_fetch *self = calloc(1, sizeof *self);
    ensure(self && bytes <= BLOB_BYTES_MAX);
    fetch_init(&self->fetch, peers, hear);
    self->hash = *hash;
    self->count = bytes;
    self->chunk_count = (bytes + BULK_CHUNK_BYTES - 1) / BULK_CHUNK_BYTES;
    return self;
}

static void stop_hashing(struct blob_fetch *self)
{
    if (self->is_hashing) hash_run_drop(&self->run);
    self->is_hashing = false;
}

void blob_fetch_destroy(struct blob_fetch **self_p)
{
    struct blob_fetch *self = *self_p;
    if (!self) return;
    fetch_end(&self->fetch);
    stop_hashing(self);
    free(self->bytes);
    free(self->chunks);
    free(self);
    *self_p = NULL;
}

// Back to the beginning: no chunk is here, and answers on their way are ignored.
static void reset(struct blob_fetch *self)
{
    peers_forget_fetch(self->fetch.peers, &self->fetch);
    memset(self->chunks, CHUNK_MISSING, self->chunk_count);
    self->here = self->coming = self->in_row = self->next = 0;
    stop_hashing(self);
    hash_run_begin(&self->run, self->beside, self->bytes);
    self->is_hashing = true;
    for (uint32_t i = 0; i < self->fetch.holders_count; i++)
        self->fetch.holders[i].has_served = false;
}

bool blob_fetch_start(struct blob_fetch *self, struct hash_beside *beside)
{
    self->beside = self->chunk_count < HASH_BESIDE_CHUNKS ? NULL : beside;
    self->bytes = large_pages_new(self->count);
    self->chunks = malloc(self->chunk_count + 1);
    if (!self->bytes || !self->chunks) {
        fetch_fail(&self->fetch, "no memory for its %zu bytes", self->count);
        return false;
    }
    reset(self);
    return true;
}

// ---- asking ---------------------------------------------------------------------------------

static uint32_t chunk_bytes(const struct blob_fetch *self, uint32_t chunk)
{
    const size_t rest = self->count - (size_t)chunk * BULK_CHUNK_BYTES;
    return rest < BULK_CHUNK_BYTES ? (uint32_t)rest : BULK_CHUNK_BYTES;
}

// Asks one holder for the next missing chunk, or for a late one. False: there is none, or no
// credit.
static bool ask_one(struct blob_fetch *self, struct peer *peer, uint64_t now_ms)
{
    while (self->next < self->chunk_count && self->chunks[self->next] != CHUNK_MISSING)
        self->next++;
    if (self->next == self->chunk_count) {
        if (!peers_ask_again(self->fetch.peers, peer, &self->fetch, self->urgent_ms, now_ms))
            return false;
        self->coming++;
        return true;
    }
    const uint32_t chunk = self->next;
    if (!peers_ask_piece(self->fetch.peers, peer, &self->fetch, chunk, &self->hash,
                         (uint64_t)chunk * BULK_CHUNK_BYTES, chunk_bytes(self, chunk), now_ms))
        return false;
    self->chunks[chunk] = CHUNK_COMING;
    self->coming++;
    return true;
}

// Only one holder serves. A slow one is dropped, with its chunks, while another is untried.
static uint32_t serve_alone(struct blob_fetch *self)
{
    struct fetch *fetch = &self->fetch;
    for (uint32_t i = 0; i < fetch->holders_count; i++) {
        struct holder *holder = &fetch->holders[i];
        if (holder->state != HOLDER_SERVING) continue;
        if (!holder->peer->reputation.is_slow || fetch_count(fetch, HOLDER_UNTRIED) == 0) return 1;
        holder->state = HOLDER_SILENT;
        reset(self);
    }
    return fetch_take_next(fetch) ? 1 : 0;
}

void blob_fetch_ask(struct blob_fetch *self, uint64_t now_ms)
{
    struct fetch *fetch = &self->fetch;
    const uint32_t missing = self->chunk_count - self->here;
    uint32_t width = 1 + missing / SHARE_CHUNKS;
    if (missing == 0) return;
    if (width > SHARE_HOLDERS_MAX) width = SHARE_HOLDERS_MAX;
    // mutant: fetch: an urgent blob comes from one holder
    if (self->urgent_ms) width += URGENT_HOLDERS;
    const uint32_t serving = self->is_single ? serve_alone(self) : fetch_widen(fetch, width);
    if (serving == 0 && self->coming == 0) fetch_fail_for_holders(fetch, "it");
    for (bool asked = true; asked;) { // In turns
        asked = false;
        for (uint32_t i = 0; i < fetch->holders_count; i++)
            if (fetch->holders[i].state == HOLDER_SERVING &&
                ask_one(self, fetch->holders[i].peer, now_ms))
                asked = true;
    }
}

// ---- hearing --------------------------------------------------------------------------------

static void hash_what_is_here(struct blob_fetch *self)
{
    while (self->in_row < self->chunk_count && self->chunks[self->in_row] == CHUNK_HERE)
        self->in_row++;
    const size_t bytes = (size_t)self->in_row * BULK_CHUNK_BYTES;
    hash_run_give(&self->run, bytes < self->count ? bytes : self->count);
}

// All chunks are here and the hash is wrong. If one holder sent them all, it lied; if there were
// several, the liar is unknown, and from now on one holder at a time is asked.
static void reject_whole(struct blob_fetch *self)
{
    struct holder *sender = NULL;
    uint32_t senders = 0;
    for (uint32_t i = 0; i < self->fetch.holders_count; i++) {
        struct holder *holder = &self->fetch.holders[i];
        if (holder->has_served) senders++, sender = holder;
        if (holder->state == HOLDER_SERVING) holder->state = HOLDER_UNTRIED;
    }
    if (senders == 1) {
        sender->state = HOLDER_LIED;
        sender->peer->reputation.has_lied = true;
    }
    self->is_single = true;
    reset(self);
}

static void take_chunk(struct blob_fetch *self, const struct answer *answer)
{
    memcpy(self->bytes + (size_t)answer->piece * BULK_CHUNK_BYTES, answer->bytes, answer->count);
    self->chunks[answer->piece] = CHUNK_HERE;
    self->here++;
    self->coming -= peers_forget_piece(self->fetch.peers, &self->fetch, answer->piece);
    struct holder *holder = fetch_holder_of(&self->fetch, answer->peer);
    if (holder) holder->has_served = true;
    hash_what_is_here(self);
    if (self->here < self->chunk_count) return;
    const struct hash hash = hash_run_end(&self->run);
    self->is_hashing = false;
    if (!hash_equal(&hash, &self->hash)) reject_whole(self);
}

static enum holder_state state_after(enum answer_kind kind)
{
    return kind == ANSWER_LACKING  ? HOLDER_LACKS
           : kind == ANSWER_SILENT ? HOLDER_SILENT
           : kind == ANSWER_CHUNK  ? HOLDER_DIFFERS
                                   : HOLDER_LIED;
}

static void hear(struct fetch *fetch, const struct answer *answer)
{
    struct blob_fetch *self = (struct blob_fetch *)fetch;
    struct holder *holder = fetch_holder_of(fetch, answer->peer);
    self->coming--;
    if (answer->kind == ANSWER_CHUNK && answer->total == self->count &&
        answer->count == chunk_bytes(self, answer->piece)) {
        take_chunk(self, answer);
        return;
    }
    if (!peers_await(fetch->peers, fetch, answer->piece)) {
        self->chunks[answer->piece] = CHUNK_MISSING;
        if (answer->piece < self->next) self->next = answer->piece;
    }
    if (holder && holder->state == HOLDER_SERVING) {
        holder->state = (uint8_t)state_after(answer->kind);
        if (self->is_single) reset(self);
    }
}

bool blob_fetch_is_whole(const struct blob_fetch *self)
{
    return self->here == self->chunk_count && self->fetch.state == FETCH_GOING;
}

void blob_fetch_keep(struct blob_fetch *self, blob_store_t *store)
{
    struct why why = { 0 };
    const int rc = blob_store_take_known(store, &self->hash, &self->bytes, self->count, &why);
    if (!blob_store_is_kept(rc)) {
        fetch_fail(&self->fetch, "%.*s", FETCH_REASON_MAX - 1, why.text);
    } else {
        self->fetch.state = FETCH_DONE; // On disk or, failing that, in memory
        snprintf(self->fetch.reason, sizeof self->fetch.reason, "%.*s", FETCH_REASON_MAX - 1,
                 why.text);
    }
}

void blob_fetch_sync(struct blob_fetch *self, blob_store_t *store)
{
    struct why why = { 0 };
    if (self->fetch.state != FETCH_DONE || self->fetch.reason[0]) return;
    if (blob_store_sync(store, &self->hash, &why) < 0)
        snprintf(self->fetch.reason, sizeof self->fetch.reason, "%.*s", FETCH_REASON_MAX - 1,
                 why.text);
}
