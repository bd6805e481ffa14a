// windows_learner_test -- learners in one process take windows together (windows_fixture.h). Whatever happens, the
// state is that of one learner alone.

#include "tests/unit/windows_fixture.h"

static void every_world_ends_in_the_same_state(void **state)
{
    (void)state;
    make_files();
    const struct hash alone = run(1, 0, 1);
    const uint32_t worlds[] = { 2, 3, 4, 7, 8 };
    for (uint32_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        const struct hash digest = run(worlds[i], 0, 1);
        assert_true(hash_equal(&digest, &alone));
    }
}

// ---- moments by shares --------------------------------------------------------------------------

// Of eight members two have no share.
static void shares_of_any_world_end_in_the_same_state(void **state)
{
    const uint32_t worlds[] = { 1, 2, 3, 4, 7, 8 };
    (void)state;
    share_moments();
    strategy.parts = PARTS_NONE;
    const struct hash alone = run(1, 0, 1);
    strategy.parts = PARTS_MOMENTS;
    for (uint32_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        const struct hash digest = run(worlds[i], 0, 1);
        assert_true(hash_equal(&digest, &alone));
    }
}

// Under ASan the portable kernels would take as long as the rest of this file. gemm_test has them there.
static bool is_left_out(const char *isa)
{
#if defined(__SANITIZE_ADDRESS__)
    return strcmp(isa, "base") == 0 && strcmp(kernels_chosen()->name, "base") != 0;
#else
    return !isa;
#endif
}

// Each instruction set that this processor has, 1 to 3 threads, two deaths and two joiners in each world. SAME_BITS=n:
// all worlds on each, with each type of products, with n seeds; else half of the worlds, one seed.
static void every_instruction_set_ends_in_the_same_state(void **state)
{
    const char *const isas[] = { "amx", "avx512bf16", "avx512", "avx2", "base" };
    const uint32_t worlds[] = { 1, 2, 3, 4, 7, 8 };
    const char *const own = kernels_chosen()->name, *seeds = getenv("SAME_BITS");
    uint32_t runs = 0;
    (void)state;
    make_files();
    for (int type = 0; type < (seeds ? PRODUCTS_COUNT : 1); type++) {
        products = (enum products)(seeds ? type : PRODUCTS_FLOAT32);
        const struct hash alone = run(1, 0, 1);
        for (uint32_t n = 0; n < 30u * (seeds ? (uint32_t)atoi(seeds) : 1); n++) {
            const uint32_t i = n % 5, w = n / 5 % 6;
            if ((!seeds && (i + w) % 2) || is_left_out(isas[i]) || !learn_set_isa(isas[i]))
                continue;
            const struct hash digest = run(worlds[w], worlds[w] > 1 ? 2 : 0, n);
            assert_true(hash_equal(&digest, &alone));
            runs++;
        }
        assert_true(learn_set_isa(own));
    }
    products = PRODUCTS_FLOAT32;
    assert_true(runs > 0);
    print_message("%u runs on the instruction sets of this processor end in one state\n", runs);
}

static void deaths_change_no_bit(uint64_t from, uint64_t to)
{
    make_files();
    const struct hash alone = run(1, 0, 1);
    for (uint64_t seed = from; seed < to; seed++) {
        const struct hash digest = run(2 + (uint32_t)seed % 3, 3, seed);
        assert_true(hash_equal(&digest, &alone));
    }
}

static void deaths_and_joiners_change_no_bit(void **state)
{
    (void)state;
    deaths_change_no_bit(1, 4);
}

// A gradient of four leaves: it is summed in parts, while the backward pass is still at work.
static void deaths_in_a_backward_pass_change_no_bit(void **state)
{
    (void)state;
    shape.vocab = 900;
    deaths_change_no_bit(4, 7);
    shape.vocab = 40;
}

// ---- a step that is void ------------------------------------------------------------------------

