// adamw_test -- the optimizer against torch's, and its bits against themselves.

#include "common/kernel/kernels.h"
#include "common/optimizer/adamw.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char *const isas[] = { "base", "avx2", "avx512", "avx512bf16" };

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

static adamw_t *adamw_of(const struct layout *layout, const struct adamw_options *options,
                         pool_t *pool)
{
    adamw_t *self;
    assert_int_equal(adamw_new(layout, options, pool, NULL, &self), 0);
    return self;
}

static void read_all(FILE *file, void *to, size_t bytes)
{
    assert_int_equal(fread(to, 1, bytes, file), bytes);
}

// `apart` is for what cancels: gradients of up to 30 leave their rounding in a small first moment.
static void assert_near(const char *what, uint32_t step, uint64_t i, float ours, double theirs,
                        double apart)
{
    if (!(fabs((double)ours - theirs) <= 2e-6 * fabs(theirs) + apart))
        fail_msg("step %u, %s %llu: %.9g, torch has %.9g", step, what, (unsigned long long)i,
                 (double)ours, theirs);
}

// tests/numeric/adamw/make_golden.py tells the layout of the file.
static void test_as_torch(void **state)
{
    (void)state;
    enum { STEPS_MAX = 64, FLOATS_MAX = 256 };
    static float params[FLOATS_MAX], rates[STEPS_MAX], gradients[STEPS_MAX][FLOATS_MAX];
    static double theirs[FLOATS_MAX];
    char magic[8];
    uint32_t sizes[4];
    double numbers[4];
    FILE *file = fopen("tests/numeric/adamw/adamw.golden", "rb");
    assert_non_null(file);
    read_all(file, magic, sizeof magic);
    read_all(file, sizes, sizeof sizes);
    read_all(file, numbers, sizeof numbers);
    assert_memory_equal(magic, "SHOALADW", 8);
    const uint64_t count = (uint64_t)sizes[0] * sizes[1] + sizes[2];
    assert_true(count <= FLOATS_MAX && sizes[3] <= STEPS_MAX);
    struct world *world = world_of(sizes[0], sizes[1], sizes[2]);
    const struct adamw_options options = { numbers[0], numbers[1], numbers[2], numbers[3] };
    adamw_t *adamw = adamw_of(&world->layout, &options, NULL);
    read_all(file, params, count * sizeof *params);
    for (uint32_t step = 0; step < sizes[3]; step++) {
        read_all(file, &rates[step], sizeof rates[step]);
        read_all(file, gradients[step], count * sizeof(float));
    }
    for (uint32_t step = 0; step < sizes[3]; step++) {
        adamw_step(adamw, gradients[step], rates[step], params);
        read_all(file, theirs, count * sizeof *theirs);
        for (uint64_t i = 0; i < count; i++)
            assert_near("parameter", step, i, params[i], theirs[i], 1e-12);
    }
    struct tags_item room[ADAMW_ITEMS];
    struct tags tags;
    void *values[ADAMW_ITEMS];
    tags_init(&tags, room, ADAMW_ITEMS);
    assert_int_equal(adamw_add_state(adamw, &tags, NULL, values), 0);
    for (int moment = 0; moment < 2; moment++) {
        read_all(file, theirs, count * sizeof *theirs);
        for (uint64_t i = 0; i < count; i++)
            assert_near(room[moment].name, sizes[3], i, ((const float *)values[moment])[i],
                        theirs[i], moment == 0 ? 2e-7 : 1e-12);
    }
    assert_int_equal(fclose(file), 0);
    adamw_destroy(&adamw);
    free(world);
}

static float number(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return ldexpf((float)(*seed >> 40) - 0x1p23f, -23 - (int)(*seed >> 32 & 15));
}

// Steps 1..count; the parameters afterwards, which the caller frees.
static float *trained(adamw_t *adamw, uint64_t floats, uint32_t first, uint32_t end, float *params)
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

static const struct adamw_options usual = { 0.9, 0.999, 1e-8, 0.01 };

