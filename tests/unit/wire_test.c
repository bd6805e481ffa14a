// Every frame of frames.def and of wire_more.def, generically: made up, packed, unpacked, compared,
// packed again, read and written by msgpack-c, printed. Then frames as a whole: refused, signed,
// newer, damaged.

#include "common/wire/wire_table.h"
#include "tests/fuzz/wire_check.h"
#include "tests/fuzz/wire_fill.h"
#include "tests/unit/wire_assert.h"
#include "tests/test.h"

#include <jansson.h>
#include <msgpack.h>
#include <stdlib.h>

#define WIRE_MORE "tests/unit/wire_more.def"
#define WIRE_MORE_DEFINE
#include "common/wire/wire_more.h"

enum { ARENA_MAX = 64 << 20, OUT_MAX = 32 << 20, ROUNDS = 24 }; // OUT_MAX as in disk_shell.c

static uint8_t *filled, *taken, *packed, *again,
    *third; // Two arenas and three buffers for all tests
static char *text;

static int setup(void **state)
{
    (void)state;
    filled = malloc(ARENA_MAX), taken = malloc(ARENA_MAX);
    packed = malloc(OUT_MAX), again = malloc(OUT_MAX), third = malloc(OUT_MAX);
    text = malloc(4 * OUT_MAX);
    return filled && taken && packed && again && third && text ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    free(filled), free(taken), free(packed), free(again), free(third), free(text);
    return 0;
}

// ---- every frame ----------------------------------------------------------------------------

// What msgpack-c reads and writes again must be the same bytes: we pack as canonically as it does.
static void assert_msgpack_agrees(const uint8_t *bytes, size_t count)
{
    msgpack_unpacked result;
    msgpack_sbuffer buffer;
    msgpack_packer packer;
    size_t offset = 0;
    msgpack_unpacked_init(&result);
    msgpack_sbuffer_init(&buffer);
    msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
    assert_int_equal(msgpack_unpack_next(&result, (const char *)bytes, count, &offset),
                     MSGPACK_UNPACK_SUCCESS);
    assert_int_equal(offset, count);
    assert_int_equal(msgpack_pack_object(&packer, result.data), 0);
    assert_int_equal(buffer.size, count);
    assert_memory_equal(buffer.data, bytes, count);
    msgpack_sbuffer_destroy(&buffer);
    msgpack_unpacked_destroy(&result);
}

static void assert_prints(const struct wire_head *head, uint16_t kind, const void *body)
{
    char little[40];
    json_error_t error;
    size_t needed = wire_print_json(head, kind, body, text, 4 * OUT_MAX);
    assert_true(needed < 4 * OUT_MAX);
    json_t *json =
        json_loadb(text, needed, JSON_DECODE_INT_AS_REAL | JSON_REJECT_DUPLICATES, &error);
    if (!json) fail_msg("%s: %s", wire_kind_name(kind), error.text);
    assert_string_equal(json_string_value(json_object_get(json, "kind")), wire_kind_name(kind));
    const json_t *fields = json_object_get(json, "body");
    assert_int_equal(json_object_size(fields), wire_table_frame(kind)->record->field_count);
    json_decref(json);

    needed = wire_print(kind, body, text, 4 * OUT_MAX);
    for (size_t i = 0; i < needed; i++) assert_true((uint8_t)text[i] >= 0x20 && text[i] != 0x7f);
    assert_int_equal(wire_print(kind, body, little, sizeof little), needed);
    assert_int_equal(strlen(little), needed < sizeof little ? needed : sizeof little - 1);
    assert_int_equal(wire_print(kind, body, NULL, 0), needed);
}

static void round_trip(const struct wire_head *head, const void *body, size_t count)
{
    static const uint8_t signature[WIRE_SIGNATURE_BYTES] = { 0xc0 };
    struct wire_arena arena = { taken, 0, ARENA_MAX };
    struct wire_refusal refusal;
    struct wire_head came;
    const void *got;
    assert_true(count > 0 && count <= wire_size_max(head->kind));
    assert_true(wire_valid(head->kind, body, &refusal));
    count = wire_put_signature(packed, count, signature, OUT_MAX);
    assert_true(count > 0 && count <= wire_size_max(head->kind));
    if (!wire_unpack(packed, count, ~0u, &arena, &came, &got, &refusal)) {
        wire_refusal_text(&refusal, text, OUT_MAX);
        fail_msg("%s", text);
    }
    assert_true(arena.used <= wire_arena_max(head->kind));
    assert_true(wire_record_equal(&wire_table_head, head, &came));
    assert_true(wire_equal(head->kind, body, got));
    const size_t covered = wire_pack(&came, got, again, OUT_MAX) - 1;
    assert_int_equal(covered, wire_signed_bytes(packed, count));
    assert_memory_equal(packed, again, covered);
    assert_msgpack_agrees(packed, count);
}

