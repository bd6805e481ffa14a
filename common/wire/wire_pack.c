// wire_pack -- walks the table of a record and writes each field in its shortest form, after the
// same check that the reader will make. The sink counts on when its buffer is full, so one walk
// serves to pack and to validate.

#include "common/base/bytes.h"
#include "common/wire/wire_table.h"
#include "common/wire/wire_text.h"

#include <math.h>
#include <string.h>

// ---- msgpack, the canonical half: the shortest form of everything ---------------------------

// Returns the place for `count` bytes, or NULL if the sink is full.
static inline uint8_t *sink_room(struct wire_sink *sink, size_t count)
{
    const size_t at = sink->used;
    sink->used += count;
    return sink->used <= sink->max ? sink->out + at : NULL;
}

static inline void put_tagged(struct wire_sink *sink, uint8_t tag, uint64_t value, unsigned width)
{
    uint8_t *out = sink_room(sink, 1 + width);
    if (!out) return;
    *out++ = tag;
    be_put(out, value, width);
}

static inline void put_unsigned(struct wire_sink *sink, uint64_t value)
{
    if (value < 128) put_tagged(sink, (uint8_t)value, 0, 0);
    else if (value <= UINT8_MAX) put_tagged(sink, 0xcc, value, 1);
    else if (value <= UINT16_MAX) put_tagged(sink, 0xcd, value, 2);
    else if (value <= UINT32_MAX) put_tagged(sink, 0xce, value, 4);
    else put_tagged(sink, 0xcf, value, 8);
}

static void put_signed(struct wire_sink *sink, int64_t value)
{
    if (value >= 0) put_unsigned(sink, (uint64_t)value);
    else if (value >= -32) put_tagged(sink, (uint8_t)value, 0, 0);
    else if (value >= INT8_MIN) put_tagged(sink, 0xd0, (uint64_t)value, 1);
    else if (value >= INT16_MIN) put_tagged(sink, 0xd1, (uint64_t)value, 2);
    else if (value >= INT32_MIN) put_tagged(sink, 0xd2, (uint64_t)value, 4);
    else put_tagged(sink, 0xd3, (uint64_t)value, 8);
}

static void put_array(struct wire_sink *sink, uint32_t count)
{
    if (count < 16) put_tagged(sink, (uint8_t)(0x90 | count), 0, 0);
    else if (count <= UINT16_MAX) put_tagged(sink, 0xdc, count, 2);
    else put_tagged(sink, 0xdd, count, 4);
}

static void put_raw(struct wire_sink *sink, const void *bytes, size_t count)
{
    uint8_t *out = sink_room(sink, count);
    if (out && count) memcpy(out, bytes, count);
}

static void put_binary(struct wire_sink *sink, const void *bytes, uint64_t count)
{
    if (count <= UINT8_MAX) put_tagged(sink, 0xc4, count, 1);
    else if (count <= UINT16_MAX) put_tagged(sink, 0xc5, count, 2);
    else put_tagged(sink, 0xc6, count, 4);
    put_raw(sink, bytes, count);
}

static void put_string(struct wire_sink *sink, const char *text, uint64_t count)
{
    if (count < 32) put_tagged(sink, (uint8_t)(0xa0 | count), 0, 0);
    else if (count <= UINT8_MAX) put_tagged(sink, 0xd9, count, 1);
    else if (count <= UINT16_MAX) put_tagged(sink, 0xda, count, 2);
    else put_tagged(sink, 0xdb, count, 4);
    put_raw(sink, text, count);
}

// ---- one field of each type, checked as its reader will check it -----------------------------

static bool pack_unsigned(struct wire_sink *sink, const struct wire_field *field, uint64_t value)
{
    if (value < field->min || value > field->max)
        return wire_refuse(sink->refusal, WIRE_REFUSED_RANGE, value, field->min, field->max);
    put_unsigned(sink, value);
    return true;
}

static bool pack_signed(struct wire_sink *sink, const struct wire_field *field, int64_t value)
{
    if (value < (int64_t)field->min || value > (int64_t)field->max) {
        wire_refuse(sink->refusal, WIRE_REFUSED_RANGE, (uint64_t)value, field->min, field->max);
        sink->refusal->is_signed = true;
        sink->refusal->is_negative = value < 0;
        return false;
    }
    put_signed(sink, value);
    return true;
}

