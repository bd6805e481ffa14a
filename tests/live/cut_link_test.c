// A link between two trainers of allreduce is cut with both alive: steps go on at once, and nobody is
// dropped or left out. A trainer is stopped: it is left out by name, and is in the group again after
// SIGCONT.

#include "common/base/clock.h"
#include "tests/live/cut_link.h"
#include "tests/live/seen_steps.h"
#include "tests/test.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { ALL = 7, CUT_MS = 5000, LEFT_OUT_MS = 10000, BACK_MS = 30000 };

static bool are_all_in(struct testbed *bed, const void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 3; i++)
        if (!testbed_in_group(bed, testbed_trainer(i))) return false;
    return true;
}

// The step without it is seen in memory, and the news of it come by the broker.
static bool is_left_out(struct testbed *bed, const void *arg)
{
    (void)arg;
    return !testbed_in_group(bed, "trainer2");
}

static void a_cut_link_and_a_stopped_member(void **state)
{
    char rest[200];
    struct testbed *bed = *state =
        testbed_new(&(struct testbed_options){ .strategy = TESTBED_ALLREDUCE,
                                               .epoch_rounds = 400,
                                               .total_steps = 4000000,
                                               .min_clients = 2,
                                               .train_s = 2,
                                               .lease_s = 3 });
    const struct testbed_options whole = bed->options;
    bed->options.trainers = 0;
    testbed_start_all(bed);
    bed->options = whole;
    for (unsigned i = 0; i < 3; i++) seen_start(bed, i);
    uint64_t at_us = clock_us();
    seen_await(bed, ALL, at_us, TESTBED_WAIT_MS, "the first step");

    testbed_await_step(bed, 30); // The first windows are short
    const struct cut_end a = { testbed_actor(bed, "trainer0")->pid, seen_links_port(bed, 0) };
    const struct cut_end b = { testbed_actor(bed, "trainer1")->pid, seen_links_port(bed, 1) };
    const int cut = cut_link(a, b, &at_us);
    if (cut < 0) skip();
    assert_in_range(cut, 1, 2); // The control connection and one channel
    const uint64_t next_us = seen_await(bed, ALL, at_us, CUT_MS, "a step after the cut");
    print_message("# the next step %.1f ms after the cut\n", (double)(next_us - at_us) / 1000);
    assert_false(testbed_log_has(bed, "coordinator", "member.dropped name=trainer", NULL, 0));
    assert_false(testbed_log_has(bed, "coordinator", "member.left_out", NULL, 0));

    at_us = clock_us();
    testbed_signal(bed, "trainer2", SIGSTOP);
    // A step that trainer2 had done its part of may still end behind the signal
    testbed_await_log(bed, "coordinator", "member.dropped name=", LEFT_OUT_MS);
    const uint64_t without_us =
        seen_await(bed, 3, clock_us(), LEFT_OUT_MS, "a step without trainer2");
    print_message("# the next step %.1f ms after SIGSTOP\n", (double)(without_us - at_us) / 1000);
    assert_true(testbed_log_has(bed, "coordinator", "member.dropped name=", rest, sizeof rest));
    print_message("# %s\n", rest);
    testbed_await(bed, is_left_out, NULL, LEFT_OUT_MS, "a group without trainer2");

    at_us = clock_us();
    testbed_signal(bed, "trainer2", SIGCONT);
    testbed_await(bed, are_all_in, NULL, BACK_MS, "trainer2 in the group again");
    const uint64_t back_us = seen_await(bed, ALL, at_us, BACK_MS, "a step of all");
    print_message("# a step of all %.1f ms after SIGCONT\n", (double)(back_us - at_us) / 1000);
    testbed_stop(bed);
}

TESTS(TESTBED_TEST(a_cut_link_and_a_stopped_member))
