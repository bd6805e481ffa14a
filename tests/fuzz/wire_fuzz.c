// wire_fuzz -- any bytes give a valid frame, a valid record or a named refusal.
//
//     wire_fuzz FILE...           replays files, says of each what became of it
//     wire_fuzz --dictionary      prints libFuzzer's dictionary, from the table of frames
//     wire_fuzz --seeds FOLDER    writes one small frame and one record of each kind
//
// As a fuzzer, with clang: -fsanitize=fuzzer,address,undefined -DWIRE_FUZZ_LIBFUZZER, then
//
//     wire_fuzz --dictionary > wire.dict && wire_fuzz --seeds corpus
//     wire_libfuzzer -dict=wire.dict -max_len=4096 corpus tests/fuzz/corpus/wire

#include "tests/fuzz/wire_check.h"
#include "tests/fuzz/wire_fill.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    wire_check_bytes(bytes, count);
    return 0;
}

#ifndef WIRE_FUZZ_LIBFUZZER

static uint8_t arena_bytes[1 << 20], out[1 << 20];

static void print_token(const char *prefix, const char *name, const uint8_t *bytes, size_t count)
{
    printf("%s%s=\"", prefix, name);
    for (size_t i = 0; i < count; i++) printf("\\x%02x", bytes[i]);
    printf("\"\n");
}

// The bytes that only the table knows: how each frame and each record begins.
static void print_beginnings(uint16_t kind)
{
    struct wire_arena arena = { arena_bytes, 0, sizeof arena_bytes };
    struct wire_fill fill = { .random = kind, .arena = &arena };
    struct wire_head head;
    const void *body = wire_fill_frame(&fill, kind, &head);
    ensure(wire_pack(&head, body, out, sizeof out) > 0);
    print_token("frame_", wire_kind_name(kind), out, kind < 128 ? 3 : kind < 256 ? 4 : 5);
    const size_t count = wire_pack_record(kind, body, out, sizeof out);
    ensure(count > 0);
    print_token("record_", wire_kind_name(kind), out, kind < 128 ? 3 : kind < 256 ? 4 : 5);
}

static int print_dictionary(void)
{
    static const struct { const char *name; uint8_t count, bytes[9]; } forms[] = {
        { "u8", 2, { 0xcc, 0xff } }, { "u16", 3, { 0xcd, 0xff, 0xff } },
        { "u32", 5, { 0xce, 0xff, 0xff, 0xff, 0xff } },
        { "u64", 9, { 0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff } },
        { "i64", 9, { 0xd3, 0x80, 0, 0, 0, 0, 0, 0, 0 } }, { "f32", 5, { 0xca, 0x3f, 0x80, 0, 0 } },
        { "nan", 5, { 0xca, 0x7f, 0xc0, 0, 0 } }, { "f64", 9, { 0xcb, 0x3f, 0xf0 } },
        { "bin8", 2, { 0xc4, 0x20 } }, { "bin32", 5, { 0xc6, 0xff, 0xff, 0xff, 0xff } },
        { "str8", 2, { 0xd9, 0x20 } }, { "str32", 5, { 0xdb, 0xff, 0xff, 0xff, 0xff } },
        { "array16", 3, { 0xdc, 0, 1 } }, { "array32", 5, { 0xdd, 0xff, 0xff, 0xff, 0xff } },
        { "map32", 5, { 0xdf, 0xff, 0xff, 0xff, 0xff } }, { "signature", 2, { 0xc4, 0x40 } },
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        print_token("form_", forms[i].name, forms[i].bytes, forms[i].count);
    for (uint16_t kind = wire_kind_next(0); kind; kind = wire_kind_next(kind))
        print_beginnings(kind);
    return 0;
}

static void write_file(const char *folder, const char *prefix, uint16_t kind, size_t count)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s%s", folder, prefix, wire_kind_name(kind));
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(out, 1, count, file) != count || fclose(file) != 0) {
        fprintf(stderr, "%s: cannot be written: giving up\n", path);
        exit(1);
    }
}

static int write_seeds(const char *folder)
{
    static const uint8_t signature[WIRE_SIGNATURE_BYTES];
    for (uint16_t kind = wire_kind_next(0); kind; kind = wire_kind_next(kind)) {
        struct wire_arena arena = { arena_bytes, 0, sizeof arena_bytes };
        struct wire_fill fill = { .random = kind, .arena = &arena, .list_max = 3, .bytes_max = 8 };
        struct wire_head head;
        const void *body = wire_fill_frame(&fill, kind, &head);
        const size_t count = wire_pack(&head, body, out, sizeof out);
        write_file(folder, "frame-", kind, wire_put_signature(out, count, signature, sizeof out));
        write_file(folder, "record-", kind, wire_pack_record(kind, body, out, sizeof out));
    }
    return 0;
}

static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) return fprintf(stderr, "%s: cannot be read: skipped\n", path), 1;
    const size_t count = fread(out, 1, sizeof out, file);
    fclose(file);
    uint8_t *exact = malloc(count + !count);        // Its own block: a byte beyond it would be seen
    ensure(exact);
    memcpy(exact, out, count);
    const bool accepted = wire_check_bytes(exact, count);
    printf("%s: %zu bytes: %s\n", path, count, accepted ? "accepted" : wire_check_text);
    free(exact);
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0;
    if (argc == 2 && strcmp(argv[1], "--dictionary") == 0) return print_dictionary();
    if (argc == 3 && strcmp(argv[1], "--seeds") == 0) return write_seeds(argv[2]);
    for (int i = 1; i < argc; i++) failed |= replay(argv[i]);
    return failed;
}

#endif
