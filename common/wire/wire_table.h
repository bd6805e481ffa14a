#pragma once
// wire_table -- frames.def as constant tables, for this folder and for tests that walk every frame.
// To send and receive, wire.h is enough.

#include "common/wire/wire.h"
#include "common/wire/wire_cursor.h"

enum wire_type {
    WIRE_TYPE_U8,
    WIRE_TYPE_U16,
    WIRE_TYPE_U32,
    WIRE_TYPE_U64,
    WIRE_TYPE_I64,
    WIRE_TYPE_F32,
    WIRE_TYPE_F64,
    WIRE_TYPE_BOOL,
    WIRE_TYPE_ENUM,
    WIRE_TYPE_STR,
    WIRE_TYPE_BIN,
    WIRE_TYPE_BYTES,
    WIRE_TYPE_SUB,
    WIRE_TYPE_LIST,
    WIRE_TYPE_PART
};

struct wire_record;

struct wire_field {
    const char *name;
    enum wire_type type;              // HASH and KEY are a BIN of 32; INTERVALS is a LIST
    uint32_t offset, count_offset;    // In the struct; the second only of a list
    uint64_t min, max;                // Value (I64: int64_t), bytes, elements of a list; of a part
                                      // both are the flag of its kinds
    const struct wire_record *record; // SUB, LIST
    const struct wire_enum *names;    // ENUM
};

struct wire_record {
    const char *name;
    uint32_t size, field_count;
    const struct wire_field *(*fields)(void); // A function: offsetof needs the struct's name
};

struct wire_frame {
    const char *name;
    const struct wire_record *record;
    unsigned flags;
};

// NULL for an unknown kind.
const struct wire_frame *wire_table_frame(uint16_t kind);
uint16_t wire_table_last(void); // The last known kind

// Frames beside those of frames.def, by number from `first` on; one without a name is no frame.
// wire_more.c has none, for all programs. A test links an object of its own that defines wire_more
// (wire_more.h makes it from a .def): wherever the kinds are walked or looked up, those are there
// too.
struct wire_more {
    uint16_t first, count;
    const struct wire_frame *frames;
};
extern const struct wire_more wire_more;
enum { WIRE_MORE_FIRST = 240, WIRE_MORE_MAX = 16 }; // Kinds that frames.def leaves to tests

// The worst case of a record's packed bytes, and of the lists under it; SIZE_MAX if it overflows.
size_t wire_table_record_max(const struct wire_record *record);
size_t wire_table_arena_max(const struct wire_record *record);

// ---- one record without a frame around it ---------------------------------------------------

// It goes on counting when `out` is full: everything was written if used <= max at the end.
struct wire_sink {
    uint8_t *out;
    size_t used, max;
    struct wire_refusal *refusal;
    bool is_for_outside; // In texts "?" stands for each byte that must not travel
};

bool wire_sink_record(struct wire_sink *sink, const struct wire_record *record, const void *body);
bool wire_cursor_record(struct wire_cursor *cursor, const struct wire_record *record,
                        void *ret_body);
bool wire_record_equal(const struct wire_record *record, const void *a, const void *b);

// Both return false, so that a caller can return their result. The first begins a refusal (the
// caller sets its other members), the second puts one more field in front of its path.
bool wire_refuse(struct wire_refusal *refusal, enum wire_reason reason, uint64_t value,
                 uint64_t min, uint64_t max);
bool wire_refuse_in(struct wire_refusal *refusal, const char *field, uint32_t index);

// ---- from the lines of frames.def to the tables ---------------------------------------------

