// Two tables. A value that is added to one list and not here ends the process at its first use.
#include "common/learner/products.h"
#include "common/base/ensure.h"

enum products products_of_config(uint64_t value)
{
    switch (value) {
    case CONFIG_PRODUCTS_BF16: return PRODUCTS_BF16;
    case CONFIG_PRODUCTS_FLOAT32: return PRODUCTS_FLOAT32;
    default: ensure(value == CONFIG_PRODUCTS_BF16_AMX); return PRODUCTS_BF16_AMX;
    }
}

enum gemm_precision products_precision(enum products products)
{
    static const enum gemm_precision precisions[PRODUCTS_COUNT] = {
        [PRODUCTS_BF16] = GEMM_BF16,
        [PRODUCTS_FLOAT32] = GEMM_FLOAT32,
        [PRODUCTS_BF16_AMX] = GEMM_BF16_AMX,
    };
    ensure(products < PRODUCTS_COUNT);
    return precisions[products];
}
