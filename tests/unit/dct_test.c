// dct_test -- the tables of the transform are Psyche's formula to the bit, and chunks cover each
// tensor once.

#include <stdint.h>

#include "common/base/hash.h"
#include "common/optimizer/chunks.h"
#include "tests/test.h"
#include "tests/unit/dct_definition.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static float at(const struct dct *dct, uint32_t k, uint32_t j)
{
    return dct->table[k * dct->stride + j];
}

// reference/psyche.md 4.1: rows are elements, columns frequencies.
static void four_points_are_psyches(void **state)
{
    (void)state;
    static const double golden[4][4] = { { .5, .6533, .5, .2706 },
                                         { .5, .2706, -.5, -.6533 },
                                         { .5, -.2706, -.5, .6533 },
                                         { .5, -.6533, .5, -.2706 } };
    struct dct dct;
    assert_int_equal(dct_init(&dct, 4), 0);
    for (uint32_t j = 0; j < 4; j++)
        for (uint32_t k = 0; k < 4; k++)
            assert_true(fabs((double)at(&dct, k, j) - golden[j][k]) < 5e-5);
    dct_free(&dct);
}

static void eight_numbers_are_psyches(void **state)
{
    (void)state;
    static const double golden[8] = { 9.8995, -6.4423, 0, -.6735, 0, -.2009, 0, -.0507 };
    const float x[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    float y[8];
    struct dct one, eight;
    assert_int_equal(dct_init(&one, 1), 0);
    assert_int_equal(dct_init(&eight, 8), 0);
    dct_encode(&one, &eight, x, y);
    for (int k = 0; k < 8; k++) assert_true(fabs((double)y[k] - golden[k]) < 5.1e-5);
    dct_free(&one);
    dct_free(&eight);
}

// Against libm where it is accurate, and the symmetries to the bit.
static void every_table_is_the_formula(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= DCT_SIDE_MAX; n++) {
        struct dct dct;
        assert_int_equal(dct_init(&dct, n), 0);
        for (uint32_t k = 0; k < n; k++) {
            const double scale = sqrt((k ? 2.0 : 1.0) / n);
            for (uint32_t j = 0; j < n; j++) {
                const double truth = scale * cos(M_PI * (2.0 * j + 1.0) * k / (2.0 * n));
                assert_true(fabs((double)at(&dct, k, j) - truth) < 6.1e-8 * scale);
                const float mirror = at(&dct, k, n - 1 - j);
                assert_true(at(&dct, k, j) == (k % 2 == 0 ? mirror : -mirror));
            }
        }
        dct_free(&dct);
    }
}

static void the_halves_hold_the_same_numbers(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= DCT_SIDE_MAX; n++) {
        struct dct dct;
        assert_int_equal(dct_init(&dct, n), 0);
        for (uint32_t j = 0; j < dct.half; j++)
            for (uint32_t u = 0; u < dct.half_stride; u++) {
                const float even = 2 * u < n ? at(&dct, 2 * u, j) : 0.0f;
                const float odd = 2 * u + 1 < n ? at(&dct, 2 * u + 1, j) : 0.0f;
                assert_true(dct.even[j * dct.half_stride + u] == even);
                assert_true(dct.odd[j * dct.half_stride + u] == odd);
            }
        dct_free(&dct);
    }
}

static void rows_are_orthonormal(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= DCT_SIDE_MAX; n += 9) {
        struct dct dct;
        assert_int_equal(dct_init(&dct, n), 0);
        for (uint32_t a = 0; a < n; a++)
            for (uint32_t b = 0; b <= a; b++) {
                double sum = 0;
                for (uint32_t j = 0; j < n; j++)
                    sum += (double)at(&dct, a, j) * (double)at(&dct, b, j);
                assert_true(fabs(sum - (a == b)) < 2e-7);
            }
        dct_free(&dct);
    }
}

// The bits themselves: another compiler, library or processor must come to these.
static void the_tables_are_pinned(void **state)
{
    (void)state;
    struct hasher hasher, split;
    hasher_init(&hasher);
    hasher_init(&split);
    for (uint32_t n = 1; n <= DCT_SIDE_MAX; n++) {
        struct dct dct;
        assert_int_equal(dct_init(&dct, n), 0);
        hasher_add(&hasher, dct.table, (size_t)n * dct.stride * sizeof(float));
        for (int i = 0; i < DCT_LEAVES && dct.eighth; i++)
            hasher_add(&split, dct.leaf[i], (size_t)dct.eighth * dct.eighth * sizeof(float));
        for (uint32_t i = 0; i < 2 && dct.eighth; i++)
            hasher_add(&split, dct.turn[i], (n >> i) * sizeof(float));
        dct_free(&dct);
    }
    const struct hash hash = hasher_end(&hasher);
    char text[HASH_HEX];
    assert_string_equal(hash_to_hex(&hash, text),
                        "2a4d8a046521c1ccc0611f679477a26cbe0e30335665cc75de301e835ff0a67f");
    const struct hash split_hash = hasher_end(&split);
    assert_string_equal(hash_to_hex(&split_hash, text),
                        "189a587777d4ec0523d1f4352c4c736b21374c4635d01e0691026c66d7216561");
}

static void a_chunk_there_and_back(void **state)
{
    (void)state;
    float x[12 * 15], y[12 * 15], back[12 * 15];
    for (int i = 0; i < 12 * 15; i++) x[i] = (float)((i * 37) % 101) - 50.0f;
    struct dct rows, columns;
    assert_int_equal(dct_init(&rows, 12), 0);
    assert_int_equal(dct_init(&columns, 15), 0);
    dct_encode(&rows, &columns, x, y);
    dct_decode(&rows, &columns, y, back);
    for (int i = 0; i < 12 * 15; i++) assert_true(fabsf(x[i] - back[i]) < 2e-4f);
    dct_free(&rows);
    dct_free(&columns);
}

