#pragma once
// model_layout -- which interval of the one parameter vector [0, N) is which tensor.
//
//     model.embed_tokens.weight                         [vocab][dim]
//     model.layers.0.input_layernorm.weight             [dim]
//     model.layers.0.self_attn.q_proj.weight            [heads * head_dim][dim]    ┐ adjacent: one
//     model.layers.0.self_attn.k_proj.weight            [kv_heads * head_dim][dim] │ product makes
//     model.layers.0.self_attn.v_proj.weight            [kv_heads * head_dim][dim] ┘ all three
//     model.layers.0.self_attn.o_proj.weight            [dim][heads * head_dim]
//     model.layers.0.post_attention_layernorm.weight    [dim]
//     model.layers.0.mlp.gate_proj.weight               [ffn][dim]                   ┐ likewise
//     model.layers.0.mlp.up_proj.weight                 [ffn][dim]                   ┘
//     model.layers.0.mlp.down_proj.weight               [dim][ffn]
//     model.layers.1. ...
//     model.norm.weight                                 [dim]
//     lm_head.weight                                    [vocab][dim]                 unless tied
//
// Names and [out][in] shapes are those of Hugging Face's LlamaForCausalLM; there are no gaps. The
// order is part of what a digest means and never changes. Pure; any thread.

#include "common/base/fault.h"
#include "common/model/rope.h"

#include <stdbool.h>
#include <stdint.h>

struct model_shape {
    uint32_t vocab;       // 2..MODEL_VOCAB_MAX
    uint32_t dim;         // 1..MODEL_DIM_MAX, the width of the residual stream
    uint32_t layers;      // 1..MODEL_LAYERS_MAX
    uint32_t heads;       // 1..MODEL_HEADS_MAX query heads
    uint32_t kv_heads;    // A divisor of heads: each serves heads / kv_heads query heads
    uint32_t head_dim;    // 2..MODEL_HEAD_DIM_MAX, even; heads * head_dim need not be dim
    uint32_t ffn;         // 1..MODEL_FFN_MAX, the width of the SwiGLU
    uint32_t seq_len_max; // 1..MODEL_POSITIONS_MAX positions: what config.json allows
    double rope_theta;    // 1..1e9, the base of the rotation frequencies
    double rms_eps;       // Above 0, at most 0.1
    bool tied;            // The embedding is the head
    struct rope_scaling rope_scaling; // Zero: none
};

enum {
    MODEL_VOCAB_MAX = 1 << 20,
    MODEL_DIM_MAX = 1 << 14,
    MODEL_LAYERS_MAX = 256,
    MODEL_HEADS_MAX = 256,
    MODEL_HEAD_DIM_MAX = 512,
    MODEL_FFN_MAX = 1 << 16,
    MODEL_POSITIONS_MAX = 1 << 30,
    MODEL_SEQ_LEN_MAX = 1 << 17, // Of a sequence that is computed
    MODEL_TENSORS_PER_LAYER = 9,
    MODEL_TENSOR_NAME_MAX = 64,
};

// What a tensor is for; its first values depend on it (genesis.h).
enum model_role {
    MODEL_EMBEDDING,
    MODEL_ATTENTION_NORM,
    MODEL_Q,
    MODEL_K,
    MODEL_V,
    MODEL_O,
    MODEL_FFN_NORM,
    MODEL_GATE,
    MODEL_UP,
    MODEL_DOWN,
    MODEL_FINAL_NORM,
    MODEL_HEAD,
};

struct model_tensor {
    char name[MODEL_TENSOR_NAME_MAX];
    enum model_role role;
    uint64_t offset;     // Of its first number in the vector
    uint32_t rows, cols; // [out][in]; cols is 0 for a tensor of one dimension, `rows` long
};

// 0, or FAULT_RANGE with the field, its value and its range. Everything below, and all that takes a
// shape, wants one that passed here (ensured).
int model_shape_check(const struct model_shape *shape, struct why *why);

// The longest sequence that can be computed: seq_len_max, but at most MODEL_SEQ_LEN_MAX.
uint32_t model_seq_len(const struct model_shape *shape);

uint64_t model_parameter_count(const struct model_shape *shape); // N
uint32_t model_tensor_count(const struct model_shape *shape);
// In order of offset
struct model_tensor model_tensor_at(const struct model_shape *shape, uint32_t index);
uint64_t model_tensor_size(const struct model_tensor *tensor); // How many numbers

// Where a layer's parts begin, in floats from the start of the vector.
struct model_layer_offsets {
    uint64_t attention_norm, qkv, o, ffn_norm, gate_up, down;
};
struct model_layer_offsets model_layer_offsets(const struct model_shape *shape, uint32_t layer);
uint64_t model_final_norm_offset(const struct model_shape *shape);
uint64_t model_head_offset(const struct model_shape *shape); // 0, the embedding, if tied
