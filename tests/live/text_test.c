// Text that people have, as it comes: what the commands that read it say and make of it.

#include "tests/unit/folder_fixture.h"
#include "tests/test.h"
#include <limits.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

static char program[PATH_MAX]; // <build>/bin/shoal; this test is <build>/live/text_test
static char output[64 << 10];  // Of the last command, both streams

static size_t slurp(const char *name, char *bytes, size_t max)
{
    FILE *file = fopen(path_of(name), "rb");
    size_t count = file ? fread(bytes, 1, max - 1, file) : 0;
    if (file) fclose(file);
    bytes[count] = 0;
    return count;
}

// A command line for the shell, in the test's folder; "$S" is the program.
static void expect(const char *line, int code, const char *says)
{
    char command[PATH_MAX + 2048];
    if (!program[0]) {
        const ssize_t count = readlink("/proc/self/exe", program, sizeof program - 16);
        assert_true(count > 0);
        program[count] = 0;
        for (int i = 0; i < 2; i++) *strrchr(program, '/') = 0;
        strcat(program, "/bin/shoal");
    }
    snprintf(command, sizeof command, "cd '%s' && S='%s' && { %s; } > output 2>&1", folder, program,
             line);
    const int status = system(command);
    slurp("output", output, sizeof output);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code || !strstr(output, says))
        fail_msg("%s: ends with status %d, not with code %d and \"%s\":\n%s", line, status, code,
                 says, output);
}

static void also_says(const char *text)
{
    if (!strstr(output, text)) fail_msg("no \"%s\" in:\n%s", text, output);
}

static void put_text(const char *name, const char *text) { put(name, text, strlen(text)); }

// The byte tokens of a file that tokenize or prepare-text made, as a text.
static const char *tokens_of(const char *name)
{
    static char text[4096];
    char bytes[2 * sizeof text];
    const size_t count = slurp(name, bytes, sizeof bytes) / 2;
    for (size_t i = 0; i < count; i++) text[i] = bytes[2 * i] ? bytes[2 * i] : '0';
    text[count] = 0;
    return text;
}

#define BYTES "$S tokenize --tokenizer bytes --heldout-every 0 -o data "

// ---- records ------------------------------------------------------------------------------------

static const char bad_lines[] = "{\"text\":\"one.\"}\n"
                                "{\"text\":null}\n"
                                "{\"text\":\"\\ud800\"}\n"
                                "{\"body\":\"x\",\"id\":1}\n"
                                "{\"text\":\"two\\u0000.\"}\n"
                                "{\"text\":\n"
                                "[1]\n"
                                "{\"text\":\"three.\"}\n";

static void a_bad_record_is_named_with_what_to_do(void **state)
{
    (void)state;
    put_text("null.jsonl", "{\"text\":\"one.\"}\n{\"text\":null}\n");
    expect(BYTES "null.jsonl", EX_DATAERR,
           "null.jsonl:2: the field 'text' is null, not a text; --skip-bad passes over such");
    put_text("other.jsonl", "{\"content\":\"A text.\",\"id\":\"7\"}\n");
    expect(BYTES "other.jsonl", EX_DATAERR,
           "other.jsonl:1: no field 'text'; line 1 has the fields content, id: use --jsonl-field "
           "content");
    expect(BYTES "--jsonl-field content other.jsonl", 0, "1 document");
    assert_string_equal(tokens_of("data/train/train.bin"), "A text.");
    expect("$S train-tokenizer --out tok null.jsonl", EX_DATAERR, "null.jsonl:2: the field 'text'");
}

static void bad_records_are_counted_named_and_passed_over(void **state)
{
    (void)state;
    put_text("web.jsonl", bad_lines);
    expect(BYTES "--skip-bad web.jsonl", 0, "5 of 8 records are bad and were passed over");
    also_says("passed over: web.jsonl:2: the field 'text' is null, not a text\n");
    also_says("passed over: web.jsonl:3: no valid JSON at byte ");
    also_says("(half of a surrogate pair)\n");
    also_says("passed over: web.jsonl:4: no field 'text'; the record has the fields body, id\n");
    also_says("passed over: web.jsonl:6: no valid JSON at byte ");
    also_says("passed over: web.jsonl:7: the record is an array, not an object with fields\n");
    assert_string_equal(tokens_of("data/train/train.bin"), "one.two0.three.");
    expect(BYTES "--skip-bad --json web.jsonl 2>/dev/null", 0, "\"bad_records\":5");
    expect("$S train-tokenizer --out tok --skip-bad web.jsonl", 0,
           "5 of 8 records are bad and were passed over");
    // Also one that the tokenizer refuses
    put_text("ab.json",
             "{\"version\":\"1.0\",\"added_tokens\":[],\"pre_tokenizer\":{\"type\":\"ByteLevel\","
             "\"add_prefix_space\":false,\"use_regex\":true},\"model\":{\"type\":\"BPE\",\"vocab\":"
             "{\"a\":97,\"b\":98},\"merges\":[]},\"decoder\":{\"type\":\"ByteLevel\"}}");
    put_text("abc.jsonl", "{\"text\":\"ab\"}\n{\"text\":\"abc\"}\n{\"text\":\"ba\"}\n");
#define AB "$S tokenize --tokenizer ab.json --heldout-every 0 -o data abc.jsonl "
    expect(AB, EX_DATAERR, "abc.jsonl:2: ");
    also_says("--skip-bad passes over such records");
    expect(AB "--skip-bad", 0, "1 of 3 records are bad and were passed over");
    also_says("passed over: abc.jsonl:2: ");
    assert_string_equal(tokens_of("data/train/train.bin"), "abba");
    put_text("worst.jsonl", "{\"content\":\"A text.\"}\nx\n");
    expect(BYTES "--skip-bad worst.jsonl", EX_DATAERR, "all 2 records are bad");
    also_says("use --jsonl-field content\n");
}

