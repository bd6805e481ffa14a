#pragma once
// hex -- bytes as hexadecimal text. Pure; any thread.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Writes 2 * count lower-case digits and a zero into `text` and returns it.
char *hex_encode(const uint8_t *bytes, size_t count, char *text);

// False, and nothing written, unless `text` is exactly 2 * count digits, of either case.
bool hex_decode(const char *text, uint8_t *ret_bytes, size_t count);
