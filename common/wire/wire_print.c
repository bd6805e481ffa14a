// wire_print -- two walks over the table of a record: one for people, with names as they are and long
// lists cut, one for JSON, complete. Text from peers is escaped in both.

#include "common/wire/wire_table.h"
#include "common/wire/wire_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// `used` goes on counting beyond `max`, as snprintf does; nothing is written there.
struct text {
    char *out;
    size_t used, max;
};

enum { LIST_SHOWN = 3, DIGITS_SHOWN = 8, NUMBER_MAX = 32 };

static void put_char(struct text *text, char byte)
{
    if (text->used + 1 < text->max) text->out[text->used] = byte;
    text->used++;
}

static void put_text(struct text *text, const char *words)
{
    while (*words) put_char(text, *words++);
}

static size_t text_end(struct text *text)
{
    if (text->max) text->out[text->used < text->max ? text->used : text->max - 1] = 0;
    return text->used;
}

static void put_hex(struct text *text, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put_char(text, "0123456789abcdef"[bytes[i] >> 4]);
        put_char(text, "0123456789abcdef"[bytes[i] & 15]);
    }
}

static void put_unsigned(struct text *text, uint64_t value)
{
    char digits[NUMBER_MAX];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    put_text(text, digits);
}

// With `digits` significant digits. The decimal point of the locale is replaced by a point.
static void put_float(struct text *text, double value, int digits)
{
    char number[NUMBER_MAX];
    if (isfinite(value)) snprintf(number, sizeof number, "%.*g", digits, value);
    else memcpy(number, "null", sizeof "null");
    for (char *at = number; *at; at++) put_char(text, strchr("0123456789+-enul", *at) ? *at : '.');
}

// ---- text from peers ------------------------------------------------------------------------

static void put_escape(struct text *text, uint8_t byte, bool json)
{
    put_text(text, json ? "\\u00" : "\\x");
    put_hex(text, &byte, 1);
}

static void put_quoted(struct text *text, const char *words, bool json)
{
    const uint8_t *at = (const uint8_t *)words, *const end = at + strlen(words);
    put_char(text, '"');
    while (at < end) {
        const unsigned count = wire_text_character(at, (size_t)(end - at));
        if (!count) {
            if (json) put_text(text, "\\ufffd");
            else put_escape(text, *at, json);
        } else if (wire_text_is_control(at)) {
            put_escape(text, at[count - 1],
                       json); // C1 is c2 80..c2 9f: its second byte is its number
        } else {
            if (*at == '"' || *at == '\\') put_char(text, '\\');
            for (unsigned i = 0; i < count; i++) put_char(text, (char)at[i]);
        }
        at += count ? count : 1;
    }
    put_char(text, '"');
}

// ---- for both: values that look the same ----------------------------------------------------

static void put_integer(struct text *text, const struct wire_field *field, const void *value)
{
    char digits[NUMBER_MAX];
    switch (field->type) {
    case WIRE_TYPE_U8: put_unsigned(text, *(const uint8_t *)value); break;
    case WIRE_TYPE_U16: put_unsigned(text, *(const uint16_t *)value); break;
    case WIRE_TYPE_U32: put_unsigned(text, *(const uint32_t *)value); break;
    case WIRE_TYPE_U64: put_unsigned(text, *(const uint64_t *)value); break;
    default:
        snprintf(digits, sizeof digits, "%" PRId64, *(const int64_t *)value);
        put_text(text, digits);
    }
}

struct list {
    const uint8_t *items;
    uint32_t count;
};

static struct list list_of(const struct wire_field *field, const uint8_t *body)
{
    struct list list;
    memcpy(&list.items, body + field->offset, sizeof list.items);
    memcpy(&list.count, body + field->count_offset, sizeof list.count);
    return list;
}

// ---- for people -----------------------------------------------------------------------------

static void print_fields(struct text *text, const struct wire_record *record, const uint8_t *body);

