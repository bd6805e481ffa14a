#include "common/wire/wire_table.h"

#include <string.h>

static bool bytes_equal(const struct wire_bytes *a, const struct wire_bytes *b)
{
    return a->count == b->count && (!a->count || memcmp(a->data, b->data, a->count) == 0);
}

static bool list_equal(const struct wire_field *field, const uint8_t *a, const uint8_t *b)
{
    const uint8_t *a_items, *b_items;
    uint32_t a_count, b_count;
    memcpy(&a_items, a + field->offset, sizeof a_items);
    memcpy(&b_items, b + field->offset, sizeof b_items);
    memcpy(&a_count, a + field->count_offset, sizeof a_count);
    memcpy(&b_count, b + field->count_offset, sizeof b_count);
    if (a_count != b_count) return false;
    for (size_t i = 0; i < a_count; i++) {
        const size_t at = i * field->record->size;
        if (!wire_record_equal(field->record, a_items + at, b_items + at)) return false;
    }
    return true;
}

static bool part_equal(const struct wire_part *a, const struct wire_part *b)
{
    return a->kind == b->kind && (a->kind == FRAME_NONE || wire_equal(a->kind, a->body, b->body));
}

static bool field_equal(const struct wire_field *field, const uint8_t *a, const uint8_t *b)
{
    const void *x = a + field->offset, *y = b + field->offset;
    switch (field->type) {
    case WIRE_TYPE_U8:
    case WIRE_TYPE_BOOL:
    case WIRE_TYPE_ENUM: return memcmp(x, y, 1) == 0;
    case WIRE_TYPE_U16: return memcmp(x, y, 2) == 0;
    case WIRE_TYPE_U32:
    case WIRE_TYPE_F32: return memcmp(x, y, 4) == 0;
    case WIRE_TYPE_U64:
    case WIRE_TYPE_I64:
    case WIRE_TYPE_F64: return memcmp(x, y, 8) == 0;
    case WIRE_TYPE_STR: return strncmp(x, y, field->max) == 0;
    case WIRE_TYPE_BIN: return memcmp(x, y, field->max) == 0;
    case WIRE_TYPE_BYTES: return bytes_equal(x, y);
    case WIRE_TYPE_SUB: return wire_record_equal(field->record, x, y);
    case WIRE_TYPE_LIST: return list_equal(field, a, b);
    case WIRE_TYPE_PART: return part_equal(x, y);
    }
    return false;
}

bool wire_record_equal(const struct wire_record *record, const void *a, const void *b)
{
    const struct wire_field *fields = record->fields();
    for (uint32_t i = 0; i < record->field_count; i++)
        if (!field_equal(&fields[i], a, b)) return false;
    return true;
}

bool wire_equal(uint16_t kind, const void *a, const void *b)
{
    const struct wire_frame *frame = wire_table_frame(kind);
    return frame && wire_record_equal(frame->record, a, b);
}
