// A model's life: carve counts the memory and then hands it out, model_new computes the rotation
// tables, and a pass checks its arguments, runs forward, head and, if a gradient is wanted,
// backward. The loss is checked before the backward pass, so that a NaN costs no more work.
#include "common/model/model.h"
#include "common/base/ensure.h"
#include "common/base/large_pages.h"
#include "common/model/model_state.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, HEAD_ROWS_MIN = 64, HEAD_ROWS_MAX = 1024, HEAD_LOGITS_MAX = 1 << 22 };

// Hands out pieces of one allocation; without a base it only counts, so that size and layout have
// one description.
struct arena {
    char *base;
    uint64_t used;
};

static void *take(struct arena *arena, uint64_t count, uint64_t size)
{
    void *piece = arena->base ? arena->base + arena->used : NULL;
    arena->used += (count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return piece;
}

static float *take_floats(struct arena *arena, uint64_t count)
{
    return take(arena, count, sizeof(float));
}

static uint32_t larger(uint64_t a, uint64_t b) { return (uint32_t)(a > b ? a : b); }

static void carve_layer(const struct model *self, struct arena *arena, uint64_t rows,
                        struct model_layer *layer)
{
    const struct model_shape *shape = &self->shape;
    *layer = (struct model_layer){
        .x_norm = take_floats(arena, rows * shape->dim),
        .x_inverse = take_floats(arena, rows),
        .qkv = take_floats(arena, rows * model_qkv_width(shape)),
        .attended = take_floats(arena, rows * model_heads_width(shape)),
        .log_sum = take_floats(arena, rows * shape->heads),
        .middle = take_floats(arena, rows * shape->dim),
        .middle_norm = take_floats(arena, rows * shape->dim),
        .middle_inverse = take_floats(arena, rows),
        .gate_up = take_floats(arena, rows * 2 * shape->ffn),
        .swiglu = take_floats(arena, rows * shape->ffn),
    };
}

static void carve_layers(struct model *self, struct arena *arena, uint64_t rows)
{
    struct model_layer layer;
    self->layers = take(arena, self->shape.layers, sizeof *self->layers);
    for (uint32_t i = 0; i < self->shape.layers; i++) {
        if (i == 0 || !self->options.recompute) carve_layer(self, arena, rows, &layer);
        layer.x = take_floats(arena, rows * self->shape.dim);
        if (self->layers) self->layers[i] = layer;
    }
}

static void carve_scratch(struct model *self, struct arena *arena, uint64_t rows)
{
    const struct model_shape *shape = &self->shape;
    const uint32_t widest =
        larger(larger(2 * shape->ffn, model_qkv_width(shape)), larger(shape->vocab, shape->dim));
    self->product_scratch =
        take_floats(arena, gemm_scratch_count(self->threads, widest, larger(widest, rows)));
    const uint32_t small = larger(self->options.seq_max, shape->head_dim);
    self->attention_scratch_count = 2 * (uint64_t)MODEL_QUERY_BLOCK * self->options.seq_max +
                                    3 * model_attention_packed_count(shape, self->options.seq_max) +
                                    gemm_scratch_count(1, small, small);
    self->attention_scratch = take_floats(arena, self->threads * self->attention_scratch_count);
}

static void carve(struct model *self, struct arena *arena)
{
    const struct model_shape *shape = &self->shape;
    const uint64_t rows = (uint64_t)self->options.batch_max * self->options.seq_max;
    const uint64_t width = model_heads_width(shape);
    const uint64_t half_turns = (uint64_t)self->options.seq_max * shape->head_dim / 2;
    carve_layers(self, arena, rows);
    self->inputs = take(arena, rows, sizeof *self->inputs);
    self->targets = take(arena, rows, sizeof *self->targets);
    self->cosine = take_floats(arena, half_turns);
    self->sine = take_floats(arena, half_turns);
    self->last = take_floats(arena, rows * shape->dim);
    self->last_norm = take_floats(arena, rows * shape->dim);
    self->last_inverse = take_floats(arena, rows);
    self->head_rows = HEAD_LOGITS_MAX / shape->vocab;
    if (self->head_rows < HEAD_ROWS_MIN) self->head_rows = HEAD_ROWS_MIN;
    if (self->head_rows > HEAD_ROWS_MAX) self->head_rows = HEAD_ROWS_MAX;
    if (self->head_rows > rows) self->head_rows = rows;
    self->logits = take_floats(arena, self->head_rows * shape->vocab);
    self->losses = take_floats(arena, rows);
    self->d_stream = take_floats(arena, rows * shape->dim);
    self->d_norm = take_floats(arena, rows * shape->dim);
    self->d_gate_up = take_floats(arena, rows * 2 * shape->ffn);
    self->d_swiglu = take_floats(arena, rows * shape->ffn);
    self->d_qkv = take_floats(arena, rows * model_qkv_width(shape));
    self->d_attended = take_floats(arena, rows * width);
    self->norm_sums = take_floats(arena, (uint64_t)MODEL_ROW_PARTS * shape->dim);
    carve_scratch(self, arena, rows);
}

uint64_t model_memory_bytes(const struct model_shape *shape, const struct model_options *options,
                            uint32_t threads)
{
    ensure(model_shape_check(shape, NULL) == 0);
    ensure(options->batch_max >= 1 && options->batch_max <= MODEL_BATCH_MAX);
    ensure(options->seq_max >= 1 && options->seq_max <= model_seq_len(shape));
    ensure(threads >= 1 && threads <= POOL_THREADS_MAX);
    struct model model = { .shape = *shape, .options = *options, .threads = threads };
    struct arena arena = { 0 };
    take(&arena, 1, sizeof model);
    carve(&model, &arena);
    return arena.used;
}

static int check_limit(const char *name, uint32_t value, uint32_t high, struct why *why)
{
    if (value >= 1 && value <= high) return 0;
    return why_set(why, FAULT_RANGE,
                   "model: %s = %" PRIu32 ", allowed 1..%" PRIu32 "; nothing is computed", name,
                   value, high);
}

int model_new(const struct model_shape *shape, const struct model_options *options, pool_t *pool,
              struct why *why, model_t **ret_model)
{
    int rc = model_shape_check(shape, why);
    if (rc == 0) rc = check_limit("batch", options->batch_max, MODEL_BATCH_MAX, why);
    if (rc == 0) rc = check_limit("seq", options->seq_max, model_seq_len(shape), why);
    if (rc < 0) return rc;
    const uint64_t bytes = model_memory_bytes(shape, options, pool_threads(pool));
    struct arena arena = { .base = large_pages_new(bytes) };
    if (!arena.base)
        return why_set(why, FAULT_MEMORY,
                       "model: %" PRIu64 " bytes for batches of %" PRIu32 " x %" PRIu32
                       " are not available; the model is not made",
                       bytes, options->batch_max, options->seq_max);
    struct model *self = take(&arena, 1, sizeof *self);
    *self = (struct model){
        .shape = *shape, .options = *options, .threads = pool_threads(pool), .pool = pool
    };
    carve(self, &arena);
    ensure(arena.used == bytes);
    rope_fill_tables(&shape->rope_scaling, shape->rope_theta, shape->head_dim, options->seq_max,
                     self->cosine, self->sine);
    *ret_model = self;
    return 0;
}

void model_destroy(model_t **self)
{
    free(*self);
    *self = NULL;
}

void model_tell_final(model_t *self, void (*final)(void *arg, uint64_t from), void *arg)
{
    self->final = final;
    self->final_arg = arg;
}

const struct model_shape *model_shape_of(const model_t *self) { return &self->shape; }

// Splits [batch][seq + 1] into inputs and targets.
static int load_tokens(model_t *self, const uint32_t *tokens, struct why *why)
{
    const size_t stride = (size_t)self->seq + 1;
    for (size_t i = 0; i < self->batch * stride; i++) {
        if (tokens[i] >= self->shape.vocab)
            return why_set(why, FAULT_RANGE,
                           "model: token %" PRIu32 " at position %zu of sample %zu, "
                           "allowed 0..%" PRIu32 "; nothing is computed",
                           tokens[i], i % stride, i / stride, self->shape.vocab - 1);
    }
    for (size_t b = 0; b < self->batch; b++) {
        memcpy(self->inputs + b * self->seq, tokens + b * stride, self->seq * sizeof *tokens);
        memcpy(self->targets + b * self->seq, tokens + b * stride + 1, self->seq * sizeof *tokens);
    }
    return 0;
}

static int pass(model_t *self, const float *params, const uint32_t *tokens, uint32_t batch,
                uint32_t seq, float *grad, struct why *why, double *ret_loss)
{
    int rc = check_limit("batch", batch, self->options.batch_max, why);
    if (rc == 0) rc = check_limit("seq", seq, self->options.seq_max, why);
    if (rc < 0) return rc;
    self->batch = batch;
    self->seq = seq;
    self->rows = (size_t)batch * seq;
    self->params = params;
    self->grad = grad;
    self->kernels = kernels_chosen();
    rc = load_tokens(self, tokens, why);
    if (rc < 0) return rc;
    model_forward(self);
    const double loss = model_head(self);
    if (!isfinite(loss))
        return why_set(why, FAULT_NAN,
                       "model: the loss is %g, allowed finite numbers; the gradient is unusable",
                       loss);
    if (grad) model_backward(self);
    *ret_loss = loss;
    return 0;
}

int model_loss_and_grad(model_t *self, const float *params, const uint32_t *tokens, uint32_t batch,
                        uint32_t seq, struct why *why, float *ret_grad, double *ret_loss)
{
    ensure(ret_grad);
    return pass(self, params, tokens, batch, seq, ret_grad, why, ret_loss);
}

int model_loss(model_t *self, const float *params, const uint32_t *tokens, uint32_t batch,
               uint32_t seq, struct why *why, double *ret_loss)
{
    return pass(self, params, tokens, batch, seq, NULL, why, ret_loss);
}
