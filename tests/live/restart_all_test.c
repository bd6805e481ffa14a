// Everything is killed at once, commits after the newest checkpoint, and started again: the
// checkpoint and the blobs that the checkpointer kept lead to the committed digest, and no sample
// is trained twice.

#include "tests/live/testbed.h"
#include "tests/test.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

static bool is_past_checkpoint(struct testbed *bed, const void *arg)
{
    const struct testbed_news *news = &bed->news;
    uint64_t checkpoint = news->run.checkpoint_step;
    return checkpoint > 0 && news->commits >= checkpoint + *(const uint64_t *)arg;
}

static void kill_all_and_begin_again(void **state, unsigned snapshot_rounds, bool before_checkpoint)
{
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){
        .trainers = 3, .epoch_rounds = 10, .total_steps = 30, .snapshot_rounds = snapshot_rounds });
    uint64_t after = 4;
    testbed_start_all(bed);
    if (before_checkpoint) testbed_await_step(bed, 5);
    else
        testbed_await(bed, is_past_checkpoint, &after, TESTBED_WAIT_MS,
                      "four commits after a checkpoint");
    testbed_kill_all(bed);
    uint64_t committed = bed->news.commits, checkpoint = bed->news.run.checkpoint_step;
    print_message("killed at step %" PRIu64 ", checkpoint of step %" PRIu64 "\n", committed,
                  checkpoint);
    bed->news.has_run = false;
    testbed_start_all(bed);
    struct testbed_end end = testbed_finish(bed);

    // The trainers have nothing on disk: what they went on from came out of checkpoint and blobs.
    // The commit after the kill names its digest, by two thirds; those before it are the first
    // life's.
    assert_true(end.ledger.starts == 2);
    assert_false(hash_is_none(&end.ledger.base[committed]));
    for (uint64_t step = 0; step < end.ledger.commits; step++)
        if (!hash_is_none(&bed->news.digests[step]))
            assert_true(hash_equal(&bed->news.digests[step], &end.ledger.base[step]));
    assert_true(testbed_log_has(bed, "checkpointer", "checkpoint.found", NULL, 0));
    for (unsigned i = 0; i < 3; i++)
        assert_true(testbed_log_has(bed, testbed_trainer(i), "model.fetched", NULL, 0));
}

static void a_snapshot_lies_between(void **state) { kill_all_and_begin_again(state, 2, false); }
static void no_snapshot_lies_between(void **state) { kill_all_and_begin_again(state, 64, false); }
static void no_checkpoint_but_genesis_is_there(void **state)
{
    kill_all_and_begin_again(state, 2, true);
}

TESTS(TESTBED_TEST(a_snapshot_lies_between), TESTBED_TEST(no_snapshot_lies_between),
      TESTBED_TEST(no_checkpoint_but_genesis_is_there))
