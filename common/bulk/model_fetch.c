// model_fetch -- three parts, in order: LIST gets the hashes of the leaves and compares their root
// with the digest; COPY takes leaves that our own pins and shares have; PULL asks all holders in turns for the
// rest, each for what the plan says that it may have. Each leaf is hashed before it goes to its place in the copy,
// and refused if the hash differs. For a share there is no LIST, and the leaves go to the share.

#include "common/base/ensure.h"
#include "common/bulk/model_fetch.h"
#include "common/crypto/merkle.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)STATE_LEAF_BYTES <= (int)BULK_CHUNK_BYTES, "a leaf is one piece");

_Static_assert((int)PLAN_HOLDERS_MAX == (int)FETCH_HOLDERS_MAX, "the plan knows holders by index");

static void hear(struct fetch *fetch, const struct answer *answer);
static bool may_have(struct fetch *fetch, const struct peer *peer, uint32_t piece);

uint32_t model_fetch_leaves(const struct state_cut *cut)
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
    self->fetch.may_have = may_have;
    self->copy = no_state_copy;
    self->step = step;
    self->digest = *digest;
    self->cut = *cut;
    self->wanted = self->leaf_count = model_fetch_leaves(cut);
    return self;
}

// Takes a list that is right, and plans for these runs of leaves, or with a share for those of them that it lacks.
static void plan(struct model_fetch *self, struct hash *leaves, const struct interval *runs,
                 uint32_t count)
{
    self->leaves = leaves;
    self->part = MODEL_COPY;
    self->plan = leaf_plan_new(self->leaf_count);
    if (!self->plan) return;
    for (uint32_t i = 0; i < count; i++)
        for (uint64_t leaf = runs[i].begin; leaf < runs[i].end; leaf++)
            if (!self->share || !blob_share_has(self->share, leaf))
                leaf_plan_want(self->plan, (uint32_t)leaf);
    self->wanted = self->plan->missing_count;
}

struct model_fetch *model_fetch_new_for_share(struct peers *peers, uint64_t step,
                                              struct hash **leaves_p, blob_share_t *share,
                                              const struct interval *runs, uint32_t count)
{
    const struct state_cut *cut = blob_share_cut(share);
    const struct hash digest = state_cut_root(cut, *leaves_p);
    struct model_fetch *self = model_fetch_new(peers, step, &digest, cut);
    ensure(self->leaf_count > 0);
    self->share = share;
    plan(self, *leaves_p, runs, count);
    ensure(self->plan);
    *leaves_p = NULL;
    return self;
}

static void forget_list(struct model_fetch *self)
{
    free(self->leaves);
    leaf_plan_destroy(&self->plan);
    state_copy_free(&self->copy);
    self->leaves = NULL;
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
    peers_forget_fetch(self->fetch.peers,
                       &self->fetch); // Answers to what was asked before it failed
    self->coming = 0;
    self->fetch.state = FETCH_GOING;
    self->got_bytes = 0;
    for (uint32_t i = 0; i < self->fetch.holders_count; i++)
        self->fetch.holders[i].has_served = false;
    self->looked_at = 0;
    if (!self->share && model_fetch_here(self) == 0) forget_list(self);
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
    plan(self, leaves, &(struct interval){ 0, leaf_count }, 1);
    if (self->plan) return true;
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
    if (fetch_widen(fetch, 1) == 0 && self->coming == 0) fetch_fail_for_holders(fetch, "it");
    for (uint32_t i = 0; i < fetch->holders_count; i++) {
        struct peer *peer = fetch->holders[i].peer;
        if (fetch->holders[i].state != HOLDER_SERVING) continue;
        self->coming += self->coming ? peers_ask_again(fetch->peers, peer, fetch, 0, now_ms)
                                     : peers_ask_leaves(fetch->peers, peer, fetch, &self->digest,
                                                        self->leaf_count, now_ms);
    }
}

// ---- leaves ---------------------------------------------------------------------------------

