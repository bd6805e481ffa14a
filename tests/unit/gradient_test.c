// gradient_test -- the norm of a gradient, and clipping by it: the same bits for every number of
// threads.

#include "common/kernel/kernels.h"
#include "common/kernel/gradient.h"
#include "tests/test.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *const isas[] = { "base", "avx2", "avx512" };

static float *numbers(uint64_t count)
{
    float *x = malloc((count + 1) * sizeof *x);
    uint64_t seed = 1;
    assert_non_null(x);
    for (uint64_t i = 0; i < count; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        x[i] = (float)(int32_t)(seed >> 32) * 0x1p-31f;
    }
    return x;
}

static void the_norm_is_right_and_always_the_same(void **state)
{
    (void)state;
    static const uint64_t counts[] = {
        0, 1, 15, 17, GRADIENT_PIECE, 3 * GRADIENT_PIECE + 5, 300 * GRADIENT_PIECE + 1
    };
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        float *x = numbers(counts[c]);
        double sum = 0, first = -1;
        for (uint64_t i = 0; i < counts[c]; i++) sum += (double)x[i] * (double)x[i];
        for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
            if (!learn_set_isa(isas[i])) continue;
            for (uint32_t threads = 1; threads <= 3; threads++) {
                pool_t *pool = pool_new(threads);
                const double norm = gradient_norm(pool, x, counts[c]);
                pool_destroy(&pool);
                if (first < 0) first = norm;
                assert_true(norm == first);
            }
        }
        assert_true(fabs(first - sqrt(sum)) <= 1e-12 * sqrt(sum));
        free(x);
    }
    assert_true(learn_set_isa("best"));
}

static void only_what_is_too_long_is_shortened(void **state)
{
    (void)state;
    enum { COUNT = 2 * GRADIENT_PIECE + 7 };
    float *x = numbers(COUNT), *before = numbers(COUNT);
    double norm = 0, clipped = 0;
    assert_int_equal(gradient_clip(NULL, x, COUNT, 1e6, NULL, &norm), 0);
    assert_memory_equal(x, before, COUNT * sizeof *x);
    assert_int_equal(gradient_clip(NULL, x, COUNT, 2.0, NULL, &clipped), 0);
    assert_true(clipped == norm && norm > 2);
    assert_true(fabs(gradient_norm(NULL, x, COUNT) - 2) < 1e-6);
    for (uint64_t i = 0; i < COUNT; i++) assert_true(x[i] == before[i] * (float)(2.0 / norm));
    free(x);
    free(before);
}

// Pieces measured apart, in any cut, clip to the same bits as the whole.
static void pieces_apart_clip_as_the_whole_does(void **state)
{
    (void)state;
    enum { COUNT = 260 * GRADIENT_PIECE + 11, PIECES = 261 };
    float *whole = numbers(COUNT), *apart = numbers(COUNT);
    double squares[PIECES], norm = 0, norm_apart = 1;
    pool_t *pool = pool_new(3);
    assert_int_equal(gradient_piece_count(COUNT), PIECES);
    for (uint64_t first = 0, pieces = 1; first < PIECES; first += pieces, pieces *= 4) {
        const uint64_t left = PIECES - first;
        gradient_squares(pool, apart, COUNT, first, pieces < left ? pieces : left, squares + first);
    }
    gradient_squares(NULL, apart + 7 * GRADIENT_PIECE, GRADIENT_PIECE, 0, 1, &squares[7]);
    assert_int_equal(gradient_clip(pool, whole, COUNT, 2.0, NULL, &norm), 0);
    // Each owner scales its part
    const uint64_t border = 9 * GRADIENT_PIECE;
    const struct interval parts[] = { { 0, border }, { border, border }, { border, COUNT } };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        assert_int_equal(
            gradient_clip_by(pool, apart, parts[i], squares, PIECES, 2.0, NULL, &norm_apart), 0);
        assert_true(norm == norm_apart && norm > 2);
    }
    assert_memory_equal(whole, apart, COUNT * sizeof *whole);
    squares[260] = NAN;
    assert_int_equal(gradient_clip_by(pool, apart, parts[0], squares, PIECES, 2.0, NULL, &norm),
                     FAULT_NAN);
    pool_destroy(&pool);
    free(whole);
    free(apart);
}

static void what_is_not_finite_is_refused(void **state)
{
    (void)state;
    static const float rubbish[] = { NAN, INFINITY, -INFINITY };
    static const uint64_t places[] = { 0, 16, 99 };
    for (size_t r = 0; r < 3; r++) {
        for (size_t p = 0; p < 3; p++) {
            float *x = numbers(100), *before = numbers(100);
            struct why why = { 0 };
            double norm = -1;
            x[places[p]] = before[places[p]] = rubbish[r];
            assert_int_equal(gradient_clip(NULL, x, 100, 1.0, &why, &norm), FAULT_NAN);
            assert_memory_equal(x, before, 100 * sizeof *x);
            assert_true(norm == -1 && strstr(why.text, "finite"));
            free(x);
            free(before);
        }
    }
}

TESTS(TEST(the_norm_is_right_and_always_the_same), TEST(only_what_is_too_long_is_shortened),
      TEST(pieces_apart_clip_as_the_whole_does), TEST(what_is_not_finite_is_refused))
