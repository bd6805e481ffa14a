// One record with every type of field: byte by byte as it travels, and word by word as it is
// refused, by the unpacker and by the packer alike. Then parts, in a record of their own: what they
// may be is decided by the table of kinds.

#include "common/wire/wire_table.h"
#include "tests/fuzz/wire_fill.h"
#include "tests/unit/wire_assert.h"
#include "tests/test.h"

#include <math.h>
#include <stdlib.h>

#define WIRE_MORE "tests/unit/wire_more.def"
#define WIRE_MORE_DEFINE
#include "common/wire/wire_more.h"

// clang-format off
#define WIRE_ENUM_fruit(E) E(APPLE, "apple") E(PEAR, "pear") E(PLUM, "plum")
WIRE_ENUM_DECLARE(fruit, FRUIT)
WIRE_ENUM_DEFINE(fruit, FRUIT)
#define WIRE_point(F) F(I64, x, -1000, 1000) F(F64, y)
WIRE_RECORD_STRUCT(point)
WIRE_RECORD_EXTERN(point)
WIRE_RECORD_DEFINE(point)
#define WIRE_sample(F) F(U8, a, 0, 200) F(U16, b, 5, UINT16_MAX) F(U32, c, 0, UINT32_MAX) \
    F(U64, d, 0, UINT64_MAX) F(I64, e, INT64_MIN, INT64_MAX) F(F32, f) F(F64, g) F(BOOL, h) \
    F(ENUM, i, fruit) F(HASH, j) F(STR, k, 40) F(BIN, l, 5) F(BYTES, m, 300) F(SUB, n, point) \
    F(LIST, o, point, 20)
WIRE_RECORD_STRUCT(sample)
WIRE_RECORD_EXTERN(sample)
WIRE_RECORD_DEFINE(sample)
// clang-format on

enum { ARENA_MAX = 4096 };

static _Alignas(max_align_t) uint8_t arena_bytes[ARENA_MAX];

// clang-format off
static const char sample_hex[] =
    "9f" "ccc8" "cd0100" "ce00010000" "cf0000000100000000" "d1ff7f"
    "ca3f800000" "cbbff0000000000000" "c3" "02"
    "c420" "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
    "a3" "61c3bc" "c405" "0102030405" "c403" "aabbcc"
    "92" "e0" "cb0000000000000000"
    "92" "92" "d0df" "cb3ff0000000000000" "92" "7f" "cb4000000000000000";
// clang-format on

static struct wire_sample sample_of_hex(struct wire_point points[2])
{
    points[0] = (struct wire_point){ -33, 1 };
    points[1] = (struct wire_point){ 127, 2 };
    struct wire_sample sample = {
        .a = 200,
        .b = 256,
        .c = 65536,
        .d = UINT64_C(1) << 32,
        .e = -129,
        .f = 1,
        .g = -1,
        .h = true,
        .i = FRUIT_PLUM,
        .k = "a\xc3\xbc",
        .l = { 1, 2, 3, 4, 5 },
        .m = { (const uint8_t *)"\xaa\xbb\xcc", 3 },
        .n = { -32, 0 },
        .o = points,
        .o_count = 2,
    };
    for (uint8_t i = 0; i < HASH_BYTES; i++) sample.j.bytes[i] = i;
    return sample;
}

static struct wire_cursor cursor_at(const uint8_t *bytes, size_t count, struct wire_arena *arena,
                                    struct wire_refusal *refusal)
{
    return (struct wire_cursor){ .start = bytes,
                                 .at = bytes,
                                 .end = bytes + count,
                                 .arena = arena,
                                 .refusal = refusal,
                                 .frame = "SAMPLE",
                                 .then = "frame dropped" };
}

static bool unpack_sample(const uint8_t *bytes, size_t count, size_t arena_max,
                          struct wire_sample *ret_sample, struct wire_refusal *ret_refusal)
{
    struct wire_arena arena = { arena_bytes, 0, arena_max };
    struct wire_cursor cursor = cursor_at(bytes, count, &arena, ret_refusal);
    return wire_cursor_record(&cursor, &wire_table_sample, ret_sample) && cursor.at == cursor.end;
}

