// The backward pass, in the opposite order of model_forward.c: final norm, layers from the last to
// the first, embedding. The head's part is done already, with the loss. Each gradient is written by
// one task or summed in a fixed order of parts, so the bits do not depend on the number of threads.
// The vector has the tensors in the order of the forward pass (model_layout.h), so its gradient
// becomes final from its end to its beginning. The function of model_tell_final is called after
// each product and each norm, and not after the embedding, which comes last.

#include "common/model/model_state.h"

#include <string.h>

// The numbers of the gradient from `from` on are final.
static void tell_final(const model_t *self, uint64_t from)
{
    if (self->final) self->final(self->final_arg, from);
}

void model_linear_back(model_t *self, const float *x, const float *dy, uint64_t offset, size_t in,
                       size_t out, float *dx)
{
    model_product(self, GEMM_TN, false, out, in, self->rows, dy, x, self->grad + offset);
    tell_final(self, offset);
    model_product(self, GEMM_NN, false, self->rows, in, out, dy, self->params + offset, dx);
}

struct norm_back_job {
    model_t *model;
    const float *x, *w, *inverse;
};

static void norm_back_task(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    const struct norm_back_job *job = arg;
    model_t *self = job->model;
    const size_t dim = self->shape.dim;
    const struct pool_share rows = pool_share_of(self->rows, 1, MODEL_ROW_PARTS, task);
    const size_t at = rows.first * dim;
    float *sums = self->norm_sums + task * dim;
    memset(sums, 0, dim * sizeof *sums);
    self->kernels->norm_back(rows.end - rows.first, dim, self->d_norm + at, job->x + at, job->w,
                             job->inverse + rows.first, self->d_stream + at, sums);
}

// Takes d_norm back through the norm and adds the result to d_stream. The weights' gradient is the
// sum of the parts in their order.
static void norm_back(model_t *self, const float *x, uint64_t offset, const float *inverse)
{
    const size_t dim = self->shape.dim;
    struct norm_back_job job = { self, x, self->params + offset, inverse };
    pool_run(self->pool, MODEL_ROW_PARTS, norm_back_task, &job);
    memcpy(self->grad + offset, self->norm_sums, dim * sizeof(float));
    for (size_t part = 1; part < MODEL_ROW_PARTS; part++)
        self->kernels->accumulate(dim, self->norm_sums + part * dim, self->grad + offset);
    tell_final(self, offset);
}

struct swiglu_back_job {
    model_t *model;
    const struct model_layer *layer;
};

static void swiglu_back_task(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    const struct swiglu_back_job *job = arg;
    model_t *self = job->model;
    const size_t ffn = self->shape.ffn;
    const struct pool_share rows = pool_share_of(self->rows, 1, MODEL_ROW_PARTS, task);
    self->kernels->swiglu_back(
        rows.end - rows.first, ffn, job->layer->gate_up + rows.first * 2 * ffn,
        self->d_swiglu + rows.first * ffn, self->d_gate_up + rows.first * 2 * ffn);
}

static void layer_backward(model_t *self, uint32_t index)
{
    const struct model_shape *shape = &self->shape;
    const struct model_layer_offsets at = model_layer_offsets(shape, index);
    const struct model_layer *layer = &self->layers[index];
    model_layer_again(self, index);
    model_linear_back(self, layer->swiglu, self->d_stream, at.down, shape->ffn, shape->dim,
                      self->d_swiglu);
    struct swiglu_back_job job = { self, layer };
    pool_run(self->pool, MODEL_ROW_PARTS, swiglu_back_task, &job);
    model_linear_back(self, layer->middle_norm, self->d_gate_up, at.gate_up, shape->dim,
                      2 * (size_t)shape->ffn, self->d_norm);
    norm_back(self, layer->middle, at.ffn_norm, layer->middle_inverse);

    model_linear_back(self, layer->attended, self->d_stream, at.o, model_heads_width(shape),
                      shape->dim, self->d_attended);
    model_attention_back(self, layer);
    model_linear_back(self, layer->x_norm, self->d_qkv, at.qkv, shape->dim, model_qkv_width(shape),
                      self->d_norm);
    norm_back(self, layer->x, at.attention_norm, layer->x_inverse);
}

// Each task has some columns and walks all rows in order, so every sum has one order.
static void embedding_back_task(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    model_t *self = arg;
    const size_t dim = self->shape.dim;
    const struct pool_share columns = pool_share_of(dim, 16, MODEL_ROW_PARTS, task);
    if (columns.first == columns.end) return;
    for (size_t r = 0; r < self->rows; r++)
        self->kernels->accumulate(columns.end - columns.first,
                                  self->d_stream + r * dim + columns.first,
                                  self->grad + self->inputs[r] * dim + columns.first);
}

void model_backward(model_t *self)
{
    const struct model_shape *shape = &self->shape;
    memset(self->d_stream, 0, self->rows * shape->dim * sizeof(float));
    norm_back(self, self->last, model_final_norm_offset(shape), self->last_inverse);
    for (uint32_t i = shape->layers; i-- > 0;) layer_backward(self, i);
    if (!shape->tied) memset(self->grad, 0, (size_t)shape->vocab * shape->dim * sizeof(float));
    // If tied, this adds to the head's gradient
    pool_run(self->pool, MODEL_ROW_PARTS, embedding_back_task, self);
}
