// wire_table -- frames.def is included twice: for the fields of each record and for the frames by
// number. A kind that is not there is looked up in wire_more, the frames that a test adds. The rest
// answers questions by walking these tables: names, flags, and worst-case sizes, in which an
// overflow becomes SIZE_MAX.

#include "common/wire/wire_table.h"

#include <string.h>

#define PACE(name)
#define WENUM(name, PREFIX)                WIRE_ENUM_DEFINE(name, PREFIX)
#define RECORD(name)                       WIRE_RECORD_DEFINE(name)
#define FRAME(number, KIND, record, flags) WIRE_RECORD_DEFINE(record)
#define ALSO(number, KIND, record, flags)
#include "common/wire/frames.def"
#undef PACE
#undef WENUM
#undef RECORD
#undef FRAME
#undef ALSO
WIRE_RECORD_DEFINE(head)
WIRE_RECORD_DEFINE_AS(interval, struct interval)

// Indexed by number, so that two frames with the same number do not compile.
#define PACE(name)
#define WENUM(name, PREFIX)
#define RECORD(name)
#define FRAME(number, KIND, record, flags) WIRE_FRAME_AT(number, KIND, record, flags)
#define ALSO(number, KIND, record, flags)  WIRE_FRAME_AT(number, KIND, record, flags)
static const struct wire_frame frames[] = {
#include "common/wire/frames.def"
};
#undef PACE
#undef WENUM
#undef RECORD
#undef FRAME
#undef ALSO

enum { FRAMES_END = sizeof frames / sizeof *frames, APPENDED_MIN = 64 };
_Static_assert((int)FRAMES_END <= (int)WIRE_MORE_FIRST, "frames.def leaves these numbers to tests");

const struct wire_frame *wire_table_frame(uint16_t kind)
{
    const unsigned more = (unsigned)kind - wire_more.first; // Huge below the first
    if (kind < FRAMES_END && frames[kind].name) return &frames[kind];
    return more < wire_more.count && wire_more.frames[more].name ? &wire_more.frames[more] : NULL;
}

const char *wire_kind_name(uint16_t kind)
{
    const struct wire_frame *frame = wire_table_frame(kind);
    return frame ? frame->name : "?";
}

unsigned wire_kind_flags(uint16_t kind)
{
    const struct wire_frame *frame = wire_table_frame(kind);
    return frame ? frame->flags : 0;
}

uint16_t wire_kind_next(uint16_t kind)
{
    const unsigned more_end = wire_more.first + wire_more.count;
    const unsigned end = more_end > FRAMES_END ? more_end : FRAMES_END;
    for (unsigned next = kind + 1u; next < end; next++)
        if (wire_table_frame((uint16_t)next)) return (uint16_t)next;
    return FRAME_NONE;
}

uint16_t wire_table_last(void)
{
    uint16_t last = FRAME_NONE;
    for (uint16_t kind = wire_kind_next(0); kind; kind = wire_kind_next(kind)) last = kind;
    return last;
}

uint16_t wire_kind_from_name(const char *name)
{
    for (uint16_t kind = wire_kind_next(0); kind; kind = wire_kind_next(kind))
        if (strcmp(wire_kind_name(kind), name) == 0) return kind;
    return FRAME_NONE;
}

const char *wire_enum_name(const struct wire_enum *of, unsigned value)
{
    return value < of->count ? of->names[value] : "?";
}

// ---- parts ----------------------------------------------------------------------------------

static bool is_flat(const struct wire_record *record)
{
    for (uint32_t i = 0; i < record->field_count; i++) {
        const struct wire_field *field = &record->fields()[i];
        if (field->type == WIRE_TYPE_LIST || field->type == WIRE_TYPE_BYTES ||
            field->type == WIRE_TYPE_PART || (field->record && !is_flat(field->record)))
            return false;
    }
    return true;
}

struct wire_part wire_part_copy(const struct wire_part *part, void *memory, size_t max)
{
    const struct wire_frame *frame = wire_table_frame(part->kind);
    if (!frame || frame->record->size > max || !is_flat(frame->record))
        return (struct wire_part){ FRAME_NONE, NULL };
    memcpy(memory, part->body, frame->record->size);
    return (struct wire_part){ part->kind, memory };
}

// ---- worst cases ----------------------------------------------------------------------------

static size_t plus(size_t a, size_t b) { return a > SIZE_MAX - b ? SIZE_MAX : a + b; }
static size_t times(size_t a, size_t b) { return b && a > SIZE_MAX / b ? SIZE_MAX : a * b; }

static size_t unsigned_size(uint64_t value)
{
    if (value < 128) return 1;
    return value <= UINT8_MAX ? 2 : value <= UINT16_MAX ? 3 : value <= UINT32_MAX ? 5 : 9;
}

