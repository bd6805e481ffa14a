// gemm -- c is computed in strips of up to COLUMNS_MAX columns, and each strip in parts of the
// depth k. For each part all workers first pack B into panels; then each task packs a block of rows
// of A and multiplies it with all panels. A later part of k adds to the earlier ones, in ascending
// order, so every element of c stays one chain.

#include "common/kernel/gemm.h"
#include "common/kernel/kernels.h"
#ifdef SHOAL_BLAS
#include "common/kernel/gemm_blas.h"
#endif

#include <string.h>

// A block of A and a panel of B fit into the second-level cache; COLUMNS_MAX columns of B (4 MiB)
// fit into the third.
enum { COLUMNS_MAX = 2048, BLOCK_TILES = 5, PACK_PANELS = 4, DEPTH_GRAIN = 32 };

struct product {
    const struct gemm *job;
    const struct kernels_product *kernels;
    float *b_packed, *a_packed; // a_packed: one block for each worker
    size_t a_packed_count;
    uint32_t blocks;              // Blocks of rows of c: one task each
    size_t depth_first, depth;    // The present part of k
    size_t words;                 // Packed words of that part
    size_t column_first, columns; // The present part of n
};

static size_t round_up(size_t count, size_t unit) { return (count + unit - 1) / unit * unit; }

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

// Words of the deepest part of k, for any precision and any instruction set.
static size_t words_max(uint32_t k)
{
    return smaller(round_up(k, DEPTH_GRAIN), KERNELS_DEPTH_WORDS_MAX);
}

static size_t b_packed_count(uint32_t n, uint32_t k)
{
    const size_t columns = round_up(smaller(n, COLUMNS_MAX), KERNELS_TILE_COLUMNS_MAX);
    return columns * words_max(k);
}

static size_t a_packed_count(uint32_t k)
{
    return round_up((size_t)BLOCK_TILES * KERNELS_TILE_ROWS_MAX * words_max(k), 16);
}

size_t gemm_scratch_count(uint32_t threads, uint32_t n, uint32_t k)
{
    return round_up(b_packed_count(n, k), 16) + threads * a_packed_count(k);
}

// Packs `count` rows of a or b (columns of the matrix as stored, if `by_column`) into panels.
static void pack(const struct product *product, const struct kernels_packing *packing,
                 const float *from, size_t stride, bool by_column, size_t count, uint32_t height,
                 float *to)
{
    for (size_t i = 0; i < count; i += height, to += height * product->words) {
        const uint32_t rows = (uint32_t)smaller(height, count - i);
        if (by_column) packing->columns(from + i, stride, rows, height, product->depth, to);
        else packing->rows(from + i * stride, stride, rows, height, product->depth, to);
    }
}

static void pack_b_task(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    const struct product *product = arg;
    const struct gemm *job = product->job;
    const uint32_t height = product->kernels->tile_columns;
    const size_t group = (size_t)PACK_PANELS * height, first = task * group;
    const size_t column = product->column_first + first, k = product->depth_first;
    const bool by_column = job->form != GEMM_NT;
    pack(product, &product->kernels->b,
         job->b + (by_column ? k * job->b_stride + column : column * job->b_stride + k),
         job->b_stride, by_column, smaller(group, product->columns - first), height,
         product->b_packed + first * product->words);
}

static void pack_a(const struct product *product, struct pool_share rows, float *to)
{
    const struct gemm *job = product->job;
    const size_t k = product->depth_first;
    const bool by_column = job->form == GEMM_TN;
    pack(product, &product->kernels->a,
         job->a + (by_column ? k * job->a_stride + rows.first : rows.first * job->a_stride + k),
         job->a_stride, by_column, rows.end - rows.first, product->kernels->tile_rows, to);
}

static void multiply_task(void *arg, uint32_t task, uint32_t worker)
{
    const struct product *product = arg;
    const struct gemm *job = product->job;
    const struct pool_share rows =
        pool_share_of(job->m, product->kernels->tile_rows, product->blocks, task);
    float *a_packed = product->a_packed + worker * product->a_packed_count;
    pack_a(product, rows, a_packed);
    float *corner = job->c + rows.first * job->c_stride + product->column_first;
    product->kernels->multiply(rows.end - rows.first, product->columns, product->depth, a_packed,
                               product->b_packed, corner, job->c_stride,
                               job->add || product->depth_first > 0);
}

static void clear(const struct gemm *job)
{
    for (size_t i = 0; i < job->m; i++)
        memset(job->c + i * job->c_stride, 0, job->n * sizeof *job->c);
}

// Cuts k into parts of about equal size. None is deeper than the kernels want it, and each but
// the last is a multiple of the blocks that packing transposes.
static size_t depth_of_parts(const struct kernels_product *kernels, size_t k)
{
    const size_t most = kernels->depth_words / kernels->group_words * kernels->group;
    const size_t parts = (k + most - 1) / most;
    return round_up((k + parts - 1) / parts, DEPTH_GRAIN);
}

const char *gemm_precision_name(enum gemm_precision precision)
{
    static const char *const names[GEMM_PRECISIONS] = {
        [GEMM_FLOAT32] = "float32", [GEMM_BF16] = "bf16", [GEMM_BF16_AMX] = "bf16-amx"
    };
    return names[precision];
}

const char *gemm_library(enum gemm_precision precision)
{
#ifdef SHOAL_BLAS
    if (precision == GEMM_FLOAT32) return gemm_blas_name();
#endif
    (void)precision;
    return NULL;
}

void gemm_run(pool_t *pool, const struct gemm *job, float *scratch)
{
    if (job->k == 0 && !job->add) clear(job);
    if (job->m == 0 || job->n == 0 || job->k == 0) return;
#ifdef SHOAL_BLAS
    if (job->precision == GEMM_FLOAT32) {
        gemm_blas_run(pool, job);
        return;
    }
#endif
    const struct kernels_product *kernels = &kernels_chosen()->product[job->precision];
    struct product product = { .job = job,
                               .kernels = kernels,
                               .b_packed = scratch,
                               .a_packed = scratch + round_up(b_packed_count(job->n, job->k), 16),
                               .a_packed_count = a_packed_count(job->k) };
    const size_t tiles = (job->m + kernels->tile_rows - 1) / kernels->tile_rows;
    const size_t depth_max = depth_of_parts(kernels, job->k);
    product.blocks = (uint32_t)((tiles + BLOCK_TILES - 1) / BLOCK_TILES);
    for (size_t j = 0; j < job->n; j += COLUMNS_MAX) {
        product.column_first = j;
        product.columns = smaller(COLUMNS_MAX, job->n - j);
        for (size_t k = 0; k < job->k; k += depth_max) {
            product.depth_first = k;
            product.depth = smaller(depth_max, job->k - k);
            product.words =
                (product.depth + kernels->group - 1) / kernels->group * kernels->group_words;
            const size_t panels =
                (product.columns + kernels->tile_columns - 1) / kernels->tile_columns;
            pool_run(pool, (uint32_t)((panels + PACK_PANELS - 1) / PACK_PANELS), pack_b_task,
                     &product);
            pool_run(pool, product.blocks, multiply_task, &product);
        }
    }
}
