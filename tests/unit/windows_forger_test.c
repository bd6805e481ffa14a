// windows_forger_test -- a learner and a member that holds the key of its place, sums as it should, and else says what
// it likes over the links of their group. Whatever that is, the learner's process lives, its window breaks in time, and
// the fault names the other one.

#include "common/vector/state_cut.h"
#include "tests/unit/windows_fixture.h"

#include <float.h>
#include <math.h>

enum { PATIENCE_MS = 5000, FORGER = 1 };

struct forger {
    struct member member; // Its name and its address
    group_t *links;
    struct plan plan;
    float *vector; // What it brings to a sum, then room for the result
    uint64_t floats, sums;
};

// The learner in place 0 and the forger in place 1 begin a window of so many steps.
static void begin_with_forger(struct forger *self, uint32_t steps)
{
    uint8_t secret[SECRET_BYTES] = { FORGER + 1 };
    struct identity *identity;
    struct why why = { 0 };
    struct group_blame blame;
    *self = (struct forger){ 0 };
    be_born(&members[0], 0, 0, NULL);
    assert_int_equal(identity_from_secret(secret, NULL, &identity), 0);
    const struct group_options options = { identity,       "r", 77, "127.0.0.1:0", GROUP_PLAIN, 1,
                                           .called_fd = -1 };
    assert_int_equal(group_new(&options, &why, &self->links), 0);
    self->member = (struct member){ .identity = identity, .instance = 77 };
    snprintf(self->member.endpoint, sizeof self->member.endpoint, "tcp://127.0.0.1:%u",
             group_port(self->links));
    struct member *both[] = { &members[0], &self->member };
    plan_window(&self->plan, &(struct course){ 0, 0 }, steps, both, 2);
    give_one(&self->plan, both, 0);
    struct group_member group[2];
    for (int i = 0; i < 2; i++) {
        group[i] =
            (struct group_member){ self->plan.linked[i].key, self->plan.linked[i].instance, "" };
        memcpy(group[i].endpoint, self->plan.linked[i].endpoint, sizeof group[i].endpoint);
    }
    assert_int_equal(
        group_form(self->links, self->plan.job.number, group, 2, FORGER, PATIENCE_MS, &why, &blame),
        0);
    self->floats = built_cut.bytes[0] / sizeof(float);
    self->vector = calloc(2 * self->floats, sizeof *self->vector);
    assert_non_null(self->vector);
}

static void end_with_forger(struct forger *self)
{
    group_destroy(&self->links);
    identity_destroy(&self->member.identity);
    free(self->vector);
    end_group();
}

// Zeros, or what else is in the vector.
static void sum(struct forger *self, enum group_way way, uint64_t floats, uint32_t lanes,
                uint32_t batch)
{
    const float *nodes[LANE_NODES_MAX];
    struct why why = { 0 };
    struct group_blame blame;
    for (int i = 0; i < LANE_NODES_MAX; i++) nodes[i] = self->vector;
    const struct group_sum sum = { .way = way,
                                   .number = self->sums++,
                                   .floats = floats,
                                   .lanes = lanes,
                                   .batch = batch,
                                   .nodes = way == GROUP_GATHER ? NULL : nodes,
                                   .result = self->vector + self->floats,
                                   .timeout_ms = PATIENCE_MS };
    if (group_add(self->links, &sum, &why, &blame) < 0) fail_msg("%s", why.text);
}

static void tell(struct forger *self, const struct wire_have *have)
{
    static uint8_t word[GROUP_WORD_MAX];
    struct why why = { 0 };
    struct group_blame blame;
    const size_t count = wire_pack_body(FRAME_HAVE, have, word, sizeof word);
    assert_true(count > 0);
    if (group_tell(self->links, word, count, &why, &blame) < 0) fail_msg("%s", why.text);
}

// The check that the learner says of its state: who says the same seems to hold the same.
static struct hash hear_check(struct forger *self)
{
    _Alignas(8) static uint8_t memory[1 << 17];
    struct wire_arena arena = { .bytes = memory, .max = sizeof memory };
    struct wire_refusal refusal;
    struct why why = { 0 };
    struct group_blame blame;
    uint32_t from;
    const void *bytes, *body;
    size_t count;
    if (group_hear(self->links, PATIENCE_MS, &why, &blame, &from, &bytes, &count) < 0)
        fail_msg("%s", why.text);
    assert_true(wire_unpack_body(bytes, count, FRAME_HAVE, &arena, &body, &refusal));
    return ((const struct wire_have *)body)->check;
}

static void expect_refusal(void)
{
    const struct wire_broke *broke = hear_kind(&members[0], FRAME_BROKE);
    assert_int_equal(broke->missing, FORGER + 1);
    assert_non_null(strstr(broke->reason, "told a HAVE that does not fit"));
}