static void test_every_frame_survives_the_journey(void **state)
{
    struct wire_arena arena = { filled, 0, ARENA_MAX };
    struct wire_fill fill = { .random = 1, .arena = &arena, .list_max = 40, .bytes_max = 300 };
    (void)state;
    for (uint16_t kind = wire_kind_next(0); kind; kind = wire_kind_next(kind)) {
        for (int i = 0; i < ROUNDS; i++) {
            struct wire_head head;
            arena.used = 0;
            const void *body = wire_fill_frame(&fill, kind, &head);
            round_trip(&head, body, wire_pack(&head, body, packed, OUT_MAX));
            assert_prints(&head, kind, body);
        }
    }
}

// Filled to the brim, a record packs to exactly the size that the table foretells, and never past
// the buffer.
static void test_every_record_keeps_its_worst_case(void **state)
{
    struct wire_arena arena = { filled, 0, ARENA_MAX }, other = { taken, 0, ARENA_MAX };
    struct wire_fill fill = { .random = 2,
                              .arena = &arena,
                              .list_max = UINT32_MAX,
                              .bytes_max = UINT32_MAX,
                              .largest = true };
    (void)state;
    for (uint16_t kind = wire_kind_next(0); kind; kind = wire_kind_next(kind)) {
        struct wire_head head;
        struct wire_refusal refusal;
        uint16_t came;
        const void *got;
        const size_t most = wire_record_max(kind);
        assert_true(most <= OUT_MAX && wire_arena_max(kind) <= ARENA_MAX);
        arena.used = other.used = 0;
        const void *body = wire_fill_frame(&fill, kind, &head);
        assert_int_equal(wire_pack_record(kind, body, packed, OUT_MAX), most);
        assert_int_equal(wire_pack_record(kind, body, packed, most), most);
        packed[most - 1] = 0x5a;
        assert_int_equal(wire_pack_record(kind, body, packed, most - 1), 0);
        assert_int_equal(packed[most - 1], 0x5a);
        assert_int_equal(wire_pack_record(kind, body, packed, most), most);
        assert_true(wire_unpack_record(packed, most, ~0u, &other, &came, &got, &refusal));
        assert_int_equal(came, kind);
        assert_true(wire_equal(kind, body, got));
        assert_true(wire_size_max(kind) <= WIRE_FRAME_MAX);
    }
}

static bool has_part(const struct wire_record *record)
{
    for (uint32_t i = 0; i < record->field_count; i++) {
        const struct wire_field *field = &record->fields()[i];
        if (field->type == WIRE_TYPE_PART) return true;
        if (field->record && has_part(field->record)) return true;
    }
    return false;
}

// The depth is bounded, and sizes can be counted, because no part has a part.
static void test_parts_have_no_parts(void **state)
{
    (void)state;
    for (uint16_t kind = wire_kind_next(0); kind; kind = wire_kind_next(kind)) {
        if (!(wire_kind_flags(kind) & WIRE_PART)) continue;
        assert_int_equal(wire_kind_flags(kind) & ~(unsigned)WIRE_PART, 0); // No frame by itself
        if (has_part(wire_table_frame(kind)->record))
            fail_msg("%s has a part: only a frame may", wire_kind_name(kind));
    }
    assert_true(has_part(&wire_table_drawing));
}

