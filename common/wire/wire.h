#pragma once
// wire -- every message between actors, to their ports and to the ledger, as bytes.
//
// One table, frames.def, declares them all. The C structs, the packer, the validating unpacker, the
// printer, the fuzz dictionary and the generic tests are made from its lines. Pure: no I/O, no
// clock, no static state, no allocation (the caller's buffers); any thread.
//
//     #define WIRE_ENUM_role(E) E(TRAINER, "trainer") E(WITNESS, "witness")
//     WENUM(role, ROLE)                    enum role { ROLE_TRAINER, ROLE_WITNESS, ROLE_COUNT }
//
//     #define WIRE_holder(F) F(KEY, key) F(STR, endpoint, 255)
//     RECORD(holder)                       struct wire_holder { .. }: only within other records
//
//     #define WIRE_join(F) F(ENUM, role, role) F(STR, name, 63) F(LIST, holders, holder, 4096)
//     FRAME(1, JOIN, join, WIRE_MAIL)      struct wire_join { .. } and FRAME_JOIN = 1
//     ALSO(110, BUILD, join, WIRE_LOCAL)   FRAME_BUILD = 110, for a record that is declared above
//
// A number is never reused. A record must not have the name of a struct of this folder (head,
// bytes, arena, refusal ...); the compiler reports it.
//
// Fields, in the order of their bytes, and the values that unpacking accepts:
//
//     F(U8 U16 U32 U64 I64, f, min, max)   integer within [min, max]
//     F(F32 F64, f)                        finite number
//     F(BOOL, f)                           bool
//     F(ENUM, f, role)                     uint8_t below ROLE_COUNT
//     F(STR, f, max)                       char f[max + 1], no byte below 0x20. In a frame UTF-8
//                                          without control characters (wire_text.h)
//     F(BIN, f, n)                         uint8_t f[n], exactly n bytes
//     F(HASH, f)  F(KEY, f)                struct hash, struct key: 32 bytes
//     F(BYTES, f, max)                     struct wire_bytes: a view into the frame, not a copy
//     F(SUB, f, record)                    struct wire_record, declared above
//     F(LIST, f, record, max)              const struct wire_record *f; uint32_t f_count;
//     F(INTERVALS, f, max)                 const struct interval *f; uint32_t f_count; each one
//                                          travels as a record of begin and end, any two U64
//     F(PART, f, flag)                     struct wire_part: nil, or [kind, body]. The kind has
//                                          the flag, which is one of WIRE_PART
//
// A PART lets a common message carry what only one strategy understands: a new strategy brings
// kinds of its own and changes no frame that is there. Such a kind travels only inside others, and
// has no PART itself, so the depth stays bounded. Each field takes the kinds of its own flag alone,
// so that the largest frame of a kind counts only the parts that it can carry.
//
// A record is a positional msgpack array and append-only: fields that a newer peer appends are
// skipped, a missing field is refused. A change of meaning needs a new frame number. A frame is one
// msgpack array of 8:
//
//     [protocol, kind, run, sender, incarnation, seq, body, signature]
//      \______________ the signature covers these bytes ______/  bin 64 or nil
//
// and the byte of the array's header, which is the first of the frame.
//
// Packing is canonical: one value has exactly one packed form, with the shortest integers and
// lengths. Unpacking is total: any bytes give a valid frame or a refusal with its reason; nothing
// is read beyond `count`; every length is compared with the bytes that are there; the stack is as
// deep as the table (WIRE_DEPTH_MAX). Yardstick: 1000 roster members of 100 bytes pack or unpack
// within 100 us on one core.

#include "common/wire/wire_declare.h"

enum {
    WIRE_PROTOCOL = 2,
    WIRE_FRAME_MAX = 4 << 20,
    WIRE_DEPTH_MAX = 8,
    WIRE_RUN_MAX = 32,
    WIRE_SIGNATURE_BYTES = 64
};

// How a kind travels, and whether it must be signed. A receiver names the flags it accepts; a kind
// is accepted if it has at least one of them.
enum wire_flag {
    WIRE_MAIL = 1,            // Directed, by actor name
    WIRE_NEWS = 2,            // Broadcast, may be lost
    WIRE_BULK = 4,            // From peer to peer
    WIRE_LOCAL = 8,           // A port message or a ledger record: never from outside
    WIRE_SIGNED = 16,         // Refused without a signature; the receiver verifies it
    WIRE_STATE = 32,          // News whose last value is kept for late subscribers
    WIRE_PART_CONFIG = 64,    // Only in the PART field of CONFIG: no receiver accepts it by itself
    WIRE_PART_SNAPSHOT = 128, // .. of SNAPSHOT
    WIRE_PART_TEST = 256,     // .. of a test's frame
    WIRE_COPY = 4096, // Its first field is a frame of another sender, which is verified, too
    // What the broker lets pass beside its own table: the frames of a pace.
    WIRE_ORDER = 512,   // Mail of the coordinator alone, to anybody
    WIRE_REPORT = 1024, // Mail of trainers and witnesses to the coordinator
    WIRE_PEER = 2048,   // Mail of trainers to trainers and witnesses
    WIRE_OPENS =
        8192, // News of the coordinator: work begins that members answer, so they may say more
    WIRE_PART = WIRE_PART_CONFIG | WIRE_PART_SNAPSHOT | WIRE_PART_TEST,
};

