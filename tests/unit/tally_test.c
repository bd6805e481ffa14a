// When witnesses contradict each other, enough of them are asked for the claims that one is honest:
// none of them twice, and none where all say the same.

#include "common/pace/rounds/tally.h"
#include "tests/test.h"
#include <stdlib.h>
#include <string.h>

enum { CLIENTS = 3, ELECTED = 9 }; // Three of the elected may lie

static struct tally *tally;

static int set_up(void **state)
{
    (void)state;
    tally = calloc(1, sizeof *tally);
    if (!tally) return -1;
    tally_init(tally, CLIENTS, ELECTED);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(tally);
    return 0;
}

static void vote(uint32_t witness, uint32_t client, const char *result)
{
    struct wire_seen seen = { .client = client, .result = hash_of(result, strlen(result)) };
    const struct wire_vote vote = { .seen = &seen, .seen_count = 1 };
    assert_int_equal(tally_count(tally, witness, &vote), TALLY_COUNTED);
}

// The witnesses asked for the claims of this client, a bit each.
static uint64_t ask(uint32_t client)
{
    uint64_t asked = 0;
    for (uint32_t witness; tally_ask(tally, client, &witness);) {
        assert_false(asked >> witness & 1);
        asked |= (uint64_t)1 << witness;
    }
    return asked;
}

static void no_witness_is_asked_for_what_all_say(void **state)
{
    (void)state;
    for (uint32_t w = 0; w < 5; w++) vote(w, 1, "a");
    assert_int_equal(ask(1), 0);
}

static void of_each_result_one_more_than_may_lie_is_asked(void **state)
{
    (void)state;
    for (uint32_t w = 0; w < 6; w++) vote(w, 1, "a");
    vote(6, 1, "b");
    assert_int_equal(ask(1), 0x0f | 1 << 6);
    assert_int_equal(ask(1), 0);
    assert_int_equal(ask(0), 0);
    vote(7, 1, "b");
    vote(8, 1, "c");
    assert_int_equal(ask(1), 1 << 7 | 1 << 8);
}

static void a_witness_that_votes_later_is_asked_later(void **state)
{
    (void)state;
    vote(0, 2, "invented");
    vote(1, 2, "a");
    assert_int_equal(ask(2), 3);
    vote(2, 2, "a");
    assert_int_equal(ask(2), 4);
}

static void the_next_round_starts_empty(void **state)
{
    (void)state;
    vote(0, 1, "a"), vote(1, 1, "b");
    assert_int_equal(ask(1), 3);
    tally_init(tally, CLIENTS, ELECTED);
    vote(0, 1, "a"), vote(1, 1, "b");
    assert_int_equal(ask(1), 3);
}

TESTS(TEST_WITH(no_witness_is_asked_for_what_all_say, set_up, tear_down),
      TEST_WITH(of_each_result_one_more_than_may_lie_is_asked, set_up, tear_down),
      TEST_WITH(a_witness_that_votes_later_is_asked_later, set_up, tear_down),
      TEST_WITH(the_next_round_starts_empty, set_up, tear_down))
