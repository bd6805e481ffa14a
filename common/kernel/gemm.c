// gemm -- c is computed in strips of up to COLUMNS_MAX columns. Of a strip all workers first pack as many parts of
// the depth k of B as the scratch memory holds. Then each task has some rows of c to itself: for one part after the other
// it packs them of A, a block at a time, or reads them where they lie, and multiplies the block with all panels of B. A
// later part of k adds to the earlier ones, in ascending order, so every element of c stays one chain. Workers wait for
// each other twice for each filling of the scratch memory, and for most products it is filled once.
//
// A lies in no near cache when it is packed. So while a block is multiplied, the next one is asked of the memory.

#include "common/kernel/gemm.h"
#include "common/kernel/kernels.h"
#ifdef SHOAL_BLAS
#include "common/kernel/gemm_blas.h"
#endif

#include <string.h>

// A block of A and a panel of B fit into the second-level cache; COLUMNS_MAX columns of a part of B (4 MiB) fit into
// the third.
enum { COLUMNS_MAX = 2048, BLOCK_TILES = 5, PACK_PANELS = 2, DEPTH_GRAIN = 32, TASK_SHARE = 3 };

struct product {
    const struct gemm *job;
    const struct kernels_product *kernels;
    float *b_packed, *a_packed; // a_packed: one block for each worker
    size_t a_packed_count;
    uint32_t runs, run_tasks;     // One run of rows of c for each worker, in as many tasks
    size_t task_share;            // A task has one in so many of the tiles that are left of its run
    size_t column_first, columns; // The present strip
    size_t panels;                // Of B, for that strip
    size_t depth_first, depth_end; // The parts of k at present
    size_t packed_end;             // B is packed up to here, not less than depth_end
    size_t part_depth, part_count; // Of each but the last: its depth, its floats in b_packed
};

// A part of k.
struct part {
    size_t first, depth;
    size_t words; // Of a row of A. B's may have been packed deeper
    float *b;     // Packed, b_words to a column
    size_t b_words;
};

static size_t round_up(size_t count, size_t unit) { return (count + unit - 1) / unit * unit; }

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

// Words of the deepest part of k, for any precision and any instruction set.
static size_t words_max(uint32_t k)
{
    return smaller(round_up(k, DEPTH_GRAIN), KERNELS_DEPTH_WORDS_MAX);
}

// The whole of B, or as much as COLUMNS_MAX of the deepest part.
static size_t b_packed_count(uint32_t n, uint32_t k)
{
    const size_t columns = round_up(smaller(n, COLUMNS_MAX), KERNELS_TILE_COLUMNS_MAX);
    const size_t most = (size_t)COLUMNS_MAX * KERNELS_DEPTH_WORDS_MAX;
    return smaller(columns * round_up(k, DEPTH_GRAIN), most);
}

static size_t a_packed_count(uint32_t k)
{
    return round_up((size_t)BLOCK_TILES * KERNELS_TILE_ROWS_MAX * words_max(k), 16);
}

size_t gemm_scratch_count(uint32_t threads, uint32_t n, uint32_t k)
{
    return round_up(b_packed_count(n, k), 16) + threads * a_packed_count(k);
}

static uint32_t blocks_of(const struct kernels_product *kernels, size_t rows)
{
    const size_t block = (size_t)BLOCK_TILES * kernels->tile_rows;
    return (uint32_t)((rows + block - 1) / block);
}

static size_t words_of(const struct kernels_product *kernels, size_t depth)
{
    return (depth + kernels->group - 1) / kernels->group * kernels->group_words;
}

// Part number `index` of those that are packed.
static struct part part_of(const struct product *self, size_t index)
{
    const size_t first = self->depth_first + index * self->part_depth;
    const size_t depth = smaller(self->part_depth, self->depth_end - first);
    const size_t packed = smaller(self->part_depth, self->packed_end - first);
    return (struct part){ first, depth, words_of(self->kernels, depth),
                          self->b_packed + index * self->part_count,
                          words_of(self->kernels, packed) };
}

static size_t parts_of(const struct product *self)
{
    return (self->depth_end - self->depth_first + self->part_depth - 1) / self->part_depth;
}

static size_t groups_of(const struct product *self)
{
    return (self->panels + PACK_PANELS - 1) / PACK_PANELS;
}

