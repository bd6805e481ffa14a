// matrix -- every actor in every phase is killed, stopped for ten seconds, asked to end: 126 cells,
// and 105 of allreduce.
//
//     make chaos MATRIX=1                      all cells that the results file does not have yet
//     matrix FILE                              the same; takes up where it was left
//     matrix FILE coordinator Train SIGKILL    that cell, again
//     matrix --sample SECONDS SEED             as TAP: cells from the seed, while the time lasts
//
// Before all these, --strategy=allreduce: the cells of a run of that strategy (cell.h).
//
// A line of the results file: victim phase signal outcome seconds voids partial. Outcomes: "same"
// (the digest of the undisturbed run), "finished" (none was promised), "other" (promised, and
// another: a fault), "failed" (see FILE.logs/NAME.log). An interrupted matrix loses the cell at hand
// and no more.

#include "tests/chaos/cell.h"
#include "common/base/ensure.h"
#include "tests/live/testbed.h"
#include "tests/test.h"
#include <inttypes.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { OUTCOMES = 4, LINE = 160 };
static const char *const outcomes[OUTCOMES] = { "same", "finished", "other", "failed" };

static char logs[400];
static enum testbed_strategy strategy;
static struct cell_result undisturbed[CELL_PHASES];

static struct cell_result run_logged(const struct cell *cell)
{
    char name[64], log[500];
    cell_name(cell, name);
    for (char *c = name; *c; c++)
        if (*c == ' ') *c = '-';
    snprintf(log, sizeof log, "%s/%s.log", logs, name);
    return cell_run(cell, log);
}

// Without an undisturbed run there is nothing to be measured against.
static const struct hash *expected(enum cell_phase phase)
{
    struct cell_result *result =
        &undisturbed[phase == CELL_TRANSFER ? CELL_TRANSFER : CELL_WAITING];
    const struct cell cell = { .strategy = strategy,
                               .phase = phase == CELL_TRANSFER ? CELL_TRANSFER : CELL_WAITING };
    if (!result->finished) *result = run_logged(&cell);
    if (!result->finished) {
        fprintf(stderr, "the undisturbed run failed, see %s\n", logs);
        exit(1);
    }
    return &result->digest;
}

static unsigned judge(const struct cell *cell, const struct cell_result *result)
{
    if (!result->finished) return 3;
    if (!cell_promises_digest(cell)) return 1;
    return hash_equal(&result->digest, expected(cell->phase)) ? 0 : 2;
}

static unsigned run_one(const struct cell *cell, struct cell_result *ret_result)
{
    if (cell_promises_digest(cell)) expected(cell->phase);
    *ret_result = run_logged(cell);
    return judge(cell, ret_result);
}

// ---- the results file ---------------------------------------------------------------------------

static int read_results(const char *file, int known[CELLS], double seconds[CELLS])
{
    char line[LINE], name[64];
    FILE *in = fopen(file, "re");
    int count = 0;
    for (int i = 0; i < CELLS; i++) known[i] = -1;
    while (in && fgets(line, sizeof line, in))
        for (unsigned i = 0; i < CELLS; i++) {
            const struct cell cell = cell_at(strategy, i);
            char outcome[16];
            cell_name(&cell, name);
            if (strncmp(line, name, strlen(name)) != 0 ||
                sscanf(line + strlen(name), " %15s %lf", outcome, &seconds[i]) != 2)
                continue;
            count += known[i] < 0;
            for (int o = 0; o < OUTCOMES; o++)
                if (strcmp(outcome, outcomes[o]) == 0) known[i] = o;
        }
    if (in) fclose(in);
    return count;
}

static void print_table(const int known[CELLS], const double seconds[CELLS])
{
    static const char *const signals[CELL_SIGNALS] = { "KILL", "STOP", "TERM" };
    unsigned sums[OUTCOMES] = { 0 }, not_run = 0;
    double longest = 0;
    printf("%-20s", "");
    for (int p = 0; p < CELL_PHASES; p++) printf("%-11s", cell_phases[p]);
    for (unsigned v = 0; v < CELL_VICTIMS; v++)
        for (unsigned s = 0; s < CELL_SIGNALS; s++) {
            printf("\n%-15s%-5s", s ? "" : cell_victims[v], signals[s]);
            for (unsigned p = 0; p < CELL_PHASES; p++) {
                const unsigned i = (p * CELL_VICTIMS + v) * CELL_SIGNALS + s;
                const struct cell cell = cell_at(strategy, i);
                const bool out = cell_is_left_out(&cell);
                printf("%-11s", out ? "-" : known[i] < 0 ? "." : outcomes[known[i]]);
                not_run += !out && known[i] < 0;
                if (known[i] >= 0) sums[known[i]]++;
                if (known[i] >= 0 && seconds[i] > longest) longest = seconds[i];
            }
        }
    printf("\n%u same, %u finished, %u other, %u failed, %u not run; the longest took %.0f s\n",
           sums[0], sums[1], sums[2], sums[3], not_run, longest);
}