#define PACE(name)
#define WENUM(name, PREFIX)                WIRE_ENUM_DECLARE(name, PREFIX)
#define RECORD(name)                       WIRE_RECORD_STRUCT(name)
#define FRAME(number, KIND, record, flags) WIRE_RECORD_STRUCT(record)
#define ALSO(number, KIND, record, flags)
#include "common/wire/frames.def"
#undef PACE
#undef WENUM
#undef RECORD
#undef FRAME
#undef ALSO

#define PACE(name)
#define WENUM(name, PREFIX)
#define RECORD(name)
#define FRAME(number, KIND, record, flags) FRAME_##KIND = number,
#define ALSO(number, KIND, record, flags)  FRAME_##KIND = number,
enum wire_kind {
    FRAME_NONE = 0,
#include "common/wire/frames.def"
};
#undef PACE
#undef WENUM
#undef RECORD
#undef FRAME
#undef ALSO

// The head of a frame: kind, run (no control characters), sender (its Ed25519 public key; zeros:
// none), the sender's incarnation and its sequence number. struct wire_head has these names.
#define WIRE_head(F)                                                                               \
    F(U16, kind, 1, UINT16_MAX)                                                                    \
    F(STR, run, WIRE_RUN_MAX)                                                                      \
    F(KEY, sender) F(U64, incarnation, 0, UINT64_MAX) F(U64, seq, 0, UINT64_MAX)
WIRE_RECORD_STRUCT(head)

#define WIRE_interval(F) F(U64, begin, 0, UINT64_MAX) F(U64, end, 0, UINT64_MAX)

// The memory of unpacked bodies and lists: the caller's bytes, filled from `used` up to `max`. To
// drop everything that was unpacked, set `used` back. A refusal does not change `used`.
struct wire_arena {
    uint8_t *bytes;
    size_t used, max;
};

enum wire_reason {
    WIRE_REFUSED_CUT,     // The bytes end before the value does
    WIRE_REFUSED_TYPE,    // `value` is the first byte of something of another type
    WIRE_REFUSED_RANGE,   // `value` outside [min, max]; signed if the field is
    WIRE_REFUSED_LENGTH,  // `value` bytes, allowed [min, max]
    WIRE_REFUSED_COUNT,   // `value` elements, allowed [min, max]
    WIRE_REFUSED_CONTROL, // The text holds the control character `value`
    WIRE_REFUSED_TEXT, // The text of a frame is not as wire_text.h says, from the byte `value` on
    WIRE_REFUSED_NOT_FINITE, // An infinity or a NaN
    WIRE_REFUSED_NULL,       // A list, bytes or a part that is said to be there and has no address
                             // (only when packing); `value` is the count, 1 for a part
    WIRE_REFUSED_MISSING,    // The record ends before this field
    WIRE_REFUSED_ARENA,      // `value` more bytes of arena needed, `max` are left
    WIRE_REFUSED_TRAILING,   // `value` bytes after the end
    WIRE_REFUSED_PROTOCOL,   // `value` is their protocol, `min` ours
    WIRE_REFUSED_KIND,       // `value` is a kind not in the table; `max` is the last known one
    WIRE_REFUSED_FLAGS,      // The kind is known, but not accepted here
    WIRE_REFUSED_UNSIGNED,   // The kind needs a signature and has none
};

// The reason why bytes were refused. All pointers point to constant text.
struct wire_refusal {
    enum wire_reason reason;
    const char *then;  // The consequence: "frame dropped", "record refused" ..
    const char *frame; // Name of the kind; "frame" before it is known
    struct {
        const char *field;
        uint32_t index;
    } path[WIRE_DEPTH_MAX + 1]; // Innermost first;
    unsigned path_count;        // index is WIRE_NO_INDEX without a list. 0: the frame as a whole
    bool is_negative;           // value is an int64_t, below zero
    bool is_signed;             // min and max are int64_t
    uint64_t value, min, max;
    const char *expected; // WIRE_REFUSED_TYPE: the type that should be there
    size_t offset;        // Of the offending value in the bytes; WIRE_NO_OFFSET when packing
};
#define WIRE_NO_INDEX  UINT32_MAX
#define WIRE_NO_OFFSET SIZE_MAX

// One sentence: `ROUND.clients[3].name: 71 bytes, allowed 0..63, at byte 212: frame dropped`.
// As snprintf: returns the length needed, always terminates if max > 0.
enum { WIRE_REFUSAL_TEXT_MAX = 512 };
size_t wire_refusal_text(const struct wire_refusal *refusal, char *out, size_t max);

