// share_list_test -- which leaves each place has, and the hashes of all leaves from the lists of all places.

#include "common/group/group.h"
#include "common/vector/share_list.h"
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

enum { LEAF = STATE_LEAF_BYTES, LEAVES_MAX = 64 };

// Parameters and moments of 7 leaves, the last one short; a table of two leaves between them; a number of steps.
static const struct state_cut mixed = {
    5, { 6 * LEAF + 40, 6 * LEAF + 40, LEAF + 4, 6 * LEAF + 40, 8 }
};

static void expect_run(struct interval run, uint64_t begin, uint64_t end)
{
    assert_true(run.begin == begin && run.end == end);
}

static void what_is_cut_comes_first(void **state)
{
    (void)state;
    const struct share_list list = share_list_of(&mixed, 1, 3, SHARE_ALIKE);
    assert_true(list.count == 5 && list.cut_count == 3);
    expect_run(list.runs[0], 2, 4);
    expect_run(list.runs[1], 7 + 2, 7 + 4);
    expect_run(list.runs[2], 16 + 2, 16 + 4);
    expect_run(list.runs[3], 14, 16);
    expect_run(list.runs[4], 23, 24);
    assert_int_equal(share_list_leaves(&list), 3 * 2 + 2 + 1);
    const struct state_cut alone = state_cut_of_floats(10 * DIGEST_LEAF_FLOATS);
    const struct share_list all = share_list_of(&alone, 0, 1, SHARE_ALIKE);
    assert_true(all.count == 1 && all.cut_count == 1);
    expect_run(all.runs[0], 0, 10);
}

// Those that a member sums and saves.
static void the_intervals_are_those_of_the_group(void **state)
{
    (void)state;
    static const uint64_t sizes[] = { 1, DIGEST_LEAF_FLOATS, 3 * DIGEST_LEAF_FLOATS + 1,
                                      1000 * DIGEST_LEAF_FLOATS - 5 };
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++)
        for (uint32_t places = 1; places <= SHARE_PLACES_MAX; places++)
            for (uint32_t place = 0; place < places; place++) {
                const struct state_cut cut = state_cut_of_floats(sizes[n]);
                const struct interval at = group_interval(sizes[n], place, places);
                const struct share_list list = share_list_of(&cut, place, places, SHARE_ALIKE);
                const uint64_t leaves = state_item_leaves(interval_length(at) * sizeof(float));
                assert_int_equal(interval_length(list.runs[0]), leaves);
                if (leaves) assert_int_equal(list.runs[0].begin * DIGEST_LEAF_FLOATS, at.begin);
            }
}

static void what_is_not_cut_may_be_of_the_first(void **state)
{
    (void)state;
    const struct share_list first = share_list_of(&mixed, 0, 3, SHARE_OF_FIRST);
    const struct share_list other = share_list_of(&mixed, 1, 3, SHARE_OF_FIRST);
    assert_true(first.count == 5 && other.count == 5 && other.cut_count == 3);
    expect_run(first.runs[3], 14, 16);
    expect_run(first.runs[4], 23, 24);
    assert_int_equal(share_list_leaves(&other), 3 * 2);
    struct hash leaves[LEAVES_MAX] = { 0 };
    uint8_t bytes[LEAVES_MAX * HASH_BYTES] = { 0 };
    // A list with what each member of another group has is one of another group
    assert_int_equal(share_list_join(&mixed, 1, 3, SHARE_OF_FIRST, bytes, 9 * HASH_BYTES, leaves),
                     SHARE_OTHER_COUNT);
    assert_int_equal(share_list_join(&mixed, 1, 3, SHARE_OF_FIRST, bytes, 6 * HASH_BYTES, leaves),
                     SHARE_FITS);
}

static struct hash hash_number(uint64_t number) { return hash_of(&number, sizeof number); }

static size_t write_list(uint32_t place, uint32_t places, uint8_t *bytes)
{
    const struct share_list list = share_list_of(&mixed, place, places, SHARE_ALIKE);
    size_t count = 0;
    for (uint32_t i = 0; i < list.count; i++)
        for (uint64_t leaf = list.runs[i].begin; leaf < list.runs[i].end; leaf++) {
            const struct hash hash = hash_number(leaf);
            memcpy(bytes + count, &hash, HASH_BYTES);
            count += HASH_BYTES;
        }
    return count;
}

// As many places as there may be: most of them have only what each has.
static void all_lists_make_the_whole(void **state)
{
    (void)state;
    static const uint32_t worlds[] = { 1, 2, 3, 7, 8, SHARE_PLACES_MAX };
    uint8_t bytes[LEAVES_MAX * HASH_BYTES];
    for (size_t n = 0; n < sizeof worlds / sizeof *worlds; n++) {
        struct hash leaves[LEAVES_MAX] = { 0 };
        for (uint32_t place = 0; place < worlds[n]; place++) {
            const size_t count = write_list(place, worlds[n], bytes);
            assert_int_equal(
                share_list_join(&mixed, place, worlds[n], SHARE_ALIKE, bytes, count, leaves),
                SHARE_FITS);
        }
        for (uint64_t leaf = 0; leaf < state_cut_leaves(&mixed); leaf++) {
            const struct hash hash = hash_number(leaf);
            assert_true(hash_equal(&leaves[leaf], &hash));
        }
    }
}

static void a_list_that_does_not_fit_changes_nothing(void **state)
{
    (void)state;
    uint8_t bytes[LEAVES_MAX * HASH_BYTES];
    struct hash leaves[LEAVES_MAX] = { 0 }, before[LEAVES_MAX];
    size_t count = write_list(0, 3, bytes);
    assert_int_equal(share_list_join(&mixed, 0, 3, SHARE_ALIKE, bytes, count, leaves), SHARE_FITS);
    memcpy(before, leaves, sizeof before);
    count = write_list(1, 3, bytes);
    const size_t others[] = { 0, 1, count - HASH_BYTES, count - 1, count + 1, count + HASH_BYTES };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(share_list_join(&mixed, 1, 3, SHARE_ALIKE, bytes, others[i], leaves),
                         SHARE_OTHER_COUNT);
    bytes[count - 1] ^= 1; // In the number of steps
    assert_int_equal(share_list_join(&mixed, 1, 3, SHARE_ALIKE, bytes, count, leaves),
                     SHARE_DIFFERS);
    assert_memory_equal(leaves, before, sizeof leaves);
    bytes[count - 1] ^= 1;
    bytes[0] ^= 1; // In its own: nobody here can tell
    assert_int_equal(share_list_join(&mixed, 1, 3, SHARE_ALIKE, bytes, count, leaves), SHARE_FITS);
}

TESTS(TEST(what_is_cut_comes_first), TEST(what_is_not_cut_may_be_of_the_first),
      TEST(the_intervals_are_those_of_the_group), TEST(all_lists_make_the_whole),
      TEST(a_list_that_does_not_fit_changes_nothing))
