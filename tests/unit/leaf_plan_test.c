// leaf_plan_test -- holders of some leaves each, on a clock of turns: how many questions are in vain, and how soon it
// is known that nobody has a leaf.

#include "common/bulk/leaf_plan.h"
#include "common/vector/share_list.h"
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

enum { HOLDERS_MAX = SHARE_PLACES_MAX, OPEN_MAX = 32, LATENCY = 3 };

// A question on its way. Each holder answers as many a turn as it is fast.
struct question {
    uint32_t leaf, due;
};

struct holder {
    struct question open[OPEN_MAX];
    uint32_t open_count, fast, asked, lacked, served;
    bool is_dead, *has, *was_asked;
};

struct scene {
    struct leaf_plan *plan;
    struct state_cut cut;
    uint32_t leaves, count, coming, turn;
    struct holder holders[HOLDERS_MAX];
};

static struct scene scene;

// Place p has the shares of p and of as many places before it as there are buddies.
static void begin(const struct state_cut *cut, uint32_t places, uint32_t buddies)
{
    scene =
        (struct scene){ .cut = *cut, .leaves = (uint32_t)state_cut_leaves(cut), .count = places };
    scene.plan = leaf_plan_new(scene.leaves);
    for (uint32_t leaf = 0; leaf < scene.leaves; leaf++) leaf_plan_want(scene.plan, leaf);
    leaf_plan_open(scene.plan);
    for (uint32_t i = 0; i < places; i++) {
        struct holder *holder = &scene.holders[i];
        holder->fast = 8;
        holder->has = calloc(scene.leaves, sizeof *holder->has);
        holder->was_asked = calloc(scene.leaves, sizeof *holder->was_asked);
        for (uint32_t back = 0; back <= buddies; back++) {
            const struct share_list list =
                share_list_of(cut, (i + places - back) % places, places, SHARE_ALIKE);
            for (uint32_t n = 0; n < list.count; n++)
                for (uint64_t leaf = list.runs[n].begin; leaf < list.runs[n].end; leaf++)
                    holder->has[leaf] = true;
        }
        leaf_plan_join(scene.plan, i);
    }
}

static void end(void)
{
    for (uint32_t i = 0; i < scene.count; i++) {
        free(scene.holders[i].has);
        free(scene.holders[i].was_asked);
    }
    leaf_plan_destroy(&scene.plan);
}

// As peers.c: a dead one never answers, and after a time is found to be silent.
static void die(uint32_t i)
{
    struct holder *holder = &scene.holders[i];
    holder->is_dead = true;
    leaf_plan_leave(scene.plan, i);
    for (uint32_t n = 0; n < holder->open_count; n++, scene.coming--)
        leaf_plan_put_back(scene.plan, holder->open[n].leaf);
    holder->open_count = 0;
}

static void hear(uint32_t i)
{
    struct holder *holder = &scene.holders[i];
    for (uint32_t n = 0; n < holder->fast && holder->open_count > 0; n++) {
        const struct question question = holder->open[0];
        if (question.due > scene.turn) break;
        memmove(holder->open, holder->open + 1, --holder->open_count * sizeof *holder->open);
        scene.coming--;
        if (holder->has[question.leaf]) {
            leaf_plan_had(scene.plan, i, question.leaf);
            holder->served++;
        } else {
            leaf_plan_lacked(scene.plan, i, question.leaf);
            leaf_plan_put_back(scene.plan, question.leaf);
            holder->lacked++;
        }
    }
}

static bool ask(uint32_t i, bool is_quiet)
{
    struct holder *holder = &scene.holders[i];
    uint32_t leaf;
    if (holder->is_dead || holder->open_count == OPEN_MAX ||
        !leaf_plan_next(scene.plan, i, is_quiet, &leaf))
        return false;
    assert_true(leaf_plan_misses(scene.plan, leaf) && !holder->was_asked[leaf]);
    leaf_plan_asked(scene.plan, i, leaf);
    holder->was_asked[leaf] = true; // Never twice
    holder->asked++;
    holder->open[holder->open_count++] = (struct question){ leaf, scene.turn + LATENCY };
    scene.coming++;
    return true;
}

