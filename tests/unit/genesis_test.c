// genesis_test -- the genesis parameters follow from shape and seed, to the bit.

#include "common/base/hash.h"
#include "common/model/genesis.h"
#include "tests/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct model_shape shape = { .vocab = 256,
                                          .dim = 96,
                                          .layers = 3,
                                          .heads = 6,
                                          .kv_heads = 2,
                                          .head_dim = 16,
                                          .ffn = 160,
                                          .seq_len_max = 64,
                                          .rope_theta = 10000,
                                          .rms_eps = 1e-5 };

static float *filled(uint64_t seed)
{
    float *params = malloc(model_parameter_count(&shape) * sizeof *params);
    assert_non_null(params);
    genesis_fill(&shape, seed, params);
    return params;
}

// Replicas start from these bits: a change of them is another genesis.
static void the_bits_are_pinned(void **state)
{
    (void)state;
    float *params = filled(42);
    const struct hash hash = hash_of(params, model_parameter_count(&shape) * sizeof *params);
    char text[HASH_HEX];
    assert_string_equal(hash_to_hex(&hash, text),
                        "83b5526c1bac3f4fc64180ede97e932be80e3fca71ccc6f4d99234cfecf52bad");
    free(params);
}

static void another_seed_is_another_model(void **state)
{
    (void)state;
    float *a = filled(1), *b = filled(2), *again = filled(1);
    uint64_t equal = 0, matrices = 0;
    for (uint32_t t = 0; t < model_tensor_count(&shape); t++) {
        const struct model_tensor tensor = model_tensor_at(&shape, t);
        for (uint64_t i = tensor.offset;
             tensor.cols && i < tensor.offset + model_tensor_size(&tensor); i++, matrices++)
            equal += a[i] == b[i];
    }
    assert_true(equal < matrices / 10000 + 20);
    assert_memory_equal(a, again, model_parameter_count(&shape) * sizeof *a);
    free(a);
    free(b);
    free(again);
}

static double wanted_deviation(enum model_role role)
{
    return role == MODEL_O || role == MODEL_DOWN ? 0.02 / sqrt(2.0 * shape.layers) : 0.02;
}

// Mean 0, the stated deviation, and the shape of a normal: 68.27 % within one deviation, 4.55 %
// beyond two.
static void matrices_are_normal_and_norms_are_one(void **state)
{
    (void)state;
    float *params = filled(7);
    for (uint32_t t = 0; t < model_tensor_count(&shape); t++) {
        const struct model_tensor tensor = model_tensor_at(&shape, t);
        const uint64_t count = model_tensor_size(&tensor);
        const double deviation = wanted_deviation(tensor.role);
        double sum = 0, squares = 0, within = 0, beyond = 0;
        for (uint64_t i = 0; i < count; i++) {
            const double x = (double)params[tensor.offset + i];
            if (!tensor.cols) assert_true(x == 1);
            sum += x / deviation;
            squares += x / deviation * x / deviation;
            within += fabs(x) < deviation;
            beyond += fabs(x) > 2 * deviation;
            if (tensor.cols) assert_true(fabs(x) <= 6 * deviation);
        }
        if (!tensor.cols) continue;
        const double n = (double)count, slack = 5 / sqrt(n);
        assert_true(fabs(sum / n) < slack);
        assert_true(fabs(squares / n - 1) < 1.5 * slack);
        assert_true(fabs(within / n - 0.6827) < 0.02 + slack);
        assert_true(fabs(beyond / n - 0.0455) < 0.01 + slack);
    }
    free(params);
}

static void any_interval_is_part_of_the_whole(void **state)
{
    (void)state;
    const uint64_t count = model_parameter_count(&shape);
    const uint64_t cuts[][2] = { { 0, 1 },         { 0, 0 },       { count, 0 },
                                 { count - 1, 1 }, { 24570, 200 }, { 100, 100000 } };
    float *params = filled(3), *piece = malloc(100000 * sizeof *piece);
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        genesis_fill_interval(&shape, 3, cuts[i][0], cuts[i][1], piece);
        assert_memory_equal(piece, params + cuts[i][0], cuts[i][1] * sizeof *piece);
    }
    free(params);
    free(piece);
}

TESTS(TEST(the_bits_are_pinned), TEST(another_seed_is_another_model),
      TEST(matrices_are_normal_and_norms_are_one), TEST(any_interval_is_part_of_the_whole))
