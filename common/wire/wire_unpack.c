// wire_unpack -- a frame is checked from left to right: its length, the protocol, the number of
// elements, the head, the kind with its flags and longest length, the body field by field, the
// signature, the end. The first fault ends it with a refusal that names the field; on success the
// body is in the arena.

#include "common/wire/wire_table.h"
#include "common/wire/wire_text.h"

#include <math.h>
#include <string.h>

enum { ELEMENTS_OF_FRAME = 8, ELEMENTS_OF_RECORD = 2, ELEMENTS_OF_PART = 2 };

// ---- one field of each type -----------------------------------------------------------------

static bool unpack_unsigned(struct wire_cursor *cursor, uint64_t min, uint64_t max,
                            uint64_t *ret_value)
{
    const uint8_t *at = cursor->at;
    bool negative;
    if (!wire_cursor_integer(cursor, ret_value, &negative)) return false;
    if (!negative && *ret_value >= min && *ret_value <= max) return true;
    wire_cursor_refuse(cursor, at, WIRE_REFUSED_RANGE, *ret_value, min, max);
    cursor->refusal->is_negative = negative;
    return false;
}

static bool unpack_signed(struct wire_cursor *cursor, const struct wire_field *field,
                          int64_t *ret_value)
{
    const int64_t min = (int64_t)field->min, max = (int64_t)field->max;
    const uint8_t *at = cursor->at;
    uint64_t value;
    bool negative;
    if (!wire_cursor_integer(cursor, &value, &negative)) return false;
    const bool fits = negative || value <= INT64_MAX;
    *ret_value = (int64_t)value;
    if (fits && *ret_value >= min && *ret_value <= max) return true;
    wire_cursor_refuse(cursor, at, WIRE_REFUSED_RANGE, value, field->min, field->max);
    cursor->refusal->is_negative = negative;
    cursor->refusal->is_signed = true;
    return false;
}

static bool unpack_bool(struct wire_cursor *cursor, bool *ret_value)
{
    if (!wire_cursor_left(cursor)) return wire_cursor_cut(cursor, 1);
    if (*cursor->at != 0xc2 && *cursor->at != 0xc3)
        return wire_cursor_mistyped(cursor, cursor->at, "a bool");
    *ret_value = *cursor->at++ == 0xc3;
    return true;
}

static bool unpack_float(struct wire_cursor *cursor, float *ret_value)
{
    const uint8_t *at = cursor->at;
    uint64_t wide;
    if (wire_cursor_left(cursor) && *at != 0xca)
        return wire_cursor_mistyped(cursor, at, "a float32");
    if (!wire_cursor_tagged(cursor, 4, &wide)) return false;
    const uint32_t bits = (uint32_t)wide;
    memcpy(ret_value, &bits, sizeof bits);
    return isfinite(*ret_value) ||
           wire_cursor_refuse(cursor, at, WIRE_REFUSED_NOT_FINITE, bits, 0, 0);
}

static bool unpack_double(struct wire_cursor *cursor, double *ret_value)
{
    const uint8_t *at = cursor->at;
    uint64_t bits;
    if (wire_cursor_left(cursor) && *at != 0xcb)
        return wire_cursor_mistyped(cursor, at, "a float64");
    if (!wire_cursor_tagged(cursor, 8, &bits)) return false;
    memcpy(ret_value, &bits, sizeof bits);
    return isfinite(*ret_value) ||
           wire_cursor_refuse(cursor, at, WIRE_REFUSED_NOT_FINITE, bits, 0, 0);
}

static bool unpack_string(struct wire_cursor *cursor, const struct wire_field *field,
                          char *ret_text)
{
    const uint8_t *at = cursor->at, *bytes;
    uint64_t count;
    if (!wire_cursor_raw(cursor, WIRE_TAG_STRING, &bytes, &count)) return false;
    if (count > field->max)
        return wire_cursor_refuse(cursor, at, WIRE_REFUSED_LENGTH, count, 0, field->max);
    for (uint64_t i = 0; i < count; i++)
        if (bytes[i] < 0x20)
            return wire_cursor_refuse(cursor, bytes + i, WIRE_REFUSED_CONTROL, bytes[i], 0x20,
                                      UINT8_MAX);
    const size_t fault = cursor->is_from_outside ? wire_text_fault(bytes, count) : count;
    if (fault < count)
        return wire_cursor_refuse(cursor, bytes + fault, WIRE_REFUSED_TEXT, bytes[fault], 0, 0);
    memcpy(ret_text, bytes, count); // The struct was zeroed: the text ends
    return true;
}

