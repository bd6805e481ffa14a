// distro_kernels_test -- each kernel is its definition, and gives the same bits on every
// instruction set.

#include "tests/unit/distro_fixture.h"
#include "tests/test.h"

#include "common/optimizer/distro_kernels.h"
#include "tests/unit/dct_definition.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = { "base", "avx2", "avx512" };
enum { VARIANTS = 3, ELEMENTS = 64 * 64 };

static struct distro_scratch scratch; // All a test thread needs; zero at first, then whatever

// Each pair that matters: whole tiles, padding, odd, single rows and columns, the longest.
static const uint32_t sides[][2] = { { 64, 64 }, { 32, 48 }, { 1, 64 },   { 64, 1 },  { 1, 1 },
                                     { 43, 64 }, { 7, 5 },   { 2, 3 },    { 21, 11 }, { 128, 16 },
                                     { 127, 9 }, { 17, 33 }, { 256, 16 }, { 9, 255 }, { 8, 24 },
                                     { 40, 56 }, { 72, 48 } };

static void pair_init(const uint32_t side[2], struct dct *rows, struct dct *columns)
{
    assert_int_equal(dct_init(rows, side[0]), 0);
    assert_int_equal(dct_init(columns, side[1]), 0);
}

static void encode_is_the_definition_on_every_processor(void **state)
{
    (void)state;
    uint64_t seed = 11;
    for (size_t s = 0; s < sizeof sides / sizeof sides[0]; s++) {
        struct dct rows, columns;
        pair_init(sides[s], &rows, &columns);
        const uint32_t height = rows.side, width = columns.side, stride = width + 3;
        static float x[128 * 67], dense[ELEMENTS], truth[ELEMENTS], y[VARIANTS][ELEMENTS];
        for (uint32_t i = 0; i < height * stride; i++) x[i] = fixture_float(&seed);
        for (uint32_t h = 0; h < height; h++)
            memcpy(dense + h * width, x + h * stride, width * sizeof *x);
        dct_encode(&rows, &columns, dense, truth);
        for (int v = 0; v < VARIANTS; v++) {
            const struct distro_kernels *kernels = distro_kernels_named(names[v]);
            if (!kernels) continue;
            kernels->encode(&rows, &columns, x, stride, &scratch, y[v]);
            for (uint32_t b = 0; b < height; b++)
                for (uint32_t d = 0; d < width; d++)
                    assert_true(fabsf(y[v][d * height + b] - truth[b * width + d]) < 1e-5f);
            assert_memory_equal(y[v], y[0], height * width * sizeof(float));
        }
        dct_free(&rows);
        dct_free(&columns);
    }
}

// A few coefficients, or all of them.
static uint32_t sparse(uint32_t elements, uint64_t *seed, uint32_t one_in, uint16_t *numbers,
                       float *values)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < elements; i++) {
        if (fixture_random(seed) % one_in != 0) continue;
        numbers[count] = (uint16_t)i;
        values[count++] = fixture_float(seed);
    }
    return count;
}

static void decode_is_the_definition_on_every_processor(void **state)
{
    (void)state;
    uint64_t seed = 12;
    for (size_t s = 0; s < 3 * sizeof sides / sizeof sides[0]; s++) {
        struct dct rows, columns;
        pair_init(sides[s / 3], &rows, &columns);
        const uint32_t height = rows.side, width = columns.side, elements = height * width;
        static uint16_t numbers[ELEMENTS];
        static float values[ELEMENTS], y[ELEMENTS], truth[ELEMENTS];
        static float x[VARIANTS][DISTRO_ROWS_MAX * DCT_SIDE_MAX];
        const uint32_t one_in[] = { 1, 7, 100 };
        const uint32_t count = sparse(elements, &seed, one_in[s % 3], numbers, values);
        memset(y, 0, sizeof y);
        for (uint32_t i = 0; i < count; i++)
            y[numbers[i] % height * width + numbers[i] / height] = values[i];
        if (s % 3 != 0 || elements < 1000) dct_decode(&rows, &columns, y, truth);
        for (int v = 0; v < VARIANTS; v++) {
            const struct distro_kernels *kernels = distro_kernels_named(names[v]);
            if (!kernels) continue;
            kernels->decode(&rows, &columns, numbers, values, count, &scratch, x[v]);
            for (uint32_t h = 0; h < height; h++) {
                assert_memory_equal(x[v] + h * columns.stride, x[0] + h * columns.stride,
                                    width * sizeof(float));
                for (uint32_t w = 0; w < width && (s % 3 != 0 || elements < 1000); w++)
                    assert_true(fabsf(x[v][h * columns.stride + w] - truth[h * width + w]) < 1e-5f);
            }
        }
        dct_free(&rows);
        dct_free(&columns);
    }
}