static void a_have_that_does_not_fit_breaks_the_window(void **state)
{
    struct forger forger;
    (void)state;
    make_files();
    begin_with_forger(&forger, WINDOW);
    sum(&forger, GROUP_ALL, forger.floats, strategy.lanes, batch_at(0));
    tell(&forger,
         &(struct wire_have){ .window = forger.plan.job.number, .first_piece = (uint64_t)1 << 40 });
    expect_refusal();
    end_with_forger(&forger);
}

// Behind the sum of the first step, whose part was all zeros: the check of the learner itself, and these losses.
static void tell_losses(struct forger *self, double (*losses)[4])
{
    begin_with_forger(self, WINDOW);
    sum(self, GROUP_ALL, self->floats, strategy.lanes, batch_at(0));
    const struct wire_have have = { .window = self->plan.job.number,
                                    .check = hear_check(self),
                                    .losses = { (uint8_t *)*losses, sizeof *losses } };
    tell(self, &have);
}

static void a_loss_that_is_no_number_breaks_the_window(void **state)
{
    double losses[][4] = { { 1, 1, 1, NAN }, { 1, INFINITY, 1, 1 }, { -INFINITY, 1, 1, 1 } };
    (void)state;
    make_files();
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        struct forger forger;
        tell_losses(&forger, &losses[i]);
        expect_refusal();
        end_with_forger(&forger);
    }
}

// Numbers, but what follows from them is none that a word to the core can carry.
static void a_loss_that_no_float_can_hold_is_the_largest_one(void **state)
{
    double losses[][4] = { { 1e300, 0, 0, 0 }, { -1e300, 0, 0, 0 }, { 1e308, 1e308, -1e308, 0 } };
    (void)state;
    make_files();
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        struct forger forger;
        tell_losses(&forger, &losses[i]);
        const struct wire_stepped *stepped = hear_kind(&members[0], FRAME_STEPPED);
        assert_true(stepped->step == 1 && fabsf(stepped->loss) == FLT_MAX);
        end_with_forger(&forger);
    }
}

// The first step of `sharded`, up to the words: three of the six pieces of the sum are the forger's to measure.
enum { OWN_PIECES = 3 };
static void tell_squares(struct forger *self, uint32_t steps, double (*squares)[OWN_PIECES])
{
    begin_with_forger(self, steps);
    sum(self, GROUP_GATHER, self->floats, strategy.lanes, strategy.batch_end);
    sum(self, GROUP_SCATTER, self->floats, strategy.lanes, batch_at(0));
    const struct wire_have have = { .window = self->plan.job.number,
                                    .check = hear_check(self),
                                    .squares = { (uint8_t *)*squares, sizeof *squares } };
    tell(self, &have);
}

// No step can be clipped by it. If nobody were named, it could break each window, and stay in the group.
static void a_measure_that_is_no_length_breaks_the_window(void **state)
{
    double squares[][OWN_PIECES] = {
        { 0, NAN, 0 }, { INFINITY, 0, 0 }, { 0, 0, -1e200 }, { DBL_MAX / 2, 0, 0 }
    };
    (void)state;
    share_moments();
    for (size_t i = 0; i < sizeof squares / sizeof *squares; i++) {
        struct forger forger;
        tell_squares(&forger, WINDOW, &squares[i]);
        expect_refusal();
        assert_int_equal(close_window((struct member *[]){ &members[0] }, 1, 0), 0);
        end_with_forger(&forger);
    }
}

// The group of `sharded` ends with a sum of ones, one of each member.
static void a_meeting_that_does_not_add_up_breaks_the_window(void **state)
{
    double squares[OWN_PIECES] = { 0 };
    struct forger forger;
    (void)state;
    share_moments();
    tell_squares(&forger, 1, &squares);
    // Parameters and both moments, each in rounds of a leaf of each share (learner_gather.c)
    const uint64_t leaf = STATE_LEAF_BYTES / sizeof(float);
    const uint64_t rounds = (forger.floats + 2 * leaf - 1) / (2 * leaf);
    for (uint64_t i = 0; i < 3 * rounds; i++) {
        memset(forger.vector + forger.floats, 0, 2 * leaf * sizeof *forger.vector); // Its own leaf
        sum(&forger, GROUP_GATHER, 2 * leaf, strategy.lanes, strategy.batch_end);
    }
    forger.vector[0] = 2;
    sum(&forger, GROUP_ALL, 1, 2, 2);
    const struct wire_broke *broke = hear_kind(&members[0], FRAME_BROKE);
    assert_non_null(strstr(broke->reason, "do not add up"));
    assert_int_equal(close_window((struct member *[]){ &members[0] }, 1, 0), 1);
    end_with_forger(&forger);
}

TESTS(FOLDER_TEST(a_have_that_does_not_fit_breaks_the_window),
      FOLDER_TEST(a_loss_that_is_no_number_breaks_the_window),
      FOLDER_TEST(a_loss_that_no_float_can_hold_is_the_largest_one),
      FOLDER_TEST(a_measure_that_is_no_length_breaks_the_window),
      FOLDER_TEST(a_meeting_that_does_not_add_up_breaks_the_window))
