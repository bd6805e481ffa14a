// Trainers whose disks are full serve results from memory, and the run goes on.

#include "tests/live/testbed.h"
#include "tests/test.h"
#include <stdio.h>

enum { TRAINERS = 3, BEFORE = 2, AFTER = 6 };

static void results_are_served_from_memory(void **state)
{
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){
        .trainers = TRAINERS, .epoch_rounds = 1000, .total_steps = 1000, .no_checkpointer = true });
    char from[512], to[520];
    testbed_start_all(bed);
    testbed_await_step(bed, BEFORE);
    for (unsigned i = 0; i < TRAINERS; i++) {
        snprintf(from, sizeof from, "%s/%s/blobs", bed->dir, testbed_trainer(i));
        snprintf(to, sizeof to, "%s.away", from);
        assert_int_equal(rename(from, to), 0);
    }
    testbed_await_step(bed, bed->news.commits + AFTER);
    for (unsigned i = 0; i < TRAINERS; i++)
        testbed_await_log(bed, testbed_trainer(i), "learner.not_on_disk", TESTBED_WAIT_MS);
}

TESTS(TESTBED_TEST(results_are_served_from_memory))
