// The order of launches of one micro-batch: embedding, layers, final norm, head with loss, and the
// same back. It mirrors model_forward.c and model_backward.c.
#include "common/compute/cuda/llama.cuh"
#include "common/compute/cuda/attention.cuh"
#include "common/compute/cuda/products.cuh"

enum { LOGITS_BYTES = 1 << 30, HEAD_ROWS_MIN = 64 };

static size_t heads_width(const struct model_shape *shape)
{
    return (size_t)shape->heads * shape->head_dim;
}

static size_t qkv_width(const struct model_shape *shape)
{
    return ((size_t)shape->heads + 2 * (size_t)shape->kv_heads) * shape->head_dim;
}

template <typename T>
static void carve_layer(struct llama<T> *self, struct llama_layer<T> *layer, struct arena *arena,
                        size_t rows)
{
    const struct model_shape *shape = &self->shape;
    layer->x = arena_take<T>(arena, rows * shape->dim);
    layer->x_norm = arena_take<T>(arena, rows * shape->dim);
    layer->x_inverse = arena_take<float>(arena, rows);
    layer->qkv = arena_take<T>(arena, rows * qkv_width(shape));
    layer->attended = arena_take<T>(arena, rows * heads_width(shape));
    layer->log_sum = arena_take<float>(arena, rows * shape->heads);
    layer->middle = arena_take<T>(arena, rows * shape->dim);
    layer->middle_norm = arena_take<T>(arena, rows * shape->dim);
    layer->middle_inverse = arena_take<float>(arena, rows);
    layer->gate_up = arena_take<T>(arena, rows * 2 * shape->ffn);
    layer->swiglu = arena_take<T>(arena, rows * shape->ffn);
}

template <typename T> void llama_carve(struct llama<T> *self, struct arena *arena, bool trains)
{
    const struct model_shape *shape = &self->shape;
    const size_t rows = (size_t)self->batch_max * self->seq, dim = shape->dim;
    for (uint32_t i = 0; i < shape->layers; i++) {
        // Without a gradient nothing of a layer is kept: all share one, except for x.
        if (trains || i == 0) carve_layer(self, &self->layer[i], arena, rows);
        else self->layer[i] = self->layer[0], self->layer[i].x = arena_take<T>(arena, rows * dim);
    }
    self->last = arena_take<T>(arena, rows * dim);
    self->last_norm = arena_take<T>(arena, rows * dim);
    self->last_inverse = arena_take<float>(arena, rows);
    self->losses = arena_take<float>(arena, rows);
    const size_t fits = LOGITS_BYTES / sizeof(T) / shape->vocab;
    const size_t head_rows = fits < HEAD_ROWS_MIN ? (size_t)HEAD_ROWS_MIN : fits;
    self->head_rows = (uint32_t)(head_rows < rows ? head_rows : rows);
    self->logits = arena_take<T>(arena, (size_t)self->head_rows * shape->vocab);
    if (!trains) return;
    self->d_stream = arena_take<T>(arena, rows * dim);
    self->d_norm = arena_take<T>(arena, rows * dim);
    self->d_gate_up = arena_take<T>(arena, rows * 2 * shape->ffn);
    self->d_swiglu = arena_take<T>(arena, rows * shape->ffn);
    self->d_qkv = arena_take<T>(arena, rows * qkv_width(shape));
    self->d_attended = arena_take<T>(arena, rows * heads_width(shape));
    self->delta = arena_take<float>(arena, rows * shape->heads);
    self->norm_partial = arena_take<float>(arena, NORM_PARTS * dim);
}

// One pass: the model, where it runs, and the rows of the present micro-batch.
template <typename T> struct llama_pass {
    struct llama<T> *model;
    struct device *device;
    struct attention_shape attention;
    size_t rows;
};