static void test_every_type_has_its_bytes(void **state)
{
    uint8_t expected[256], bytes[256];
    struct wire_point points[2];
    struct wire_refusal refusal;
    struct wire_sample sample = sample_of_hex(points), got;
    struct wire_sink sink = { .out = bytes, .max = sizeof bytes, .refusal = &refusal };
    (void)state;
    const size_t count = from_hex(sample_hex, expected);
    assert_true(wire_sink_record(&sink, &wire_table_sample, &sample));
    assert_int_equal(sink.used, count);
    assert_memory_equal(bytes, expected, count);
    assert_true(unpack_sample(expected, count, ARENA_MAX, &got, &refusal));
    assert_true(wire_record_equal(&wire_table_sample, &sample, &got));
    points[1].y = 2.5;
    assert_false(wire_record_equal(&wire_table_sample, &sample, &got));
}

static void test_records_that_differ_in_one_field_are_not_equal(void **state)
{
    struct wire_point points[2];
    const struct wire_sample good = sample_of_hex(points);
    struct wire_sample other = good;
    (void)state;
#define ASSERT_DIFFERS(change)                                                                     \
    do {                                                                                           \
        change;                                                                                    \
        assert_false(wire_record_equal(&wire_table_sample, &good, &other));                        \
        other = good;                                                                              \
        assert_true(wire_record_equal(&wire_table_sample, &good, &other));                         \
    } while (0)
    ASSERT_DIFFERS(other.a = 1);
    ASSERT_DIFFERS(other.b = 5);
    ASSERT_DIFFERS(other.c = 1);
    ASSERT_DIFFERS(other.d = 1);
    ASSERT_DIFFERS(other.e = 1);
    ASSERT_DIFFERS(other.f = 2);
    ASSERT_DIFFERS(other.g = 2);
    ASSERT_DIFFERS(other.h = false);
    ASSERT_DIFFERS(other.i = FRUIT_APPLE);
    ASSERT_DIFFERS(other.j.bytes[31] = 0);
    ASSERT_DIFFERS(other.k[2] = 'b');
    ASSERT_DIFFERS(other.k[3] = 'b');
    ASSERT_DIFFERS(other.l[4] = 0);
    ASSERT_DIFFERS(other.m.count = 2);
    ASSERT_DIFFERS(other.m.data = (const uint8_t *)"\xaa\xbb\xcd");
    ASSERT_DIFFERS(other.n.x = 0);
    ASSERT_DIFFERS(other.o_count = 1);
#undef ASSERT_DIFFERS
}

// A field on each side of every change of form: filled to the brim, it is as long as was foretold.
// clang-format off
#define WIRE_edges(F) F(U8, a, 0, 127) F(U8, b, 0, 128) F(U16, c, 0, 256) F(U32, d, 0, 65536) \
    F(U64, e, 0, UINT32_MAX) F(U64, f, 0, UINT32_MAX + UINT64_C(1)) F(I64, g, -32, 127) \
    F(I64, h, -33, 0) F(I64, i, INT8_MIN, 0) F(I64, j, INT8_MIN - 1, 0) F(I64, k, INT16_MIN, 0) \
    F(I64, l, INT16_MIN - 1, 0) F(I64, m, INT32_MIN, 0) F(I64, n, INT32_MIN - INT64_C(1), 0) \
    F(STR, o, 31) F(STR, p, 32) F(STR, q, 255) F(STR, r, 256) F(STR, s, 65536) F(BYTES, t, 255) \
    F(BYTES, u, 256) F(BYTES, v, 65535) F(BYTES, w, 65536) F(BIN, x, 256) F(LIST, y, point, 15) \
    F(LIST, z, point, 16) F(LIST, aa, point, 65535) F(LIST, bb, point, 65536) F(F32, cc) F(F64, dd)
WIRE_RECORD_STRUCT(edges)
WIRE_RECORD_EXTERN(edges)
WIRE_RECORD_DEFINE(edges)
// clang-format on

