// A newcomer fetches the model from its peers, or from the checkpointer when they are gone; when no
// actor serves it, the newcomer says so and ends.

#include "tests/live/testbed.h"
#include "tests/test.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum { ORPHAN_MS = 60000 };

// A third trainer comes to the second epoch of a run without a checkpointer.
static void from_its_peers(void **state)
{
    char rest[256];
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){ .trainers = 2,
                                                                          .epoch_rounds = 6,
                                                                          .total_steps = 24,
                                                                          .no_checkpointer = true,
                                                                          .cooldown_s = 1 });
    testbed_start_all(bed);
    testbed_await_epoch(bed, 1);
    testbed_start(bed, "trainer2");
    testbed_await_log(bed, "trainer2", "model.fetched", TESTBED_WAIT_MS);
    struct testbed_end end = testbed_finish(bed); // Its digest is that of the others, and committed
    assert_true(testbed_log_has(bed, "trainer2", "model.fetched ", rest, sizeof rest));
    const char *holders = strstr(rest, "holders=");
    assert_non_null(holders);
    assert_true(atoi(holders + 8) >= 1);
    assert_int_equal(end.ledger.members, 4);
    print_message("model.fetched %s\n", rest);
}

static void stop_trainers(struct testbed *bed)
{
    for (unsigned i = 0; i < 2; i++) testbed_signal(bed, testbed_trainer(i), SIGTERM);
}

static void from_the_checkpointer(void **state)
{
    char rest[256];
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){ .trainers = 2,
                                                                          .init_min_clients = 1,
                                                                          .epoch_rounds = 6,
                                                                          .total_steps = 24,
                                                                          .cooldown_s = 1 });
    testbed_start_all(bed);
    testbed_await_step(bed, 9);
    stop_trainers(bed);
    testbed_start(bed, "trainer2");
    testbed_await_log(bed, "trainer2", "model.fetched", TESTBED_WAIT_MS);
    testbed_finish(bed);
    assert_true(testbed_log_has(bed, "trainer2", "model.fetched ", rest, sizeof rest));
    assert_non_null(strstr(rest, "holders=1"));
    print_message("model.fetched %s\n", rest);
}

static void without_a_holder_it_says_so_and_ends(void **state)
{
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){ .trainers = 2,
                                                                          .init_min_clients = 1,
                                                                          .epoch_rounds = 6,
                                                                          .total_steps = 24,
                                                                          .cooldown_s = 1 });
    testbed_start_all(bed);
    testbed_await_step(bed, 9);
    testbed_signal(bed, "checkpointer", SIGTERM);
    stop_trainers(bed);
    testbed_start(bed, "trainer2");
    assert_int_equal(testbed_await_end(bed, "trainer2", ORPHAN_MS), EX_UNAVAILABLE);
    assert_true(testbed_log_has(bed, "trainer2", "the parameters of step", NULL, 0));
}

TESTS(TESTBED_TEST(from_its_peers), TESTBED_TEST(from_the_checkpointer),
      TESTBED_TEST(without_a_holder_it_says_so_and_ends))
