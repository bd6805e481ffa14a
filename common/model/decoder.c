// The forward pass of model.h in blocks of BLOCK positions, with keys and values kept. A layer adds
// the block's keys and values to its cache, then attends over all of the cache. Tokens count as
// read only when their logits have been found finite: decoder_read advances the count last.
#include "common/model/decoder.h"
#include "common/base/ensure.h"
#include "common/model/model_state.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// B, D, H, G, d, F, V, Q and W as in model_state.h; S is seq_max.
enum { BLOCK = 64, ALIGNMENT = 64, GRAIN = 16, TASKS_PER_THREAD = 4 };

struct decoder {
    struct model_shape shape;
    const float *params;
    pool_t *pool;
    const struct kernels *kernels; // Those chosen when the block began
    uint32_t seq_max, threads, count;
    size_t first, rows; // The present block: positions [first, first + rows)

    // One allocation, in this order
    uint32_t *tokens;     // [S] what was read
    float *keys, *values; // [layers][G][S][d]
    float *cosine, *sine; // [S][d/2]
    float *x;             // [BLOCK][D] the residual stream
    float *norm;          // [BLOCK][D]
    float *inverse;       // [BLOCK]
    float *qkv;           // [BLOCK][W]
    float *attended;      // [BLOCK][Q]
    float *added;         // [BLOCK][D] what a part adds to the stream
    float *gate_up;       // [BLOCK][2F]
    float *swiglu;        // [BLOCK][F]
    float *scores;        // [threads][S]
};

// ---- memory

