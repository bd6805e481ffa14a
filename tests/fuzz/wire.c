// wire -- each input is tried as a frame and as a record (wire_check.h), against msgpack-c, and
// with its signature. Mutations fill one field again from the table, so that most inputs stay
// valid.

#include "tests/fuzz/wire.h"
#include "common/net/signed_frame.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/wire_check.h"
#include "tests/fuzz/wire_fill.h"

#include <msgpack.h>
#include <stdio.h>

enum { IDENTITIES = 3 };

static const struct identity *identity(unsigned number)
{
    static struct identity *identities[IDENTITIES];
    struct identity **place = &identities[number % IDENTITIES];
    uint8_t secret[SECRET_BYTES] = { 1, (uint8_t)(number % IDENTITIES) };
    if (!*place) ensure(identity_from_secret(secret, NULL, place) == 0);
    return *place;
}

// ---- what must hold -----------------------------------------------------------------------------

// One value, passed over without recursion: the oracle, which nests at most 32 deep, sees the same.
static void check_against_msgpack(const uint8_t *bytes, size_t count)
{
    struct wire_refusal refusal = { 0 };
    struct wire_cursor cursor = { .start = bytes,
                                  .at = bytes,
                                  .end = bytes + count,
                                  .refusal = &refusal,
                                  .frame = "value",
                                  .then = "refused" };
    if (count == 0 || !wire_cursor_skip(&cursor)) return;
    msgpack_unpacked result;
    size_t offset = 0;
    msgpack_unpacked_init(&result);
    const int rc = msgpack_unpack_next(&result, (const char *)bytes, count, &offset);
    ensure(rc == MSGPACK_UNPACK_NOMEM_ERROR || rc == MSGPACK_UNPACK_SUCCESS);
    ensure(rc != MSGPACK_UNPACK_SUCCESS || offset == (size_t)(cursor.at - bytes));
    msgpack_unpacked_destroy(&result);
}

static bool verifies(const uint8_t *frame, size_t count)
{
    struct wire_head head;
    struct wire_refusal refusal;
    return wire_unpack_head(frame, count, ~0u, &head, &refusal) &&
           signed_frame_verify(frame, count, &head);
}

static void check_signature(const uint8_t *frame, size_t count)
{
    if (!verifies(frame, count)) return;
    uint8_t *copy = malloc(count);
    ensure(copy);
    memcpy(copy, frame, count);
    copy[frame[count / 2] % count] ^= (uint8_t)(1 << frame[count - 1] % 8);
    ensure(!verifies(copy, count));
    free(copy);
}

bool wire_fuzz_check(const uint8_t *bytes, size_t count)
{
    check_against_msgpack(bytes, count);
    check_signature(bytes, count);
    return wire_check_bytes(bytes, count);
}

// ---- mutations ----------------------------------------------------------------------------------

static uint8_t arena_bytes[2][1 << 20], out[1 << 20];

// Signed by one of ours where the kind asks for it.
static size_t sign(struct wire_head *head, const void *body, unsigned number, uint8_t *bytes,
                   size_t max)
{
    head->sender = *identity_key(identity(number));
    const size_t count = wire_pack(head, body, bytes, max);
    if (count == 0 || !(wire_kind_flags(head->kind) & WIRE_SIGNED)) return count;
    return signed_frame_sign(identity(number), bytes, count, max);
}

// A field of the body, by its place, as another filling of the same record has it.
static void replace_field(const struct wire_record *record, uint8_t *body, const uint8_t *other,
                          uint32_t place)
{
    const struct wire_field *field = &record->fields()[place % record->field_count];
    const uint32_t end = place % record->field_count + 1 < record->field_count
                             ? record->fields()[place % record->field_count + 1].offset
                             : record->size;
    memcpy(body + field->offset, other + field->offset, end - field->offset);
}

