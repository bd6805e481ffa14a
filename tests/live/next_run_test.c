// A finished run goes on as another one, as config/README.md says under "After the end": from its
// checkpoint, with the numbers of its steps and samples, under another name and in a folder of its
// own. A checkpointer comes where the first one's folder is not: it has the parameters from the
// others.

#include "common/checkpoint/checkpoint.h"
#include "tests/live/testbed.h"
#include "tests/test.h"
#include <stdio.h>

enum { STEPS = 16, MORE = 256 };

static struct testbed *first, *next;

static uint64_t saved_cursor(const char *root)
{
    struct why why;
    checkpoint_t *checkpoint;
    assert_int_equal(checkpoint_open(root, STEPS, first->options.run_id, &why, &checkpoint), 0);
    const uint64_t cursor = checkpoint_info(checkpoint)->cursor;
    checkpoint_close(&checkpoint);
    return cursor;
}

static void a_finished_run_goes_on_as_another(void **state)
{
    (void)state;
    char root[512], folder[600], away[600];
    first = testbed_new(
        &(struct testbed_options){ .trainers = 3, .epoch_rounds = 8, .total_steps = STEPS });
    testbed_start_all(first);
    const struct hash digest = testbed_finish(first).digest;
    snprintf(root, sizeof root, "%s/checkpoints", first->dir);
    snprintf(folder, sizeof folder, "%s/step-00000016", root);
    snprintf(away, sizeof away, "%s/away", first->dir);
    const uint64_t cursor = saved_cursor(root);

    next = testbed_new(&(struct testbed_options){ .run_id = "next",
                                                  .trainers = 3,
                                                  .epoch_rounds = 16,
                                                  .total_steps = STEPS + MORE,
                                                  .genesis = folder,
                                                  .first_step = STEPS + 1,
                                                  .first_sample = cursor });
    testbed_start(next, "broker");
    testbed_start(next, "coordinator");
    testbed_start(next, "data-provider");
    for (unsigned i = 0; i < 3; i++) testbed_start(next, testbed_trainer(i));
    testbed_await_step(next, STEPS + 1);
    assert_int_equal(rename(folder, away), 0);
    testbed_start(next, "checkpointer");
    const struct testbed_end end = testbed_finish(next);
    assert_int_equal(end.ledger.commits, STEPS + MORE);
    assert_int_equal(end.ledger.checkpoint_step, STEPS + MORE);
    assert_int_equal(end.ledger.first_sample, cursor);
    assert_true(hash_equal(&end.ledger.base[STEPS], &digest));
    assert_false(hash_equal(&end.digest, &digest));
    assert_true(testbed_log_has(next, "checkpointer", "model.fetched", NULL, 0));
    assert_true(testbed_log_has(next, "checkpointer", "checkpoint.no_tokenizer", NULL, 0));
    for (unsigned i = 0; i < 3; i++) // They had it, and fetched it from no peer
        assert_false(testbed_log_has(next, testbed_trainer(i), "model.fetched", NULL, 0));
}

static int tear_down(void **state)
{
    (void)state;
    testbed_destroy(&next);
    testbed_destroy(&first);
    return 0;
}

TESTS(TEST_WITH(a_finished_run_goes_on_as_another, NULL, tear_down))
