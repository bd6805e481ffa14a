// ledger_bench -- durable commits per second, beside what the disk can do: an append to a file with
// fdatasync, in the same directory, in turns in one run. LMDB's durable mode syncs twice a commit
// (the data, then the page that makes it true), so half the disk's rate is its ceiling.
//
//     ledger_bench [DIR]          DIR lies on the disk to be measured; default: the present folder

#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/ledger/ledger.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORD_BYTES = 1024, TURNS = 5, COMMITS = 60, GROUP = 100 };

static double raw_rate(int fd)
{
    static uint8_t bytes[RECORD_BYTES];
    double began = clock_s();
    for (int i = 0; i < COMMITS; i++) {
        ensure(write(fd, bytes, sizeof bytes) == sizeof bytes);
        ensure(fdatasync(fd) == 0);
    }
    return COMMITS / (clock_s() - began);
}

static double ledger_rate(struct ledger *ledger, int group)
{
    static uint8_t bytes[RECORD_BYTES];
    struct why why = { 0 };
    uint64_t seq;
    double began = clock_s();
    for (int i = 0; i < COMMITS; i++) {
        ensure(ledger_begin(ledger, &why) == 0);
        for (int n = 0; n < group; n++)
            ensure(ledger_append(ledger, bytes, sizeof bytes, NULL, &why, &seq) == 0);
        ensure(ledger_commit(ledger, &why) == 0);
    }
    return COMMITS / (clock_s() - began);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, TURNS, sizeof *values, compare);
    return values[TURNS / 2];
}

int main(int argc, char **argv)
{
    char dir[512], file[600], command[600];
    struct why why = { 0 };
    struct ledger *ledger;
    double raw[TURNS], one[TURNS], many[TURNS];
    snprintf(dir, sizeof dir, "%s/ledger-bench.XXXXXX", argc > 1 ? argv[1] : ".");
    ensure(mkdtemp(dir));
    snprintf(file, sizeof file, "%s/raw", dir);
    int fd = open(file, O_CREAT | O_WRONLY | O_APPEND, 0600);
    int rc = ledger_open(dir, "bench", NULL, &why, &ledger);
    if (rc < 0 || fd < 0) return fault_exit(rc < 0 ? rc : FAULT_IO, &why);
    for (int i = 0; i < TURNS; i++) {
        raw[i] = raw_rate(fd);
        one[i] = ledger_rate(ledger, 1);
        many[i] = ledger_rate(ledger, GROUP);
    }
    ledger_close(&ledger);
    close(fd);
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    ensure(system(command) == 0);
    double limit = median(raw), single = median(one), grouped = median(many);
    puts("ledger, durable (median of 5 turns, records of 1 KiB)");
    printf("  limit: append + fdatasync   %8.0f /s\n", limit);
    printf("  one record a commit         %8.0f /s   %.2f of the limit (two syncs a commit: at "
           "most 0.50)\n",
           single, single / limit);
    printf("  100 records a commit        %8.0f commits/s, %.0f records/s   %.1f times the limit\n",
           grouped, grouped * GROUP, grouped * GROUP / limit);
    return 0;
}
