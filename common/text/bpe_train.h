#pragma once
// bpe_train -- a tokenizer from text: count its words, then merge the commonest pair of neighbours,
// again and again, until the vocabulary is full.
//
//   ids 0 ..      special tokens, in the order given
//       ..        the 256 bytes, in the order of their characters (byte_alphabet.h)
//       ..        one token for each merge that makes a new text
//
// The algorithm is Hugging Face's BpeTrainer with ByteLevel's alphabet, ties included: the pair of
// the highest count first; of equal counts, the pair of the lowest ids. A pair may have two entries
// in the queue, each with its own words, as it has there. If both have the same count, Hugging
// Face's order is chance: only then may our vocabulary differ from theirs.
//
// The result depends on the text alone, not on how many workers counted it or how it was cut.

#include "common/text/tokenizer.h"

enum { BPE_TRAIN_SPECIAL_MAX = 1024, BPE_TRAIN_WORKERS_MAX = 64 };

struct bpe_train_options {
    struct pretokenizer pretokenizer;
    uint32_t vocab_size;               // 1 .. BPE_TOKENS_MAX; bytes and special ones are always in
    uint64_t min_frequency;            // A pair that occurs less often is not merged; 0: any
    const char *const *special_tokens; // Borrowed
    uint32_t special_count;
    uint32_t workers; // 1 .. BPE_TRAIN_WORKERS_MAX
};

typedef struct bpe_train bpe_train_t;

// FAULT_RANGE, FAULT_FORMAT (twice the same special token), FAULT_MEMORY.
int bpe_train_new(const struct bpe_train_options *options, struct why *why, bpe_train_t **ret_self);
void bpe_train_destroy(bpe_train_t **self);

// Counts the words of a text. Flags as for tokenizer_encode. Different workers (0 ..) may call at
// the same time. A word above 2^20 bytes is counted by its first 2^20.
void bpe_train_add(bpe_train_t *self, uint32_t worker, const uint8_t *text, size_t count,
                   unsigned flags);

struct bpe_train_result {
    uint64_t words, distinct_words;
    uint32_t merges;
};

// Called now and then with the number of tokens so far; false ends the training with FAULT_TIMEOUT.
// `context` is the caller's.
typedef bool bpe_train_say(void *context, uint32_t tokens, uint32_t vocab_size);

// Once, at the end. FAULT_RANGE if no word was counted. `say` may be NULL.
int bpe_train_finish(bpe_train_t *self, bpe_train_say *say, void *context, struct why *why,
                     tokenizer_t **ret_tokenizer, struct bpe_train_result *ret_result);
