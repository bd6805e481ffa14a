#pragma once
// state_cut -- the state that all members of a run hold alike, cut into leaves, and its digest.
//
//     item 0   parameters    l0 l1 .. l9       ─ root ─┐
//     item 1   adamw-m       l10 l11 .. l19    ─ root ─┼─▶ root of the roots: the digest
//     item 2   adamw-v       l20 l21 .. l29    ─ root ─┤
//     item 3   adamw-steps   l30               ─ root ─┘   a state of one item: its own root
//
// An item is a number of bytes. Each is cut into leaves of STATE_LEAF_BYTES; the last leaf of an
// item may be shorter. So the root of the parameters is the digest of a vector of floats
// (common/crypto/merkle.h), and the digest of a state of one item is that root too. The leaves of
// all items are numbered through; peers exchange them, and their hashes as one list, in that order.
// Whoever knows the sizes can check a list against the digest, and each leaf against the list.
//
// A copy of a state (a pin, a fetched state) is one piece of memory in which leaf k lies at byte
// k * STATE_LEAF_BYTES, so each item begins at state_cut_place and is whole.
//
// A struct state_cut is a value. Pure; any thread.

#include "common/base/hash.h"
#include "common/crypto/merkle.h"

enum { STATE_ITEMS_MAX = 8, STATE_LEAF_BYTES = DIGEST_LEAF_FLOATS * 4 };

struct state_cut {
    uint32_t count;                  // Items, 1..STATE_ITEMS_MAX
    uint64_t bytes[STATE_ITEMS_MAX]; // Of each
};

struct state_cut state_cut_of_floats(uint64_t floats);      // A vector alone: one item
void state_cut_add(struct state_cut *self, uint64_t bytes); // There is room for it (ensured)
bool state_cut_equal(const struct state_cut *a, const struct state_cut *b);

uint64_t state_item_leaves(uint64_t bytes);              // Of an item; 0 for none
uint64_t state_cut_leaves(const struct state_cut *self); // Of all items

struct state_leaf {
    uint32_t item, bytes;
    uint64_t offset; // In the item
};

// Leaf number `leaf`, which is less than state_cut_leaves (ensured).
struct state_leaf state_cut_leaf(const struct state_cut *self, uint64_t leaf);

// Where an item begins in a copy, in bytes, and the bytes of the whole copy: whole leaves.
uint64_t state_cut_place(const struct state_cut *self, uint32_t item);
uint64_t state_cut_room(const struct state_cut *self);

// ---- the check of a step ------------------------------------------------------------------------
//
// Members that hold the same state compare a part of it before each step: the leaves whose number is
// the step's modulo the period, which is STATE_CHECK_STEPS, or the number of leaves if there are
// fewer. So each leaf is compared once in a period. The check is the merkle_root of the hashes of these
// leaves, in their order.

enum { STATE_CHECK_STEPS = 256 };

// The first leaf of the check of a step, how far it is to the next one, and how many there are, at
// least one. The state is not empty (ensured).
struct state_check {
    uint64_t first, period, count;
};
struct state_check state_cut_check(const struct state_cut *self, uint64_t step);

// The hash of leaf number `leaf` of the items; in this thread.
struct hash state_cut_hash_leaf(const struct state_cut *self, const void *const *items,
                                uint64_t leaf);

// ---- hashing all of it --------------------------------------------------------------------------

// Hashes the leaves of one item, in this thread.
void state_item_fill(const void *bytes, uint64_t count, struct hash *ret_leaves);

// The digest of the state with these leaves, state_cut_leaves of them.
struct hash state_cut_root(const struct state_cut *self, const struct hash *leaves);

// The same from the items themselves, in this thread and without memory for leaves; and the root of
// each item.
struct hash state_cut_digest(const struct state_cut *self, const void *const *items,
                             struct hash ret_roots[STATE_ITEMS_MAX]);
