// windows_servers_test -- some members compute and others own the shares, as with parameter servers: learners in one
// process end in the digest of one that does both alone.

#include "tests/unit/windows_fixture.h"

static struct hash alone; // That of one member alone

// STEPS steps by so many members, the last `servers` of which own the shares.
static struct hash run_with_servers(uint32_t trainers, uint32_t servers)
{
    struct member *group[MEMBERS_MAX_HERE];
    struct course at = { 0, 0 };
    strategy.servers = servers;
    serving = ((1u << servers) - 1) << trainers;
    const uint32_t count = begin_group(group, trainers + servers);
    serving = 0;
    struct hash digest = { { 0 } };
    while (at.step < STEPS) {
        const uint32_t left = (uint32_t)(STEPS - at.step);
        digest = take_steps(&at, left < 5 ? left : 5, group, count);
    }
    end_group();
    strategy.servers = 0;
    return digest;
}

static void any_number_of_each_ends_in_the_same_bits(void **unused)
{
    static const uint32_t counts[][2] = { { 1, 1 }, { 2, 1 }, { 1, 3 }, { 2, 2 }, { 4, 3 } };
    (void)unused;
    share_moments();
    alone = run_with_servers(1, 0);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const struct hash digest = run_with_servers(counts[i][0], counts[i][1]);
        assert_true(hash_equal(&digest, &alone));
    }
}

// All optimizers that sum gradients, with servers and by shares.
static void each_optimizer_ends_in_the_same_bits(void **unused)
{
    static const struct {
        uint8_t optimizer;
        double momentum;
        bool nesterov;
    } kinds[] = { { DESCENT_ADAM, 0, false },
                  { DESCENT_SGD, 0.9, true },
                  { DESCENT_SGD, 0, false } };
    struct hash ends[3];
    (void)unused;
    share_moments();
    for (size_t i = 0; i < 3; i++) {
        strategy.optimizer = kinds[i].optimizer;
        strategy.momentum = kinds[i].momentum, strategy.nesterov = kinds[i].nesterov;
        ends[i] = run_with_servers(1, 0);
        const struct hash by_servers = run_with_servers(2, 2), by_shares = run_with_servers(3, 0);
        assert_true(hash_equal(&by_servers, &ends[i]) && hash_equal(&by_shares, &ends[i]));
    }
    assert_false(hash_equal(&ends[0], &alone) || hash_equal(&ends[1], &ends[2]));
    strategy.optimizer = DESCENT_ADAMW;
}

static void move(struct course *at, uint32_t steps)
{
    for (uint32_t k = 0; k < steps; k++, at->step++) at->samples_done += batch_at(at->samples_done);
}

// It has no state of that step, and owns nothing: the window that follows names it, and nobody ends for it what he is at.
// When the group ends it has all of the state.
static void a_trainer_enters_the_window_that_follows(void **unused)
{
    struct member *before[] = { &members[0], &members[1], &members[2], &members[3] };
    struct member *after[] = { &members[0], &members[4], &members[1], &members[2], &members[3] };
    struct course at = { 0, 0 };
    struct plan plan;
    (void)unused;
    share_moments();
    strategy.servers = 2;
    serving = 1 << 2 | 1 << 3;
    for (uint32_t i = 0; i < 5; i++) be_born(&members[i], i, 0, NULL);
    serving = 0;
    give_window(&at, 5, before, 4);
    move(&at, 5);
    plan_window(&plan, &at, 5, after, 5);
    for (uint32_t i = 0; i < 5; i++) {
        plan.job.enters = after[i] == &members[4];
        give_one(&plan, after, i);
    }
    await_end(after, 5, 10);
    assert_int_equal(close_window(after, 5, 5), 10); // All of one digest
    move(&at, 5);
    go_on_to_the_end(&at, after, 5);
    send_job(&members[4], FRAME_CLOSE_WINDOW, &(struct wire_close_window){ 0, STEPS, true });
    const struct wire_closed_window *closed = hear_kind(&members[4], FRAME_CLOSED_WINDOW);
    assert_true(closed->ok && !closed->share && hash_equal(&closed->digest, &alone));
    end_group();
    strategy.servers = 0;
}

// Its window comes to nothing before its first step: then it holds nothing, and can enter the next one.
static void who_has_entered_and_taken_no_step_enters_again(void **unused)
{
    struct member *before[] = { &members[0], &members[1], &members[2] };
    struct member *after[] = { &members[0], &members[3], &members[1], &members[2] };
    struct course at = { 0, 0 };
    struct plan plan;
    (void)unused;
    share_moments();
    strategy.servers = 2;
    serving = 1 << 1 | 1 << 2;
    for (uint32_t i = 0; i < 4; i++) be_born(&members[i], i, 0, NULL);
    serving = 0;
    struct course behind = at;
    move(&behind, 5);
    plan_window(&plan, &behind, 5, after, 4);
    plan.job.enters = true;
    give_one(&plan, after, 1);
    const struct wire_close_window close = { plan.job.number, 3, false };
    send_job(&members[3], FRAME_CLOSE_WINDOW, &close);
    const struct wire_closed_window *closed = hear_kind(&members[3], FRAME_CLOSED_WINDOW);
    assert_false(closed->ok);
    take_steps(&at, 5, before, 3);
    plan_window(&plan, &at, 5, after, 4);
    for (uint32_t i = 0; i < 4; i++) {
        plan.job.enters = i == 1;
        give_one(&plan, after, i);
    }
    await_end(after, 4, 10);
    assert_int_equal(close_window(after, 4, 5), 10);
    move(&at, 5);
    go_on_to_the_end(&at, after, 4);
    send_job(&members[3], FRAME_CLOSE_WINDOW, &(struct wire_close_window){ 0, STEPS, true });
    closed = hear_kind(&members[3], FRAME_CLOSED_WINDOW);
    assert_true(closed->ok && hash_equal(&closed->digest, &alone));
    end_group();
    strategy.servers = 0;
}

static void a_run_that_servers_cannot_serve_is_refused(void **unused)
{
    (void)unused;
    share_moments();
    be_born(&members[0], 0, 0, NULL);
    strategy.servers = 1;
    strategy.parts = PARTS_NONE;
    tell_build(&members[0], 2);
    const struct wire_built *built = hear_kind(&members[0], FRAME_BUILT);
    assert_false(built->ok);
    assert_non_null(strstr(built->reason, "with 1 servers"));
    strategy.servers = 0;
    end_group();
}

TESTS(FOLDER_TEST(a_run_that_servers_cannot_serve_is_refused),
      FOLDER_TEST(any_number_of_each_ends_in_the_same_bits),
      FOLDER_TEST(a_trainer_enters_the_window_that_follows),
      FOLDER_TEST(who_has_entered_and_taken_no_step_enters_again),
      FOLDER_TEST(each_optimizer_ends_in_the_same_bits))
