// Golden rates: Psyche's formulas evaluated with 60 decimal digits (π and the cosine from their
// series) on the very doubles written below, and rounded once to the nearest float. A step of the
// decay has the rate that Psyche gives to the step before it (schedule.h). Golden batch
// sizes: the formula in exact fractions. Both by a program in another language that shares nothing
// with ours.

#include "common/run/schedule.h"
#include "tests/test.h"

#include <stdint.h>
#include <math.h>
#include <string.h>

static const struct schedule constant = {
    .kind = SCHEDULE_CONSTANT,
    .base_lr = 0.01,
    .warmup_init_lr = 0.001,
    .warmup_steps = 10,
};
static const struct schedule linear = {
    .kind = SCHEDULE_LINEAR,
    .base_lr = 0.01,
    .warmup_init_lr = 0.001,
    .warmup_steps = 10,
    .total_steps = 100,
    .final_lr = 0.0001,
};
static const struct schedule cosine = {
    .kind = SCHEDULE_COSINE,
    .base_lr = 0.01,
    .warmup_init_lr = 0.001,
    .warmup_steps = 10,
    .total_steps = 110,
    .final_lr = 0,
};
static const struct schedule long_cosine = {
    .kind = SCHEDULE_COSINE,
    .base_lr = 4e-4,
    .warmup_init_lr = 0,
    .warmup_steps = 500,
    .total_steps = 25000,
    .final_lr = 4e-5,
};
static const struct schedule stable_decay = {
    .kind = SCHEDULE_WARMUP_STABLE_DECAY,
    .base_lr = 0.01,
    .warmup_init_lr = 0.001,
    .warmup_steps = 10,
    .stable_steps = 60,
    .cosine_decay_steps = 110,
    .cosine_decay_final_lr = 0.001,
    .linear_decay_steps = 20,
    .linear_decay_final_lr = 0,
};

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

struct golden {
    uint32_t step, bits;
};

static void assert_golden(const struct schedule *schedule, const struct golden *golden,
                          size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_int_equal(bits_of(schedule_rate(schedule, golden[i].step, NULL)), golden[i].bits);
}

static void rates_are_those_of_psyche(void **state)
{
    (void)state;
    static const struct golden of_constant[] = {
        { 1, 0x3AF9096C },  { 5, 0x3BB43958 },  { 9, 0x3C15182B },
        { 10, 0x3C23D70A }, { 11, 0x3C23D70A }, { 1000, 0x3C23D70A },
    };
    static const struct golden of_linear[] = {
        { 1, 0x3AF9096C },   { 5, 0x3BB43958 },   { 10, 0x3C23D70A }, { 11, 0x3C23D70A },
        { 12, 0x3C2209AB },  { 56, 0x3BA57A78 },  { 78, 0x3B2C5C14 }, { 100, 0x395C3372 },
        { 101, 0x38D1B717 }, { 200, 0x38D1B717 },
    };
    static const struct golden of_cosine[] = {
        { 5, 0x3BB43958 },  { 10, 0x3C23D70A }, { 11, 0x3C23D70A }, { 12, 0x3C23CCB1 },
        { 36, 0x3C0BD8A0 }, { 61, 0x3BA3D70A }, { 86, 0x3ABFF354 }, { 110, 0x36259224 },
        { 111, 0 },         { 112, 0 },         { 4000000000, 0 },
    };
    static const struct golden of_long_cosine[] = {
        { 1, 0x3556BF95 },     { 499, 0x39D14BB8 },   { 500, 0x39D1B717 },   { 501, 0x39D1B717 },
        { 502, 0x39D1B717 },   { 6626, 0x39B61307 },  { 12346, 0x39707BF7 }, { 12751, 0x3966AFCD },
        { 20001, 0x389ED995 }, { 25000, 0x3827C5AD }, { 25001, 0x3827C5AC },
    };
    static const struct golden of_stable_decay[] = {
        { 1, 0x3AF9096C },   { 5, 0x3BB43958 },   { 10, 0x3C23D70A },  { 70, 0x3C23D70A },
        { 71, 0x3C23D70A },  { 72, 0x3C23CF58 },  { 126, 0x3BB43958 }, { 151, 0x3B27525C },
        { 180, 0x3A835002 }, { 181, 0x3A83126F }, { 191, 0x3A03126F }, { 200, 0x3851B717 },
        { 201, 0 },          { 250, 0 },
    };
    assert_golden(&constant, of_constant, sizeof of_constant / sizeof of_constant[0]);
    assert_golden(&linear, of_linear, sizeof of_linear / sizeof of_linear[0]);
    assert_golden(&cosine, of_cosine, sizeof of_cosine / sizeof of_cosine[0]);
    assert_golden(&long_cosine, of_long_cosine, sizeof of_long_cosine / sizeof of_long_cosine[0]);
    assert_golden(&stable_decay, of_stable_decay,
                  sizeof of_stable_decay / sizeof of_stable_decay[0]);
}

