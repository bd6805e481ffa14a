// store_shares_test -- shares in the blob store: states of which some leaves are here, in two generations, beside readers.

#include "common/bulk/blob_store.h"
#include "common/crypto/merkle.h"
#include "tests/test.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct why why;

static blob_store_t *new_store(void)
{
    blob_store_t *store;
    assert_int_equal(blob_store_new(NULL, &why, &store), 0);
    return store;
}

enum { SHARE_LEAVES = 8, STEPS_LEAF = 2 * SHARE_LEAVES, ALL_LEAVES = STEPS_LEAF + 1, PLACES = 4 };

// Parameters and a moment of eight leaves, and a number of steps: place p of 4 has two leaves of each, and the last.
static const struct state_cut share_cut = {
    3, { (SHARE_LEAVES - 1) * STATE_LEAF_BYTES + 12, (SHARE_LEAVES - 1) * STATE_LEAF_BYTES + 12, 8 }
};

static uint8_t leaf_of(uint64_t step, uint64_t leaf) { return (uint8_t)(step * 31 + leaf + 1); }

static uint32_t leaf_count(uint64_t leaf) { return state_cut_leaf(&share_cut, leaf).bytes; }

static struct hash leaf_hash(uint64_t step, uint64_t leaf)
{
    uint8_t bytes[STATE_LEAF_BYTES];
    memset(bytes, leaf_of(step, leaf), sizeof bytes);
    return merkle_leaf(bytes, leaf_count(leaf));
}

static struct hash all_leaves(uint64_t step, struct hash ret_leaves[ALL_LEAVES])
{
    for (uint64_t leaf = 0; leaf < ALL_LEAVES; leaf++) ret_leaves[leaf] = leaf_hash(step, leaf);
    return state_cut_root(&share_cut, ret_leaves);
}

// As a learner does: its leaves are copied, then hashed, then put.
static blob_share_t *make_share(blob_store_t *store, uint64_t step, uint32_t place)
{
    const struct share_list list = share_list_of(&share_cut, place, PLACES, SHARE_ALIKE);
    struct hash hashes[ALL_LEAVES];
    uint32_t count = 0;
    blob_share_t *share;
    assert_int_equal(blob_store_new_share(store, &share_cut, &why, &share), 0);
    assert_true(state_cut_equal(blob_share_cut(share), &share_cut));
    for (uint32_t i = 0; i < list.count; i++) {
        blob_share_touch(share, list.runs[i]);
        for (uint64_t leaf = list.runs[i].begin; leaf < list.runs[i].end; leaf++) {
            memset(blob_share_bytes(share) + leaf * STATE_LEAF_BYTES, leaf_of(step, leaf),
                   leaf_count(leaf));
            hashes[count++] = leaf_hash(step, leaf);
        }
    }
    blob_store_put_share(store, &share, step, &list, hashes);
    assert_null(share);
    share = blob_store_share(store, step);
    assert_non_null(share);
    return share;
}

static void put_share(blob_store_t *store, uint64_t step, uint32_t place)
{
    blob_share_t *share = make_share(store, step, place);
    blob_share_release(&share);
}

static void fill(blob_share_t *share, uint64_t step, uint64_t leaf)
{
    uint8_t bytes[STATE_LEAF_BYTES];
    const struct hash hash = leaf_hash(step, leaf);
    memset(bytes, leaf_of(step, leaf), sizeof bytes);
    blob_share_fill(share, leaf, &hash, bytes, leaf_count(leaf));
}

static bool serves(blob_store_t *store, uint64_t step, uint64_t leaf)
{
    const struct hash hash = leaf_hash(step, leaf);
    struct blob_ref ref;
    if (blob_store_get(store, &hash, &why, &ref) < 0) return false;
    assert_int_equal(ref.count, leaf_count(leaf));
    for (size_t i = 0; i < ref.count; i++) assert_int_equal(ref.bytes[i], leaf_of(step, leaf));
    blob_store_release(&ref);
    return true;
}

