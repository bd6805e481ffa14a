// The end of a run: every replica's last word, a clean stop, and the ledger held against both.

#include "tests/live/testbed.h"
#include "common/checkpoint/checkpoint.h"
#include "tests/test.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static bool is_member(const struct testbed_actor *actor)
{
    return strcmp(actor->name, "broker") != 0 && strcmp(actor->name, "coordinator") != 0;
}

static bool all_said_last(struct testbed *self, const void *arg)
{
    (void)arg;
    if (!self->news.has_run || self->news.run.phase != PHASE_FINISHED) return false;
    for (unsigned i = 0; i < self->actors_count; i++) {
        const char *name = self->actors[i].name;
        bool replica = strncmp(name, "trainer", 7) == 0 || strcmp(name, "checkpointer") == 0;
        if (self->actors[i].pid && replica &&
            !testbed_log_has(self, name, "run.finished ", NULL, 0))
            return false;
    }
    return true;
}

static struct hash take_digest(struct testbed *self, struct hash digest, unsigned *ret_replicas)
{
    char rest[256];
    for (unsigned i = 0; i < self->actors_count; i++) {
        struct hash said;
        const char *name = self->actors[i].name;
        if (!self->actors[i].pid || strncmp(name, "trainer", 7) != 0) continue;
        if (!testbed_log_has(self, name, " digest=", NULL, 0) ||
            !testbed_log_has(self, name, "run.finished ", rest, sizeof rest) ||
            !strstr(rest, "digest=") || !hash_from_hex(strstr(rest, "digest=") + 7, &said))
            testbed_fail(self, "%s does not name the digest that it ended with", name);
        if (!hash_is_none(&digest) && !hash_equal(&digest, &said))
            testbed_fail(self, "%s ended with another digest", name);
        digest = said;
        ++*ret_replicas;
    }
    return digest;
}

static uint64_t newest_checkpoint(struct testbed *self, struct hash *ret_digest)
{
    char root[300];
    struct why why = { 0 };
    checkpoint_t *checkpoint;
    snprintf(root, sizeof root, "%s/checkpoints", self->dir);
    int rc = checkpoint_open_newest(root, self->options.run_id, &why, &checkpoint);
    if (rc < 0) testbed_fail(self, "no checkpoint at the end: %s %s", fault_name(rc), why.text);
    const uint64_t step = checkpoint_info(checkpoint)->step;
    *ret_digest = checkpoint_info(checkpoint)->digest;
    checkpoint_close(&checkpoint);
    return step;
}

static void check_checkpoint(struct testbed *self, const struct hash *digest, uint64_t step)
{
    struct hash saved;
    if (newest_checkpoint(self, &saved) != step || !hash_equal(&saved, digest))
        testbed_fail(self, "the newest checkpoint is not that of the end");
}

static void stop_one(struct testbed *self, const char *name)
{
    testbed_signal(self, name, SIGTERM);
    int code = testbed_await_end(self, name, 0);
    if (code != 0) testbed_fail(self, "%s answers SIGTERM with exit %d", name, code);
}

// Members leave while the coordinator still hears them.
static void stop_all(struct testbed *self)
{
    bool ran[TESTBED_ACTORS_MAX];
    for (unsigned i = 0; i < self->actors_count; i++) {
        struct testbed_actor *actor = &self->actors[i];
        ran[i] = actor->pid && is_member(actor);
        actor->may_end |= ran[i];
        if (ran[i]) kill(actor->pid, SIGTERM); // All at once; then one after the other is awaited
    }
    for (unsigned i = 0; i < self->actors_count; i++) {
        if (!ran[i]) continue;
        int code = testbed_await_end(self, self->actors[i].name, 10000);
        if (code != 0)
            testbed_fail(self, "%s answers SIGTERM with exit %d", self->actors[i].name, code);
    }
    stop_one(self, "coordinator");
    stop_one(self, "broker");
}