static void keep(const char *file, const struct cell *cell, unsigned outcome,
                 const struct cell_result *result)
{
    char name[64];
    FILE *out = fopen(file, "ae");
    cell_name(cell, name);
    if (!out) {
        perror(file);
        exit(1);
    }
    fprintf(out, "%s %s %.1f %" PRIu64 " %" PRIu64 "\n", name, outcomes[outcome], result->seconds,
            result->voids, result->partial);
    fclose(out);
    printf("%s: %s, %.1f s\n", name, outcomes[outcome], result->seconds);
    fflush(stdout);
}

static int run_matrix(const char *file, const char *wanted)
{
    int known[CELLS], faults = 0;
    double seconds[CELLS];
    char name[64];
    read_results(file, known, seconds);
    for (unsigned i = 0; i < CELLS; i++) {
        const struct cell cell = cell_at(strategy, i);
        struct cell_result result;
        cell_name(&cell, name);
        if (cell_is_left_out(&cell)) continue;
        if (wanted[0] ? strcmp(wanted, name) != 0 : known[i] >= 0 && known[i] < 2) continue;
        const unsigned outcome = run_one(&cell, &result);
        keep(file, &cell, outcome, &result);
    }
    read_results(file, known, seconds);
    print_table(known, seconds);
    for (int i = 0; i < CELLS; i++) faults += known[i] >= 2;
    return faults > 0;
}

// ---- a sample, for every day --------------------------------------------------------------------

static int run_sample(unsigned seconds_max, uint64_t seed)
{
    const time_t end = time(NULL) + seconds_max;
    unsigned number = 0, faults = 0;
    bool tried[CELLS] = { false };
    for (unsigned looked = 0; time(NULL) < end && looked < CELLS; looked++) {
        char name[64];
        unsigned i = (unsigned)(testbed_draw(&seed) % CELLS);
        while (tried[i]) i = (i + 1) % CELLS;
        tried[i] = true;
        const struct cell cell = cell_at(strategy, i);
        if (cell_is_left_out(&cell)) continue;
        struct cell_result result;
        const unsigned outcome = run_one(&cell, &result);
        cell_name(&cell, name);
        faults += outcome >= 2;
        printf("%sok %u - %s: %s\n", outcome >= 2 ? "not " : "", ++number, name, outcomes[outcome]);
        if (outcome >= 2) printf("# see %s\n", logs);
        fflush(stdout);
    }
    printf("1..%u\n", number);
    return faults > 0;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    return remove(path);
}

// Takes --strategy=WORD off the arguments. False: there is no such strategy.
static bool read_strategy(int *argc, char ***argv)
{
    static const char flag[] = "--strategy=";
    if (*argc < 2 || strncmp((*argv)[1], flag, strlen(flag)) != 0) return true;
    const char *word = (*argv)[1] + strlen(flag);
    --*argc, ++*argv;
    for (unsigned i = 0; i < TESTBED_STRATEGIES; i++)
        if (strcmp(word, testbed_strategies[i]) == 0) {
            strategy = (enum testbed_strategy)i;
            return true;
        }
    return false;
}

int main(int argc, char **argv)
{
    char wanted[LINE] = "";
    const bool is_known = read_strategy(&argc, &argv);
    if (is_known && argc >= 3 && strcmp(argv[1], "--sample") == 0) {
        snprintf(logs, sizeof logs, "%s/shoal-matrix-XXXXXX",
                 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
        ensure(mkdtemp(logs));
        const int code =
            run_sample((unsigned)atoi(argv[2]), argc > 3 ? strtoull(argv[3], NULL, 10) : 1);
        if (code == 0) nftw(logs, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        return code;
    }
    if (!is_known || argc < 2 || argv[1][0] == '-') {
        fprintf(stderr,
                "usage: matrix [--strategy=distro|allreduce|sharded|server|async] FILE [VICTIM "
                "PHASE SIGNAL] | "
                "... --sample SECONDS [SEED]\n");
        return 64;
    }
    for (int i = 2; i < argc; i++)
        snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted), "%s%s", i > 2 ? " " : "",
                 argv[i]);
    snprintf(logs, sizeof logs, "%.390s.logs", argv[1]);
    mkdir(logs, 0755);
    return run_matrix(argv[1], wanted);
}
