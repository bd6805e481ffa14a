// cost_bench -- what a run pays because its members do not trust each other: audits, CURVE,
// signatures, hashes.
//
//     make bench T=cost_bench                 ten minutes on a quiet machine of two processors
//     build/bench/cost_bench TURNS ROUNDS     default 5 turns of 40 rounds
//
// The run: real processes on this machine; the demo's model, text and settings: four trainers, 16
// samples of 128 tokens a round.
//
// Speed: committed tokens a second, from the eighth commit on, over ROUNDS rounds. In each turn
// every line of the table has one run, and every other turn goes through them backwards. A line's
// ratio is to the line it is compared with, of the same turn, so that a machine which becomes
// slower meanwhile slows both. Medians over the turns; least and most in brackets. Beside it,
// the processor time of all actors a round: the same on a busy machine as on a quiet one, nearly.
//
//     audits   off, 10 %, 25 %: none, two in five rounds, one a round. An auditor does not train,
//              and the others have its samples: of four trainers on shared processors an audit adds
//              a third of a round's work, and what it takes to send, hash and load the evidence.
//              Where each has a machine of its own, 1 - percent/100 of the speed is left
//     CURVE    on and off. Off are the programs of build/bench/plain (plain_zap.c): the product's
//              own objects but for three functions. Once with the demo's payloads, once with
//              payloads as large as they get beside little to compute (cost_run.h)
//
// Numbers: one more run of each of five kinds, in which a library before libsodium's and OpenSSL's
// (crypto_counts.h) counts what each actor signs, verifies, hashes and boxes, a round. It is not
// among those whose speed is measured: its clock has a price. "a round": of the mean time of rounds
// of this very run, in units of one processor; "its cpu": of the actor's own processor time.

#include "common/base/ensure.h"
#include "tests/bench/cost_run.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TURNS = 5, TURNS_MAX = 100, ROUNDS = 40, ROUNDS_MAX = 1000 };