static size_t signed_size(int64_t value)
{
    if (value >= -32) return value < 0 ? 1 : unsigned_size((uint64_t)value);
    return value >= INT8_MIN ? 2 : value >= INT16_MIN ? 3 : value >= INT32_MIN ? 5 : 9;
}

static size_t signed_max(int64_t min, int64_t max)
{
    return signed_size(min) > signed_size(max) ? signed_size(min) : signed_size(max);
}

static size_t array_head(uint64_t count) { return count < 16 ? 1 : count <= UINT16_MAX ? 3 : 5; }

static size_t binary_head(uint64_t count)
{
    return count <= UINT8_MAX ? 2 : count <= UINT16_MAX ? 3 : 5;
}

// The largest of the kinds that this part may be; at least `most`. None of them has a part itself.
static size_t part_max(const struct wire_field *field, size_t (*max_of)(uint16_t kind), size_t most)
{
    for (uint16_t kind = wire_kind_next(0); kind; kind = wire_kind_next(kind))
        if (wire_kind_flags(kind) & field->max && max_of(kind) > most) most = max_of(kind);
    return most;
}

static size_t field_max(const struct wire_field *field)
{
    switch (field->type) {
    case WIRE_TYPE_U8:
    case WIRE_TYPE_U16:
    case WIRE_TYPE_U32:
    case WIRE_TYPE_U64:
    case WIRE_TYPE_ENUM: return unsigned_size(field->max);
    case WIRE_TYPE_BOOL: return 1;
    case WIRE_TYPE_F32: return 5;
    case WIRE_TYPE_I64: return signed_max((int64_t)field->min, (int64_t)field->max);
    case WIRE_TYPE_F64: return 9;
    case WIRE_TYPE_STR:
        return field->max < 32 ? field->max + 1 : binary_head(field->max) + field->max;
    case WIRE_TYPE_BIN:
    case WIRE_TYPE_BYTES: return binary_head(field->max) + field->max;
    case WIRE_TYPE_SUB: return wire_table_record_max(field->record);
    case WIRE_TYPE_LIST:
        return plus(array_head(field->max),
                    times(field->max, wire_table_record_max(field->record)));
    case WIRE_TYPE_PART: return part_max(field, wire_record_max, 1); // nil is one byte
    }
    return 0;
}

size_t wire_table_record_max(const struct wire_record *record)
{
    size_t sum = array_head(record->field_count);
    for (uint32_t i = 0; i < record->field_count; i++)
        sum = plus(sum, field_max(&record->fields()[i]));
    return sum;
}

size_t wire_record_max(uint16_t kind)
{
    const struct wire_frame *frame = wire_table_frame(kind);
    return frame ? plus(1 + unsigned_size(kind), wire_table_record_max(frame->record)) : 0;
}

// Array head, protocol, the head's fields without an array head of their own, body, signature.
size_t wire_size_max(uint16_t kind)
{
    const struct wire_frame *frame = wire_table_frame(kind);
    if (!frame) return 0;
    const size_t head =
        1 + unsigned_size(WIRE_PROTOCOL) + wire_table_record_max(&wire_table_head) - 1;
    const size_t all = plus(head + binary_head(WIRE_SIGNATURE_BYTES) + WIRE_SIGNATURE_BYTES,
                            wire_table_record_max(frame->record));
    return all < WIRE_FRAME_MAX ? all : WIRE_FRAME_MAX;
}

size_t wire_frame_max(uint16_t kind)
{
    const size_t most = wire_size_max(kind), quarter = most / 4;
    const size_t longest = most + (quarter > APPENDED_MIN ? quarter : APPENDED_MIN);
    if (most == 0) return 0;
    return longest < WIRE_FRAME_MAX ? longest : WIRE_FRAME_MAX;
}

size_t wire_table_arena_max(const struct wire_record *record)
{
    size_t sum = 0;
    for (uint32_t i = 0; i < record->field_count; i++) {
        const struct wire_field *field = &record->fields()[i];
        if (field->type == WIRE_TYPE_PART) sum = plus(sum, part_max(field, wire_arena_max, 0));
        if (!field->record) continue;
        const size_t below = wire_table_arena_max(field->record);
        sum = plus(sum, field->type == WIRE_TYPE_SUB
                            ? below
                            : plus(_Alignof(max_align_t),
                                   times(field->max, plus(field->record->size, below))));
    }
    return sum;
}

size_t wire_arena_max(uint16_t kind)
{
    const struct wire_frame *frame = wire_table_frame(kind);
    return frame ? plus(_Alignof(max_align_t) + frame->record->size,
                        wire_table_arena_max(frame->record))
                 : 0;
}
