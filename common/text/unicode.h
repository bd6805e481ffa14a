#pragma once
// unicode -- as much of it as tokenizers need: UTF-8 to code points, the class of a code point, and
// what NFC may do to it. The classes are Unicode 16's categories L and N and the property
// White_Space. The table is our own, because ids must not depend on the Unicode version of a
// machine's libraries. Each part of Hugging Face's `tokenizers` (regular expressions, Digits, NFC)
// has its own version of Unicode; the table follows each of them.
//
// Any thread.

#include <stddef.h>
#include <stdint.h>

enum unicode_class {
    UNICODE_OTHER, // Also a byte that does not begin valid UTF-8
    UNICODE_LETTER,
    UNICODE_NUMBER,
    UNICODE_SPACE,
};

// The byte of a code point in the table.
enum {
    UNICODE_CLASS = 3,       // Mask: these two bits are the enum unicode_class
    UNICODE_NEW_NUMBER = 4,  // OTHER, but a number to the pre-tokenizer Digits: Unicode 17
    UNICODE_NFC_CHANGES = 8, // NFC may change or move it, or join it to the character before it
    UNICODE_NFC_JOINS = 16,  // Not that, but NFC may join it to the character after it
};

enum { UNICODE_INVALID = 0x110000 }; // The "code point" of a byte that does not begin valid UTF-8

// The code point at text[0], count 1 or more; *ret_length is its bytes, 1 for UNICODE_INVALID.
// Overlong forms, surrogates and what is above U+10FFFF are not valid.
uint32_t unicode_next(const uint8_t *text, size_t count, size_t *ret_length);

extern uint8_t unicode_classes[UNICODE_INVALID + 1]; // Filled before main begins
// code_point: at most UNICODE_INVALID.
static inline enum unicode_class unicode_class_of(uint32_t code_point)
{
    return (enum unicode_class)(unicode_classes[code_point] & UNICODE_CLASS);
}

// A number to Hugging Face's Digits.
static inline int unicode_is_digit(uint32_t code_point)
{
    const uint8_t flags = unicode_classes[code_point] & (UNICODE_CLASS | UNICODE_NEW_NUMBER);
    return flags == UNICODE_NUMBER || flags == UNICODE_NEW_NUMBER;
}

// The offset of the first byte that is not valid UTF-8; `count` if there is none.
size_t unicode_valid_until(const uint8_t *text, size_t count);

// Writes up to 4 bytes and returns how many; code_point is at most 0x10ffff.
size_t unicode_put(uint32_t code_point, uint8_t *text);
