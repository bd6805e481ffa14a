#pragma once
// wire_check -- what must hold of any bytes whatsoever, checked by the fuzzer and by the unit test
// that replays its finds. Dies (ensure) where it does not hold; not for two threads at once.

#include "common/base/ensure.h"
#include "common/wire/wire.h"

#include <stdlib.h>
#include <string.h>

enum { WIRE_CHECK_ARENA = 8 << 20, WIRE_CHECK_OUT = 8 << 20, WIRE_CHECK_TEXT = 4096 };

static uint8_t wire_check_arenas[3][WIRE_CHECK_ARENA], wire_check_out[2][WIRE_CHECK_OUT];
static char wire_check_text[WIRE_CHECK_TEXT];

// A refusal says where and why.
static inline void wire_check_refusal(const struct wire_refusal *refusal, size_t count)
{
    const size_t needed = wire_refusal_text(refusal, wire_check_text, WIRE_CHECK_TEXT);
    ensure(needed > 0 && needed < WIRE_REFUSAL_TEXT_MAX);
    ensure(refusal->offset <= count && refusal->path_count <= WIRE_DEPTH_MAX);
}

// Prints in one line, without control characters, whatever the room.
static inline void wire_check_prints(const struct wire_head *head, uint16_t kind, const void *body)
{
    const size_t needed = wire_print(kind, body, wire_check_text, WIRE_CHECK_TEXT);
    ensure(strlen(wire_check_text) == (needed < WIRE_CHECK_TEXT ? needed : WIRE_CHECK_TEXT - 1));
    for (const char *at = wire_check_text; *at; at++) ensure((uint8_t)*at >= 0x20 && *at != 0x7f);
    ensure(wire_print_json(head, kind, body, wire_check_text, WIRE_CHECK_TEXT) > 0);
    for (const char *at = wire_check_text; *at; at++) ensure((uint8_t)*at >= 0x20 && *at != 0x7f);
}

// What was accepted packs; what was packed unpacks to the same, and packs to the same bytes.
static inline bool wire_check_frame(const uint8_t *bytes, size_t count)
{
    struct wire_arena arena = { wire_check_arenas[0], 0, WIRE_CHECK_ARENA };
    struct wire_arena other = { wire_check_arenas[1], 0, WIRE_CHECK_ARENA };
    struct wire_head head, came, alone;
    struct wire_refusal refusal;
    const void *body, *got;
    const size_t covered = wire_signed_bytes(bytes, count);
    const uint8_t *signature = wire_signature(bytes, count);
    ensure(covered <= count && (!signature || signature + WIRE_SIGNATURE_BYTES <= bytes + count));
    if (!wire_unpack(bytes, count, ~0u, &arena, &head, &body, &refusal)) {
        ensure(arena.used == 0);
        wire_check_refusal(&refusal, count);
        return false;
    }
    ensure(covered > 0 && arena.used <= wire_arena_max(head.kind));
    ensure(signature || !(wire_kind_flags(head.kind) & WIRE_SIGNED));
    ensure(wire_unpack_head(bytes, count, ~0u, &alone, &refusal) && alone.kind == head.kind);
    ensure(wire_valid(head.kind, body, &refusal));
    size_t packed = wire_pack(&head, body, wire_check_out[0], WIRE_CHECK_OUT);
    ensure(packed > 0 && packed <= wire_size_max(head.kind));
    packed = wire_put_signature(wire_check_out[0], packed, wire_check_arenas[2], WIRE_CHECK_OUT);
    ensure(packed > 0 && packed <= wire_size_max(head.kind));
    ensure(wire_unpack(wire_check_out[0], packed, ~0u, &other, &came, &got, &refusal));
    ensure(wire_equal(head.kind, body, got) && strcmp(head.run, came.run) == 0);
    const size_t again = wire_pack(&came, got, wire_check_out[1], WIRE_CHECK_OUT);
    ensure(again + 65 == packed && memcmp(wire_check_out[0], wire_check_out[1], again - 1) == 0);
    wire_check_prints(&head, head.kind, body);
    return true;
}

static inline bool wire_check_record(const uint8_t *bytes, size_t count)
{
    struct wire_arena arena = { wire_check_arenas[0], 0, WIRE_CHECK_ARENA };
    struct wire_arena other = { wire_check_arenas[1], 0, WIRE_CHECK_ARENA };
    struct wire_refusal refusal;
    uint16_t kind, came;
    const void *body, *got;
    if (!wire_unpack_record(bytes, count, ~0u, &arena, &kind, &body, &refusal)) {
        ensure(arena.used == 0);
        wire_check_refusal(&refusal, count);
        return false;
    }
    const size_t packed = wire_pack_record(kind, body, wire_check_out[0], WIRE_CHECK_OUT);
    ensure(packed > 0 && packed <= wire_record_max(kind));
    ensure(wire_unpack_record(wire_check_out[0], packed, ~0u, &other, &came, &got, &refusal));
    ensure(came == kind && wire_equal(kind, body, got));
    ensure(wire_pack_record(kind, got, wire_check_out[1], WIRE_CHECK_OUT) == packed);
    ensure(memcmp(wire_check_out[0], wire_check_out[1], packed) == 0);
    wire_check_prints(NULL, kind, body);
    return true;
}

// True if the bytes are a valid frame or a valid record. If neither, wire_check_text says why they
// are not what they look like.
static inline bool wire_check_bytes(const uint8_t *bytes, size_t count)
{
    const bool looks_like_record = count && bytes[0] == 0x92;
    const bool first =
        looks_like_record ? wire_check_frame(bytes, count) : wire_check_record(bytes, count);
    const bool second =
        looks_like_record ? wire_check_record(bytes, count) : wire_check_frame(bytes, count);
    ensure(!(first && second));
    return first || second;
}