static void test_the_table_is_sound(void **state)
{
    (void)state;
    for (uint16_t kind = wire_kind_next(0); kind; kind = wire_kind_next(kind)) {
        assert_int_equal(wire_kind_from_name(wire_kind_name(kind)), kind); // So names differ
        assert_true(record_depth(wire_table_frame(kind)->record) <= WIRE_DEPTH_MAX);
        const unsigned outside = WIRE_MAIL | WIRE_NEWS | WIRE_BULK, flags = wire_kind_flags(kind);
        // One of the three
        assert_int_equal(!!(flags & outside) + !!(flags & WIRE_LOCAL) + !!(flags & WIRE_PART), 1);
        const struct wire_field *first = wire_table_frame(kind)->record->fields();
        if (flags & WIRE_COPY) assert_true(first->type == WIRE_TYPE_BYTES && first->offset == 0);
    }
    assert_true(wire_kind_flags(FRAME_CLAIM_COPY) & WIRE_COPY); // Or forged claims would be proofs
    assert_string_equal(wire_kind_name(UINT16_MAX), "?");
    assert_int_equal(wire_kind_from_name("NO_SUCH_FRAME"), FRAME_NONE);
    assert_int_equal(wire_kind_flags(0) + wire_size_max(0) + wire_arena_max(0), 0);
}

// Frames of the test's own are in every walk, behind those of frames.def, which stay as they are.
static void test_frames_of_ones_own_are_in_the_table(void **state)
{
    struct wire_drawing drawing = { .title = "sea" };
    char line[128];
    (void)state;
    assert_int_equal(wire_kind_next(FRAME_RECORD_COPY), FRAME_TEST_PAINT);
    assert_int_equal(wire_kind_next(FRAME_TEST_SPOT), FRAME_TEST_DRAWING);
    assert_int_equal(wire_kind_next(FRAME_TEST_DRAWING), FRAME_TEST_SKETCH);
    assert_int_equal(wire_kind_next(FRAME_TEST_SKETCH), FRAME_NONE);
    assert_int_equal(wire_kind_from_name("TEST_SKETCH"), FRAME_TEST_SKETCH);
    assert_int_equal(wire_kind_flags(FRAME_TEST_SKETCH), WIRE_LOCAL);
    assert_int_equal(wire_kind_flags(FRAME_TEST_PAINT), WIRE_PART_TEST);
    assert_null(wire_table_frame(FRAME_TEST_SPOT + 1));
    assert_null(wire_table_frame(WIRE_MORE_FIRST + WIRE_MORE_MAX));
    assert_null(wire_table_frame(UINT16_MAX));
    assert_string_equal(wire_kind_name(FRAME_HELLO), "HELLO");
    wire_print(FRAME_TEST_DRAWING, &drawing, line, sizeof line);
    assert_string_equal(line,
                        "TEST_DRAWING title=sea pages=[] cover=none last={ink=none number=0}");
}

// ---- frames as a whole ----------------------------------------------------------------------

#define HEAD_HEX(kind)                                                                             \
    "98 02" kind "a3 72756e c420 00000000000000000000000000000000"                                 \
    "00000000000000000000000000000000 01 02 "

static bool unpack(const uint8_t *bytes, size_t count, unsigned allowed,
                   struct wire_refusal *ret_refusal)
{
    struct wire_arena arena = { taken, 3, ARENA_MAX };
    struct wire_head head;
    const void *body;
    const bool whole = wire_unpack(bytes, count, allowed, &arena, &head, &body, ret_refusal);
    assert_true(whole || arena.used == 3);
    return whole;
}

static void assert_frame_refused(const char *hex, unsigned allowed, const char *why, size_t at)
{
    uint8_t bytes[512];
    struct wire_refusal refusal;
    const size_t count = from_hex(hex, bytes);
    assert_false(unpack(bytes, count, allowed, &refusal));
    assert_dropped(&refusal, why, at);
}

#define ZEROS_HEX     "00000000000000000000000000000000"
#define NONE_HEX      " c420 " ZEROS_HEX ZEROS_HEX
#define CHALLENGE_HEX " c410 " ZEROS_HEX

