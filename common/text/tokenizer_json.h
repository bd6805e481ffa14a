#pragma once
// tokenizer_json -- a tokenizer in the files of Hugging Face's `tokenizers` and `transformers`.
//
// These parts of a tokenizer.json are supported:
//
//     normalizer       none; NFC; a Sequence of NFC, which may be empty
//     pre_tokenizer    ByteLevel; a Sequence of Split and Digits that ends with ByteLevel. Split has
//                      one of the patterns of pretokenize.h, Isolated or Removed with invert
//     model            BPE, with merges as "a b" or ["a", "b"]; unk_token, fuse_unk, ignore_merges
//     post_processor   none; ByteLevel; TemplateProcessing; a Sequence of both
//     decoder          ByteLevel
//     added_tokens     any, without single_word
//
// Everything else may change ids, so it is refused, and the error names it: other kinds and
// patterns, truncation, padding, dropout, byte_fallback, prefixes and suffixes of words, and every
// key that is not known.
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

// tokenizer_write writes tokenizer.json and tokenizer_config.json into `dir`, durably;
// tokenizer_write_config writes the second of them alone. tokenizer_read of the first gives an equal
// tokenizer.
int tokenizer_write(const tokenizer_t *self, const char *dir, const struct tokenizer_config *config,
                    struct why *why);
int tokenizer_write_config(const tokenizer_t *self, const char *dir,
                           const struct tokenizer_config *config, struct why *why);

// Makes `dir` a folder with the tokenizer of `path`, which is what tokenizer_load takes; durably.
// For "bytes" both files are written. Otherwise the tokenizer.json of `path` is copied unchanged,
// and so are tokenizer_config.json and special_tokens_map.json, if they lie beside it. If there is
// no tokenizer_config.json, one with `seq_len` is written.
int tokenizer_install(const char *path, const char *dir, uint32_t seq_len, struct why *why);