static bool take_binary(struct wire_cursor *cursor, const struct wire_field *field,
                        const uint8_t **ret_bytes, uint64_t *ret_count)
{
    const uint8_t *at = cursor->at;
    if (!wire_cursor_raw(cursor, WIRE_TAG_BINARY, ret_bytes, ret_count)) return false;
    return (*ret_count >= field->min && *ret_count <= field->max) ||
           wire_cursor_refuse(cursor, at, WIRE_REFUSED_LENGTH, *ret_count, field->min, field->max);
}

static bool unpack_binary(struct wire_cursor *cursor, const struct wire_field *field, uint8_t *out)
{
    const uint8_t *bytes;
    uint64_t count;
    if (!take_binary(cursor, field, &bytes, &count)) return false;
    memcpy(out, bytes, count);
    return true;
}

static bool unpack_bytes(struct wire_cursor *cursor, const struct wire_field *field,
                         struct wire_bytes *ret_bytes)
{
    uint64_t count;
    if (!take_binary(cursor, field, &ret_bytes->data, &count)) return false;
    ret_bytes->count = (uint32_t)count;
    return true;
}

// The memory is not zeroed here but record by record, so that a short frame with a large count does
// not make us touch much memory.
static void *arena_take(struct wire_cursor *cursor, const uint8_t *at, size_t count)
{
    struct wire_arena *arena = cursor->arena;
    const size_t align = _Alignof(max_align_t);
    const size_t pad = (align - (uintptr_t)(arena->bytes + arena->used) % align) % align;
    const size_t left = arena->max - arena->used;
    if (pad > left || count > left - pad) {
        wire_cursor_refuse(cursor, at, WIRE_REFUSED_ARENA, pad + count, 0, left);
        return NULL;
    }
    void *bytes = arena->bytes + arena->used + pad;
    arena->used += pad + count;
    return bytes;
}

static bool unpack_list(struct wire_cursor *cursor, const struct wire_field *field, uint8_t *body,
                        uint32_t *ret_index)
{
    const struct wire_record *record = field->record;
    const uint8_t *at = cursor->at;
    uint32_t count;
    if (!wire_cursor_array(cursor, &count)) return false;
    if (count > field->max)
        return wire_cursor_refuse(cursor, at, WIRE_REFUSED_COUNT, count, 0, field->max);
    if (count > wire_cursor_left(cursor)) return wire_cursor_cut(cursor, count);
    if (!count) return true;
    uint8_t *items = arena_take(cursor, at, (size_t)count * record->size);
    if (!items) return false;
    for (uint32_t i = 0; i < count; i++) {
        *ret_index = i;
        if (!wire_cursor_record(cursor, record, items + (size_t)i * record->size)) return false;
    }
    memcpy(body + field->offset, &items, sizeof items);
    memcpy(body + field->count_offset, &count, sizeof count);
    return true;
}

static bool check_known(struct wire_cursor *cursor, const uint8_t *at, uint16_t kind)
{
    return wire_table_frame(kind) ||
           wire_cursor_refuse(cursor, at, WIRE_REFUSED_KIND, kind, 0, wire_table_last());
}

static bool unpack_part_kind(struct wire_cursor *cursor, const struct wire_field *field,
                             uint16_t *ret_kind)
{
    const uint8_t *at = cursor->at;
    uint32_t elements;
    uint64_t kind;
    if (!wire_cursor_array(cursor, &elements)) return false;
    if (elements != ELEMENTS_OF_PART)
        return wire_cursor_refuse(cursor, at, WIRE_REFUSED_COUNT, elements, ELEMENTS_OF_PART,
                                  ELEMENTS_OF_PART);
    at = cursor->at;
    if (!unpack_unsigned(cursor, 1, UINT16_MAX, &kind))
        return wire_refuse_in(cursor->refusal, "kind", WIRE_NO_INDEX);
    *ret_kind = (uint16_t)kind;
    if (!check_known(cursor, at, *ret_kind)) return false;
    return (wire_kind_flags(*ret_kind) & field->max) ||
           wire_cursor_refuse(cursor, at, WIRE_REFUSED_FLAGS, kind, 0, 0);
}