static void test_frames_are_refused_by_name(void **state)
{
    struct wire_refusal refusal;
    (void)state;
    assert_frame_refused("", ~0u, "frame: needs 1 bytes, 0 are left", 0);
    assert_frame_refused("90", ~0u, "frame: 0 elements, allowed 8..8", 0);
    assert_frame_refused("93 01 0203", ~0u, "frame: protocol 1, this build speaks 2: upgrade", 1);
    assert_frame_refused("93 a0 0203", ~0u, "frame.protocol: a string, should be an integer", 1);
    assert_frame_refused("97 02 02", ~0u, "frame: 7 elements, allowed 8..8", 0);
    assert_frame_refused("98 02 00", ~0u, "frame.kind: 0, allowed 1..65535", 2);
    assert_frame_refused("98 02 02 d921 61", ~0u, "frame.run: needs 33 bytes, 1 are left", 5);
    char unknown[128];
    uint16_t last = 0;
    for (uint16_t kind = wire_kind_next(0); kind; kind = wire_kind_next(kind)) last = kind;
    snprintf(unknown, sizeof unknown,
             "frame: kind 65535 is not known, the last known is %u: upgrade", last);
    assert_frame_refused(HEAD_HEX("cdffff") "90 c0", ~0u, unknown, 2);
    assert_frame_refused(HEAD_HEX("02") "92 05 a0 c0", WIRE_NEWS | WIRE_BULK,
                         "WELCOME: this kind is not accepted here", 2);
    assert_frame_refused(HEAD_HEX("02") "92 05 a0 c0 00", ~0u,
                         "WELCOME: 1 bytes after the end, allowed 0", 47);
    assert_frame_refused(HEAD_HEX("02") "92 05 a0 c401 00", ~0u,
                         "WELCOME.signature: 1 bytes, allowed 64..64", 46);
    assert_frame_refused(HEAD_HEX("02") "92 05 a0 01", ~0u,
                         "WELCOME.signature: an integer, should be binary", 46);
    assert_frame_refused(HEAD_HEX("02") "92 05 a0", ~0u,
                         "WELCOME.signature: needs 1 bytes, 0 are left", 46);
    assert_frame_refused(HEAD_HEX("01") "97 a0 00 05 c400" NONE_HEX NONE_HEX CHALLENGE_HEX " c0",
                         ~0u, "HELLO: needs a signature and has none", 135);
    memset(packed, 0xc0, WIRE_FRAME_MAX + 1);
    assert_false(unpack(packed, WIRE_FRAME_MAX + 1, ~0u, &refusal));
    assert_dropped(&refusal, "frame: 4194305 bytes, allowed 0..4194304", 0);
}

static void test_local_kinds_do_not_come_from_outside(void **state)
{
    struct wire_arena arena = { filled, 0, ARENA_MAX };
    struct wire_fill fill = { .random = 4, .arena = &arena, .list_max = 2, .bytes_max = 9 };
    const unsigned outside = WIRE_MAIL | WIRE_NEWS | WIRE_BULK;
    struct wire_refusal refusal;
    (void)state;
    for (uint16_t kind = wire_kind_next(0); kind; kind = wire_kind_next(kind)) {
        struct wire_head head, came;
        arena.used = 0;
        const void *body = wire_fill_frame(&fill, kind, &head);
        const size_t count = wire_pack(&head, body, packed, OUT_MAX);
        const unsigned flags = wire_kind_flags(kind);
        const bool local = flags & (WIRE_LOCAL | WIRE_PART);
        assert_int_equal(wire_unpack_head(packed, count, outside, &came, &refusal), !local);
        assert_int_equal(unpack(packed, count, outside, &refusal),
                         !local && !(flags & WIRE_SIGNED));
    }
}

static void test_a_signature_covers_all_before_it(void **state)
{
    uint8_t frame[512], signature[WIRE_SIGNATURE_BYTES];
    struct wire_head head = { .kind = FRAME_WELCOME, .run = "run", .incarnation = 1, .seq = 2 };
    struct wire_welcome body = { .instance = 5 };
    struct wire_refusal refusal;
    (void)state;
    memset(signature, 0xc0, sizeof signature);
    const size_t count = wire_pack(&head, &body, frame, sizeof frame);
    assert_int_equal(wire_signed_bytes(frame, count), count - 1);
    assert_null(wire_signature(frame, count));
    assert_int_equal(wire_put_signature(frame, count, signature, count + 64), 0); // One byte short
    assert_int_equal(frame[count - 1], 0xc0);
    frame[count] = 0;
    assert_int_equal(wire_put_signature(frame, count + 1, signature, sizeof frame), 0); // Trailing
    assert_int_equal(wire_put_signature(frame, count - 1, signature, sizeof frame), 0);
    const size_t all = wire_put_signature(frame, count, signature, count + 65);
    assert_int_equal(all, count + 65);
    assert_int_equal(wire_signed_bytes(frame, all), count - 1);
    assert_ptr_equal(wire_signature(frame, all), frame + count + 1);
    assert_int_equal(wire_put_signature(frame, all, signature, sizeof frame), 0); // Signed already
    assert_true(unpack(frame, all, WIRE_MAIL, &refusal));
    assert_int_equal(wire_signed_bytes(frame, 20), 0);
    assert_null(wire_signature(frame, all - 1));
}