// The kinds. An unknown kind has the name "?", no flags and no size.
const char *wire_kind_name(uint16_t kind);      // "JOIN"
unsigned wire_kind_flags(uint16_t kind);        // enum wire_flag
uint16_t wire_kind_from_name(const char *name); // 0 if there is none; names are upper case
uint16_t wire_kind_next(uint16_t kind);         // The next one; begin with 0; 0 after the last

// Worst cases of a kind, in bytes: a signed frame (at most WIRE_FRAME_MAX), a ledger record (no
// other limit), the arena that it takes when unpacked. SIZE_MAX if that overflows. Only the fuzzers
// call the last two.
size_t wire_size_max(uint16_t kind);
size_t wire_record_max(uint16_t kind);
size_t wire_arena_max(uint16_t kind);

// The longest frame of a kind that is accepted from outside: 1.25 times the worst case (at least 64
// bytes more), for fields that newer peers append. At most WIRE_FRAME_MAX.
size_t wire_frame_max(uint16_t kind);

const char *wire_enum_name(const struct wire_enum *of, unsigned value); // "?" for no value

// Packing: a frame with a nil signature, the body's array alone, and [kind, body] for the ledger.
// Each returns the number of bytes written, or 0 if it fails: they do not fit into out_max (a frame
// also into WIRE_FRAME_MAX with its signature), the kind is unknown, or head or body has a value
// that its table forbids. Then `out` is undefined. Whatever packs, unpacks. `body` is the struct of
// the kind, borrowed.
size_t wire_pack(const struct wire_head *head, const void *body, uint8_t *out, size_t out_max);
size_t wire_pack_body(uint16_t kind, const void *body, uint8_t *out, size_t out_max);
size_t wire_pack_record(uint16_t kind, const void *body, uint8_t *out, size_t out_max);

// Whether every field of the body has a value that its table allows; if not, the field and the
// reason. Only the fuzzers call it, for what the actors' cores send.
bool wire_valid(uint16_t kind, const void *body, struct wire_refusal *ret_refusal);

// The number of bytes of a frame that its signature covers; 0 if the bytes are not a frame.
size_t wire_signed_bytes(const uint8_t *frame, size_t count);

// Replaces the nil at the end of an unsigned frame of `count` bytes in a buffer of `max`. Returns
// the new length; 0, and nothing is written, if it is not an unsigned frame or there is no room.
size_t wire_put_signature(uint8_t *frame, size_t count,
                          const uint8_t signature[WIRE_SIGNATURE_BYTES], size_t max);

// The 64 bytes of the signature in the frame; NULL if it has none, or is not a frame.
const uint8_t *wire_signature(const uint8_t *frame, size_t count);

// Unpacking. `allowed` is a mask of flags: a kind that shares none with it is refused. On success
// *ret_body points to the struct of the kind, in the arena; its wire_bytes point into `bytes`. On
// false only *ret_refusal is written.
bool wire_unpack(const uint8_t *bytes, size_t count, unsigned allowed, struct wire_arena *arena,
                 struct wire_head *ret_head, const void **ret_body,
                 struct wire_refusal *ret_refusal);
bool wire_unpack_body(const uint8_t *bytes, size_t count, uint16_t kind, struct wire_arena *arena,
                      const void **ret_body, struct wire_refusal *ret_refusal);
bool wire_unpack_record(const uint8_t *bytes, size_t count, unsigned allowed,
                        struct wire_arena *arena, uint16_t *ret_kind, const void **ret_body,
                        struct wire_refusal *ret_refusal);

// Unpacks the head alone, for an actor that passes frames on. It checks that the kind is known and
// allowed and that the frame is not too long for its kind; the rest is not read.
bool wire_unpack_head(const uint8_t *bytes, size_t count, unsigned allowed,
                      struct wire_head *ret_head, struct wire_refusal *ret_refusal);

// Copies the body of a part to `memory` (aligned to 8 bytes) and returns a part whose body is that
// copy. Its kind is FRAME_NONE if the body is longer than `max`, or has lists or bytes, which lie
// elsewhere.
struct wire_part wire_part_copy(const struct wire_part *part, void *memory, size_t max);

// True if both bodies pack to the same bytes.
bool wire_equal(uint16_t kind, const void *a, const void *b);

// For people, one line: `ROUND round=7 phase=train clients=[{id=0a1b2c3d}, {id=..}, {id=..}, ..8]`:
// hashes and keys as their first 8 digits, or `none`, lists cut after 3 and followed by their full count, a
// part as `KIND{..}` or `none`. As snprintf. Control characters in a peer's text are escaped, so
// that they do not reach a terminal.
size_t wire_print(uint16_t kind, const void *body, char *out, size_t max);

// For programs: {"kind":"ROUND","run":..,"sender":..,"incarnation":..,"seq":..,"body":{..}} on one
// line, complete, valid UTF-8 (other bytes become U+FFFD); without a head (NULL) kind and body
// only. A part is {"kind":..,"body":{..}} or null.
size_t wire_print_json(const struct wire_head *head, uint16_t kind, const void *body, char *out,
                       size_t max);