static bool pack_float(struct wire_sink *sink, float value)
{
    uint32_t bits;
    if (!isfinite(value)) return wire_refuse(sink->refusal, WIRE_REFUSED_NOT_FINITE, 0, 0, 0);
    memcpy(&bits, &value, sizeof bits);
    put_tagged(sink, 0xca, bits, 4);
    return true;
}

static bool pack_double(struct wire_sink *sink, double value)
{
    uint64_t bits;
    if (!isfinite(value)) return wire_refuse(sink->refusal, WIRE_REFUSED_NOT_FINITE, 0, 0, 0);
    memcpy(&bits, &value, sizeof bits);
    put_tagged(sink, 0xcb, bits, 8);
    return true;
}

// A text may quote a file's name or another's words, or be cut within a character.
static void mend_text(struct wire_sink *sink, size_t count)
{
    if (!sink->is_for_outside || sink->used > sink->max) return;
    uint8_t *text = sink->out + sink->used - count;
    for (size_t i = 0; (i += wire_text_fault(text + i, count - i)) < count;) text[i] = '?';
}

static bool pack_string(struct wire_sink *sink, const struct wire_field *field, const char *text)
{
    const size_t count = strnlen(text, field->max + 1);
    if (count > field->max)
        return wire_refuse(sink->refusal, WIRE_REFUSED_LENGTH, count, 0, field->max);
    for (size_t i = 0; i < count; i++)
        if ((uint8_t)text[i] < 0x20)
            return wire_refuse(sink->refusal, WIRE_REFUSED_CONTROL, (uint8_t)text[i], 0x20,
                               UINT8_MAX);
    put_string(sink, text, count);
    mend_text(sink, count);
    return true;
}

static bool pack_bytes(struct wire_sink *sink, const struct wire_field *field,
                       const struct wire_bytes *bytes)
{
    if (bytes->count > field->max)
        return wire_refuse(sink->refusal, WIRE_REFUSED_LENGTH, bytes->count, 0, field->max);
    if (bytes->count && !bytes->data)
        return wire_refuse(sink->refusal, WIRE_REFUSED_NULL, bytes->count, 0, 0);
    put_binary(sink, bytes->data, bytes->count);
    return true;
}

static bool pack_list(struct wire_sink *sink, const struct wire_field *field, const uint8_t *body,
                      uint32_t *ret_index)
{
    const uint8_t *items;
    uint32_t count;
    memcpy(&items, body + field->offset, sizeof items);
    memcpy(&count, body + field->count_offset, sizeof count);
    if (count > field->max)
        return wire_refuse(sink->refusal, WIRE_REFUSED_COUNT, count, 0, field->max);
    if (count && !items) return wire_refuse(sink->refusal, WIRE_REFUSED_NULL, count, 0, 0);
    put_array(sink, count);
    for (uint32_t i = 0; i < count; i++) {
        *ret_index = i;
        if (!wire_sink_record(sink, field->record, items + (size_t)i * field->record->size))
            return false;
    }
    return true;
}

static bool pack_part(struct wire_sink *sink, const struct wire_field *field,
                      const struct wire_part *part)
{
    const struct wire_frame *frame = wire_table_frame(part->kind);
    if (part->kind == FRAME_NONE) {
        put_tagged(sink, 0xc0, 0, 0);
        return true;
    }
    if (!frame)
        return wire_refuse(sink->refusal, WIRE_REFUSED_KIND, part->kind, 0, wire_table_last());
    if (!(frame->flags & field->max))
        return wire_refuse(sink->refusal, WIRE_REFUSED_FLAGS, part->kind, 0, 0);
    if (!part->body) return wire_refuse(sink->refusal, WIRE_REFUSED_NULL, 1, 0, 0);
    put_array(sink, 2);
    put_unsigned(sink, part->kind);
    return wire_sink_record(sink, frame->record, part->body);
}

