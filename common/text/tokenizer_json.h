#pragma once
// tokenizer_json -- a tokenizer as Hugging Face's `tokenizers` and `transformers` keep it.
//
// What is read: normalizer NFC, a Sequence of it, or an empty Sequence; model BPE (merges as "a b" or
// ["a", "b"]; unk_token, fuse_unk, ignore_merges); pre-tokenizer ByteLevel, or a Sequence of Split
// (one of the patterns of pretokenize.h, Isolated) and Digits, ending with ByteLevel; added tokens;
// post-processor ByteLevel, TemplateProcessing or a Sequence of them; decoder ByteLevel. What would
// change ids and is not supported is refused by name: other normalizers, truncation, padding,
// dropout, byte_fallback, single_word, prefixes and suffixes of words, other patterns and kinds.
// Unknown keys are refused too: they may change ids.
//
// The file is not trusted: at most TOKENIZER_FILE_MAX bytes, 16 levels and 8 million values.

#include "common/text/tokenizer.h"

// `place` begins every error text. FAULT_FORMAT, FAULT_UNSUPPORTED, FAULT_RANGE, FAULT_LIMIT,
// FAULT_MEMORY.
int tokenizer_read(const char *place, const char *text, size_t count, struct why *why,
                   tokenizer_t **ret_self);

struct tokenizer_config {
    uint32_t seq_len;                    // model_max_length; 0: left out
    const char *end_token, *begin_token; // eos_token, bos_token: the content; NULL: none
};

// Writes tokenizer.json and tokenizer_config.json (or that alone) into `dir`, durably.
// tokenizer_read gives back an equal tokenizer.
int tokenizer_write(const tokenizer_t *self, const char *dir, const struct tokenizer_config *config,
                    struct why *why);
int tokenizer_write_config(const tokenizer_t *self, const char *dir,
                           const struct tokenizer_config *config, struct why *why);

// Puts the tokenizer of a path, as tokenizer_load reads it, into `dir`, durably. "bytes" is written
// from memory. Otherwise tokenizer.json is copied as it is, with tokenizer_config.json and
// special_tokens_map.json if they lie beside it; a missing tokenizer_config.json is written, with
// `seq_len`.
int tokenizer_install(const char *path, const char *dir, uint32_t seq_len, struct why *why);
