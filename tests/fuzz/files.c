// files -- one function for each kind of file: put the seal right if the first byte asks for it,
// read the bytes, check that a refusal says why, and check that accepted bytes keep their promise.

#include "tests/fuzz/files.h"
#include "actors/shoal/model/choices.h"
#include "common/actor/journal.h"
#include "common/base/ensure.h"
#include "common/base/strict_json.h"
#include "common/config/data_config.h"
#include "common/config/run_config.h"
#include "common/data/manifest.h"
#include "common/data/npy.h"
#include "common/data/token_files.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/scratch.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A refusal says why, in one line.
static bool refused(const struct why *why)
{
    ensure(why->text[0]);
    if (fuzz_is_verbose()) printf("%s: ", why->text);
    for (const char *at = why->text; *at; at++) ensure(*at != '\n' && *at != '\x1b');
    return false;
}

// ---- words --------------------------------------------------------------------------------------

static void print_word(const char *word)
{
    fuzz_print_token("", "word", (const uint8_t *)word, strlen(word));
}

void files_fuzz_print_json_words(void)
{
    static const char *const words[] = { "{",
                                         "}",
                                         "[",
                                         "]",
                                         ":",
                                         ",",
                                         "\"",
                                         "\\u0000",
                                         "\\ud800",
                                         "true",
                                         "null",
                                         "-0",
                                         "1e9",
                                         "1.5",
                                         "9007199254740992",
                                         "18446744073709551615",
                                         "\"format\"",
                                         "\"version\"",
                                         "\"name\"",
                                         "\"bytes\"",
                                         "\"files\"",
                                         "\"root\"",
                                         "\"leaves\"",
                                         "\"digest\"",
                                         "\"token_bytes\"",
                                         "\"leaf_bytes\"",
                                         "\"sha256\"",
                                         "\"data\"",
                                         "\"done\"",
                                         "\"state\"",
                                         "\"tag\"",
                                         "\"question\"",
                                         "\"choices\"",
                                         "\"answer\"",
                                         "\"model\"",
                                         "\"vocab\"",
                                         "\"merges\"",
                                         "\"type\"",
                                         "\"added_tokens\"",
                                         "\"pre_tokenizer\"",
                                         "\"n\"",
                                         "\"t\"",
                                         "../a.bin" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) print_word(words[i]);
}

// Every key of the two schemas.
void config_fuzz_print_dictionary(void)
{
    static const struct config_schema *const schemas[] = { &config_run_schema,
                                                           &config_data_schema };
    static const char *const others[] = { "[",   "]",  "[[",  "=", "\"\"\"", "1979-05-27", "inf",
                                          "nan", "0x", "1_0", "{", ".",      "\\U0010FFFF" };
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < schemas[i]->count; j++) {
            const char *dot = strrchr(schemas[i]->keys[j].path, '.');
            print_word(dot ? dot + 1 : schemas[i]->keys[j].path);
        }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) print_word(others[i]);
}

void npy_fuzz_print_dictionary(void)
{
    static const char *const words[] = { "\x93NUMPY\x01",
                                         "'descr'",
                                         "'<u2'",
                                         "'<u4'",
                                         "'>u2'",
                                         "'fortran_order'",
                                         "False",
                                         "True",
                                         "'shape'",
                                         "(",
                                         ",)",
                                         "{",
                                         "}",
                                         "\n" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) print_word(words[i]);
}

// ---- datasets -----------------------------------------------------------------------------------

bool manifest_fuzz_check(const uint8_t *bytes, size_t count)
{
    struct why why = { 0 };
    struct manifest manifest, again;
    const int rc = manifest_parse((const char *)bytes, count, "it", &why, &manifest);
    if (rc < 0) return refused(&why);
    ensure(manifest.file_count > 0 && (manifest.token_bytes == 2 || manifest.token_bytes == 4));
    ensure(manifest_write(&manifest, scratch_dir(), &why) == 0);
    ensure(manifest_read(scratch_dir(), &why, &again) == 0);
    ensure(hash_equal(&manifest.digest, &again.digest));
    manifest_free(&manifest);
    manifest_free(&again);
    return true;
}

static void write_file_as_seed(const char *folder, const char *name, const char *from, char first)
{
    static char room[1 << 16];
    FILE *file = fopen(from, "rb");
    ensure(file);
    room[0] = first;
    const size_t count = fread(room + 1, 1, sizeof room - 1, file);
    fclose(file);
    fuzz_write_seed(folder, name, room + !first, count + (first != 0));
}

void manifest_fuzz_write_seeds(const char *folder)
{
    static const uint16_t tokens[100] = { 1, 2, 3 };
    struct manifest manifest;
    scratch_put("a.bin", tokens, sizeof tokens);
    ensure(manifest_build(scratch_dir(), 2, NULL, &manifest) == 0);
    ensure(manifest_write(&manifest, scratch_dir(), NULL) == 0);
    manifest_free(&manifest);
    write_file_as_seed(folder, "seed-one", scratch_path(MANIFEST_NAME), 0);
    scratch_put("b.npy", tokens, 7);
    ensure(manifest_build(scratch_dir(), 4, NULL, &manifest) == 0);
    ensure(manifest_write(&manifest, scratch_dir(), NULL) == 0);
    manifest_free(&manifest);
    write_file_as_seed(folder, "seed-two", scratch_path(MANIFEST_NAME), 0);
}

