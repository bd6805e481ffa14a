// Members by index and by key: both orders and the counts, when an index is reused, when all are
// loaded.

#include "common/run/roster.h"
#include "tests/test.h"
#include <stdlib.h>
#include <string.h>

static struct roster *roster;

static int set_up(void **state)
{
    (void)state;
    roster = calloc(1, sizeof *roster);
    return roster ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    free(roster);
    return 0;
}

static struct wire_member trainer(uint32_t index, uint8_t key, uint8_t state)
{
    return (struct wire_member){
        .index = index, .key.bytes = { key }, .role = ACTOR_TRAINER, .state = state
    };
}

static void put(uint32_t index, uint8_t key, uint8_t state)
{
    const struct wire_member member = trainer(index, key, state);
    roster_put(roster, &member);
}

static void assert_at(uint8_t key, uint32_t index)
{
    const struct key whose = { { key } };
    assert_int_equal(roster_find(roster, &whose), index);
}

// Draws go by the order of identity, whatever the order of joining.
static void members_stand_in_order_of_identity(void **state)
{
    (void)state;
    put(0, 30, MEMBER_HEALTHY), put(1, 10, MEMBER_HEALTHY), put(2, 20, MEMBER_PENDING);
    const uint32_t order[] = { 1, 2, 0 };
    assert_memory_equal(roster->by_key, order, sizeof order);
    assert_at(10, 1), assert_at(20, 2), assert_at(30, 0), assert_at(15, NO_MEMBER);
    assert_int_equal(roster_count(roster, ACTOR_TRAINER, MEMBER_HEALTHY), 2);
    assert_int_equal(roster->version, 3);
}

static void a_place_that_is_handed_on_is_found_by_the_new_key_alone(void **state)
{
    (void)state;
    put(0, 30, MEMBER_DROPPED), put(1, 10, MEMBER_HEALTHY);
    put(0, 5, MEMBER_PENDING);
    assert_at(30, NO_MEMBER), assert_at(5, 0), assert_at(10, 1);
    assert_int_equal(roster->count, 2);
    assert_int_equal(roster_count(roster, ACTOR_TRAINER, MEMBER_DROPPED), 0);
    assert_int_equal(roster_count(roster, ACTOR_TRAINER, MEMBER_PENDING), 1);
}

static void all_trainers_of_a_state_move_at_once(void **state)
{
    (void)state;
    put(0, 30, MEMBER_PENDING), put(1, 10, MEMBER_HEALTHY), put(2, 20, MEMBER_DROPPED);
    roster_move_trainers(roster, MEMBER_PENDING, MEMBER_HEALTHY);
    roster_set_state(roster, 1, MEMBER_EJECTED);
    assert_int_equal(roster->members[0].state, MEMBER_HEALTHY);
    assert_int_equal(roster_count(roster, ACTOR_TRAINER, MEMBER_HEALTHY), 1);
    assert_int_equal(roster_count(roster, ACTOR_TRAINER, MEMBER_EJECTED), 1);
    assert_int_equal(roster_count(roster, ACTOR_TRAINER, MEMBER_DROPPED), 1);
}

// What was there before is gone, its counts as well; members at a wrong index change nothing.
static void a_roster_is_loaded_whole_or_not_at_all(void **state)
{
    (void)state;
    put(0, 40, MEMBER_HEALTHY);
    struct wire_member members[] = { trainer(0, 30, MEMBER_PENDING),
                                     trainer(2, 10, MEMBER_PENDING) };
    assert_false(roster_load(roster, 7, members, 2));
    assert_at(40, 0);
    assert_int_equal(roster->version, 1);
    members[1].index = 1;
    assert_true(roster_load(roster, 7, members, 2));
    assert_at(40, NO_MEMBER), assert_at(30, 0), assert_at(10, 1);
    assert_int_equal(roster->version, 7);
    assert_int_equal(roster_count(roster, ACTOR_TRAINER, MEMBER_HEALTHY), 0);
    assert_int_equal(roster_count(roster, ACTOR_TRAINER, MEMBER_PENDING), 2);
}

// Its lines change as those of any other; only one more member has no place.
static void a_full_roster_takes_changes(void **state)
{
    (void)state;
    struct wire_member *all = calloc(MEMBERS_MAX, sizeof *all);
    assert_non_null(all);
    for (uint32_t i = 0; i < MEMBERS_MAX; i++) {
        all[i] = trainer(i, 1, MEMBER_PENDING);
        memcpy(all[i].key.bytes + 1, &i, sizeof i);
    }
    assert_true(roster_load(roster, 7, all, MEMBERS_MAX));
    all[3].state = MEMBER_HEALTHY;
    assert_true(roster_change(roster, &(struct wire_members){ 7, 8, &all[3], 1 }));
    assert_int_equal(roster->members[3].state, MEMBER_HEALTHY);
    all[3].index = MEMBERS_MAX;
    assert_false(roster_change(roster, &(struct wire_members){ 7, 9, &all[3], 1 }));
    free(all);
}

TESTS(TEST_WITH(a_full_roster_takes_changes, set_up, tear_down),
      TEST_WITH(members_stand_in_order_of_identity, set_up, tear_down),
      TEST_WITH(a_place_that_is_handed_on_is_found_by_the_new_key_alone, set_up, tear_down),
      TEST_WITH(all_trainers_of_a_state_move_at_once, set_up, tear_down),
      TEST_WITH(a_roster_is_loaded_whole_or_not_at_all, set_up, tear_down))
