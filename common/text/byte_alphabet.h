#pragma once
// byte_alphabet -- how tokenizer.json writes bytes: GPT-2's alphabet of 256 printable characters,
// one for each byte. The bytes 0x21-0x7e, 0xa1-0xac and 0xae-0xff stand for the code points of the
// same number; the other 68, in ascending order, for U+0100, U+0101, ... ("Ġ", U+0120, is the
// space). All of them are one or two bytes of UTF-8.
//
// Any thread.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint32_t byte_alphabet_code_point(uint8_t byte);
int byte_alphabet_byte(uint32_t code_point); // 0..255; -1 for what is not in the alphabet

// Bytes to characters. Writes at most 2·count bytes and returns how many.
size_t byte_alphabet_write(const uint8_t *bytes, size_t count, uint8_t *text);

// Characters to bytes. Writes at most `count` bytes and returns true, or false if a character is
// not in the alphabet.
bool byte_alphabet_read(const uint8_t *text, size_t count, uint8_t *bytes, size_t *ret_count);