// Every step of a long run against the C library's cosine: the same float, but for a rare last bit.
static void the_cosine_is_right_at_every_step(void **state)
{
    (void)state;
    uint32_t differ = 0;
    for (uint32_t step = 500; step < 25000; step++) {
        const double progress = (step - 500) / 24500.0;
        const float expected = (float)(4e-5 + (4e-4 - 4e-5) * 0.5 * (1 + cos(acos(-1) * progress)));
        const uint32_t bits = bits_of(schedule_rate(&long_cosine, step + 1, NULL));
        const int64_t off = (int64_t)bits - bits_of(expected);
        assert_true(off >= -1 && off <= 1);
        differ += off != 0;
    }
    assert_true(differ < 10);
}

// Between its ends a schedule never jumps and never leaves [lowest, highest].
static void rates_go_where_they_should(void **state)
{
    (void)state;
    const struct schedule *all[] = { &constant, &linear, &cosine, &long_cosine, &stable_decay };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        float last = schedule_rate(all[i], 1, NULL);
        for (uint32_t step = 2; step < 30000; step++) {
            const float now = schedule_rate(all[i], step, NULL);
            if (step <= all[i]->warmup_steps) assert_true(now >= last);
            else assert_true(now <= last);
            assert_true(now >= 0 && now <= (float)all[i]->base_lr);
            last = now;
        }
    }
}

// Each step learns, the first and the last too, when the rate rises from 0 and falls to 0.
static void no_step_is_lost_at_either_end(void **state)
{
    (void)state;
    static const struct schedule from_0_to_0[] = {
        { .kind = SCHEDULE_LINEAR, .base_lr = 8, .warmup_steps = 2, .total_steps = 4 },
        { .kind = SCHEDULE_LINEAR, .base_lr = 8, .total_steps = 4 },
        { .kind = SCHEDULE_COSINE, .base_lr = 8, .warmup_steps = 2, .total_steps = 4 },
        { .kind = SCHEDULE_WARMUP_STABLE_DECAY,
          .base_lr = 8,
          .warmup_steps = 1,
          .stable_steps = 1,
          .linear_decay_steps = 2,
          .cosine_decay_final_lr = 8 },
        { .kind = SCHEDULE_LINEAR, .base_lr = 8, .warmup_steps = 4, .total_steps = 4 },
    };
    static const float rates[][5] = { { 4, 8, 8, 4, 0 },
                                      { 8, 6, 4, 2, 0 },
                                      { 4, 8, 8, 4, 0 },
                                      { 8, 8, 8, 4, 0 },
                                      { 2, 4, 6, 8, 0 } };
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
        for (uint32_t step = 1; step <= 5; step++)
            assert_int_equal(bits_of(schedule_rate(&from_0_to_0[i], step, NULL)),
                             bits_of(rates[i][step - 1]));
}

