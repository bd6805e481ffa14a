#pragma once
// nfc -- Unicode's normalization form C, as Hugging Face's normalizer NFC gives it: a letter and the
// marks behind it become one character where there is one, and marks are put in order.
//
//     "e" U+0301  ─▶  "é"              U+0323 stands before U+0301 after any letter
//
// utf8proc does it. Its Unicode is newer than Hugging Face's and differs between machines, so only
// characters that Hugging Face's table knows are given to it (unicode_ranges.def); on those all
// versions agree. Bytes that are not valid UTF-8 stay as they are.
//
// Any thread.

#include "common/base/fault.h"
#include <stddef.h>
#include <stdint.h>

enum { NFC_MARKS_MAX = 4096 }; // Marks in a row: putting n in order takes n * n steps

// The offset of the first character that NFC may change, or of the one before it if the two may
// become one; `count` if there is none: the text is in NFC.
size_t nfc_begin(const uint8_t *text, size_t count);

// The whole text in NFC; the caller frees. FAULT_LIMIT for more than NFC_MARKS_MAX marks in a row,
// FAULT_MEMORY.
int nfc_normalize(const uint8_t *text, size_t count, struct why *why, uint8_t **ret_text,
                  size_t *ret_count);