#define WIRE_RECORD_EXTERN(name) extern const struct wire_record wire_table_##name;
#define WIRE_RECORD_DEFINE(name) WIRE_RECORD_DEFINE_AS(name, struct wire_##name)
#define WIRE_RECORD_DEFINE_AS(name, c_type)                                                        \
    static const struct wire_field *wire_fields_of_##name(void)                                    \
    {                                                                                              \
        typedef c_type self;                                                                       \
        static const struct wire_field fields[] = { WIRE_##name(WIRE_FIELD) };                     \
        return fields;                                                                             \
    }                                                                                              \
    const struct wire_record wire_table_##name = { #name, (uint32_t)sizeof(c_type),                \
                                                   0 WIRE_##name(WIRE_ONE),                        \
                                                   wire_fields_of_##name };
#define WIRE_ENUM_DEFINE(name, PREFIX)                                                             \
    static const char *const wire_names_of_##name[] = { WIRE_ENUM_##name(WIRE_ENUM_TEXT) };        \
    const struct wire_enum wire_enum_##name = { #name, wire_names_of_##name, PREFIX##_COUNT };
#define WIRE_FRAME_AT(place, KIND, record, flags) [place] = { #KIND, &wire_table_##record, flags },
#define WIRE_ENUM_TEXT(NAME, text)                text,
#define WIRE_ONE(...)                             +1

#define WIRE_FIELD(TYPE, ...) WIRE_FIELD_##TYPE(__VA_ARGS__)
#define WIRE_FIELD_(f, of, low, high)                                                              \
    .name = #f, .type = WIRE_TYPE_##of, .offset = (uint32_t)offsetof(self, f),                     \
    .min = (uint64_t)(low), .max = (uint64_t)(high)
#define WIRE_FIELD_U8(f, low, high)  { WIRE_FIELD_(f, U8, low, high) },
#define WIRE_FIELD_U16(f, low, high) { WIRE_FIELD_(f, U16, low, high) },
#define WIRE_FIELD_U32(f, low, high) { WIRE_FIELD_(f, U32, low, high) },
#define WIRE_FIELD_U64(f, low, high) { WIRE_FIELD_(f, U64, low, high) },
#define WIRE_FIELD_I64(f, low, high) { WIRE_FIELD_(f, I64, low, high) },
#define WIRE_FIELD_F32(f)            { WIRE_FIELD_(f, F32, 0, 0) },
#define WIRE_FIELD_F64(f)            { WIRE_FIELD_(f, F64, 0, 0) },
#define WIRE_FIELD_BOOL(f)           { WIRE_FIELD_(f, BOOL, 0, 1) },
#define WIRE_FIELD_ENUM(f, of)                                                                     \
    { WIRE_FIELD_(f, ENUM, 0, WIRE_LAST(wire_names_of_##of)), .names = &wire_enum_##of },
#define WIRE_FIELD_HASH(f)        { WIRE_FIELD_(f, BIN, HASH_BYTES, HASH_BYTES) },
#define WIRE_FIELD_KEY(f)         { WIRE_FIELD_(f, BIN, KEY_BYTES, KEY_BYTES) },
#define WIRE_FIELD_STR(f, high)   { WIRE_FIELD_(f, STR, 0, high) },
#define WIRE_FIELD_BIN(f, count)  { WIRE_FIELD_(f, BIN, count, count) },
#define WIRE_FIELD_BYTES(f, high) { WIRE_FIELD_(f, BYTES, 0, high) },
#define WIRE_FIELD_SUB(f, of)     { WIRE_FIELD_(f, SUB, 0, 0), .record = &wire_table_##of },
#define WIRE_FIELD_LIST(f, of, high)                                                               \
    { WIRE_FIELD_(f, LIST, 0, high), .record = &wire_table_##of,                                   \
      .count_offset = (uint32_t)offsetof(self, f##_count) },
#define WIRE_FIELD_PART(f, flag)      { WIRE_FIELD_(f, PART, flag, flag) },
#define WIRE_FIELD_INTERVALS(f, high) WIRE_FIELD_LIST(f, interval, high)
#define WIRE_LAST(array)              (sizeof(array) / sizeof *(array)-1)

#define PACE(name)
#define WENUM(name, PREFIX)
#define RECORD(name)                       WIRE_RECORD_EXTERN(name)
#define FRAME(number, KIND, record, flags) WIRE_RECORD_EXTERN(record)
#define ALSO(number, KIND, record, flags)
#include "common/wire/frames.def"
#undef PACE
#undef WENUM
#undef RECORD
#undef FRAME
#undef ALSO
WIRE_RECORD_EXTERN(head)
WIRE_RECORD_EXTERN(interval)
