#pragma once
// wire_assert -- what the wire tests share: bytes from hexadecimal text, and refusals as sentences.

#include "tests/test.h"
#include "common/wire/wire_table.h"

#include <stdio.h>
#include <string.h>

static inline size_t from_hex(const char *hex, uint8_t *out)
{
    size_t count = 0;
    for (; *hex; hex++) {
        unsigned byte;
        if (*hex == ' ') continue;
        assert_int_equal(sscanf(hex, "%2x", &byte), 1);
        out[count++] = (uint8_t)byte;
        hex++;
    }
    return count;
}

static inline void assert_sentence(const struct wire_refusal *refusal, const char *expected)
{
    char sentence[WIRE_REFUSAL_TEXT_MAX];
    const size_t needed = wire_refusal_text(refusal, sentence, sizeof sentence);
    assert_string_equal(sentence, expected);
    assert_int_equal(needed, strlen(expected));
}

static inline void assert_dropped(const struct wire_refusal *refusal, const char *why, size_t at)
{
    char sentence[2 * WIRE_REFUSAL_TEXT_MAX];
    snprintf(sentence, sizeof sentence, "%s, at byte %zu: frame dropped", why, at);
    assert_sentence(refusal, sentence);
}

static inline unsigned record_depth(const struct wire_record *record);

// Of the deepest kind that this part may be.
static inline unsigned part_depth(const struct wire_field *part)
{
    unsigned deepest = 1; // The kind's number
    for (uint16_t kind = wire_kind_next(0); kind; kind = wire_kind_next(kind)) {
        if (!(wire_kind_flags(kind) & part->max)) continue;
        const unsigned depth = record_depth(wire_table_frame(kind)->record);
        if (depth > deepest) deepest = depth;
    }
    return deepest;
}

// 1 for a flat record.
static inline unsigned record_depth(const struct wire_record *record)
{
    unsigned deepest = 0;
    for (uint32_t i = 0; i < record->field_count; i++) {
        const struct wire_field *field = &record->fields()[i];
        const unsigned depth = field->record                   ? record_depth(field->record)
                               : field->type == WIRE_TYPE_PART ? part_depth(field)
                                                               : 0;
        if (depth > deepest) deepest = depth;
    }
    return deepest + 1;
}
