// products_test -- the three names of a type of products are one name.

#include "common/learner/products.h"
#include "tests/test.h"

static void every_type_has_one_name(void **state)
{
    (void)state;
    const struct {
        uint64_t value;
        const char *name;
    } values[] = { { CONFIG_PRODUCTS_BF16, "bf16" },
                   { CONFIG_PRODUCTS_FLOAT32, "float32" },
                   { CONFIG_PRODUCTS_BF16_AMX, "bf16-amx" } };
    assert_int_equal(sizeof values / sizeof *values, PRODUCTS_COUNT);
    assert_int_equal(GEMM_PRECISIONS, PRODUCTS_COUNT);
    for (size_t i = 0; i < PRODUCTS_COUNT; i++) {
        const enum products products = products_of_config(values[i].value);
        assert_string_equal(wire_enum_name(&wire_enum_products, products), values[i].name);
        assert_string_equal(gemm_precision_name(products_precision(products)), values[i].name);
    }
}

TESTS(TEST(every_type_has_one_name))