static void check_ledger(struct testbed *self, struct ledger_report *ret_report)
{
    char dir[300], text[512];
    snprintf(dir, sizeof dir, "%s/coordinator", self->dir);
    if (!ledger_check(dir, self->options.run_id, ret_report, text, sizeof text))
        testbed_fail(self, "the ledger: %s", text);
    if (ret_report->restores > 0 && self->options.strategy != TESTBED_SHARDED &&
        !testbed_has_servers(self->options.strategy))
        testbed_fail(self, "the run went back to a save %" PRIu64 " times", ret_report->restores);
}

// In all its lives.
static bool find_in_log(struct testbed *self, const char *name, const char *text, char *ret_line,
                        size_t max)
{
    FILE *log = fopen(testbed_actor(self, name)->log, "re");
    bool found = false;
    while (log && !found && fgets(ret_line, (int)max, log)) found = strstr(ret_line, text) != NULL;
    if (log) fclose(log);
    return found;
}

static void tell(const struct testbed_end *end, unsigned replicas)
{
    char hex[HASH_HEX];
    print_message("%u replicas at %.16s: %" PRIu64 " commits, %" PRIu64 " voids, %" PRIu64
                  " partial, %" PRIu64 " samples, "
                  "%" PRIu64 " starts of the "
                  "coordinator\n",
                  replicas, hash_to_hex(&end->ledger.digest, hex), end->ledger.commits,
                  end->ledger.voids, end->ledger.partial, end->ledger.samples, end->ledger.starts);
}

// Replicas of rounds tell the digest of each step.
static void check_told(struct testbed *self, const struct ledger_report *ledger)
{
    const uint64_t step = ledger->digest_step;
    if (self->news.told[step % TESTBED_STEPS_MAX] != step + 1)
        testbed_fail(self, "no replica told its digest of step %" PRIu64 ", which is on record",
                     step);
    if (!hash_equal(&self->news.digests[step % TESTBED_STEPS_MAX], &ledger->digest))
        testbed_fail(self, "the ledger pins another digest than the replicas told");
}

// A member of windows tells the coordinator alone, at the end of an epoch. If its digest is not the
// pinned one, its log says so.
static void check_logs(struct testbed *self, const struct ledger_report *ledger)
{
    (void)ledger;
    for (unsigned i = 0; i < self->actors_count; i++) {
        char line[256];
        if (find_in_log(self, self->actors[i].name, "model.differs", line, sizeof line))
            testbed_fail(self, "%s held another state than the pinned one: %s",
                         self->actors[i].name, line);
    }
}

static void (*const check_digests[TESTBED_STRATEGIES])(struct testbed *,
                                                       const struct ledger_report *) = {
    check_told, check_logs, check_logs, check_logs, check_logs
};

struct testbed_end testbed_stop(struct testbed *self)
{
    static struct testbed_end end;
    struct hash saved;
    end = (struct testbed_end){ 0 };
    stop_all(self);
    check_ledger(self, &end.ledger);
    check_digests[self->options.strategy](self, &end.ledger);
    end.digest = end.ledger.digest;
    const uint64_t newest = newest_checkpoint(self, &saved);
    if (newest < end.ledger.checkpoint_step)
        testbed_fail(self,
                     "the newest checkpoint is of step %" PRIu64 ", registered is one of %" PRIu64,
                     newest, end.ledger.checkpoint_step);
    tell(&end, self->options.trainers);
    return end;
}

struct testbed_end testbed_finish(struct testbed *self)
{
    static struct testbed_end end;
    unsigned replicas = 0;
    end = (struct testbed_end){ 0 };
    testbed_await(self, all_said_last, NULL, 60000, "Finished, and the last word of every replica");
    end.digest = take_digest(self, end.digest, &replicas);
    bool checkpointed = testbed_actor(self, "checkpointer")->pid != 0;
    stop_all(self);
    check_ledger(self, &end.ledger);
    if (!end.ledger.finished || end.ledger.commits != self->options.total_steps)
        testbed_fail(self, "%" PRIu64 " steps in the ledger", end.ledger.commits);
    if (replicas && !hash_equal(&end.digest, &end.ledger.digest))
        testbed_fail(self, "the ledger pins another digest than the replicas ended with");
    if (checkpointed) check_checkpoint(self, &end.ledger.digest, end.ledger.commits);
    tell(&end, replicas);
    return end;
}
