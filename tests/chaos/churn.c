// churn -- members of a run of allreduce, sharded, server or async come and go for TIME seconds, and it must not show.
//
//     make soak STRATEGY=allreduce TIME=3600 SEED=7
//     build/chaos/churn 300 7                       300 seconds by seed 7
//
// A small model (the testbed's) in 16 lanes. Every half second to two seconds, by the seed, a
// trainer is killed or one is started: two to ten of them run. The first two stay to the end, so
// that what grows in a process has time to show: in its first minutes each grows by a few MiB. Now
// and then the coordinator is killed; it is started again at once, as by systemd. Of `server` and `async` two
// parameter servers and one that stands by run; now and then one of the three is killed, and started
// again at a later such event.
//
// Fails when no step is committed for a minute, when a process ends that nobody killed, when
// anything grows (soak.h), or when a member ever held another state than the pinned one: its log
// says so. At the end everything is stopped, and one trainer alone takes the same steps: each
// digest that the ledger pins must be that of `shoal train` (alone.h). Of `async` no two runs have equal bits: there
// the ledger says that no sample was trained twice in a pass (ledger_check.h). Prints a line a minute.

#include "common/base/clock.h"
#include "tests/chaos/alone.h"
#include "tests/chaos/soak.h"
#include "tests/live/testbed.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRAINERS_MIN = 2,
    TRAINERS_MAX = 10,
    TRAINERS_FIRST = 4,
    LANES = 16,
    EVENT_MS_MIN = 500,
    EVENT_MS_SPAN = 1500,
    COORDINATOR_ONE_IN = 50, // Of so many events
    SERVERS = 3,             // One more than the run needs
    SERVER_ONE_IN = 6,
    RESTART_MS = 200,
    STEPS = 100000000,
    EPOCH_STEPS = 1000,
    SECONDS_MAX = 86400
};

// A record is about a kilobyte, and at most one in twenty steps makes one.
static const struct soak_limits limits = { .patience_s = 60, .ledger_bytes = 128 };
// Each task makes two records, and is two steps.
static const struct soak_limits limits_of_tasks = { .patience_s = 60, .ledger_bytes = 1024 };

static struct churn {
    struct testbed *bed;
    struct soak soak;
    uint64_t seed, until_ms, event_ms, coordinator_ms;
    uint64_t counts_from[TRAINERS_MAX]; // The first window whose group must have the newest process
    unsigned kills, spawns, coordinator_kills, server_kills;
    enum testbed_strategy strategy;
} churn;

static unsigned draw(struct churn *self, unsigned below)
{
    return (unsigned)(testbed_draw(&self->seed) % below);
}

// ---- who is there -------------------------------------------------------------------------------

static bool runs(const struct churn *self, unsigned trainer)
{
    return testbed_actor(self->bed, testbed_trainer(trainer))->pid != 0;
}

static bool holds(const struct churn *self, unsigned trainer)
{
    return runs(self, trainer) && self->bed->news.window >= self->counts_from[trainer] &&
           testbed_in_group(self->bed, testbed_trainer(trainer));
}

static unsigned count_other_holders(const struct churn *self, unsigned trainer)
{
    unsigned count = 0;
    for (unsigned i = 0; i < TRAINERS_MAX; i++) count += i != trainer && holds(self, i);
    return count;
}

// From a drawn index on, the first that will do; TRAINERS_MAX: none.
static unsigned pick(struct churn *self, bool (*will_do)(const struct churn *, unsigned))
{
    const unsigned first = draw(self, TRAINERS_MAX);
    for (unsigned i = 0; i < TRAINERS_MAX; i++)
        if (will_do(self, (first + i) % TRAINERS_MAX)) return (first + i) % TRAINERS_MAX;
    return TRAINERS_MAX;
}

static bool is_absent(const struct churn *self, unsigned trainer) { return !runs(self, trainer); }

static bool may_die(const struct churn *self, unsigned trainer)
{
    return trainer >= TRAINERS_MIN && runs(self, trainer) &&
           count_other_holders(self, trainer) >= TRAINERS_MIN;
}