// Checks a leaf's hash and puts it into its place in the copy or the share. False: it is another leaf. If the copy is
// in a file and the disk fails, the fetch has failed, and the leaf is still missing.
static bool put_leaf(struct model_fetch *self, uint32_t leaf, const uint8_t *bytes, size_t count)
{
    struct why why = { 0 };
    if (count != state_cut_leaf(&self->cut, leaf).bytes) return false;
    const struct hash hash = merkle_leaf(bytes, count);
    if (!hash_equal(&hash, &self->leaves[leaf])) return false;
    if (!leaf_plan_misses(self->plan, leaf)) return true;
    if (self->share) blob_share_fill(self->share, leaf, &hash, bytes, count);
    else if (state_copy_put(&self->copy, (uint64_t)leaf * STATE_LEAF_BYTES, bytes, count, &why) <
             0) {
        fetch_fail(&self->fetch, "%s", why.text);
        return true;
    }
    leaf_plan_came(self->plan, leaf);
    if (self->plan->missing_count == 0) self->fetch.state = FETCH_DONE;
    return true;
}

static bool copy_leaves(struct model_fetch *self, blob_store_t *store)
{
    struct why why = { 0 };
    if (!self->share && !self->has_copy &&
        blob_store_new_copy(store, state_cut_room(&self->cut), &why, &self->copy) < 0) {
        fetch_fail(&self->fetch, "%s", why.text);
        forget_list(self);
        return false;
    }
    self->has_copy = true;
    if (self->plan->missing_count == 0) self->fetch.state = FETCH_DONE;
    for (uint32_t n = 0; n < MODEL_COPY_LEAVES && self->looked_at < self->leaf_count;) {
        struct blob_ref ref;
        const uint32_t leaf = self->looked_at++;
        if (!leaf_plan_misses(self->plan, leaf)) continue;
        n++;
        if (blob_store_get(store, &self->leaves[leaf], NULL, &ref) < 0) continue;
        put_leaf(self, leaf, ref.bytes, ref.count);
        blob_store_release(&ref);
    }
    if (self->looked_at < self->leaf_count) return true;
    leaf_plan_open(self->plan);
    self->part = MODEL_PULL;
    return false;
}

static uint32_t index_of(const struct model_fetch *self, const struct holder *holder)
{
    return (uint32_t)(holder - self->fetch.holders);
}

static bool may_have(struct fetch *fetch, const struct peer *peer, uint32_t piece)
{
    const struct model_fetch *self = (const struct model_fetch *)fetch;
    const struct holder *holder = fetch_holder_of(fetch, peer);
    return piece == PIECE_LEAVES ||
           (holder && leaf_plan_may_have(self->plan, index_of(self, holder), piece));
}

// Asks one holder for a leaf that it may have, or for a late one. False: there is none, or no credit.
static bool ask_one(struct model_fetch *self, const struct holder *holder, bool is_quiet,
                    uint64_t now_ms)
{
    const uint32_t index = index_of(self, holder);
    struct fetch *fetch = &self->fetch;
    uint32_t leaf;
    if (!leaf_plan_next(self->plan, index, is_quiet, &leaf)) {
        if (!peers_ask_again(fetch->peers, holder->peer, fetch, 0, now_ms)) return false;
        self->coming++;
        return true;
    }
    if (!peers_ask_piece(fetch->peers, holder->peer, fetch, leaf, &self->leaves[leaf], 0,
                         state_cut_leaf(&self->cut, leaf).bytes, now_ms))
        return false;
    leaf_plan_asked(self->plan, index, leaf);
    self->coming++;
    return true;
}

// "no holder has leaf 57 of 101, in item 2: .."
static void fail_for_leaf(struct model_fetch *self, uint32_t leaf)
{
    char what[64];
    snprintf(what, sizeof what, "leaf %" PRIu32 " of %" PRIu32 ", in item %" PRIu32, leaf,
             self->leaf_count, state_cut_leaf(&self->cut, leaf).item);
    fetch_fail_for_holders(&self->fetch, what);
}

