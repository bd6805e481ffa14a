// Runs both transfers of a fetcher, blob and model, against peers that answer anything, in any
// order, or not at all. The peers are the test's own: no socket is opened.
//
//     what (answer kind, honest or not, slow or not), which request, how many bytes, which byte is wrong

#include "common/base/ensure.h"
#include "common/bulk/blob_fetch.h"
#include "common/bulk/model_fetch.h"
#include "common/crypto/merkle.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PEERS = 3,
    AT_ONCE_MAX = 3,
    ASKED_MAX = 64,
    ANSWER_BYTES = 4,
    FLOATS = 2 * DIGEST_LEAF_FLOATS + 100,
    BLOB_BYTES = BULK_CHUNK_BYTES + 1000
};

struct asked {
    struct fetch *fetch;
    struct peer *peer;
    uint32_t piece, count;
    uint64_t offset;
    bool leaves;
};

struct peers {
    struct peer peers[PEERS];
    struct asked asked[ASKED_MAX];
    uint32_t asked_count;
};

static bool is_late; // Whatever is asked for, just now

// ---- peers.h, without a network -----------------------------------------------------------------

struct peers *peers_new(const struct identity *identity, const char *run, uint32_t patience_ms)
{
    (void)identity, (void)run, (void)patience_ms;
    struct peers *self = calloc(1, sizeof *self);
    ensure(self);
    for (int i = 0; i < PEERS; i++)
        snprintf(self->peers[i].holder.endpoint, sizeof self->peers[i].holder.endpoint, "tcp://%d",
                 i);
    return self;
}

void peers_destroy(struct peers **self_p)
{
    free(*self_p);
    *self_p = NULL;
}

struct peer *peers_find(struct peers *self, const struct wire_holder *holder)
{
    for (int i = 0; i < PEERS; i++)
        if (strcmp(self->peers[i].holder.endpoint, holder->endpoint) == 0) {
            self->peers[i].users++;
            return &self->peers[i];
        }
    return NULL;
}

void peers_leave(struct peers *self, struct peer *peer)
{
    (void)self;
    ensure(peer->users-- > 0);
}

bool peers_is_spent(const struct peers *self) { return self->asked_count == ASKED_MAX; }

static bool ask(struct peers *self, const struct asked *asked)
{
    if (self->asked_count == ASKED_MAX) return false;
    self->asked[self->asked_count++] = *asked;
    return true;
}

bool peers_ask_piece(struct peers *self, struct peer *peer, struct fetch *fetch, uint32_t piece,
                     const struct hash *hash, uint64_t offset, uint32_t count, uint64_t now_ms)
{
    (void)hash, (void)now_ms;
    return ask(self, &(struct asked){ fetch, peer, piece, count, offset, false });
}

bool peers_ask_leaves(struct peers *self, struct peer *peer, struct fetch *fetch,
                      const struct hash *digest, uint32_t leaves, uint64_t now_ms)
{
    (void)digest, (void)leaves, (void)now_ms;
    return ask(self, &(struct asked){
                         .fetch = fetch, .peer = peer, .piece = PIECE_LEAVES, .leaves = true });
}

static uint32_t count_asked(const struct peers *self, const struct peer *peer,
                            const struct fetch *fetch, uint32_t piece)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < self->asked_count; i++)
        count += self->asked[i].fetch == fetch && self->asked[i].piece == piece &&
                 (!peer || self->asked[i].peer == peer);
    return count;
}

bool peers_await(const struct peers *self, const struct fetch *fetch, uint32_t piece)
{
    return count_asked(self, NULL, fetch, piece) > 0;
}

bool peers_ask_again(struct peers *self, struct peer *peer, struct fetch *fetch, uint64_t urgent_ms,
                     uint64_t now_ms)
{
    (void)now_ms;
    const bool may_repeat = (is_late || urgent_ms) && !peer->reputation.is_slow;
    for (uint32_t i = 0; i < self->asked_count && may_repeat; i++) {
        struct asked again = self->asked[i];
        if (again.fetch != fetch || count_asked(self, NULL, fetch, again.piece) == AT_ONCE_MAX ||
            count_asked(self, peer, fetch, again.piece))
            continue;
        again.peer = peer;
        return ask(self, &again);
    }
    return false;
}

