// A finished run goes on as another one, as README says under "After the end": from its checkpoint, with
// the numbers of its steps and samples, under the same name and keys.

#include "common/vector/checkpoint.h"
#include "tests/live/testbed.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

enum { STEPS = 16, MORE = 8 };

static void move(struct testbed *bed, const char *from, const char *to)
{
    char source[600], target[600];
    snprintf(source, sizeof source, "%s/%s", bed->dir, from);
    snprintf(target, sizeof target, "%s/%s", bed->dir, to);
    assert_int_equal(rename(source, target), 0);
}

static uint64_t saved_cursor(struct testbed *bed, const char *root)
{
    char dir[600];
    struct why why;
    checkpoint_t *checkpoint;
    snprintf(dir, sizeof dir, "%s/%s", bed->dir, root);
    assert_int_equal(checkpoint_open(dir, STEPS, bed->options.run_id, &why, &checkpoint), 0);
    const uint64_t cursor = checkpoint_info(checkpoint)->cursor;
    checkpoint_close(&checkpoint);
    return cursor;
}

static void a_finished_run_goes_on_as_another(void **state)
{
    struct testbed *bed = *state = testbed_new(
        &(struct testbed_options){ .trainers = 3, .epoch_rounds = 8, .total_steps = STEPS });
    testbed_start_all(bed);
    const struct testbed_end first = testbed_finish(bed);

    // Only the folder named in the file has the parameters: no checkpoint of its own is found by anybody.
    move(bed, "coordinator", "first");
    move(bed, "checkpoints", "before");
    bed->options.genesis = "before/step-00000016";
    bed->options.first_step = STEPS + 1;
    bed->options.first_sample = saved_cursor(bed, "before");
    bed->options.total_steps = STEPS + MORE;
    testbed_write_state(bed, "state.toml");
    bed->news = (struct testbed_news){ 0 };
    const char *const anew[] = { "--begin-anew", NULL };
    testbed_start(bed, "broker");
    testbed_start_with(bed, "coordinator", &(struct testbed_launch){ .args = anew });
    testbed_start(bed, "data-provider");
    testbed_start(bed, "checkpointer");
    for (unsigned i = 0; i < 3; i++) testbed_start(bed, testbed_trainer(i));
    const struct testbed_end next = testbed_finish(bed);

    assert_int_equal(next.ledger.starts, 1);
    assert_int_equal(next.ledger.commits, STEPS + MORE);
    assert_int_equal(next.ledger.first_sample, bed->options.first_sample);
    assert_true(hash_equal(&next.ledger.base[STEPS], &first.digest));
    assert_false(hash_equal(&next.digest, &first.digest));
    for (unsigned i = 0; i < 3; i++)                // They had it, and fetched it from nobody
        assert_false(testbed_log_has(bed, testbed_trainer(i), "model.fetched", NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_finished_run_goes_on_as_another, testbed_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
