// alone -- starts `shoal train` up to the step, waits for it, reads the digest of its checkpoint.

#include "tests/chaos/alone.h"
#include "common/base/ensure.h"
#include "common/base/process.h"
#include "common/checkpoint/checkpoint.h"
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void train_to(struct testbed *bed, const char *dir, uint64_t step)
{
    struct arguments arguments = { 0 };
    struct why why = { 0 };
    struct stat status;
    char log[300], how[100];
    pid_t pid;
    int end;
    snprintf(log, sizeof log, "%s/alone.log", bed->dir);
    arguments_add(&arguments, "%s/shoal", bed->bin);
    arguments_add(&arguments, "train");
    arguments_add(&arguments, "state.toml");
    arguments_add(&arguments, "--data-config=data.toml");
    arguments_add(&arguments, "--checkpoint-dir=alone");
    arguments_add(&arguments, "--threads=1");
    arguments_add(&arguments, "--steps=%" PRIu64, step);
    if (stat(dir, &status) == 0) arguments_add(&arguments, "--resume");
    const struct process_options options = { .arguments = &arguments, .log = log, .dir = bed->dir };
    if (process_start(&options, &why, &pid) < 0)
        testbed_fail(bed, "shoal train cannot be started: %s", why.text);
    ensure(waitpid(pid, &end, 0) == pid);
    process_print_end(end, how, sizeof how);
    if (end != 0)
        testbed_fail(bed, "shoal train %s before step %" PRIu64 ", see %s", how, step, log);
}

// Opening a checkpoint verifies it: the digest is that of the state in its files.
struct hash alone_digest(struct testbed *bed, uint64_t step)
{
    struct why why = { 0 };
    checkpoint_t *checkpoint;
    char dir[300], run[CHECKPOINT_RUN_MAX + 1];
    snprintf(dir, sizeof dir, "%s/alone", bed->dir);
    snprintf(run, sizeof run, "%.32s.train", bed->options.run_id);
    train_to(bed, dir, step);
    const int rc = checkpoint_open(dir, step, run, &why, &checkpoint);
    if (rc < 0) testbed_fail(bed, "no checkpoint of shoal train: %s %s", fault_name(rc), why.text);
    const struct hash digest = checkpoint_info(checkpoint)->digest;
    checkpoint_close(&checkpoint);
    return digest;
}
