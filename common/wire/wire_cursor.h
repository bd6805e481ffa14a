#pragma once
// wire_cursor -- reads msgpack from others, one value at a time. The cursor moves only over checked
// bytes, and a length is compared with the bytes left before it is used. A function that fails
// returns false, with the refusal written, and nothing is read after that.

#include "common/wire/wire.h"

struct wire_cursor {
    const uint8_t *start, *at, *end;
    struct wire_arena *arena;
    struct wire_refusal *refusal;
    const char *frame, *then; // Go into the refusal
    bool is_from_outside;     // Texts must be as wire_text.h says
};

static inline size_t wire_cursor_left(const struct wire_cursor *cursor)
{
    return (size_t)(cursor->end - cursor->at);
}

// All three return false, so that a caller can return their result. Reasons: any; `needed` bytes
// are not there; the value at `at` has another type.
bool wire_cursor_refuse(struct wire_cursor *cursor, const uint8_t *at, enum wire_reason reason,
                        uint64_t value, uint64_t min, uint64_t max);
bool wire_cursor_cut(struct wire_cursor *cursor, uint64_t needed);
bool wire_cursor_mistyped(struct wire_cursor *cursor, const uint8_t *at, const char *expected);

// Skips the first byte and reads the big-endian number of `width` bytes behind it.
bool wire_cursor_tagged(struct wire_cursor *cursor, unsigned width, uint64_t *ret_value);

// Any integer in any of its forms, in two's complement; *ret_negative tells an int64_t below zero
// from a large uint64_t.
bool wire_cursor_integer(struct wire_cursor *cursor, uint64_t *ret_value, bool *ret_negative);

// The head of an array. The caller must compare its count with a limit.
bool wire_cursor_array(struct wire_cursor *cursor, uint32_t *ret_count);

// The bytes of a value with a length, whose long forms begin at `tag`.
enum { WIRE_TAG_BINARY = 0xc4, WIRE_TAG_STRING = 0xd9 };
bool wire_cursor_raw(struct wire_cursor *cursor, uint8_t tag, const uint8_t **ret_bytes,
                     uint64_t *ret_count);

// Skips one value of any type, however deep, without recursion.
bool wire_cursor_skip(struct wire_cursor *cursor);