static void sides_are_the_largest_divisors(void **state)
{
    (void)state;
    assert_int_equal(dct_side(768, 64), 64);
    assert_int_equal(dct_side(288, 64), 48);
    assert_int_equal(dct_side(344, 64), 43);
    assert_int_equal(dct_side(7, 64), 7);
    assert_int_equal(dct_side(13, 4), 1);
    assert_int_equal(dct_side(1, 1), 1);
    assert_int_equal(dct_side(UINT32_MAX, 128), 85);
}

static void chunks_cover_each_tensor_once(void **state)
{
    (void)state;
    const struct chunks_tensor tensors[] = { { 3, 1, 12 }, { 15, 6, 10 }, { 80, 9, 4 } };
    struct why why = { "" };
    chunks_t *chunks = NULL;
    assert_int_equal(chunks_new(tensors, 3, 120, 5, &why, &chunks), 0);
    uint32_t element[120] = { 0 }, coefficient[120] = { 0 };
    for (uint32_t c = 0; c < chunks_count(chunks); c++) {
        const struct chunk chunk = chunks_at(chunks, c);
        for (uint32_t h = 0; h < chunk.part->row_dct->side; h++)
            for (uint32_t w = 0; w < chunk.part->column_dct->side; w++)
                element[chunk.at + h * chunk.part->columns + w]++;
        for (uint32_t i = 0; i < chunk.part->elements; i++) coefficient[chunk.coefficients + i]++;
    }
    for (uint32_t i = 0; i < 120; i++) {
        const uint32_t inside = (i >= 3 && i < 75) || (i >= 80 && i < 116);
        assert_int_equal(element[i], inside);
        assert_int_equal(coefficient[i], inside);
    }
    chunks_destroy(&chunks);
    assert_null(chunks);
}

static void a_model_is_cut_whole(void **state)
{
    (void)state;
    const struct model_shape shape = { .vocab = 256,
                                       .dim = 96,
                                       .layers = 2,
                                       .heads = 6,
                                       .kv_heads = 2,
                                       .head_dim = 16,
                                       .ffn = 200,
                                       .seq_len_max = 64,
                                       .rope_theta = 10000,
                                       .rms_eps = 1e-5 };
    struct why why = { "" };
    chunks_t *chunks = NULL;
    assert_int_equal(model_shape_check(&shape, &why), 0);
    assert_int_equal(chunks_of_model(&shape, 64, &why, &chunks), 0);
    uint64_t covered = 0;
    for (uint32_t i = 0; i < chunks_parts(chunks); i++) {
        const struct chunks_part *part = chunks_part(chunks, i);
        const struct model_tensor tensor = model_tensor_at(&shape, i);
        assert_int_equal(part->begin, tensor.offset);
        assert_int_equal(part->rows, tensor.cols ? tensor.rows : 1);
        covered += (uint64_t)part->count * part->elements;
    }
    assert_int_equal(chunks_parts(chunks), model_tensor_count(&shape));
    assert_int_equal(covered, model_parameter_count(&shape));
    assert_int_equal(chunks_total(chunks), covered);
    chunks_destroy(&chunks);
}

static void a_wrong_cut_is_refused(void **state)
{
    (void)state;
    static const struct {
        struct chunks_tensor tensors[2];
        uint32_t count, limit;
        uint64_t total;
    } wrong[] = {
        { { { 0, 4, 4 } }, 1, 0, 16 }, // No side
        { { { 0, 4, 4 } }, 1, DCT_SIDE_MAX + 1, 16 },
        { { { 0, 4, 4 } }, 0, 4, 16 }, // No tensor
        { { { 0, 0, 4 } }, 1, 4, 16 }, // An empty one
        { { { 0, 4, 4 } }, 1, 4, 15 }, // Beyond the end
        { { { 17, 1, 1 } }, 1, 4, 16 },
        { { { UINT64_MAX, 4, 4 } }, 1, 4, 16 },
        { { { 0, 4, 4 }, { 15, 1, 4 } }, 2, 4, 32 }, // Overlap
        { { { 16, 4, 4 }, { 0, 4, 4 } }, 2, 4, 32 }, // Wrong order
        { { { 0, 4, 4 } }, 1, 4, CHUNKS_VECTOR_MAX + 1 },
        { { { 0, UINT32_MAX, 7 } }, 1, 1, (uint64_t)1 << 36 }, // Too many chunks
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct why why = { "" };
        chunks_t *chunks = NULL;
        assert_int_equal(chunks_new(wrong[i].tensors, wrong[i].count, wrong[i].total,
                                    wrong[i].limit, &why, &chunks),
                         FAULT_RANGE);
        assert_null(chunks);
        assert_true(strlen(why.text) > 0);
    }
}

TESTS(TEST(four_points_are_psyches), TEST(eight_numbers_are_psyches),
      TEST(every_table_is_the_formula), TEST(the_halves_hold_the_same_numbers),
      TEST(rows_are_orthonormal), TEST(the_tables_are_pinned), TEST(a_chunk_there_and_back),
      TEST(sides_are_the_largest_divisors), TEST(chunks_cover_each_tensor_once),
      TEST(a_model_is_cut_whole), TEST(a_wrong_cut_is_refused))
