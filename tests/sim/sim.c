// sim -- the command line.
//
//     sim [-v] SEED          one seed: its figures, or the invariant it broke; -v: every word said
//     sim --seeds A B        seeds A to B on two processes: what broke, and a summary
//     sim --canary           three of four lie: exit 0 if that is noticed, as it must be

#include "common/base/ensure.h"
#include "tests/sim/sim.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 2, SHOWN_MAX = 20 };

static struct sim *running;

// A core that dies breaks an invariant like any other: by its own ensure(), which has said on
// standard error what it found impossible, or by the processor's. Such a handler may be left for
// good.
static void hear_death(int signal)
{
    if (running)
        broken(running, "no core dies", "%s",
               signal == SIGABRT ? "ensure() said why" : strsignal(signal));
}

static void catch_deaths(void)
{
    static const int signals[] = { SIGABRT, SIGFPE, SIGSEGV, SIGBUS };
    struct sigaction action = { .sa_handler = hear_death, .sa_flags = SA_NODEFER };
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        ensure(sigaction(signals[i], &action, NULL) == 0);
    running = sim_new();
}

static void print_seed(const struct sim *self, int rc)
{
    printf("seed %-6" PRIu64 " %s%6" PRIu64 " s  steps %-7" PRIu64 " rounds %-4" PRIu64
           " commits %-4" PRIu64 " voids %-3" PRIu64,
           self->seed, rc ? "BROKEN " : "", (uint64_t)self->now_ms / 1000, self->steps,
           (uint64_t)check_round(self), (uint64_t)check_commits(self), self->ghost.voids);
    for (int i = 0; i < FAULT_KINDS; i++)
        if (self->faults[i]) printf(" %s %" PRIu64, fault_names[i], self->faults[i]);
    printf("  trace %016" PRIx64 "\n", self->trace);
    if (rc) printf("  seed %" PRIu64 ": %s\n", self->seed, self->verdict);
}

struct sums {
    uint64_t seeds, broken, virtual_ms, cpu_ms, rounds, commits, voids, steps, faults[FAULT_KINDS],
        first_broken;
};

static void add(struct sums *sums, const struct sim *self, int rc)
{
    sums->seeds++;
    sums->broken += rc != 0;
    sums->virtual_ms += self->now_ms;
    sums->rounds += check_round(self);
    sums->commits += check_commits(self);
    sums->voids += self->ghost.voids;
    sums->steps += self->steps;
    for (int i = 0; i < FAULT_KINDS; i++) sums->faults[i] += self->faults[i];
    if (rc && (!sums->first_broken || self->seed < sums->first_broken))
        sums->first_broken = self->seed;
}

// One seed in a hundred runs twice: the same seed is the same run, to the byte.
static int run_checked(struct sim *self, uint64_t seed)
{
    int rc = sim_run(self, seed);
    if (rc || seed % 100) return rc;
    uint64_t trace = self->trace;
    rc = sim_run(self, seed);
    if (rc == 0 && self->trace != trace) {
        snprintf(self->verdict, sizeof self->verdict,
                 "a seed is a run: traces %016" PRIx64 " and %016" PRIx64, trace, self->trace);
        rc = 1;
    }
    return rc;
}

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// `limit` is shared: past it nobody need look, for an earlier seed is broken already.
static void work(int pipe_end, uint64_t first, uint64_t last, volatile uint64_t *limit)
{
    struct sums sums = { 0 };
    catch_deaths();
    for (uint64_t seed = first; seed <= last && !(limit && seed > *limit); seed += WORKERS) {
        int rc = run_checked(running, seed);
        add(&sums, running, rc);
        if (rc && sums.broken <= SHOWN_MAX) print_seed(running, rc);
        if (rc && limit && seed < *limit) *limit = seed;
        fflush(stdout);
    }
    sums.cpu_ms = (uint64_t)(seconds(CLOCK_PROCESS_CPUTIME_ID) * 1000);
    ensure(write(pipe_end, &sums, sizeof sums) == sizeof sums);
    _exit(0);
}

