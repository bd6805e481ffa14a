// model_fetch -- three parts, in order: LIST gets the hashes of the leaves and compares their root
// with the digest; COPY takes leaves that our own pins have; PULL asks all holders in turns for the
// rest. Each leaf is hashed before it goes to its place in the copy, and refused if the hash differs.

#include "common/base/ensure.h"
#include "common/bulk/model_fetch.h"
#include "common/crypto/merkle.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)STATE_LEAF_BYTES <= (int)BULK_CHUNK_BYTES, "a leaf is one piece");

static void hear(struct fetch *fetch, const struct answer *answer);

// 0: no state has such items.
static uint32_t leaves_of(const struct state_cut *cut)
{
    for (uint32_t i = 0; i < cut->count; i++)
        if (cut->bytes[i] == 0) return 0;
    const uint64_t leaves = state_cut_leaves(cut);
    return leaves <= BULK_LEAVES_MAX ? (uint32_t)leaves : 0;
}

struct model_fetch *model_fetch_new(struct peers *peers, uint64_t step, const struct hash *digest,
                                    const struct state_cut *cut)
{
    struct model_fetch *self = calloc(1, sizeof *self);
    ensure(self);
    fetch_init(&self->fetch, peers, hear);
    self->copy = no_state_copy;
    self->step = step;
    self->digest = *digest;
    self->cut = *cut;
    self->leaf_count = leaves_of(cut);
    return self;
}

static void forget_list(struct model_fetch *self)
{
    free(self->leaves), free(self->is_here), free(self->todo);
    state_copy_free(&self->copy);
    self->leaves = NULL, self->is_here = NULL, self->todo = NULL;
    self->has_copy = false;
    self->part = MODEL_LIST;
}

void model_fetch_destroy(struct model_fetch **self_p)
{
    struct model_fetch *self = *self_p;
    if (!self) return;
    fetch_end(&self->fetch);
    forget_list(self);
    free(self);
    *self_p = NULL;
}

void model_fetch_begin(struct model_fetch *self, uint64_t step, const struct wire_holder *holders,
                       uint32_t count)
{
    fetch_add_holders(&self->fetch, holders, count);
    self->step = step;
    if (self->leaf_count == 0)
        fetch_fail(&self->fetch,
                   "a state of %" PRIu64 " leaves, allowed 1..%d and no empty item; not fetched",
                   state_cut_leaves(&self->cut), BULK_LEAVES_MAX);
    if (self->leaf_count == 0 || self->fetch.state != FETCH_FAILED) return;
    self->fetch.state = FETCH_GOING;
    self->got_bytes = 0;
    for (uint32_t i = 0; i < self->fetch.holders_count; i++)
        self->fetch.holders[i].has_served = false;
    self->looked_at = self->todo_count = 0;
    if (self->here == 0) forget_list(self);
    else self->part = MODEL_COPY; // A newer pin may have some of the leaves
}

// ---- the list -------------------------------------------------------------------------------

// False: these bytes are not the list of this digest.
static bool take_list(struct model_fetch *self, const uint8_t *bytes, size_t count)
{
    const size_t leaf_count = self->leaf_count;
    if (count != leaf_count * HASH_BYTES) return false;
    struct hash *leaves = malloc(count);
    ensure(leaves);
    memcpy(leaves, bytes, count);
    const struct hash root = state_cut_root(&self->cut, leaves);
    if (!hash_equal(&root, &self->digest)) {
        free(leaves);
        return false;
    }
    self->leaves = leaves;
    self->is_here = calloc(leaf_count, sizeof *self->is_here);
    self->todo = malloc(leaf_count * sizeof *self->todo);
    self->part = MODEL_COPY;
    if (self->is_here && self->todo) return true;
    fetch_fail(&self->fetch, "no memory for its %zu leaves of %d bytes", leaf_count,
               (int)STATE_LEAF_BYTES);
    forget_list(self);
    return true;
}

static void ask_list(struct model_fetch *self, blob_store_t *store, uint64_t now_ms)
{
    struct fetch *fetch = &self->fetch;
    struct blob_ref ref;
    struct state_cut cut;
    if (self->coming == 0 && blob_store_leaves(store, &self->digest, NULL, &ref, &cut) == 0) {
        const bool is_list = take_list(self, ref.bytes, ref.count);
        blob_store_release(&ref);
        if (is_list) return;
    }
    if (fetch_widen(fetch, 1) == 0 && self->coming == 0) fetch_fail_for_holders(fetch);
    for (uint32_t i = 0; i < fetch->holders_count; i++) {
        struct peer *peer = fetch->holders[i].peer;
        if (fetch->holders[i].state != HOLDER_SERVING) continue;
        self->coming += self->coming
                            ? peers_ask_again(fetch->peers, peer, fetch, 0, now_ms)
                            : peers_ask_leaves(fetch->peers, peer, fetch, &self->digest, now_ms);
    }
}

// ---- leaves ---------------------------------------------------------------------------------

// Checks a leaf's hash and puts it into its place in the copy. False: it is another leaf. If the copy is in a file
// and the disk fails, the fetch has failed.
static bool put_leaf(struct model_fetch *self, uint32_t leaf, const uint8_t *bytes, size_t count)
{
    struct why why = { 0 };
    if (count != state_cut_leaf(&self->cut, leaf).bytes) return false;
    const struct hash hash = merkle_leaf(bytes, count);
    if (!hash_equal(&hash, &self->leaves[leaf])) return false;
    if (state_copy_put(&self->copy, (uint64_t)leaf * STATE_LEAF_BYTES, bytes, count, &why) < 0) {
        fetch_fail(&self->fetch, "%s", why.text);
        return true;
    }
    self->is_here[leaf] = true;
    if (++self->here == self->leaf_count) self->fetch.state = FETCH_DONE;
    return true;
}

