#pragma once
// model_config -- a model's shape as the config.json of a Hugging Face LlamaForCausalLM, both ways.
//
// Reading is strict about what would change the arithmetic: a field that asks for something this
// model does not do (another activation, biases, scaled rotations, quantised weights) is refused by
// name. Fields that do not matter to the arithmetic are ignored. Any thread.

#include "common/learn/model_layout.h"

enum { MODEL_CONFIG_BYTES_MAX = 64 * 1024 };

// `text` is `bytes` long and need not end in a zero. Needed: model_type "llama" (or architectures
// naming LlamaForCausalLM), vocab_size, hidden_size, num_hidden_layers, num_attention_heads,
// intermediate_size and max_position_embeddings. Assumed if absent: num_key_value_heads = heads,
// head_dim = hidden_size / heads, rope_theta 10000, rms_norm_eps 1e-6, tie_word_embeddings false:
// Hugging Face's own defaults.
//
// 0, or FAULT_FORMAT (no JSON, a wrong type), FAULT_LIMIT (too long), FAULT_RANGE or
// FAULT_UNSUPPORTED.
int model_shape_from_config_json(const char *text, size_t bytes, struct why *why,
                                 struct model_shape *ret_shape);

// The same shape as text that Hugging Face's tools and the function above read back exactly. The
// caller frees it. NULL only for want of memory.
char *model_shape_to_config_json(const struct model_shape *shape);