static void gather(int pipe_end, struct sums *sums)
{
    struct sums part;
    while (read(pipe_end, &part, sizeof part) == sizeof part) {
        uint64_t first = sums->first_broken;
        if (part.first_broken && (!first || part.first_broken < first)) first = part.first_broken;
        const uint64_t *from = (const uint64_t *)&part;
        uint64_t *to = (uint64_t *)sums;
        for (size_t i = 0; i < sizeof part / sizeof *from; i++) to[i] += from[i];
        sums->first_broken = first;
    }
}

static int run_range(uint64_t first, uint64_t last, bool until_broken)
{
    int ends[2], status, lost = 0;
    struct sums sums = { 0 };
    uint64_t *limit =
        mmap(NULL, sizeof *limit, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double began = seconds(CLOCK_MONOTONIC);
    ensure(limit != MAP_FAILED);
    *limit = UINT64_MAX;
    ensure(pipe(ends) == 0);
    fflush(stdout);
    for (uint64_t i = 0; i < WORKERS; i++) {
        pid_t pid = fork();
        ensure(pid >= 0);
        if (pid == 0) work(ends[1], first + i, last, until_broken ? limit : NULL);
    }
    close(ends[1]);
    gather(ends[0], &sums);
    while (wait(&status) > 0) lost += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    double took = seconds(CLOCK_MONOTONIC) - began, virtual_s = (double)sums.virtual_ms / 1000;
    double cpu_s = ((double)sums.cpu_ms + 1) / 1000;
    printf("%" PRIu64
           " seeds in %.1f s: %.1f seeds/s, %.0f virtual seconds a second; %.1f rounds and "
           "%.1f commits a seed, "
           "%" PRIu64 " voids\n",
           sums.seeds, took, (double)sums.seeds / took, virtual_s / took,
           (double)sums.rounds / (double)sums.seeds, (double)sums.commits / (double)sums.seeds,
           sums.voids);
    printf("%.0f seeds per core-hour, %.0f virtual seconds to one of a core\n",
           (double)sums.seeds / cpu_s * 3600, virtual_s / cpu_s);
    for (int i = 0; i < FAULT_KINDS; i++) printf("%s %" PRIu64 " ", fault_names[i], sums.faults[i]);
    printf("\n%" PRIu64 " broken", sums.broken);
    if (sums.broken) printf(", the first is seed %" PRIu64, sums.first_broken);
    printf(lost ? ", %d of the workers died\n" : "\n", lost);
    return sums.broken || lost;
}

// Somebody honest is ejected, and we are told. Returns 0 if so.
static int run_canary(struct sim *self)
{
    enum { CANARY_SEEDS = 20 };
    for (uint64_t seed = 1; seed <= CANARY_SEEDS; seed++)
        if (sim_run(self, seed) && strncmp(self->verdict, "no honest member is ejected", 27) == 0) {
            printf("the canary dies at seed %" PRIu64 ": %s\n", seed, self->verdict);
            return 0;
        }
    printf("the canary lives: three of four lie, and nothing was noticed in %d seeds\n",
           CANARY_SEEDS);
    return 1;
}

static int usage(void)
{
    fprintf(stderr, "usage: sim [-v] SEED\n       sim --seeds A B [--first]   (--first: stop at "
                    "the first that breaks)\n       sim --canary   (most lie: it must break)\n");
    return 64;
}

int main(int argc, char **argv)
{
    bool range = argc >= 4 && strcmp(argv[1], "--seeds") == 0;
    if (range)
        return run_range(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10),
                         argc > 4 && strcmp(argv[4], "--first") == 0);
    if (argc == 2 && strcmp(argv[1], "--canary") == 0) {
        catch_deaths();
        running->canary = true;
        return run_canary(running);
    }
    bool verbose = argc == 3 && strcmp(argv[1], "-v") == 0;
    if (argc != 2 + verbose || argv[argc - 1][0] < '0' || argv[argc - 1][0] > '9') return usage();
    catch_deaths();
    running->verbose = verbose;
    int rc = sim_run(running, strtoull(argv[argc - 1], NULL, 10));
    print_seed(running, rc);
    sim_end(running);
    return rc;
}
