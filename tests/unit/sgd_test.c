// sgd_test -- SGD against torch's, and its bits against themselves.

#include "common/kernel/kernels.h"
#include "common/optimizer/sgd.h"
#include "tests/unit/torch_golden.h"

#include <stdlib.h>
#include <string.h>

static void follow_torch(const char *name, bool nesterov)
{
    static float v[256];
    golden_begin(name);
    memset(v, 0, sizeof v);
    const struct sgd sgd = {
        .options = { golden.momentum, golden.weight_decay, nesterov },
        .layout = &golden.layout,
        .at = { 0, golden.layout.total },
        .v = golden.momentum > 0 ? v : NULL,
    };
    assert_int_equal(sgd_check(&sgd.options, NULL), 0);
    for (uint32_t step = 0; step < golden.steps; step++) {
        sgd_step(&sgd, golden.gradients[step], golden.rates[step], golden.params);
        golden_compare("parameter", step, golden.params, 2e-7);
    }
    assert_int_equal(golden.moments, sgd.v ? 1 : 0);
    if (sgd.v) golden_compare("momentum", golden.steps, v, 2e-6);
    golden_end();
}

static void is_as_torch(void **state)
{
    (void)state;
    follow_torch("sgd", false);
    follow_torch("sgd-momentum", false);
    follow_torch("sgd-nesterov", true);
}

enum { ROWS = 211, COLS = 203, COUNT = 1037, FLOATS = ROWS * COLS + COUNT };

static float number(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return ldexpf((float)(*seed >> 40) - 0x1p23f, -23 - (int)(*seed >> 32 & 15));
}

// Four steps by this set of kernels and so many threads, each in two shares that are cut where no tensor ends.
static void take_steps(const struct layout *layout, uint32_t threads, float *params, float *v)
{
    enum { CUT = 1 << 14 };
    static float gradient[FLOATS];
    pool_t *pool = pool_new(threads);
    struct sgd low = { .options = { 0.9, 0.01, true }, .layout = layout, .pool = pool };
    uint64_t seed = 77;
    for (uint64_t i = 0; i < FLOATS; i++) params[i] = number(&seed);
    memset(v, 0, FLOATS * sizeof *v);
    struct sgd high = low;
    low.at = (struct interval){ 0, CUT }, low.v = v;
    high.at = (struct interval){ CUT, FLOATS }, high.v = v + CUT;
    for (uint32_t step = 0; step < 4; step++) {
        for (uint64_t i = 0; i < FLOATS; i++) gradient[i] = number(&seed);
        sgd_step(&high, gradient, 1e-3f * (float)(step + 1), params);
        sgd_step(&low, gradient, 1e-3f * (float)(step + 1), params);
    }
    pool_destroy(&pool);
}

static void all_processors_and_threads_have_the_same_bits(void **state)
{
    static const char *const isas[] = { "base", "avx2", "avx512", "avx512bf16", "amx" };
    static float expected[FLOATS], params[FLOATS], v[FLOATS];
    struct layout_tensor room[2];
    struct layout layout;
    (void)state;
    layout_init(&layout, room, 2);
    assert_int_equal(layout_add_matrix(&layout, "a", ROWS, COLS, LAYOUT_F32, NULL), 0);
    assert_int_equal(layout_add_vector(&layout, "b", COUNT, LAYOUT_F32, NULL), 0);
    assert_true(learn_set_isa("base"));
    take_steps(&layout, 1, expected, v);
    for (size_t isa = 0; isa < sizeof isas / sizeof *isas; isa++) {
        if (!learn_set_isa(isas[isa])) continue;
        for (uint32_t threads = 1; threads <= 3; threads++) {
            take_steps(&layout, threads, params, v);
            if (memcmp(params, expected, sizeof params) != 0)
                fail_msg("%s with %u threads: other bits", isas[isa], threads);
        }
    }
    learn_set_isa("best");
}

static void options_out_of_range_are_refused(void **state)
{
    static const struct {
        struct sgd_options options;
        const char *name;
    } cases[] = {
        { { 1.0, 0, false }, "momentum = 1" },   { { NAN, 0, false }, "momentum" },
        { { -0.1, 0, false }, "momentum" },      { { 0.9, -1, false }, "weight_decay" },
        { { 0.9, 1e9, false }, "weight_decay" }, { { 0, 0, true }, "nesterov" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct why why = { 0 };
        assert_int_equal(sgd_check(&cases[i].options, &why), FAULT_RANGE);
        assert_non_null(strstr(why.text, cases[i].name));
    }
}

TESTS(TEST(is_as_torch), TEST(all_processors_and_threads_have_the_same_bits),
      TEST(options_out_of_range_are_refused))