// Which leaves of a step are served: bit i is leaf i.
static uint32_t served(blob_store_t *store, uint64_t step)
{
    uint32_t leaves = 0;
    for (uint64_t leaf = 0; leaf < ALL_LEAVES; leaf++)
        leaves |= (uint32_t)serves(store, step, leaf) << leaf;
    return leaves;
}

static uint32_t leaves_of_place(uint32_t place)
{
    return 3u << 2 * place | 3u << (SHARE_LEAVES + 2 * place) | 1u << STEPS_LEAF;
}

static void test_a_share_is_served_leaf_by_leaf(void **state)
{
    (void)state;
    blob_store_t *store = new_store();
    struct hash leaves[ALL_LEAVES];
    struct blob_ref ref;
    struct state_cut cut;
    const struct hash digest = all_leaves(5, leaves);
    assert_null(blob_store_share(store, 5));
    blob_share_t *share = make_share(store, 5, 1);
    assert_int_equal(served(store, 5), leaves_of_place(1));
    assert_true(blob_share_has(share, 2) && !blob_share_has(share, 4));
    const uint64_t own = 4 * STATE_LEAF_BYTES + 8;
    assert_int_equal(blob_store_amounts(store).state, own);
    fill(share, 5, 0);
    assert_int_equal(served(store, 5), leaves_of_place(1) | 1);
    assert_int_equal(blob_store_leaves(store, &digest, &why, &ref, &cut), FAULT_NOT_FOUND);
    static const struct hash none;
    assert_int_equal(blob_store_leaves(store, &none, &why, &ref, &cut), FAULT_NOT_FOUND);

    assert_int_equal(blob_share_complete(share, &digest, leaves, &why), 0);
    assert_int_equal(blob_store_leaves(store, &digest, &why, &ref, &cut), 0);
    assert_true(ref.count == sizeof leaves && state_cut_equal(&cut, &share_cut));
    assert_memory_equal(ref.bytes, leaves, sizeof leaves);
    blob_store_release(&ref);
    assert_int_equal(served(store, 5), leaves_of_place(1) | 1);
    assert_int_equal(blob_store_amounts(store).state, own + STATE_LEAF_BYTES + sizeof leaves);
    assert_int_equal(blob_store_amounts(store).state_ever, own + STATE_LEAF_BYTES);

    // It is no copy of the state
    float params[2];
    assert_int_equal(blob_store_pinned(store, &digest, &why, &ref, &cut), FAULT_NOT_FOUND);
    assert_int_equal(blob_store_pinned_params(store, &digest, sizeof params, &why, params),
                     FAULT_NOT_FOUND);
    blob_share_release(&share);
    blob_store_destroy(&store);
}

static void test_a_share_that_cannot_be_completed(void **state)
{
    (void)state;
    blob_store_t *store = new_store();
    struct hash leaves[ALL_LEAVES];
    struct blob_ref ref;
    struct state_cut cut;
    all_leaves(5, leaves);
    blob_share_t *share = make_share(store, 5, 1);
    leaves[3].bytes[0] ^= 1;
    const struct hash other = state_cut_root(&share_cut, leaves);
    assert_int_equal(blob_share_complete(share, &other, leaves, &why), FAULT_CORRUPT);
    assert_string_equal(why.text, "a leaf of our share of step 5 has another hash");
    blob_store_drop_shares(store, UINT64_MAX, UINT64_MAX);
    const struct hash digest = all_leaves(5, leaves);
    assert_int_equal(blob_share_complete(share, &digest, leaves, &why), FAULT_NOT_FOUND);
    assert_string_equal(why.text, "our share of step 5 is gone");
    assert_int_equal(blob_store_leaves(store, &digest, &why, &ref, &cut), FAULT_NOT_FOUND);
    blob_share_release(&share);
    const struct state_cut empty = { 1, { 0 } }, most = { 1, { UINT64_MAX } };
    assert_int_equal(blob_store_new_share(store, &empty, &why, &share), FAULT_LIMIT);
    assert_int_equal(blob_store_new_share(store, &most, &why, &share), FAULT_LIMIT);
    assert_int_equal(blob_store_new_share(store, &share_cut, &why, &share), 0);
    blob_share_release(&share); // Never put
    blob_store_destroy(&store);
}