// A name is printed as it is, any other text in quotes.
static void print_string(struct text *text, const char *words)
{
    const size_t plain =
        strspn(words, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@+");
    if (plain && !words[plain]) put_text(text, words);
    else put_quoted(text, words, false);
}

static void print_bytes(struct text *text, const uint8_t *bytes, size_t count)
{
    put_hex(text, bytes, count < DIGITS_SHOWN / 2 ? count : DIGITS_SHOWN / 2);
}

// A hash or a key.
static void print_hash(struct text *text, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i]) {
            print_bytes(text, bytes, count);
            return;
        }
    put_text(text, "none");
}

static void print_list(struct text *text, const struct wire_field *field, struct list list)
{
    put_char(text, '[');
    for (uint32_t i = 0; i < list.count && i < LIST_SHOWN; i++) {
        put_text(text, i ? ", {" : "{");
        print_fields(text, field->record, list.items + (size_t)i * field->record->size);
        put_char(text, '}');
    }
    if (list.count > LIST_SHOWN) {
        put_text(text, ", ..");
        put_unsigned(text, list.count);
    }
    put_char(text, ']');
}

static void print_view(struct text *text, const struct wire_bytes *view)
{
    print_bytes(text, view->data, view->count);
    put_char(text, '(');
    put_unsigned(text, view->count);
    put_char(text, ')');
}

static void print_part(struct text *text, const struct wire_part *part)
{
    const struct wire_frame *frame = wire_table_frame(part->kind);
    if (part->kind == FRAME_NONE) {
        put_text(text, "none");
        return;
    }
    put_text(text, wire_kind_name(part->kind));
    put_char(text, '{');
    if (frame) print_fields(text, frame->record, part->body);
    put_char(text, '}');
}

static void print_value(struct text *text, const struct wire_field *field, const uint8_t *body)
{
    const void *value = body + field->offset;
    switch (field->type) {
    case WIRE_TYPE_U8:
    case WIRE_TYPE_U16:
    case WIRE_TYPE_U32:
    case WIRE_TYPE_U64:
    case WIRE_TYPE_I64: put_integer(text, field, value); break;
    case WIRE_TYPE_F32: put_float(text, (double)*(const float *)value, 6); break;
    case WIRE_TYPE_F64: put_float(text, *(const double *)value, 6); break;
    case WIRE_TYPE_BOOL: put_text(text, *(const bool *)value ? "true" : "false"); break;
    case WIRE_TYPE_ENUM:
        put_text(text, wire_enum_name(field->names, *(const uint8_t *)value));
        break;
    case WIRE_TYPE_STR: print_string(text, value); break;
    case WIRE_TYPE_BIN: print_hash(text, value, field->max); break;
    case WIRE_TYPE_BYTES: print_view(text, value); break;
    case WIRE_TYPE_LIST: print_list(text, field, list_of(field, body)); break;
    case WIRE_TYPE_PART: print_part(text, value); break;
    case WIRE_TYPE_SUB:
        put_char(text, '{');
        print_fields(text, field->record, value);
        put_char(text, '}');
    }
}

static void print_fields(struct text *text, const struct wire_record *record, const uint8_t *body)
{
    const struct wire_field *fields = record->fields();
    for (uint32_t i = 0; i < record->field_count; i++) {
        if (i) put_char(text, ' ');
        put_text(text, fields[i].name);
        put_char(text, '=');
        print_value(text, &fields[i], body);
    }
}

size_t wire_print(uint16_t kind, const void *body, char *out, size_t max)
{
    const struct wire_frame *frame = wire_table_frame(kind);
    struct text text = { out, 0, max };
    put_text(&text, wire_kind_name(kind));
    if (frame) {
        if (frame->record->field_count) put_char(&text, ' ');
        print_fields(&text, frame->record, body);
    }
    return text_end(&text);
}

// ---- for programs ---------------------------------------------------------------------------

static void json_record(struct text *text, const struct wire_record *record, const uint8_t *body);

