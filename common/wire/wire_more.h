// wire_more -- declares the records and frames of a .def of a test's own, written as frames.def is:
// its WENUM, RECORD, FRAME and ALSO lines become the same structs, constants and descriptors. Kinds
// are WIRE_MORE_FIRST .. WIRE_MORE_FIRST + WIRE_MORE_MAX - 1. Name the .def, then include this:
//
//     #define WIRE_MORE "tests/unit/wire_more.def"
//     #include "common/wire/wire_more.h"
//
// One C file of the program also has `#define WIRE_MORE_DEFINE` above the include: there the tables
// and wire_more itself are made. Records of frames.def may be used. Not guarded: include it once,
// or from a header that is.

#include "common/wire/wire_table.h"

#define PACE(name)
#define WENUM(name, PREFIX) WIRE_ENUM_DECLARE(name, PREFIX)
#define RECORD(name)        WIRE_RECORD_STRUCT(name) WIRE_RECORD_EXTERN(name)
#define FRAME(number, KIND, record, flags)                                                         \
    enum { FRAME_##KIND = number };                                                                \
    RECORD(record)
#define ALSO(number, KIND, record, flags) enum { FRAME_##KIND = number };
#include WIRE_MORE
#undef PACE
#undef WENUM
#undef RECORD
#undef FRAME
#undef ALSO

#ifdef WIRE_MORE_DEFINE
#define PACE(name)
#define WENUM(name, PREFIX)                WIRE_ENUM_DEFINE(name, PREFIX)
#define RECORD(name)                       WIRE_RECORD_DEFINE(name)
#define FRAME(number, KIND, record, flags) WIRE_RECORD_DEFINE(record)
#define ALSO(number, KIND, record, flags)
#include WIRE_MORE
#undef PACE
#undef WENUM
#undef RECORD
#undef FRAME
#undef ALSO

#define PACE(name)
#define WENUM(name, PREFIX)
#define RECORD(name)
#define FRAME(number, KIND, record, flags)                                                         \
    WIRE_FRAME_AT(number - WIRE_MORE_FIRST, KIND, record, flags)
#define ALSO(number, KIND, record, flags)                                                          \
    WIRE_FRAME_AT(number - WIRE_MORE_FIRST, KIND, record, flags)
static const struct wire_frame wire_more_frames[WIRE_MORE_MAX + 1] = {
    [WIRE_MORE_MAX] = { 0 }, // A .def may declare no frame
#include WIRE_MORE
};
#undef PACE
#undef WENUM
#undef RECORD
#undef FRAME
#undef ALSO
const struct wire_more wire_more = { WIRE_MORE_FIRST, WIRE_MORE_MAX, wire_more_frames };
#endif
