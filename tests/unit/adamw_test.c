// adamw_test -- AdamW and Adam against torch's, and its bits against themselves.

#include "common/kernel/kernels.h"
#include "common/optimizer/adamw.h"
#include "tests/unit/torch_golden.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const isas[] = { "base", "avx2", "avx512", "avx512bf16", "amx" };

// A matrix and a vector, whose sizes are no multiples of anything.
struct world {
    struct layout_tensor room[2];
    struct layout layout;
};

static struct world *world_of(uint64_t rows, uint64_t cols, uint64_t count)
{
    struct world *self = calloc(1, sizeof *self);
    assert_non_null(self);
    layout_init(&self->layout, self->room, 2);
    assert_int_equal(layout_add_matrix(&self->layout, "a", rows, cols, LAYOUT_F32, NULL), 0);
    assert_int_equal(layout_add_vector(&self->layout, "b", count, LAYOUT_F32, NULL), 0);
    return self;
}

// Of an interval, with moments of zero.
static struct adamw *adamw_of(const struct layout *layout, struct interval at,
                              const struct adamw_options *options, pool_t *pool)
{
    struct adamw *self = calloc(1, sizeof *self);
    assert_non_null(self);
    *self = (struct adamw){ *options, layout, at, pool, NULL, NULL, 0 };
    self->m = calloc(interval_length(at), sizeof *self->m);
    self->v = calloc(interval_length(at), sizeof *self->v);
    assert_true(self->m && self->v);
    return self;
}

static void adamw_free(struct adamw *self)
{
    free(self->m);
    free(self->v);
    free(self);
}

static struct interval all_of(const struct layout *layout)
{
    return (struct interval){ 0, layout->total };
}

static void follow_torch(const char *name, bool coupled)
{
    golden_begin(name);
    const struct adamw_options options = { golden.beta1, golden.beta2, golden.eps,
                                           golden.weight_decay, coupled };
    struct adamw *adamw = adamw_of(&golden.layout, all_of(&golden.layout), &options, NULL);
    for (uint32_t step = 0; step < golden.steps; step++) {
        adamw_step(adamw, golden.gradients[step], golden.rates[step], golden.params);
        golden_compare("parameter", step, golden.params, coupled ? 2e-7 : 1e-12);
    }
    assert_int_equal(golden.moments, 2);
    golden_compare("first moment", golden.steps, adamw->m, 2e-7);
    golden_compare("second moment", golden.steps, adamw->v, 1e-12);
    golden_end();
    adamw_free(adamw);
}

static void test_as_torch(void **state)
{
    (void)state;
    follow_torch("adamw", false);
    follow_torch("adam", true);
}

static float number(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return ldexpf((float)(*seed >> 40) - 0x1p23f, -23 - (int)(*seed >> 32 & 15));
}

// Steps 1..count; the parameters afterwards, which the caller frees.
static float *trained(struct adamw *adamw, uint64_t floats, uint32_t first, uint32_t end,
                      float *params)
{
    float *gradient = malloc(floats * sizeof *gradient);
    assert_non_null(gradient);
    for (uint32_t step = first; step < end; step++) {
        uint64_t seed = step + 1;
        for (uint64_t i = 0; i < floats; i++) gradient[i] = number(&seed);
        adamw_step(adamw, gradient, 1e-3f * (float)(step + 1), params);
    }
    free(gradient);
    return params;
}

static float *begin(uint64_t floats)
{
    float *params = malloc(floats * sizeof *params);
    uint64_t seed = 77;
    assert_non_null(params);
    for (uint64_t i = 0; i < floats; i++) params[i] = number(&seed);
    return params;
}

static const struct adamw_options usual = { 0.9, 0.999, 1e-8, 0.01, false };
static const struct adamw_options adam = { 0.9, 0.999, 1e-8, 0.01, true };

static void same_bits(const struct adamw_options *options)
{
    struct world *world = world_of(211, 203, 1037); // Three pieces, the last one short
    const uint64_t floats = world->layout.total;
    struct adamw *alone = adamw_of(&world->layout, all_of(&world->layout), options, NULL);
    assert_true(learn_set_isa("base"));
    float *expected = trained(alone, floats, 0, 4, begin(floats));
    for (size_t isa = 0; isa < sizeof isas / sizeof *isas; isa++) {
        if (!learn_set_isa(isas[isa])) continue;
        for (uint32_t threads = 1; threads <= 3; threads++) {
            pool_t *pool = pool_new(threads);
            struct adamw *adamw = adamw_of(&world->layout, all_of(&world->layout), options, pool);
            float *params = trained(adamw, floats, 0, 4, begin(floats));
            if (memcmp(params, expected, floats * sizeof *params) != 0)
                fail_msg("%s with %u threads: other bits", isas[isa], threads);
            free(params);
            adamw_free(adamw);
            pool_destroy(&pool);
        }
    }
    learn_set_isa("best");
    free(expected);
    adamw_free(alone);
    free(world);
}

static void test_same_bits(void **state)
{
    (void)state;
    same_bits(&usual);
    same_bits(&adam);
}

// Shares that are stepped apart, cut where no tensor ends, are the whole in parts.
static void test_shares_are_the_whole(void **state)
{
    (void)state;
    struct world *world = world_of(211, 203, 1037);
    const uint64_t floats = world->layout.total, cut = 1 << 14;
    struct adamw *whole = adamw_of(&world->layout, all_of(&world->layout), &usual, NULL);
    struct adamw *low = adamw_of(&world->layout, (struct interval){ 0, cut }, &usual, NULL);
    struct adamw *high = adamw_of(&world->layout, (struct interval){ cut, floats }, &usual, NULL);
    float *expected = trained(whole, floats, 0, 3, begin(floats));
    float *params = trained(low, floats, 0, 3, begin(floats));
    assert_memory_equal(params, expected, cut * sizeof *params);
    trained(high, floats, 0, 3, params);
    assert_memory_equal(params, expected, floats * sizeof *params);
    assert_memory_equal(high->v, whole->v + cut, (floats - cut) * sizeof *params);
    free(expected);
    free(params);
    adamw_free(whole);
    adamw_free(low);
    adamw_free(high);
    free(world);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        struct adamw_options options;
        const char *name;
    } cases[] = {
        { { 1.0, 0.9, 1e-8, 0, false }, "beta1" },
        { { -0.1, 0.9, 1e-8, 0, false }, "beta1" },
        { { 0.9, NAN, 1e-8, 0, false }, "beta2" },
        { { 0.9, 0.9, 0, 0, false }, "eps" },
        { { 0.9, 0.9, 1e-8, -1, false }, "weight_decay" },
        { { 0.9, 0.9, 1e-8, 1e9, false }, "weight_decay" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct why why = { 0 };
        assert_int_equal(adamw_check(&cases[i].options, &why), FAULT_RANGE);
        assert_non_null(strstr(why.text, cases[i].name));
    }
    assert_int_equal(adamw_check(&usual, NULL), 0);
}

TESTS(TEST(test_as_torch), TEST(test_same_bits), TEST(test_shares_are_the_whole),
      TEST(test_refusals))
