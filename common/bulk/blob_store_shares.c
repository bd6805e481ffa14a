// blob_store_shares -- a share is a pin whose copy is a mapping of the whole state, of which the system gives only
// the pages that are written to, and whose slots have only the leaves that are here. Bytes are written first, without
// the lock; then, under it, the leaf gets its hash and its slot. So a reader that finds a leaf finds it whole.
//
// A mark for each leaf says whether it is here, and whether its memory was ever written to. The second mark outlives
// the share: the next one that gets the memory knows what need not be touched again, and what belongs to nobody
// any more.

#include "common/base/ensure.h"
#include "common/bulk/blob_store_inside.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, LARGE_PAGE = 2 << 20 };
_Static_assert(STATE_LEAF_BYTES % PAGE == 0, "a leaf is whole pages");

// ---- memory -------------------------------------------------------------------------------------

static void free_memory(struct blob_share *share)
{
    if (share->pin.copy.bytes) munmap(share->pin.copy.bytes, state_cut_room(&share->pin.state.cut));
    free(share->pin.leaves);
    free(share->pin.slots);
    free(share->marks);
    free(share);
}

// The last reference is gone. While other shares are kept there will be a next one, which gets the memory.
static void free_share(struct blob_held *held)
{
    struct blob_share *share = (struct blob_share *)held;
    struct blob_store *store = held->store;
    blob_store_lock(store);
    const bool is_spare = !store->spare && store->share_count > 0;
    if (is_spare) store->spare = share;
    blob_store_unlock(store);
    if (!is_spare) free_memory(share);
}

static struct blob_share *make_share(const struct state_cut *cut, struct why *why)
{
    struct blob_share *share = calloc(1, sizeof *share);
    const uint64_t room = state_cut_room(cut);
    if (!share) goto fault;
    struct pin *pin = &share->pin;
    pin->copy = no_state_copy;
    pin->state.cut = *cut;
    pin->leaf_count = state_cut_leaves(cut);
    pin->slot_count = 2;
    while (pin->slot_count < 2 * pin->leaf_count) pin->slot_count *= 2;
    pin->leaves = malloc(pin->leaf_count * sizeof *pin->leaves);
    pin->slots = malloc(pin->slot_count * sizeof *pin->slots);
    share->marks = calloc(pin->leaf_count, sizeof *share->marks);
    void *bytes = mmap(NULL, room, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes != MAP_FAILED) {
        pin->copy.bytes = bytes;
        madvise(bytes, room, MADV_NOHUGEPAGE); // One leaf that is written to would take 2 MiB
    }
    if (pin->leaves && pin->slots && share->marks && pin->copy.bytes) return share;
    free_memory(share);
fault:
    why_set(why, FAULT_MEMORY, "room for a share of a state of %" PRIu64 " bytes", room);
    return NULL;
}

static struct blob_share *take_spare(struct blob_store *self, const struct state_cut *cut)
{
    blob_store_lock(self);
    struct blob_share *spare = self->spare;
    self->spare = NULL;
    blob_store_unlock(self);
    if (!spare || state_cut_equal(&spare->pin.state.cut, cut)) return spare;
    free_memory(spare);
    return NULL;
}

int blob_store_new_share(blob_store_t *self, const struct state_cut *cut, struct why *why,
                         blob_share_t **ret_share)
{
    const uint64_t leaves = state_cut_leaves(cut);
    if (leaves == 0 || leaves >= UINT32_MAX)
        return why_set(why, FAULT_LIMIT, "a share of a state of %" PRIu64 " leaves", leaves);
    struct blob_share *share = take_spare(self, cut);
    if (!share && !(share = make_share(cut, why))) return FAULT_MEMORY;
    share->pin.held = (struct blob_held){ self, 1, free_share };
    share->pin.state = (struct blob_snapshot){ .cut = *cut };
    share->here = share->bytes = 0;
    share->is_put = share->is_whole = false;
    for (uint64_t i = 0; i < leaves; i++) share->marks[i] &= (uint8_t)~LEAF_HERE;
    memset(share->pin.slots, 0, share->pin.slot_count * sizeof *share->pin.slots);
    blob_store_lock(self);
    self->refs++;
    blob_store_unlock(self);
    *ret_share = share;
    return 0;
}

void blob_share_release(blob_share_t **share_p)
{
    if (*share_p) blob_store_release(&(struct blob_ref){ .held = &(*share_p)->pin.held });
    *share_p = NULL;
}

uint8_t *blob_share_bytes(blob_share_t *share) { return share->pin.copy.bytes; }
const struct state_cut *blob_share_cut(const blob_share_t *share) { return &share->pin.state.cut; }

