#pragma once
// model -- a Llama on the CPU: loss and gradient. (For text from it: decoder.h, generate.h.)
//
//     tokens ─▶ embedding ─▶ ┌ RMSNorm ─▶ q k v ─▶ RoPE ─▶ causal attention ─▶ o ─▶ (+) ┐
//                            └ RMSNorm ─▶ silu(gate) * up ─▶ down ──────────────────▶ (+) ┘
//                                        layers times           ─▶ RMSNorm ─▶ head ─▶ loss
//
// The arithmetic is Hugging Face's LlamaForCausalLM (half-split RoPE, grouped queries, SwiGLU, tied
// or own head), in float32 or with the matrix products in bfloat16. Parameters are one flat vector
// in the order of model_layout.h.
//
// The same input gives the same bits for every number of threads and every instruction set
// (kernels.h), so another member's gradient can be recomputed and compared by hash. Yardstick: 80 %
// of the processor's float32 peak, 65 % of its bf16 peak (tests/bench/train_bench.c measures both).
//
// Tokens come as [batch][seq + 1], row after row: positions 0..seq-1 are the input, 1..seq the
// targets.

#include "common/kernel/gemm.h"
#include "common/kernel/pool.h"
#include "common/model/model_layout.h"

enum { MODEL_BATCH_MAX = 4096 };

typedef struct model model_t;

struct model_options {
    uint32_t batch_max; // 1..MODEL_BATCH_MAX
    uint32_t seq_max;   // 1..model_seq_len
    // The type of the products' inputs. With GEMM_BF16 (gemm.h) they are rounded to bfloat16;
    // parameters, activations, sums and all else stay float32.
    enum gemm_precision precision;
    // Keeps only each layer's input and computes the rest again in the backward pass: the same
    // bits, a third more arithmetic and, with many layers, a small part of the memory.
    bool recompute;
};

// What model_new will allocate: activations, scratch and tables, not parameters or gradients. The
// options are within their ranges (ensured).
uint64_t model_memory_bytes(const struct model_shape *shape, const struct model_options *options,
                            uint32_t threads);

// Takes all the memory it will ever use, in one piece, and computes the rotation tables. Borrows
// the pool until destroyed (NULL: one thread). FAULT_RANGE for a shape, batch or length out of
// bounds, FAULT_MEMORY.
int model_new(const struct model_shape *shape, const struct model_options *options, pool_t *pool,
              struct why *why, model_t **ret_model);
void model_destroy(model_t **self); // NULL is allowed

const struct model_shape *model_shape_of(const model_t *self);

// The mean cross-entropy in nats over all batch * seq targets, and its gradient: N floats, all
// overwritten. FAULT_RANGE for a batch or length beyond those of model_new, or a token outside the
// vocabulary (nothing is touched then); FAULT_NAN if the loss is not finite (ret_grad then means
// nothing). A finite loss does not promise a finite gradient: gradient_clip looks at every number
// of it.
int model_loss_and_grad(model_t *self, const float *params, const uint32_t *tokens, uint32_t batch,
                        uint32_t seq, struct why *why, float *ret_grad, double *ret_loss);

// From now on model_loss_and_grad calls `final` on its way, once the loss is found to be finite:
// the numbers of ret_grad from `from` to the end are final. Each call has a smaller `from`. The
// embedding comes last: it is final when model_loss_and_grad returns, and no call says so. The
// calls are on the caller's thread, between two jobs of the pool. NULL: no calls.
void model_tell_final(model_t *self, void (*final)(void *arg, uint64_t from), void *arg);

// The same loss, to the bit, without the gradient: for held-out text.
int model_loss(model_t *self, const float *params, const uint32_t *tokens, uint32_t batch,
               uint32_t seq, struct why *why, double *ret_loss);

// The logits of the next token: `vocab` of them, after the last of `count` tokens, 1..seq_max. No
// program calls it: the tests compare the decoder, and the logits of other libraries, with it.
int model_logits_last(model_t *self, const float *params, const uint32_t *tokens, uint32_t count,
                      struct why *why, float *ret_logits);
