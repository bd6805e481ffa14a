// deaths_bench -- what it costs when a member of a window dies, stops or is cut off.
//
//     make bench-deaths                     every row
//     deaths_bench [--json] ROW ...         some of them: sums sealed cuts stopped coordinator all
//
//     sums, sealed   one of three dies by a signal at 1 to 99 % of a sum of 64 MiB: how long until the
//                    two others have the next good sum, in a window of their own
//     cuts           in a run of three trainers, every connection between two of them is reset, both
//                    alive: until all three have applied a step that they began afterwards. Nobody may be
//                    dropped or left out
//     stopped        SIGSTOP of a trainer: until the others step on, without it; SIGCONT: until all
//                    three step again
//     coordinator    SIGKILL in mid-window, started again as by systemd: each interval between two
//                    steps in the second after it, beside those of the second before it
//     all            SIGKILL of every process at once: from starting them again until the first step
//                    of all three, and how many steps were lost
//
// Steps are seen from outside (tests/live/seen_steps.h): the product says nothing of it. Each row ends
// with what is wanted at most, 0: nothing, and the machine's load, which moves every figure.

#include "common/base/clock.h"
#include "tests/bench/group_deaths.h"
#include "tests/live/cut_link.h"
#include "tests/live/seen_steps.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    ALL = 7,
    TIMES_MAX = 64,
    GAPS_MAX = 1 << 15,
    KILLS = 21,
    CUTS = 12,
    STOPS = 3,
    LOSSES = 3,
    PATIENCE_MS = 120000
};

static bool as_json;

// ---- rows -----------------------------------------------------------------------------------

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Sorts the values.
static double at_share(double *values, unsigned count, double share)
{
    qsort(values, count, sizeof *values, by_size);
    const unsigned index = (unsigned)(share * count);
    return values[index < count ? index : count - 1];
}

static double load(void)
{
    double loads[1] = { 0 };
    return getloadavg(loads, 1) == 1 ? loads[0] : 0;
}

// A row in milliseconds. `target_ms` is held against the maximum; 0: none is wanted.
static void print_row(const char *name, double *ms, unsigned count, double target_ms)
{
    const double most = at_share(ms, count, 1), p90 = at_share(ms, count, 0.9);
    const double median_ms = at_share(ms, count, 0.5), least = ms[0];
    if (as_json)
        printf("{\"row\":\"%s\",\"count\":%u,\"least_ms\":%.2f,\"median_ms\":%.2f,\"p90_ms\":%.2f,"
               "\"most_ms\":%.2f,\"target_ms\":%.0f,\"load\":%.1f}\n",
               name, count, least, median_ms, p90, most, target_ms, load());
    else
        printf("%-54s %3u  %8.1f %8.1f %8.1f %8.1f  %6.0f  %5.1f\n", name, count, least, median_ms,
               p90, most, target_ms, load());
    fflush(stdout);
}

static void print_head(void)
{
    if (!as_json)
        printf("%-54s %3s  %8s %8s %8s %8s  %6s  %5s\n", "ms", "n", "least", "median", "p90",
               "most", "wanted", "load");
}

// ---- sums -----------------------------------------------------------------------------------

static void measure_sums(enum way way)
{
    double known_ms[KILLS], formed_ms[KILLS], again_ms[KILLS];
    for (int i = 0; i < KILLS; i++) {
        const struct group_death death = group_death(way, 3, 64 << 20, 1 + 98 * i / (KILLS - 1));
        known_ms[i] = death.known_ms;
        formed_ms[i] = death.formed_ms;
        again_ms[i] = death.again_ms;
    }
    const bool plain = way == PLAIN;
    print_row(plain ? "a death in a sum of 64 MiB, plain: known" : "... sealed: known", known_ms,
              KILLS, 0);
    print_row("    from then on until the next window is formed", formed_ms, KILLS, 0);
    print_row("    from the death to the next good sum", again_ms, KILLS, plain ? 60 : 0);
}

static void measure_plain_sums(void) { measure_sums(PLAIN); }
static void measure_sealed_sums(void) { measure_sums(SEALED); }

// ---- a run ----------------------------------------------------------------------------------

static bool are_all_in(struct testbed *bed, const void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 3; i++)
        if (!testbed_in_group(bed, testbed_trainer(i))) return false;
    return true;
}