static uint8_t *leaf_bytes(const struct blob_share *share, uint64_t leaf)
{
    return share->pin.copy.bytes + leaf * STATE_LEAF_BYTES;
}

// Only whole large pages: one that is needed in part would take memory that was not asked for.
static void ask_for_large_pages(uint8_t *begin, uint8_t *end)
{
    uint8_t *first = begin + (LARGE_PAGE - (uintptr_t)begin % LARGE_PAGE) % LARGE_PAGE;
    const uintptr_t rest = (uintptr_t)end % LARGE_PAGE;
    if (end > first + rest) madvise(first, (size_t)(end - rest - first), MADV_HUGEPAGE);
}

void blob_share_touch(blob_share_t *share, struct interval leaves)
{
    ensure(leaves.end <= share->pin.leaf_count && !share->is_put);
    for (uint64_t leaf = leaves.begin, end; leaf < leaves.end; leaf = end) {
        for (end = leaf; end < leaves.end && !(share->marks[end] & LEAF_TOUCHED);) end++;
        ask_for_large_pages(leaf_bytes(share, leaf), leaf_bytes(share, end));
        for (uint8_t *at = leaf_bytes(share, leaf); at < leaf_bytes(share, end); at += PAGE)
            *(volatile uint8_t *)at = 0;
        for (; leaf < end; leaf++) share->marks[leaf] |= LEAF_TOUCHED;
        while (end < leaves.end && share->marks[end] & LEAF_TOUCHED) end++;
    }
}

// Only the thread that fills the share touches its memory: a leaf without LEAF_HERE has no reader.
static void give_back(struct blob_share *share)
{
    const uint64_t count = share->pin.leaf_count;
    for (uint64_t leaf = 0, end; leaf < count; leaf = end) {
        end = leaf + 1;
        if (share->marks[leaf] != LEAF_TOUCHED) continue;
        while (end < count && share->marks[end] == LEAF_TOUCHED) end++;
        madvise(leaf_bytes(share, leaf), (size_t)(end - leaf) * STATE_LEAF_BYTES, MADV_DONTNEED);
        for (uint64_t i = leaf; i < end; i++) share->marks[i] = 0;
    }
}

// ---- in the store -------------------------------------------------------------------------------

// Under the lock, if the share was put: the leaf is served from now on. Returns its bytes.
static uint32_t add_leaf(struct blob_share *share, uint64_t leaf, const struct hash *hash)
{
    const uint32_t bytes = state_cut_leaf(&share->pin.state.cut, leaf).bytes;
    ensure(!(share->marks[leaf] & LEAF_HERE));
    share->marks[leaf] |= LEAF_HERE | LEAF_TOUCHED;
    share->pin.leaves[leaf] = *hash;
    *blob_store_slot(&share->pin, hash) = (uint32_t)leaf + 1;
    share->here++;
    share->bytes += bytes;
    return bytes;
}

// Under the lock. Takes share i out of the list; returns it if the caller must free it, else NULL.
static struct blob_share *take_out(struct blob_store *self, uint32_t i)
{
    struct blob_share *share = self->shares[i];
    self->shares[i] = self->shares[--self->share_count];
    share->is_put = false;
    return blob_held_drop(&share->pin.held) ? share : NULL;
}

// Under the lock. The share of this step; share_count if there is none.
static uint32_t index_of(const struct blob_store *self, uint64_t step)
{
    uint32_t i = 0;
    while (i < self->share_count && self->shares[i]->pin.state.step != step) i++;
    return i;
}

void blob_store_put_share(blob_store_t *self, blob_share_t **share_p, uint64_t step,
                          const struct share_list *list, const struct hash *hashes)
{
    struct blob_share *share = *share_p, *gone = NULL;
    ensure(!share->is_put && !share->is_whole && share->here == 0);
    share->pin.state.step = step;
    for (uint32_t i = 0; i < list->count; i++)
        for (uint64_t leaf = list->runs[i].begin; leaf < list->runs[i].end; leaf++)
            add_leaf(share, leaf, hashes++);
    blob_store_lock(self);
    const uint32_t same = index_of(self, share->pin.state.step);
    if (same < self->share_count) gone = take_out(self, same);
    ensure(self->share_count < BLOB_SHARES_MAX);
    self->share_bytes_ever += share->bytes;
    share->is_put = true;
    self->shares[self->share_count++] = share; // The maker's reference is the table's now
    self->refs--;
    blob_store_unlock(self);
    if (gone) free_share(&gone->pin.held);
    *share_p = NULL;
}

