#pragma once
// model_state -- what model_*.c share: the memory of a model and the order of its computation.
// Private to them.
//
//     B batch   T seq   rows = B*T   D dim   H heads   G kv_heads   d head_dim   F ffn   V vocab
//     Q = H*d, the width of the heads together     W = (H + 2*G)*d, that of q, k and v side by side

#include "common/kernel/gemm.h"
#include "common/kernel/kernels.h"
#include "common/model/model.h"

enum {
    // The number of tasks that share the rows, and of the parts that norm gradients are summed in
    MODEL_ROW_PARTS = 16,
    MODEL_QUERY_BLOCK = 64, // Queries whose scores are held at once
};

// What the backward pass needs of a layer. With recompute all layers share one place, but for x.
struct model_layer {
    float *x;              // [rows][D] what came in
    float *x_norm;         // [rows][D] ... normalised
    float *x_inverse;      // [rows]
    float *qkv;            // [rows][W] after rotation
    float *attended;       // [rows][Q]
    float *log_sum;        // [B][H][T] of the softmax
    float *middle;         // [rows][D] x plus attention
    float *middle_norm;    // [rows][D]
    float *middle_inverse; // [rows]
    float *gate_up;        // [rows][2F]
    float *swiglu;         // [rows][F]
};

struct model {
    struct model_shape shape;
    struct model_options options;
    uint32_t threads;
    pool_t *pool;                  // Borrowed
    const struct kernels *kernels; // Those chosen when the pass began

    // The present pass
    uint32_t batch, seq;
    size_t rows;
    const float *params;
    float *grad;                             // NULL: forward only
    void (*final)(void *arg, uint64_t from); // NULL, or model_tell_final
    void *final_arg;

    // One allocation, in this order
    struct model_layer *layers;
    uint32_t *inputs, *targets; // [rows] each
    float *cosine, *sine;       // [seq_max][d/2]
    float *last;                // [rows][D] what leaves the last layer
    float *last_norm;           // [rows][D]
    float *last_inverse;        // [rows]
    float *logits;              // [head_rows][V]
    float *losses;              // [rows]
    float *d_stream;            // [rows][D] gradient of the residual stream
    float *d_norm;              // [rows][D] of a norm's output
    float *d_gate_up;           // [rows][2F]
    float *d_swiglu;            // [rows][F]
    float *d_qkv;               // [rows][W]
    float *d_attended;          // [rows][Q]
    float *norm_sums;           // [MODEL_ROW_PARTS][D]
    float *product_scratch;     // gemm_scratch_count of the largest product
    float *attention_scratch;   // [threads][attention_scratch_count]
    size_t attention_scratch_count, head_rows;
};

static inline size_t model_heads_width(const struct model_shape *shape)
{
    return (size_t)shape->heads * shape->head_dim;
}

static inline size_t model_qkv_width(const struct model_shape *shape)
{
    return ((size_t)shape->heads + 2 * (size_t)shape->kv_heads) * shape->head_dim;
}

// Of keys or values of one head, packed.
static inline size_t model_attention_packed_count(const struct model_shape *shape, uint32_t seq)
{
    const size_t by_depth = gemm_packed_count(seq, shape->head_dim);
    const size_t by_seq = gemm_packed_count(shape->head_dim, seq);
    return by_depth > by_seq ? by_depth : by_seq;
}

// The product (gemm.h) of matrices without gaps between their rows.
void model_product(model_t *self, enum gemm_form form, bool add, size_t m, size_t n, size_t k,
                   const float *a, const float *b, float *c);

// Of the pass's rows by weights [out][in] at `offset` in the vector.
void model_linear(model_t *self, const float *x, uint64_t offset, size_t in, size_t out, bool add,
                  float *y);
void model_linear_back(model_t *self, const float *x, const float *dy, uint64_t offset, size_t in,
                       size_t out, float *dx);

// y = norm(x) with the weights at `offset`. `copy`, if not NULL, gets x as well: the residual
// stream goes on there.
void model_norm(model_t *self, const float *x, uint64_t offset, float *y, float *ret_inverse,
                float *copy);

void model_attention(model_t *self, struct model_layer *layer);
void model_attention_back(model_t *self, const struct model_layer *layer); // d_attended to d_qkv

void model_forward(model_t *self);                     // inputs to last_norm
void model_layer_again(model_t *self, uint32_t index); // All of a layer but x, if it was not kept
double model_head(model_t *self); // Mean loss; with self->grad also d_norm and the head's gradient
void model_backward(model_t *self); // From d_norm to all the rest of the gradient