static float *take(char *base, uint64_t *used, uint64_t count)
{
    float *piece = base ? (float *)(void *)(base + *used) : NULL;
    *used += (count * sizeof(float) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return piece;
}

// Hands out the parts of one allocation; without a base it only counts. Returns the bytes.
static uint64_t carve(struct decoder *self, char *base)
{
    const struct model_shape *shape = &self->shape;
    const uint64_t cache =
        (uint64_t)shape->layers * shape->kv_heads * self->seq_max * shape->head_dim;
    const uint64_t turns = (uint64_t)self->seq_max * shape->head_dim / 2;
    uint64_t used = (sizeof *self + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    self->tokens = (uint32_t *)(void *)take(base, &used, self->seq_max);
    self->keys = take(base, &used, cache);
    self->values = take(base, &used, cache);
    self->cosine = take(base, &used, turns);
    self->sine = take(base, &used, turns);
    self->x = take(base, &used, (uint64_t)BLOCK * shape->dim);
    self->norm = take(base, &used, (uint64_t)BLOCK * shape->dim);
    self->inverse = take(base, &used, BLOCK);
    self->qkv = take(base, &used, BLOCK * model_qkv_width(shape));
    self->attended = take(base, &used, BLOCK * model_heads_width(shape));
    self->added = take(base, &used, (uint64_t)BLOCK * shape->dim);
    self->gate_up = take(base, &used, (uint64_t)BLOCK * 2 * shape->ffn);
    self->swiglu = take(base, &used, (uint64_t)BLOCK * shape->ffn);
    self->scores = take(base, &used, (uint64_t)self->threads * self->seq_max);
    return used;
}

uint64_t decoder_memory_bytes(const struct model_shape *shape, uint32_t seq_max, uint32_t threads)
{
    ensure(model_shape_check(shape, NULL) == 0);
    ensure(seq_max >= 1 && seq_max <= model_seq_len(shape) && threads >= 1);
    struct decoder decoder = { .shape = *shape, .seq_max = seq_max, .threads = threads };
    return carve(&decoder, NULL);
}

int decoder_new(const struct model_shape *shape, const float *params, uint32_t seq_max,
                pool_t *pool, struct why *why, decoder_t **ret_decoder)
{
    const int rc = model_shape_check(shape, why);
    if (rc < 0) return rc;
    if (seq_max < 1 || seq_max > model_seq_len(shape))
        return why_set(why, FAULT_RANGE,
                       "decoder: %" PRIu32 " positions, allowed 1..%" PRIu32 "; nothing is made",
                       seq_max, model_seq_len(shape));
    const uint64_t bytes = decoder_memory_bytes(shape, seq_max, pool_threads(pool));
    char *base = aligned_alloc(ALIGNMENT, bytes);
    if (!base)
        return why_set(why, FAULT_MEMORY, "decoder: %" PRIu64 " bytes for %" PRIu32 " positions",
                       bytes, seq_max);
    struct decoder *self = (struct decoder *)(void *)base;
    *self = (struct decoder){ .shape = *shape,
                              .params = params,
                              .pool = pool,
                              .seq_max = seq_max,
                              .threads = pool_threads(pool) };
    ensure(carve(self, base) == bytes);
    rope_fill_tables(&shape->rope_scaling, shape->rope_theta, shape->head_dim, seq_max,
                     self->cosine, self->sine);
    *ret_decoder = self;
    return 0;
}

void decoder_destroy(decoder_t **self)
{
    free(*self);
    *self = NULL;
}

const struct model_shape *decoder_shape(const decoder_t *self) { return &self->shape; }
uint32_t decoder_seq_max(const decoder_t *self) { return self->seq_max; }
uint32_t decoder_count(const decoder_t *self) { return self->count; }

void decoder_rewind(decoder_t *self, uint32_t count)
{
    ensure(count <= self->count);
    self->count = count;
}

uint32_t decoder_keep(decoder_t *self, const uint32_t *tokens, uint32_t count)
{
    uint32_t same = 0;
    while (same < count && same < self->count && self->tokens[same] == tokens[same]) same++;
    self->count = same;
    return same;
}

// ---- one block

struct project_job {
    const struct decoder *self;
    size_t rows, in, out;
    const float *x, *w;
    float *y;
    uint32_t tasks;
};

static void project_task(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    const struct project_job *job = arg;
    const struct pool_share share = pool_share_of(job->out, GRAIN, job->tasks, task);
    job->self->kernels->project(job->rows, share.end - share.first, job->in, job->x, job->in,
                                job->w + share.first * job->in, job->in, job->y + share.first,
                                job->out);
}

// y[rows][out] = x[rows][in] by the weights at `offset`.
static void project(struct decoder *self, size_t rows, size_t in, size_t out, const float *x,
                    uint64_t offset, float *y)
{
    struct project_job job = {
        self, rows, in, out, x, self->params + offset, y, self->threads * TASKS_PER_THREAD
    };
    pool_run(self->pool, job.tasks, project_task, &job);
}

static void normalise(struct decoder *self, size_t rows, const float *x, uint64_t offset)
{
    self->kernels->norm(rows, self->shape.dim, x, self->params + offset, (float)self->shape.rms_eps,
                        self->norm, self->inverse);
}

static float *cache_of(const struct decoder *self, float *cache, uint32_t layer, uint32_t kv)
{
    const struct model_shape *shape = &self->shape;
    return cache + ((size_t)layer * shape->kv_heads + kv) * self->seq_max * shape->head_dim;
}

// Rotates queries and keys, and puts keys and values into the cache.
static void remember(struct decoder *self, uint32_t layer)
{
    const struct model_shape *shape = &self->shape;
    const size_t d = shape->head_dim, width = model_qkv_width(shape);
    const float *cosine = self->cosine + self->first * d / 2;
    const float *sine = self->sine + self->first * d / 2;
    for (uint32_t h = 0; h < shape->heads + shape->kv_heads; h++)
        self->kernels->rope(self->rows, d, self->qkv + h * d, width, cosine, sine, false);
    for (uint32_t kv = 0; kv < shape->kv_heads; kv++) {
        float *keys = cache_of(self, self->keys, layer, kv) + self->first * d;
        float *values = cache_of(self, self->values, layer, kv) + self->first * d;
        for (size_t r = 0; r < self->rows; r++) {
            const float *key = self->qkv + r * width + (shape->heads + kv) * d;
            memcpy(keys + r * d, key, d * sizeof *key);
            memcpy(values + r * d, key + shape->kv_heads * d, d * sizeof *key);
        }
    }
}

struct attend_job {
    struct decoder *self;
    uint32_t layer;
};

static void attend_task(void *arg, uint32_t task, uint32_t worker)
{
    const struct attend_job *job = arg;
    const struct decoder *self = job->self;
    const struct model_shape *shape = &self->shape;
    const size_t d = shape->head_dim, r = task / shape->heads;
    const uint32_t head = task % shape->heads, kv = head / (shape->heads / shape->kv_heads);
    self->kernels->attend(self->first + r + 1, d, 1.0f / __builtin_sqrtf((float)d),
                          self->qkv + r * model_qkv_width(shape) + head * d,
                          cache_of(self, self->keys, job->layer, kv),
                          cache_of(self, self->values, job->layer, kv),
                          self->scores + (size_t)worker * self->seq_max,
                          self->attended + r * model_heads_width(shape) + head * d);
}

static void run_layer(struct decoder *self, uint32_t layer)
{
    const struct model_shape *shape = &self->shape;
    const struct model_layer_offsets at = model_layer_offsets(shape, layer);
    const size_t rows = self->rows, dim = shape->dim;
    normalise(self, rows, self->x, at.attention_norm);
    project(self, rows, dim, model_qkv_width(shape), self->norm, at.qkv, self->qkv);
    remember(self, layer);
    struct attend_job job = { self, layer };
    pool_run(self->pool, (uint32_t)rows * shape->heads, attend_task, &job);
    project(self, rows, model_heads_width(shape), dim, self->attended, at.o, self->added);
    self->kernels->accumulate(rows * dim, self->added, self->x);

    normalise(self, rows, self->x, at.ffn_norm);
    project(self, rows, dim, 2 * (size_t)shape->ffn, self->norm, at.gate_up, self->gate_up);
    self->kernels->swiglu(rows, shape->ffn, self->gate_up, self->swiglu);
    project(self, rows, shape->ffn, dim, self->swiglu, at.down, self->added);
    self->kernels->accumulate(rows * dim, self->added, self->x);
}

// Runs positions [first, first + rows); the last `wanted` of them give logits.
static void run_block(struct decoder *self, const uint32_t *tokens, size_t wanted,
                      float *ret_logits)
{
    const struct model_shape *shape = &self->shape;
    const size_t dim = shape->dim;
    self->kernels = kernels_chosen();
    for (size_t r = 0; r < self->rows; r++)
        memcpy(self->x + r * dim, self->params + tokens[r] * dim, dim * sizeof(float));
    for (uint32_t i = 0; i < shape->layers; i++) run_layer(self, i);
    if (wanted == 0) return;
    normalise(self, wanted, self->x + (self->rows - wanted) * dim, model_final_norm_offset(shape));
    project(self, wanted, dim, shape->vocab, self->norm, model_head_offset(shape), ret_logits);
}

// ---- reading

static int check_tokens(const decoder_t *self, const uint32_t *tokens, uint32_t count,
                        struct why *why)
{
    if (count > self->seq_max - self->count)
        return why_set(why, FAULT_RANGE,
                       "decoder: %" PRIu32 " tokens after %" PRIu32 ", allowed %" PRIu32
                       " in all; nothing is read",
                       count, self->count, self->seq_max);
    for (uint32_t i = 0; i < count; i++) {
        if (tokens[i] < self->shape.vocab) continue;
        return why_set(why, FAULT_RANGE,
                       "decoder: token %" PRIu32 " at position %" PRIu32 ", allowed 0..%" PRIu32
                       "; nothing is read",
                       tokens[i], self->count + i, self->shape.vocab - 1);
    }
    return 0;
}

static int check_logits(const decoder_t *self, uint32_t wanted, const float *logits,
                        struct why *why)
{
    const uint64_t vocab = self->shape.vocab;
    for (uint64_t i = 0; i < wanted * vocab; i++) {
        if (isfinite(logits[i])) continue;
        return why_set(why, FAULT_NAN,
                       "decoder: logit %" PRIu64 " is %g, allowed finite numbers; nothing is read",
                       i % vocab, (double)logits[i]);
    }
    return 0;
}

int decoder_read(decoder_t *self, const uint32_t *tokens, uint32_t count, uint32_t wanted,
                 struct why *why, float *ret_logits)
{
    ensure(wanted <= count);
    int rc = check_tokens(self, tokens, count, why);
    if (rc < 0) return rc;
    float *logits = ret_logits;
    for (uint32_t at = 0; at < count; at += BLOCK) {
        const uint32_t rows = count - at < BLOCK ? count - at : BLOCK;
        const uint32_t left = count - at - rows; // Tokens of later blocks
        const uint32_t here = wanted > left ? wanted - left : 0;
        self->first = self->count + at;
        self->rows = rows;
        run_block(self, tokens + at, here < rows ? here : rows, logits);
        if (here > 0) logits += (size_t)(here < rows ? here : rows) * self->shape.vocab;
    }
    rc = check_logits(self, wanted, ret_logits, why);
    if (rc < 0) return rc;
    memcpy(self->tokens + self->count, tokens, count * sizeof *tokens);
    self->count += count;
    return 0;
}