static void test_two_generations(void **state)
{
    (void)state;
    blob_store_t *store = new_store();
    put_share(store, 10, 0);
    put_share(store, 20, 0);
    assert_true(served(store, 10) && served(store, 20));
    blob_store_drop_shares(store, 20, UINT64_MAX);
    assert_true(!served(store, 10) && served(store, 20) && !blob_store_share(store, 10));
    put_share(store, 30, 0);
    put_share(store, 30, 1); // The same step again: instead of the other
    assert_int_equal(served(store, 30), leaves_of_place(1));
    blob_store_drop_shares(store, 30, 20);
    assert_true(served(store, 20) && served(store, 30));
    blob_store_drop_shares(store, UINT64_MAX, UINT64_MAX);
    assert_true(!served(store, 20) && !served(store, 30));
    assert_int_equal(blob_store_amounts(store).state, 0);
    blob_store_destroy(&store);
}

static void test_a_share_is_dropped_while_it_is_read(void **state)
{
    (void)state;
    blob_store_t *store = new_store();
    const struct hash hash = leaf_hash(10, 3);
    struct blob_ref ref;
    put_share(store, 10, 1);
    assert_int_equal(blob_store_get(store, &hash, &why, &ref), 0);
    put_share(store, 20, 1);
    blob_store_drop_shares(store, 20, UINT64_MAX);
    blob_share_t *other = make_share(store, 30, 1); // In memory of its own
    for (size_t i = 0; i < ref.count; i++) assert_int_equal(ref.bytes[i], leaf_of(10, 3));
    blob_store_release(&ref);
    blob_share_release(&other);
    assert_true(served(store, 20) && served(store, 30) && !served(store, 10));
    blob_store_destroy(&store);
}

// Pages of the leaf that are in memory.
static size_t pages_of(const uint8_t *bytes, uint64_t leaf)
{
    unsigned char pages[STATE_LEAF_BYTES / 4096];
    size_t count = 0;
    assert_int_equal(
        mincore((void *)(uintptr_t)(bytes + leaf * STATE_LEAF_BYTES), STATE_LEAF_BYTES, pages), 0);
    for (size_t i = 0; i < sizeof pages; i++) count += pages[i] & 1;
    return count;
}

// A generation gets the memory of one that is gone. Of another place it keeps no more than it needs.
static void test_memory_of_shares_is_used_again(void **state)
{
    (void)state;
    blob_store_t *store = new_store();
    struct hash leaves[ALL_LEAVES];
    blob_share_t *share = make_share(store, 10, 0);
    const uint8_t *bytes = blob_share_bytes(share);
    assert_true(pages_of(bytes, 0) == 16 && pages_of(bytes, 4) == 0);
    blob_share_release(&share);
    put_share(store, 20, 0);
    blob_store_drop_shares(store, 20, UINT64_MAX);
    assert_int_equal(blob_store_new_share(store, &share_cut, &why, &share), 0);
    assert_ptr_equal(blob_share_bytes(share), bytes);
    assert_true(pages_of(bytes, 0) == 16 && pages_of(bytes, 4) == 0); // Its pages are there
    blob_share_release(&share);                                       // And goes back
    share = make_share(store, 30, 2);
    assert_ptr_equal(blob_share_bytes(share), bytes);
    assert_int_equal(served(store, 30), leaves_of_place(2));
    fill(share, 30, 2);
    const struct hash digest = all_leaves(30, leaves);
    assert_int_equal(blob_share_complete(share, &digest, leaves, &why), 0);
    assert_int_equal(pages_of(bytes, 0), 0);
    assert_true(pages_of(bytes, 2) == 16 && pages_of(bytes, 4) == 16 && pages_of(bytes, 5) == 16);
    assert_int_equal(served(store, 30), leaves_of_place(2) | 1u << 2);
    blob_share_release(&share);

    // A state of another size is not put into it
    blob_store_drop_shares(store, 20, UINT64_MAX);
    const struct state_cut small = { 1, { STATE_LEAF_BYTES } };
    assert_int_equal(blob_store_new_share(store, &small, &why, &share), 0);
    assert_true(blob_share_bytes(share) != bytes);
    blob_share_release(&share);
    blob_store_destroy(&store);
}

