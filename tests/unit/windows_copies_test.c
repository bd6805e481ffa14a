// windows_copies_test -- learners in one process copy their shares in memory (learner_copies.c), while their group takes
// steps and changes. From the lists that they make the digest follows: it is that of one learner alone.

#include "common/vector/share_list.h"
#include "tests/unit/windows_fixture.h"

enum { EVERY = 2, ALONE = 120 };
static struct hash alone[ALONE + 1]; // The digest at each step

// Once for all tests.
static void take_steps_alone(void)
{
    struct member *group[MEMBERS_MAX_HERE];
    struct course at = { 0, 0 };
    strategy.parts = PARTS_NONE;
    strategy.memory_every = 0;
    begin_group(group, 1);
    while (at.step < ALONE) alone[at.step] = take_steps(&at, 1, group, 1); // That of the step after
    memmove(alone + 1, alone, ALONE * sizeof *alone);
    end_group();
}

static void set_up_run(void)
{
    shape.vocab = 900; // Four leaves
    share_moments();
    if (hash_is_none(&alone[1])) take_steps_alone();
    strategy.parts = PARTS_MOMENTS;
    strategy.memory_every = EVERY;
    strategy.buddies = 1;
    next_drops = false;
    next_kept = (struct wire_kept){ 0, 0 };
}

static void end(void)
{
    end_group();
    strategy.memory_every = 0;
    shape.vocab = 40;
}

static void go_on(struct course *at, uint32_t steps, struct member *const *group, uint32_t count)
{
    const struct hash digest = take_steps(at, steps, group, count);
    assert_true(hash_equal(&digest, &alone[at->step]));
}

// Windows, until each has said that it has the lists of a step later than `than`. Returns that step.
static uint64_t await_listed(struct course *at, struct member *const *group, uint32_t count,
                             uint64_t than)
{
    while (at->step + 4 <= ALONE) {
        go_on(at, 4, group, count);
        uint32_t heard = 0;
        for (uint32_t i = 0; i < count; i++) heard += group[i]->listed > than;
        if (heard < count) continue;
        for (uint32_t i = 0; i < count; i++) assert_int_equal(group[i]->listed, group[0]->listed);
        return group[0]->listed;
    }
    fail_msg("no copies by step %" PRIu64, at->step);
    return 0;
}

// Each list is a blob of the member that it is of, and together they are the state of that step.
static void expect_lists(struct member *const *group, uint32_t count, uint64_t step)
{
    struct hash *leaves = calloc(state_cut_leaves(&built_cut), sizeof *leaves);
    struct blob_ref ref;
    assert_int_equal(step % EVERY, 0);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(group[i]->lists_count, count);
        assert_memory_equal(group[i]->lists, group[0]->lists, count * sizeof *group[0]->lists);
        assert_int_equal(blob_store_get(group[i]->store, &group[0]->lists[i].hash, NULL, &ref), 0);
        assert_int_equal(ref.count, group[0]->lists[i].bytes);
        assert_int_equal(
            share_list_join(&built_cut, i, count, SHARE_ALIKE, ref.bytes, ref.count, leaves),
            SHARE_FITS);
        blob_store_release(&ref);
    }
    for (uint64_t leaf = 0; leaf < state_cut_leaves(&built_cut); leaf++) { // Somebody serves it
        uint32_t served = 0;
        for (uint32_t i = 0; i < count; i++) {
            if (blob_store_get(group[i]->store, &leaves[leaf], NULL, &ref) < 0) continue;
            assert_int_equal(ref.count, state_cut_leaf(&built_cut, leaf).bytes);
            blob_store_release(&ref);
            served++;
        }
        assert_true(served > 0);
    }
    const struct hash digest = state_cut_root(&built_cut, leaves);
    assert_true(hash_equal(&digest, &alone[step]));
    free(leaves);
}

// The run alone, then a group of three whose first copies are with all.
static uint64_t begin_with_copies(struct member *ret_group[MEMBERS_MAX_HERE], struct course *at)
{
    *at = (struct course){ 0, 0 };
    set_up_run();
    begin_group(ret_group, 3);
    return await_listed(at, ret_group, 3, 0);
}

