// saving_test -- what `up` says of steps that are lost, and when it takes the run for saved or resumed.

#include "actors/shoal/local/lost_steps.c" // The front command's own parts are in no library
#include "actors/shoal/local/saving.c"
#include "actors/shoal/show.c"
#include "tests/test.h"
#include <stdlib.h>

static int owner_rc, observers;
int testnet_become_observer(struct testnet *net, struct why *why)
{
    (void)net, (void)why;
    observers++;
    return 0;
}
int testnet_become_owner(struct testnet *net, struct why *why)
{
    (void)net;
    return owner_rc < 0 ? why_set(why, owner_rc, "coordinator.key: is gone") : 0;
}

enum { BEGIN = 0 };

// The interrupt came at step 8740. The save of 8750 was due anyway, and the run goes on to 8802, where it pauses.
static void a_run_that_goes_on_is_not_saved(void **state)
{
    (void)state;
    static struct run_view view;
    static struct child children[] = { { .name = "broker", .pid = 10 },
                                       { .name = "coordinator", .pid = 11 } };
    static struct testnet net = { .view = &view,
                                  .fleet = { .children = children, .count = 2 },
                                  .coordinator = &children[1] };
    const struct saving saving = { .step = 8740, .end_ms = 1000, .action = ACTION_PAUSE };
    struct wire_run *now = &view.now;
    net.config.strategy = CONFIG_STRATEGY_SHARDED;
    net.config.progress_step = 1;
    now->phase = PHASE_TRAIN;
    now->step = 8799, now->checkpoint_step = 8750, now->checkpoint_pieces = true;
    assert_false(saving_is_over(&saving, &net, 0));
    assert_true(saving_is_over(&saving, &net, 1000)); // The time is up
    now->step = now->checkpoint_step = 8802, now->checkpoint_pieces = false;
    assert_false(saving_is_over(&saving, &net, 0)); // A next epoch may begin
    now->phase = PHASE_PAUSED;
    assert_true(saving_is_over(&saving, &net, 0));
    now->phase = PHASE_COOLDOWN;
    assert_false(saving_is_over(&saving, &net, 0));
    children[1].pid = 0, children[1].due_ms = 5; // It died, and is started again
    assert_false(saving_is_over(&saving, &net, 0));
    children[1].due_ms = 0; // It was told to end: nobody is left who could save
    assert_true(saving_is_over(&saving, &net, 0));
}

// A run in Train, ten steps behind its newest checkpoint.
static struct testnet make_training(void)
{
    static struct run_view view;
    static struct child children[] = { { .name = "broker", .pid = 10 },
                                       { .name = "coordinator", .pid = 11 },
                                       { .name = "checkpointer", .pid = 12 } };
    struct testnet net = { .view = &view,
                           .fleet = { .children = children, .count = 3 },
                           .coordinator = &children[1] };
    net.config.strategy = CONFIG_STRATEGY_SERVER;
    net.config.progress_step = 1;
    net.config.cooldown_ms = 10000, net.config.step_timeout_ms = 30000;
    net.config.task_ms = 1200000;
    view.now = (struct wire_run){ .phase = PHASE_TRAIN, .step = 510, .checkpoint_step = 500 };
    snprintf(net.state_dir, sizeof net.state_dir, "/tmp/saving_test.XXXXXX");
    assert_non_null(mkdtemp(net.state_dir));
    return net;
}

// On a full disk. A run that nobody has the next `up` resume is not paused.
static void what_keeps_from_a_save_is_said(void **state)
{
    (void)state;
    struct testnet net = make_training();
    struct saving saving;
    struct why why = { 0 };
    assert_int_equal(rmdir(net.state_dir), 0);
    assert_true(saving_begin(&saving, &net, 0, &why));
    assert_int_equal(saving.action, ACTION_CHECKPOINT);
    assert_non_null(strstr(why.text, "the run is not paused"));
    owner_rc = FAULT_NOT_FOUND;
    assert_false(saving_begin(&saving, &net, 0, &why));
    assert_string_equal(why.text,
                        "nothing is saved, as the run cannot be told: coordinator.key: is gone");
    owner_rc = 0;
    net.coordinator->pid = 0; // Nobody is there who could be told: no save is announced
    assert_false(saving_begin(&saving, &net, 0, &why));
    net.coordinator->pid = 11;
}

// RUN said that all steps are saved. The trainers have gone on since, and nobody has told us yet.
static void steps_that_were_not_heard_are_saved(void **state)
{
    (void)state;
    struct testnet net = make_training();
    struct wire_run *now = &((struct run_view *)net.view)->now;
    struct saving saving;
    struct why why = { 0 };
    char mark[PATH_MAX + 32];
    now->step = now->checkpoint_step;
    assert_int_equal(saving_at_risk(&net), 0);
    assert_true(saving_may_lose(&net));
    assert_true(saving_begin(&saving, &net, 0, &why));
    assert_int_equal(saving.action, ACTION_PAUSE);
    snprintf(mark, sizeof mark, "%s/" MARK, net.state_dir);
    assert_int_equal(unlink(mark), 0);
    assert_int_equal(rmdir(net.state_dir), 0);
    now->phase = PHASE_PAUSED; // No steps are made
    assert_false(saving_may_lose(&net));
    assert_false(saving_begin(&saving, &net, 0, &why));
    now->phase = PHASE_TRAIN;
    net.config.strategy = CONFIG_STRATEGY_DISTRO; // The checkpointer finds them again
    assert_false(saving_may_lose(&net));
}