bool npy_fuzz_check(const uint8_t *bytes, size_t count)
{
    struct why why = { 0 };
    struct npy npy;
    uint64_t file_bytes;
    if (count < sizeof file_bytes) return false;
    memcpy(&file_bytes, bytes, sizeof file_bytes);
    bytes += sizeof file_bytes, count -= sizeof file_bytes;
    if (file_bytes < count) file_bytes = count;
    if (file_bytes > count && count < NPY_HEADER_MAX) file_bytes = count; // All of it is here
    if (npy_parse(bytes, count, file_bytes, "it", &why, &npy) < 0) return refused(&why);
    ensure(npy.token_bytes == 2 || npy.token_bytes == 4);
    ensure(npy.offset <= count && npy.offset + npy.tokens * npy.token_bytes == file_bytes);
    return true;
}

static size_t make_npy(char *out, size_t max, const char *type, unsigned tokens, unsigned version)
{
    char dictionary[100];
    snprintf(dictionary, sizeof dictionary,
             "{'descr': '%s', 'fortran_order': False, 'shape': (%u,), }", type, tokens);
    const int begin = version > 1 ? 12 : 10, // The elements begin at byte 96
        length = snprintf(out + begin, max - 12, "%-*s\n", 95 - begin, dictionary);
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (char)version, out[7] = 0, out[8] = (char)length, out[9] = 0;
    if (version > 1) out[10] = out[11] = 0;
    const size_t head = (version > 1 ? 12u : 10u) + (size_t)length;
    memset(out + head, 1, tokens * (type[2] == '2' ? 2u : 4u));
    return head + tokens * (type[2] == '2' ? 2u : 4u);
}

void npy_fuzz_write_seeds(const char *folder)
{
    char seed[256] = { 0 };
    fuzz_write_seed(folder, "seed-1", seed, 8 + make_npy(seed + 8, sizeof seed - 8, "<u2", 8, 1));
    fuzz_write_seed(folder, "seed-2", seed, 8 + make_npy(seed + 8, sizeof seed - 8, "<u4", 4, 2));
}

bool tokens_fuzz_check(const uint8_t *bytes, size_t count)
{
    struct why why = { 0 };
    token_files_t *files = NULL;
    uint32_t tokens[4 * 17];
    if (count < 3) return false;
    const struct samples_config config = { .token_bytes = bytes[2] & 1 ? 2 : 4,
                                           .seq_len = 1 + bytes[1] % 16,
                                           .vocab_size = bytes[0],
                                           .shuffled = bytes[2] & 2 };
    const char *name = bytes[2] & 4 ? "a.npy" : "a.bin";
    scratch_remove(MANIFEST_NAME), scratch_remove("a.npy"), scratch_remove("a.bin");
    scratch_remove("b.npy");
    scratch_put(name, bytes + 3, count - 3);
    if (token_files_open(scratch_dir(), &config, &why, &files) < 0) return refused(&why);
    const uint64_t samples = token_files_count(files);
    ensure(samples > 0 && !token_files_digest(files));
    for (uint64_t at = 0; at < samples && at < 64; at++) {
        const uint32_t take = samples - at < 4 ? 1 : 4;
        if (token_files_read(files, at, take, tokens, &why) < 0) continue;
        for (uint32_t i = 0; config.vocab_size && i < take * (config.seq_len + 1); i++)
            ensure(tokens[i] < config.vocab_size);
    }
    token_files_close(&files);
    return true;
}

void tokens_fuzz_write_seeds(const char *folder)
{
    char seed[256] = { 0, 3, 1 };
    fuzz_write_seed(folder, "seed-bin", seed, 3 + 58);
    seed[2] = 1 | 4;
    const size_t count = make_npy(seed + 3, sizeof seed - 3, "<u2", 20, 1);
    fuzz_write_seed(folder, "seed-npy", seed, 3 + count);
}

// ---- settings -----------------------------------------------------------------------------------

bool config_fuzz_check(const uint8_t *bytes, size_t count)
{
    static struct config_faults faults;
    static struct run_config run, again;
    static struct data_config data;
    static char texts[2][CONFIG_CANONICAL_MAX];
    if (count == 0) return false;
    scratch_put("it.toml", bytes + 1, count - 1);
    if (bytes[0] == 'd') return config_load_data(scratch_path("it.toml"), &data, &faults) == 0;
    if (config_load_run(scratch_path("it.toml"), &run, &faults) < 0) return false;
    ensure(config_load_run(scratch_path("it.toml"), &again, &faults) == 0);
    const size_t length = config_canonical(&run, texts[0]);
    ensure(length < CONFIG_CANONICAL_MAX && config_canonical(&again, texts[1]) == length);
    ensure(memcmp(texts[0], texts[1], length) == 0);
    return true;
}