static void put_on_record(struct member *const *group, uint32_t count, uint64_t step)
{
    next_kept = (struct wire_kept){ group[0]->listed_window, step };
    for (uint32_t i = 0; i < count; i++) send_job(group[i], FRAME_KEPT, &next_kept);
}

// Nothing new is copied before the newest is on record; then it is.
static void a_group_copies_its_shares(void **state)
{
    struct member *group[MEMBERS_MAX_HERE];
    struct course at;
    (void)state;
    const uint64_t first = begin_with_copies(group, &at);
    expect_lists(group, 3, first);
    for (int i = 0; i < 2; i++) go_on(&at, 4, group, 3);
    for (int i = 0; i < 3; i++) assert_int_equal(group[i]->listed, first);
    blob_share_t *share = blob_store_share(group[0]->store, first);
    assert_non_null(share);
    blob_share_release(&share);
    put_on_record(group, 3, first);
    // A window that was given before, and begins now; also if an earlier save of the same window was on record then
    for (uint64_t earlier = 0; earlier < 2; earlier++) {
        next_kept = (struct wire_kept){ earlier ? group[0]->listed_window : 0, earlier };
        go_on(&at, 1, group, 3);
        share = blob_store_share(group[0]->store, first);
        assert_non_null(share);
        blob_share_release(&share);
    }
    const uint64_t second = await_listed(&at, group, 3, first);
    expect_lists(group, 3, second);
    end();
}

// One has heard that the newest is on record, and the others not yet: nobody copies, and what they still say of
// those copies is not taken for words of the next ones.
static void who_hears_of_a_record_first_waits_for_the_others(void **state)
{
    struct member *group[MEMBERS_MAX_HERE];
    struct course at;
    (void)state;
    const uint64_t first = begin_with_copies(group, &at);
    put_on_record(group, 1, first);
    next_kept = (struct wire_kept){ 0, 0 }; // The next window does not say so yet
    for (int i = 0; i < 2; i++) go_on(&at, 4, group, 3);
    for (int i = 0; i < 3; i++) assert_int_equal(group[i]->listed, first);
    put_on_record(group + 1, 2, first);
    next_kept = (struct wire_kept){ 0, 0 };
    go_on(&at, EVERY, group, 3); // The copies are made behind it, and hashed before the next words
    const uint64_t second = await_listed(&at, group, 3, first);
    assert_true(second > first + 8 - EVERY);
    expect_lists(group, 3, second);
    end();
}

// One dies before the copies are on record. Those that are left go on with all of the state, and make copies of a later step.
static void what_is_not_on_record_is_dropped_behind_a_break(void **state)
{
    struct member *group[MEMBERS_MAX_HERE];
    struct course at;
    (void)state;
    const uint64_t first = begin_with_copies(group, &at);
    die(group[1]);
    struct member *rest[] = { group[0], group[2] };
    next_drops = true;
    go_on(&at, 1, rest, 2);
    assert_null(blob_store_share(rest[0]->store, first));
    next_drops = false;
    const uint64_t second = await_listed(&at, rest, 2, first);
    expect_lists(rest, 2, second);
    end();
}

// A run that has a memory save says so to a process whose BUILD has failed, too.
static void a_learner_without_a_model_hears_of_a_record(void **state)
{
    struct member *group[MEMBERS_MAX_HERE];
    (void)state;
    set_up_run();
    begin_group(group, 1);
    tell_build(group[0], 0);
    send_job(group[0], FRAME_KEPT, &(struct wire_kept){ 1, EVERY });
    const struct wire_built *built = hear_kind(group[0], FRAME_BUILT);
    assert_false(built->ok);
    assert_non_null(strstr(built->reason, "micro_batch_size"));
    build(group[0]);
    end();
}

TESTS(FOLDER_TEST(a_learner_without_a_model_hears_of_a_record),
      FOLDER_TEST(a_group_copies_its_shares),
      FOLDER_TEST(who_hears_of_a_record_first_waits_for_the_others),
      FOLDER_TEST(what_is_not_on_record_is_dropped_behind_a_break))
