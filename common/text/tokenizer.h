#pragma once
// tokenizer -- text to token ids and back: Hugging Face's byte-level BPE, whole.
//
//   text ─ added tokens ─▶ pieces of text ─ nfc.h ─▶ the same in NFC ─ added tokens ─▶ pieces
//        ─ pretokenize.h ─▶ words ─ bpe.h ─▶ ids ─ template ─▶ ids
//
// NFC only where the file has that normalizer.
//
// Ids equal those of Hugging Face's `tokenizers` for every file that tokenizer_read accepts. A
// setting that would change ids and is not supported here is refused by name. The simplest
// tokenizer is that of bytes: 256 tokens whose ids are the bytes.
//
// A text is any bytes; bytes that are not valid UTF-8, which Hugging Face does not accept, are
// taken one by one. Ids decode to the bytes they were made from, except for what NFC changed, white
// space that lstrip and rstrip of an added token swallowed, and a space that add_prefix_space put in.
//
// A tokenizer is read by any number of threads; an encoder belongs to one.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/fault.h"
#include "common/text/added_tokens.h"
#include "common/text/bpe.h"
#include "common/text/pretokenize.h"
#include "common/text/token_list.h"

enum {
    TOKENIZER_BYTES_VOCAB = 256,
    TOKENIZER_FILE_MAX = 64 << 20, // Bytes of a tokenizer.json
    TOKENIZER_TEMPLATE_MAX = 16,   // Ids before, and after, a text
};

struct tokenizer {
    bpe_t *bpe; // Owned
    bool nfc;   // The normalizer
    struct pretokenizer pretokenizer;
    struct added_tokens plain, normalized; // Added tokens without and with the flag `normalized`
    uint32_t before[TOKENIZER_TEMPLATE_MAX], after[TOKENIZER_TEMPLATE_MAX]; // The template
    uint32_t before_count, after_count;
};
typedef struct tokenizer tokenizer_t;

// The byte tokenizer. FAULT_MEMORY.
int tokenizer_new_bytes(struct why *why, tokenizer_t **ret_self);

// From `path`: the file tokenizer.json, or the folder that has it; or the word "bytes".
int tokenizer_load(const char *path, struct why *why, tokenizer_t **ret_self);
void tokenizer_destroy(tokenizer_t **self);

uint32_t tokenizer_id_end(const tokenizer_t *self); // One more than the highest id
bool tokenizer_is_bytes(const tokenizer_t *self);   // As tokenizer_new_bytes made it

// The id of an added token or, if there is none, of the token with that text. FAULT_NOT_FOUND.
int tokenizer_find(const tokenizer_t *self, const char *content, struct why *why, uint32_t *ret_id);

typedef struct encoder encoder_t;
encoder_t *encoder_new(const tokenizer_t *tokenizer); // Borrows for its life. NULL: memory is out
void encoder_destroy(encoder_t **self);

enum { ENCODE_CONTINUES = 1 }; // The text goes on from a cut: no add_prefix_space

// Appends the ids of the text. FAULT_RANGE for a byte that is not a token in a vocabulary without
// unk_token, FAULT_LIMIT for a word above BPE_WORD_MAX and for what nfc.h refuses; *out then has what
// came before.
int tokenizer_encode(encoder_t *self, const uint8_t *text, size_t count, unsigned flags,
                     struct why *why, struct token_list *out);

// Appends the ids that the template puts before or behind a text (Hugging Face's
// add_special_tokens).
void tokenizer_template(const tokenizer_t *self, bool behind, struct token_list *out);

// Where a long text may be cut: the last offset at or before `count` at which
//     encode(text[0..offset)) ‖ encode(text[offset..), ENCODE_CONTINUES)
// is the encoding of the whole, whatever follows text[count]. 0: there is no such offset.
size_t tokenizer_last_cut(const tokenizer_t *self, const uint8_t *text, size_t count);

// Bytes in memory that grows. All zero is an empty one.
struct byte_list {
    uint8_t *bytes; // Owned
    size_t count, capacity;
};
void byte_list_free(struct byte_list *self);

// Appends the bytes of the ids; for an added token, its content (Hugging Face reads even that with
// the byte alphabet, which breaks characters beyond ASCII). FAULT_RANGE, with the index, for an id
// that is not a token; *out then has the bytes before it.
int tokenizer_decode(const tokenizer_t *self, const uint32_t *ids, size_t count, bool skip_special,
                     struct why *why, struct byte_list *out);
