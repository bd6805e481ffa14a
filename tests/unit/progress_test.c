// progress_test -- the time left: in the line of `shoal up` and the demo, and in `shoal status`; and
// what a run that waits says.

#include "actors/shoal/local/progress.c" // The front command's own parts are in no library
#include "actors/shoal/run/run_view.c"
#include "actors/shoal/show.c"
#include "actors/shoal/status_line.c"
#include "tests/test.h"

// One time left for all: from the steps per second that the coordinator measures.
static void test_the_time_left_of_a_run(void **state)
{
    (void)state;
    char text[RUN_WORDS_MAX];
    struct wire_run run = {
        .phase = PHASE_TRAIN, .total_steps = 500, .step = 100, .steps_per_s = 2, .silent_ms = 600
    };
    assert_true(run_words_left_s(&run) == 200);
    assert_string_equal(run_words_left(&run, text), ", about 3 min left");
    put_left(&run, text);
    assert_string_equal(text, "ETA 3m20s");
    run.step = 500;
    assert_true(run_words_left_s(&run) == 0);
}

// At first nothing is known. Once no step is made, that is said, unless none is expected.
static void test_a_run_that_makes_no_step(void **state)
{
    (void)state;
    char text[RUN_WORDS_MAX];
    struct wire_run run = {
        .phase = PHASE_TRAIN, .total_steps = 500, .step = 100, .silent_ms = 600
    };
    assert_true(run_words_left_s(&run) < 0);
    assert_string_equal(run_words_left(&run, text), "");
    run.silent_ms = 8600;
    assert_string_equal(run_words_left(&run, text), ", no step for 8 s");
    put_left(&run, text);
    assert_string_equal(text, "no step for 8 s");
    run.phase = PHASE_PAUSED;
    assert_string_equal(run_words_left(&run, text), "");
    run.steps_per_s = 2; // Of before the pause
    assert_true(run_words_left_s(&run) < 0);
    put_left(&run, text);
    assert_string_equal(text, "");
}

static void test_what_a_run_says(void **state)
{
    (void)state;
    char text[RUN_WORDS_MAX];
    struct wire_run run = {
        .phase = PHASE_TRAIN, .step = 100, .total_steps = 460, .tokens_per_s = 41200
    };
    assert_string_equal(run_words_status(run_words_unit(FRAME_ROUNDS_CONFIG), &run, 2.7131, text),
                        "RoundTrain: step 100 of 460, loss 2.713, 41200 tokens/s");
    char loss[RUN_WORDS_LOSS_MAX];
    assert_string_equal(run_words_loss(0, loss), "-");
    assert_string_equal(run_words_loss(9999.5, loss), "9999.500");
    assert_string_equal(run_words_loss(3.4e38, loss), "3.4e+38"); // As most trainers say
    assert_string_equal(run_words_lacks(&run, text), "");
    assert_string_equal(run_words_pending(NULL, ACTOR_TRAINER, &run, text),
                        "waiting for the next epoch: this trainer joined after the present one had "
                        "begun (step 100 of 460)");
    const struct run_unit *windows = run_words_unit(FRAME_WINDOWS_CONFIG);
    assert_string_equal(run_words_status(windows, &run, 0, text),
                        "Train: step 100 of 460, 41200 tokens/s");
    assert_string_equal(run_words_pending(windows, ACTOR_TRAINER, &run, text),
                        "waiting for the next epoch: this trainer joined after the present one had "
                        "begun (step 100 of 460); it may end early to let it in");
    assert_string_equal(run_words_pending(windows, ACTOR_SERVER, &run, text),
                        "standing by: the run has its parameter servers, and this one takes the "
                        "place of one that dies (step 100 of 460)");
    run = (struct wire_run){ .total_steps = 460,
                             .lacks = "waiting for 1 more trainer (init_min_clients 4)" };
    assert_string_equal(run_words_lacks(&run, text),
                        "waiting for 1 more trainer (init_min_clients 4)");
    assert_string_equal(run_words_pending(NULL, ACTOR_TRAINER, &run, text), "");
    assert_string_equal(run_words_status(NULL, &run, 0, text),
                        "WaitingForMembers: step 0 of 460, waiting for 1 more trainer "
                        "(init_min_clients 4)");
    snprintf(run.lacks, sizeof run.lacks, "no witness is in the run");
    assert_string_equal(run_words_lacks(&run, text), "waiting: no witness is in the run");
    // A friend can do nothing about the owner's actors and settings.
    assert_string_equal(run_words_lacks_for_guest(&run, text),
                        "waiting: the owner's witness is not there");
    snprintf(run.lacks, sizeof run.lacks, "no data-provider is in the run");
    assert_string_equal(run_words_lacks_for_guest(&run, text),
                        "waiting: the owner's data-provider is not there");
    snprintf(run.lacks, sizeof run.lacks, "waiting for 2 more trainers (init_min_clients 4)");
    assert_string_equal(run_words_lacks_for_guest(&run, text), "waiting for 2 more trainers");
    assert_false(run_words_is_past(&run));
    snprintf(run.lacks, sizeof run.lacks, "the round's time was up without the results of x");
    assert_string_equal(run_words_lacks(&run, text), run.lacks);
    assert_true(run_words_is_past(&run));
    snprintf(
        run.lacks, sizeof run.lacks,
        "the round's time was up without the results of x (2 of 3 votes lack them); if "
        "unreachable, `shoal doctor` says so; if too slow, raise max_round_train_time (now 30 s)");
    assert_string_equal(run_words_lacks_for_guest(&run, text),
                        "the round's time was up without the results of x (2 of 3 votes lack "
                        "them); if unreachable, `shoal doctor` says so");
    // The name of a trainer is the first word, and nothing waits for it
    snprintf(run.lacks, sizeof run.lacks, "trainer.ben.7d64 is late");
    assert_string_equal(run_words_lacks(&run, text), run.lacks);
    assert_true(run_words_is_past(&run));
    run.lacks[0] = 0;
    assert_string_equal(run_words_lacks_for_guest(&run, text), "");
}

// One that hangs tells nobody that it does.
static void test_a_coordinator_that_is_silent(void **state)
{
    (void)state;
    char line[STATUS_LINE_MAX];
    struct run_view *view = calloc(1, sizeof *view);
    struct progress progress;
    progress_init(&progress, stderr, NULL, 0);
    view->has_run = true, view->now.phase = PHASE_TRAIN, view->now.pending = 2;
    const struct wire_beat beat = { .phase = PHASE_TRAIN };
    hear_beat(view, &beat);
    progress_tick(&progress, view, 1000);
    put_line(&progress, view, 1000 + SILENT_MS, line);
    assert_null(strstr(line, "has said nothing"));
    assert_non_null(strstr(line, "2 pending (until the next epoch)"));
    put_line(&progress, view, 15000, line);
    assert_non_null(strstr(line, "the coordinator has said nothing for 14 s"));
    hear_beat(view, &beat);
    progress_tick(&progress, view, 15000);
    put_line(&progress, view, 15001, line);
    assert_null(strstr(line, "has said nothing"));
    free(view);
}

TESTS(TEST(test_a_coordinator_that_is_silent), TEST(test_the_time_left_of_a_run),
      TEST(test_a_run_that_makes_no_step), TEST(test_what_a_run_says))
