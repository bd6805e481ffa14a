#pragma once
// text_tokens -- tokens become a dataset: token files, split into a part to train on and a part
// held out, each in a folder of its own so that no provider opened on the one can ever serve the
// other:
//
//   dir/tokenizer.json  tokenizer_config.json        tokenizer_json.h
//   dir/train/train.bin      manifest.json           blocks 0 .. k-2 of every k
//   dir/heldout/heldout.bin  manifest.json           block k-1 of every k
//
// The tokens are one stream, cut into blocks of a fixed size; each part is its blocks end to end.
// So each part has seams where a sample may join two distant passages of the text: the training
// part one for every k blocks, which with the defaults is one sample of 512 tokens in about 600.
//
// The simplest tokenizer is that of bytes: a token is the value of a byte, the vocabulary is 256.
// text_tokens_convert and text_tokens_load do the whole work for it.
//
// Memory is small and constant, whatever the length. No file appears under its name before it is
// complete, and the manifests appear last; after a crash, run it again.
//
// `dir` may hold an earlier text. Its train.bin is replaced; its manifests, its heldout.bin and the
// baselines.json of its held-out part are removed before, so that parts of two texts never stand
// beside each other.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/fault.h"
#include "common/text/corpus.h"

enum { TEXT_BLOCK_TOKENS = 16384, TEXT_HELDOUT_EVERY = 20 };

struct text_config {
    uint32_t block_tokens;  // 1 .. 2^24; 0: TEXT_BLOCK_TOKENS
    uint32_t heldout_every; // k, 2 .. 2^20; 0: TEXT_HELDOUT_EVERY
    bool no_heldout;        // Every token is for training; an earlier held-out part is removed
    uint32_t token_bytes;   // 2 or 4; 0: 2
    const char *tokenizer;  // As for tokenizer_install; NULL: "bytes". Borrowed until
                            // text_tokens_destroy
    uint32_t seq_len;       // For tokenizer_config.json alone; 0: it does not say
};

struct text_counts {
    uint64_t train, heldout;
}; // In tokens

typedef struct text_tokens text_tokens_t;

// Makes `dir` and the two folders in it where they are missing. FAULT_RANGE, FAULT_DENIED,
// FAULT_DISK_FULL, FAULT_IO.
int text_tokens_new(const char *dir, const struct text_config *config, struct why *why,
                    text_tokens_t **ret_self);

// More tokens. After a failure only destroy makes sense. FAULT_RANGE for a token that token_bytes
// cannot hold.
int text_tokens_add_ids(text_tokens_t *self, const uint32_t *ids, size_t count, struct why *why);

// More text, whose tokens are its bytes.
int text_tokens_add(text_tokens_t *self, const void *bytes, size_t count, struct why *why);

// Removes what an earlier text left, commits both files, then writes tokenizer and manifests.
// FAULT_RANGE, and nothing is removed, if the text was too short to hold a block out; FAULT_FORMAT
// if other token files lie in the two folders.
int text_tokens_finish(text_tokens_t *self, struct why *why, struct text_counts *ret_counts);

// Without a finish before it, only the folders remain.
void text_tokens_destroy(text_tokens_t **self);

// The whole of it, for the tokenizer of bytes: the texts of a corpus, one after the other, with a
// line feed behind each record.
int text_tokens_convert(corpus_t *corpus, const char *dir, const struct text_config *config,
                        struct why *why, struct text_counts *ret_counts);

// Reads a file of byte tokens back as bytes; the caller frees them. FAULT_FORMAT for an odd number
// of bytes, FAULT_LIMIT above `bytes_max` tokens, FAULT_RANGE for a token above 255.
int text_tokens_load(const char *path, size_t bytes_max, struct why *why, uint8_t **ret_bytes,
                     size_t *ret_count);
