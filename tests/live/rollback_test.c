// A coordinator whose disk is an older copy is found out by its members, ends with a clear word that
// names both positions, and is followed by nobody meanwhile; with the newer copy put back the run goes
// on as if nothing had been. A member that was away remembers as well.

#include "tests/live/testbed.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <cmocka.h>

static void shell(struct testbed *bed, const char *command)
{
    char line[1024];
    snprintf(line, sizeof line, "cd %s && %s", bed->dir, command);
    assert_int_equal(system(line), 0);
}

// Starts the coordinator on the older copy and waits for its end.
static void is_found_out(struct testbed *bed)
{
    testbed_start(bed, "coordinator");
    testbed_actor(bed, "coordinator")->may_end = true;
    assert_int_equal(testbed_await_end(bed, "coordinator", TESTBED_WAIT_MS), EX_DATAERR);
    assert_true(testbed_log_has(bed, "coordinator", "fell behind: record", NULL, 0));
    assert_true(testbed_log_has(bed, "coordinator", "Put the newer copy back", NULL, 0));
}

static void an_older_copy_of_the_ledger_is_found_out(void **state)
{
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){
        .trainers = 3, .epoch_rounds = 8, .total_steps = 24, .lease_s = 30 });
    testbed_start_all(bed);
    testbed_await_step(bed, 4);
    testbed_signal(bed, "coordinator", SIGKILL);
    shell(bed, "cp -r coordinator older");
    testbed_start(bed, "coordinator");
    testbed_await_step(bed, 9);
    testbed_signal(bed, "coordinator", SIGKILL);
    shell(bed, "mv coordinator newer && cp -r older coordinator");
    is_found_out(bed);
    // Members that have all been restarted know it from their journals.
    for (unsigned i = 0; i < 3; i++) testbed_signal(bed, testbed_trainer(i), SIGKILL);
    testbed_signal(bed, "checkpointer", SIGKILL);
    testbed_signal(bed, "data-provider", SIGKILL);
    shell(bed, "rm -r coordinator && cp -r older coordinator");
    testbed_start(bed, testbed_trainer(1));
    is_found_out(bed);
    shell(bed, "rm -r coordinator && mv newer coordinator");
    testbed_start(bed, "coordinator");
    testbed_start(bed, "data-provider");
    testbed_start(bed, "checkpointer");
    testbed_start(bed, testbed_trainer(0));
    testbed_start(bed, testbed_trainer(2));
    assert_true(testbed_finish(bed).ledger.starts == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(an_older_copy_of_the_ledger_is_found_out, testbed_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