// One turn. False: all is here, or something is lost.
static bool turn(uint32_t *ret_lost)
{
    scene.turn++;
    for (uint32_t i = 0; i < scene.count; i++) hear(i);
    if (leaf_plan_find_lost(scene.plan, ret_lost) || scene.plan->missing_count == 0) return false;
    const bool is_quiet = scene.coming == 0;
    for (bool asked = true; asked;) {
        asked = false;
        for (uint32_t i = 0; i < scene.count; i++) asked |= ask(i, is_quiet);
    }
    assert_true(scene.coming > 0); // It never stands still
    return true;
}

static uint32_t run(void)
{
    uint32_t lost = UINT32_MAX, in_vain = 0, most = 0;
    while (turn(&lost)) {
    }
    for (uint32_t i = 0; i < scene.count; i++) {
        in_vain += scene.holders[i].lacked;
        if (scene.holders[i].lacked > most) most = scene.holders[i].lacked;
    }
    print_message("%u holders, %u leaves: %u turns, %u questions in vain, %u of one holder\n",
                  scene.count, scene.leaves, scene.turn, in_vain, most);
    assert_true(scene.plan->missing_count == 0 || lost != UINT32_MAX);
    return lost;
}

static struct state_cut cut_of(uint64_t leaves)
{
    const uint64_t bytes = leaves * STATE_LEAF_BYTES;
    return (struct state_cut){ 4, { bytes, bytes, bytes, 8 } };
}

static uint32_t in_vain_of_one(void)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < scene.count; i++)
        if (scene.holders[i].lacked > most) most = scene.holders[i].lacked;
    return most;
}

// A server gives 1000 words for nothing (BULK_WORDS), then one each 10 ms.
static void few_questions_are_in_vain(void **state)
{
    (void)state;
    static const struct {
        uint64_t leaves;
        uint32_t places, buddies;
    } scenes[] = { { 16667, 4, 1 },  { 16667, 4, 0 }, { 16667, 2, 1 }, { 16667, 8, 2 },
                   { 16667, 64, 1 }, { 34, 4, 1 },    { 10, 64, 1 },   { 100000, 16, 1 } };
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        const struct state_cut cut = cut_of(scenes[i].leaves);
        begin(&cut, scenes[i].places, scenes[i].buddies);
        assert_int_equal(run(), UINT32_MAX);
        assert_true(in_vain_of_one() < 1000);
        for (uint32_t n = 0; n < scene.count && scenes[i].leaves > 10000; n++)
            assert_true(scene.holders[n].served > 0);
        end();
    }
}

// Nobody is idle that has something: four buddies are nearly four times as fast as one holder.
static void all_that_have_something_are_asked(void **state)
{
    (void)state;
    const struct state_cut cut = cut_of(4000);
    begin(&cut, 1, 0);
    run();
    const uint32_t alone = scene.turn;
    end();
    begin(&cut, 4, 1);
    run();
    assert_true(scene.turn < alone * 2 / 5);
    end();
}

static void holders_of_all_share_what_is_missing(void **state)
{
    (void)state;
    const struct state_cut cut = cut_of(1000);
    begin(&cut, 3, 2);
    scene.holders[0].fast = 2;
    assert_int_equal(run(), UINT32_MAX);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(scene.holders[i].lacked, 0);
    assert_true(scene.holders[1].served > 2 * scene.holders[0].served);
    end();
}

static void one_dies_and_its_buddies_have_all(void **state)
{
    (void)state;
    const struct state_cut cut = cut_of(16667);
    uint32_t lost;
    for (uint32_t at = 0; at < 600; at += 97) {
        begin(&cut, 4, 1);
        while (scene.turn < at) assert_true(turn(&lost));
        die(1);
        assert_int_equal(run(), UINT32_MAX);
        assert_true(in_vain_of_one() < 1000);
        end();
    }
}

