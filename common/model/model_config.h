#pragma once
// model_config -- a model's shape as the config.json of a Hugging Face folder, both ways: Llama 2,
// Llama 3 and what is built like them (TinyLlama, SmolLM), and Mistral as far as it has no sliding
// window.
//
// Reading is strict about what would change the arithmetic: a field that asks for something this
// model does not do (another activation, biases, a window, quantised weights, rotations that change
// with the length of the text) is refused by name, with its value and what is allowed. Fields that
// do not matter to the arithmetic are ignored, as transformers ignores them. Any thread.

#include "common/model/model_layout.h"

enum { MODEL_CONFIG_BYTES_MAX = 64 * 1024 };

// `text` is `bytes` long and need not end in a zero. Needed: model_type "llama" or "mistral" (or
// architectures naming LlamaForCausalLM or MistralForCausalLM), vocab_size, hidden_size,
// num_hidden_layers, num_attention_heads, intermediate_size and max_position_embeddings. Assumed if
// absent: num_key_value_heads = heads, head_dim = hidden_size / heads, rope_theta 10000,
// rms_norm_eps 1e-6, tie_word_embeddings false: Hugging Face's own defaults.
//
// Mistral: num_key_value_heads is needed too (transformers assumes 8), and sliding_window must be
// null or at least max_position_embeddings, so that it cuts nothing (absent, transformers assumes
// 4096, and so do we).
//
// Rotation: rope_parameters, or the older rope_scaling with rope_type (or type) "default",
// "linear", "llama3" or "yarn" and exactly that type's keys (rope.h). Where versions of
// transformers differ, a file is refused rather than guessed at: two objects or two thetas that
// contradict each other, no original_max_position_embeddings with llama3 or yarn, a yarn factor
// that is not max_position_embeddings / original_max_position_embeddings.
//
// 0, or FAULT_FORMAT (no JSON, a wrong type, something missing), FAULT_LIMIT (too long, too deep),
// FAULT_RANGE or FAULT_UNSUPPORTED.
int model_shape_from_config_json(const char *text, size_t bytes, struct why *why,
                                 struct model_shape *ret_shape);

// The same shape as text that Hugging Face's tools and the function above read back exactly. The
// caller frees it. NULL only for want of memory.
char *model_shape_to_config_json(const struct model_shape *shape);

// The text of a config.json that was read without fault, all its fields kept, its torch_dtype (or
// dtype, as newer files call it) changed to `dtype`, "float32" for example: that is what
// transformers converts weights to when it loads them. The caller frees it. NULL only for want of
// memory.
char *model_config_with_dtype(const char *text, const char *dtype);