void config_fuzz_write_seeds(const char *folder)
{
    write_file_as_seed(folder, "seed-state", "config/demo/state.toml", 's');
    write_file_as_seed(folder, "seed-data", "config/demo/data.toml", 'd');
}

// ---- a member's journal -------------------------------------------------------------------------

// As journal.c lays it down: the test's own word for it.
struct slot {
    uint32_t magic, count;
    uint64_t number;
    struct hash hash;
    uint8_t bytes[JOURNAL_RECORD_MAX];
};
enum { SLOT_BYTES = 4096 };

static void seal_slot(struct slot *slot)
{
    const uint64_t head[2] = { slot->number, slot->count };
    slot->magic = 0x314a4853;
    if (slot->count > JOURNAL_RECORD_MAX) return;
    slot->hash = hash_of_two(head, sizeof head, slot->bytes, slot->count);
}

// What is read is the newest of the slots that are whole; what is written then comes back.
bool journal_fuzz_check(const uint8_t *bytes, size_t count)
{
    static uint8_t file[2 * SLOT_BYTES];
    struct why why = { 0 };
    struct journal *journal = NULL;
    const uint8_t *read;
    if (count == 0) return false;
    const size_t most = count - 1 < sizeof file ? count - 1 : sizeof file;
    memset(file, 0, sizeof file);
    memcpy(file, bytes + 1, most);
    for (int i = 0; i < 2; i++) {
        struct slot slot;
        memcpy(&slot, file + i * SLOT_BYTES, sizeof slot);
        if (bytes[0] >> i & 1) seal_slot(&slot);
        memcpy(file + i * SLOT_BYTES, &slot, sizeof slot);
    }
    scratch_put("journal", file, bytes[0] & 4 ? most : sizeof file);
    if (journal_open(scratch_dir(), &why, &journal) < 0) return refused(&why);
    ensure(journal_read(journal, &read) <= JOURNAL_RECORD_MAX);
    const int rc = journal_write(journal, "promise", 7, &why);
    journal_close(&journal);
    ensure(rc == 0 || rc == FAULT_LIMIT);
    if (rc < 0) return refused(&why);
    ensure(journal_open(scratch_dir(), &why, &journal) == 0);
    ensure(journal_read(journal, &read) == 7 && memcmp(read, "promise", 7) == 0);
    journal_close(&journal);
    return true;
}

void journal_fuzz_write_seeds(const char *folder)
{
    static uint8_t seed[1 + 2 * SLOT_BYTES] = { 3 };
    struct slot slots[2] = { { .count = 5, .number = 6 }, { .count = 100, .number = 7 } };
    for (int i = 0; i < 2; i++) memcpy(seed + 1 + i * SLOT_BYTES, &slots[i], sizeof slots[i]);
    fuzz_write_seed(folder, "seed-two", seed, sizeof seed);
    fuzz_write_seed(folder, "seed-one", seed, 1 + 64);
}

// ---- JSON ---------------------------------------------------------------------------------------

bool json_fuzz_check(const uint8_t *bytes, size_t count)
{
    struct why why = { 0 };
    json_t *root = NULL, *again = NULL;
    uint64_t number;
    const char *text;
    char shown[STRICT_JSON_SHOWN];
    if (strict_json_parse("it", (const char *)bytes, count, 8, 256, &why, &root) < 0)
        return refused(&why);
    ensure(json_is_object(root));
    char *dump = json_dumps(root, JSON_COMPACT);
    ensure(dump && strict_json_parse("it", dump, strlen(dump), 8, 256, &why, &again) == 0);
    ensure(json_equal(root, again));
    if (strict_json_number(root, "it", "n", 1000, &why, &number) == 0) ensure(number <= 1000);
    if (strict_json_text(root, "it", "t", 20, &why, &text) == 0) ensure(strlen(text) <= 20);
    const char *printable = strict_json_shown(dump, shown);
    ensure(strlen(printable) < STRICT_JSON_SHOWN);
    for (; *printable; printable++) ensure(*printable >= ' ' && *printable <= '~');
    free(dump);
    json_decref(again);
    json_decref(root);
    return true;
}

bool choices_fuzz_check(const uint8_t *bytes, size_t count)
{
    struct why why = { 0 };
    struct choices choices = { 0 };
    scratch_put("choices", bytes, count);
    if (choices_read(scratch_path("choices"), &why, &choices) < 0) return refused(&why);
    ensure(choices.count > 0);
    for (size_t i = 0; i < choices.count; i++) {
        const struct choices_question *question = &choices.questions[i];
        ensure(question->count >= 2 && question->answer < question->count && question->line > 0);
        for (uint32_t j = 0; j < question->count; j++) ensure(question->choices[j][0]);
    }
    choices_free(&choices);
    return true;
}
