// kernel_set -- the table of one instruction set's kernels; KERNEL_SET is its name, as in
// kernels_avx2. The last thing a kernels_*.c includes.

#include "common/learn/gemm_kernel.h"
#include "common/learn/row_kernel.h"
#include "common/learn/vector_kernel.h"

#define KERNEL_SET_NAME_(set) kernels_##set
#define KERNEL_SET_NAME(set) KERNEL_SET_NAME_(set)
#define KERNEL_SET_TEXT_(set) #set
#define KERNEL_SET_TEXT(set) KERNEL_SET_TEXT_(set)

_Static_assert(TILE_ROWS <= KERNELS_TILE_ROWS_MAX
               && (int)TILE_COLUMNS <= (int)KERNELS_TILE_COLUMNS_MAX,
               "the register tile fits the stated bounds");
_Static_assert(TILE_ROWS <= LANES,
               "a panel of A is one transposed block high, so that its overrun stays in the slack");

const struct kernels KERNEL_SET_NAME(KERNEL_SET) = {
    .name = KERNEL_SET_TEXT(KERNEL_SET), .tile_rows = TILE_ROWS, .tile_columns = TILE_COLUMNS,
    .pack_rows = gemm_pack_rows, .pack_columns = gemm_pack_columns, .multiply = gemm_multiply,
    .norm = row_norm, .norm_back = row_norm_back, .rope = row_rope,
    .swiglu = row_swiglu, .swiglu_back = row_swiglu_back,
    .softmax = row_softmax, .softmax_back = row_softmax_back, .entropy = row_entropy,
    .accumulate = row_accumulate, .scale = row_scale, .square_sum = row_square_sum,
    .add_scaled = vector_add_scaled, .adamw = vector_adamw,
};
