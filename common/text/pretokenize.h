#pragma once
// pretokenize -- text to the pieces within which BPE merges: the splitters of Hugging Face's
// byte-level tokenizers, written by hand. Each cuts a text into pieces without a gap; a
// pre-tokenizer is a short chain of them, each cutting the pieces of the one before.
//
//   GPT2     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//   CL100K   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}
//                | ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+         (Llama 3)
//   CL100K1  the same with \p{N} for \p{N}{1,3}
//   DIGIT    each number alone, the text between them in one piece           (SmolLM, before GPT2)
//   DIGITS   runs of numbers, runs of others
//
// DIGIT and DIGITS take 13 code points more for numbers than \p{N}: Hugging Face's Digits has a newer
// Unicode than its regular expressions.
//
// Any bytes are allowed: a byte that is not valid UTF-8 counts as a character that is neither
// letter, number nor space. Pure; any thread.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pretokenize_rule {
    PRETOKENIZE_GPT2,
    PRETOKENIZE_CL100K,
    PRETOKENIZE_CL100K1,
    PRETOKENIZE_DIGIT,
    PRETOKENIZE_DIGITS,
    PRETOKENIZE_RULES
};

// The regular expression in a tokenizer.json that means the rule; NULL for the two without one.
const char *pretokenize_pattern(enum pretokenize_rule rule);

// The length of the first piece; count is 1 or more, and so is the result.
size_t pretokenize_next(enum pretokenize_rule rule, const uint8_t *text, size_t count);

enum { PRETOKENIZE_CHAIN_MAX = 4 };
struct pretokenizer {
    bool add_prefix_space;   // A space goes before a text that begins with none
    bool gpt2_is_byte_level; // tokenizer.json: GPT2, last, is ByteLevel's use_regex
    uint32_t count;          // 0: the whole text is one piece
    enum pretokenize_rule chain[PRETOKENIZE_CHAIN_MAX];
};

// Called with each word of a text, in order. A result other than 0 ends the walk and is returned.
typedef int pretokenize_word_fn(void *context, const uint8_t *word, size_t count);
int pretokenize_words(const struct pretokenizer *self, const uint8_t *text, size_t count,
                      pretokenize_word_fn *word, void *context);

// Where a long text may be cut: the last offset at or before `count` at which the words of
// text[0..offset) and of text[offset..), each taken alone, are those of the whole, whatever follows
// text[count]. That holds between an ASCII letter and a line feed. 0: there is no such offset.
size_t pretokenize_last_cut(const struct pretokenizer *self, const uint8_t *text, size_t count);
