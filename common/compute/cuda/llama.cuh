#pragma once
// llama -- the model of model.h on a device: loss and gradient of one micro-batch, all by launches
// on one stream, without the host in between; so it can be captured in a graph.
//
// T is the type of weights and activations: bf16, or float to be held against the CPU. Products
// add up in float32; the gradient is float32 and is added to what is there. Shapes, in C order,
// with R = batch · seq rows, D = dim, W = (heads + 2 kv_heads) head_dim, Q = heads · head_dim,
// F = ffn, V = vocab:

#include "common/compute/cuda/arena.cuh"
#include "common/compute/cuda/device.cuh"
#include "common/compute/cuda/rows.cuh"

extern "C" {
#include "common/model/model_layout.h"
}

template <typename T> struct llama_layer {
    T *x;                    // [R][D] what comes in
    T *x_norm;               // [R][D]
    float *x_inverse;        // [R]
    T *qkv;                  // [R][W] after rotation
    T *attended;             // [R][Q]
    float *log_sum;          // [batch][heads][seq]
    T *middle, *middle_norm; // [R][D]
    float *middle_inverse;   // [R]
    T *gate_up;              // [R][2F]
    T *swiglu;               // [R][F]
};

template <typename T> struct llama {
    struct model_shape shape;
    uint32_t batch_max, seq;
    const T *weights;           // [N], order of model_layout.h
    float *gradient;            // [N], added to
    const float *cosine, *sine; // [seq][head_dim/2]

    // What one micro-batch reads: filled by the caller, in one piece (struct llama_batch)
    uint32_t *inputs, *targets; // [R] each
    struct embedding_buckets buckets;
    float *weight; // Of each row's loss in the gradient
    double *loss;  // Sum of all rows' losses

    struct llama_layer<T> layer[MODEL_LAYERS_MAX];
    T *last, *last_norm;          // [R][D]
    float *last_inverse, *losses; // [R]
    T *logits;                    // [head_rows][V]
    uint32_t head_rows;           // Rows whose logits are made at a time
    T *d_stream, *d_norm;         // [R][D]
    T *d_gate_up;                 // [R][2F]
    T *d_swiglu;                  // [R][F]
    T *d_qkv;                     // [R][W]
    T *d_attended;                // [R][Q]
    float *delta;                 // [batch][heads][seq]
    float *norm_partial;          // [NORM_PARTS][D]
};

// Takes all of it but weights, gradient and what a batch reads from the arena. shape, batch_max and
// seq are set before. `trains` false: no room for gradients.
template <typename T> void llama_carve(struct llama<T> *self, struct arena *arena, bool trains);

// The loss of `batch` sequences, 1..batch_max; with `trains` the gradient of it, too.
template <typename T>
void llama_run(struct llama<T> *self, struct device *device, uint32_t batch, bool trains);