static void test_worst_cases_are_exact(void **state)
{
    static uint8_t lists[4 << 20], out[4 << 20];
    static struct wire_edges edges;
    struct wire_arena arena = { lists, 0, sizeof lists };
    struct wire_fill fill = { .random = 6,
                              .arena = &arena,
                              .list_max = UINT32_MAX,
                              .bytes_max = UINT32_MAX,
                              .largest = true };
    struct wire_refusal refusal;
    struct wire_sink sink = { .out = out, .max = sizeof out, .refusal = &refusal };
    (void)state;
    wire_fill_record(&fill, &wire_table_edges, &edges);
    assert_true(wire_sink_record(&sink, &wire_table_edges, &edges));
    assert_int_equal(sink.used, wire_table_record_max(&wire_table_edges));
    assert_true(arena.used <= wire_table_arena_max(&wire_table_edges) + edges.t.count +
                                  edges.u.count + edges.v.count + edges.w.count + 64);
    assert_int_equal(record_depth(&wire_table_edges), 2);
}

static void test_longer_forms_of_integers_are_read(void **state)
{
    static const struct {
        const char *hex;
        int64_t value;
    } forms[] = {
        { "05", 5 },
        { "cc05", 5 },
        { "cd0005", 5 },
        { "ce00000005", 5 },
        { "cf0000000000000005", 5 },
        { "d005", 5 },
        { "d10005", 5 },
        { "d200000005", 5 },
        { "d30000000000000005", 5 },
        { "ff", -1 },
        { "d0ff", -1 },
        { "d1ffff", -1 },
        { "d2ffffffff", -1 },
        { "d3ffffffffffffffff", -1 },
        { "d1fc18", -1000 },
        { "cd03e8", 1000 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        uint8_t bytes[32];
        struct wire_point point;
        struct wire_refusal refusal;
        bytes[0] = 0x92;
        size_t count = 1 + from_hex(forms[i].hex, bytes + 1);
        count += from_hex("cb0000000000000000", bytes + count);
        struct wire_cursor cursor = cursor_at(bytes, count, NULL, &refusal);
        assert_true(wire_cursor_record(&cursor, &wire_table_point, &point));
        assert_int_equal(point.x, forms[i].value);
    }
}

static void test_enums_have_names(void **state)
{
    (void)state;
    assert_int_equal(FRUIT_COUNT, 3);
    assert_string_equal(wire_enum_name(&wire_enum_fruit, FRUIT_PEAR), "pear");
    assert_string_equal(wire_enum_name(&wire_enum_fruit, FRUIT_COUNT), "?");
}

// ---- every way to be refused ----------------------------------------------------------------

// The sample with `count` bytes at `offset` replaced by those of `hex`.
static void assert_sample_refused(size_t offset, size_t count, const char *hex, const char *why,
                                  size_t at)
{
    uint8_t whole[256], bytes[1024];
    char sentence[WIRE_REFUSAL_TEXT_MAX];
    struct wire_sample sample;
    struct wire_refusal refusal;
    const size_t all = from_hex(sample_hex, whole);
    memcpy(bytes, whole, offset);
    const size_t replaced = from_hex(hex, bytes + offset);
    memcpy(bytes + offset + replaced, whole + offset + count, all - offset - count);
    assert_false(unpack_sample(bytes, all - count + replaced, ARENA_MAX, &sample, &refusal));
    snprintf(sentence, sizeof sentence, "SAMPLE%s", why);
    assert_dropped(&refusal, sentence, at);
}

static void test_fields_are_refused_by_name(void **state)
{
    (void)state;
    // Where the fields begin: a 1, b 3, c 6, d 11, e 20, f 23, g 28, h 37, i 38, j 39, k 73, l 77,
    // m 84, n 89, o 100
    assert_sample_refused(0, 1, "9e", ".o: missing: 14 fields came, at least 15 are needed", 0);
    assert_sample_refused(0, 1, "80", ": a map, should be an array", 0);
    assert_sample_refused(1, 2, "ccc9", ".a: 201, allowed 0..200", 1);
    assert_sample_refused(1, 2, "a0", ".a: a string, should be an integer", 1);
    assert_sample_refused(1, 2, "ff", ".a: -1, allowed 0..200", 1);
    assert_sample_refused(3, 3, "04", ".b: 4, allowed 5..65535", 3);
    assert_sample_refused(3, 3, "ce00010000", ".b: 65536, allowed 5..65535", 3);
    assert_sample_refused(
        20, 3, "cfffffffffffffffff",
        ".e: 18446744073709551615, allowed -9223372036854775808..9223372036854775807", 20);
    assert_sample_refused(23, 5, "ca7fc00000", ".f: not a finite number", 23);
    assert_sample_refused(23, 5, "cb3ff0000000000000", ".f: a float64, should be a float32", 23);
    assert_sample_refused(28, 9, "cb7ff0000000000000", ".g: not a finite number", 28);
    assert_sample_refused(28, 9, "c0", ".g: nil, should be a float64", 28);
    assert_sample_refused(37, 1, "01", ".h: an integer, should be a bool", 37);
    assert_sample_refused(38, 1, "03", ".i: 3, allowed 0..2", 38);
    assert_sample_refused(39, 34, "c401 00", ".j: 1 bytes, allowed 32..32", 39);
    assert_sample_refused(39, 34, "c3", ".j: a bool, should be binary", 39);
    assert_sample_refused(73, 4, "a3 611b62", ".k: control character 0x1b, allowed 0x20..0xff", 75);
    assert_sample_refused(73, 4, "a100", ".k: control character 0x00, allowed 0x20..0xff", 74);
    assert_sample_refused(
        73, 4,
        "d929 6161616161616161616161616161616161616161616161616161616161616161616161616161616161",
        ".k: 41 bytes, allowed 0..40", 73);
    assert_sample_refused(73, 4, "c403 616161", ".k: binary, should be a string", 73);
    assert_sample_refused(77, 7, "c404 01020304", ".l: 4 bytes, allowed 5..5", 77);
    assert_sample_refused(84, 5, "c6ffffffff", ".m: needs 4294967295 bytes, 35 are left", 89);
    assert_sample_refused(89, 1, "91", ".n.y: missing: 1 fields came, at least 2 are needed", 89);
    assert_sample_refused(90, 1, "d1fc17", ".n.x: -1001, allowed -1000..1000", 90);
    assert_sample_refused(100, 1, "dc0015", ".o: 21 elements, allowed 0..20", 100);
    assert_sample_refused(100, 1, "ddffffffff", ".o: 4294967295 elements, allowed 0..20", 100);
    assert_sample_refused(113, 1, "93", ".o[1]: needs 1 bytes, 0 are left", 124);
    assert_sample_refused(114, 1, "cd03e9", ".o[1].x: 1001, allowed -1000..1000", 114);
    assert_sample_refused(114, 1, "c1", ".o[1].x: an unused type, should be an integer", 114);
}

static void test_lists_stay_within_the_arena(void **state)
{
    uint8_t bytes[256];
    struct wire_sample sample;
    struct wire_refusal refusal;
    const size_t count = from_hex(sample_hex, bytes);
    (void)state;
    assert_true(unpack_sample(bytes, count, 2 * sizeof(struct wire_point), &sample, &refusal));
    assert_false(unpack_sample(bytes, count, 2 * sizeof(struct wire_point) - 1, &sample, &refusal));
    assert_dropped(&refusal, "SAMPLE.o: needs 32 bytes of memory, 31 are left", 100);
}

static void test_any_byte_anywhere_is_refused_or_valid(void **state)
{
    uint8_t bytes[256];
    const size_t count = from_hex(sample_hex, bytes);
    (void)state;
    for (size_t at = 0; at < count; at++) {
        for (unsigned value = 0; value <= UINT8_MAX; value++) {
            struct wire_sample sample;
            struct wire_refusal refusal;
            uint8_t *exact = malloc(count);
            memcpy(exact, bytes, count);
            exact[at] = (uint8_t)value;
            if (unpack_sample(exact, count, ARENA_MAX, &sample, &refusal)) {
                uint8_t again[512];
                struct wire_sink sink = { .out = again, .max = sizeof again, .refusal = &refusal };
                assert_true(wire_sink_record(&sink, &wire_table_sample, &sample));
            }
            free(exact);
        }
    }
}

// What packs, unpacks: the packer refuses the same things, and writes nothing shorter for it.
static void assert_not_packed(const struct wire_sample *sample, const char *why)
{
    uint8_t bytes[512];
    char sentence[WIRE_REFUSAL_TEXT_MAX];
    struct wire_refusal refusal;
    struct wire_sink sink = { .out = bytes, .max = sizeof bytes, .refusal = &refusal };
    assert_false(wire_sink_record(&sink, &wire_table_sample, sample));
    refusal.frame = "";
    refusal.then = "not packed";
    snprintf(sentence, sizeof sentence, "%s: not packed", why);
    assert_sentence(&refusal, sentence);
}

static void test_what_breaks_the_table_is_not_packed(void **state)
{
    struct wire_point points[2];
    const struct wire_sample good = sample_of_hex(points);
    struct wire_sample bad = good;
    (void)state;
    bad.a = 201;
    assert_not_packed(&bad, ".a: 201, allowed 0..200");
    bad = good, bad.i = 3;
    assert_not_packed(&bad, ".i: 3, allowed 0..2");
    bad = good, bad.k[1] = '\n';
    assert_not_packed(&bad, ".k: control character 0x0a, allowed 0x20..0xff");
    bad = good, bad.k[1] = 0x1f;
    assert_not_packed(&bad, ".k: control character 0x1f, allowed 0x20..0xff");
    bad = good, bad.f = INFINITY;
    assert_not_packed(&bad, ".f: not a finite number");
    bad = good, bad.g = (double)NAN;
    assert_not_packed(&bad, ".g: not a finite number");
    bad = good, memset(bad.k, 'x', sizeof bad.k);
    assert_not_packed(&bad, ".k: 41 bytes, allowed 0..40");
    bad = good, bad.m.count = 301;
    assert_not_packed(&bad, ".m: 301 bytes, allowed 0..300");
    bad = good, bad.m.data = NULL;
    assert_not_packed(&bad, ".m: count is 3, but the pointer is NULL");
    bad = good, bad.o = NULL;
    assert_not_packed(&bad, ".o: count is 2, but the pointer is NULL");
    bad = good, bad.o_count = 21;
    assert_not_packed(&bad, ".o: 21 elements, allowed 0..20");
    bad = good, points[1].x = -1001;
    assert_not_packed(&bad, ".o[1].x: -1001, allowed -1000..1000");
    points[1].x = 0, points[0].y = (double)INFINITY;
    assert_not_packed(&bad, ".o[0].y: not a finite number");
}

// ---- parts ----------------------------------------------------------------------------------

// A drawing of one page: the page has ink of one kind, the cover is of the other, the last page has
// none. Where the fields begin: title 1, pages 5, pages[0].ink 7, .number 25, cover 26, last 33.
static const char drawing_hex[] = "94 a3736561 91"
                                  "92 92 ccf0 93 02 92 92 f7 07 92 05 cc80 c403 aabbcc 63"
                                  "92 ccf1 92 09 ccff"
                                  "92 c0 01";

static const struct wire_spot drawing_spots[2] = { { -9, 7 }, { 5, 128 } }, cover_spot = { 9, 255 };
static const struct wire_paint drawing_paint = {
    .layers = 2,
    .spots = drawing_spots,
    .spots_count = 2,
    .mix = { (const uint8_t *)"\xaa\xbb\xcc", 3 },
};
static const struct wire_page drawing_page = {
    .ink = { FRAME_TEST_PAINT, &drawing_paint },
    .number = 99,
};
static const struct wire_drawing good_drawing = {
    .title = "sea",
    .pages = &drawing_page,
    .pages_count = 1,
    .cover = { FRAME_TEST_SPOT, &cover_spot },
    .last = { .number = 1 },
};

static bool unpack_drawing(const uint8_t *bytes, size_t count, size_t arena_max,
                           const struct wire_drawing **ret_drawing,
                           struct wire_refusal *ret_refusal)
{
    struct wire_arena arena = { arena_bytes, 0, arena_max };
    const void *body;
    const bool whole =
        wire_unpack_body(bytes, count, FRAME_TEST_DRAWING, &arena, &body, ret_refusal);
    assert_true(whole || arena.used == 0);
    if (whole) *ret_drawing = body;
    return whole;
}

static void test_parts_have_their_bytes(void **state)
{
    uint8_t expected[256], bytes[256];
    const struct wire_drawing *got;
    struct wire_refusal refusal;
    const size_t count = from_hex(drawing_hex, expected);
    (void)state;
    assert_int_equal(wire_pack_body(FRAME_TEST_DRAWING, &good_drawing, bytes, sizeof bytes), count);
    assert_memory_equal(bytes, expected, count);
    assert_true(unpack_drawing(expected, count, ARENA_MAX, &got, &refusal));
    assert_true(wire_equal(FRAME_TEST_DRAWING, &good_drawing, got));
    assert_int_equal(got->cover.kind, FRAME_TEST_SPOT);
    assert_int_equal(((const struct wire_spot *)got->cover.body)->shade, 255);
    assert_int_equal(got->last.ink.kind, FRAME_NONE);
    assert_null(got->last.ink.body);
    for (size_t cut = 0; cut < count; cut++) {
        uint8_t *exact = malloc(cut + !cut); // Its own block: a byte beyond it would be seen
        memcpy(exact, expected, cut);
        assert_false(unpack_drawing(exact, cut, ARENA_MAX, &got, &refusal));
        assert_int_equal(refusal.reason, WIRE_REFUSED_CUT);
        free(exact);
    }
}

static void test_parts_that_differ_are_not_equal(void **state)
{
    const struct wire_spot spot = { 9, 254 };
    struct wire_drawing other = good_drawing;
    (void)state;
    other.cover.body = &spot;
    assert_false(wire_equal(FRAME_TEST_DRAWING, &good_drawing, &other));
    other.cover = (struct wire_part){ FRAME_TEST_PAINT, &drawing_paint };
    assert_false(wire_equal(FRAME_TEST_DRAWING, &good_drawing, &other));
    other.cover = (struct wire_part){ FRAME_NONE, NULL };
    assert_false(wire_equal(FRAME_TEST_DRAWING, &good_drawing, &other));
    assert_true(wire_equal(FRAME_TEST_DRAWING, &other, &other));
}

// The drawing with `count` bytes at `offset` replaced by those of `hex`.
static void assert_drawing_refused(size_t offset, size_t count, const char *hex, const char *why,
                                   size_t at)
{
    uint8_t whole[256], bytes[512];
    char sentence[2 * WIRE_REFUSAL_TEXT_MAX];
    const struct wire_drawing *got;
    struct wire_refusal refusal;
    const size_t all = from_hex(drawing_hex, whole);
    memcpy(bytes, whole, offset);
    const size_t replaced = from_hex(hex, bytes + offset);
    memcpy(bytes + offset + replaced, whole + offset + count, all - offset - count);
    assert_false(unpack_drawing(bytes, all - count + replaced, ARENA_MAX, &got, &refusal));
    snprintf(sentence, sizeof sentence, "TEST_DRAWING%s, at byte %zu: body refused", why, at);
    assert_sentence(&refusal, sentence);
}

static void test_parts_are_refused_by_name(void **state)
{
    (void)state;
    assert_drawing_refused(26, 7, "01", ".cover: an integer, should be an array", 26);
    assert_drawing_refused(26, 1, "91", ".cover: 1 elements, allowed 2..2", 26);
    assert_drawing_refused(26, 7, "93 ccf1 92 09 ccff c0", ".cover: 3 elements, allowed 2..2", 26);
    assert_drawing_refused(27, 2, "c0", ".cover.kind: nil, should be an integer", 27);
    assert_drawing_refused(27, 2, "00", ".cover.kind: 0, allowed 1..65535", 27);
    assert_drawing_refused(27, 2, "ce00010000", ".cover.kind: 65536, allowed 1..65535", 27);
    assert_drawing_refused(27, 2, "ccf2",
                           ".cover: kind 242 is not known, the last known is 245: upgrade", 27);
    // LEAVE is mail; ROUNDS_CONFIG is a part, but of CONFIG; TEST_DRAWING would nest without end
    assert_drawing_refused(27, 2, "10", ".cover: this kind is not accepted here", 27);
    assert_drawing_refused(27, 2, "50", ".cover: this kind is not accepted here", 27);
    assert_drawing_refused(27, 2, "ccf4", ".cover: this kind is not accepted here", 27);
    assert_drawing_refused(29, 1, "91",
                           ".cover.shade: missing: 1 fields came, at least 2 are needed", 29);
    assert_drawing_refused(30, 1, "0a", ".cover.x: 10, allowed -9..9", 30);
    assert_drawing_refused(11, 1, "04", ".pages[0].ink.layers: 4, allowed 1..3", 11);
    assert_drawing_refused(17, 1, "0a", ".pages[0].ink.spots[1].x: 10, allowed -9..9", 17);
    assert_drawing_refused(
        8, 2, "cd0100", ".pages[0].ink: kind 256 is not known, the last known is 245: upgrade", 8);
}

// What a newer peer appends to a part is skipped, as in every record.
static void test_parts_may_grow(void **state)
{
    uint8_t bytes[64];
    const struct wire_drawing *got;
    struct wire_refusal refusal;
    const size_t count = from_hex("94 a0 90 92 ccf1 93 09 07 92c0c0 92 c0 01", bytes);
    (void)state;
    assert_true(unpack_drawing(bytes, count, ARENA_MAX, &got, &refusal));
    assert_int_equal(((const struct wire_spot *)got->cover.body)->shade, 7);
}

static void test_parts_stay_within_the_arena(void **state)
{
    uint8_t bytes[256];
    char room[128];
    const struct wire_drawing *got;
    struct wire_refusal refusal;
    const size_t count = from_hex(drawing_hex, bytes);
    size_t max = 0;
    (void)state;
    while (!unpack_drawing(bytes, count, max, &got, &refusal)) {
        assert_int_equal(refusal.reason, WIRE_REFUSED_ARENA);
        max++;
    }
    assert_true(max <= wire_arena_max(FRAME_TEST_DRAWING));
    assert_false(unpack_drawing(bytes, count, max - 1, &got, &refusal)); // The last is the cover
    snprintf(
        room, sizeof room,
        "TEST_DRAWING.cover: needs %zu bytes of memory, %zu are left, at byte 26: body refused",
        (size_t)refusal.value, (size_t)refusal.max);
    assert_sentence(&refusal, room);
    assert_int_equal(refusal.max + 1, refusal.value);
}

static void test_parts_keep_their_worst_case(void **state)
{
    const size_t paint = 1 + 2 + (1 + 1 + (1 + 4 * (1 + 1 + 2)) + (2 + 5)); // [kind, body]
    (void)state;
    assert_int_equal(wire_record_max(FRAME_TEST_PAINT), paint);
    assert_int_equal(wire_table_record_max(&wire_table_page), 1 + paint + 1);
    assert_true(wire_table_arena_max(&wire_table_page) == wire_arena_max(FRAME_TEST_PAINT));
    assert_int_equal(record_depth(&wire_table_drawing), 4); // drawing, page, paint, spot
}

static void assert_drawing_not_packed(const struct wire_drawing *drawing, const char *why)
{
    uint8_t bytes[256];
    char sentence[2 * WIRE_REFUSAL_TEXT_MAX];
    struct wire_refusal refusal;
    assert_int_equal(wire_pack_body(FRAME_TEST_DRAWING, drawing, bytes, sizeof bytes), 0);
    assert_false(wire_valid(FRAME_TEST_DRAWING, drawing, &refusal));
    snprintf(sentence, sizeof sentence, "TEST_DRAWING%s: not packed", why);
    assert_sentence(&refusal, sentence);
}

static void test_parts_that_break_the_table_are_not_packed(void **state)
{
    const struct wire_spot spot = { 10, 0 };
    struct wire_drawing bad = good_drawing;
    (void)state;
    bad.cover.kind = 242;
    assert_drawing_not_packed(&bad,
                              ".cover: kind 242 is not known, the last known is 245: upgrade");
    bad.cover.kind = FRAME_TEST_DRAWING;
    assert_drawing_not_packed(&bad, ".cover: this kind is not accepted here");
    bad.cover = (struct wire_part){ FRAME_TEST_SPOT, NULL };
    assert_drawing_not_packed(&bad, ".cover: count is 1, but the pointer is NULL");
    bad.cover.body = &spot;
    assert_drawing_not_packed(&bad, ".cover.x: 10, allowed -9..9");
}

TESTS(TEST(test_every_type_has_its_bytes),
      TEST(test_records_that_differ_in_one_field_are_not_equal), TEST(test_worst_cases_are_exact),
      TEST(test_longer_forms_of_integers_are_read), TEST(test_enums_have_names),
      TEST(test_fields_are_refused_by_name), TEST(test_lists_stay_within_the_arena),
      TEST(test_any_byte_anywhere_is_refused_or_valid),
      TEST(test_what_breaks_the_table_is_not_packed), TEST(test_parts_have_their_bytes),
      TEST(test_parts_that_differ_are_not_equal), TEST(test_parts_are_refused_by_name),
      TEST(test_parts_may_grow), TEST(test_parts_stay_within_the_arena),
      TEST(test_parts_keep_their_worst_case), TEST(test_parts_that_break_the_table_are_not_packed))