// ---- kinds of files -----------------------------------------------------------------------------

static void records_are_not_taken_for_text(void **state)
{
    (void)state;
    put_text("a.json", "[\n {\"text\": \"one.\"},\n {\"text\": \"two.\"}\n]\n");
    put_text("b.ndjson", "{\"text\": \"three.\"}\n");
    put_text("c.json", "{\"text\": \"four.\"}\n{\"text\": 5}\n");
    put_text("d.txt", "six.");
    expect("gzip b.ndjson && zstd -q --rm d.txt", 0, "");
    expect(BYTES "--skip-bad a.json b.ndjson.gz c.json d.txt.zst", 0, "5 documents, 0.0 MB");
    also_says("passed over: c.json:2: the field 'text' is a number, not a text\n");
    also_says("1.00 bytes per token");
    assert_string_equal(tokens_of("data/train/train.bin"), "one.two.three.four.six.");
    expect("mkdir in && mv a.json b.ndjson.gz in && " BYTES "in", 0, "3 documents");
    put_text("web.tar.gz", "no matter what");
    expect(BYTES "web.tar.gz", EX_CONFIG, "*.tar is not read");
    expect(
        "$S train-tokenizer --out tok in && head -c 12 d.txt.zst > cut.zst && $S train-tokenizer "
        "--out tok cut.zst",
        EX_DATAERR, "cut.zst: its compressed data is damaged");
}

static void prepare_text_reads_the_same_files(void **state)
{
    (void)state;
    char *long_text = malloc(400001);
    memset(long_text, 'x', 400000);
    long_text[400000] = 0;
    put_text("d.txt", long_text);
    free(long_text);
    put_text("a.jsonl", "{\"body\": \"one\"}\n{\"body\": 2}\n{\"body\": \"three\"}\n");
    expect(
        "gzip a.jsonl && $S prepare-text --out data --skip-bad --jsonl-field body a.jsonl.gz d.txt",
        0, "1 of 3 records are bad and were passed over");
    also_says("passed over: a.jsonl.gz:2: the field 'body' is a number, not a text\n");
    char bytes[32];
    slurp("data/train/train.bin", bytes, sizeof bytes);
    assert_memory_equal(bytes, "o\0n\0e\0\n\0t\0h\0r\0e\0e\0\n\0x\0x\0", 24);
    expect("$S prepare-text --out data a.jsonl.gz d.txt", EX_DATAERR,
           "a.jsonl.gz:1: no field 'text'; line 1 has the fields body: use --jsonl-field body");
}

// The error of a text that is too short names what would do, and that does.
static void a_small_text_gets_a_hint(void **state)
{
    (void)state;
    static const char *const commands[] = { "$S prepare-text --out data ",
                                            "$S tokenize --tokenizer bytes --out data " };
    for (size_t i = 0; i < 2; i++) {
        char line[200];
        snprintf(line, sizeof line,
                 "head -c 50000 /dev/zero | tr '\\0' x > small.txt && %s small.txt", commands[i]);
        expect(
            line, EX_DATAERR,
            "the text has 50000 tokens; to hold one block of 16384 out of every 20 it needs more "
            "than 311296: add text, or --heldout-every 4, or --heldout-every 0 to hold nothing");
        snprintf(line, sizeof line, "%s small.txt --heldout-every 4", commands[i]);
        expect(line, 0, "848 ");
        also_says("that no trainer is served");
        snprintf(line, sizeof line, "echo A text. > tiny.txt && %s tiny.txt", commands[i]);
        expect(line, EX_DATAERR, "add text, or --heldout-every 0 to hold nothing out");
        snprintf(line, sizeof line, "%s tiny.txt --heldout-every 0", commands[i]);
        expect(line, 0, "8 ");
        assert_string_equal(tokens_of("data/train/train.bin"), "A text.\n");
    }
    expect("$S prepare-text --out data --json --heldout-every 0 tiny.txt", 0, "\"nats\":null");
    expect("$S prepare-text --out data --heldout-every 4", EX_USAGE, "belong to INPUT");
    expect("$S prepare-text --out data --skip-bad", EX_USAGE, "belong to INPUT");
}

// ---- text from a model --------------------------------------------------------------------------

// The first letter that a model says is then made the token at which a text ends.
static void a_sample_stops_at_the_end_of_text(void **state)
{
    (void)state;
    char ends[64], before[256];
    size_t at = 1;
#define SAMPLE "$S sample --model model --prompt A --tokens 100 --temperature 1 "
    expect("$S init-model --dim 32 --layers 1 --heads 2 --kv-heads 2 --ffn 64 --seq-len 32 --out "
           "model",
           0, "parameters");
    expect(SAMPLE, 0, "A");
    assert_true(strlen(output) >= 102);
    while (output[at] && !(output[at] >= 'a' && output[at] <= 'z')) at++;
    assert_true(at < 100);
    snprintf(before, sizeof before, "%.*s\n", (int)at, output);
    snprintf(ends, sizeof ends, "{\"eos_token_id\": [300, %d]}", output[at]);
    put_text("model/generation_config.json", ends);
    expect(SAMPLE, 0, before);
    assert_string_equal(output, before);
    expect(SAMPLE "--samples 3 --json", 0, "\"texts\"");
}

TESTS(FOLDER_TEST(a_bad_record_is_named_with_what_to_do),
      FOLDER_TEST(bad_records_are_counted_named_and_passed_over),
      FOLDER_TEST(records_are_not_taken_for_text), FOLDER_TEST(prepare_text_reads_the_same_files),
      FOLDER_TEST(a_small_text_gets_a_hint), FOLDER_TEST(a_sample_stops_at_the_end_of_text))