// The group ends only after the step in hand, or the tasks that are out.
static void the_work_in_hand_is_waited_for(void **state)
{
    (void)state;
    static struct testnet net;
    struct saving saving;
    struct why why = { 0 };
    char mark[PATH_MAX + 32];
    net = make_training();
    assert_true(saving_begin(&saving, &net, 1000, &why));
    assert_int_equal(saving.action, ACTION_PAUSE);
    assert_int_equal(saving.end_ms, 1000 + 30000 + SAVE_MS);
    net.config.server_mode = CONFIG_SERVER_MODE_ASYNC;
    assert_true(saving_begin(&saving, &net, 1000, &why));
    assert_int_equal(saving.end_ms, 1000 + 1200000 + SAVE_MS);
    assert_string_equal(why.text, "");
    snprintf(mark, sizeof mark, "%s/" MARK, net.state_dir);
    assert_int_equal(unlink(mark), 0);
    assert_int_equal(rmdir(net.state_dir), 0);
}

// The coordinator's BEAT came before its first RUN: whether the run is paused is not known yet.
static void a_run_that_was_not_heard_is_still_to_resume(void **state)
{
    (void)state;
    static struct run_view view;
    static struct testnet net = { .view = &view };
    struct saving resuming = { 0 };
    struct why why;
    char mark[PATH_MAX + 32];
    uint64_t due_ms;
    view.incarnation = 7;
    snprintf(net.state_dir, sizeof net.state_dir, "/tmp/saving_test.XXXXXX");
    assert_non_null(mkdtemp(net.state_dir));
    snprintf(mark, sizeof mark, "%s/" MARK, net.state_dir);
    assert_true(put_mark(&net, &why));
    assert_int_equal(saving_resume(&resuming, &net, 1000, &why, &due_ms), 0);
    assert_int_equal(access(mark, F_OK), 0);
    assert_int_equal(due_ms, 1000 + AGAIN_MS);
    view.has_run = true; // And it is not paused: there is nothing to do
    assert_int_equal(saving_resume(&resuming, &net, 2000, &why, &due_ms), 0);
    assert_int_equal(access(mark, F_OK), -1);
    assert_int_equal(due_ms, UINT64_MAX);
    assert_int_equal(observers, 1);
    assert_int_equal(saving_resume(&resuming, &net, 3000, &why, &due_ms), 0);
    assert_int_equal(observers, 1);
    assert_int_equal(rmdir(net.state_dir), 0);
}

// The first RUN names a restore of days ago. The news of a window may have come before it.
static void an_old_restore_is_not_news(void **state)
{
    (void)state;
    char line[LOST_STEPS_LINE] = "";
    struct lost_steps lost = { .step = 8802 };
    struct wire_run now = {
        .step = 8802, .restored_step = 6500, .restored_epoch = 3, .restore_point_step = 8802
    };
    assert_false(lost_steps_hear(&lost, &now, BEGIN, line));
    assert_false(lost_steps_hear(&lost, &now, BEGIN, line));
    now.step = now.restored_step = 8802, now.restored_epoch = 4;
    lost.step = 8810;
    assert_true(lost_steps_hear(&lost, &now, BEGIN, line));
    assert_string_equal(line, "the run is back at step 8802, its newest checkpoint: 8 steps after "
                              "it are lost and trained again");
    assert_false(lost_steps_hear(&lost, &now, BEGIN, line));
}

static void the_place_of_the_state_is_named(void **state)
{
    (void)state;
    char line[LOST_STEPS_LINE] = "";
    struct lost_steps lost = { 0 };
    struct wire_run now = { .step = 1076, .restore_point_step = 1000, .memory_step = 1070 };
    assert_false(lost_steps_hear(&lost, &now, BEGIN, line));
    lost.step = 1076;
    now.step = now.restored_step = 1070, now.restored_epoch = 1;
    assert_true(lost_steps_hear(&lost, &now, BEGIN, line));
    assert_non_null(strstr(line, "back at step 1070, kept in the members' memory: 6 steps"));
    lost.step = 1090;
    now.step = now.restored_step = 1000, now.restored_epoch = 2;
    now.restore_point_step = 1080; // It was recorded before we heard
    assert_true(lost_steps_hear(&lost, &now, BEGIN, line));
    assert_non_null(strstr(line, "back at step 1000, its newest checkpoint: 90 steps"));
    lost.step = 5;
    now = (struct wire_run){ .restored_epoch = 3 };
    assert_true(lost_steps_hear(&lost, &now, BEGIN, line));
    assert_non_null(strstr(line, "back at step 0, its beginning: 5 steps"));
}

TESTS(TEST(a_run_that_goes_on_is_not_saved), TEST(a_run_that_was_not_heard_is_still_to_resume),
      TEST(what_keeps_from_a_save_is_said), TEST(steps_that_were_not_heard_are_saved),
      TEST(the_work_in_hand_is_waited_for), TEST(an_old_restore_is_not_news),
      TEST(the_place_of_the_state_is_named))