// The only reader that accepts a kind with WIRE_PART. Never called within itself: no such kind has
// a PART field.
static bool unpack_part(struct wire_cursor *cursor, const struct wire_field *field,
                        struct wire_part *ret_part)
{
    const uint8_t *at = cursor->at;
    uint16_t kind = FRAME_NONE;
    if (wire_cursor_left(cursor) && *at == 0xc0) {
        cursor->at++; // The struct was zeroed: none
        return true;
    }
    if (!unpack_part_kind(cursor, field, &kind)) return false;
    const struct wire_record *record = wire_table_frame(kind)->record;
    void *body = arena_take(cursor, at, record->size);
    if (!body || !wire_cursor_record(cursor, record, body)) return false;
    *ret_part = (struct wire_part){ kind, body };
    return true;
}

static bool unpack_number(struct wire_cursor *cursor, const struct wire_field *field, void *out)
{
    uint64_t value;
    if (!unpack_unsigned(cursor, field->min, field->max, &value)) return false;
    switch (field->type) {
    case WIRE_TYPE_U16: *(uint16_t *)out = (uint16_t)value; break;
    case WIRE_TYPE_U32: *(uint32_t *)out = (uint32_t)value; break;
    case WIRE_TYPE_U64: *(uint64_t *)out = value; break;
    default: *(uint8_t *)out = (uint8_t)value;
    }
    return true;
}

static bool unpack_field(struct wire_cursor *cursor, const struct wire_field *field, uint8_t *body,
                         uint32_t *ret_index)
{
    void *out = body + field->offset;
    switch (field->type) {
    case WIRE_TYPE_U8:
    case WIRE_TYPE_U16:
    case WIRE_TYPE_U32:
    case WIRE_TYPE_U64:
    case WIRE_TYPE_ENUM: return unpack_number(cursor, field, out);
    case WIRE_TYPE_I64: return unpack_signed(cursor, field, out);
    case WIRE_TYPE_F32: return unpack_float(cursor, out);
    case WIRE_TYPE_F64: return unpack_double(cursor, out);
    case WIRE_TYPE_BOOL: return unpack_bool(cursor, out);
    case WIRE_TYPE_STR: return unpack_string(cursor, field, out);
    case WIRE_TYPE_BIN: return unpack_binary(cursor, field, out);
    case WIRE_TYPE_BYTES: return unpack_bytes(cursor, field, out);
    case WIRE_TYPE_SUB: return wire_cursor_record(cursor, field->record, out);
    case WIRE_TYPE_LIST: return unpack_list(cursor, field, body, ret_index);
    case WIRE_TYPE_PART: return unpack_part(cursor, field, out);
    }
    return false;
}

static bool unpack_fields(struct wire_cursor *cursor, const struct wire_record *record,
                          void *ret_body)
{
    const struct wire_field *fields = record->fields();
    memset(ret_body, 0, record->size);
    for (uint32_t i = 0; i < record->field_count; i++) {
        uint32_t index = WIRE_NO_INDEX;
        if (!unpack_field(cursor, &fields[i], ret_body, &index))
            return wire_refuse_in(cursor->refusal, fields[i].name, index);
    }
    return true;
}

bool wire_cursor_record(struct wire_cursor *cursor, const struct wire_record *record,
                        void *ret_body)
{
    const uint8_t *at = cursor->at;
    uint32_t count;
    if (!wire_cursor_array(cursor, &count)) return false;
    if (count < record->field_count) {
        wire_cursor_refuse(cursor, at, WIRE_REFUSED_MISSING, count, record->field_count, 0);
        return wire_refuse_in(cursor->refusal, record->fields()[count].name, WIRE_NO_INDEX);
    }
    if (count > wire_cursor_left(cursor)) return wire_cursor_cut(cursor, count);
    if (!unpack_fields(cursor, record, ret_body)) return false;
    for (uint32_t i = record->field_count; i < count; i++) // Fields that a newer peer appended
        if (!wire_cursor_skip(cursor)) return false;
    return true;
}

// ---- frames, bodies, records ----------------------------------------------------------------

// A refusal leaves the arena unchanged.
static bool unpack_into_arena(struct wire_cursor *cursor, uint16_t kind, const void **ret_body)
{
    const struct wire_record *record = wire_table_frame(kind)->record;
    const size_t used = cursor->arena->used;
    void *body = arena_take(cursor, cursor->at, record->size);
    cursor->frame = wire_kind_name(kind);
    if (body && wire_cursor_record(cursor, record, body)) {
        *ret_body = body;
        return true;
    }
    cursor->arena->used = used;
    return false;
}

static bool check_end(struct wire_cursor *cursor)
{
    return !wire_cursor_left(cursor) ||
           wire_cursor_refuse(cursor, cursor->at, WIRE_REFUSED_TRAILING, wire_cursor_left(cursor),
                              0, 0);
}