// ---- hostile, newer, damaged ----------------------------------------------------------------

static void test_what_a_newer_peer_appends_is_skipped(void **state)
{
    // In WELCOME: one more field of each shape that msgpack knows. In FORGET, which may be as long:
    // one that is a million deep.
    static const char *const appended[] = {
        "c0",
        "c2",
        "7f",
        "e0",
        "cc01",
        "cd0102",
        "ce01020304",
        "cf0102030405060708",
        "d001",
        "d10102",
        "d201020304",
        "d30102030405060708",
        "ca00000000",
        "cb0000000000000000",
        "a161",
        "d90161",
        "da000161",
        "db0000000161",
        "c40161",
        "c5000161",
        "c60000000161",
        "c7010561",
        "c800010561",
        "c9000000010561",
        "d40561",
        "d5056161",
        "d60561616161",
        "d7056161616161616161",
        "d80561616161616161616161616161616161",
        "9101",
        "dc000101",
        "dd0000000101",
        "810102",
        "de00010102",
        "df000000010102",
    };
    struct wire_refusal refusal;
    (void)state;
    for (size_t i = 0; i < sizeof appended / sizeof *appended; i++) {
        char hex[256];
        uint8_t bytes[256];
        snprintf(hex, sizeof hex, HEAD_HEX("02") "93 05 a0 %s c0", appended[i]);
        const size_t count = from_hex(hex, bytes);
        assert_true(unpack(bytes, count, WIRE_MAIL, &refusal));
        for (size_t cut = 0; cut < count; cut++) {
            uint8_t *exact = malloc(cut + !cut); // Its own block: a byte beyond it would be seen
            memcpy(exact, bytes, cut);
            assert_false(unpack(exact, cut, WIRE_MAIL, &refusal));
            free(exact);
        }
    }
    size_t count = from_hex(HEAD_HEX("7c") "92 90", packed); // FORGET, which may be long
    memset(packed + count, 0x91, 1 << 19);
    assert_false(unpack(packed, count + (1 << 19), WIRE_LOCAL, &refusal));
    count += 1 << 19;
    count += from_hex("c0 c0", packed + count);
    assert_true(unpack(packed, count, WIRE_LOCAL, &refusal));
}

// A newer peer has a quarter, or 64 bytes, for what it appends; what is longer is nothing of this
// kind, whatever follows the head.
static void test_no_frame_is_longer_than_its_kind(void **state)
{
    struct wire_arena arena = { filled, 0, ARENA_MAX };
    struct wire_fill fill = { .random = 3, .arena = &arena, .list_max = 3, .bytes_max = 30 };
    (void)state;
    assert_int_equal(wire_frame_max(FRAME_ACK), wire_size_max(FRAME_ACK) + 64);
    assert_int_equal(wire_frame_max(FRAME_CONFIG), wire_size_max(FRAME_CONFIG) * 5 / 4);
    assert_int_equal(wire_frame_max(FRAME_SNAPSHOT), WIRE_FRAME_MAX);
    assert_int_equal(wire_frame_max(0), 0);
    for (uint16_t kind = wire_kind_next(0); kind; kind = wire_kind_next(kind)) {
        struct wire_head head, came;
        struct wire_refusal refusal;
        const size_t max = wire_frame_max(kind);
        arena.used = 0;
        const void *body = wire_fill_frame(&fill, kind, &head);
        const size_t count = wire_pack(&head, body, packed, OUT_MAX);
        assert_in_range(count, 1, max);
        memset(packed + count, 0, max + 1 - count);
        assert_true(wire_unpack_head(packed, max, ~0u, &came, &refusal));
        assert_false(wire_unpack_head(packed, max + 1, ~0u, &came, &refusal));
        assert_int_equal(refusal.reason, WIRE_REFUSED_LENGTH);
        assert_int_equal(refusal.max, max);
        assert_false(unpack(packed, max + 1, ~0u, &refusal));
        assert_int_equal(refusal.reason, WIRE_REFUSED_LENGTH);
    }
}