static void pack_b_task(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    const struct product *self = arg;
    const struct gemm *job = self->job;
    const struct kernels_packing *packing = &self->kernels->b;
    const struct part part = part_of(self, task / groups_of(self));
    const uint32_t height = self->kernels->tile_columns;
    const size_t group = (size_t)PACK_PANELS * height, first = task % groups_of(self) * group;
    const size_t column = self->column_first + first, stride = job->b_stride;
    const size_t rows = smaller(group, self->columns - first);
    float *to = part.b + first * part.b_words;
    if (job->form == GEMM_NT)
        packing->rows(job->b + column * stride + part.first, stride, rows, height, part.depth, to);
    else
        packing->columns(job->b + part.first * stride + column, stride, rows, height, part.depth,
                         to);
}

// Some rows of a part of A, as they are stored.
static struct kernels_piece a_piece(const struct product *self, struct pool_share rows,
                                    const struct part *part)
{
    const struct gemm *job = self->job;
    const size_t stride = job->a_stride, count = rows.end - rows.first;
    if (job->form == GEMM_TN)
        return (struct kernels_piece){ job->a + part->first * stride + rows.first, stride,
                                       part->depth, count };
    return (struct kernels_piece){ job->a + rows.first * stride + part->first, stride, count,
                                   part->depth };
}

// How many of the rows are read where they lie, as packing them takes longer than it saves. Whole tiles alone can be.
static size_t rows_in_place(const struct product *self, size_t rows)
{
    const size_t tile = self->kernels->tile_rows;
    const size_t most =
        self->job->form == GEMM_TN ? self->kernels->in_place_columns : self->kernels->in_place_rows;
    return self->columns <= most ? rows / tile * tile : 0;
}

static void multiply_rows(const struct product *self, struct pool_share rows,
                          const struct part *part, struct kernels_panels a,
                          const struct kernels_piece *next)
{
    const struct gemm *job = self->job;
    const struct kernels_panels b = { part->b, part->b_words, self->kernels->tile_columns };
    self->kernels->multiply(rows.end - rows.first, self->columns, part->depth, a, b,
                            job->c + rows.first * job->c_stride + self->column_first, job->c_stride,
                            job->add || part->first > 0, next);
}

static void multiply_block(const struct product *self, struct pool_share rows,
                           const struct part *part, float *a_packed,
                           const struct kernels_piece *next)
{
    const bool by_column = self->job->form == GEMM_TN;
    const uint32_t height = self->kernels->tile_rows;
    const size_t whole = rows_in_place(self, rows.end - rows.first);
    const struct pool_share in_place = { rows.first, rows.first + whole };
    const struct pool_share rest = { in_place.end, rows.end };
    struct kernels_piece a = a_piece(self, in_place, part);
    if (whole > 0)
        multiply_rows(self, in_place, part,
                      by_column ? (struct kernels_panels){ a.at, 1, a.stride }
                                : (struct kernels_panels){ a.at, a.stride, 1 },
                      next);
    if (rest.first == rest.end) return;
    a = a_piece(self, rest, part);
    (by_column ? self->kernels->a.columns : self->kernels->a.rows)(
        a.at, a.stride, rest.end - rest.first, height, part->depth, a_packed);
    multiply_rows(self, rest, part, (struct kernels_panels){ a_packed, part->words, height }, next);
}

// The rows of c of a task: of each part of k in turn all blocks, one after the other.
struct rows {
    struct pool_share all;
    uint32_t blocks, steps;
};

// The tiles of a run that its first tasks leave. Tasks become smaller, down to one tile: early ones are so large that
// a part of B serves several blocks, and at the end no worker waits long for another.
static size_t tiles_left(const struct product *self, size_t tiles, uint32_t tasks)
{
    while (tasks-- > 0) tiles -= (tiles + self->task_share - 1) / self->task_share;
    return tiles;
}

static size_t tiles_of(const struct product *self, struct pool_share rows)
{
    return (rows.end - rows.first + self->kernels->tile_rows - 1) / self->kernels->tile_rows;
}

static struct pool_share run_of(const struct product *self, uint32_t run)
{
    return pool_share_of(self->job->m, self->kernels->tile_rows, self->runs, run);
}

static struct rows rows_of(const struct product *self, uint32_t task)
{
    const struct pool_share run = run_of(self, task / self->run_tasks);
    const size_t tiles = tiles_of(self, run), height = self->kernels->tile_rows;
    const uint32_t before = task % self->run_tasks;
    const size_t first = (tiles - tiles_left(self, tiles, before)) * height;
    const size_t end = (tiles - tiles_left(self, tiles, before + 1)) * height;
    const struct pool_share all = { run.first + smaller(first, run.end - run.first),
                                    run.first + smaller(end, run.end - run.first) };
    const uint32_t blocks = blocks_of(self->kernels, all.end - all.first);
    return (struct rows){ all, blocks, blocks * (uint32_t)parts_of(self) };
}