// Gives a window and hears who calls its step void, as bits, and why (`any`: or for the sum); then closes it there. Nobody else is broken.
static uint64_t try_window(struct course *at, struct member *const *group, uint32_t count,
                           uint8_t unsound, bool any)
{
    uint64_t who = 0, broken_at = UINT64_MAX;
    give_window(at, WINDOW, group, count);
    await_end(group, count, at->step + WINDOW);
    for (uint32_t i = 0; i < count; i++) {
        if (group[i]->kind != FRAME_BROKE) continue;
        const struct wire_broke *broke = group[i]->body;
        if (broke->unsound != unsound && !(any && broke->unsound == UNSOUND_SUM))
            fail_msg("%s", broke->reason);
        assert_false(broke->has);
        assert_true(broke->missing == 0 && broke->step >= at->step);
        broken_at = broke->step;
        who |= (uint64_t)1 << i;
    }
    const uint64_t end = close_window(group, count, at->step);
    assert_true(who == 0 || end == broken_at);
    for (; at->step < end; at->step++) at->samples_done += batch_at(at->samples_done);
    return who;
}

static void a_foreign_token_voids_its_step_at_one_member(void **state)
{
    (void)state;
    struct member *group[MEMBERS_MAX_HERE];
    struct course at = { 0, 0 };
    make_files_with(60000);
    const uint32_t count = begin_group(group, 3);
    uint64_t who = 0;
    while (at.step < STEPS && who == 0) who = try_window(&at, group, count, UNSOUND_TOKENS, false);
    const uint64_t step = at.step;
    assert_true(who == 1 || who == 2 || who == 4);
    assert_true(try_window(&at, group, count, UNSOUND_TOKENS, false) == who); // The same samples
    assert_true(at.step == step);
    end_group();
}

// The rate of the first step spoils the parameters of all. Nobody takes a step after it.
static void a_gradient_that_is_not_finite_is_applied_by_nobody(void **state)
{
    (void)state;
    struct member *group[MEMBERS_MAX_HERE];
    struct course at = { 0, 0 };
    make_files();
    const uint32_t count = begin_group(group, 3);
    rate = 1e36f;
    assert_true(try_window(&at, group, count, UNSOUND_GRADIENT, true) != 0);
    rate = 0.01f;
    const uint64_t step = at.step;
    assert_true(try_window(&at, group, count, UNSOUND_GRADIENT, false) != 0);
    assert_true(at.step == step && step > 0);
    end_group();
}

// ---- a state that changed by itself -------------------------------------------------------------

// What a member holds is pinned under its digest.
static struct hash pin(struct member *self, uint64_t step)
{
    send_job(self, FRAME_CLOSE_WINDOW, &(struct wire_close_window){ 0, step, true });
    return ((const struct wire_closed_window *)hear_kind(self, FRAME_CLOSED_WINDOW))->digest;
}

// Gives it the state that another one has pinned, as a fetcher does; of an item a float is changed, one of
// those that every sample uses.
enum { NO_ITEM = 99 };
static void give_state(struct member *self, const struct member *from, uint64_t step,
                       const struct hash *digest, uint32_t flipped_item)
{
    struct blob_snapshot state = { .step = step };
    struct hash roots[STATE_ITEMS_MAX];
    const void *items[STATE_ITEMS_MAX];
    struct blob_ref ref;
    assert_int_equal(blob_store_pinned(from->store, digest, NULL, &ref, &state.cut), 0);
    struct state_copy copy;
    assert_int_equal(blob_store_new_copy(self->store, state_cut_room(&state.cut), NULL, &copy), 0);
    memcpy(copy.bytes, ref.bytes, state_cut_room(&state.cut));
    blob_store_release(&ref);
    for (uint32_t i = 0; i < state.cut.count; i++)
        items[i] = copy.bytes + state_cut_place(&state.cut, i);
    if (flipped_item != NO_ITEM)
        copy.bytes[state_cut_place(&state.cut, flipped_item) + 4 * 2000 + 3] ^= 0x30;
    state.digest = state_cut_digest(&state.cut, items, roots);
    blob_store_stage(self->store, &state, &copy);
    send_job(self, FRAME_LOAD, &(struct wire_load){ .step = step });
    const struct wire_loaded *loaded = hear_kind(self, FRAME_LOADED);
    if (!loaded->ok) fail_msg("%s", loaded->reason);
}

