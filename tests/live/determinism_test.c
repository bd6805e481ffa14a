// The same configuration, seed and identities give the same bits, however many threads compute
// them.

#include "tests/live/testbed.h"
#include "tests/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct hash first; // Digest of the first run, for the others

static void run_with(void **state, unsigned threads)
{
    // No trainer is late: a round waits longer than this machine can be busy.
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){ .trainers = 3,
                                                                          .total_steps = 12,
                                                                          .epoch_rounds = 6,
                                                                          .train_s = 20,
                                                                          .witness_s = 20,
                                                                          .lease_s = 20,
                                                                          .warmup_s = 20,
                                                                          .cooldown_s = 20,
                                                                          .threads = threads });
    testbed_start_all(bed);
    struct testbed_end end = testbed_finish(bed);
    assert_int_equal(end.ledger.voids, 0);
    assert_int_equal(end.ledger.partial, 0);
    if (hash_is_none(&first)) first = end.digest;
    assert_true(hash_equal(&first, &end.digest));
}

static void a_run_ends_in_some_digest(void **state) { run_with(state, 1); }
static void once_more_it_ends_in_the_same(void **state) { run_with(state, 1); }
static void two_threads_make_no_difference(void **state) { run_with(state, 2); }
static void four_threads_make_no_difference(void **state) { run_with(state, 4); }

// A run with one trainer in it, and the same state.toml without any run.
static void alone_it_is_what_shoal_train_does(void **state)
{
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){ .trainers = 1,
                                                                          .total_steps = 12,
                                                                          .epoch_rounds = 6,
                                                                          .train_s = 20,
                                                                          .witness_s = 20,
                                                                          .lease_s = 20,
                                                                          .warmup_s = 20,
                                                                          .cooldown_s = 20 });
    char command[1200], said[4096], hex[HASH_HEX], path[512];
    testbed_start_all(bed);
    const struct testbed_end end = testbed_finish(bed);
    assert_int_equal(end.ledger.voids, 0);
    snprintf(path, sizeof path, "%s/train.json", bed->dir);
    snprintf(command, sizeof command,
             "cd '%s' && '%s/shoal' train state.toml --data-config "
             "data.toml --no-checkpoint --threads 2 --json > '%s' 2> train.log",
             bed->dir, bed->bin, path);
    assert_int_equal(system(command), 0);
    testbed_read_file(path, said, sizeof said);
    if (!strstr(said, hash_to_hex(&end.digest, hex)))
        testbed_fail(bed, "the run ends in %s, shoal train says %s", hex, said);
}

TESTS(TESTBED_TEST(a_run_ends_in_some_digest), TESTBED_TEST(once_more_it_ends_in_the_same),
      TESTBED_TEST(two_threads_make_no_difference), TESTBED_TEST(four_threads_make_no_difference),
      TESTBED_TEST(alone_it_is_what_shoal_train_does))
