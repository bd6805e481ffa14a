#pragma once
// bpe -- byte-pair encoding: a vocabulary, a ranked list of merges, and words cut by them.
//
//   word "Ġlow"   ids of its bytes   Ġ l o w
//                 the merge of the lowest rank among neighbours, leftmost first, until none is left
//                 Ġ lo w  ▶  Ġ low  ▶  Ġlow
//
// (Sennrich, Haddow and Birch 2016; over bytes as in GPT-2, Radford et al. 2019.) The result is
// what Hugging Face's `tokenizers` computes: same rank rule, unk_token, fuse_unk, ignore_merges.
//
// A token is known by its text, as tokenizer.json writes it: characters of byte_alphabet.h. A text
// with other characters is a token too, but no merge of bytes makes it.
//
// One thread builds it once (new, then tokens, then merges, then finish); any number of threads
// read it. Encoding changes only a struct bpe_work, of which each thread has its own.

#include <stdbool.h>

#include "common/base/fault.h"
#include "common/text/token_list.h"

enum {
    BPE_TOKENS_MAX = 1 << 20, // Ids are below it
    BPE_MERGES_MAX = 1 << 20,
    BPE_TOKEN_BYTES_MAX = 1 << 16, // Of one token's text
    BPE_WORD_MAX = 1 << 28,        // Bytes of a word; ensured
};
#define BPE_NONE UINT32_MAX // No such token

typedef struct bpe bpe_t;

// FAULT_MEMORY.
int bpe_new(struct why *why, bpe_t **ret_self);
void bpe_destroy(bpe_t **self);

// Keeps the text. FAULT_RANGE for an id or text out of range, FAULT_FORMAT if another token has the
// id or the text.
int bpe_add_token(bpe_t *self, uint32_t id, const char *text, size_t count, struct why *why);

// The next merge, by the ids of its two sides; ranks count up. Makes the token whose text is both
// texts together. FAULT_FORMAT if there is no such token or the pair has a merge, FAULT_LIMIT.
int bpe_add_merge(bpe_t *self, uint32_t left, uint32_t right, struct why *why);

struct bpe_options {
    uint32_t unk_id;    // For a byte that is not a token; BPE_NONE: refused
    bool fuse_unk;      // One unk for a run of such bytes
    bool ignore_merges; // A word that is a token as a whole is that token
};
void bpe_finish(bpe_t *self, const struct bpe_options *options);
const struct bpe_options *bpe_options_of(const bpe_t *self);

// What was built.
uint32_t bpe_id_end(const bpe_t *self); // One more than the highest id; 0 without tokens
uint32_t bpe_token_count(const bpe_t *self);
uint32_t bpe_find(const bpe_t *self, const char *text, size_t count);    // Its id, or BPE_NONE
uint32_t bpe_byte_id(const bpe_t *self, uint8_t byte);                   // Its id, or BPE_NONE
const char *bpe_text(const bpe_t *self, uint32_t id, size_t *ret_count); // NULL: no such id
uint32_t bpe_merge_count(const bpe_t *self);
void bpe_merge_at(const bpe_t *self, uint32_t rank, uint32_t *ret_left, uint32_t *ret_right);

// The bytes that the token stands for: its text read by the alphabet, or the text itself if it has
// other characters. NULL: no such id.
const uint8_t *bpe_bytes(const bpe_t *self, uint32_t id, size_t *ret_count);

struct bpe_work;
struct bpe_work *bpe_work_new(void); // NULL when memory is out; 4 MiB, and what long words need
void bpe_work_destroy(struct bpe_work **self);

// Appends the ids of a word (1 or more bytes). A struct bpe_work caches words, so it is used with
// one bpe only. FAULT_RANGE, with the offset, for a byte that is not a token; `out` then has the
// ids before.
int bpe_encode(const bpe_t *self, struct bpe_work *work, const uint8_t *word, size_t count,
               struct why *why, struct token_list *out);