static void decode_undoes_encode(void **state)
{
    (void)state;
    uint64_t seed = 13;
    const struct distro_kernels *kernels = distro_kernels_best();
    struct dct rows, columns;
    pair_init((uint32_t[2]){ 43, 64 }, &rows, &columns);
    static float x[43 * 64], y[43 * 64], back[DISTRO_ROWS_MAX * DCT_SIDE_MAX];
    static uint16_t numbers[43 * 64];
    for (uint32_t i = 0; i < 43 * 64; i++) {
        x[i] = fixture_float(&seed);
        numbers[i] = (uint16_t)i;
    }
    kernels->encode(&rows, &columns, x, 64, &scratch, y);
    kernels->decode(&rows, &columns, numbers, y, 43 * 64, &scratch, back);
    for (uint32_t i = 0; i < 43 * 64; i++) assert_true(fabsf(x[i] - back[i]) < 1e-5f);
    dct_free(&rows);
    dct_free(&columns);
}

// ---- the largest k

static const float *sorted_values;

static int by_magnitude(const void *a, const void *b)
{
    const uint16_t i = *(const uint16_t *)a, j = *(const uint16_t *)b;
    const float x = fabsf(sorted_values[i]), y = fabsf(sorted_values[j]);
    return x < y ? 1 : x > y ? -1 : i - j;
}

static int by_number(const void *a, const void *b)
{
    return *(const uint16_t *)a - *(const uint16_t *)b;
}

static uint32_t naive_top(uint32_t count, const float *values, uint32_t top_k,
                          uint16_t *ret_numbers)
{
    static uint16_t order[ELEMENTS];
    for (uint32_t i = 0; i < count; i++) order[i] = (uint16_t)i;
    sorted_values = values;
    qsort(order, count, sizeof order[0], by_magnitude);
    uint32_t chosen = 0;
    for (; chosen < top_k && fabsf(values[order[chosen]]) > 0.0f; chosen++)
        ret_numbers[chosen] = order[chosen];
    qsort(ret_numbers, chosen, sizeof order[0], by_number);
    return chosen;
}

// Kinds of chunk: smooth, few levels (ties), mostly zero, denormal, all equal, zeros of both signs.
static float drawn(uint32_t kind, uint64_t *seed)
{
    const float x = fixture_float(seed);
    switch (kind % 6) {
    case 0: return x * x * x;
    case 1: return rintf(x * 4.0f);
    case 2: return fixture_random(seed) % 300 ? 0.0f : x;
    case 3: return x * 1e-38f * 1e-3f;
    case 4: return 0.5f;
    default: return x < 0 ? -0.0f : 0.0f;
    }
}

static void the_largest_are_those_of_a_sort(void **state)
{
    (void)state;
    uint64_t seed = 14;
    const uint32_t counts[] = { 4096, 4096, 1024, 768, 43 * 64, 77, 16, 1 };
    for (uint32_t round = 0; round < 200; round++) {
        const uint32_t count = counts[round % 8];
        const uint32_t wanted = (uint32_t[]){ 1, 8, 32, 127, 129, 1000 }[fixture_random(&seed) % 6];
        const uint32_t top_k = wanted < count ? wanted : count;
        static float values[ELEMENTS];
        static uint16_t truth[ELEMENTS], numbers[ELEMENTS];
        for (uint32_t i = 0; i < count; i++) values[i] = drawn(round / 8, &seed);
        const uint32_t chosen = naive_top(count, values, top_k, truth);
        for (int v = 0; v < VARIANTS; v++) {
            const struct distro_kernels *kernels = distro_kernels_named(names[v]);
            if (!kernels) continue;
            assert_int_equal(kernels->select(count, values, top_k, &scratch, numbers), chosen);
            assert_memory_equal(numbers, truth, chosen * sizeof numbers[0]);
        }
    }
}