// Owner and buddy are gone: their share is lost. It is known with few questions more.
static void what_nobody_has_is_found(void **state)
{
    (void)state;
    const struct state_cut cut = cut_of(16667);
    const struct share_list list = share_list_of(&cut, 1, 4, SHARE_ALIKE);
    uint32_t lost;
    begin(&cut, 4, 1);
    while (scene.turn < 50) assert_true(turn(&lost));
    die(1), die(2);
    lost = run();
    assert_true(lost != UINT32_MAX);
    bool is_of_share = false;
    for (uint32_t i = 0; i < list.count; i++)
        is_of_share |= lost >= list.runs[i].begin && lost < list.runs[i].end;
    assert_true(is_of_share && in_vain_of_one() < 1000);
    end();

    begin(&cut, 1, 0); // One single leaf
    scene.holders[0].has[777] = false;
    assert_int_equal(run(), 777);
    end();
}

// One that comes while another one is found to have nothing more.
static void a_holder_comes_later(void **state)
{
    (void)state;
    const struct state_cut cut = cut_of(100);
    uint32_t lost, leaf;
    begin(&cut, 2, 0);
    leaf_plan_leave(scene.plan, 1);
    scene.holders[1].is_dead = true;
    while (leaf_plan_is_of_use(scene.plan, 0) && scene.turn < 20) turn(&lost);
    scene.holders[1].is_dead = false;
    leaf_plan_join(scene.plan, 1);
    assert_false(leaf_plan_find_lost(scene.plan, &lost)); // The new one may have it
    assert_int_equal(run(), UINT32_MAX);
    assert_false(leaf_plan_next(scene.plan, 0, true, &leaf));
    end();
}

// What is late at one holder is asked of another one only if that one may have it.
static void late_leaves(void **state)
{
    (void)state;
    struct leaf_plan *plan = leaf_plan_new(100);
    uint32_t leaf;
    for (uint32_t i = 0; i < 100; i++) leaf_plan_want(plan, i);
    leaf_plan_open(plan);
    leaf_plan_join(plan, 0), leaf_plan_join(plan, 1);
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(leaf_plan_next(plan, 0, false, &leaf) && leaf == i);
        leaf_plan_asked(plan, 0, leaf);
    }
    assert_true(leaf_plan_may_have(plan, 1, 0) && leaf_plan_may_have(plan, 1, 1));
    leaf_plan_lacked(plan, 1, 0);
    assert_false(leaf_plan_may_have(plan, 1, 0));
    assert_true(leaf_plan_next(plan, 1, false, &leaf) && leaf == 2); // The first place is 0
    leaf_plan_asked(plan, 1, leaf);
    assert_false(leaf_plan_may_have(plan, 1, 1)); // One elsewhere at a time
    assert_false(leaf_plan_next(plan, 1, false, &leaf));
    leaf_plan_had(plan, 1, 2);
    assert_true(leaf_plan_may_have(plan, 1, 1)); // It is beside one that it had
    leaf_plan_put_back(plan, 2);                 // That is here
    assert_true(leaf_plan_next(plan, 1, false, &leaf) && leaf == 3);
    assert_false(leaf_plan_misses(plan, 2));
    leaf_plan_leave(plan, 1);
    assert_false(leaf_plan_may_have(plan, 1, 1) || leaf_plan_next(plan, 1, true, &leaf));
    leaf_plan_destroy(&plan);
    leaf_plan_destroy(&plan);
}

TESTS(TEST(few_questions_are_in_vain), TEST(all_that_have_something_are_asked),
      TEST(holders_of_all_share_what_is_missing), TEST(one_dies_and_its_buddies_have_all),
      TEST(what_nobody_has_is_found), TEST(a_holder_comes_later), TEST(late_leaves))
