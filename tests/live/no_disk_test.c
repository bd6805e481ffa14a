// Trainers whose disks are full serve results from memory, and the run goes on.

#include "tests/live/testbed.h"
#include "tests/test.h"
#include <stdio.h>
#include <stdlib.h>

enum { TRAINERS = 3, STEPS = 8 };

static void results_are_served_from_memory(void **state)
{
    char preload[320];
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){
        .trainers = TRAINERS, .epoch_rounds = 1000, .total_steps = 1000, .no_checkpointer = true });
    snprintf(preload, sizeof preload, "%s/failpoint.so", bed->live);
    setenv("LD_PRELOAD", preload, 1); // For all processes started from here on
    setenv("SHOAL_FAILPOINT", "spool_write:6+:enospc", 1);
    testbed_start_all(bed);
    unsetenv("LD_PRELOAD");
    unsetenv("SHOAL_FAILPOINT");
    for (unsigned i = 0; i < TRAINERS; i++)
        testbed_await_log(bed, testbed_trainer(i), "learner.not_on_disk", TESTBED_WAIT_MS);
    testbed_await_step(bed, bed->news.commits + STEPS);
}

TESTS(TESTBED_TEST(results_are_served_from_memory))