static void parts_of_no_length_are_skipped(void **state)
{
    (void)state;
    struct schedule edge = {
        // From Psyche's own tests
        .kind = SCHEDULE_WARMUP_STABLE_DECAY,
        .base_lr = 0.01,
        .warmup_init_lr = 0.001,
        .cosine_decay_final_lr = 0.001,
        .linear_decay_final_lr = 0.001,
    };
    assert_int_equal(bits_of(schedule_rate(&edge, 1, NULL)), bits_of(0.001f));
    edge = constant;
    edge.warmup_steps = 0;
    assert_int_equal(bits_of(schedule_rate(&edge, 1, NULL)), bits_of(0.01f));
    edge = cosine;
    edge.total_steps = edge.warmup_steps;
    assert_int_equal(bits_of(schedule_rate(&edge, 10, NULL)), bits_of(0.01f));
    assert_int_equal(bits_of(schedule_rate(&edge, 11, NULL)), bits_of(0.0f));
    edge = stable_decay; // Sums beyond 32 bits
    edge.stable_steps = edge.cosine_decay_steps = edge.linear_decay_steps = UINT32_MAX;
    assert_int_equal(bits_of(schedule_rate(&edge, UINT32_MAX, NULL)), bits_of(0.01f));
}

static void a_cold_start_rises_from_zero(void **state)
{
    (void)state;
    const struct cold_start cold = { .start = 100, .steps = 4 };
    const struct cold_start none = { .start = 100, .steps = 0 };
    static const double factors[] = { 1, 0, 0.25, 0.5, 0.75, 1, 1 }; // Steps 99 to 105
    for (uint32_t i = 0; i < sizeof factors / sizeof factors[0]; i++) {
        const float expected = (float)(0.01 * factors[i]);
        assert_int_equal(bits_of(schedule_rate(&constant, 99 + i, &cold)), bits_of(expected));
        assert_int_equal(bits_of(schedule_rate(&constant, 99 + i, &none)), bits_of(0.01f));
    }
    const struct cold_start late = { .start = UINT32_MAX, .steps = 1000 };
    assert_int_equal(bits_of(schedule_rate(&constant, 99, &late)), bits_of(0.01f));
}

static void batch_sizes_are_exact(void **state)
{
    (void)state;
    static const struct {
        uint32_t start, end;
        uint64_t warmup, tokens;
        uint32_t expected;
    } golden[] = {
        { 1, 4, 6, 1, 2 },
        { 16, 512, 1000000000, 0, 16 },
        { 16, 512, 1000000000, 1, 16 },
        { 16, 512, 1000000000, 999999999, 512 },
        { 16, 512, 1000000000, 1000000000, 512 },
        { 16, 512, 1000000000, 123456789, 77 },
        { 1, 65535, UINT64_MAX, 9223372036854775808u, 32768 },
        { 1, 65535, UINT64_MAX, UINT64_MAX - 1, 65535 },
        { 8, 8, 100, 50, 8 },
        { 4, 9, 0, 0, 9 },
        { 142, 1225, 6498, 4797, 942 }, // An exact half that doubles miss
        { 0, UINT32_MAX, UINT64_MAX, UINT64_MAX - 1, UINT32_MAX },
    };
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++)
        assert_int_equal(
            schedule_batch_size(golden[i].start, golden[i].end, golden[i].warmup, golden[i].tokens),
            golden[i].expected);
    // All small cases: the nearest whole number, the upper one at a half.
    for (uint32_t start = 1; start <= 8; start++)
        for (uint32_t end = start; end <= 16; end++)
            for (uint32_t warmup = 1; warmup <= 40; warmup++)
                for (uint32_t tokens = 0; tokens < warmup; tokens++) {
                    const uint32_t size = schedule_batch_size(start, end, warmup, tokens);
                    const uint32_t twice = 2 * (end - start) * tokens; // Over 2 · warmup
                    assert_true(size >= start);
                    assert_true(2 * warmup * (size - start) <= twice + warmup);
                    assert_true(2 * warmup * (size - start) + warmup > twice);
                }
}

TESTS(TEST(rates_are_those_of_psyche), TEST(the_cosine_is_right_at_every_step),
      TEST(rates_go_where_they_should), TEST(no_step_is_lost_at_either_end),
      TEST(parts_of_no_length_are_skipped), TEST(a_cold_start_rises_from_zero),
      TEST(batch_sizes_are_exact))