size_t wire_fuzz_mutate(uint8_t *bytes, size_t count, size_t max, uint32_t seed)
{
    struct wire_arena arena = { arena_bytes[0], 0, sizeof arena_bytes[0] };
    struct wire_arena spare = { arena_bytes[1], 0, sizeof arena_bytes[1] };
    struct wire_fill fill = {
        .random = seed | UINT64_C(1) << 40, .arena = &spare, .list_max = 3, .bytes_max = 8
    };
    struct wire_head head;
    struct wire_refusal refusal;
    const void *body;
    if (seed % 4 != 0 || !wire_unpack(bytes, count, ~0u, &arena, &head, &body, &refusal))
        return fuzz_mutate_blindly(bytes, count, max);
    const struct wire_record *record = wire_table_frame(head.kind)->record;
    uint8_t *changed = malloc(record->size), *other = malloc(record->size);
    ensure(changed && other);
    memcpy(changed, body, record->size);
    wire_fill_record(&fill, record, other);
    if (record->field_count) replace_field(record, changed, other, seed >> 8);
    const size_t made = sign(&head, changed, seed >> 4, out, sizeof out);
    free(changed);
    free(other);
    if (made == 0 || made > max) return fuzz_mutate_blindly(bytes, count, max);
    memcpy(bytes, out, made);
    return made;
}

// ---- what to begin with -------------------------------------------------------------------------

// The bytes that only the table knows: how each frame and each record begins.
static void print_beginnings(uint16_t kind)
{
    struct wire_arena arena = { arena_bytes[0], 0, sizeof arena_bytes[0] };
    struct wire_fill fill = { .random = kind, .arena = &arena, .list_max = 3, .bytes_max = 8 };
    struct wire_head head;
    const void *body = wire_fill_frame(&fill, kind, &head);
    const size_t bytes = kind < 128 ? 3 : kind < 256 ? 4 : 5;
    ensure(wire_pack(&head, body, out, sizeof out) > 0);
    fuzz_print_token("frame_", wire_kind_name(kind), out, bytes);
    ensure(wire_pack_record(kind, body, out, sizeof out) > 0);
    fuzz_print_token("record_", wire_kind_name(kind), out, bytes);
}

void wire_fuzz_print_dictionary(void)
{
    static const struct {
        const char *name;
        uint8_t count, bytes[9];
    } forms[] = {
        { "u8", 2, { 0xcc, 0xff } },
        { "u16", 3, { 0xcd, 0xff, 0xff } },
        { "u32", 5, { 0xce, 0xff, 0xff, 0xff, 0xff } },
        { "u64", 9, { 0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff } },
        { "i64", 9, { 0xd3, 0x80, 0, 0, 0, 0, 0, 0, 0 } },
        { "f32", 5, { 0xca, 0x3f, 0x80, 0, 0 } },
        { "nan", 5, { 0xca, 0x7f, 0xc0, 0, 0 } },
        { "f64", 9, { 0xcb, 0x3f, 0xf0 } },
        { "bin8", 2, { 0xc4, 0x20 } },
        { "bin32", 5, { 0xc6, 0xff, 0xff, 0xff, 0xff } },
        { "str8", 2, { 0xd9, 0x20 } },
        { "str32", 5, { 0xdb, 0xff, 0xff, 0xff, 0xff } },
        { "array16", 3, { 0xdc, 0, 1 } },
        { "array32", 5, { 0xdd, 0xff, 0xff, 0xff, 0xff } },
        { "map32", 5, { 0xdf, 0xff, 0xff, 0xff, 0xff } },
        { "signature", 2, { 0xc4, 0x40 } },
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        fuzz_print_token("form_", forms[i].name, forms[i].bytes, forms[i].count);
    for (uint16_t kind = wire_kind_next(0); kind; kind = wire_kind_next(kind))
        print_beginnings(kind);
}

void wire_fuzz_write_seeds(const char *folder)
{
    char name[80];
    for (uint16_t kind = wire_kind_next(0); kind; kind = wire_kind_next(kind)) {
        struct wire_arena arena = { arena_bytes[0], 0, sizeof arena_bytes[0] };
        struct wire_fill fill = { .random = kind, .arena = &arena, .list_max = 3, .bytes_max = 8 };
        struct wire_head head;
        const void *body = wire_fill_frame(&fill, kind, &head);
        snprintf(name, sizeof name, "frame-%s", wire_kind_name(kind));
        fuzz_write_seed(folder, name, out, sign(&head, body, kind, out, sizeof out));
        snprintf(name, sizeof name, "record-%s", wire_kind_name(kind));
        fuzz_write_seed(folder, name, out, wire_pack_record(kind, body, out, sizeof out));
    }
}