// All say at the same step whose state differs, and nobody has that step. Returns the step.
static uint64_t hear_differ(struct member *const *group, uint32_t count, uint64_t differ)
{
    uint64_t step = 0;
    for (uint32_t i = 0; i < count; i++) {
        while (group[i]->kind != FRAME_BROKE) assert_true(hear(group[i], WAIT_MS));
        const struct wire_broke *broke = group[i]->body;
        if (broke->differ != differ) fail_msg("%s", broke->reason);
        assert_false(broke->has || broke->missing || broke->unsound);
        if (i > 0) assert_true(broke->step == step);
        step = broke->step;
    }
    return step;
}

// The state has four leaves, an item each. A float of one member changes before step WINDOW: it is found when the turn of a
// leaf comes in which it can be seen. Returns the digest in which the run ends.
static struct hash find(uint32_t flipped_item, uint64_t found_at)
{
    struct member *group[MEMBERS_MAX_HERE];
    struct course at = { 0, 0 };
    const uint32_t count = begin_group(group, 3);
    assert_true(try_window(&at, group, count, UNSOUND_NONE, false) == 0 && at.step == WINDOW);
    const struct hash digest = pin(group[2], WINDOW);
    give_state(group[2], group[2], WINDOW, &digest, flipped_item);
    give_window(&at, WINDOW, group, count);
    assert_true(hear_differ(group, count, 4) == found_at);
    assert_true(freeze(group, count, WINDOW) == found_at);
    struct hash good = { { 0 } };
    for (uint32_t i = 0; i < count; i++) {
        send_job(group[i], FRAME_CLOSE_WINDOW,
                 &(struct wire_close_window){ next_window - 1, found_at, true });
        const struct wire_closed_window *closed = hear_kind(group[i], FRAME_CLOSED_WINDOW);
        assert_true(closed->ok == (i != 2)); // Its state must be fetched
        if (i == 0) good = closed->digest;
        if (i == 1) assert_true(hash_equal(&good, &closed->digest));
    }
    give_state(group[2], group[0], found_at, &good, NO_ITEM);
    for (; at.step < found_at; at.step++) at.samples_done += batch_at(at.samples_done);
    go_on_to_the_end(&at, group, count);
    const struct hash last = pin(group[2], STEPS);
    end_group();
    return last;
}

static void a_state_that_changed_is_found_within_its_leaves(void **state)
{
    (void)state;
    make_files();
    const struct hash alone = run(1, 0, 1);
    // The step that compares the second moments is the next one: no gradient was spoiled.
    const struct hash at_once = find(2, WINDOW);
    assert_true(hash_equal(&at_once, &alone));
    // The first moments move the parameters; two steps later these are compared.
    const struct hash later = find(1, WINDOW + 2);
    assert_false(hash_equal(&later, &alone)); // Its gradient of one step was another one
    find(0, WINDOW + 2);
}

// Of two, neither is right.
static void two_that_differ_name_each_other(void **state)
{
    (void)state;
    struct member *group[MEMBERS_MAX_HERE];
    struct course at = { 0, 0 };
    make_files();
    const uint32_t count = begin_group(group, 2);
    const struct hash digest = pin(group[0], 0);
    give_state(group[0], group[0], 0, &digest, 1);
    give_window(&at, WINDOW, group, count);
    assert_true(hear_differ(group, count, 2) == 1); // Whose turn comes in step 1
    assert_true(freeze(group, count, 0) == 1);
    const struct hash a = pin(group[0], 1), b = pin(group[1], 1); // Both keep what they hold
    assert_true(!hash_is_none(&a) && !hash_is_none(&b) && !hash_equal(&a, &b));
    end_group();
}