static bool copy_leaves(struct model_fetch *self, blob_store_t *store)
{
    struct why why = { 0 };
    if (!self->has_copy &&
        blob_store_new_copy(store, state_cut_room(&self->cut), &why, &self->copy) < 0) {
        fetch_fail(&self->fetch, "%s", why.text);
        forget_list(self);
        return false;
    }
    self->has_copy = true;
    for (uint32_t n = 0; n < MODEL_COPY_LEAVES && self->looked_at < self->leaf_count; n++) {
        struct blob_ref ref;
        const uint32_t leaf = self->looked_at++;
        if (self->is_here[leaf] || blob_store_get(store, &self->leaves[leaf], NULL, &ref) < 0)
            continue;
        put_leaf(self, leaf, ref.bytes, ref.count);
        blob_store_release(&ref);
    }
    if (self->looked_at < self->leaf_count) return true;
    for (uint32_t leaf = self->leaf_count; leaf-- > 0;)
        if (!self->is_here[leaf]) self->todo[self->todo_count++] = leaf;
    self->part = MODEL_PULL;
    return false;
}

static bool ask_one(struct model_fetch *self, struct peer *peer, uint64_t now_ms)
{
    if (self->todo_count == 0) {
        if (!peers_ask_again(self->fetch.peers, peer, &self->fetch, 0, now_ms)) return false;
        self->coming++;
        return true;
    }
    const uint32_t leaf = self->todo[self->todo_count - 1];
    if (!peers_ask_piece(self->fetch.peers, peer, &self->fetch, leaf, &self->leaves[leaf], 0,
                         state_cut_leaf(&self->cut, leaf).bytes, now_ms))
        return false;
    self->todo_count--;
    self->coming++;
    return true;
}

static void ask_leaves(struct model_fetch *self, uint64_t now_ms)
{
    struct fetch *fetch = &self->fetch;
    while (fetch_take_next(fetch)) {
    } // All of them
    if (fetch_count(fetch, HOLDER_SERVING) == 0 && self->coming == 0) {
        fetch_fail_for_holders(fetch);
        return;
    }
    for (bool asked = true; asked;) { // In turns
        asked = false;
        for (uint32_t i = 0; i < fetch->holders_count; i++)
            if (fetch->holders[i].state == HOLDER_SERVING &&
                ask_one(self, fetch->holders[i].peer, now_ms))
                asked = true;
    }
}

bool model_fetch_work(struct model_fetch *self, blob_store_t *store, uint64_t now_ms)
{
    if (self->fetch.state == FETCH_GOING && self->part == MODEL_LIST) ask_list(self, store, now_ms);
    if (self->fetch.state == FETCH_GOING && self->part == MODEL_COPY && copy_leaves(self, store))
        return true;
    if (self->fetch.state == FETCH_GOING && self->part == MODEL_PULL) ask_leaves(self, now_ms);
    return false;
}

// ---- hearing --------------------------------------------------------------------------------

static void drop(struct model_fetch *self, const struct answer *answer, bool is_sound)
{
    struct holder *holder = fetch_holder_of(&self->fetch, answer->peer);
    if (!holder || holder->state != HOLDER_SERVING) return;
    holder->state = answer->kind == ANSWER_LACKING  ? HOLDER_LACKS
                    : answer->kind == ANSWER_SILENT ? HOLDER_SILENT
                                                    : HOLDER_LIED;
    if (!is_sound) answer->peer->reputation.has_lied = true;
}

static void hear_list(struct model_fetch *self, const struct answer *answer)
{
    const bool is_list = answer->kind == ANSWER_LEAVES;
    if (is_list && take_list(self, answer->bytes, answer->count))
        self->coming -= peers_forget_piece(self->fetch.peers, &self->fetch, PIECE_LEAVES);
    else drop(self, answer, !is_list);
}

static void hear_leaf(struct model_fetch *self, const struct answer *answer)
{
    struct fetch *fetch = &self->fetch;
    struct holder *holder = fetch_holder_of(fetch, answer->peer);
    const bool is_leaf = answer->kind == ANSWER_CHUNK;
    if (is_leaf && put_leaf(self, answer->piece, answer->bytes, answer->count)) {
        self->coming -= peers_forget_piece(fetch->peers, fetch, answer->piece);
        if (holder) holder->has_served = true;
    } else {
        if (!peers_await(fetch->peers, fetch, answer->piece))
            self->todo[self->todo_count++] = answer->piece;
        drop(self, answer, !is_leaf);
    }
}

static void hear(struct fetch *fetch, const struct answer *answer)
{
    struct model_fetch *self = (struct model_fetch *)fetch;
    self->got_bytes += answer->count;
    self->coming--;
    if (answer->piece != PIECE_LEAVES) hear_leaf(self, answer);
    else hear_list(self, answer);
}

// ---- the end --------------------------------------------------------------------------------

uint32_t model_fetch_served_by(const struct model_fetch *self)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < self->fetch.holders_count; i++)
        count += self->fetch.holders[i].has_served;
    return count;
}

void model_fetch_stage(struct model_fetch *self, blob_store_t *store)
{
    ensure(self->fetch.state == FETCH_DONE && self->here == self->leaf_count);
    const struct blob_snapshot state = { self->step, self->digest, self->cut };
    blob_store_stage(store, &state, &self->copy);
}