static void start_all(struct testbed *bed)
{
    const struct testbed_options whole = bed->options;
    bed->options.trainers = 0;
    testbed_start_all(bed);
    bed->options = whole;
    for (unsigned i = 0; i < 3; i++) seen_start(bed, i);
}

// Three windows without a break: so that the next break is nobody's second in a row.
static bool is_past(struct testbed *bed, const void *arg)
{
    return bed->news.window >= *(const uint64_t *)arg;
}

static void await_calm(struct testbed *bed)
{
    const uint64_t window = bed->news.window + 3;
    testbed_await(bed, is_past, &window, PATIENCE_MS, "three windows");
}

static struct testbed *begin(unsigned epoch_steps, unsigned batch)
{
    struct testbed *bed = testbed_new(&(struct testbed_options){ .strategy = TESTBED_ALLREDUCE,
                                                                 .epoch_rounds = epoch_steps,
                                                                 .total_steps = 4000000,
                                                                 .batch = batch,
                                                                 .min_clients = 2,
                                                                 .train_s = 1,
                                                                 .lease_s = 2,
                                                                 .map_mib_max = 256 });
    start_all(bed);
    seen_await(bed, ALL, clock_us(), PATIENCE_MS, "the first step");
    await_calm(bed); // The first windows are short
    return bed;
}

static void end(struct testbed *bed)
{
    testbed_stop(bed);
    testbed_destroy(&bed);
}

static void measure_cuts(void)
{
    double ms[CUTS];
    struct testbed *bed = begin(100000, 8);
    for (unsigned i = 0; i < CUTS; i++) {
        const unsigned one = i % 3, other = (i + 1) % 3;
        const struct cut_end a = { testbed_actor(bed, testbed_trainer(one))->pid,
                                   seen_links_port(bed, one) };
        const struct cut_end b = { testbed_actor(bed, testbed_trainer(other))->pid,
                                   seen_links_port(bed, other) };
        uint64_t at_us;
        if (cut_link(a, b, &at_us) <= 0) testbed_fail(bed, "no connection could be cut");
        ms[i] = (double)(seen_await(bed, ALL, at_us, PATIENCE_MS, "a step after the cut") - at_us) /
                1000;
        await_calm(bed);
    }
    if (testbed_log_has(bed, "coordinator", "member.dropped name=trainer", NULL, 0) ||
        testbed_log_has(bed, "coordinator", "member.left_out name=trainer", NULL, 0))
        testbed_fail(bed, "a member was dropped or left out though it lives");
    print_row("a link is cut, both ends alive: the next step of all", ms, CUTS, 100);
    end(bed);
}

static void measure_stops(void)
{
    double without_ms[STOPS], back_ms[STOPS];
    struct testbed *bed = begin(100000, 8);
    for (unsigned i = 0; i < STOPS; i++) {
        const uint64_t at_us = clock_us();
        testbed_signal(bed, "trainer2", SIGSTOP);
        without_ms[i] =
            (double)(seen_await(bed, 3, at_us, PATIENCE_MS, "a step without trainer2") - at_us) /
            1000;
        const uint64_t back_us = clock_us();
        testbed_signal(bed, "trainer2", SIGCONT);
        testbed_await(bed, are_all_in, NULL, PATIENCE_MS, "trainer2 in the group again");
        back_ms[i] =
            (double)(seen_await(bed, ALL, back_us, PATIENCE_MS, "a step of all") - back_us) / 1000;
        await_calm(bed);
    }
    print_row("SIGSTOP (step_timeout 1 s, lease 2 s): the others' next step", without_ms, STOPS, 0);
    print_row("    SIGCONT: the next step of all three", back_ms, STOPS, 0);
    end(bed);
}

// ---- the coordinator --------------------------------------------------------------------------

static bool begins_window(struct testbed *bed, const void *arg)
{
    return bed->news.window > *(const uint64_t *)arg;
}

