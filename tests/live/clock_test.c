// The wall clock of every actor is set back by an hour and each is restarted: none is taken for
// an older process of its identity, and the run ends as it would have.

#include "tests/live/testbed.h"
#include "tests/test.h"
#include <signal.h>
#include <stdio.h>

static void a_clock_set_back_turns_no_actor_away(void **state)
{
    static const char *const names[] = { "coordinator", "data-provider", "checkpointer",
                                         "trainer1",    "witness0",      "broker" };
    static const int64_t back_s = -3600;
    char preload[320], clock[320];
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){ .trainers = 3,
                                                                          .witnesses = 3,
                                                                          .epoch_rounds = 10,
                                                                          .total_steps = 80,
                                                                          .train_s = 1,
                                                                          .lease_s = 2 });
    testbed_write_file(bed, "clock", &back_s, sizeof back_s);
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s/clock.so", bed->live);
    snprintf(clock, sizeof clock, "SHOAL_CLOCK=%s/clock", bed->dir);
    testbed_start_all(bed);
    testbed_await_step(bed, 2);
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        testbed_signal(bed, names[i], SIGKILL);
        testbed_start_with(
            bed, names[i],
            &(struct testbed_launch){ .env = (const char *const[]){ preload, clock, NULL } });
        testbed_await_log(bed, names[i],
                          i == 0   ? "coordinator.ready"
                          : i == 5 ? "actor.hello name=coordinator"
                                   : "member.admitted",
                          TESTBED_WAIT_MS);
        testbed_await_step(bed, bed->news.commits + 2);
    }
    testbed_finish(bed);
}

TESTS(TESTBED_TEST(a_clock_set_back_turns_no_actor_away))
