#pragma once
// wire_fill -- a body of any kind, made up from its table: what the tests, the fuzzer's seeds and
// the benchmark put on the wire. Everything it makes is valid; its seed decides all of it.

#include "common/base/ensure.h"
#include "common/wire/wire_table.h"

#include <string.h>

struct wire_fill {
    uint64_t random;              // Any seed but 0
    struct wire_arena *arena;     // For lists and bytes; dies if too small
    uint32_t list_max, bytes_max; // Beside the limits of the table
    bool largest;                 // Everything as long as it can be
};

static inline uint64_t wire_fill_next(struct wire_fill *fill) // xorshift64*, Vigna 2014
{
    fill->random ^= fill->random >> 12;
    fill->random ^= fill->random << 25;
    fill->random ^= fill->random >> 27;
    return fill->random * 0x2545f4914f6cdd1d;
}

static inline void *wire_fill_take(struct wire_fill *fill, size_t count)
{
    const size_t align = _Alignof(max_align_t);
    struct wire_arena *arena = fill->arena;
    arena->used += (align - arena->used % align) % align;
    ensure(arena->used <= arena->max && count <= arena->max - arena->used);
    arena->used += count;
    return arena->bytes + arena->used - count;
}

// Often an end of the range or of an encoding, else of any magnitude.
static inline uint64_t wire_fill_integer(struct wire_fill *fill, uint64_t min, uint64_t max)
{
    const uint64_t choice = wire_fill_next(fill) % 8, width = wire_fill_next(fill) % 64;
    const uint64_t span = max - min;
    uint64_t above = wire_fill_next(fill) >> width;
    if (fill->largest || choice == 0) above = span;
    if (!fill->largest && choice == 1) above = 0;
    if (!fill->largest && choice == 2) above = (UINT64_C(1) << width) - (min & 1);
    return above <= span ? min + above : min + above % (span + 1);
}

static inline uint32_t wire_fill_count(struct wire_fill *fill, uint64_t max)
{
    if (fill->largest || wire_fill_next(fill) % 8 == 0) return (uint32_t)max;
    return (uint32_t)(wire_fill_next(fill) % (max + 1) >> wire_fill_next(fill) % 8);
}

static inline void wire_fill_bytes(struct wire_fill *fill, uint8_t *out, size_t count)
{
    for (size_t i = 0; i < count; i++) out[i] = (uint8_t)(wire_fill_next(fill) >> 32);
}

static inline void wire_fill_string(struct wire_fill *fill, char *out, size_t max)
{
    const size_t count = wire_fill_count(fill, max);
    const bool plain = wire_fill_next(fill) & 1;
    for (size_t i = 0; i < count; i++) {
        const uint64_t drawn = wire_fill_next(fill);
        const uint32_t other = 0xa0 + (uint32_t)(drawn >> 8) % (0x800 - 0xa0); // U+00A0 to U+07FF
        if (plain || drawn & 1 || i + 1 == count) {
            out[i] = (char)(0x20 + (drawn >> 8) % 0x5f);
        } else {
            out[i++] = (char)(0xc0 | other >> 6);
            out[i] = (char)(0x80 | (other & 0x3f));
        }
    }
}

static inline void wire_fill_record(struct wire_fill *fill, const struct wire_record *record,
                                    void *ret_body);

static inline void wire_fill_list(struct wire_fill *fill, const struct wire_field *field,
                                  uint8_t *body)
{
    const uint64_t max = field->max < fill->list_max ? field->max : fill->list_max;
    const uint32_t count = wire_fill_count(fill, max);
    uint8_t *items = wire_fill_take(fill, (size_t)count * field->record->size);
    for (size_t i = 0; i < count; i++)
        wire_fill_record(fill, field->record, items + i * field->record->size);
    memcpy(body + field->offset, &items, sizeof items);
    memcpy(body + field->count_offset, &count, sizeof count);
}

static inline void wire_fill_view(struct wire_fill *fill, const struct wire_field *field,
                                  struct wire_bytes *view)
{
    const uint32_t count =
        wire_fill_count(fill, field->max < fill->bytes_max ? field->max : fill->bytes_max);
    uint8_t *bytes = wire_fill_take(fill, count);
    wire_fill_bytes(fill, bytes, count);
    *view = (struct wire_bytes){ bytes, count };
}