// ---- what happens -------------------------------------------------------------------------------

static void spawn(struct churn *self, unsigned trainer)
{
    testbed_start(self->bed, testbed_trainer(trainer));
    // The dead process of this key may be in the two windows that were open, not in later ones.
    self->counts_from[trainer] = self->bed->news.window + 3;
    self->spawns++;
}

static void kill_one(struct churn *self, unsigned trainer)
{
    testbed_signal(self->bed, testbed_trainer(trainer), SIGKILL);
    self->kills++;
}

static void kill_coordinator(struct churn *self, uint64_t now_ms)
{
    testbed_signal(self->bed, "coordinator", SIGKILL);
    self->coordinator_ms = now_ms + RESTART_MS;
    self->coordinator_kills++;
}

// The one that is down is started; else one is killed.
static void disturb_servers(struct churn *self)
{
    const char *victim = testbed_server(draw(self, SERVERS));
    for (unsigned i = 0; i < SERVERS; i++)
        if (!testbed_actor(self->bed, testbed_server(i))->pid) {
            testbed_start(self->bed, testbed_server(i));
            return;
        }
    testbed_signal(self->bed, victim, SIGKILL);
    self->server_kills++;
}

static void happen(struct churn *self, uint64_t now_ms)
{
    const unsigned victim = pick(self, may_die), absent = pick(self, is_absent);
    const bool kills = victim < TRAINERS_MAX && (absent == TRAINERS_MAX || draw(self, 2));
    self->event_ms = now_ms + EVENT_MS_MIN + draw(self, EVENT_MS_SPAN);
    if (draw(self, COORDINATOR_ONE_IN) == 0 && !self->coordinator_ms)
        kill_coordinator(self, now_ms);
    else if (testbed_has_servers(self->strategy) && draw(self, SERVER_ONE_IN) == 0)
        disturb_servers(self);
    else if (kills) kill_one(self, victim);
    else if (absent < TRAINERS_MAX) spawn(self, absent);
}

static bool turn(struct testbed *bed, const void *arg)
{
    struct churn *self = (struct churn *)(uintptr_t)arg;
    const uint64_t now_ms = clock_ms();
    soak_watch(&self->soak, bed, self->kills + self->spawns, self->coordinator_kills);
    if (self->coordinator_ms && now_ms >= self->coordinator_ms) {
        self->coordinator_ms = 0;
        testbed_start(bed, "coordinator");
    }
    if (now_ms >= self->until_ms) return !self->coordinator_ms;
    if (now_ms >= self->event_ms) happen(self, now_ms);
    return false;
}

static uint64_t due_in_ms(const struct churn *self)
{
    const uint64_t now_ms = clock_ms();
    uint64_t due_ms = self->event_ms;
    if (self->coordinator_ms && self->coordinator_ms < due_ms) due_ms = self->coordinator_ms;
    return due_ms > now_ms ? due_ms - now_ms : 1;
}

// ---- from beginning to end ----------------------------------------------------------------------

static void begin(struct churn *self, uint64_t seconds)
{
    self->bed = testbed_new(&(struct testbed_options){ .run_id = "soak",
                                                       .strategy = self->strategy,
                                                       .lanes = LANES,
                                                       .trainers = TRAINERS_FIRST,
                                                       .init_min_clients = TRAINERS_MIN,
                                                       .servers = SERVERS - 1,
                                                       .batch = LANES,
                                                       .epoch_rounds = EPOCH_STEPS,
                                                       .total_steps = STEPS,
                                                       .map_mib_max = 1024,
                                                       .lease_s = 3 });
    for (unsigned i = 0; i < TRAINERS_MAX; i++) testbed_actor(self->bed, testbed_trainer(i));
    testbed_start_all(self->bed);
    if (testbed_has_servers(self->strategy)) testbed_start(self->bed, testbed_server(SERVERS - 1));
    testbed_await_step(self->bed, 1);
    soak_begin(&self->soak, self->bed,
               self->strategy == TESTBED_ASYNC ? &limits_of_tasks : &limits);
    self->event_ms = self->soak.began_ms + 1000;
    self->until_ms = self->soak.began_ms + 1000 * seconds;
}