// out[rows][width_out] = in · weightsᵀ (+ add)
template <typename T>
static void linear(const struct llama_pass<T> *pass, const T *in, uint64_t weights, size_t width_in,
                   size_t width_out, const T *add, T *out)
{
    const bool narrow = sizeof(T) == 2;
    const struct product product = { PRODUCT_NT, pass->rows, width_out,
                                     width_in,   in,         pass->model->weights + weights,
                                     add,        out,        narrow,
                                     narrow };
    product_run(pass->device, &product);
}

// d_in = d_out · weights, and the gradient of the weights += d_outᵀ · in; `rows` of them.
template <typename T>
static void linear_back(const struct llama_pass<T> *pass, const T *in, const T *d_out,
                        uint64_t weights, size_t width_in, size_t width_out, size_t rows, T *d_in)
{
    const bool narrow = sizeof(T) == 2;
    float *gradient = pass->model->gradient + weights;
    const struct product to_weights = { PRODUCT_TN, width_out, width_in, rows,   d_out,
                                        in,         gradient,  gradient, narrow, false };
    const struct product to_input = { PRODUCT_NN, rows,  width_in,
                                      width_out,  d_out, pass->model->weights + weights,
                                      NULL,       d_in,  narrow,
                                      narrow };
    product_run(pass->device, &to_weights);
    product_run(pass->device, &to_input);
}

template <typename T>
static void layer_forward(const struct llama_pass<T> *pass, uint32_t index, T *out)
{
    struct llama<T> *model = pass->model;
    struct device *device = pass->device;
    const struct model_shape *shape = &model->shape;
    const struct model_layer_offsets at = model_layer_offsets(shape, index);
    const struct llama_layer<T> *layer = &model->layer[index];
    const float eps = (float)shape->rms_eps;
    norm_forward<T>(device, layer->x_norm, layer->x_inverse, layer->x,
                    model->weights + at.attention_norm, eps, pass->rows, shape->dim);
    linear<T>(pass, layer->x_norm, at.qkv, shape->dim, qkv_width(shape), NULL, layer->qkv);
    rope<T>(device, layer->qkv, model->cosine, model->sine, pass->rows, model->seq,
            shape->heads + shape->kv_heads, shape->head_dim, qkv_width(shape), 1.0f);
    attention_forward<T>(device, layer->attended, layer->log_sum, layer->qkv, &pass->attention);
    linear<T>(pass, layer->attended, at.o, heads_width(shape), shape->dim, layer->x, layer->middle);
    norm_forward<T>(device, layer->middle_norm, layer->middle_inverse, layer->middle,
                    model->weights + at.ffn_norm, eps, pass->rows, shape->dim);
    linear<T>(pass, layer->middle_norm, at.gate_up, shape->dim, 2 * (size_t)shape->ffn, NULL,
              layer->gate_up);
    swiglu_forward<T>(device, layer->swiglu, layer->gate_up, pass->rows, shape->ffn);
    linear<T>(pass, layer->swiglu, at.down, shape->ffn, shape->dim, layer->middle, out);
}

// Takes d_norm back through the norm: the gradient of its weights, and the rest added to d_stream.
template <typename T>
static void norm_backward(const struct llama_pass<T> *pass, const T *x, const float *inverse,
                          uint64_t weights)
{
    struct llama<T> *model = pass->model;
    norm_weight_back<T>(pass->device, model->gradient + weights, model->norm_partial, model->d_norm,
                        x, inverse, pass->rows, model->shape.dim);
    norm_back<T>(pass->device, model->d_stream, model->d_norm, x, model->weights + weights, inverse,
                 pass->rows, model->shape.dim);
}