// One of two wants to stop, and both have the next window already. They stop behind the one step of the first,
// and begin no other.
static void a_group_that_stops_begins_no_window(void **state)
{
    (void)state;
    struct member *group[MEMBERS_MAX_HERE];
    struct course at = { 0, 0 };
    struct plan first, next;
    make_files();
    const uint32_t count = begin_group(group, 2);
    plan_window(&first, &at, 1, group, count);
    at = (struct course){ 1, first.dealt.end };
    plan_window(&next, &at, WINDOW, group, count);
    give_one(&first, group, 0); // It waits for the other one, and hears the rest meanwhile
    give_one(&next, group, 0);
    send_job(group[0], FRAME_STOP_WINDOW, &(struct wire_stop_window){ next.job.number });
    give_one(&first, group, 1);
    give_one(&next, group, 1);
    uint32_t samples = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct wire_stepped *stepped = hear_kind(group[i], FRAME_STEPPED);
        assert_true(stepped->stopped && stepped->step == 1);
        samples += stepped->samples; // Each says its own part
    }
    assert_int_equal(samples, batch_at(0));
    assert_int_equal(close_window(group, count, 0), 1);
    end_group();
}

// ---- a member that is late ----------------------------------------------------------------------

// Of each member, the newest word on who is late, up to the end of the window.
static void hear_late(struct member *const *group, uint32_t count, uint64_t end, uint32_t *ret_late)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct wire_stepped *stepped;
        do {
            stepped = hear_kind(group[i], FRAME_STEPPED);
            ret_late[i] = stepped->late;
            assert_true(!stepped->late ||
                        (stepped->late_ms > 200 && 3 * stepped->usual_ms < stepped->late_ms));
            assert_true(!stepped->late || stepped->train_ms < stepped->late_ms);
        } while (stepped->step < end);
    }
}

// One window. Returns 1 + the place of the member that the others call late at its end; 0: nobody.
static uint32_t run_window(struct course *at, struct member *const *group, uint32_t count,
                           uint32_t steps)
{
    uint32_t late[MEMBERS_MAX_HERE], slow = 0;
    give_window(at, steps, group, count);
    hear_late(group, count, at->step + steps, late);
    for (uint32_t i = 0; i < steps; i++, at->step++) at->samples_done += batch_at(at->samples_done);
    for (uint32_t i = 0; i < count; i++) slow = late[i] ? late[i] : slow;
    for (uint32_t i = 0; i < count && slow; i++)
        assert_int_equal(late[i], i + 1 == slow ? 0 : slow);
    return slow;
}

static void a_member_that_is_late_twice_is_said_until_it_is_on_time(void **state)
{
    (void)state;
    struct member *group[MEMBERS_MAX_HERE];
    struct course at = { 0, 0 };
    uint32_t slow = 0;
    make_files();
    const uint32_t count = begin_group(group, 3);
    assert_int_equal(run_window(&at, group, count, WINDOW), 0);
    is_slowing = true;
    for (int tries = 0; tries < 5 && !slow; tries++) slow = run_window(&at, group, count, 3);
    assert_in_range(slow, 1, count);
    is_slowing = false;
    assert_int_equal(run_window(&at, group, count, WINDOW), 0);
    end_group();
}

TESTS(FOLDER_TEST(every_world_ends_in_the_same_state),
      FOLDER_TEST(shares_of_any_world_end_in_the_same_state),
      FOLDER_TEST(every_instruction_set_ends_in_the_same_state),
      FOLDER_TEST(deaths_and_joiners_change_no_bit),
      FOLDER_TEST(deaths_in_a_backward_pass_change_no_bit),
      FOLDER_TEST(a_foreign_token_voids_its_step_at_one_member),
      FOLDER_TEST(a_gradient_that_is_not_finite_is_applied_by_nobody),
      FOLDER_TEST(a_state_that_changed_is_found_within_its_leaves),
      FOLDER_TEST(two_that_differ_name_each_other),
      FOLDER_TEST(a_group_that_stops_begins_no_window),
      FOLDER_TEST(a_member_that_is_late_twice_is_said_until_it_is_on_time))
