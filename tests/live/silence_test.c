// What the tools and the actors say while somebody is silent: no broker, no coordinator, a
// coordinator that was killed or stopped, a trainer that was killed, a trainer that others cannot reach.

#include "common/actor/last_heard.h"
#include "common/base/clock.h"
#include "tests/live/testbed.h"
#include "tests/test.h"
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum {
    SOON_MS = 3000,
    MARGIN_MS = 1000,
    LINE_MS = SOON_MS + MARGIN_MS,
    CLOSED_MS = 300 // Until the broker surely knows that a killed process is gone
};

// Runs `shoal status` and returns its exit code; the output is in `said`, the errors in `erred`.
static int read_status(struct testbed *bed, const char *flags)
{
    char line[1024];
    const uint64_t began_ms = clock_ms();
    snprintf(line, sizeof line,
             "cd %s && %s/shoal status --ticket ticket --run-id live %s >said 2>erred", bed->dir,
             bed->bin, flags);
    const int code = WEXITSTATUS(system(line));
    const uint64_t took_ms = clock_ms() - began_ms;
    print_message("status: code %d after %" PRIu64 " ms\n", code, took_ms);
    assert_true(took_ms < SOON_MS + MARGIN_MS);
    return code;
}

static bool has_said(struct testbed *bed, const char *file, const char *text)
{
    char path[320], all[16384];
    snprintf(path, sizeof path, "%s/%s", bed->dir, file);
    testbed_read_file(path, all, sizeof all);
    if (!strstr(all, text)) print_message("%s, where \"%s\" lacks:\n%s", file, text, all);
    return strstr(all, text) != NULL;
}

// The JSON of the status that was just read.
static json_t *said(struct testbed *bed)
{
    char path[320];
    json_error_t error;
    snprintf(path, sizeof path, "%s/said", bed->dir);
    json_t *object = json_load_file(path, 0, &error);
    assert_non_null(object);
    return object;
}

static json_t *member(json_t *status, struct testbed *bed, const char *name)
{
    char full[ACTOR_NAME_MAX + 1];
    size_t index;
    json_t *value;
    struct identity *identity = testbed_identity(name);
    actor_name(ACTOR_TRAINER, identity_key(identity), full);
    identity_destroy(&identity);
    json_array_foreach(json_object_get(status, "members"), index,
                       value) if (strcmp(json_string_value(json_object_get(value, "name")), full) ==
                                  0) return value;
    testbed_fail(bed, "no member %s", full);
}

static void start_monitor(struct testbed *bed, const char *name, const char *flag)
{
    testbed_start_with(bed, name,
                       &(struct testbed_launch){ .args = (const char *const[]){ flag, NULL } });
    testbed_actor(bed, name)->may_end = true;
}

static void a_broker_that_does_not_answer_is_said(void **state)
{
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){ .trainers = 1 });
    testbed_start(bed, "trainer0");
    start_monitor(bed, "monitor0", NULL);
    start_monitor(bed, "monitor1", "--count=1");
    testbed_await_log(bed, "monitor0", "waiting: no broker answers at 127.0.0.1:", LINE_MS);
    assert_int_equal(testbed_await_end(bed, "monitor1", LINE_MS), EX_UNAVAILABLE);
    assert_true(testbed_log_has(bed, "monitor1", "no broker answers at 127.0.0.1:", NULL, 0));
    testbed_await_log(bed, "trainer0",
                      "waiting: no broker answers at 127.0.0.1:", LINE_MS + MARGIN_MS);
    assert_int_equal(read_status(bed, ""), EX_UNAVAILABLE);
    assert_true(has_said(bed, "erred", "no broker answers at 127.0.0.1:"));

    // Now there is one, but no coordinator.
    testbed_start(bed, "broker");
    testbed_await_log(bed, "trainer0", "broker.welcome", TESTBED_WAIT_MS);
    start_monitor(bed, "monitor2", NULL);
    testbed_await_log(bed, "monitor2", "waiting: no coordinator of run \"live\" yet", LINE_MS);
    testbed_await_log(bed, "trainer0", "waiting: no coordinator of run \"live\" yet",
                      TESTBED_WAIT_MS);
    assert_int_equal(read_status(bed, ""), EX_UNAVAILABLE);
    assert_true(has_said(bed, "erred", "knows nothing of run \"live\""));

    // And now it has gone again.
    testbed_signal(bed, "broker", SIGKILL);
    testbed_await_log(bed, "monitor2", "waiting: no broker answers at 127.0.0.1:", TESTBED_WAIT_MS);
}