static bool check_kind(struct wire_cursor *cursor, const uint8_t *at, uint16_t kind,
                       unsigned allowed)
{
    if (!check_known(cursor, at, kind)) return false;
    cursor->frame = wire_kind_name(kind);
    return (wire_kind_flags(kind) & allowed) ||
           wire_cursor_refuse(cursor, at, WIRE_REFUSED_FLAGS, kind, 0, 0);
}

static bool refuse_elements(struct wire_cursor *cursor, uint32_t elements, uint64_t wanted)
{
    return wire_cursor_refuse(cursor, cursor->start, WIRE_REFUSED_COUNT, elements, wanted, wanted);
}

// The protocol comes first: nothing else is known about a frame of another protocol.
static bool unpack_head(struct wire_cursor *cursor, unsigned allowed, struct wire_head *ret_head)
{
    uint32_t elements;
    uint64_t protocol;
    const size_t count = wire_cursor_left(cursor);
    if (count > WIRE_FRAME_MAX)
        return wire_cursor_refuse(cursor, cursor->at, WIRE_REFUSED_LENGTH, count, 0,
                                  WIRE_FRAME_MAX);
    if (!wire_cursor_array(cursor, &elements)) return false;
    if (!elements) return refuse_elements(cursor, elements, ELEMENTS_OF_FRAME);
    const uint8_t *at = cursor->at;
    if (!unpack_unsigned(cursor, 0, UINT16_MAX, &protocol))
        return wire_refuse_in(cursor->refusal, "protocol", WIRE_NO_INDEX);
    if (protocol != WIRE_PROTOCOL)
        return wire_cursor_refuse(cursor, at, WIRE_REFUSED_PROTOCOL, protocol, WIRE_PROTOCOL,
                                  WIRE_PROTOCOL);
    if (elements != ELEMENTS_OF_FRAME) return refuse_elements(cursor, elements, ELEMENTS_OF_FRAME);
    at = cursor->at;
    if (!unpack_fields(cursor, &wire_table_head, ret_head) ||
        !check_kind(cursor, at, ret_head->kind, allowed))
        return false;
    const size_t max = wire_frame_max(ret_head->kind);
    return count <= max ||
           wire_cursor_refuse(cursor, cursor->start, WIRE_REFUSED_LENGTH, count, 0, max);
}

// nil or 64 bytes in a bin: *ret_signature is NULL or points to them.
static bool take_signature(struct wire_cursor *cursor, const uint8_t **ret_signature)
{
    const uint8_t *at = cursor->at;
    uint64_t count;
    *ret_signature = NULL;
    if (wire_cursor_left(cursor) && *at == 0xc0) return cursor->at++, true;
    bool taken = wire_cursor_raw(cursor, WIRE_TAG_BINARY, ret_signature, &count);
    if (taken && count != WIRE_SIGNATURE_BYTES)
        taken = wire_cursor_refuse(cursor, at, WIRE_REFUSED_LENGTH, count, WIRE_SIGNATURE_BYTES,
                                   WIRE_SIGNATURE_BYTES);
    return taken || wire_refuse_in(cursor->refusal, "signature", WIRE_NO_INDEX);
}

static bool unpack_signature(struct wire_cursor *cursor, unsigned flags)
{
    const uint8_t *at = cursor->at, *signature;
    if (!take_signature(cursor, &signature)) return false;
    return signature || !(flags & WIRE_SIGNED) ||
           wire_cursor_refuse(cursor, at, WIRE_REFUSED_UNSIGNED, 0, 0, 0);
}

static struct wire_cursor cursor_over(const uint8_t *bytes, size_t count, const char *frame,
                                      const char *then, struct wire_arena *arena,
                                      struct wire_refusal *refusal)
{
    return (struct wire_cursor){ .start = bytes,
                                 .at = bytes,
                                 .end = bytes + count,
                                 .arena = arena,
                                 .refusal = refusal,
                                 .frame = frame,
                                 .then = then };
}

bool wire_unpack(const uint8_t *bytes, size_t count, unsigned allowed, struct wire_arena *arena,
                 struct wire_head *ret_head, const void **ret_body,
                 struct wire_refusal *ret_refusal)
{
    struct wire_cursor cursor =
        cursor_over(bytes, count, "frame", "frame dropped", arena, ret_refusal);
    cursor.is_from_outside = true;
    const size_t used = arena->used;
    struct wire_head head;
    const void *body;
    if (unpack_head(&cursor, allowed, &head) && unpack_into_arena(&cursor, head.kind, &body) &&
        unpack_signature(&cursor, wire_kind_flags(head.kind)) && check_end(&cursor)) {
        *ret_head = head;
        *ret_body = body;
        return true;
    }
    arena->used = used;
    return false;
}

