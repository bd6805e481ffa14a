// Each actor is killed with -9 in each phase and started again, and the run goes on to its end (the
// coordinator: kill_coordinator_test.c). A broker's restart loses no commit, no result and no join.

#include "tests/live/testbed.h"
#include "tests/test.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 8 };

static bool has_entered(struct testbed *bed, const void *arg)
{
    const uint64_t *wanted = arg; // Phase, and how often it has been entered before
    return bed->news.has_run && bed->news.run.phase == wanted[0] &&
           bed->news.entered[wanted[0]] > wanted[1];
}

// Some rounds of the epoch are left: a trainer that is stopped now has not cast the last vote of
// it.
static bool has_rounds_left(struct testbed *bed, const void *arg)
{
    const uint64_t of_epoch = bed->news.rounds % bed->options.epoch_rounds;
    (void)arg;
    return bed->news.run.phase == PHASE_TRAIN && of_epoch > 0 &&
           of_epoch + 3 < bed->options.epoch_rounds;
}

// Waits for the next entry of the phase. RoundWitness is too short to be hit unless a trainer that
// is stopped (not the one to be killed) holds it up.
static void await_entry(struct testbed *bed, uint8_t phase, const char *holdup)
{
    if (phase == PHASE_WITNESS)
        testbed_await(bed, has_rounds_left, NULL, TESTBED_WAIT_MS, "a round that is not the last");
    uint64_t wanted[2] = { phase, bed->news.entered[phase] };
    if (phase == PHASE_WITNESS) testbed_signal(bed, holdup, SIGSTOP);
    testbed_await(bed, has_entered, wanted, TESTBED_WAIT_MS,
                  wire_enum_name(&wire_enum_phase, phase));
}

static void kill_in(struct testbed *bed, const char *name, uint8_t phase)
{
    await_entry(bed, phase, "trainer0");
    testbed_signal(bed, name, SIGKILL);
    testbed_signal(bed, "trainer0", SIGCONT);
    testbed_start(bed, name);
    bool broker = strcmp(name, "broker") == 0;
    testbed_await_log(bed, name, broker ? "actor.hello name=coordinator" : "member.admitted",
                      TESTBED_WAIT_MS);
}

static struct testbed_options options(void)
{
    // A stopped trainer must hold a phase up for longer than it takes to see it, and no lease run
    // out meanwhile. A process that begins again may miss the phase that is wanted next: an epoch
    // or two, where a fast machine has much else to do.
    return (struct testbed_options){ .trainers = 3,
                                     .epoch_rounds = ROUNDS,
                                     .total_steps = 10 * ROUNDS,
                                     .train_s = 1,
                                     .witness_s = 1,
                                     .lease_s = 4,
                                     .cooldown_s = 3,
                                     .min_clients = 1 };
}

static struct testbed_end kill_in_each_phase(void **state, const char *name,
                                             const struct testbed_options *given)
{
    struct testbed *bed = *state = testbed_new(given);
    testbed_start_all(bed);
    testbed_await_step(bed, 2);
    kill_in(bed, name, PHASE_TRAIN);
    kill_in(bed, name, PHASE_WITNESS);
    kill_in(bed, name, PHASE_COOLDOWN);
    kill_in(bed, name, PHASE_WAITING);
    kill_in(bed, name, PHASE_WARMUP);
    struct testbed_end end = testbed_finish(bed);
    assert_int_equal(testbed_actor(bed, name)->lives, 6);
    return end;
}

static void trainer(void **state)
{
    struct testbed_options given = options();
    kill_in_each_phase(state, "trainer1", &given);
}

static void data_provider(void **state)
{
    struct testbed_options given = options();
    kill_in_each_phase(state, "data-provider", &given);
}

static void checkpointer(void **state)
{
    struct testbed_options given = options();
    struct testbed_end end = kill_in_each_phase(state, "checkpointer", &given);
    assert_int_equal(end.ledger.checkpoint_step, end.ledger.commits);
}

static void witness_of_its_own(void **state)
{
    struct testbed_options given = options();
    given.witnesses = 3;
    kill_in_each_phase(state, "witness1", &given);
}

static void broker(void **state)
{
    struct testbed_options given = options();
    kill_in_each_phase(state, "broker", &given);
}

// While there is no broker a trainer comes, and the others finish their batches: all of it counts.
static void a_new_broker_loses_no_commit_result_or_join(void **state)
{
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){ .trainers = 3,
                                                                          .epoch_rounds = 12,
                                                                          .total_steps = 36,
                                                                          .train_s = 10,
                                                                          .witness_s = 10,
                                                                          .lease_s = 10 });
    testbed_start_all(bed);
    testbed_await_step(bed, 3);
    for (int n = 0; n < 3; n++) {
        await_entry(bed, PHASE_TRAIN, NULL);
        testbed_signal(bed, "broker", SIGKILL);
        if (n == 1) testbed_start(bed, "trainer3");
        if (n == 1) testbed_await_log(bed, "trainer3", "actor.ready", TESTBED_WAIT_MS);
        testbed_start(bed, "broker");
        testbed_await_step(bed, bed->news.commits + 2);
    }
    struct testbed_end end = testbed_finish(bed);
    assert_int_equal(end.ledger.voids, 0);
    assert_int_equal(end.ledger.partial, 0);
    assert_int_equal(end.ledger.members, 6);
}

TESTS(TESTBED_TEST(trainer), TESTBED_TEST(data_provider), TESTBED_TEST(checkpointer),
      TESTBED_TEST(witness_of_its_own), TESTBED_TEST(broker),
      TESTBED_TEST(a_new_broker_loses_no_commit_result_or_join))
