// state_cut_test -- how a state of several items is cut, and that its digest is made of theirs.

#include "common/vector/state_cut.h"
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

enum { LEAF = STATE_LEAF_BYTES, FLOATS = 2 * DIGEST_LEAF_FLOATS + 5 };

static float params[FLOATS], moment[FLOATS];
static uint64_t steps = 7;

// Leaf numbers run through all items; each item begins at a leaf of its own.
static void leaves_are_numbered_item_by_item(void **state)
{
    (void)state;
    struct state_cut cut = state_cut_of_floats(FLOATS);
    assert_int_equal(state_cut_leaves(&cut), 3);
    state_cut_add(&cut, 2 * LEAF); // No leaf is empty
    state_cut_add(&cut, 8);
    static const struct state_leaf leaves[] = {
        { 0, LEAF, 0 }, { 0, LEAF, LEAF }, { 0, 20, 2 * LEAF },
        { 1, LEAF, 0 }, { 1, LEAF, LEAF }, { 2, 8, 0 },
    };
    assert_int_equal(state_cut_leaves(&cut), 6);
    assert_int_equal(state_cut_room(&cut), 6 * LEAF);
    for (uint64_t i = 0; i < 6; i++) {
        const struct state_leaf leaf = state_cut_leaf(&cut, i);
        assert_true(leaf.item == leaves[i].item && leaf.bytes == leaves[i].bytes &&
                    leaf.offset == leaves[i].offset);
        assert_int_equal(state_cut_place(&cut, leaf.item) + leaf.offset, i * LEAF);
    }
    const struct state_cut most = { 8,
                                    { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                      UINT64_MAX, UINT64_MAX, UINT64_MAX } };
    assert_true(state_cut_leaves(&most) == (uint64_t)8 << 48);
    assert_false(state_cut_equal(&cut, &most));
    assert_true(state_cut_equal(&cut, &cut));
}

static void the_digest_is_the_root_of_the_roots(void **state)
{
    (void)state;
    for (int i = 0; i < FLOATS; i++) params[i] = (float)i, moment[i] = -(float)i;
    struct hash leaves[7], roots[STATE_ITEMS_MAX];
    const void *items[] = { params, moment, &steps };
    struct state_cut cut = state_cut_of_floats(FLOATS);
    state_item_fill(params, sizeof params, leaves);
    state_item_fill(moment, sizeof moment, leaves + 3);
    state_item_fill(&steps, sizeof steps, leaves + 6);
    const struct hash alone = digest_of(params, FLOATS), root = state_cut_root(&cut, leaves);
    assert_true(hash_equal(&alone, &root)); // As a vector of floats always had it
    state_cut_add(&cut, sizeof moment);
    state_cut_add(&cut, sizeof steps);
    const struct hash parts[] = { alone, digest_of(moment, FLOATS),
                                  merkle_leaf(&steps, sizeof steps) };
    const struct hash wanted = merkle_root(parts, 3), of_leaves = state_cut_root(&cut, leaves),
                      of_items = state_cut_digest(&cut, items, roots);
    assert_true(hash_equal(&wanted, &of_leaves) && hash_equal(&wanted, &of_items));
    assert_memory_equal(roots, parts, sizeof parts);
    // The same leaves under another cut are another state
    struct state_cut other = { 3, { sizeof params + LEAF, sizeof moment - LEAF, sizeof steps } };
    assert_int_equal(state_cut_leaves(&other), 7);
    const struct hash another = state_cut_root(&other, leaves);
    assert_false(hash_equal(&wanted, &another));
}

// In one period each leaf has one turn.
static void each_leaf_is_checked_once_in_a_period(void **state)
{
    (void)state;
    for (uint64_t leaves = 1; leaves < 1100; leaves += 51) {
        const struct state_cut cut = state_cut_of_floats(leaves * DIGEST_LEAF_FLOATS);
        uint8_t turns[1100] = { 0 };
        for (uint64_t step = 5000; step < 5000 + (leaves < 256 ? leaves : 256); step++) {
            const struct state_check check = state_cut_check(&cut, step);
            assert_true(check.count >= 1 && check.count <= leaves / 256 + 1);
            for (uint64_t i = 0; i < check.count; i++) {
                assert_true(check.first + i * check.period < leaves);
                turns[check.first + i * check.period]++;
            }
        }
        for (uint64_t i = 0; i < leaves; i++) assert_int_equal(turns[i], 1);
    }
    struct state_cut cut = state_cut_of_floats(FLOATS);
    const void *items[] = { params, &steps };
    state_cut_add(&cut, sizeof steps);
    const struct hash of_steps = merkle_leaf(&steps, sizeof steps),
                      leaf = state_cut_hash_leaf(&cut, items, 3);
    assert_true(hash_equal(&leaf, &of_steps));
}

TESTS(TEST(leaves_are_numbered_item_by_item), TEST(the_digest_is_the_root_of_the_roots),
      TEST(each_leaf_is_checked_once_in_a_period))
