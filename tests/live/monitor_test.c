// zmq-monitor, attached in mid-run: the state within a second, then every broadcast; as JSON each
// line parses; a stopped monitor slows no actor.

#include "common/base/clock.h"
#include "tests/live/testbed.h"
#include "tests/test.h"
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 60, LOG_BYTES = 4 << 20 };

static struct testbed *begin(void **state)
{
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){
        .trainers = 3, .epoch_rounds = 100, .total_steps = 2 * STEPS + 40 });
    testbed_start_all(bed);
    testbed_await_step(bed, 5);
    return bed;
}

static void start_monitor(struct testbed *bed, const char *name, const char *flag)
{
    testbed_start_with(bed, name,
                       &(struct testbed_launch){ .args = (const char *const[]){ flag, NULL } });
}

static void it_shows_the_state_within_a_second(void **state)
{
    struct testbed *bed = begin(state);
    uint64_t began_ms = clock_ms();
    start_monitor(bed, "monitor0", "--gaps");
    testbed_await_log(bed, "monitor0", "RUN", 1000);
    testbed_await_log(bed, "monitor0", "RoundTrain", 1000);
    testbed_await_log(bed, "monitor0", "ROSTER", 1000);
    uint64_t took_ms = clock_ms() - began_ms;
    print_message("state after %" PRIu64 " ms\n", took_ms);
    assert_true(took_ms <= 1000);
    testbed_await_log(bed, "monitor0", "COMMIT", TESTBED_WAIT_MS);
    testbed_signal(bed, "monitor0", SIGTERM);
    testbed_finish(bed);
}

// Splits the log into lines, parses each, and counts those of a kind.
static unsigned parse_lines(struct testbed *bed, const char *name, const char *kind,
                            unsigned *ret_lines)
{
    char *log = malloc(LOG_BYTES), *rest = NULL;
    unsigned found = 0;
    *ret_lines = 0;
    assert_non_null(log);
    testbed_read_file(testbed_actor(bed, name)->log, log, LOG_BYTES);
    for (char *line = strtok_r(log, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        json_error_t error;
        if (line[0] != '{') continue; // What is said to stderr lies in the same file
        json_t *object =
            json_loads(line, JSON_DECODE_INT_AS_REAL, &error); // A seed may need 64 bits
        if (!object) testbed_fail(bed, "line %u: %s: %.200s", *ret_lines, error.text, line);
        const char *said = json_string_value(json_object_get(object, "kind"));
        assert_non_null(said);
        assert_non_null(json_object_get(object, "body"));
        found += strcmp(said, kind) == 0;
        ++*ret_lines;
        json_decref(object);
    }
    free(log);
    return found;
}

static void as_json_every_line_parses(void **state)
{
    struct testbed *bed = begin(state);
    unsigned lines;
    start_monitor(bed, "monitor1", "--json");
    testbed_await_log(bed, "monitor1", "\"kind\":\"RUN\"", 1000);
    testbed_await_step(bed, bed->news.commits + STEPS);
    testbed_signal(bed, "monitor1", SIGTERM);
    unsigned commits = parse_lines(bed, "monitor1", "COMMIT", &lines);
    print_message("%u lines, %u commits\n", lines, commits);
    assert_true(commits >= STEPS / 2);
    testbed_finish(bed);
}

// An actor that waited for it would commit nothing until it is killed, which is after the steps.
static void nobody_waits_for_a_stopped_monitor(void **state)
{
    struct testbed *bed = begin(state);
    start_monitor(bed, "monitor2", "--json");
    testbed_await_log(bed, "monitor2", "\"kind\":\"RUN\"", 1000);
    testbed_signal(bed, "monitor2", SIGSTOP);
    testbed_await_step(bed, bed->news.commits + STEPS);
    testbed_signal(bed, "monitor2", SIGKILL);
    struct testbed_end end = testbed_finish(bed);
    assert_int_equal(end.ledger.voids, 0);
}

TESTS(TESTBED_TEST(it_shows_the_state_within_a_second), TESTBED_TEST(as_json_every_line_parses),
      TESTBED_TEST(nobody_waits_for_a_stopped_monitor))