uint32_t peers_forget_piece(struct peers *self, const struct fetch *fetch, uint32_t piece)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < self->asked_count; i++) {
        if (self->asked[i].fetch != fetch || self->asked[i].piece != piece) continue;
        self->asked[i].fetch = NULL;
        count++;
    }
    return count;
}

void peers_forget_fetch(struct peers *self, const struct fetch *fetch)
{
    for (uint32_t i = 0; i < self->asked_count; i++)
        if (self->asked[i].fetch == fetch) self->asked[i].fetch = NULL;
}

int peers_fill_items(const struct peers *self, struct pollfd *items)
{
    (void)self, (void)items;
    return 0;
}

void peers_hear_items(struct peers *self, const struct pollfd *items) { (void)self, (void)items; }
void peers_send(struct peers *self) { (void)self; }

int peers_timeout_ms(const struct peers *self, uint64_t now_ms)
{
    (void)self, (void)now_ms;
    return 0;
}

bool peers_next(struct peers *self, uint64_t now_ms, struct answer *ret_answer)
{
    (void)self, (void)now_ms, (void)ret_answer;
    return false;
}

// ---- what they hold, and what they say of it ----------------------------------------------------

struct truth {
    const uint8_t *bytes;
    size_t count;
    const struct hash *leaves;
    size_t leaf_count;
};

static uint8_t said[BULK_CHUNK_BYTES + 16];

// The true bytes of what was asked for; of a leaf, those of its place in the vector.
static size_t fill_truth(const struct truth *truth, const struct asked *asked)
{
    const uint64_t begin =
        truth->leaves ? (uint64_t)asked->piece * DIGEST_LEAF_FLOATS * 4 : asked->offset;
    size_t count = truth->count - (size_t)begin;
    ensure(begin < truth->count);
    if (count > asked->count) count = asked->count;
    memcpy(said, truth->bytes + begin, count);
    return count;
}

static void answer_one(struct peers *peers, const struct truth *truth, const uint8_t *event)
{
    static const enum answer_kind kinds[8] = { ANSWER_CHUNK, ANSWER_CHUNK,   ANSWER_CHUNK,
                                               ANSWER_CHUNK, ANSWER_LACKING, ANSWER_SILENT,
                                               ANSWER_WRONG, ANSWER_CHUNK };
    if (peers->asked_count == 0) return;
    const uint32_t which = event[1] % peers->asked_count;
    const struct asked asked = peers->asked[which];
    memmove(peers->asked + which, peers->asked + which + 1,
            (--peers->asked_count - which) * sizeof asked);
    is_late = event[0] & 0x10;
    if (!asked.fetch) return;
    asked.peer->reputation.is_slow = event[0] & 0x08;
    struct answer answer = { .kind = kinds[event[0] % 8],
                             .fetch = asked.fetch,
                             .peer = asked.peer,
                             .piece = asked.piece,
                             .bytes = said,
                             .total = truth->count };
    if (answer.kind == ANSWER_CHUNK && asked.leaves) {
        answer.kind = ANSWER_LEAVES;
        answer.count = truth->leaf_count * HASH_BYTES;
        if (truth->leaves) memcpy(said, truth->leaves, answer.count);
    } else if (answer.kind == ANSWER_CHUNK) answer.count = fill_truth(truth, &asked);
    if (event[0] & 0x80 && answer.count) said[event[3] % answer.count] ^= 1;
    if (event[0] & 0x40) answer.total += event[3];
    if (event[0] & 0x20) answer.count = answer.count > event[2] ? answer.count - event[2] : 0;
    answer.fetch->hear(answer.fetch, &answer);
}

static const struct wire_holder holders[PEERS + 1] = { { .endpoint = "tcp://0" },
                                                       { .endpoint = "tcp://1" },
                                                       { .endpoint = "tcp://2" },
                                                       { .endpoint = "tcp://nobody" } };