static void measure_coordinator(void)
{
    static double before_us[GAPS_MAX], after_us[GAPS_MAX];
    unsigned before = 0, after = 0, late = 0;
    struct testbed *bed = begin(100000, 256);
    await_calm(bed);
    for (unsigned i = 0; i < CUTS; i++) {
        const uint64_t window = bed->news.window;
        testbed_await(bed, begins_window, &window, PATIENCE_MS, "the next window");
        const uint64_t at_us = clock_us();
        testbed_signal(bed, "coordinator", SIGKILL);
        testbed_start(bed, "coordinator");
        testbed_pass_ms(bed, 1000);
        for (unsigned t = 0; t < 3; t++) {
            before +=
                seen_gaps(bed, t, at_us - 1000000, at_us, before_us + before, GAPS_MAX - before);
            after += seen_gaps(bed, t, at_us, at_us + 1000000, after_us + after, GAPS_MAX - after);
        }
        await_calm(bed);
    }
    end(bed);
    const double p99_us = at_share(before_us, before, 0.99);
    for (unsigned i = 0; i < after; i++) late += after_us[i] > 1.2 * p99_us;
    for (unsigned i = 0; i < before; i++) before_us[i] /= 1000;
    for (unsigned i = 0; i < after; i++) after_us[i] /= 1000;
    print_row("steps in the second before the coordinator dies", before_us, before, 0);
    print_row("    in the second after it", after_us, after, 1.2 * p99_us / 1000);
    const double p99_after_ms = at_share(after_us, after, 0.99);
    if (as_json)
        printf("{\"row\":\"coordinator\",\"p99_before_ms\":%.2f,\"p99_after_ms\":%.2f,"
               "\"beyond_1_2_p99\":%u,\"count\":%u}\n",
               p99_us / 1000, p99_after_ms, late, after);
    else
        printf("    p99 %.1f ms before, %.1f after; %u of %u later than 1.2 x p99\n", p99_us / 1000,
               p99_after_ms, late, after);
}

// ---- all ------------------------------------------------------------------------------------

static bool is_past_checkpoint(struct testbed *bed, const void *arg)
{
    const uint64_t checkpoint = bed->news.run.checkpoint_step;
    return bed->news.has_run && checkpoint > 0 &&
           bed->news.run.step >= checkpoint + *(const uint64_t *)arg;
}

static void measure_losses(void)
{
    double ms[LOSSES];
    char lost[120];
    const uint64_t after = 40;
    struct testbed *bed = begin(300, 8);
    for (unsigned i = 0; i < LOSSES; i++) {
        testbed_await(bed, is_past_checkpoint, &after, PATIENCE_MS, "steps after a checkpoint");
        testbed_kill_all(bed);
        const uint64_t committed = bed->news.run.step, checkpoint = bed->news.run.checkpoint_step;
        bed->news.has_run = false;
        const uint64_t at_us = clock_us();
        start_all(bed);
        ms[i] = (double)(seen_await(bed, ALL, at_us, PATIENCE_MS, "a step of all") - at_us) / 1000;
        if (!testbed_log_has(bed, "coordinator", "run.lost_steps ", lost, sizeof lost))
            testbed_fail(bed, "nothing says what was lost");
        if (!as_json)
            printf("    all killed at step %" PRIu64 ", checkpoint of step %" PRIu64
                   ": run.lost_steps %s\n",
                   committed, checkpoint, lost);
    }
    print_row("all killed, started again: the first step", ms, LOSSES, 0);
    testbed_destroy(&bed); // Its ledger goes back to a checkpoint, which testbed_stop cannot follow
}

// ---------------------------------------------------------------------------------------------

static const struct row {
    const char *name;
    void (*measure)(void);
} rows[] = {
    { "sums", measure_plain_sums },
    { "sealed", measure_sealed_sums },
    { "cuts", measure_cuts },
    { "stopped", measure_stops },
    { "coordinator", measure_coordinator },
    { "all", measure_losses },
};
enum { ROWS = sizeof rows / sizeof *rows };

static bool is_asked(int argc, char **argv, const char *name)
{
    bool any = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) continue;
        any = true;
        if (strcmp(argv[i], name) == 0) return true;
    }
    return !any;
}

static bool is_known(const char *name)
{
    if (strcmp(name, "--json") == 0) return true;
    for (int r = 0; r < ROWS; r++)
        if (strcmp(name, rows[r].name) == 0) return true;
    return false;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        as_json |= strcmp(argv[i], "--json") == 0;
        if (is_known(argv[i])) continue;
        fprintf(stderr,
                "usage: deaths_bench [--json] [sums|sealed|cuts|stopped|coordinator|all ...]\n");
        return 64;
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ensure(shared != MAP_FAILED);
    print_head();
    for (int r = 0; r < ROWS; r++)
        if (is_asked(argc, argv, rows[r].name)) rows[r].measure();
    return 0;
}
