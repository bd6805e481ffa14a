// A run is set up by the live tests' testbed, measured between two commits of the coordinator's
// ledger, and then checked: a run that lost work or used another transport is no measurement and
// fails.
#include "common/base/clock.h"
#include "tests/bench/cost_run.h"
#include "common/base/ensure.h"
#include "tests/bench/plain_zap.h"
#include "tests/chaos/demo_bed.h"
#include <inttypes.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    FIRST = 8,
    START_MS_MAX = 180000,
    RUN_MS_MAX = 900000,
    LIMIT_S = 60,
    LARGE_BATCH = 4,
    LARGE_TOP_K = 512
};

bool plain_zap_is_on; // Whether the run in hand is without CURVE

static bool has_commits(struct testbed *bed, const void *count)
{
    return bed->news.commits >= *(const uint64_t *)count;
}

static struct cost_usage look(const struct testbed *bed, const struct testbed_actor *actor,
                              bool counts)
{
    struct cost_usage use = { 0 };
    struct timespec cpu;
    clockid_t clock;
    char path[320];
    ensure(clock_getcpuclockid(actor->pid, &clock) == 0 && clock_gettime(clock, &cpu) == 0);
    use.cpu_s = (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9;
    if (!counts) return use;
    snprintf(path, sizeof path, CRYPTO_COUNTS_FILE, bed->dir, (int)actor->pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ensure(fd >= 0 && read(fd, &use.crypto, sizeof use.crypto) == sizeof use.crypto);
    close(fd);
    return use;
}

static void subtract(struct cost_usage *self, const struct cost_usage *before)
{
    self->cpu_s -= before->cpu_s;
    for (int k = 0; k < COUNTED; k++) {
        self->crypto.of[k].calls -= before->crypto.of[k].calls;
        self->crypto.of[k].bytes -= before->crypto.of[k].bytes;
        self->crypto.of[k].ns -= before->crypto.of[k].ns;
    }
}

static struct testbed *make_bed(const struct cost_kind *kind, unsigned rounds,
                                struct demo_setup *setup)
{
    struct testbed *bed =
        testbed_new(&(struct testbed_options){ .run_id = "demo",
                                               .trainers = COST_TRAINERS,
                                               .min_clients = COST_TRAINERS,
                                               .total_steps = FIRST + 2 * rounds,
                                               .epoch_rounds = FIRST + 2 * rounds,
                                               .verification_percent = kind->percent,
                                               .no_checkpointer = true,
                                               .train_s = LIMIT_S,
                                               .witness_s = LIMIT_S,
                                               .lease_s = LIMIT_S,
                                               .warmup_s = LIMIT_S,
                                               .cooldown_s = LIMIT_S });
    demo_bed_set_up(bed, setup);
    if (kind->large) {
        demo_bed_edit(bed, "config", "global_batch_size_start", "%d", LARGE_BATCH);
        demo_bed_edit(bed, "config", "global_batch_size_end", "%d", LARGE_BATCH);
        demo_bed_edit(bed, "model.LLM.optimizer.Distro", "compression_topk", "%d", LARGE_TOP_K);
        demo_bed_edit(bed, "model.LLM.optimizer.Distro", "quantize_1bit", "false");
    }
    if (kind->plain) snprintf(bed->bin + strlen(bed->bin), 16, "/../bench/plain");
    return bed;
}

static void start(struct testbed *bed, bool counts)
{
    char preload[320];
    snprintf(preload, sizeof preload, "%s/crypto_counts.so", bed->live);
    if (counts) setenv("LD_PRELOAD", preload, 1), setenv("SHOAL_CRYPTO_COUNTS", bed->dir, 1);
    testbed_start_all(bed);
    unsetenv("LD_PRELOAD"), unsetenv("SHOAL_CRYPTO_COUNTS");
}

// That each round committed all that was dealt, and that the transport was what the table says.
static void check(struct testbed *bed, const struct cost_kind *kind, const struct cost_run *run,
                  bool counts)
{
    char dir[300], text[512];
    struct ledger_report report;
    for (unsigned i = 0; i < bed->actors_count; i++) {
        const struct crypto_count *of = run->of[i].use.crypto.of;
        if (testbed_log_has(bed, run->of[i].name, PLAIN_ZAP_NOTICE, NULL, 0) != kind->plain ||
            (counts && (of[COUNT_CURVE].calls == 0) != kind->plain))
            testbed_fail(bed, "%s: %s speaks with %s", kind->name, run->of[i].name,
                         kind->plain ? "CURVE" : "no CURVE");
    }
    testbed_kill_all(bed);
    snprintf(dir, sizeof dir, "%s/coordinator", bed->dir);
    if (!ledger_check(dir, "demo", &report, text, sizeof text))
        testbed_fail(bed, "%s: the ledger: %s", kind->name, text);
    if (report.voids || report.partial || report.ejections)
        testbed_fail(bed,
                     "%s: %" PRIu64 " voids, %" PRIu64 " partial commits, %" PRIu64
                     " ejections: the machine is "
                     "too busy to measure on",
                     kind->name, report.voids, report.partial, report.ejections);
}

void cost_run_measure(const struct cost_kind *kind, unsigned rounds, bool counts,
                      struct cost_run *ret_run)
{
    static struct demo_setup setup;
    struct cost_usage before[TESTBED_ACTORS_MAX];
    uint64_t first = FIRST, last;
    plain_zap_is_on = kind->plain;
    struct testbed *bed = make_bed(kind, rounds, &setup);
    start(bed, counts);
    testbed_await(bed, has_commits, &first, START_MS_MAX, "the first commits");
    const uint64_t began_ms = clock_ms();
    first = bed->news.commits;
    for (unsigned i = 0; i < bed->actors_count; i++) before[i] = look(bed, &bed->actors[i], counts);
    last = first + rounds;
    testbed_await(bed, has_commits, &last, RUN_MS_MAX, "the last commits");
    const double seconds = (double)(clock_ms() - began_ms) / 1000;
    last = bed->news.commits;
    *ret_run = (struct cost_run){ .rounds = (unsigned)(last - first), .actors = bed->actors_count };
    for (unsigned i = 0; i < bed->actors_count; i++) {
        snprintf(ret_run->of[i].name, sizeof ret_run->of[i].name, "%s", bed->actors[i].name);
        ret_run->of[i].use = look(bed, &bed->actors[i], counts);
        subtract(&ret_run->of[i].use, &before[i]);
    }
    const double batch = kind->large ? LARGE_BATCH : (double)setup.config.batch_end;
    ret_run->round_ms = seconds * 1000 / ret_run->rounds;
    ret_run->speed = batch * setup.shape.seq_len_max * 1000 / ret_run->round_ms;
    check(bed, kind, ret_run, counts);
    testbed_destroy(&bed);
}
