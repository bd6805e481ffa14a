// merkle -- the root is built from left to right, with a stack of the roots of full subtrees. A
// path is made from the root down and then reversed; it is checked from the leaf up. A range is
// proved by one walk over the tree that takes the root of each subtree outside of it, and checked
// by the same walk.

#include "common/base/ensure.h"
#include "common/crypto/merkle.h"
#include "common/crypto/leaf_pair.h"
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a digest is over little-endian bits");
_Static_assert(sizeof(float) == 4, "a digest is over float32");

struct hash merkle_leaf(const void *bytes, size_t count)
{
    return hash_of_two("\0", 1, bytes, count);
}

void merkle_leaves(const void *bytes, size_t leaf_bytes, size_t leaves, struct hash *ret_leaves)
{
    const uint8_t *at = bytes;
    size_t i = 0;
    if (leaf_bytes >= LEAF_PAIR_BYTES_MIN && leaf_pair_is_here())
        for (; leaves - i >= 2; i += 2)
            leaf_pair_hash(at + i * leaf_bytes, at + (i + 1) * leaf_bytes, leaf_bytes,
                           ret_leaves + i);
    for (; i < leaves; i++) ret_leaves[i] = merkle_leaf(at + i * leaf_bytes, leaf_bytes);
}

struct hash merkle_node(const struct hash *left, const struct hash *right)
{
    uint8_t bytes[1 + 2 * HASH_BYTES] = { 1 };
    memcpy(bytes + 1, left->bytes, HASH_BYTES);
    memcpy(bytes + 1 + HASH_BYTES, right->bytes, HASH_BYTES);
    return hash_of(bytes, sizeof bytes);
}

// Works like a binary counter: each carry joins two full subtrees of the same size.
void merkle_add(struct merkle *self, const struct hash *leaf)
{
    int depth = __builtin_popcountll(self->count);
    struct hash hash = *leaf;
    for (uint64_t carry = self->count; carry & 1; carry >>= 1)
        hash = merkle_node(&self->stack[--depth], &hash);
    self->stack[depth] = hash;
    self->count++;
}

struct hash merkle_end(const struct merkle *self)
{
    int depth = __builtin_popcountll(self->count);
    struct hash root = { { 0 } };
    if (depth > 0) root = self->stack[--depth];
    while (depth > 0) root = merkle_node(&self->stack[--depth], &root);
    return root;
}

struct hash merkle_root(const struct hash *leaves, size_t count)
{
    struct merkle merkle = { 0 };
    for (size_t i = 0; i < count; i++) merkle_add(&merkle, &leaves[i]);
    return merkle_end(&merkle);
}

// The leaves under the left child of a node with `count` leaves, 2 or more: the largest power of
// two below `count`.
static size_t left_count(size_t count) { return (size_t)1 << (63 - __builtin_clzll(count - 1)); }

struct range {
    uint64_t first, end;
    merkle_subtree_fn *subtree;
    void *arg;
    struct hash *made;
    const struct hash *leaves, *path;
    size_t used, count;
};

// Appends the roots of the largest subtrees within [from, to) that have no leaf of the range.
static void make_range(struct range *self, uint64_t from, uint64_t to)
{
    if (to <= self->first || from >= self->end) {
        self->made[self->used++] = self->subtree(self->arg, from, to);
        return;
    }
    if (to - from == 1) return;
    const uint64_t middle = from + left_count(to - from);
    make_range(self, from, middle);
    make_range(self, middle, to);
}

size_t merkle_make_range(uint64_t count, uint64_t first, uint64_t end, merkle_subtree_fn *subtree,
                         void *arg, struct hash ret_path[MERKLE_RANGE_MAX])
{
    struct range self = {
        .first = first, .end = end, .subtree = subtree, .arg = arg, .made = ret_path
    };
    ensure(first < end && end <= count);
    make_range(&self, 0, count);
    ensure(self.used <= MERKLE_RANGE_MAX);
    return self.used;
}

// The root of [from, to), from the proved leaves and the hashes of the path, in the order of
// make_range. A path that is too short yields zero hashes here; the caller compares the number of
// hashes used.
static struct hash climb(struct range *self, uint64_t from, uint64_t to)
{
    static const struct hash none;
    if (to <= self->first || from >= self->end)
        return self->used++ < self->count ? self->path[self->used - 1] : none;
    if (to - from == 1) return self->leaves[from - self->first];
    const uint64_t middle = from + left_count(to - from);
    const struct hash left = climb(self, from, middle), right = climb(self, middle, to);
    return merkle_node(&left, &right);
}

bool merkle_check_range(const struct hash *root, uint64_t count, uint64_t first, uint64_t end,
                        const struct hash *leaves, const struct hash *path, size_t path_count)
{
    struct range self = {
        .first = first, .end = end, .leaves = leaves, .path = path, .count = path_count
    };
    if (first >= end || end > count) return false;
    const struct hash hash = climb(&self, 0, count);
    return self.used == path_count && hash_equal(&hash, root);
}

size_t digest_leaf_count(size_t count)
{
    return count / DIGEST_LEAF_FLOATS + (count % DIGEST_LEAF_FLOATS != 0);
}

static struct hash digest_leaf(const float *values, size_t count, size_t leaf)
{
    size_t begin = leaf * DIGEST_LEAF_FLOATS, rest = count - begin;
    return merkle_leaf(values + begin,
                       (rest < DIGEST_LEAF_FLOATS ? rest : DIGEST_LEAF_FLOATS) * sizeof *values);
}

void digest_fill_leaves(const float *values, size_t count, size_t first_leaf, size_t leaf_count,
                        struct hash *ret_leaves)
{
    size_t leaves = digest_leaf_count(count);
    ensure(first_leaf <= leaves && leaf_count <= leaves - first_leaf);
    const size_t full = count / DIGEST_LEAF_FLOATS; // The last one may be shorter
    const size_t end = first_leaf + leaf_count < full ? first_leaf + leaf_count : full;
    const size_t equal = end > first_leaf ? end - first_leaf : 0;
    merkle_leaves(values + first_leaf * DIGEST_LEAF_FLOATS, DIGEST_LEAF_FLOATS * sizeof *values,
                  equal, ret_leaves);
    for (size_t i = equal; i < leaf_count; i++)
        ret_leaves[i] = digest_leaf(values, count, first_leaf + i);
}

struct hash digest_of(const float *values, size_t count)
{
    struct merkle merkle = { 0 };
    const size_t leaves = digest_leaf_count(count);
    for (size_t i = 0; i < leaves; i += 2) {
        const size_t two = leaves - i < 2 ? 1 : 2;
        struct hash pair[2];
        digest_fill_leaves(values, count, i, two, pair);
        for (size_t k = 0; k < two; k++) merkle_add(&merkle, &pair[k]);
    }
    return merkle_end(&merkle);
}