static void test_large_counts_are_refused_at_once(void **state)
{
    (void)state;
    assert_frame_refused("ddffffffff 02", ~0u, "frame: 4294967295 elements, allowed 8..8", 0);
    assert_frame_refused(HEAD_HEX("02") "ddffffffff", ~0u,
                         "WELCOME: needs 4294967295 bytes, 0 are left", 48);
    assert_frame_refused(HEAD_HEX("02") "93 05 a0 ddffffffff", ~0u,
                         "WELCOME: needs 4294967295 bytes, 0 are left", 51);
    assert_frame_refused(HEAD_HEX("02") "93 05 a0 dfffffffff", ~0u,
                         "WELCOME: needs 8589934590 bytes, 0 are left", 51);
    assert_frame_refused(HEAD_HEX("02") "93 05 a0 92 c0", ~0u, "WELCOME: needs 2 bytes, 1 are left",
                         47);
    assert_frame_refused(HEAD_HEX("02") "93 05 a0 c1", ~0u,
                         "WELCOME: an unused type, should be a value", 46);
}

// One byte changed anywhere: refused or valid, never worse; what is valid survives another journey.
static void test_damaged_frames_are_refused_or_valid(void **state)
{
    struct wire_arena arena = { filled, 0, ARENA_MAX };
    struct wire_fill fill = { .random = 5, .arena = &arena, .list_max = 5, .bytes_max = 20 };
    (void)state;
    for (uint16_t kind = wire_kind_next(0); kind; kind = wire_kind_next(kind)) {
        struct wire_head head;
        struct wire_refusal refusal;
        arena.used = 0;
        const void *body = wire_fill_frame(&fill, kind, &head);
        const size_t count = wire_pack(&head, body, packed, OUT_MAX);
        for (size_t at = 0; at < count; at += 1 + count / 200) {
            struct wire_arena other = { taken, 0, ARENA_MAX };
            const void *got;
            struct wire_head came;
            memcpy(again, packed, count);
            again[at] ^= (uint8_t)(1u << wire_fill_next(&fill) % 8);
            if (wire_unpack(again, count, ~0u, &other, &came, &got, &refusal))
                assert_true(wire_pack(&came, got, third, OUT_MAX) > 0); // `got` lends from `again`
            else assert_true(wire_refusal_text(&refusal, text, OUT_MAX) > 0);
        }
    }
}

// ---- text -----------------------------------------------------------------------------------

static void test_printing(void **state)
{
    static const struct wire_client clients[5] = {
        { .member = 1 }, { .member = 2 }, { .member = 3 }, { .member = 4 }, { .member = 5 }
    };
    struct wire_leave leave = { .instance = UINT64_MAX };
    struct wire_head head = { .kind = FRAME_UNDELIVERABLE, .run = "demo", .seq = 9 };
    struct wire_undeliverable lost = {
        .to = "trainer.3fa2",
        .kind = 10,
        .reason = "\"a\\b\" \xc3\xbc \xff \xc2\x9b"
                  "31m \x7f \xed\xa0\x80",
    };
    const struct wire_round round = { .round = 7, .clients = clients, .clients_count = 5 };
    char line[1024];
    (void)state;
    wire_print(FRAME_LEAVE, &leave, line, sizeof line);
    assert_string_equal(line, "LEAVE instance=18446744073709551615");
    wire_print(FRAME_ROUND, &round, line, sizeof line);
    assert_non_null(
        strstr(line, " clients=[{member=1 debt=0}, {member=2 debt=0}, {member=3 debt=0}, ..5] "));
    assert_non_null(strstr(line, " base=none "));
    assert_non_null(strstr(line, " witnesses=[] "));
    wire_print(FRAME_UNDELIVERABLE, &lost, line, sizeof line);
    assert_string_equal(line, "UNDELIVERABLE to=trainer.3fa2 kind=10 reason="
                              "\"\\\"a\\\\b\\\" \xc3\xbc \\xff \\x9b31m \\x7f \\xed\\xa0\\x80\"");
    wire_print_json(&head, FRAME_UNDELIVERABLE, &lost, line, sizeof line);
    assert_string_equal(
        line, "{\"kind\":\"UNDELIVERABLE\",\"run\":\"demo\",\"sender\":"
              "\"0000000000000000000000000000000000000000000000000000000000000000\","
              "\"incarnation\":0,\"seq\":9,"
              "\"body\":{\"to\":\"trainer.3fa2\",\"kind\":10,\"reason\":"
              "\"\\\"a\\\\b\\\" \xc3\xbc \\ufffd \\u009b31m \\u007f \\ufffd\\ufffd\\ufffd\"}}");
    wire_print_json(NULL, FRAME_LEAVE, &leave, line, sizeof line);
    assert_string_equal(line, "{\"kind\":\"LEAVE\",\"body\":{\"instance\":18446744073709551615}}");
}