static bool pack_field(struct wire_sink *sink, const struct wire_field *field, const uint8_t *body,
                       uint32_t *ret_index)
{
    const void *value = body + field->offset;
    switch (field->type) {
    case WIRE_TYPE_U8:
    case WIRE_TYPE_ENUM: return pack_unsigned(sink, field, *(const uint8_t *)value);
    case WIRE_TYPE_U16: return pack_unsigned(sink, field, *(const uint16_t *)value);
    case WIRE_TYPE_U32: return pack_unsigned(sink, field, *(const uint32_t *)value);
    case WIRE_TYPE_U64: return pack_unsigned(sink, field, *(const uint64_t *)value);
    case WIRE_TYPE_I64: return pack_signed(sink, field, *(const int64_t *)value);
    case WIRE_TYPE_F32: return pack_float(sink, *(const float *)value);
    case WIRE_TYPE_F64: return pack_double(sink, *(const double *)value);
    case WIRE_TYPE_BOOL: put_tagged(sink, *(const bool *)value ? 0xc3 : 0xc2, 0, 0); return true;
    case WIRE_TYPE_STR: return pack_string(sink, field, value);
    case WIRE_TYPE_BIN: put_binary(sink, value, field->max); return true;
    case WIRE_TYPE_BYTES: return pack_bytes(sink, field, value);
    case WIRE_TYPE_SUB: return wire_sink_record(sink, field->record, value);
    case WIRE_TYPE_LIST: return pack_list(sink, field, body, ret_index);
    case WIRE_TYPE_PART: return pack_part(sink, field, value);
    }
    return false;
}

static bool pack_fields(struct wire_sink *sink, const struct wire_record *record, const void *body)
{
    const struct wire_field *fields = record->fields();
    for (uint32_t i = 0; i < record->field_count; i++) {
        uint32_t index = WIRE_NO_INDEX;
        if (!pack_field(sink, &fields[i], body, &index))
            return wire_refuse_in(sink->refusal, fields[i].name, index);
    }
    return true;
}

bool wire_sink_record(struct wire_sink *sink, const struct wire_record *record, const void *body)
{
    put_array(sink, record->field_count);
    return pack_fields(sink, record, body);
}

// ---- frames, bodies, records ----------------------------------------------------------------

static size_t sink_end(const struct wire_sink *sink, bool whole)
{
    return whole && sink->used <= sink->max ? sink->used : 0;
}

size_t wire_pack(const struct wire_head *head, const void *body, uint8_t *out, size_t out_max)
{
    const size_t max = WIRE_FRAME_MAX - WIRE_SIGNATURE_BYTES - 1; // So that a signature always fits
    const struct wire_frame *frame = wire_table_frame(head->kind);
    struct wire_refusal refusal;
    struct wire_sink sink = { .out = out,
                              .max = out_max < max ? out_max : max,
                              .refusal = &refusal,
                              .is_for_outside = true };
    if (!frame) return 0;
    put_array(&sink, 8);
    put_unsigned(&sink, WIRE_PROTOCOL);
    const bool whole =
        pack_fields(&sink, &wire_table_head, head) && wire_sink_record(&sink, frame->record, body);
    put_tagged(&sink, 0xc0, 0, 0);
    return sink_end(&sink, whole);
}

size_t wire_pack_body(uint16_t kind, const void *body, uint8_t *out, size_t out_max)
{
    const struct wire_frame *frame = wire_table_frame(kind);
    struct wire_refusal refusal;
    struct wire_sink sink = { .out = out, .max = out_max, .refusal = &refusal };
    return frame ? sink_end(&sink, wire_sink_record(&sink, frame->record, body)) : 0;
}

size_t wire_pack_record(uint16_t kind, const void *body, uint8_t *out, size_t out_max)
{
    const struct wire_frame *frame = wire_table_frame(kind);
    struct wire_refusal refusal;
    struct wire_sink sink = { .out = out, .max = out_max, .refusal = &refusal };
    if (!frame) return 0;
    put_array(&sink, 2);
    put_unsigned(&sink, kind);
    return sink_end(&sink, wire_sink_record(&sink, frame->record, body));
}

bool wire_valid(uint16_t kind, const void *body, struct wire_refusal *ret_refusal)
{
    const struct wire_frame *frame = wire_table_frame(kind);
    struct wire_sink sink = { .refusal = ret_refusal }; // No room: checks all, writes nothing
    if (frame && wire_sink_record(&sink, frame->record, body)) return true;
    if (!frame) wire_refuse(ret_refusal, WIRE_REFUSED_KIND, kind, 0, 0);
    ret_refusal->frame = wire_kind_name(kind);
    ret_refusal->then = "not packed";
    return false;
}