template <typename T> static void layer_backward(const struct llama_pass<T> *pass, uint32_t index)
{
    struct llama<T> *model = pass->model;
    struct device *device = pass->device;
    const struct model_shape *shape = &model->shape;
    const struct model_layer_offsets at = model_layer_offsets(shape, index);
    const struct llama_layer<T> *layer = &model->layer[index];
    linear_back<T>(pass, layer->swiglu, model->d_stream, at.down, shape->ffn, shape->dim,
                   pass->rows, model->d_swiglu);
    swiglu_back<T>(device, model->d_gate_up, layer->gate_up, model->d_swiglu, pass->rows,
                   shape->ffn);
    linear_back<T>(pass, layer->middle_norm, model->d_gate_up, at.gate_up, shape->dim,
                   2 * (size_t)shape->ffn, pass->rows, model->d_norm);
    norm_backward<T>(pass, layer->middle, layer->middle_inverse, at.ffn_norm);

    linear_back<T>(pass, layer->attended, model->d_stream, at.o, heads_width(shape), shape->dim,
                   pass->rows, model->d_attended);
    attention_back<T>(device, model->d_qkv, model->delta, model->d_attended, layer->attended,
                      layer->log_sum, layer->qkv, &pass->attention);
    rope<T>(device, model->d_qkv, model->cosine, model->sine, pass->rows, model->seq,
            shape->heads + shape->kv_heads, shape->head_dim, qkv_width(shape), -1.0f);
    linear_back<T>(pass, layer->x_norm, model->d_qkv, at.qkv, shape->dim, qkv_width(shape),
                   pass->rows, model->d_norm);
    norm_backward<T>(pass, layer->x, layer->x_inverse, at.attention_norm);
}

// head_rows at a time, so that never all logits of a large batch are in memory.
template <typename T> static void head(const struct llama_pass<T> *pass, bool trains)
{
    struct llama<T> *model = pass->model;
    const struct model_shape *shape = &model->shape;
    const uint64_t weights = model_head_offset(shape);
    for (size_t first = 0; first < pass->rows; first += model->head_rows) {
        const size_t left = pass->rows - first;
        struct llama_pass<T> part = *pass;
        part.rows = left < model->head_rows ? left : model->head_rows;
        const T *x = model->last_norm + first * shape->dim;
        linear<T>(&part, x, weights, shape->dim, shape->vocab, NULL, model->logits);
        classifier<T>(pass->device, model->logits, model->losses + first, model->targets + first,
                      trains ? model->weight : NULL, part.rows, shape->vocab);
        if (trains)
            linear_back<T>(&part, x, model->logits, weights, shape->dim, shape->vocab, part.rows,
                           model->d_norm + first * shape->dim);
    }
    loss_sum(pass->device, model->loss, model->losses, pass->rows);
}

template <typename T>
void llama_run(struct llama<T> *self, struct device *device, uint32_t batch, bool trains)
{
    const struct model_shape *shape = &self->shape;
    const struct llama_pass<T> pass = {
        self, device, { batch, self->seq, shape->heads, shape->kv_heads, shape->head_dim },
            (size_t)batch * self->seq
    };
    embedding_gather<T>(device, self->layer[0].x, self->inputs, self->weights, pass.rows,
                        shape->dim); // The first tensor of the vector
    for (uint32_t i = 0; i < shape->layers; i++)
        layer_forward<T>(&pass, i, i + 1 < shape->layers ? self->layer[i + 1].x : self->last);
    const uint64_t final_norm = model_final_norm_offset(shape);
    norm_forward<T>(device, self->last_norm, self->last_inverse, self->last,
                    self->weights + final_norm, (float)shape->rms_eps, pass.rows, shape->dim);
    head<T>(&pass, trains);
    if (!trains) return;
    DEVICE_TRY(device, cudaMemsetAsync(self->d_stream, 0, pass.rows * shape->dim * sizeof(T),
                                       device->stream));
    norm_backward<T>(&pass, self->last, self->last_inverse, final_norm);
    for (uint32_t i = shape->layers; i-- > 0;) layer_backward<T>(&pass, i);
    embedding_back<T>(device, self->gradient, self->d_stream, &self->buckets, pass.rows,
                      shape->dim);
}

#define LLAMA(T)                                                                                   \
    template void llama_carve<T>(struct llama<T> *, struct arena *, bool);                         \
    template void llama_run<T>(struct llama<T> *, struct device *, uint32_t, bool);
LLAMA(float)
LLAMA(bf16)
