#pragma once
// byte_tokenizer -- the vocabulary of 256 in which token = byte, as files that Hugging Face's
// `tokenizers` and `transformers` load: tokenizer.json (byte-level BPE without merges) and
// tokenizer_config.json. Decoding is total for valid UTF-8; no special tokens.
//
// tokenizer.json writes a byte as a character of GPT-2's alphabet: the bytes 0x21-0x7e, 0xa1-0xac
// and 0xae-0xff stand for the code points of the same number, the other 68, in ascending order, for
// U+0100, U+0101, ... ("Ġ", U+0120, is the space). Ids are byte values, where GPT-2's own are not.

#include <stdint.h>

#include "common/fault.h"

enum { BYTE_VOCAB = 256 };

uint32_t byte_tokenizer_code_point(uint8_t byte);

// Into `dir`, durably. `seq_len` becomes model_max_length: the longest input the model is meant
// for.
int byte_tokenizer_write(const char *dir, uint32_t seq_len, struct why *why);