static struct pool_share block_of(const struct product *self, const struct rows *rows,
                                  uint32_t step)
{
    const struct pool_share share =
        pool_share_of(rows->all.end - rows->all.first, self->kernels->tile_rows, rows->blocks,
                      step % rows->blocks);
    return (struct pool_share){ rows->all.first + share.first, rows->all.first + share.end };
}

// What A's block of that step is. Behind a task's last step the next task begins, most likely on this worker.
static struct kernels_piece piece_at(const struct product *self, uint32_t task, uint32_t step)
{
    struct rows rows = rows_of(self, task);
    if (step == rows.steps) {
        step = 0;
        if (task + 1 == self->runs * self->run_tasks) return (struct kernels_piece){ 0 };
        rows = rows_of(self, task + 1);
        if (rows.steps == 0) return (struct kernels_piece){ 0 };
    }
    const struct part part = part_of(self, step / rows.blocks);
    return a_piece(self, block_of(self, &rows, step), &part);
}

static void multiply_task(void *arg, uint32_t task, uint32_t worker)
{
    const struct product *self = arg;
    const struct rows rows = rows_of(self, task);
    float *a_packed = self->a_packed + worker * self->a_packed_count;
    for (uint32_t step = 0; step < rows.steps; step++) {
        const struct part part = part_of(self, step / rows.blocks);
        const struct kernels_piece next = piece_at(self, task, step + 1);
        multiply_block(self, block_of(self, &rows, step), &part, a_packed, &next);
    }
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

// One run for each worker. The first is the longest. A single worker waits for nobody and has one task.
static void deal(struct product *self, uint32_t threads)
{
    self->runs = threads;
    self->task_share = threads == 1 ? 1 : TASK_SHARE;
    self->run_tasks = 1;
    const size_t tiles = tiles_of(self, run_of(self, 0));
    while (tiles_left(self, tiles, self->run_tasks) > 0) self->run_tasks++;
}

// B is, or will be, packed with that many columns and that depth, from b_packed on.
static void lay_out(struct product *self, size_t columns, size_t depth)
{
    const size_t height = self->kernels->tile_columns;
    self->columns = columns;
    self->panels = (columns + height - 1) / height;
    self->part_depth = depth_of_parts(self->kernels, depth);
    self->part_count = self->panels * height * words_of(self->kernels, self->part_depth);
    self->depth_end = self->packed_end = depth;
}

static void multiply_strip(pool_t *pool, struct product *self)
{
    const size_t k = self->job->k, height = self->kernels->tile_columns;
    // A single worker waits for nobody. It does better to multiply a part while that is in its cache
    const size_t fits = pool_threads(pool) > 1 ? b_packed_count(self->job->n, self->job->k) : 0;
    const bool whole = self->panels * height * words_of(self->kernels, k) <= fits;
    const size_t parts = fits / self->part_count > 0 ? fits / self->part_count : 1;
    const size_t depth = whole ? k : parts * self->part_depth;
    for (size_t first = 0; first < k; first += depth) {
        self->depth_first = first;
        self->depth_end = self->packed_end = first + smaller(depth, k - first);
        pool_run(pool, (uint32_t)(parts_of(self) * groups_of(self)), pack_b_task, self);
        pool_run(pool, self->runs * self->run_tasks, multiply_task, self);
    }
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
    deal(&product, pool_threads(pool));
    if (job->b_packed) {
        product.b_packed = (float *)job->b_packed; // Only read
        lay_out(&product, job->packed_n, job->packed_k);
        product.columns = job->n;
        product.depth_end = job->k;
        pool_run(pool, product.runs * product.run_tasks, multiply_task, &product);
        return;
    }
    for (size_t j = 0; j < job->n; j += COLUMNS_MAX) {
        product.column_first = j;
        lay_out(&product, smaller(COLUMNS_MAX, job->n - j), job->k);
        multiply_strip(pool, &product);
    }
}

size_t gemm_packed_count(uint32_t n, uint32_t k)
{
    return round_up(n, KERNELS_TILE_COLUMNS_MAX) * round_up(k, DEPTH_GRAIN);
}

void gemm_pack(const struct gemm *job, float *ret_packed)
{
    struct product product = { .job = job,
                               .kernels = &kernels_chosen()->product[job->precision],
                               .b_packed = ret_packed };
    lay_out(&product, job->n, job->k);
    const size_t tasks = parts_of(&product) * groups_of(&product);
    for (size_t i = 0; i < tasks; i++) pack_b_task(&product, (uint32_t)i, 0);
}