static bool fetch_blob(const uint8_t *at, const uint8_t *end, blob_store_t *store)
{
    static uint8_t bytes[BLOB_BYTES];
    static struct hash hash;
    const struct truth truth = { .bytes = bytes, .count = BLOB_BYTES };
    if (bytes[BLOB_BYTES - 1] == 0) {
        for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i >> 8 | 1);
        hash = hash_of(bytes, sizeof bytes);
    }
    struct peers *peers = peers_new(NULL, "", 1);
    struct blob_fetch *blob = blob_fetch_new(peers, &hash, BLOB_BYTES);
    fetch_add_holders(&blob->fetch, holders, PEERS + 1);
    ensure(blob_fetch_start(blob, NULL));
    for (; end - at >= ANSWER_BYTES && blob->fetch.state == FETCH_GOING; at += ANSWER_BYTES) {
        blob_fetch_ask(blob, 1);
        answer_one(peers, &truth, at);
        if (!blob_fetch_is_whole(blob)) continue;
        ensure(memcmp(blob->bytes, bytes, sizeof bytes) == 0); // Nothing else is ever whole
        blob_fetch_keep(blob, store);
        size_t kept;
        ensure(blob_store_size(store, &hash, &kept) && kept == sizeof bytes);
    }
    const bool done = blob->fetch.state == FETCH_DONE;
    blob_fetch_destroy(&blob);
    for (int i = 0; i < PEERS; i++) ensure(peers->peers[i].users == 0);
    peers_destroy(&peers);
    return done;
}

static bool fetch_model(const uint8_t *at, const uint8_t *end, blob_store_t *store)
{
    static float values[FLOATS];
    static struct hash leaves[FLOATS / DIGEST_LEAF_FLOATS + 1];
    const size_t leaf_count = digest_leaf_count(FLOATS);
    if (values[FLOATS - 1] == 0) {
        for (size_t i = 0; i < FLOATS; i++) values[i] = (float)(i >> 6);
        digest_fill_leaves(values, FLOATS, 0, leaf_count, leaves);
    }
    const struct state_cut cut = { 2, { STATE_LEAF_BYTES, sizeof values - STATE_LEAF_BYTES } };
    const struct hash digest = state_cut_root(&cut, leaves);
    const struct truth truth = { (const uint8_t *)values, sizeof values, leaves, leaf_count };
    struct peers *peers = peers_new(NULL, "", 1);
    struct model_fetch *model = model_fetch_new(peers, 3, &digest, &cut);
    model_fetch_begin(model, 3, holders, PEERS + 1);
    for (; end - at >= ANSWER_BYTES && model->fetch.state != FETCH_DONE; at += ANSWER_BYTES) {
        if (model->fetch.state == FETCH_FAILED) model_fetch_begin(model, 3, holders, PEERS + 1);
        model_fetch_work(model, store, 1);
        answer_one(peers, &truth, at);
    }
    const bool done = model->fetch.state == FETCH_DONE;
    ensure(!done || memcmp(model->copy.bytes, values, sizeof values) == 0);
    model_fetch_destroy(&model);
    for (int i = 0; i < PEERS; i++) ensure(peers->peers[i].users == 0);
    peers_destroy(&peers);
    return done;
}

bool bulk_fuzz_check(const uint8_t *bytes, size_t count)
{
    blob_store_t *store;
    if (count == 0) return false;
    ensure(blob_store_new(NULL, NULL, &store) == 0);
    const bool done = bytes[0] == 'm' ? fetch_model(bytes + 1, bytes + count, store)
                                      : fetch_blob(bytes + 1, bytes + count, store);
    blob_store_destroy(&store);
    return done;
}

void bulk_fuzz_write_seeds(const char *folder)
{
    uint8_t seed[1 + 12 * ANSWER_BYTES] = { 'b' };
    fuzz_write_seed(folder, "seed-blob", seed, sizeof seed);
    seed[1 + ANSWER_BYTES] = 0x80;
    fuzz_write_seed(folder, "seed-blob-liar", seed, sizeof seed);
    seed[0] = 'm';
    fuzz_write_seed(folder, "seed-model-liar", seed, sizeof seed);
    seed[1 + ANSWER_BYTES] = 0;
    fuzz_write_seed(folder, "seed-model", seed, sizeof seed);
}
