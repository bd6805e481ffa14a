// Files, lines and folders become documents, and documents become token files.

#include "common/base/failpoint.h"
#include "common/data/manifest.h"
#include "common/data/token_files.h"
#include "common/text/corpus.h"
#include "common/text/text_tokens.h"
#include "tests/unit/folder_fixture.h"
#include "tests/test.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct why why;
static size_t last_line(const void *context, const uint8_t *text, size_t count)
{
    (void)context;
    const uint8_t *end = memrchr(text, '\n', count);
    return end ? (size_t)(end - text) : 0;
}

static const struct corpus_options options = { .field = "text", .cut = last_line };

static corpus_t *open_corpus(const char *name)
{
    const char *path = path_of(name);
    corpus_t *self = NULL;
    const int rc = corpus_open(&path, 1, &options, &why, &self);
    if (rc < 0) fail_msg("%s", why.text);
    return self;
}

static int open_fault(const char *name)
{
    const char *path = path_of(name);
    corpus_t *self = NULL;
    return corpus_open(&path, 1, &options, &why, &self);
}

static void put_text(const char *name, const char *text) { put(name, text, strlen(text)); }

static void test_a_folder_in_order(void **state)
{
    (void)state;
    const struct corpus_unit *units;
    size_t count;
    mkdir(path_of("in"), 0700);
    mkdir(path_of("in/b"), 0700);
    put_text("in/c.txt", "third");
    put_text("in/b/x.txt", "second");
    put_text("in/a.jsonl",
             "{\"text\":\"one\"}\n \n{\"id\":2,\"text\":\"\"}\n{\"text\":\"\\u00e9\\n\"}");
    put_text("in/.hidden", "no");
    corpus_t *self = open_corpus("in");
    assert_int_equal(corpus_next(self, &why, &units, &count), 0);
    static const struct {
        const char *text;
        uint64_t line;
    } wanted[] = {
        { "one", 1 }, { "", 3 }, { "é\n", 4 }, { "second", 0 }, { "third", 0 },
    };
    assert_int_equal(count, 5);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(units[i].count, strlen(wanted[i].text));
        assert_memory_equal(units[i].text, wanted[i].text, units[i].count);
        assert_int_equal(units[i].line, wanted[i].line);
        assert_true(units[i].begins && units[i].ends);
    }
    assert_int_equal(corpus_bytes_read(self), corpus_bytes(self));
    assert_int_equal(corpus_next(self, &why, &units, &count), 0);
    assert_int_equal(count, 0);
    corpus_close(&self);
}

static void test_a_long_document_is_cut(void **state)
{
    (void)state;
    enum { BYTES = 5 * CORPUS_UNIT_BYTES / 2 };
    char *text = malloc(BYTES);
    const struct corpus_unit *units;
    size_t count, at = 0;
    for (size_t i = 0; i < BYTES; i++) text[i] = i % 1000 == 999 ? '\n' : (char)('a' + i % 26);
    put("long.txt", text, BYTES);
    corpus_t *self = open_corpus("long.txt");
    assert_int_equal(corpus_next(self, &why, &units, &count), 0);
    assert_int_equal(count, 3);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(units[i].begins, i == 0);
        assert_int_equal(units[i].ends, i == 2);
        assert_int_equal(units[i].offset, at);
        assert_memory_equal(units[i].text, text + at, units[i].count);
        at += units[i].count;
        if (i < 2) assert_int_equal(text[at], '\n');
    }
    assert_int_equal(at, BYTES);
    corpus_close(&self);
    free(text);
}

static void note_skip(void *context, const char *text)
{
    char *said = context;
    strcat(strcat(said, strrchr(text, '/') + 1), "\n");
}

