// Files that contain their own hash: a checkpoint's manifest, a ledger's records and snapshots.

#include "common/base/bytes.h"
#include "common/base/ensure.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "common/ledger/record.h"
#include "common/ledger/stored.h"
#include "tests/fuzz/files.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/wire_fill.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

// ---- shoal.json ---------------------------------------------------------------------------------

// The text with the sha256 that it should have; NULL if it is no JSON object.
static char *seal_json(const char *text, size_t count)
{
    char hex[HASH_HEX];
    json_t *root = json_loadb(text, count, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(root)) {
        json_decref(root);
        return NULL;
    }
    json_object_del(root, "sha256");
    char *plain = json_dumps(root, JSON_INDENT(1));
    ensure(plain);
    const struct hash seal = hash_of(plain, strlen(plain));
    free(plain);
    json_object_set_new(root, "sha256", json_string(hash_to_hex(&seal, hex)));
    char *sealed = json_dumps(root, JSON_INDENT(1));
    json_decref(root);
    return sealed;
}

// What is read is in range, and packs to the text it was read from.
static bool check_manifest(const char *text, size_t count)
{
    static struct checkpoint_manifest manifest;
    struct why why = { 0 };
    char *packed;
    size_t packed_count;
    if (checkpoint_manifest_unpack("it", text, count, &why, &manifest) < 0) {
        if (fuzz_is_verbose()) printf("%s: ", why.text);
        ensure(why.text[0]);
        return false;
    }
    ensure(checkpoint_manifest_check(&manifest.info, &why) == 0);
    for (size_t i = 0; i < manifest.file_count; i++)
        ensure(dirfile_name_valid(manifest.files[i].name));
    ensure(checkpoint_manifest_pack(&manifest, &why, &packed, &packed_count) == 0);
    struct checkpoint_manifest *again = calloc(1, sizeof *again);
    ensure(again && checkpoint_manifest_unpack("it", packed, packed_count, &why, again) == 0);
    ensure(again->file_count == manifest.file_count && again->item_count == manifest.item_count);
    ensure(again->info.step == manifest.info.step && again->info.cursor == manifest.info.cursor);
    ensure(again->info.failed_count == manifest.info.failed_count);
    checkpoint_manifest_clear(again);
    checkpoint_manifest_clear(&manifest);
    free(again);
    free(packed);
    return true;
}

bool checkpoint_fuzz_check(const uint8_t *bytes, size_t count)
{
    if (count == 0) return false;
    const char *text = (const char *)bytes + 1;
    char *sealed = bytes[0] == 's' ? seal_json(text, count - 1) : NULL;
    const bool accepted =
        sealed ? check_manifest(sealed, strlen(sealed)) : check_manifest(text, count - 1);
    free(sealed);
    return accepted;
}

void checkpoint_fuzz_write_seeds(const char *folder)
{
    static const struct interval done[] = { { 0, 512 }, { 544, 640 } }, failed[] = { { 520, 530 } };
    static struct checkpoint_manifest manifest = {
        .info = { .run = "demo",
                  .epoch = 3,
                  .step = 120,
                  .created_unix_s = 1700000000,
                  .protocol = 1,
                  .pass_length = 1000,
                  .cursor = 640,
                  .done = done,
                  .done_count = 2,
                  .failed = failed,
                  .failed_count = 1 },
        .files = { { .name = "config.json", .bytes = 540 }, { .name = "model.safetensors" } },
        .file_count = 2
    };
    static char seed[1 << 16] = "s";
    char *text;
    size_t count;
    manifest.info.digest = manifest.info.layout = hash_of("", 0);
    manifest.items[0] =
        (struct tags_item){ .name = "m", .tag = TAG_RESHARD, .elements = 100, .element_bytes = 4 };
    manifest.item_count = 1;
    ensure(checkpoint_manifest_pack(&manifest, NULL, &text, &count) == 0);
    ensure(count < sizeof seed);
    memcpy(seed + 1, text, count);
    fuzz_write_seed(folder, "seed-sealed", seed, count + 1);
    free(text);
}

// ---- the ledger ---------------------------------------------------------------------------------

enum { STORED_MAX = 8192, SEQ_AT = 8, PREVIOUS_AT = 24, CHAIN_AT = 56, SNAPSHOT_CHAIN_AT = 16 };

static uint8_t arena_bytes[1 << 20];

// As a disk would hold it, whatever it says: with the chain that follows from it.
static void seal_record(uint8_t *stored, size_t count)
{
    struct hash previous, chain;
    if (count < RECORD_HEADER_BYTES) return;
    memcpy(&previous, stored + PREVIOUS_AT, sizeof previous);
    chain = record_chain(&previous, be_get(stored + SEQ_AT, 8), stored + RECORD_HEADER_BYTES,
                         count - RECORD_HEADER_BYTES);
    memcpy(stored + CHAIN_AT, &chain, sizeof chain);
}

