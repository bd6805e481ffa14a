#pragma once
// rows -- the operations of a Llama that go along rows: embedding, RMSNorm, RoPE, SwiGLU, and the
// classifier. What the CPU does in row_kernel.h, on T = float or bf16 with float32 inside.
//
// Shapes in C order; R is the number of rows (batch · seq), D the width of the residual stream.
// Everything runs on the device's stream; all pointers are the device's. No sum depends on timing:
// there are no atomics, so the same input gives the same bits on the same kind of GPU. R times the
// width of a row is below 2^32 (vocab aside): units of 16 bytes are counted in 32 bits.

#include "common/compute/cuda/device.cuh"
#include "common/compute/cuda/numbers.cuh"

// Which rows carry which token, for the gradient of the embedding: bucket i is token[i] and has the
// rows order[start[i]] .. order[start[i+1] - 1], ascending. `count` buckets, known to the device.
struct embedding_buckets {
    const uint32_t *count;
    const uint32_t *token; // [R]
    const uint32_t *start; // [R + 1]
    const uint32_t *order; // [R]
};

// x[R][D] = table[tokens[R]][D]
template <typename T>
void embedding_gather(struct device *device, T *x, const uint32_t *tokens, const T *table,
                      size_t rows, size_t dim);
// grad[token][D] += sum of dx[rows of the token][D]
template <typename T>
void embedding_back(struct device *device, float *grad, const T *dx,
                    const struct embedding_buckets *buckets, size_t rows, size_t dim);

// y = x · w · inverse, inverse[R] = 1 / sqrt(mean(x²) + eps)
template <typename T>
void norm_forward(struct device *device, T *y, float *inverse, const T *x, const T *w, float eps,
                  size_t rows, size_t dim);
// dx += gradient through norm
template <typename T>
void norm_back(struct device *device, T *dx, const T *dy, const T *x, const T *w,
               const float *inverse, size_t rows, size_t dim);
// grad[D] += gradient of w; `partial` is room for NORM_PARTS · D floats
enum { NORM_PARTS = 128 };
template <typename T>
void norm_weight_back(struct device *device, float *grad, float *partial, const T *dy, const T *x,
                      const float *inverse, size_t rows, size_t dim);

// Turns the first `heads` heads of each row of x [R][width], in place; the row's position is row %
// seq. cosine and sine are [seq][head_dim/2], from the host. `turn` is 1, or -1 for the backward pass.
template <typename T>
void rope(struct device *device, T *x, const float *cosine, const float *sine, size_t rows,
          size_t seq, size_t heads, size_t head_dim, size_t width, float turn);

// y[R][F] = silu(gate) · up of gate_up [R][2F], rows [gate | up]
template <typename T>
void swiglu_forward(struct device *device, T *y, const T *gate_up, size_t rows, size_t ffn);
template <typename T>
void swiglu_back(struct device *device, T *d_gate_up, const T *gate_up, const T *dy, size_t rows,
                 size_t ffn);

// losses[R] = -log softmax(logits[R][V])[targets[R]]; logits become *weight times the gradient, in
// place. `weight` lies on the device; NULL: logits stay.
template <typename T>
void classifier(struct device *device, T *logits, float *losses, const uint32_t *targets,
                const float *weight, size_t rows, size_t vocab);
// *ret_sum = sum of losses[R], in double
void loss_sum(struct device *device, double *ret_sum, const float *losses, size_t rows);
