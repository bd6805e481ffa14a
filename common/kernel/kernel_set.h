// kernel_set -- the table of one instruction set's kernels. KERNEL_SET is its name, as in
// kernels_avx2. Each kernels_*.c includes this last.

#include "common/kernel/gemm_kernel.h"
#include "common/kernel/gemm_amx_kernel.h"
#include "common/kernel/row_kernel.h"
#include "common/kernel/decode_kernel.h"
#include "common/kernel/vector_kernel.h"

#define KERNEL_SET_NAME_(set) kernels_##set
#define KERNEL_SET_NAME(set)  KERNEL_SET_NAME_(set)
#define KERNEL_SET_TEXT_(set) #set
#define KERNEL_SET_TEXT(set)  KERNEL_SET_TEXT_(set)

_Static_assert(TILE_ROWS <= KERNELS_TILE_ROWS_MAX &&
                   (int)TILE_COLUMNS <= (int)KERNELS_TILE_COLUMNS_MAX,
               "the register tile fits the stated bounds");

const struct kernels KERNEL_SET_NAME(KERNEL_SET) = {
    .name = KERNEL_SET_TEXT(KERNEL_SET),
    .product = {
        [GEMM_FLOAT32] = GEMM_FLOAT32_PRODUCT,
        [GEMM_BF16] = GEMM_BF16_PRODUCT,
        [GEMM_BF16_AMX] = GEMM_AMX_PRODUCT,
    },
    .norm = row_norm, .norm_back = row_norm_back, .rope = row_rope,
    .swiglu = row_swiglu, .swiglu_back = row_swiglu_back,
    .softmax = row_softmax, .softmax_back = row_softmax_back, .entropy = row_entropy,
    .accumulate = row_accumulate, .scale = row_scale, .square_sum = row_square_sum,
    .add_weighed = vector_add_weighed, .adamw = vector_adamw,
    .adam = vector_adam, .sgd = vector_sgd,
    .project = decode_project, .attend = decode_attend,
};
