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
    const uint32_t count = begin_group(group, trainers + servers);
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
      FOLDER_TEST(each_optimizer_ends_in_the_same_bits))
