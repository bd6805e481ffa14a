// A coordinator that is killed comes back to the same run: at any instant, and at any write, sync
// or send of its life. Short form: 10 and 10 kills; LIVE_LONG=1: 50 and 50.

#include "tests/live/testbed.h"
#include "tests/test.h"
#include <glob.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { DELAY_MAX_MS = 250, CALLS_MAX = 120 };

static unsigned kills(void) { return testbed_is_long() ? 50 : 10; }

// Steps enough that the run does not end before the kills do, given what a life of that length
// makes.
static struct testbed *begin(void **state, unsigned steps_per_kill)
{
    struct testbed *bed = *state =
        testbed_new(&(struct testbed_options){ .trainers = 3,
                                               .epoch_rounds = 16,
                                               .total_steps = steps_per_kill * kills(),
                                               .lease_s = 4,
                                               .train_s = 6 });
    testbed_start_all(bed);
    testbed_await_step(bed, 1);
    return bed;
}

static void check_end(struct testbed *bed, unsigned killed)
{
    struct testbed_end end = testbed_finish(bed);
    print_message("killed %u times\n", killed);
    assert_true(killed >= kills());
    assert_true(end.ledger.starts > 1);
}

static bool is_finished(struct testbed *bed, const void *arg)
{
    (void)arg;
    return bed->news.run.phase == PHASE_FINISHED;
}

// Each life after the first writes the run's numbers: one line of names, then a row for a commit, in
// their order; those of a turn in which it was killed may be missing. The last life saw the end.
static void check_log(struct testbed *bed, unsigned lives)
{
    static char rows[256 << 10];
    char path[300];
    uint64_t step, before = 0;
    float loss, rate;
    unsigned count = 0;
    snprintf(path, sizeof path, "%s/metrics/run.csv", bed->dir);
    testbed_read_file(path, rows, sizeof rows);
    char *row = strchr(rows, '\n');
    assert_int_equal(strncmp(rows, "step,tokens,loss,", 17), 0);
    for (; row[1]; row = strchr(row + 1, '\n'), count++) {
        if (sscanf(row, "\n%" SCNu64 ",%*u,%f,%f", &step, &loss, &rate) !=
            3) // No loss is known yet
            assert_int_equal(sscanf(row, "\n%" SCNu64 ",%*u,,%f", &step, &rate), 2);
        assert_true(step > before && rate > 0);
        before = step;
    }
    assert_int_equal(before, bed->options.total_steps);
    glob_t files;
    snprintf(path, sizeof path, "%s/metrics/events.out.tfevents.*", bed->dir);
    assert_int_equal(glob(path, 0, NULL, &files), 0);
    print_message("%u rows in %zu files\n", count, files.gl_pathc);
    assert_true(count >= bed->options.total_steps / 4 && files.gl_pathc <= lives);
    globfree(&files);
}

static void killed_at_any_instant_it_finishes_the_run(void **state)
{
    static const char *const log[] = { "--log=metrics", NULL };
    struct testbed *bed = begin(state, 12);
    uint64_t seed = testbed_seed();
    unsigned killed = 0;
    for (; killed < kills(); killed++) {
        if (testbed_wait(bed, is_finished, NULL, testbed_draw(&seed) % DELAY_MAX_MS)) break;
        testbed_signal(bed, "coordinator", SIGKILL);
        testbed_start_with(bed, "coordinator", &(struct testbed_launch){ .args = log });
    }
    check_end(bed, killed);
    check_log(bed, killed);
}

static bool has_died(struct testbed *bed, const void *arg)
{
    return testbed_actor(bed, arg)->pid == 0;
}

static void start_with_failpoint(struct testbed *bed, const char *call, uint64_t number,
                                 const char *when)
{
    char preload[300], point[64];
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s/failpoint.so", bed->live);
    snprintf(point, sizeof point, "SHOAL_FAILPOINT=%s:%" PRIu64 ":%s", call, number, when);
    testbed_start_with(
        bed, "coordinator",
        &(struct testbed_launch){ .env = (const char *const[]){ preload, point, NULL } });
    testbed_actor(bed, "coordinator")->may_end = true;
}

static void killed_at_any_call_it_finishes_the_run(void **state)
{
    static const struct {
        const char *call;
        unsigned per_round;
    } calls[] = { { "pwrite", 3 }, { "sync", 2 }, { "send", 2 }, { "write", 2 } };
    static const char *const when[] = { "before", "after", "half" };
    struct testbed *bed = begin(state, 14);
    uint64_t seed = testbed_seed();
    unsigned killed = 0;
    for (unsigned life = 0; killed < kills(); life++) {
        unsigned kind = life % 4;
        uint64_t number = 1 + testbed_draw(&seed) % (CALLS_MAX / 4 * calls[kind].per_round / 2);
        testbed_signal(bed, "coordinator", SIGKILL);
        start_with_failpoint(bed, calls[kind].call, number, when[testbed_draw(&seed) % 3]);
        if (testbed_wait(bed, is_finished, NULL, 0)) break;
        testbed_await(bed, has_died, "coordinator", TESTBED_WAIT_MS,
                      "the coordinator at its failpoint");
        killed++;
    }
    testbed_signal(bed, "coordinator", SIGKILL);
    testbed_start(bed, "coordinator");
    check_end(bed, killed);
}

TESTS(TESTBED_TEST(killed_at_any_instant_it_finishes_the_run),
      TESTBED_TEST(killed_at_any_call_it_finishes_the_run))