static void test_same_bits(void **state)
{
    (void)state;
    struct world *world = world_of(211, 203, 1037); // Three pieces, the last one short
    const uint64_t floats = world->layout.total;
    adamw_t *alone = adamw_of(&world->layout, &usual, NULL);
    assert_true(learn_set_isa("base"));
    float *expected = trained(alone, floats, 0, 4, begin(floats));
    for (size_t isa = 0; isa < sizeof isas / sizeof *isas; isa++) {
        if (!learn_set_isa(isas[isa])) continue;
        for (uint32_t threads = 1; threads <= 3; threads++) {
            pool_t *pool = pool_new(threads);
            adamw_t *adamw = adamw_of(&world->layout, &usual, pool);
            float *params = trained(adamw, floats, 0, 4, begin(floats));
            if (memcmp(params, expected, floats * sizeof *params) != 0)
                fail_msg("%s with %u threads: other bits", isas[isa], threads);
            free(params);
            adamw_destroy(&adamw);
            pool_destroy(&pool);
        }
    }
    learn_set_isa("best");
    free(expected);
    adamw_destroy(&alone);
    free(world);
}

// What is saved by tag and loaded goes on as if nothing had happened.
static void test_state_by_tag(void **state)
{
    (void)state;
    struct world *world = world_of(9, 5, 7);
    const uint64_t floats = world->layout.total;
    adamw_t *straight = adamw_of(&world->layout, &usual, NULL);
    adamw_t *first = adamw_of(&world->layout, &usual, NULL);
    adamw_t *second = adamw_of(&world->layout, &usual, NULL);
    float *expected = trained(straight, floats, 0, 9, begin(floats));
    float *params = trained(first, floats, 0, 4, begin(floats));
    struct tags_item room[2][ADAMW_ITEMS];
    struct tags saved, loaded;
    void *from[ADAMW_ITEMS], *to[ADAMW_ITEMS];
    tags_init(&saved, room[0], ADAMW_ITEMS);
    tags_init(&loaded, room[1], ADAMW_ITEMS);
    assert_int_equal(adamw_add_state(first, &saved, NULL, from), 0);
    assert_int_equal(adamw_add_state(second, &loaded, NULL, to), 0);
    for (size_t i = 0; i < ADAMW_ITEMS; i++)
        memcpy(to[i], from[i], saved.items[i].elements * saved.items[i].element_bytes);
    assert_int_equal(adamw_loaded(second, NULL), 0);
    assert_int_equal(adamw_steps(second), 4);
    trained(second, floats, 4, 9, params);
    assert_memory_equal(params, expected, floats * sizeof *params);

    // Moments that no training makes
    ((float *)to[1])[3] = -1e-20f;
    struct why why = { 0 };
    assert_int_equal(adamw_loaded(second, &why), FAULT_NAN);
    assert_non_null(strstr(why.text, "parameter 3"));
    assert_int_equal(adamw_steps(second), 0);
    free(expected);
    free(params);
    adamw_destroy(&straight);
    adamw_destroy(&first);
    adamw_destroy(&second);
    free(world);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        struct adamw_options options;
        const char *name;
    } cases[] = {
        { { 1.0, 0.9, 1e-8, 0 }, "beta1" },         { { -0.1, 0.9, 1e-8, 0 }, "beta1" },
        { { 0.9, NAN, 1e-8, 0 }, "beta2" },         { { 0.9, 0.9, 0, 0 }, "eps" },
        { { 0.9, 0.9, 1e-8, -1 }, "weight_decay" }, { { 0.9, 0.9, 1e-8, 1e9 }, "weight_decay" },
    };
    struct world *world = world_of(2, 2, 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        adamw_t *adamw = NULL;
        struct why why = { 0 };
        assert_int_equal(adamw_new(&world->layout, &cases[i].options, NULL, &why, &adamw),
                         FAULT_RANGE);
        assert_non_null(strstr(why.text, cases[i].name));
        assert_null(adamw);
    }
    free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_torch),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_state_by_tag),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