// A line that is too long is passed over to its end, and no more.
static void test_bad_records_are_passed_over(void **state)
{
    (void)state;
    enum { LONG = CORPUS_UNIT_MAX + 100 };
    static char said[4096];
    const struct corpus_options skipping = {
        .field = "text", .cut = last_line, .skip = note_skip, .skip_context = said
    };
    const char *path = path_of("long.jsonl");
    const struct corpus_unit *units;
    size_t count, texts = 0;
    corpus_t *self = NULL;
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs("{\"text\":\"a\"}\n[]\n{\"text\":\"", file);
    for (int i = 0; i < LONG; i++) putc('x', file);
    fputs("\"}\n{\"text\":\"b\\u0000\"}\n{\"text\":true}", file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(corpus_open(&path, 1, &skipping, &why, &self), 0);
    do {
        assert_int_equal(corpus_next(self, &why, &units, &count), 0);
        for (size_t i = 0; i < count; i++, texts++)
            assert_memory_equal(units[i].text, texts ? "b\0" : "a", units[i].count);
    } while (count);
    assert_int_equal(texts, 2);
    assert_int_equal(corpus_records(self), 5);
    assert_int_equal(corpus_skipped(self), 3);
    assert_string_equal(said, "long.jsonl:2: the record is an array, not an object with fields\n"
                              "long.jsonl:3: a line above 64 MiB\n"
                              "long.jsonl:5: the field 'text' is true, not a text\n");
    corpus_close(&self);
}

// The first fault of a file, or 0.
static int next_fault(const char *name)
{
    const struct corpus_unit *units;
    size_t count = 1;
    int rc = 0;
    corpus_t *self = open_corpus(name);
    while (rc == 0 && count > 0) rc = corpus_next(self, &why, &units, &count);
    corpus_close(&self);
    return rc;
}

// All texts of a file, a '|' behind each unit; the lines they begin in stand in `lines`.
static const char *texts_of(const char *name, char lines[64])
{
    static char text[4096];
    const struct corpus_unit *units;
    size_t count = 1, at = 0;
    corpus_t *self = open_corpus(name);
    lines[0] = 0;
    while (count > 0) {
        if (corpus_next(self, &why, &units, &count) < 0) fail_msg("%s", why.text);
        for (size_t i = 0; i < count; i++) {
            memcpy(text + at, units[i].text, units[i].count);
            at += units[i].count;
            text[at++] = '|';
            sprintf(lines + strlen(lines), "%d ", (int)units[i].line);
        }
    }
    text[at] = 0;
    assert_int_equal(corpus_bytes_read(self), corpus_bytes(self));
    corpus_close(&self);
    return text;
}

static void test_records_in_lines_and_arrays(void **state)
{
    (void)state;
    static const struct {
        const char *name, *bytes, *texts, *lines;
    } cases[] = {
        { "a.ndjson", "{\"text\":\"one\"}\n{\"text\":\"two\"}\n", "one|two|", "1 2 " },
        { "b.json", "\n{\"text\":\"one\"}\n\n{\"text\":\"two\"}", "one|two|", "2 4 " },
        { "c.JSON", "[{\"text\":\"one\"},{\"text\":\"two\"}]", "one|two|", "1 1 " },
        { "d.json",
          " \n[\n  {\n    \"id\": [1, {\"a\": \"]\"}],\n    \"text\": \"o,]}\\\"e\"\n  },\n  "
          "{\"text\": \"two\"}\n]\n",
          "o,]}\"e|two|", "3 7 " },
        { "e.json", "[ ]", "", "" },
    };
    static const struct {
        const char *bytes, *says;
    } bad[] = {
        { "[{\"text\":\"one\"},\n7]", "bad.json:2: the record is a number, not an object" },
        { "[{\"text\":\"one\"},]", "bad.json:1: no record between two commas" },
        { "[,{\"text\":\"one\"}]", "bad.json:1: no record between two commas" },
        { "[{\"text\":\"one\"}", "bad.json:1: the array does not end behind this" },
        { "[{\"text\":\"one\"}]\nx", "bad.json:2: more behind the end of the array" },
        { "[{\"text\":\"one\"]", "bad.json:1: the array does not end behind this" },
        { "{\n\"data\": []}", "a .json file has an array of records, or a record in each line" },
        { " \n", "bad.json is empty" },
    };
    char lines[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_text(cases[i].name, cases[i].bytes);
        assert_string_equal(texts_of(cases[i].name, lines), cases[i].texts);
        assert_string_equal(lines, cases[i].lines);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put_text("bad.json", bad[i].bytes);
        assert_int_equal(next_fault("bad.json"), FAULT_FORMAT);
        if (!strstr(why.text, bad[i].says)) fail_msg("%s: %s", bad[i].bytes, why.text);
    }
}

static void shell(const char *line)
{
    char command[1024];
    snprintf(command, sizeof command, "cd '%s' && %s", folder, line);
    assert_int_equal(system(command), 0);
}

// Several compressed files end to end are one, and damage is seen.
static void test_compressed_files(void **state)
{
    (void)state;
    enum { BYTES = 3 << 20 };
    char lines[64], *text = malloc(BYTES);
    const struct corpus_unit *units;
    size_t count = 1, at = 0;
    put_text("a.jsonl", "{\"text\":\"one\"}\n");
    put_text("b.json", "[{\"text\":\"two\"}]");
    shell("gzip -k a.jsonl && cat a.jsonl.gz a.jsonl.gz > aa.jsonl.gz && zstd -q b.json");
    assert_string_equal(texts_of("aa.jsonl.gz", lines), "one|one|");
    assert_string_equal(texts_of("b.json.zst", lines), "two|");
    for (size_t i = 0; i < BYTES; i++) text[i] = i % 1000 == 999 ? '\n' : (char)(i * i % 251);
    put("long.txt", text, BYTES);
    shell("gzip -k long.txt && zstd -q long.txt && for f in gz zst; do head -c 1000 long.txt.$f > "
          "cut.$f; (cat long.txt.$f; echo more) > more.$f; done; gzip -c /dev/null > none.gz");
    for (int kind = 0; kind < 2; kind++) {
        corpus_t *self = open_corpus(kind ? "long.txt.zst" : "long.txt.gz");
        for (at = 0, count = 1; count > 0;) {
            assert_int_equal(corpus_next(self, &why, &units, &count), 0);
            for (size_t i = 0; i < count; i++) {
                assert_int_equal(units[i].offset, at);
                assert_memory_equal(units[i].text, text + at, units[i].count);
                at += units[i].count;
            }
        }
        assert_int_equal(at, BYTES);
        assert_int_equal(corpus_text_bytes(self), BYTES);
        assert_int_equal(corpus_bytes_read(self), corpus_bytes(self));
        corpus_close(&self);
        assert_int_equal(next_fault(kind ? "cut.zst" : "cut.gz"), FAULT_CORRUPT);
        assert_non_null(strstr(why.text, "it ends too early"));
        assert_int_equal(next_fault(kind ? "more.zst" : "more.gz"), FAULT_CORRUPT);
    }
    assert_int_equal(next_fault("none.gz"), FAULT_FORMAT);
    put_text("x.tar.gz", "x");
    assert_int_equal(open_fault("x.tar.gz"), FAULT_UNSUPPORTED);
    free(text);
}

static void test_refusals(void **state)
{
    (void)state;
    assert_int_equal(open_fault("none"), FAULT_NOT_FOUND);
    put_text("empty", "");
    assert_int_equal(open_fault("empty"), FAULT_FORMAT);
    mkdir(path_of("bare"), 0700);
    assert_int_equal(open_fault("bare"), FAULT_FORMAT);
    assert_non_null(strstr(why.text, "no files"));
    assert_int_equal(symlink(".", path_of("bare/loop")), 0);
    assert_int_equal(open_fault("bare"), FAULT_FORMAT);
    assert_non_null(strstr(why.text, "links to a folder"));
    put_text("a.jsonl", "{\"text\":\"x\"}\n{\"txt\":\"x\"}\n");
    assert_int_equal(next_fault("a.jsonl"), FAULT_FORMAT);
    assert_non_null(strstr(why.text, "a.jsonl:2: no field 'text'; the record has the fields txt"));
    put_text("b.jsonl", "{\"text\":5}");
    assert_int_equal(next_fault("b.jsonl"), FAULT_FORMAT);
    assert_non_null(strstr(why.text, "the field 'text' is a number, not a text"));
    put_text("c.jsonl", "\n{\"text\":");
    assert_int_equal(next_fault("c.jsonl"), FAULT_FORMAT);
    assert_non_null(strstr(why.text, "c.jsonl:2: no valid JSON"));
    put_text("d.txt", "fine so far \xc3(");
    const struct corpus_unit *units;
    size_t count;
    corpus_t *self = open_corpus("d.txt");
    assert_int_equal(corpus_next(self, &why, &units, &count), 0);
    assert_int_equal(corpus_check(&units[0], &why), FAULT_FORMAT);
    assert_non_null(strstr(why.text, "0xc3 at 12"));
    corpus_close(&self);
}

// Tokens of 4 bytes, without a part held out, as a provider reads them.
static void test_wide_tokens(void **state)
{
    (void)state;
    const struct text_config config = { .no_heldout = true, .token_bytes = 4 };
    const struct samples_config samples = { .token_bytes = 4, .seq_len = 2, .vocab_size = 200000 };
    const uint32_t ids[] = { 7, 65536, 199999 };
    struct text_counts counts;
    text_tokens_t *self = NULL;
    token_files_t *files = NULL;
    uint32_t tokens[3];
    assert_int_equal(text_tokens_new(path_of("data"), &config, &why, &self), 0);
    assert_int_equal(text_tokens_add_ids(self, ids, 3, &why), 0);
    assert_int_equal(text_tokens_finish(self, &why, &counts), 0);
    text_tokens_destroy(&self);
    assert_int_equal(counts.train, 3);
    assert_int_equal(counts.heldout, 0);
    assert_int_not_equal(access(path_of("data/heldout"), F_OK), 0);
    assert_int_equal(token_files_open(path_of("data/train"), &samples, &why, &files), 0);
    assert_int_equal(token_files_read(files, 0, 1, tokens, &why), 0);
    assert_memory_equal(tokens, ids, sizeof ids);
    token_files_close(&files);
    const struct text_config narrow = { .no_heldout = true, .token_bytes = 2 };
    assert_int_equal(text_tokens_new(path_of("data"), &narrow, &why, &self), 0);
    assert_int_equal(text_tokens_add_ids(self, ids, 3, &why), FAULT_RANGE);
    text_tokens_destroy(&self);
}

// ---- a second text in the same folder

static uint32_t fails_in; // The n-th file from now cannot take its name; 0: all can

int failpoint_reached(const char *name)
{
    if (strcmp(name, "file_rename") != 0 || fails_in == 0 || --fails_in > 0) return 0;
    errno = EIO;
    return -1;
}

// Two blocks of 4 tokens `id`; the second is held out, or none.
static int write_text(uint32_t id, bool no_heldout)
{
    const struct text_config config = { .block_tokens = 4,
                                        .heldout_every = 2,
                                        .no_heldout = no_heldout };
    const uint32_t ids[] = { id, id, id, id, id, id, id, id };
    struct text_counts counts;
    text_tokens_t *self = NULL;
    int rc = text_tokens_new(path_of("data"), &config, &why, &self);
    if (rc == 0) rc = text_tokens_add_ids(self, ids, 8, &why);
    if (rc == 0) rc = text_tokens_finish(self, &why, &counts);
    text_tokens_destroy(&self);
    return rc;
}

// The first token of a file, or 0 if it is missing.
static uint8_t first_token(const char *name)
{
    uint8_t *bytes, first = 0;
    size_t count;
    if (access(path_of(name), F_OK) < 0) return 0;
    assert_int_equal(text_tokens_load(path_of(name), 8, &why, &bytes, &count), 0);
    first = bytes[0];
    free(bytes);
    return first;
}

static void assert_complete_with_manifest(const char *part)
{
    struct manifest manifest;
    const int rc = manifest_read(path_of(part), &why, &manifest);
    if (rc == FAULT_NOT_FOUND) return;
    assert_int_equal(rc, 0);
    if (manifest_verify(&manifest, path_of(part), &why) < 0) fail_msg("%s: %s", part, why.text);
    manifest_free(&manifest);
}

// The first text, then the second, which is cut off before its n-th file: for each n until it is done.
static void test_a_second_text_replaces_the_first(void **state)
{
    (void)state;
    for (int no_heldout = 0; no_heldout < 2; no_heldout++)
        for (uint32_t n = 1, rc = 1; rc != 0; n++) {
            assert_true(n < 20);
            assert_int_equal(write_text(1, false), 0);
            put_text("data/baselines.json", "{}");
            put_text("data/train/train.bin" MANIFEST_BLOCKS, "of the first");
            fails_in = n;
            rc = write_text(2, no_heldout) < 0;
            fails_in = 0;
            const uint8_t train = first_token("data/train/train.bin");
            const uint8_t heldout = first_token("data/heldout/heldout.bin");
            assert_true(heldout == 0 || heldout == train);
            assert_complete_with_manifest("data/train");
            assert_complete_with_manifest("data/heldout");
            if (train == 2) {
                assert_int_not_equal(access(path_of("data/baselines.json"), F_OK), 0);
                assert_int_not_equal(access(path_of("data/train/train.bin.blocks"), F_OK), 0);
            }
            if (rc != 0) continue;
            assert_int_equal(train, 2);
            assert_int_equal(heldout, no_heldout ? 0 : 2);
            assert_int_equal(access(path_of("data/train/manifest.json"), F_OK), 0);
            assert_int_equal(access(path_of("data/heldout"), F_OK), no_heldout ? -1 : 0);
        }
}

TESTS(TEST_WITH(test_a_folder_in_order, folder_set_up, folder_tear_down),
      TEST_WITH(test_a_long_document_is_cut, folder_set_up, folder_tear_down),
      TEST_WITH(test_bad_records_are_passed_over, folder_set_up, folder_tear_down),
      TEST_WITH(test_records_in_lines_and_arrays, folder_set_up, folder_tear_down),
      TEST_WITH(test_compressed_files, folder_set_up, folder_tear_down),
      TEST_WITH(test_refusals, folder_set_up, folder_tear_down),
      TEST_WITH(test_wide_tokens, folder_set_up, folder_tear_down),
      TEST_WITH(test_a_second_text_replaces_the_first, folder_set_up, folder_tear_down))