bool wire_unpack_head(const uint8_t *bytes, size_t count, unsigned allowed,
                      struct wire_head *ret_head, struct wire_refusal *ret_refusal)
{
    struct wire_cursor cursor =
        cursor_over(bytes, count, "frame", "frame dropped", NULL, ret_refusal);
    cursor.is_from_outside = true;
    struct wire_head head;
    if (!unpack_head(&cursor, allowed, &head)) return false;
    *ret_head = head;
    return true;
}

bool wire_unpack_body(const uint8_t *bytes, size_t count, uint16_t kind, struct wire_arena *arena,
                      const void **ret_body, struct wire_refusal *ret_refusal)
{
    struct wire_cursor cursor =
        cursor_over(bytes, count, "body", "body refused", arena, ret_refusal);
    const size_t used = arena->used;
    const void *body;
    if (check_kind(&cursor, bytes, kind, ~0u) && unpack_into_arena(&cursor, kind, &body) &&
        check_end(&cursor)) {
        *ret_body = body;
        return true;
    }
    arena->used = used;
    return false;
}

static bool unpack_record_kind(struct wire_cursor *cursor, unsigned allowed, uint16_t *ret_kind)
{
    uint32_t elements;
    uint64_t kind;
    if (!wire_cursor_array(cursor, &elements)) return false;
    if (elements != ELEMENTS_OF_RECORD)
        return refuse_elements(cursor, elements, ELEMENTS_OF_RECORD);
    const uint8_t *at = cursor->at;
    if (!unpack_unsigned(cursor, 1, UINT16_MAX, &kind))
        return wire_refuse_in(cursor->refusal, "kind", WIRE_NO_INDEX);
    *ret_kind = (uint16_t)kind;
    return check_kind(cursor, at, *ret_kind, allowed);
}

bool wire_unpack_record(const uint8_t *bytes, size_t count, unsigned allowed,
                        struct wire_arena *arena, uint16_t *ret_kind, const void **ret_body,
                        struct wire_refusal *ret_refusal)
{
    struct wire_cursor cursor =
        cursor_over(bytes, count, "record", "record refused", arena, ret_refusal);
    const size_t used = arena->used;
    uint16_t kind = FRAME_NONE;
    const void *body;
    if (unpack_record_kind(&cursor, allowed, &kind) && unpack_into_arena(&cursor, kind, &body) &&
        check_end(&cursor)) {
        *ret_kind = kind;
        *ret_body = body;
        return true;
    }
    arena->used = used;
    return false;
}

// ---- signatures -----------------------------------------------------------------------------

// Moves the cursor to the signature, if the bytes look like a frame.
static bool seek_signature(struct wire_cursor *cursor)
{
    uint32_t elements;
    if (!wire_cursor_array(cursor, &elements) || elements != ELEMENTS_OF_FRAME) return false;
    for (uint32_t i = 1; i < ELEMENTS_OF_FRAME; i++)
        if (!wire_cursor_skip(cursor)) return false;
    return true;
}

size_t wire_signed_bytes(const uint8_t *frame, size_t count)
{
    struct wire_refusal refusal;
    struct wire_cursor cursor = cursor_over(frame, count, "", "", NULL, &refusal);
    return seek_signature(&cursor) ? (size_t)(cursor.at - frame) : 0;
}

const uint8_t *wire_signature(const uint8_t *frame, size_t count)
{
    const uint8_t *signature;
    struct wire_refusal refusal;
    struct wire_cursor cursor = cursor_over(frame, count, "", "", NULL, &refusal);
    return seek_signature(&cursor) && take_signature(&cursor, &signature) &&
                   !wire_cursor_left(&cursor)
               ? signature
               : NULL;
}

size_t wire_put_signature(uint8_t *frame, size_t count,
                          const uint8_t signature[WIRE_SIGNATURE_BYTES], size_t max)
{
    const size_t at = wire_signed_bytes(frame, count), all = at + 2 + WIRE_SIGNATURE_BYTES;
    if (!at || at + 1 != count || frame[at] != 0xc0 || all > max) return 0;
    frame[at] = 0xc4;
    frame[at + 1] = WIRE_SIGNATURE_BYTES;
    memcpy(frame + at + 2, signature, WIRE_SIGNATURE_BYTES);
    return all;
}
