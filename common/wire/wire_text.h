#pragma once
// wire_text -- which texts travel: well-formed UTF-8 without control characters, neither those of ASCII (DEL
// included) nor C1 (U+0080 to U+009F), which steer terminals. So every reader may print what it gets, and put it
// into JSON. Pure; any thread.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Bytes of the UTF-8 character at `at`, of which `left` bytes are there (RFC 3629: no overlong forms, no
// surrogates, nothing above U+10FFFF); 0: there is none.
unsigned wire_text_character(const uint8_t *at, size_t left);

bool wire_text_is_control(const uint8_t *character); // Of a well-formed character

// The first byte that is of no such character, or is a control character; `count`: there is none.
size_t wire_text_fault(const uint8_t *text, size_t count);
