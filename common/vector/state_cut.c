// Leaves are numbered item by item, so a number is resolved by a walk over the items, of which there
// are few. Nothing here can overflow: an item of 2^64 bytes has 2^48 leaves.
#include "common/vector/state_cut.h"
#include "common/base/ensure.h"

struct state_cut state_cut_of_floats(uint64_t floats)
{
    ensure(floats <= UINT64_MAX / sizeof(float));
    return (struct state_cut){ .count = 1, .bytes = { floats * sizeof(float) } };
}

void state_cut_add(struct state_cut *self, uint64_t bytes)
{
    ensure(self->count < STATE_ITEMS_MAX);
    self->bytes[self->count++] = bytes;
}

bool state_cut_equal(const struct state_cut *a, const struct state_cut *b)
{
    bool equal = a->count == b->count;
    for (uint32_t i = 0; i < a->count && equal; i++) equal = a->bytes[i] == b->bytes[i];
    return equal;
}

uint64_t state_item_leaves(uint64_t bytes)
{
    return bytes / STATE_LEAF_BYTES + (bytes % STATE_LEAF_BYTES != 0);
}

static uint64_t first_leaf(const struct state_cut *self, uint32_t item)
{
    uint64_t leaves = 0;
    for (uint32_t i = 0; i < item; i++) leaves += state_item_leaves(self->bytes[i]);
    return leaves;
}

uint64_t state_cut_leaves(const struct state_cut *self) { return first_leaf(self, self->count); }

struct state_leaf state_cut_leaf(const struct state_cut *self, uint64_t leaf)
{
    uint32_t item = 0;
    for (; item < self->count && leaf >= state_item_leaves(self->bytes[item]); item++)
        leaf -= state_item_leaves(self->bytes[item]);
    ensure(item < self->count);
    const uint64_t offset = leaf * STATE_LEAF_BYTES, rest = self->bytes[item] - offset;
    const uint32_t bytes = rest < STATE_LEAF_BYTES ? (uint32_t)rest : STATE_LEAF_BYTES;
    return (struct state_leaf){ .item = item, .bytes = bytes, .offset = offset };
}

uint64_t state_cut_place(const struct state_cut *self, uint32_t item)
{
    return first_leaf(self, item) * STATE_LEAF_BYTES;
}

uint64_t state_cut_room(const struct state_cut *self)
{
    return state_cut_leaves(self) * STATE_LEAF_BYTES;
}

static struct hash item_leaf(const uint8_t *bytes, uint64_t count, uint64_t leaf)
{
    const uint64_t offset = leaf * STATE_LEAF_BYTES, rest = count - offset;
    return merkle_leaf(bytes + offset, rest < STATE_LEAF_BYTES ? (size_t)rest : STATE_LEAF_BYTES);
}

void state_item_fill(const void *bytes, uint64_t count, struct hash *ret_leaves)
{
    const uint64_t full = count / STATE_LEAF_BYTES; // The last one may be shorter
    merkle_leaves(bytes, STATE_LEAF_BYTES, (size_t)full, ret_leaves);
    if (full < state_item_leaves(count)) ret_leaves[full] = item_leaf(bytes, count, full);
}

struct state_check state_cut_check(const struct state_cut *self, uint64_t step)
{
    const uint64_t leaves = state_cut_leaves(self);
    const uint64_t period = leaves < STATE_CHECK_STEPS ? leaves : STATE_CHECK_STEPS;
    ensure(leaves > 0);
    // mutant: windows: the same leaves are checked at every step
    const uint64_t first = step % period;
    return (struct state_check){ first, period, (leaves - first - 1) / period + 1 };
}

struct hash state_cut_hash_leaf(const struct state_cut *self, const void *const *items,
                                uint64_t leaf)
{
    const struct state_leaf at = state_cut_leaf(self, leaf);
    return merkle_leaf((const uint8_t *)items[at.item] + at.offset, at.bytes);
}

struct hash state_cut_root(const struct state_cut *self, const struct hash *leaves)
{
    struct hash roots[STATE_ITEMS_MAX];
    for (uint32_t i = 0; i < self->count; i++) {
        const uint64_t count = state_item_leaves(self->bytes[i]);
        roots[i] = merkle_root(leaves, count);
        leaves += count;
    }
    return merkle_root(roots, self->count);
}

struct hash state_cut_digest(const struct state_cut *self, const void *const *items,
                             struct hash ret_roots[STATE_ITEMS_MAX])
{
    for (uint32_t i = 0; i < self->count; i++) {
        struct merkle merkle = { 0 };
        for (uint64_t n = 0; n < state_item_leaves(self->bytes[i]); n++) {
            const struct hash leaf = item_leaf(items[i], self->bytes[i], n);
            merkle_add(&merkle, &leaf);
        }
        ret_roots[i] = merkle_end(&merkle);
    }
    return merkle_root(ret_roots, self->count);
}
