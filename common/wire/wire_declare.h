#pragma once
// wire_declare -- the macros that turn a line of frames.def into C: the struct of a record, the
// constants of an enum. wire_table.h turns lines into descriptors. wire.h has the grammar.

#include <stdbool.h>
#include <stdint.h>

#include "common/base/hash.h"
#include "common/base/interval.h"
#include "common/base/key.h"

// A slice of the frame it was unpacked from, valid as long as that frame's bytes. If count is 0,
// data may be NULL.
struct wire_bytes {
    const uint8_t *data;
    uint32_t count;
};

// A body of another kind, or none: kind 0. `body` is the struct of the kind.
struct wire_part {
    uint16_t kind;
    const void *body;
};

// Names of the values 0 .. count-1 of an enum.
struct wire_enum {
    const char *name;
    const char *const *names;
    uint8_t count;
};

#define WIRE_RECORD_STRUCT(name)                                                                   \
    struct wire_##name {                                                                           \
        WIRE_##name(WIRE_MEMBER)                                                                   \
    };

#define WIRE_MEMBER(TYPE, ...) WIRE_MEMBER_##TYPE(__VA_ARGS__)
#define WIRE_MEMBER_U8(f, min, max)                                                                \
    uint8_t f;                                                                                     \
    WIRE_WITHIN(f, min, max, UINT8_MAX)
#define WIRE_MEMBER_U16(f, min, max)                                                               \
    uint16_t f;                                                                                    \
    WIRE_WITHIN(f, min, max, UINT16_MAX)
#define WIRE_MEMBER_U32(f, min, max)                                                               \
    uint32_t f;                                                                                    \
    WIRE_WITHIN(f, min, max, UINT32_MAX)
#define WIRE_MEMBER_U64(f, min, max)                                                               \
    uint64_t f;                                                                                    \
    WIRE_WITHIN(f, min, max, UINT64_MAX)
#define WIRE_MEMBER_I64(f, min, max)                                                               \
    int64_t f;                                                                                     \
    WIRE_WITHIN(f, min, max, INT64_MAX)
#define WIRE_MEMBER_F32(f)         float f;
#define WIRE_MEMBER_F64(f)         double f;
#define WIRE_MEMBER_BOOL(f)        bool f;
#define WIRE_MEMBER_ENUM(f, of)    uint8_t f;
#define WIRE_MEMBER_HASH(f)        struct hash f;
#define WIRE_MEMBER_KEY(f)         struct key f;
#define WIRE_MEMBER_STR(f, max)    char f[(max) + 1];
#define WIRE_MEMBER_BIN(f, count)  uint8_t f[count];
#define WIRE_MEMBER_BYTES(f, max)  struct wire_bytes f;
#define WIRE_MEMBER_SUB(f, record) struct wire_##record f;
#define WIRE_MEMBER_PART(f, flag)  struct wire_part f;
#define WIRE_MEMBER_LIST(f, record, max)                                                           \
    const struct wire_##record *f;                                                                 \
    uint32_t f##_count;
#define WIRE_MEMBER_INTERVALS(f, max)                                                              \
    const struct interval *f;                                                                      \
    uint32_t f##_count;

#define WIRE_WITHIN(f, min, max, limit)                                                            \
    _Static_assert(((min) == (max) || (min) < (max)) && ((max) == (limit) || (max) < (limit)),     \
                   "range of " #f);

// enum role { ROLE_TRAINER, ROLE_WITNESS, ROLE_COUNT }. The preprocessor has no loop, so there is
// one macro for each number of values, up to 24.
#define WIRE_ENUM_DECLARE(name, PREFIX)                                                            \
    enum name { WIRE_PREFIXED(PREFIX WIRE_ENUM_##name(WIRE_ENUM_VALUE)) PREFIX##_COUNT };          \
    extern const struct wire_enum wire_enum_##name;

#define WIRE_ENUM_VALUE(NAME, text) , NAME
#define WIRE_PREFIXED(...)          WIRE_PREFIXED_(__VA_ARGS__)
#define WIRE_PREFIXED_(p, ...)                                                                     \
    WIRE_25TH(__VA_ARGS__, WIRE_P24, WIRE_P23, WIRE_P22, WIRE_P21, WIRE_P20, WIRE_P19, WIRE_P18,   \
              WIRE_P17, WIRE_P16, WIRE_P15, WIRE_P14, WIRE_P13, WIRE_P12, WIRE_P11, WIRE_P10,      \
              WIRE_P9, WIRE_P8, WIRE_P7, WIRE_P6, WIRE_P5, WIRE_P4, WIRE_P3, WIRE_P2, WIRE_P1,     \
              none)                                                                                \
    (p, __VA_ARGS__)
#define WIRE_25TH(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, _14, _15, _16, _17, _18, \
                  _19, _20, _21, _22, _23, _24, n, ...)                                            \
    n
#define WIRE_P1(p, a)       p##_##a,
#define WIRE_P2(p, a, ...)  p##_##a, WIRE_P1(p, __VA_ARGS__)
#define WIRE_P3(p, a, ...)  p##_##a, WIRE_P2(p, __VA_ARGS__)
#define WIRE_P4(p, a, ...)  p##_##a, WIRE_P3(p, __VA_ARGS__)
#define WIRE_P5(p, a, ...)  p##_##a, WIRE_P4(p, __VA_ARGS__)
#define WIRE_P6(p, a, ...)  p##_##a, WIRE_P5(p, __VA_ARGS__)
#define WIRE_P7(p, a, ...)  p##_##a, WIRE_P6(p, __VA_ARGS__)
#define WIRE_P8(p, a, ...)  p##_##a, WIRE_P7(p, __VA_ARGS__)
#define WIRE_P9(p, a, ...)  p##_##a, WIRE_P8(p, __VA_ARGS__)
#define WIRE_P10(p, a, ...) p##_##a, WIRE_P9(p, __VA_ARGS__)
#define WIRE_P11(p, a, ...) p##_##a, WIRE_P10(p, __VA_ARGS__)
#define WIRE_P12(p, a, ...) p##_##a, WIRE_P11(p, __VA_ARGS__)
#define WIRE_P13(p, a, ...) p##_##a, WIRE_P12(p, __VA_ARGS__)
#define WIRE_P14(p, a, ...) p##_##a, WIRE_P13(p, __VA_ARGS__)
#define WIRE_P15(p, a, ...) p##_##a, WIRE_P14(p, __VA_ARGS__)
#define WIRE_P16(p, a, ...) p##_##a, WIRE_P15(p, __VA_ARGS__)
#define WIRE_P17(p, a, ...) p##_##a, WIRE_P16(p, __VA_ARGS__)
#define WIRE_P18(p, a, ...) p##_##a, WIRE_P17(p, __VA_ARGS__)
#define WIRE_P19(p, a, ...) p##_##a, WIRE_P18(p, __VA_ARGS__)
#define WIRE_P20(p, a, ...) p##_##a, WIRE_P19(p, __VA_ARGS__)
#define WIRE_P21(p, a, ...) p##_##a, WIRE_P20(p, __VA_ARGS__)
#define WIRE_P22(p, a, ...) p##_##a, WIRE_P21(p, __VA_ARGS__)
#define WIRE_P23(p, a, ...) p##_##a, WIRE_P22(p, __VA_ARGS__)
#define WIRE_P24(p, a, ...) p##_##a, WIRE_P23(p, __VA_ARGS__)
