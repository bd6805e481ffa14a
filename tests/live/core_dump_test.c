// An actor that crashes leaves no core dump, whatever the machine's settings are: its memory has its key.
// SHOAL_DUMPABLE=1 allows one, for debugging. The test crashes a broker with it first: so this machine makes core dumps.

#include "tests/live/testbed.h"
#include "tests/test.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

// False: this machine makes none.
static bool crashes_with_a_dump(struct testbed *bed, const char *name)
{
    struct testbed_actor *actor = testbed_actor(bed, name);
    actor->may_end = true;
    testbed_signal(bed, name, SIGABRT);
    testbed_await_end(bed, name, TESTBED_WAIT_MS);
    assert_true(WIFSIGNALED(actor->status) && WTERMSIG(actor->status) == SIGABRT);
    return WCOREDUMP(actor->status);
}

static void no_actor_leaves_its_memory_behind(void **state)
{
    static const char *const dumpable[] = { "SHOAL_DUMPABLE=1", NULL };
    const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
    struct testbed *bed = *state = testbed_new(
        &(struct testbed_options){ .trainers = 1, .witnesses = 1, .total_steps = 4000 });
    unsigned crashed = 0;
    unsetenv("SHOAL_DUMPABLE");
    if (setrlimit(RLIMIT_CORE, &all) != 0) {
        print_message("core dumps are not allowed here (ulimit -Hc): nothing is shown\n");
        skip();
    }
    testbed_start_with(bed, "broker", &(struct testbed_launch){ .env = dumpable });
    testbed_await_log(bed, "broker", "broker.ready", TESTBED_WAIT_MS);
    if (!crashes_with_a_dump(bed, "broker")) {
        print_message("this machine makes no core dumps (core_pattern): nothing is shown\n");
        skip();
    }
    testbed_start_all(bed);
    testbed_await_step(bed, 2);
    for (unsigned i = bed->actors_count; i-- > 0;) { // The broker last
        if (!bed->actors[i].pid) continue;
        if (crashes_with_a_dump(bed, bed->actors[i].name))
            fail_msg("%s left a core dump", bed->actors[i].name);
        crashed++;
    }
    assert_int_equal(crashed, 6);
}

TESTS(TESTBED_TEST(no_actor_leaves_its_memory_behind))