// Any kind that this part may be, or none; or the one whose record is the longest.
static inline uint16_t wire_fill_part_kind(struct wire_fill *fill, const struct wire_field *field)
{
    uint16_t kinds[256] = { FRAME_NONE }, longest = FRAME_NONE;
    uint32_t count = 1;
    for (uint16_t kind = wire_kind_next(0); kind; kind = wire_kind_next(kind)) {
        if (!(wire_kind_flags(kind) & field->max)) continue;
        if (wire_record_max(kind) > wire_record_max(longest)) longest = kind;
        ensure(count < sizeof kinds / sizeof *kinds);
        kinds[count++] = kind;
    }
    return fill->largest ? longest : kinds[wire_fill_next(fill) % count];
}

static inline void wire_fill_part(struct wire_fill *fill, const struct wire_field *field,
                                  struct wire_part *part)
{
    const uint16_t kind = wire_fill_part_kind(fill, field);
    if (kind == FRAME_NONE) return;
    const struct wire_record *record = wire_table_frame(kind)->record;
    void *body = wire_fill_take(fill, record->size);
    wire_fill_record(fill, record, body);
    *part = (struct wire_part){ kind, body };
}

static inline void wire_fill_float(struct wire_fill *fill, void *out, bool is_double)
{
    const double value =
        ((double)wire_fill_next(fill) - 0x1p63) * (wire_fill_next(fill) & 1 ? 1e-9 : 1e9);
    const float single = (float)value;
    if (is_double) memcpy(out, &value, sizeof value);
    else memcpy(out, &single, sizeof single);
}

static inline void wire_fill_number(struct wire_fill *fill, const struct wire_field *field,
                                    void *out)
{
    const bool lowest = field->type == WIRE_TYPE_I64 && fill->largest;
    const uint64_t value = lowest ? field->min : wire_fill_integer(fill, field->min, field->max);
    const uint8_t byte = (uint8_t)value;
    const uint16_t two = (uint16_t)value;
    const uint32_t four = (uint32_t)value;
    switch (field->type) {
    case WIRE_TYPE_U16: memcpy(out, &two, sizeof two); break;
    case WIRE_TYPE_U32: memcpy(out, &four, sizeof four); break;
    case WIRE_TYPE_U64:
    case WIRE_TYPE_I64: memcpy(out, &value, sizeof value); break;
    default: memcpy(out, &byte, sizeof byte);
    }
}

static inline void wire_fill_record(struct wire_fill *fill, const struct wire_record *record,
                                    void *ret_body)
{
    memset(ret_body, 0, record->size);
    for (uint32_t i = 0; i < record->field_count; i++) {
        const struct wire_field *field = &record->fields()[i];
        uint8_t *out = (uint8_t *)ret_body + field->offset;
        switch (field->type) {
        case WIRE_TYPE_F32: wire_fill_float(fill, out, false); break;
        case WIRE_TYPE_F64: wire_fill_float(fill, out, true); break;
        case WIRE_TYPE_STR: wire_fill_string(fill, (char *)out, field->max); break;
        case WIRE_TYPE_BIN: wire_fill_bytes(fill, out, field->max); break;
        case WIRE_TYPE_BYTES: wire_fill_view(fill, field, (struct wire_bytes *)out); break;
        case WIRE_TYPE_SUB: wire_fill_record(fill, field->record, out); break;
        case WIRE_TYPE_LIST: wire_fill_list(fill, field, ret_body); break;
        case WIRE_TYPE_PART: wire_fill_part(fill, field, (struct wire_part *)out); break;
        default: wire_fill_number(fill, field, out);
        }
    }
}

// A body of this kind in the arena, and a head for it.
static inline void *wire_fill_frame(struct wire_fill *fill, uint16_t kind,
                                    struct wire_head *ret_head)
{
    const struct wire_record *record = wire_table_frame(kind)->record;
    void *body = wire_fill_take(fill, record->size);
    wire_fill_record(fill, &wire_table_head, ret_head);
    ret_head->kind = kind;
    wire_fill_record(fill, record, body);
    return body;
}
