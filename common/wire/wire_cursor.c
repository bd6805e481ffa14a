#include "common/base/bytes.h"
#include "common/wire/wire_cursor.h"
#include "common/wire/wire_table.h"

bool wire_cursor_refuse(struct wire_cursor *cursor, const uint8_t *at, enum wire_reason reason,
                        uint64_t value, uint64_t min, uint64_t max)
{
    wire_refuse(cursor->refusal, reason, value, min, max);
    cursor->refusal->frame = cursor->frame;
    cursor->refusal->then = cursor->then;
    cursor->refusal->offset = (size_t)(at - cursor->start);
    return false;
}

bool wire_cursor_cut(struct wire_cursor *cursor, uint64_t needed)
{
    return wire_cursor_refuse(cursor, cursor->at, WIRE_REFUSED_CUT, needed, 0,
                              wire_cursor_left(cursor));
}

bool wire_cursor_mistyped(struct wire_cursor *cursor, const uint8_t *at, const char *expected)
{
    wire_cursor_refuse(cursor, at, WIRE_REFUSED_TYPE, *at, 0, 0);
    cursor->refusal->expected = expected;
    return false;
}

bool wire_cursor_tagged(struct wire_cursor *cursor, unsigned width, uint64_t *ret_value)
{
    if (wire_cursor_left(cursor) < 1 + width) return wire_cursor_cut(cursor, 1 + width);
    *ret_value = be_get(cursor->at + 1, width);
    cursor->at += 1 + width;
    return true;
}

bool wire_cursor_integer(struct wire_cursor *cursor, uint64_t *ret_value, bool *ret_negative)
{
    *ret_negative = false;
    if (!wire_cursor_left(cursor)) return wire_cursor_cut(cursor, 1);
    const uint8_t first = *cursor->at;
    if (first < 0x80 || first >= 0xe0) {
        *ret_value = (uint64_t)(int64_t)(int8_t)first;
        *ret_negative = first >= 0xe0;
        cursor->at++;
        return true;
    }
    if (first < 0xcc || first > 0xd3) return wire_cursor_mistyped(cursor, cursor->at, "an integer");
    const unsigned width = 1u << (first & 3); // cc..cf unsigned, d0..d3 signed
    if (!wire_cursor_tagged(cursor, width, ret_value)) return false;
    if (first >= 0xd0 && *ret_value >> (8 * width - 1)) {
        *ret_negative = true;
        if (width < 8) *ret_value |= UINT64_MAX << 8 * width;
    }
    return true;
}

bool wire_cursor_array(struct wire_cursor *cursor, uint32_t *ret_count)
{
    uint64_t count;
    const uint8_t *at = cursor->at;
    if (!wire_cursor_left(cursor)) return wire_cursor_cut(cursor, 1);
    if ((*at & 0xf0) == 0x90) cursor->at++, count = *at & 15;
    else if (*at != 0xdc && *at != 0xdd) return wire_cursor_mistyped(cursor, at, "an array");
    else if (!wire_cursor_tagged(cursor, *at == 0xdc ? 2 : 4, &count)) return false;
    *ret_count = (uint32_t)count;
    return true;
}

bool wire_cursor_raw(struct wire_cursor *cursor, uint8_t tag, const uint8_t **ret_bytes,
                     uint64_t *ret_count)
{
    const bool is_string = tag == WIRE_TAG_STRING;
    const uint8_t *at = cursor->at;
    if (!wire_cursor_left(cursor)) return wire_cursor_cut(cursor, 1);
    if (is_string && (*at & 0xe0) == 0xa0) cursor->at++, *ret_count = *at & 31;
    else if (*at < tag || *at > tag + 2)
        return wire_cursor_mistyped(cursor, at, is_string ? "a string" : "binary");
    else if (!wire_cursor_tagged(cursor, 1u << (*at - tag), ret_count)) return false;
    if (*ret_count > wire_cursor_left(cursor)) return wire_cursor_cut(cursor, *ret_count);
    *ret_bytes = cursor->at;
    cursor->at += *ret_count;
    return true;
}

// The bytes of the value at the cursor without its children, and the number of children that
// follow.
static bool measure(struct wire_cursor *cursor, uint64_t *ret_bytes, uint64_t *ret_children)
{
    static const struct {
        uint8_t width, more, children;
    } forms[32] = {
        // 0xc0 and on
        [0x04] = { 1, 0, 0 }, { 2, 0, 0 }, { 4, 0, 0 },              // bin
        [0x07] = { 1, 1, 0 }, { 2, 1, 0 }, { 4, 1, 0 },              // ext: a type byte more
        [0x0a] = { 0, 4, 0 }, { 0, 8, 0 },                           // float
        [0x0c] = { 0, 1, 0 }, { 0, 2, 0 }, { 0, 4, 0 }, { 0, 8, 0 }, // uint
        [0x10] = { 0, 1, 0 }, { 0, 2, 0 }, { 0, 4, 0 }, { 0, 8, 0 }, // int
        [0x14] = { 0, 2, 0 }, { 0, 3, 0 }, { 0, 5, 0 }, { 0, 9, 0 }, { 0, 17, 0 }, // fixext
        [0x19] = { 1, 0, 0 }, { 2, 0, 0 }, { 4, 0, 0 },                            // str
        [0x1c] = { 2, 0, 1 }, { 4, 0, 1 }, { 2, 0, 2 }, { 4, 0, 2 },               // array, map
    };
    if (!wire_cursor_left(cursor)) return wire_cursor_cut(cursor, 1);
    const uint8_t first = *cursor->at;
    *ret_bytes = 1;
    *ret_children = 0;
    if (first < 0x80 || first >= 0xe0) return true;
    if (first < 0x90) *ret_children = 2 * (first & 15u);
    else if (first < 0xa0) *ret_children = first & 15u;
    else if (first < 0xc0) *ret_bytes += first & 31u;
    if (first < 0xc0) return true;
    if (first == 0xc1) return wire_cursor_mistyped(cursor, cursor->at, "a value");
    const unsigned width = forms[first - 0xc0].width, children = forms[first - 0xc0].children;
    if (wire_cursor_left(cursor) < 1 + width) return wire_cursor_cut(cursor, 1 + width);
    const uint64_t count = be_get(cursor->at + 1, width);
    *ret_bytes += width + forms[first - 0xc0].more + (children ? 0 : count);
    *ret_children = children * count;
    return true;
}

bool wire_cursor_skip(struct wire_cursor *cursor)
{
    for (uint64_t values = 1; values > 0; values--) {
        uint64_t bytes, children;
        if (!measure(cursor, &bytes, &children)) return false;
        if (bytes > wire_cursor_left(cursor)) return wire_cursor_cut(cursor, bytes);
        cursor->at += bytes;
        values += children;
        if (values - 1 > wire_cursor_left(cursor)) return wire_cursor_cut(cursor, values - 1);
    }
    return true;
}
