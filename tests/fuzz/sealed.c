// Files that contain their own hash: a checkpoint's manifest, a ledger's records and snapshots.

#include "common/base/bytes.h"
#include "common/base/ensure.h"
#include "common/checkpoint/checkpoint_manifest.h"
#include "common/checkpoint/pieces_text.h"
#include "common/ledger/record.h"
#include "common/ledger/stored.h"
#include "tests/fuzz/files.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/wire_fill.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

// ---- shoal.json ---------------------------------------------------------------------------------

char *files_seal_json(const char *text, size_t count)
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
    char *sealed = bytes[0] == 's' ? files_seal_json(text, count - 1) : NULL;
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

// ---- the texts of pieces ------------------------------------------------------------------------

static const struct pieces_save save = { .run = "demo", .step = 120, .attempt = 1, .workers = 2 };

static bool pieces_refused(const struct why *why)
{
    if (fuzz_is_verbose()) printf("%s: ", why->text);
    ensure(why->text[0]);
    return false;
}

// What is read is in range, and packs to a text that reads as the same.
static bool check_note(const char *text, size_t count)
{
    static struct pieces_note note, again;
    struct why why = { 0 };
    char *packed;
    if (pieces_note_unpack(&save, "it", text, count, &why, &note) < 0) return pieces_refused(&why);
    ensure(note.worker < save.workers && note.count <= PIECES_ITEMS_MAX);
    for (size_t i = 0; i < note.count; i++)
        ensure(pieces_check_item("it", note.items[i].name, note.items[i].tag,
                                 note.items[i].element_bytes, note.items[i].elements, &why) == 0);
    ensure(pieces_note_pack(&save, &note, &why, &packed) == 0);
    ensure(pieces_note_unpack(&save, "it", packed, strlen(packed), &why, &again) == 0);
    ensure(again.count == note.count && again.written_unix_s == note.written_unix_s);
    free(packed);
    return true;
}

static bool check_cut(const char *text, size_t count)
{
    struct pieces_meta meta, again;
    struct why why = { 0 };
    char *packed;
    if (pieces_cut_unpack("it", text, count, &why, &meta) < 0) return pieces_refused(&why);
    ensure(meta.workers >= 1 && meta.workers <= PIECES_WORKERS_MAX);
    for (size_t i = 0; i < meta.count; i++) {
        const uint64_t *begins = meta.items[i].begins;
        ensure(tags_name_valid(meta.items[i].name) && begins[0] == 0);
        for (uint32_t w = 0; w < meta.workers; w++) ensure(begins[w] <= begins[w + 1]);
        ensure(begins[meta.workers] <= PIECES_BYTES_MAX / meta.items[i].element_bytes);
    }
    ensure(pieces_cut_pack(&meta, &why, &packed) == 0);
    ensure(pieces_cut_unpack("it", packed, strlen(packed), &why, &again) == 0);
    ensure(again.count == meta.count && again.layout.total == meta.layout.total);
    pieces_meta_clear(&again);
    pieces_meta_clear(&meta);
    free(packed);
    return true;
}

static bool check_pieces(const char *text, size_t count)
{
    struct pieces_manifest manifest, again;
    struct why why = { 0 };
    char *packed;
    if (pieces_manifest_unpack("it", text, count, &why, &manifest) < 0) return pieces_refused(&why);
    ensure(manifest.about.step <= CHECKPOINT_STEP_MAX);
    ensure(pieces_manifest_pack(&manifest, &why, &packed) == 0);
    ensure(pieces_manifest_unpack("it", packed, strlen(packed), &why, &again) == 0);
    ensure(again.root_count == manifest.root_count);
    pieces_manifest_clear(&again);
    pieces_manifest_clear(&manifest);
    free(packed);
    return true;
}

static bool (*const pieces_checks[])(const char *text, size_t count) = { check_note, check_cut,
                                                                         check_pieces };
static const char pieces_letters[] = "ncm";

bool pieces_fuzz_check(const uint8_t *bytes, size_t count)
{
    if (count == 0) return false;
    const char letter = (char)(bytes[0] | 0x20); // A capital: the seal is put right
    const char *text = (const char *)bytes + 1,
               *which = letter ? strchr(pieces_letters, letter) : 0;
    if (!which) return false;
    char *sealed = bytes[0] & 0x20 ? NULL : files_seal_json(text, count - 1);
    const bool accepted = pieces_checks[which - pieces_letters](
        sealed ? sealed : text, sealed ? strlen(sealed) : count - 1);
    free(sealed);
    return accepted;
}

static void write_pieces_seed(const char *folder, const char *name, char letter, char *text)
{
    static char seed[1 << 16];
    ensure(strlen(text) + 1 < sizeof seed);
    seed[0] = letter;
    memcpy(seed + 1, text, strlen(text));
    fuzz_write_seed(folder, name, seed, strlen(text) + 1);
    free(text);
}

void pieces_fuzz_write_seeds(const char *folder)
{
    uint64_t begins[] = { 0, 100, 300 }, copies[] = { 0, 5, 5 };
    struct layout_tensor tensors[2];
    static struct pieces_note note = {
        .worker = 1,
        .count = 2,
        .items = { { .name = "m", .tag = TAG_RESHARD, .element_bytes = 4, .elements = 200 },
                   { .name = "seen", .tag = TAG_CUSTOM, .element_bytes = 8, .elements = 1 } }
    };
    struct pieces_meta meta = { .workers = 2, .count = 2 };
    struct hash roots[4] = { hash_of("", 0) };
    struct pieces_manifest manifest = { .about = { .run = "demo", .step = 120, .attempt = 1 },
                                        .cut = hash_of("", 0),
                                        .roots = roots,
                                        .root_count = 4 };
    char *text;
    meta.items[0] = (struct pieces_item){ "m", TAG_RESHARD, 4, begins };
    meta.items[1] = (struct pieces_item){ "schedule", TAG_REPLICATE, 1, copies };
    layout_init(&meta.layout, tensors, 2);
    ensure(layout_add_matrix(&meta.layout, "w", 10, 29, LAYOUT_F32, NULL) == 0);
    ensure(layout_add_vector(&meta.layout, "norm", 10, LAYOUT_F32, NULL) == 0);
    ensure(pieces_note_pack(&save, &note, NULL, &text) == 0);
    write_pieces_seed(folder, "seed-note", 'N', text);
    ensure(pieces_cut_pack(&meta, NULL, &text) == 0);
    write_pieces_seed(folder, "seed-cut", 'C', text);
    ensure(pieces_manifest_pack(&manifest, NULL, &text) == 0);
    write_pieces_seed(folder, "seed-manifest", 'M', text);
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