// ---- elementwise

static void the_sign_of_zero_is_zero(void **state)
{
    (void)state;
    const float x[5] = { 2.0f, -1e-45f, 0.0f, -0.0f, NAN };
    for (int v = 0; v < VARIANTS; v++) {
        const struct distro_kernels *kernels = distro_kernels_named(names[v]);
        if (!kernels) continue;
        float p[5] = { 1.0f, 1.0f, 1.0f, 1.0f, 1.0f };
        kernels->update(5, x, 0.5f, 0.25f, p);
        const float want[5] = { 0.25f, 0.75f, 0.5f, 0.5f, 0.5f };
        assert_memory_equal(p, want, sizeof p);
    }
}

static void elementwise_kernels_agree(void **state)
{
    (void)state;
    uint64_t seed = 15;
    enum { COUNT = 1003 };
    static float x[COUNT], old[COUNT], result[2][COUNT], moved[2][COUNT];
    uint32_t largest[2];
    for (int i = 0; i < COUNT; i++)
        x[i] = fixture_float(&seed), old[i] = 1e3f * fixture_float(&seed);
    for (int v = 0; v < VARIANTS; v++) {
        const struct distro_kernels *kernels = distro_kernels_named(names[v]);
        if (!kernels) continue;
        const int slot = v > 0;
        memcpy(moved[slot], old, sizeof old);
        largest[slot] = kernels->momentum(COUNT, 0.999f, 0.01f, old, x, result[slot]);
        kernels->update(COUNT, x, 0.9999f, 1e-3f, moved[slot]);
        assert_int_equal(largest[slot], largest[0]);
        assert_memory_equal(result[slot], result[0], sizeof result[0]);
        assert_memory_equal(moved[slot], moved[0], sizeof moved[0]);
    }
    float truth = 0.0f, most = 0.0f;
    for (int i = 0; i < COUNT; i++) {
        truth = fmaf(0.01f, x[i], 0.999f * old[i]);
        assert_true(result[0][i] == truth);
        most = fmaxf(most, fabsf(truth));
    }
    assert_memory_equal(&most, &largest[0], sizeof most);
}

static void what_is_not_finite_shows(void **state)
{
    (void)state;
    const float old[3] = { 0.0f, 0.0f, 0.0f };
    const float bad[3] = { NAN, -INFINITY, 3e38f };
    for (int v = 0; v < VARIANTS; v++) {
        const struct distro_kernels *kernels = distro_kernels_named(names[v]);
        for (int i = 0; kernels && i < 3; i++) {
            const float y[3] = { 1.0f, bad[i], 1.0f };
            float result[3];
            assert_true(kernels->momentum(3, 0.5f, 10.0f, old, y, result) >= 0x7f800000u);
        }
    }
}

static void the_best_variant_has_a_name(void **state)
{
    (void)state;
    assert_ptr_equal(distro_kernels_named(distro_kernels_best()->name), distro_kernels_best());
    assert_non_null(distro_kernels_named("base"));
    assert_null(distro_kernels_named("mmx"));
}

TESTS(TEST(encode_is_the_definition_on_every_processor),
      TEST(decode_is_the_definition_on_every_processor), TEST(decode_undoes_encode),
      TEST(the_largest_are_those_of_a_sort), TEST(the_sign_of_zero_is_zero),
      TEST(elementwise_kernels_agree), TEST(what_is_not_finite_shows),
      TEST(the_best_variant_has_a_name))