// At first the moments are zeros: many leaves have one hash.
static void test_equal_leaves_of_a_share(void **state)
{
    (void)state;
    blob_store_t *store = new_store();
    static const uint8_t zeros[STATE_LEAF_BYTES];
    const struct state_cut cut = { 1, { 4 * STATE_LEAF_BYTES } };
    const struct share_list list = share_list_of(&cut, 0, 2, SHARE_ALIKE);
    const struct hash hash = merkle_leaf(zeros, sizeof zeros),
                      hashes[4] = { hash, hash, hash, hash };
    const struct hash digest = state_cut_root(&cut, hashes);
    struct blob_ref ref;
    blob_share_t *share;
    assert_int_equal(blob_store_new_share(store, &cut, &why, &share), 0);
    blob_store_put_share(store, &share, 1, &list,
                         hashes); // Memory that was never written to is zeros
    share = blob_store_share(store, 1);
    for (uint64_t leaf = 2; leaf < 4; leaf++)
        blob_share_fill(share, leaf, &hash, zeros, sizeof zeros);
    assert_int_equal(blob_share_complete(share, &digest, hashes, &why), 0);
    assert_int_equal(blob_store_get(store, &hash, &why, &ref), 0);
    assert_true(ref.count == sizeof zeros && memcmp(ref.bytes, zeros, sizeof zeros) == 0);
    blob_store_release(&ref);
    blob_share_release(&share);
    blob_store_destroy(&store);
}

enum { GENERATIONS = 40 };

struct reading {
    blob_store_t *store;
    atomic_bool ends;
    atomic_uint found, wrong;
};

// As the bulk server does, beside the threads that put, fill and drop.
static void *read_leaves(void *arg)
{
    struct reading *self = arg;
    struct hash hashes[GENERATIONS];
    for (uint64_t step = 0; step < GENERATIONS; step++) hashes[step] = leaf_hash(step, step % 4);
    while (!self->ends)
        for (uint64_t step = 0; step < GENERATIONS; step++) {
            struct blob_ref ref;
            if (blob_store_get(self->store, &hashes[step], NULL, &ref) < 0) continue;
            for (size_t i = 0; i < ref.count; i += 997)
                self->wrong += ref.bytes[i] != leaf_of(step, step % 4);
            self->found++;
            blob_store_release(&ref);
        }
    return NULL;
}

static void test_readers_beside_generations(void **state)
{
    (void)state;
    struct reading reading = { .store = new_store() };
    struct hash leaves[ALL_LEAVES];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, read_leaves, &reading);
    for (uint64_t step = 0; step < GENERATIONS; step++) {
        const unsigned found = reading.found;
        blob_share_t *share = make_share(reading.store, step, 0);
        for (uint64_t leaf = 2; leaf < 4; leaf++) fill(share, step, leaf);
        const struct hash digest = all_leaves(step, leaves);
        assert_int_equal(blob_share_complete(share, &digest, leaves, &why), 0);
        blob_share_release(&share);
        for (int i = 0; i < 1000 && reading.found == found; i++) sched_yield();
        blob_store_drop_shares(reading.store, step, UINT64_MAX);
    }
    reading.ends = true;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    assert_true(reading.found > 0 && reading.wrong == 0);
    blob_store_destroy(&reading.store);
}

TESTS(TEST(test_a_share_is_served_leaf_by_leaf), TEST(test_a_share_that_cannot_be_completed),
      TEST(test_two_generations), TEST(test_a_share_is_dropped_while_it_is_read),
      TEST(test_memory_of_shares_is_used_again), TEST(test_equal_leaves_of_a_share),
      TEST(test_readers_beside_generations))