// Encoding a snapshot of the same chain and bytes is what writes its hash.
static void seal_snapshot(uint8_t *stored, size_t count)
{
    uint8_t bytes[STORED_MAX];
    if (count < SNAPSHOT_HEADER_BYTES) return;
    struct snapshot snapshot = { .seq = be_get(stored + SEQ_AT, 8),
                                 .bytes = bytes,
                                 .count = count - SNAPSHOT_HEADER_BYTES };
    memcpy(&snapshot.chain, stored + SNAPSHOT_CHAIN_AT, sizeof snapshot.chain);
    memcpy(bytes, stored + SNAPSHOT_HEADER_BYTES, snapshot.count);
    snapshot_encode(&snapshot, stored);
}

static bool check_stored(const void *bytes, size_t count)
{
    struct wire_arena arena = { arena_bytes, 0, sizeof arena_bytes };
    struct why why = { 0 };
    uint16_t kind;
    const void *body;
    if (stored_unpack("ledger record", 1, bytes, count, &arena, &why, &kind, &body) == 0)
        ensure(wire_kind_flags(kind) != 0);
    else ensure(strstr(why.text, "ledger record"));
    return true;
}

static bool check_record(const uint8_t *stored, size_t count)
{
    uint8_t again[STORED_MAX];
    struct why why = { 0 };
    struct record record;
    const uint64_t seq = count >= SEQ_AT + 8 ? be_get(stored + SEQ_AT, 8) : 1;
    if (record_decode(stored, count, seq, &why, &record) < 0) return ensure(why.text[0]), false;
    ensure(record_decode(stored, count, seq + 1, &why, &record) < 0);
    ensure(record_decode(stored, count, seq, &why, &record) == 0 && record.seq == seq);
    record_encode(&record, again);
    ensure(memcmp(again, stored, count) == 0);
    return check_stored(record.bytes, record.count);
}

static bool check_snapshot(const uint8_t *stored, size_t count)
{
    uint8_t again[STORED_MAX];
    struct why why = { 0 };
    struct snapshot snapshot;
    const uint64_t seq = count >= SEQ_AT + 8 ? be_get(stored + SEQ_AT, 8) : 1;
    if (snapshot_decode(stored, count, seq, &why, &snapshot) < 0) return ensure(why.text[0]), false;
    snapshot_encode(&snapshot, again);
    ensure(memcmp(again, stored, count) == 0);
    return check_stored(snapshot.bytes, snapshot.count);
}

bool ledger_fuzz_check(const uint8_t *bytes, size_t count)
{
    if (count == 0 || count > STORED_MAX) return false;
    uint8_t *stored = malloc(count - 1 + (count == 1));
    ensure(stored);
    memcpy(stored, bytes + 1, count - 1);
    if (bytes[0] == 'R') seal_record(stored, count - 1);
    if (bytes[0] == 'S') seal_snapshot(stored, count - 1);
    const bool accepted = bytes[0] == 's' || bytes[0] == 'S' ? check_snapshot(stored, count - 1)
                                                             : check_record(stored, count - 1);
    free(stored);
    return accepted;
}

void ledger_fuzz_write_seeds(const char *folder)
{
    uint8_t body[2048], seed[STORED_MAX];
    char name[80];
    for (uint16_t kind = wire_kind_next(199); kind; kind = wire_kind_next(kind)) {
        struct wire_arena arena = { arena_bytes, 0, sizeof arena_bytes };
        struct wire_fill fill = { .random = kind, .arena = &arena, .list_max = 3, .bytes_max = 8 };
        struct wire_head head;
        const void *made = wire_fill_frame(&fill, kind, &head);
        struct record record = { .seq = kind, .bytes = body, .indexed = kind & 1 };
        record.count = wire_pack_record(kind, made, body, sizeof body);
        record.chain = record_chain(&record.previous, record.seq, body, record.count);
        seed[0] = 'R';
        record_encode(&record, seed + 1);
        snprintf(name, sizeof name, "seed-%s", wire_kind_name(kind));
        fuzz_write_seed(folder, name, seed, 1 + RECORD_HEADER_BYTES + record.count);
        seed[0] = 'S';
        snapshot_encode(&(struct snapshot){ .seq = 3, .bytes = body, .count = record.count },
                        seed + 1);
        if (kind == FRAME_SNAPSHOT)
            fuzz_write_seed(folder, "seed-snapshot", seed,
                            1 + SNAPSHOT_HEADER_BYTES + record.count);
    }
}
