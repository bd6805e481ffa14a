#include "common/wire/wire_table.h"

#include "common/base/ensure.h"

#include <inttypes.h>
#include <stdio.h>

bool wire_refuse(struct wire_refusal *refusal, enum wire_reason reason, uint64_t value,
                 uint64_t min, uint64_t max)
{
    *refusal = (struct wire_refusal){ .reason = reason,
                                      .frame = "frame",
                                      .then = "dropped",
                                      .value = value,
                                      .min = min,
                                      .max = max,
                                      .expected = "",
                                      .offset = WIRE_NO_OFFSET };
    return false;
}

bool wire_refuse_in(struct wire_refusal *refusal, const char *field, uint32_t index)
{
    ensure(refusal->path_count <= WIRE_DEPTH_MAX); // A test ensures that the table is not deeper
    refusal->path[refusal->path_count].field = field;
    refusal->path[refusal->path_count++].index = index;
    return false;
}

// ---- the sentence ---------------------------------------------------------------------------

enum { PLACE_MAX = 256, REASON_MAX = 192 };

// The type that the first byte of a msgpack value names.
static const char *type_name(uint8_t first)
{
    static const char *const names[] = {
        "nil",          "an unused type", "a bool",    "a bool",     "binary",
        "an extension", "a float32",      "a float64", "an integer", "an extension",
        "a string",     "an array",       "a map",
    };
    static const uint8_t from_c0[32] = { 0, 1, 2, 3, 4, 4, 4, 5, 5, 5,  6,  7,  8,  8,  8,  8,
                                         8, 8, 8, 8, 9, 9, 9, 9, 9, 10, 10, 10, 11, 11, 12, 12 };
    if (first < 0x80 || first >= 0xe0) return "an integer";
    if (first >= 0xc0) return names[from_c0[first - 0xc0]];
    return first < 0x90 ? "a map" : first < 0xa0 ? "an array" : "a string";
}

static void place_text(const struct wire_refusal *refusal, char out[PLACE_MAX])
{
    size_t used = (size_t)snprintf(out, PLACE_MAX, "%s", refusal->frame);
    for (unsigned i = refusal->path_count; i-- > 0 && used < PLACE_MAX;) {
        const char *field = refusal->path[i].field;
        const uint32_t index = refusal->path[i].index;
        const bool is_list = index != WIRE_NO_INDEX;
        const size_t left = PLACE_MAX - used;
        used += (size_t)(is_list ? snprintf(out + used, left, ".%s[%" PRIu32 "]", field, index)
                                 : snprintf(out + used, left, ".%s", field));
    }
}

static void range_text(const struct wire_refusal *refusal, char out[REASON_MAX])
{
    const uint64_t min = refusal->min, max = refusal->max;
    const uint64_t size = refusal->is_negative ? 0 - refusal->value : refusal->value;
    snprintf(out, REASON_MAX,
             refusal->is_signed ? "%s%" PRIu64 ", allowed %" PRId64 "..%" PRId64
                                : "%s%" PRIu64 ", allowed %" PRIu64 "..%" PRIu64,
             refusal->is_negative ? "-" : "", size, min, max);
}

static void reason_text(const struct wire_refusal *refusal, char out[REASON_MAX])
{
    const uint64_t value = refusal->value, min = refusal->min, max = refusal->max;
#define SAY(...)                                                                                   \
    snprintf(out, REASON_MAX, __VA_ARGS__);                                                        \
    break
    switch (refusal->reason) {
    case WIRE_REFUSED_CUT: SAY("needs %" PRIu64 " bytes, %" PRIu64 " are left", value, max);
    case WIRE_REFUSED_TYPE: SAY("%s, should be %s", type_name((uint8_t)value), refusal->expected);
    case WIRE_REFUSED_RANGE: range_text(refusal, out); break;
    case WIRE_REFUSED_LENGTH:
        SAY("%" PRIu64 " bytes, allowed %" PRIu64 "..%" PRIu64, value, min, max);
    case WIRE_REFUSED_COUNT:
        SAY("%" PRIu64 " elements, allowed %" PRIu64 "..%" PRIu64, value, min, max);
    case WIRE_REFUSED_CONTROL: SAY("control character 0x%02" PRIx64 ", allowed 0x20..0xff", value);
    case WIRE_REFUSED_TEXT:
        SAY("byte 0x%02" PRIx64 " is of no UTF-8 character, or of a control character", value);
    case WIRE_REFUSED_NOT_FINITE: SAY("not a finite number");
    case WIRE_REFUSED_NULL: SAY("count is %" PRIu64 ", but the pointer is NULL", value);
    case WIRE_REFUSED_MISSING:
        SAY("missing: %" PRIu64 " fields came, at least %" PRIu64 " are needed", value, min);
    case WIRE_REFUSED_ARENA:
        SAY("needs %" PRIu64 " bytes of memory, %" PRIu64 " are left", value, max);
    case WIRE_REFUSED_TRAILING: SAY("%" PRIu64 " bytes after the end, allowed 0", value);
    case WIRE_REFUSED_PROTOCOL:
        SAY("protocol %" PRIu64 ", this build speaks %" PRIu64 ": upgrade", value, min);
    case WIRE_REFUSED_KIND:
        SAY("kind %" PRIu64 " is not known, the last known is %" PRIu64 ": upgrade", value, max);
    case WIRE_REFUSED_FLAGS: SAY("this kind is not accepted here");
    case WIRE_REFUSED_UNSIGNED: SAY("needs a signature and has none");
    }
#undef SAY
}

size_t wire_refusal_text(const struct wire_refusal *refusal, char *out, size_t max)
{
    char place[PLACE_MAX], reason[REASON_MAX], where[32] = "";
    place_text(refusal, place);
    reason_text(refusal, reason);
    if (refusal->offset != WIRE_NO_OFFSET)
        snprintf(where, sizeof where, ", at byte %zu", refusal->offset);
    const int needed = snprintf(out, max, "%s: %s%s: %s", place, reason, where, refusal->then);
    return needed > 0 ? (size_t)needed : 0;
}
