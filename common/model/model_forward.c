// The forward pass, layer by layer, and the head with its loss. Rows are shared out in
// MODEL_ROW_PARTS tasks whatever the number of threads. The head goes through the rows in portions:
// the logits, the loss and the gradient of one portion before the next, so that all logits never
// exist together.
#include "common/model/model_state.h"

#include <string.h>

void model_product(model_t *self, enum gemm_form form, bool add, size_t m, size_t n, size_t k,
                   const float *a, const float *b, float *c)
{
    const struct gemm job = { .form = form,
                              .precision = self->options.precision,
                              .add = add,
                              .m = (uint32_t)m,
                              .n = (uint32_t)n,
                              .k = (uint32_t)k,
                              .a = a,
                              .a_stride = form == GEMM_TN ? m : k,
                              .b = b,
                              .b_stride = form == GEMM_NT ? k : n,
                              .c = c,
                              .c_stride = n };
    gemm_run(self->pool, &job, self->product_scratch);
}

void model_linear(model_t *self, const float *x, uint64_t offset, size_t in, size_t out, bool add,
                  float *y)
{
    model_product(self, GEMM_NT, add, self->rows, out, in, x, self->params + offset, y);
}

struct norm_job {
    const model_t *model;
    const float *x, *w;
    float *y, *inverse, *copy;
};

static void norm_task(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    const struct norm_job *job = arg;
    const size_t dim = job->model->shape.dim;
    const struct pool_share rows = pool_share_of(job->model->rows, 1, MODEL_ROW_PARTS, task);
    const size_t count = rows.end - rows.first, at = rows.first * dim;
    if (job->copy) memcpy(job->copy + at, job->x + at, count * dim * sizeof(float));
    job->model->kernels->norm(count, dim, job->x + at, job->w, (float)job->model->shape.rms_eps,
                              job->y + at, job->inverse + rows.first);
}

void model_norm(model_t *self, const float *x, uint64_t offset, float *y, float *ret_inverse,
                float *copy)
{
    struct norm_job job = { self, x, self->params + offset, y, ret_inverse, copy };
    pool_run(self->pool, MODEL_ROW_PARTS, norm_task, &job);
}

struct swiglu_job {
    const model_t *model;
    const struct model_layer *layer;
};

static void swiglu_task(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    const struct swiglu_job *job = arg;
    const size_t ffn = job->model->shape.ffn;
    const struct pool_share rows = pool_share_of(job->model->rows, 1, MODEL_ROW_PARTS, task);
    job->model->kernels->swiglu(rows.end - rows.first, ffn,
                                job->layer->gate_up + rows.first * 2 * ffn,
                                job->layer->swiglu + rows.first * ffn);
}

// A layer from x to the input of its last product. If `out` is not NULL, it gets the residual
// stream; the caller adds the product to it.
static void layer_inside(model_t *self, uint32_t index, float *out)
{
    const struct model_shape *shape = &self->shape;
    const struct model_layer_offsets at = model_layer_offsets(shape, index);
    struct model_layer *layer = &self->layers[index];
    model_norm(self, layer->x, at.attention_norm, layer->x_norm, layer->x_inverse, layer->middle);
    model_linear(self, layer->x_norm, at.qkv, shape->dim, model_qkv_width(shape), false,
                 layer->qkv);
    model_attention(self, layer);
    model_linear(self, layer->attended, at.o, model_heads_width(shape), shape->dim, true,
                 layer->middle);

    model_norm(self, layer->middle, at.ffn_norm, layer->middle_norm, layer->middle_inverse, out);
    model_linear(self, layer->middle_norm, at.gate_up, shape->dim, 2 * (size_t)shape->ffn, false,
                 layer->gate_up);
    struct swiglu_job job = { self, layer };
    pool_run(self->pool, MODEL_ROW_PARTS, swiglu_task, &job);
}

// With recompute all layers share one set of activations. When the backward pass begins it still
// holds the last layer's, so only the others are computed again.
void model_layer_again(model_t *self, uint32_t index)
{
    if (self->options.recompute && index + 1 < self->shape.layers) layer_inside(self, index, NULL);
}

static void layer_forward(model_t *self, uint32_t index, float *out)
{
    const struct model_shape *shape = &self->shape;
    layer_inside(self, index, out);
    model_linear(self, self->layers[index].swiglu, model_layer_offsets(shape, index).down,
                 shape->ffn, shape->dim, true, out);
}

void model_forward(model_t *self)
{
    const struct model_shape *shape = &self->shape;
    const size_t dim = shape->dim;
    for (size_t r = 0; r < self->rows; r++) // The embedding is the first tensor of the vector
        memcpy(self->layers[0].x + r * dim, self->params + self->inputs[r] * dim,
               dim * sizeof(float));
    for (uint32_t i = 0; i < shape->layers; i++)
        layer_forward(self, i, i + 1 < shape->layers ? self->layers[i + 1].x : self->last);
    model_norm(self, self->last, model_final_norm_offset(shape), self->last_norm,
               self->last_inverse, NULL);
}

struct entropy_job {
    model_t *model;
    size_t first, rows;
};

static void entropy_task(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    const struct entropy_job *job = arg;
    model_t *self = job->model;
    const struct pool_share rows = pool_share_of(job->rows, 1, MODEL_ROW_PARTS, task);
    const float weight = self->grad ? 1.0f / (float)self->rows : 0.0f;
    self->kernels->entropy(
        rows.end - rows.first, self->shape.vocab, self->logits + rows.first * self->shape.vocab,
        self->targets + job->first + rows.first, weight, self->losses + job->first + rows.first);
}

// The head's part of the backward pass, for the rows whose logits have just become gradients.
static void head_back(model_t *self, size_t first, size_t rows)
{
    const struct model_shape *shape = &self->shape;
    const uint64_t offset = model_head_offset(shape);
    const float *x = self->last_norm + first * shape->dim;
    model_product(self, GEMM_NN, false, rows, shape->dim, shape->vocab, self->logits,
                  self->params + offset, self->d_norm + first * shape->dim);
    model_product(self, GEMM_TN, first > 0, shape->vocab, shape->dim, rows, self->logits, x,
                  self->grad + offset);
}

// The mean loss. head_rows at a time, so that logits stay in the caches and are never kept.
double model_head(model_t *self)
{
    const struct model_shape *shape = &self->shape;
    for (size_t first = 0; first < self->rows; first += self->head_rows) {
        const size_t left = self->rows - first;
        const size_t rows = left < self->head_rows ? left : self->head_rows;
        model_product(self, GEMM_NT, false, rows, shape->vocab, shape->dim,
                      self->last_norm + first * shape->dim, self->params + model_head_offset(shape),
                      self->logits);
        struct entropy_job entropy = { self, first, rows };
        pool_run(self->pool, MODEL_ROW_PARTS, entropy_task, &entropy);
        if (self->grad) head_back(self, first, rows);
    }
    double sum = 0.0;
    for (size_t r = 0; r < self->rows; r++) sum += (double)self->losses[r];
    return sum / (double)self->rows;
}