// All holders are dropped. If none of them lacked anything, it is their silence that matters, and not what was asked.
static void fail_without_holders(struct model_fetch *self)
{
    uint32_t leaf = 0;
    while (leaf + 1 < self->leaf_count && !leaf_plan_misses(self->plan, leaf)) leaf++;
    if (fetch_count(&self->fetch, HOLDER_LACKS) > 0) fail_for_leaf(self, leaf);
    else fetch_fail_for_holders(&self->fetch, "it");
}

static void ask_leaves(struct model_fetch *self, uint64_t now_ms)
{
    struct fetch *fetch = &self->fetch;
    uint32_t lost;
    while (fetch_take_next(fetch)) {
    } // All of them
    for (uint32_t i = 0; i < fetch->holders_count; i++)
        if (fetch->holders[i].state == HOLDER_SERVING && !self->plan->holders[i].is_in)
            leaf_plan_join(self->plan, i);
    if (fetch_count(fetch, HOLDER_SERVING) == 0 && self->coming == 0) {
        fail_without_holders(self);
        return;
    }
    if (leaf_plan_find_lost(self->plan, &lost)) {
        fail_for_leaf(self, lost);
        return;
    }
    const bool is_quiet = self->coming == 0;
    for (bool asked = true; asked;) { // In turns
        asked = false;
        for (uint32_t i = 0; i < fetch->holders_count; i++)
            if (fetch->holders[i].state == HOLDER_SERVING &&
                ask_one(self, &fetch->holders[i], is_quiet, now_ms))
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
    if (self->plan) leaf_plan_leave(self->plan, index_of(self, holder));
}

static void hear_list(struct model_fetch *self, const struct answer *answer)
{
    const bool is_list = answer->kind == ANSWER_LEAVES;
    if (is_list && take_list(self, answer->bytes, answer->count))
        self->coming -= peers_forget_piece(self->fetch.peers, &self->fetch, PIECE_LEAVES);
    else drop(self, answer, !is_list);
}

// It is not asked for this leaf again. If nothing that is missing can be had of it, and nothing was, it is dropped.
static void hear_lack(struct model_fetch *self, const struct answer *answer)
{
    const struct holder *holder = fetch_holder_of(&self->fetch, answer->peer);
    if (!holder) return;
    leaf_plan_lacked(self->plan, index_of(self, holder), answer->piece);
    // mutant: fetch: a holder that lacks a leaf lacks all
    if (!holder->has_served && !leaf_plan_is_of_use(self->plan, index_of(self, holder)))
        drop(self, answer, true);
}

static void hear_leaf(struct model_fetch *self, const struct answer *answer)
{
    struct fetch *fetch = &self->fetch;
    struct holder *holder = fetch_holder_of(fetch, answer->peer);
    const bool is_chunk = answer->kind == ANSWER_CHUNK;
    if (is_chunk && put_leaf(self, answer->piece, answer->bytes, answer->count)) {
        self->coming -= peers_forget_piece(fetch->peers, fetch, answer->piece);
        if (holder && !leaf_plan_misses(self->plan, answer->piece))
            leaf_plan_had(self->plan, index_of(self, holder), answer->piece);
        if (holder) holder->has_served = true;
        return;
    }
    if (!peers_await(fetch->peers, fetch, answer->piece))
        leaf_plan_put_back(self->plan, answer->piece);
    if (answer->kind == ANSWER_LACKING) hear_lack(self, answer);
    else drop(self, answer, !is_chunk);
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

uint32_t model_fetch_here(const struct model_fetch *self)
{
    return self->plan ? self->wanted - self->plan->missing_count : 0;
}

uint32_t model_fetch_served_by(const struct model_fetch *self)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < self->fetch.holders_count; i++)
        count += self->fetch.holders[i].has_served;
    return count;
}

void model_fetch_stage(struct model_fetch *self, blob_store_t *store)
{
    ensure(self->fetch.state == FETCH_DONE && !self->share && self->plan->missing_count == 0);
    const struct blob_snapshot state = { self->step, self->digest, self->cut };
    blob_store_stage(store, &state, &self->copy);
}
