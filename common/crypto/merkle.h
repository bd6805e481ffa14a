#pragma once
// merkle -- one hash for a list of hashes, with proofs that a run of leaves is in the list.
//
//                root = node(n4, l4)            leaf(bytes) = SHA-256(0x00 ‖ bytes)
//               ┌────────┴──────┐               node(a, b)  = SHA-256(0x01 ‖ a ‖ b)
//           n4 = node(n2, n3)   l4
//          ┌────────┴────┐                      The shape of RFC 6962, 2.1: the left subtree is the
//      n2 ┌┴┐        n3 ┌┴┐                     largest full one; an odd node is promoted as it is.
//        l0 l1         l2 l3                    The two prefixes keep a node from posing as a leaf.
//
// Pure: nothing allocated, nothing kept. Any thread. An empty list has the root "none" (all zero).
//
// The digest of a vector of floats is the root over leaves of DIGEST_LEAF_FLOATS values (64 KiB;
// the last leaf may be shorter), each leaf being the little-endian bits of its values: -0.0 differs
// from 0.0, and two NaN of other bits differ. Leaves are independent, so threads may fill them in
// parts (common/kernel/digest.h):
//
//     digest_fill_leaves(values, count, first, n, leaves + first);    // each thread its own range
//     struct hash digest = merkle_root(leaves, digest_leaf_count(count));

#include "common/base/hash.h"

enum {
    MERKLE_LEVELS_MAX = 64,     // Of a tree of 2^64 leaves
    DIGEST_LEAF_FLOATS = 16384, // 64 KiB of float32
};

struct hash merkle_leaf(const void *bytes, size_t count);
// `leaves` of them, of `leaf_bytes` each, one after another. Two at a time where the processor can
// (leaf_pair.h), so one call for many takes about half the time of one for each.
void merkle_leaves(const void *bytes, size_t leaf_bytes, size_t leaves, struct hash *ret_leaves);
struct hash merkle_node(const struct hash *left, const struct hash *right);
struct hash merkle_root(const struct hash *leaves, size_t count);

// For leaves that come one after another: zero it, any number of adds, one end. No leaf is kept but
// the roots of the full subtrees so far, one for each bit that is set in `count`.
struct merkle {
    uint64_t count;
    struct hash stack[MERKLE_LEVELS_MAX];
};
void merkle_add(struct merkle *self, const struct hash *leaf);
struct hash merkle_end(const struct merkle *self);

// Neighbouring leaves [first, end) are proved together: `path` holds, from left to right, the roots
// of the largest subtrees that contain none of them, at most MERKLE_RANGE_MAX. `subtree` returns
// the root of leaves [from, to); it is called only for subtrees of a tree of `count` leaves.
enum { MERKLE_RANGE_MAX = 2 * MERKLE_LEVELS_MAX };
typedef struct hash merkle_subtree_fn(void *arg, uint64_t from, uint64_t to);
size_t merkle_make_range(uint64_t count, uint64_t first, uint64_t end, merkle_subtree_fn *subtree,
                         void *arg, struct hash ret_path[MERKLE_RANGE_MAX]);

// True if and only if these are leaves [first, end) of the `count` under `root`. Total.
bool merkle_check_range(const struct hash *root, uint64_t count, uint64_t first, uint64_t end,
                        const struct hash *leaves, const struct hash *path, size_t path_count);

size_t digest_leaf_count(size_t count); // Leaves of a vector of `count` floats
void digest_fill_leaves(const float *values, size_t count, size_t first_leaf, size_t leaf_count,
                        struct hash *ret_leaves); // Leaves [first_leaf, first_leaf + leaf_count)
struct hash digest_of(const float *values, size_t count); // All of it, in this thread