blob_share_t *blob_store_share(blob_store_t *self, uint64_t step)
{
    blob_store_lock(self);
    const uint32_t i = index_of(self, step);
    struct blob_share *share = i < self->share_count ? self->shares[i] : NULL;
    if (share) blob_store_refer(&share->pin, NULL, 0); // blob_share_release gives it back
    blob_store_unlock(self);
    return share;
}

bool blob_share_has(const blob_share_t *share, uint64_t leaf)
{
    struct blob_store *store = share->pin.held.store;
    blob_store_lock(store);
    const bool is_here = share->marks[leaf] & LEAF_HERE;
    blob_store_unlock(store);
    return is_here;
}

void blob_share_fill(blob_share_t *share, uint64_t leaf, const struct hash *hash, const void *bytes,
                     size_t count)
{
    struct blob_store *store = share->pin.held.store;
    ensure(leaf < share->pin.leaf_count && !share->is_whole &&
           count == state_cut_leaf(&share->pin.state.cut, leaf).bytes);
    ensure(!blob_share_has(share, leaf));
    memcpy(leaf_bytes(share, leaf), bytes, count);
    blob_store_lock(store);
    store->share_bytes_ever += add_leaf(share, leaf, hash);
    blob_store_unlock(store);
}

static bool agrees(const struct blob_share *share, const struct hash *leaves)
{
    for (uint64_t i = 0; i < share->pin.leaf_count; i++)
        if (share->marks[i] & LEAF_HERE && !hash_equal(&share->pin.leaves[i], &leaves[i]))
            return false;
    return true;
}

// The hashes are compared and copied without the lock: nobody else changes those that are there.
int blob_share_complete(blob_share_t *share, const struct hash *digest, const struct hash *leaves,
                        struct why *why)
{
    struct pin *pin = &share->pin;
    struct blob_store *store = pin->held.store;
    const uint64_t step = pin->state.step;
    const struct hash root = state_cut_root(&pin->state.cut, leaves);
    ensure(!share->is_whole && hash_equal(&root, digest));
    if (!agrees(share, leaves))
        return why_set(why, FAULT_CORRUPT,
                       "a leaf of our share of step %" PRIu64 " has another hash", step);
    struct hash *all = malloc(pin->leaf_count * sizeof *all), *old = pin->leaves;
    if (!all) return why_set(why, FAULT_MEMORY, "the hashes of %zu leaves", pin->leaf_count);
    memcpy(all, leaves, pin->leaf_count * sizeof *all);
    blob_store_lock(store);
    const bool is_put = share->is_put;
    if (is_put) {
        pin->leaves =
            all; // Only the list of a whole share is referred to: the old one has no reader
        pin->state.digest = *digest;
        share->is_whole = true;
    }
    blob_store_unlock(store);
    free(is_put ? old : all);
    if (!is_put)
        return why_set(why, FAULT_NOT_FOUND, "our share of step %" PRIu64 " is gone", step);
    // mutant: shares: memory that belongs to nobody any more is kept
    give_back(share);
    return 0;
}

bool blob_share_is_whole(const blob_share_t *share, struct hash *ret_digest)
{
    struct blob_store *store = share->pin.held.store;
    blob_store_lock(store);
    const bool is_whole = share->is_whole;
    if (is_whole) *ret_digest = share->pin.state.digest;
    blob_store_unlock(store);
    return is_whole;
}

void blob_store_drop_shares(blob_store_t *self, uint64_t keep_a, uint64_t keep_b)
{
    struct blob_share *gone[BLOB_SHARES_MAX], *spare = NULL;
    uint32_t count = 0;
    blob_store_lock(self);
    for (uint32_t i = self->share_count; i-- > 0;) {
        const uint64_t step = self->shares[i]->pin.state.step;
        if (step != UINT64_MAX && (step == keep_a || step == keep_b)) continue;
        struct blob_share *share = take_out(self, i);
        if (share) gone[count++] = share;
    }
    if (self->share_count == 0) spare = self->spare, self->spare = NULL;
    blob_store_unlock(self);
    if (spare) free_memory(spare);
    while (count > 0) free_share(&gone[--count]->pin.held);
}

uint64_t blob_store_share_bytes(const struct blob_store *self)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < self->share_count; i++) {
        const struct blob_share *share = self->shares[i];
        const uint64_t list = share->is_whole ? share->pin.leaf_count * HASH_BYTES : 0;
        if (share->bytes + list > most) most = share->bytes + list;
    }
    return most;
}

void blob_store_free_shares(struct blob_store *self)
{
    blob_store_drop_shares(self, UINT64_MAX, UINT64_MAX);
}
