#pragma once
// tokenizer_parts -- inside tokenizer_json: helpers that the readers of all parts of a
// tokenizer.json share, and the readers of normalizer, pre-tokenizer, post-processor and decoder. Only
// tokenizer_read.c and tokenizer_parts.c include it.

#include "common/base/strict_json.h"
#include "common/text/tokenizer.h"

enum { TOKENIZER_PLACE_MAX = 300 };

// "PLACE: WHAT; refused, because it may change ids". FAULT_UNSUPPORTED.
int tokenizer_refuse(const char *place, struct why *why, const char *what);
int tokenizer_refuse_type(const char *place, const char *type, const char *known, struct why *why);

// FAULT_UNSUPPORTED for a key that is not one of `known` (ended by NULL).
int tokenizer_check_keys(const json_t *object, const char *place, const char *const known[],
                         struct why *why);

bool tokenizer_is_none(const json_t *value); // Missing or null

// A flag that may be missing; FAULT_FORMAT for another kind.
int tokenizer_read_flag(const json_t *object, const char *place, const char *key, bool missing,
                        struct why *why, bool *ret_flag);

// The 'type' of an object, borrowed; FAULT_FORMAT if there is none.
int tokenizer_read_type(const json_t *object, const char *place, struct why *why,
                        const char **ret_type);

// Readers of parts of the root; `whole` is the root's name in error texts.
int tokenizer_read_normalizer(const json_t *root, const char *whole, bool *ret_nfc,
                              struct why *why);
int tokenizer_read_pretokenizer(const json_t *root, const char *whole, struct pretokenizer *self,
                                struct why *why);
int tokenizer_read_post_processor(const json_t *root, const char *whole, tokenizer_t *self,
                                  struct why *why);
int tokenizer_check_decoder(const json_t *root, const char *whole, struct why *why);