static void test_parts_are_printed_with_their_kind(void **state)
{
    const struct wire_spot spot = { .x = -3, .shade = 7 };
    const struct wire_page page = { .ink = { FRAME_TEST_SPOT, &spot }, .number = 1 };
    const struct wire_drawing drawing = {
        .title = "sea", .pages = &page, .pages_count = 1, .cover = { FRAME_TEST_SPOT, &spot }
    };
    char line[512];
    (void)state;
    wire_print(FRAME_TEST_DRAWING, &drawing, line, sizeof line);
    assert_string_equal(line, "TEST_DRAWING title=sea pages=[{ink=TEST_SPOT{x=-3 shade=7} "
                              "number=1}] cover=TEST_SPOT{x=-3 shade=7} last={ink=none number=0}");
    wire_print_json(NULL, FRAME_TEST_DRAWING, &drawing, line, sizeof line);
    assert_string_equal(
        line, "{\"kind\":\"TEST_DRAWING\",\"body\":{\"title\":\"sea\",\"pages\":[{\"ink\":"
              "{\"kind\":\"TEST_SPOT\",\"body\":{\"x\":-3,\"shade\":7}},\"number\":1}],\"cover\":"
              "{\"kind\":\"TEST_SPOT\",\"body\":{\"x\":-3,\"shade\":7}},"
              "\"last\":{\"ink\":null,\"number\":0}}}");
}

static void test_texts_of_frames_are_utf8_without_control_characters(void **state)
{
    (void)state;
    static const struct {
        const char *says, *arrives;
    } texts[] = {
        { "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\x9f",
          "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\x9f" },
        { "caf\xe9", "caf?" },
        { "a\x7f", "a?" },
        { "\xc2\x9b[31m", "??[31m" },
        { "cut \xe2\x82", "cut ??" },
        { "\xc0\xaf", "??" },
        { "\xed\xa0\x80", "???" },
        { "\xf4\x90\x80\x80", "????" },
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const struct wire_head head = { .kind = FRAME_UNDELIVERABLE, .run = "demo" };
        struct wire_undeliverable no = { .to = "trainer.1" };
        struct wire_head got;
        struct wire_refusal refusal;
        const void *body;
        struct wire_arena arena = { .bytes = taken, .max = ARENA_MAX };
        const size_t length = strlen(texts[i].says);
        snprintf(no.reason, sizeof no.reason, "%s", texts[i].says);
        const size_t count = wire_pack(&head, &no, packed, OUT_MAX);
        assert_true(count > 0);
        assert_true(wire_unpack(packed, count, WIRE_MAIL, &arena, &got, &body, &refusal));
        assert_string_equal(((const struct wire_undeliverable *)body)->reason, texts[i].arrives);
        uint8_t *at = memmem(packed, count, texts[i].arrives, length);
        assert_non_null(at);
        memcpy(at, texts[i].says, length); // By one who does not keep to it
        assert_int_equal(wire_unpack(packed, count, WIRE_MAIL, &arena, &got, &body, &refusal),
                         i == 0);
        if (i > 0) assert_int_equal(refusal.reason, WIRE_REFUSED_TEXT);
    }
}

TESTS_WITH(setup, teardown, TEST(test_parts_have_no_parts),
           TEST(test_every_frame_survives_the_journey),
           TEST(test_every_record_keeps_its_worst_case), TEST(test_the_table_is_sound),
           TEST(test_frames_of_ones_own_are_in_the_table), TEST(test_frames_are_refused_by_name),
           TEST(test_local_kinds_do_not_come_from_outside),
           TEST(test_a_signature_covers_all_before_it),
           TEST(test_what_a_newer_peer_appends_is_skipped),
           TEST(test_no_frame_is_longer_than_its_kind), TEST(test_large_counts_are_refused_at_once),
           TEST(test_damaged_frames_are_refused_or_valid), TEST(test_printing),
           TEST(test_texts_of_frames_are_utf8_without_control_characters),
           TEST(test_parts_are_printed_with_their_kind))