static void a_dead_coordinator_is_said(void **state)
{
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){
        .trainers = 2, .min_clients = 1, .total_steps = 10000, .epoch_rounds = 1000 });
    testbed_start_all(bed);
    testbed_await_step(bed, 2);
    start_monitor(bed, "monitor0", "--topic=EPOCH_END"); // It hears no BEAT
    assert_int_equal(read_status(bed, "--json"), 0);
    json_t *status = said(bed);
    assert_true(json_integer_value(json_object_get(status, "heard_ms_ago")) < LAST_HEARD_MAX_MS);
    assert_true(json_is_false(json_object_get(status, "stale")));
    assert_true(json_is_true(json_object_get(member(status, bed, "trainer1"), "connected")));
    json_decref(status);

    testbed_signal(bed, "trainer1", SIGKILL);
    testbed_pass_ms(bed, CLOSED_MS);
    assert_int_equal(read_status(bed, "--json"), 0);
    status = said(bed);
    assert_true(json_is_true(json_object_get(member(status, bed, "trainer0"), "connected")));
    assert_true(json_is_false(json_object_get(member(status, bed, "trainer1"), "connected")));
    json_decref(status);

    testbed_signal(bed, "coordinator", SIGKILL);
    testbed_pass_ms(bed, CLOSED_MS);
    assert_int_equal(read_status(bed, ""), EX_UNAVAILABLE);
    assert_true(has_said(bed, "said", "coordinator last heard "));
    assert_true(has_said(bed, "erred", "the coordinator of run \"live\" is not connected"));
    assert_false(testbed_log_has(bed, "trainer0", "was last heard", NULL, 0));
    testbed_await_log(bed, "trainer0", "waiting: the coordinator of run \"live\" was last heard ",
                      LINE_MS + MARGIN_MS);
    testbed_await_log(bed, "monitor0", "waiting: the coordinator of run \"live\" was last heard ",
                      LINE_MS);
    assert_int_equal(read_status(bed, "--json"), EX_UNAVAILABLE);
    status = said(bed);
    assert_true(json_integer_value(json_object_get(status, "heard_ms_ago")) >= SOON_MS);
    assert_true(json_is_true(json_object_get(status, "stale")));
    json_decref(status);

    // Forgotten by the broker: its last BEAT still tells when it was heard.
    testbed_pass_ms(bed, 10000);
    assert_int_equal(read_status(bed, "--json"), EX_UNAVAILABLE);
    status = said(bed);
    assert_true(json_integer_value(json_object_get(status, "heard_ms_ago")) >= 10000);
    json_decref(status);

    testbed_start(bed, "coordinator");
    testbed_await_log(bed, "coordinator", "broker.welcome", TESTBED_WAIT_MS);
    assert_int_equal(read_status(bed, ""), 0);
    testbed_signal(bed, "coordinator", SIGSTOP); // Connected, but silent
    testbed_pass_ms(bed, LAST_HEARD_MAX_MS + MARGIN_MS);
    assert_int_equal(read_status(bed, ""), EX_UNAVAILABLE);
    assert_true(has_said(bed, "erred", "is silent, last heard "));
    testbed_kill_all(bed);
}

// As behind a firewall: nobody listens at the address that it announces.
static void a_silent_holder_is_named(void **state)
{
    static const char *const others[] = { "broker",       "coordinator", "data-provider",
                                          "checkpointer", "trainer0",    "trainer1" };
    char full[ACTOR_NAME_MAX + 1], text[128];
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){ .trainers = 3 });
    struct identity *identity = testbed_identity("trainer2");
    actor_name_with(ACTOR_TRAINER, "anna", identity_key(identity), full);
    identity_destroy(&identity);
    snprintf(text, sizeof text, " silent: %s at 127.0.0.1:9\"; asking again", full);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) testbed_start(bed, others[i]);
    testbed_start_with(
        bed, "trainer2",
        &(struct testbed_launch){ .args = (const char *const[]){ "--announce", "127.0.0.1:9",
                                                                 "--unchecked-address", "--name",
                                                                 "anna", NULL } });
    testbed_await_log(bed, "trainer0", text, TESTBED_WAIT_MS);
    print_message("trainer0:%s\n", text);
    testbed_kill_all(bed);
}

TESTS(TESTBED_TEST(a_silent_holder_is_named), TESTBED_TEST(a_broker_that_does_not_answer_is_said),
      TESTBED_TEST(a_dead_coordinator_is_said))