static unsigned replay(struct churn *self, const struct ledger_report *ledger)
{
    unsigned same = 0;
    for (uint32_t i = 0; i < ledger->pinned_count; i++) {
        const struct pinned_step *pinned = &ledger->pinned[i];
        char said[HASH_HEX], computed[HASH_HEX];
        if (pinned->step == 0) continue;
        if (self->strategy == TESTBED_ASYNC) {
            same++;
            continue;
        }
        const struct hash digest = alone_digest(self->bed, pinned->step);
        if (!hash_equal(&digest, &pinned->digest))
            testbed_fail(
                self->bed, "step %" PRIu64 " is pinned as %.16s, one trainer alone has %.16s",
                pinned->step, hash_to_hex(&pinned->digest, said), hash_to_hex(&digest, computed));
        same++;
    }
    return same;
}

// A phase in which steps are made: so the members that stay are told of the end by SIGTERM, not by
// an epoch that is just over.
static bool trains(struct testbed *bed, const void *arg)
{
    struct churn *self = (struct churn *)(uintptr_t)arg;
    soak_watch(&self->soak, bed, self->kills + self->spawns, self->coordinator_kills);
    return bed->news.run.phase == PHASE_TRAIN;
}

// A process that has just been started does not know SIGTERM yet.
static void await_ready(struct churn *self)
{
    for (unsigned i = 0; i < TRAINERS_MAX; i++)
        if (runs(self, i))
            testbed_await_log(self->bed, testbed_trainer(i), "actor.ready", TESTBED_WAIT_MS);
    for (unsigned i = 0; testbed_has_servers(self->strategy) && i < SERVERS; i++)
        if (testbed_actor(self->bed, testbed_server(i))->pid)
            testbed_await_log(self->bed, testbed_server(i), "actor.ready", TESTBED_WAIT_MS);
}

static bool run(struct churn *self, uint64_t seconds)
{
    const uint64_t seed = self->seed;
    begin(self, seconds);
    printf("soak of %s: %" PRIu64 " s, SEED=%" PRIu64 ", in %s\n",
           testbed_strategies[self->strategy], seconds, seed, self->bed->dir);
    while (!testbed_wait(self->bed, turn, self, due_in_ms(self))) continue;
    await_ready(self);
    while (!testbed_wait(self->bed, trains, self, 1000)) continue;
    const struct testbed_end end = testbed_stop(self->bed);
    soak_judge(&self->soak, self->bed);
    const unsigned same = replay(self, &end.ledger);
    const bool held = same > 0 && self->kills > 0 && self->spawns > 0;
    printf("%sok 1 - %" PRIu64
           " s, %u trainers killed, %u started, the coordinator killed %u times, %u servers "
           "killed: "
           "%" PRIu64 " steps in %" PRIu64 " windows, %" PRIu64
           " closed early, back at a save %" PRIu64 " times; %u pinned digests%s, nothing grows\n",
           held ? "" : "not ", seconds, self->kills, self->spawns, self->coordinator_kills,
           self->server_kills, end.ledger.commits, end.ledger.rounds, end.ledger.closed,
           end.ledger.restores, same,
           self->strategy == TESTBED_ASYNC ? "" : " are those of one trainer alone");
    testbed_destroy(&self->bed);
    return held;
}

int main(int argc, char **argv)
{
    const uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    if (seconds < 1 || seconds > SECONDS_MAX) {
        fprintf(stderr,
                "usage: churn SECONDS [SEED [sharded, server or async]]; SECONDS from 1 to %d\n",
                SECONDS_MAX);
        return 64;
    }
    churn.strategy = TESTBED_ALLREDUCE;
    for (enum testbed_strategy s = TESTBED_SHARDED; argc > 3 && s <= TESTBED_ASYNC; s++)
        if (strcmp(argv[3], testbed_strategies[s]) == 0) churn.strategy = s;
    setvbuf(stdout, NULL, _IOLBF, 0);
    churn.seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    return run(&churn, seconds) ? 0 : 1;
}