static const struct cost_kind kinds[] = {
    { .name = "audits off", .counted = true },
    { .name = "audits 10 %", .percent = 10, .counted = true },
    { .name = "audits 25 %", .percent = 25, .counted = true },
    { .name = "no CURVE", .plain = true, .counted = true },
    { .name = "large payloads", .large = true, .beside = 4, .counted = true },
    { .name = "large payloads, no CURVE", .plain = true, .large = true, .beside = 4 },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

// ---- speed --------------------------------------------------------------------------------------

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct spread {
    double least, median, most;
};

static struct spread spread_of(double *numbers, unsigned count)
{
    qsort(numbers, count, sizeof *numbers, by_size);
    return (struct spread){ numbers[0], (numbers[(count - 1) / 2] + numbers[count / 2]) / 2,
                            numbers[count - 1] };
}

// Of all actors whose name begins so, in all; "": of all.
static struct cost_usage sum_of(const struct cost_run *run, const char *name)
{
    struct cost_usage sum = { 0 };
    for (unsigned i = 0; i < run->actors; i++) {
        if (strncmp(run->of[i].name, name, strlen(name)) != 0) continue;
        sum.cpu_s += run->of[i].use.cpu_s;
        for (int k = 0; k < COUNTED; k++) {
            const struct crypto_count *more = &run->of[i].use.crypto.of[k];
            sum.crypto.of[k].calls += more->calls;
            sum.crypto.of[k].bytes += more->bytes;
            sum.crypto.of[k].ns += more->ns;
        }
    }
    return sum;
}

// One figure of all runs, and its ratio to that of the line compared with, of the same turn.
struct figure {
    const char *name;
    int digits;
    double of[KINDS][TURNS_MAX];
};

static void print_figure(struct figure *self, unsigned turns)
{
    static double ratios[KINDS][TURNS_MAX];
    for (unsigned k = 0; k < KINDS; k++)
        for (unsigned turn = 0; turn < turns; turn++)
            ratios[k][turn] = self->of[k][turn] / self->of[kinds[k].beside][turn];
    printf("\n%s, medians of %u turns\n", self->name, turns);
    for (unsigned k = 0; k < KINDS; k++) {
        const struct spread it = spread_of(self->of[k], turns), ratio = spread_of(ratios[k], turns);
        printf("  %-26s %8.*f  (%.*f to %.*f)", kinds[k].name, self->digits, it.median,
               self->digits, it.least, self->digits, it.most);
        if (kinds[k].beside == k) puts("");
        else
            printf("   %.3f (%.3f to %.3f) of %s\n", ratio.median, ratio.least, ratio.most,
                   kinds[kinds[k].beside].name);
    }
}

static void measure_speed(unsigned turns, unsigned rounds)
{
    static struct figure speed = { .name = "Committed tokens a second" },
                         cpu = { .name = "Processor time of a round, ms, all actors", .digits = 1 };
    struct cost_run run;
    for (unsigned turn = 0; turn < turns; turn++)
        for (unsigned n = 0; n < KINDS; n++) {
            const unsigned k = turn % 2 ? KINDS - 1 - n : n;
            cost_run_measure(&kinds[k], rounds, false, &run);
            speed.of[k][turn] = run.speed;
            cpu.of[k][turn] = sum_of(&run, "").cpu_s * 1e3 / run.rounds;
            fprintf(stderr, "turn %u/%u  %-26s %8.0f tokens/s %8.1f ms of processor a round\n",
                    turn + 1, turns, kinds[k].name, run.speed, cpu.of[k][turn]);
        }
    print_figure(&speed, turns);
    print_figure(&cpu, turns);
}

// ---- numbers ------------------------------------------------------------------------------------

// Whether the bytes of a kind are worth a column.
static bool has_size(int kind) { return kind == COUNT_HASHED || kind == COUNT_CURVE; }

// Of the actors whose name begins so: of one, where there are `share`.
static void print_line(const struct cost_run *run, const char *title, const char *name,
                       unsigned share)
{
    const struct cost_usage use = sum_of(run, name);
    const double each = (double)run->rounds * share;
    double all_us = 0;
    printf("  %-14s", title);
    for (int k = 0; k < COUNTED; k++) {
        const struct crypto_count *of = &use.crypto.of[k];
        const double us = (double)of->ns / 1e3 / each;
        printf("  %6.1f", (double)of->calls / each);
        if (has_size(k)) printf(" %8.1f", (double)of->bytes / 1e3 / each);
        printf(" %6.0f", us);
        all_us += us;
    }
    printf("  %7.0f  %6.2f %%  %5.1f %% of %.1f ms\n", all_us, all_us / 10 / run->round_ms,
           all_us * each / use.cpu_s / 1e4, use.cpu_s * 1e3 / each);
}

static void count(const struct cost_kind *kind, unsigned rounds)
{
    static const char *const heads[COUNTED] = { "signed", "verified", "hashed", "CURVE" };
    struct cost_run run;
    cost_run_measure(kind, rounds, true, &run);
    printf("\n%s: a round of %.1f ms (mean of %u)\n  %-14s", kind->name, run.round_ms, run.rounds,
           "");
    for (int k = 0; k < COUNTED; k++) printf("  %*s", has_size(k) ? 22 : 13, heads[k]);
    printf("  %7s  %17s\n  %-14s", "all", "share of", "");
    for (int k = 0; k < COUNTED; k++)
        printf("  %6s%s %6s", "number", has_size(k) ? "       kB" : "", "us");
    printf("  %7s  %8s  %7s\n", "us", "a round", "its cpu");
    print_line(&run, "broker", "broker", 1);
    print_line(&run, "coordinator", "coordinator", 1);
    print_line(&run, "data-provider", "data-provider", 1);
    print_line(&run, "trainer, of 4", "trainer", COST_TRAINERS);
    print_line(&run, "all together", "", 1);
}

static bool parse(const char *text, unsigned max, unsigned *ret_number)
{
    char *end;
    errno = 0;
    const unsigned long number = strtoul(text, &end, 10);
    if (errno || *end || *text < '0' || *text > '9' || number < 1 || number > max) return false;
    *ret_number = (unsigned)number;
    return true;
}

int main(int argc, char **argv)
{
    unsigned turns = TURNS, rounds = ROUNDS;
    if (argc > 3 || (argc > 1 && !parse(argv[1], TURNS_MAX, &turns)) ||
        (argc > 2 && !parse(argv[2], ROUNDS_MAX, &rounds))) {
        fprintf(stderr, "usage: cost_bench [TURNS, 1 to %d [ROUNDS, 1 to %d]]\n", TURNS_MAX,
                ROUNDS_MAX);
        return 64;
    }
    measure_speed(turns, rounds);
    for (unsigned k = 0; k < KINDS; k++)
        if (kinds[k].counted) count(&kinds[k], rounds);
    return 0;
}