static void json_hex(struct text *text, const uint8_t *bytes, size_t count)
{
    put_char(text, '"');
    put_hex(text, bytes, count);
    put_char(text, '"');
}

static void json_list(struct text *text, const struct wire_field *field, struct list list)
{
    put_char(text, '[');
    for (uint32_t i = 0; i < list.count; i++) {
        if (i) put_char(text, ',');
        json_record(text, field->record, list.items + (size_t)i * field->record->size);
    }
    put_char(text, ']');
}

// A kind and its body: json_kind opens the object, json_body closes it.
static void json_kind(struct text *text, uint16_t kind)
{
    put_text(text, "{\"kind\":");
    put_quoted(text, wire_kind_name(kind), true);
}

static void json_body(struct text *text, uint16_t kind, const void *body)
{
    const struct wire_frame *frame = wire_table_frame(kind);
    put_text(text, ",\"body\":");
    if (frame) json_record(text, frame->record, body);
    else put_text(text, "null");
    put_char(text, '}');
}

static void json_part(struct text *text, const struct wire_part *part)
{
    if (part->kind == FRAME_NONE) {
        put_text(text, "null");
        return;
    }
    json_kind(text, part->kind);
    json_body(text, part->kind, part->body);
}

static void json_value(struct text *text, const struct wire_field *field, const uint8_t *body)
{
    const void *value = body + field->offset;
    const struct wire_bytes *view = value;
    switch (field->type) {
    case WIRE_TYPE_U8:
    case WIRE_TYPE_U16:
    case WIRE_TYPE_U32:
    case WIRE_TYPE_U64:
    case WIRE_TYPE_I64: put_integer(text, field, value); break;
    case WIRE_TYPE_F32: put_float(text, (double)*(const float *)value, 9); break;
    case WIRE_TYPE_F64: put_float(text, *(const double *)value, 17); break;
    case WIRE_TYPE_BOOL: put_text(text, *(const bool *)value ? "true" : "false"); break;
    case WIRE_TYPE_ENUM:
        put_quoted(text, wire_enum_name(field->names, *(const uint8_t *)value), true);
        break;
    case WIRE_TYPE_STR: put_quoted(text, value, true); break;
    case WIRE_TYPE_BIN: json_hex(text, value, field->max); break;
    case WIRE_TYPE_BYTES: json_hex(text, view->data, view->count); break;
    case WIRE_TYPE_SUB: json_record(text, field->record, value); break;
    case WIRE_TYPE_LIST: json_list(text, field, list_of(field, body)); break;
    case WIRE_TYPE_PART: json_part(text, value); break;
    }
}

static void json_fields(struct text *text, const struct wire_record *record, const uint8_t *body)
{
    const struct wire_field *fields = record->fields();
    for (uint32_t i = 0; i < record->field_count; i++) {
        if (i) put_char(text, ',');
        put_quoted(text, fields[i].name, true);
        put_char(text, ':');
        json_value(text, &fields[i], body);
    }
}

static void json_record(struct text *text, const struct wire_record *record, const uint8_t *body)
{
    put_char(text, '{');
    json_fields(text, record, body);
    put_char(text, '}');
}

// The head's fields except the first, the kind, which is printed by name.
static void json_head(struct text *text, const struct wire_head *head)
{
    const struct wire_field *fields = wire_table_head.fields();
    for (uint32_t i = 1; i < wire_table_head.field_count; i++) {
        put_char(text, ',');
        put_quoted(text, fields[i].name, true);
        put_char(text, ':');
        json_value(text, &fields[i], (const uint8_t *)head);
    }
}

size_t wire_print_json(const struct wire_head *head, uint16_t kind, const void *body, char *out,
                       size_t max)
{
    struct text text = { out, 0, max };
    json_kind(&text, kind);
    if (head) json_head(&text, head);
    json_body(&text, kind, body);
    return text_end(&text);
}
