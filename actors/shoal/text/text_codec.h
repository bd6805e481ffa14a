#pragma once
// text_codec -- text to the tokens of a model's folder, and back: by the folder's tokenizer.json
// (common/text/tokenizer.h), or byte for byte if it has none and its vocabulary is bytes.

#include "common/base/fault.h"
#include <stddef.h>
#include <stdint.h>

typedef struct text_codec text_codec_t;

// `dir` is the model's folder, where its tokenizer lies; `vocab` the model's. FAULT_UNSUPPORTED if
// text cannot be made of its tokens.
int text_codec_open(const char *dir, uint32_t vocab, struct why *why, text_codec_t **ret_codec);
void text_codec_close(text_codec_t **self); // NULL is allowed

// Encodes as the beginning of a text: with the tokens that the tokenizer puts before it, if any.
// The caller frees.
int text_codec_encode(const text_codec_t *self, const char *text, size_t bytes, struct why *why,
                      uint32_t **ret_tokens, size_t *ret_count);

// The tokens at which a text of the model ends: eos_token of the folder's tokenizer_config.json, else
// of its special_tokens_map.json, else eos_token_id of its generation_config.json, else of its
// config.json; none if no file says it. Ids that the model has not are left out. FAULT_FORMAT,
// FAULT_LIMIT for a file that cannot be read.
enum { TEXT_CODEC_ENDS_MAX = 16 };
int text_codec_ends(const text_codec_t *self, const char *dir, uint32_t vocab, struct why *why,
                    uint32_t ret_ends[TEXT_CODEC_ENDS_MAX], uint32_t *ret_count);

// The text of eos_token in the file `name` of that folder: tokenizer_config.json, for example. The
// caller frees; NULL: there is no such file, or it names none. Faults as above.
int text_codec_end_token(const char *dir, const char *name, struct why *why, char **ret_text);

// Any bytes, ended by a zero that does not count. A token that the model's vocabulary has and the
// tokenizer has not, in a hole or behind its end, stands for no text. The caller frees.
int text_codec_decode(const text_codec_t *self, const uint32_t *tokens, size_t count,
                      struct why *why, char **ret_text, size_t *ret_bytes);
