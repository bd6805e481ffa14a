// safetensors_test -- files are read and written bit for bit, and hostile ones are refused by name.

#include "common/checkpoint/safetensors.h"
#include "common/checkpoint/half.h"
#include "tests/test.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[256];
static int dir = -1;
static struct why why;

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s/safetensors-test-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : P_tmpdir);
    if (!mkdtemp(folder)) return -1;
    dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    const int rc = dirfile_remove(AT_FDCWD, folder, NULL);
    close(dir);
    return rc;
}

static void put(const char *name, const void *bytes, size_t count)
{
    unlinkat(dir, name, 0); // Not truncated: file systems may flush what replaces a file
    const int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, count), count);
    close(fd);
}

// A file of a header and `count` bytes of data, 0, 1, 2, ...
static void put_model(const char *name, const char *header, size_t data_bytes)
{
    static char bytes[1 << 20];
    const uint64_t length = strlen(header);
    assert_true(8 + length + data_bytes <= sizeof bytes);
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < data_bytes; i++) bytes[8 + length + i] = (char)i;
    put(name, bytes, 8 + length + data_bytes);
}

static void assert_why(const char *word)
{
    if (!strstr(why.text, word)) fail_msg("'%s' is not in: %s", word, why.text);
}

static void refuse(const char *name, int fault, const char *word)
{
    safetensors_t *set = NULL;
    const int rc = safetensors_open_at(dir, name, true, &why, &set);
    if (rc != fault) fail_msg("%s, not %s: %s", fault_name(rc), fault_name(fault), why.text);
    assert_null(set);
    assert_why(name);
    assert_why(word);
}

// ---- Halves ----

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// Between two neighbours a and b = a + 1 (as bits): the middle goes to the even one, the values
// beside it to their side. In float32 the middle of two halves is exact.
static void check_gap(uint16_t a, float low, float high, uint16_t (*narrow)(float))
{
    const float middle = (float)(((double)low + (double)high) / 2);
    const uint16_t even = a & 1 ? (uint16_t)(a + 1) : a, sign = 0x8000;
    assert_int_equal(narrow(low), a);
    assert_int_equal(narrow(middle), even);
    assert_int_equal(narrow(float_of(bits_of(middle) - 1)), a);
    assert_int_equal(narrow(float_of(bits_of(middle) + 1)), a + 1);
    assert_int_equal(narrow(-middle), even | sign);
}

static void halves_round_to_nearest_even_everywhere(void **state)
{
    (void)state;
    for (uint16_t a = 0; a < 0x7bff; a++)
        check_gap(a, half_from_f16(a), half_from_f16((uint16_t)(a + 1)), half_to_f16);
    for (uint16_t a = 0; a < 0x7f7f; a++)
        check_gap(a, half_from_bf16(a), half_from_bf16((uint16_t)(a + 1)), half_to_bf16);
}

static void halves_widen_exactly(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        const uint32_t exponent = h >> 10 & 31, fraction = h & 1023;
        const float size = exponent ? ldexpf((float)(1024 + fraction), (int)exponent - 25)
                                    : ldexpf((float)fraction, -24);
        const float wide = half_from_f16((uint16_t)h);
        if (exponent == 31 && fraction)
            assert_true(isnan(wide) && isnan(half_from_f16(half_to_f16(wide))));
        else if (exponent == 31) assert_true(wide == (h & 0x8000 ? -INFINITY : INFINITY));
        else assert_int_equal(bits_of(wide), bits_of(h & 0x8000 ? -size : size));
        if (exponent < 31 || !fraction) assert_int_equal(half_to_f16(wide), h);
    }
    assert_int_equal(half_to_f16(65519.996f), 0x7bff);
    assert_int_equal(half_to_f16(65520.0f), 0x7c00);
    assert_int_equal(half_to_f16(-1e30f), 0xfc00);
    assert_int_equal(half_to_bf16(3.4028235e38f), 0x7f80);
    assert_true(isnan(half_from_bf16(half_to_bf16(float_of(0x7f800001)))));
}

// ---- Golden ----

// tests/golden/safetensors/tiny.safetensors was written by Hugging Face's own package (make.py).
static void a_file_of_the_reference_package_is_read(void **state)
{
    (void)state;
    struct layout_tensor room[3];
    struct layout layout;
    layout_init(&layout, room, 3);
    layout_add_vector(&layout, "model.norm.weight", 3, LAYOUT_F32, NULL);
    layout_add_matrix(&layout, "model.embed.weight", 2, 3, LAYOUT_F32, NULL);
    layout_add_matrix(&layout, "model.half.weight", 4, 1, LAYOUT_F32, NULL);
    const uint32_t wanted[13] = {
        0x3f800000, 0xc0600000, 0x03800000, 0x3f000000, 0x80000000, 0x00000001, 0x7f7fffff,
        0xbfa00000, 0x3dcccccd, 0x3f800000, 0xc0200000, 0x477fe000, 0x33800000,
    };
    float values[13];
    safetensors_t *set;
    const char *path = "tests/golden/safetensors/tiny.safetensors";
    assert_int_equal(safetensors_open_at(AT_FDCWD, path, true, &why, &set), 0);
    assert_int_equal(safetensors_count(set), 3);
    assert_string_equal(safetensors_note(set, "made_by"), "make.py");
    assert_null(safetensors_note(set, "nobody"));
    assert_string_equal(safetensors_tensor(set, 0)->name, "model.embed.weight");
    assert_int_equal(safetensors_load(set, &layout, (struct interval){ 0, 13 }, values, &why), 0);
    assert_memory_equal(values, wanted, sizeof wanted);
    for (uint64_t begin = 0; begin <= 13; begin++) { // Any interval of it
        for (uint64_t end = begin; end <= 13; end++) {
            float part[13];
            const struct interval want = { begin, end };
            assert_int_equal(safetensors_load(set, &layout, want, part, &why), 0);
            assert_memory_equal(part, wanted + begin, interval_length(want) * sizeof *part);
        }
    }
    safetensors_close(&set);
    assert_null(set);
    safetensors_close(&set);
}

// ---- Writing and reading back ----

static struct layout_tensor wide_room[3];

static struct layout wide_layout(enum layout_dtype dtype)
{
    struct layout layout;
    layout_init(&layout, wide_room, 3);
    assert_int_equal(layout_add_matrix(&layout, "a", 700, 500, dtype, &why), 0);
    assert_int_equal(layout_add_vector(&layout, "b.bias", 7, dtype, &why), 0);
    assert_int_equal(layout_add_matrix(&layout, "c", 1, 3, dtype, &why), 0);
    return layout;
}

static float *odd_values(uint64_t count) // All bits of a float occur, NaN with payloads too
{
    float *values = malloc(count * sizeof *values);
    uint32_t bits = 1;
    for (uint64_t i = 0; i < count; i++) values[i] = float_of(bits = bits * 1664525u + 1013904223u);
    return values;
}

static void write_model(const char *name, const struct layout *layout, const float *values,
                        struct hash *ret_hash)
{
    const struct safetensors_note notes[] = { { "run", "a" }, { "note", "gr\xc3\xbc\xc3\x9f" } };
    const struct safetensors_source source = safetensors_from_memory(values);
    uint64_t bytes;
    unlinkat(dir, name, 0);
    assert_int_equal(
        safetensors_write_at(dir, name, layout, &source, notes, 2, &why, ret_hash, &bytes), 0);
    int fd;
    uint64_t size;
    struct hash hash;
    assert_int_equal(dirfile_open(dir, name, false, &why, &fd, &size), 0);
    assert_int_equal(size, bytes);
    assert_int_equal(dirfile_hash(fd, name, size, &why, &hash), 0);
    assert_true(hash_equal(&hash, ret_hash));
    close(fd);
}

static void float32_survives_bit_for_bit(void **state)
{
    (void)state;
    const struct layout layout = wide_layout(LAYOUT_F32);
    float *values = odd_values(layout.total), *back = malloc(layout.total * sizeof *back);
    struct hash first, second;
    safetensors_t *set;
    write_model("model.safetensors", &layout, values, &first);
    write_model("again.safetensors", &layout, values, &second);
    assert_true(hash_equal(&first, &second));
    assert_int_equal(safetensors_open_at(dir, "model.safetensors", false, &why, &set), 0);
    assert_string_equal(safetensors_note(set, "format"), "pt");
    assert_string_equal(safetensors_note(set, "note"), "gr\xc3\xbc\xc3\x9f");
    assert_int_equal(
        safetensors_load(set, &layout, (struct interval){ 0, layout.total }, back, &why), 0);
    assert_memory_equal(values, back, layout.total * sizeof *back);
    safetensors_close(&set);
    // Never over an existing file
    const struct safetensors_source source = safetensors_from_memory(values);
    assert_int_equal(safetensors_write_at(dir, "model.safetensors", &layout, &source, NULL, 0, &why,
                                          &first, &(uint64_t){ 0 }),
                     FAULT_IO);
    assert_why("File exists");
    const struct safetensors_note bad = { "note", "\xff" };
    assert_int_equal(safetensors_write_at(dir, "third.safetensors", &layout, &source, &bad, 1, &why,
                                          &first, &(uint64_t){ 0 }),
                     FAULT_RANGE);
    free(values);
    free(back);
}

static void halves_are_written_rounded(void **state)
{
    (void)state;
    for (enum layout_dtype dtype = LAYOUT_BF16; dtype <= LAYOUT_F16; dtype++) {
        const struct layout layout = wide_layout(dtype);
        float *values = odd_values(layout.total), *back = malloc(layout.total * sizeof *back);
        struct hash hash;
        safetensors_t *set;
        write_model("half.safetensors", &layout, values, &hash);
        assert_int_equal(safetensors_open_at(dir, "half.safetensors", false, &why, &set), 0);
        assert_int_equal(
            safetensors_load(set, &layout, (struct interval){ 0, layout.total }, back, &why), 0);
        for (uint64_t i = 0; i < layout.total; i++) {
            const float wanted = dtype == LAYOUT_BF16 ? half_from_bf16(half_to_bf16(values[i]))
                                                      : half_from_f16(half_to_f16(values[i]));
            assert_int_equal(bits_of(back[i]), bits_of(wanted));
        }
        safetensors_close(&set);
        free(values);
        free(back);
    }
}

// ---- What is refused ----

#define TENSOR(name, begin, end)                                                                   \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[" begin "," end "]}"
#define ONE(dtype, shape, offsets)                                                                 \
    "{\"a\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static const struct {
    int fault;
    const char *word, *header;
    size_t data_bytes;
} hostile[] = {
    { FAULT_FORMAT, "no valid JSON", "", 0 },
    { FAULT_FORMAT, "no valid JSON", "{\"a\":", 0 },
    { FAULT_FORMAT, "no valid JSON", "{}{}", 0 },
    { FAULT_FORMAT, "not an object", "[]", 0 },
    { FAULT_FORMAT, "no valid JSON", "{\"a\\u0000b\":1}", 0 },
    { FAULT_LIMIT, "nested 4 deep, allowed are 3", "{\"a\":{\"shape\":[[1]]}}", 0 },
    { FAULT_FORMAT, "duplicate", "{" TENSOR("a", "0", "8") "," TENSOR("a", "8", "16") "}", 16 },
    { FAULT_FORMAT, "exactly dtype, shape and data_offsets", "{\"a\":1}", 0 },
    { FAULT_FORMAT, "exactly dtype, shape and data_offsets",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 0 },
    { FAULT_UNSUPPORTED, "dtype is 'I64', supported are F32, BF16 and F16",
      ONE("\"I64\"", "[1]", "[0,8]"), 8 },
    { FAULT_FORMAT, "'dtype' is of another kind", ONE("7", "[1]", "[0,8]"), 8 },
    { FAULT_FORMAT, "'shape' is of another kind", ONE("\"F32\"", "2", "[0,8]"), 8 },
    { FAULT_RANGE, "entry 0 of 'shape'", ONE("\"F32\"", "[-2]", "[0,8]"), 8 },
    { FAULT_RANGE, "entry 0 of 'shape'", ONE("\"F32\"", "[2.0]", "[0,8]"), 8 },
    { FAULT_RANGE, "entry 1 of 'shape'", ONE("\"F32\"", "[2,9007199254740993]", "[0,8]"), 8 },
    { FAULT_FORMAT, "no valid JSON", ONE("\"F32\"", "[99999999999999999999]", "[0,8]"), 8 },
    { FAULT_RANGE, "2^48 elements", ONE("\"F32\"", "[4294967296,4294967296]", "[0,8]"), 8 },
    { FAULT_RANGE, "9 entries, allowed are 8", ONE("\"F32\"", "[1,1,1,1,1,1,1,1,2]", "[0,8]"), 8 },
    { FAULT_FORMAT, "span 8 bytes, shape and dtype need 12", ONE("\"F32\"", "[3]", "[0,8]"), 8 },
    { FAULT_FORMAT, "span 8 bytes, shape and dtype need 4", ONE("\"BF16\"", "[2]", "[0,8]"), 8 },
    { FAULT_RANGE, "within the 7 bytes", ONE("\"F32\"", "[2]", "[0,8]"), 7 },
    { FAULT_RANGE, "ascending", ONE("\"F32\"", "[2]", "[8,0]"), 8 },
    { FAULT_RANGE, "must be two", ONE("\"F32\"", "[2]", "[0]"), 8 },
    { FAULT_RANGE, "3 entries, allowed are 2", ONE("\"F32\"", "[2]", "[0,8,8]"), 8 },
    { FAULT_RANGE, "within the 8 bytes",
      ONE("\"F32\"", "[2]", "[9007199254740984,9007199254740992]"), 8 },
    { FAULT_FORMAT, "'b' begins at byte 4 of the data, the one before it ends at 8: they overlap",
      "{" TENSOR("a", "0", "8") "," TENSOR("b", "4", "12") "}", 12 },
    { FAULT_FORMAT, "'b' begins at byte 12 of the data, the one before it ends at 8: a hole",
      "{" TENSOR("a", "0", "8") "," TENSOR("b", "12", "20") "}", 20 },
    { FAULT_FORMAT, "'a' begins at byte 4 of the data, the one before it ends at 0: a hole",
      "{" TENSOR("a", "4", "12") "}", 12 },
    { FAULT_FORMAT, "end at byte 8 of 9 bytes", "{" TENSOR("a", "0", "8") "}", 9 },
    { FAULT_FORMAT, "end at byte 0 of 1 bytes", "{}", 1 },
    { FAULT_RANGE, "printable ASCII", "{" TENSOR("", "0", "8") "}", 8 },
    { FAULT_RANGE, "tensor '?[2J?", "{" TENSOR("\\u001b[2J\xc3\xbc", "0", "8") "}", 8 },
    { FAULT_FORMAT, "__metadata__ is not an object", "{\"__metadata__\":[]}", 0 },
    { FAULT_FORMAT, "'x' of __metadata__ is not a text", "{\"__metadata__\":{\"x\":1}}", 0 },
};

static void hostile_headers_are_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        put_model("bad.safetensors", hostile[i].header, hostile[i].data_bytes);
        refuse("bad.safetensors", hostile[i].fault, hostile[i].word);
    }
}

static void hostile_lengths_are_refused_before_memory_is_taken(void **state)
{
    (void)state;
    const struct {
        uint64_t length;
        int fault;
        const char *word;
    } lengths[] = {
        { UINT64_MAX, FAULT_LIMIT, "claims 18446744073709551615 bytes, allowed are 100000000" },
        { 100000001, FAULT_LIMIT, "allowed are 100000000" },
        { 100000000, FAULT_FORMAT, "the file has 2 after the length" },
        { 3, FAULT_FORMAT, "claims 3 bytes" },
    };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char bytes[10] = "01234567{}";
        memcpy(bytes, &lengths[i].length, 8);
        put("bad.safetensors", bytes, sizeof bytes);
        refuse("bad.safetensors", lengths[i].fault, lengths[i].word);
    }
    put("bad.safetensors", "1234567", 7);
    refuse("bad.safetensors", FAULT_FORMAT, "7 bytes are too few");
    put("bad.safetensors", "", 0);
    refuse("bad.safetensors", FAULT_FORMAT, "0 bytes are too few");
    refuse("none.safetensors", FAULT_NOT_FOUND, "No such file");
    assert_int_equal(symlinkat("bad.safetensors", dir, "link.safetensors"), 0);
    safetensors_t *set = NULL;
    assert_int_equal(safetensors_open_at(dir, "link.safetensors", false, &why, &set), FAULT_IO);
    assert_int_equal(mkfifoat(dir, "pipe.safetensors", 0600), 0);
    refuse("pipe.safetensors", FAULT_FORMAT, "not a regular file");
}

// "[0,0,0,..." would become twenty times its size as a tree: it is counted first.
static void amplifying_headers_are_refused(void **state)
{
    (void)state;
    const size_t count = (size_t)5 << 20;
    char *bytes = malloc(count);
    memset(bytes, '[', count);
    for (size_t i = 16; i < count; i++) bytes[i] = i % 2 ? ',' : '0';
    memcpy(bytes, &(uint64_t){ count - 8 }, 8);
    memcpy(bytes + 8, "{\"a\":  [", 8);
    put("bad.safetensors", bytes, count);
    refuse("bad.safetensors", FAULT_LIMIT, "values, allowed are 1048576");
    memset(bytes + 8, '[', count - 8);
    put("bad.safetensors", bytes, count);
    refuse("bad.safetensors", FAULT_LIMIT, "allowed are 3 levels");
    free(bytes);
    assert_int_equal(unlinkat(dir, "bad.safetensors", 0), 0);
}

// Brackets and commas inside a text are no structure, whatever quotes and backslashes stand there.
static void texts_do_not_count_as_structure(void **state)
{
    (void)state;
    safetensors_t *set;
    put_model("odd.safetensors", "{\"__metadata__\":{\"x\":\"\\\"[[[[{{{{\\\\\",\"y\":\"]]]\"}}",
              0);
    if (safetensors_open_at(dir, "odd.safetensors", true, &why, &set) < 0) fail_msg("%s", why.text);
    assert_string_equal(safetensors_note(set, "x"), "\"[[[[{{{{\\");
    assert_string_equal(safetensors_note(set, "y"), "]]]");
    safetensors_close(&set);
}

static struct layout_tensor tiny_room[2];

static struct layout tiny_layout(void)
{
    struct layout layout;
    layout_init(&layout, tiny_room, 2);
    layout_add_vector(&layout, "a", 2, LAYOUT_F32, NULL);
    layout_add_vector(&layout, "b", 2, LAYOUT_F32, NULL);
    return layout;
}

static const char tiny_header[] = "{" TENSOR("b", "0", "8") "," TENSOR("a", "8", "16") "}   ";

static void a_file_cut_anywhere_is_refused(void **state)
{
    (void)state;
    const size_t whole = 8 + sizeof tiny_header - 1 + 16;
    for (size_t count = 0; count < whole; count++) {
        put_model("cut.safetensors", tiny_header, 16);
        const int fd = openat(dir, "cut.safetensors", O_WRONLY | O_CLOEXEC);
        assert_int_equal(ftruncate(fd, (off_t)count), 0);
        close(fd);
        safetensors_t *set;
        assert_int_equal(safetensors_open_at(dir, "cut.safetensors", true, &why, &set),
                         count >= whole - 16 ? FAULT_RANGE : FAULT_FORMAT);
    }
}

static void a_file_that_shrinks_is_an_error_and_no_signal(void **state)
{
    (void)state;
    const struct layout layout = tiny_layout();
    safetensors_t *set;
    float values[4];
    put_model("model.safetensors", tiny_header, 16);
    assert_int_equal(safetensors_open_at(dir, "model.safetensors", true, &why, &set), 0);
    assert_int_equal(safetensors_load(set, &layout, (struct interval){ 0, 4 }, values, &why), 0);
    const int fd = openat(dir, "model.safetensors", O_WRONLY | O_CLOEXEC);
    assert_int_equal(ftruncate(fd, (off_t)sizeof tiny_header - 1 + 8 + 9), 0);
    close(fd);
    assert_int_equal(safetensors_load(set, &layout, (struct interval){ 0, 4 }, values, &why),
                     FAULT_CORRUPT);
    assert_why("model.safetensors: ends at byte");
    safetensors_close(&set);
}

// ---- What does not fit the model ----

static void mismatch(const char *header, size_t data_bytes, const char *word)
{
    const struct layout layout = tiny_layout();
    float values[4] = { 1, 2, 3, 4 };
    const float before[4] = { 1, 2, 3, 4 };
    safetensors_t *set;
    put_model("model.safetensors", header, data_bytes);
    if (safetensors_open_at(dir, "model.safetensors", true, &why, &set) < 0)
        fail_msg("%s", why.text);
    assert_int_equal(safetensors_load(set, &layout, (struct interval){ 0, 4 }, values, &why),
                     FAULT_FORMAT);
    assert_why("model.safetensors");
    assert_why(word);
    assert_memory_equal(values, before, sizeof values);
    safetensors_close(&set);
}

static void what_does_not_fit_the_model_is_named(void **state)
{
    (void)state;
    mismatch("{" TENSOR("a", "0", "8") "}", 8, "tensor 'b' is missing");
    mismatch("{}", 0, "tensor 'a' is missing");
    mismatch("{" TENSOR("a", "0", "8") "," TENSOR("c", "8", "16") "," TENSOR("b", "16", "24") "}",
             24, "tensor 'c' is unexpected");
    mismatch("{" TENSOR("a", "0",
                        "8") ",\"b\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[8,16]}}",
             16, "tensor 'b' has shape [2, 1], the model wants [2]");
    mismatch("{" TENSOR("a", "0",
                        "8") ",\"b\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[8,20]}}",
             20, "tensor 'b' has shape [3], the model wants [2]");
    mismatch("{" TENSOR("a", "0",
                        "8") ",\"b\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[8,12]}}",
             12, "tensor 'b' has shape [], the model wants [2]");
}

// ---- Several files under an index ----

#define INDEX "model.safetensors.index.json"

static void put_shards(void)
{
    put_model("one.safetensors", "{" TENSOR("a", "0", "8") "}", 8);
    put_model("two.safetensors", "{" TENSOR("b", "0", "8") "}", 8);
}

static void put_index(const char *text) { put(INDEX, text, strlen(text)); }

static void shards_are_read_under_their_index(void **state)
{
    (void)state;
    const struct layout layout = tiny_layout();
    const uint8_t data[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    float values[4];
    safetensors_t *set;
    put_shards();
    put_index("{\"metadata\": {\"total_size\": 16}, \"weight_map\": "
              "{\"a\": \"one.safetensors\", \"b\": \"two.safetensors\"}}");
    if (safetensors_open_at(dir, INDEX, true, &why, &set) < 0) fail_msg("%s", why.text);
    assert_int_equal(safetensors_load(set, &layout, (struct interval){ 0, 4 }, values, &why), 0);
    assert_memory_equal(values, data, 8);
    assert_memory_equal(values + 2, data, 8);
    safetensors_close(&set);
}

static void hostile_indexes_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        int fault;
        const char *word, *map;
    } bad[] = {
        { FAULT_FORMAT, "no object 'weight_map'", "7" },
        { FAULT_RANGE, "tensor 'a' is said to be in a file whose name",
          "{\"a\": "
          "\"../one.safetensors\"}" },
        { FAULT_RANGE, "tensor 'a' is said to be in a file whose name",
          "{\"a\": "
          "\"/etc/passwd\"}" },
        { FAULT_RANGE, "tensor 'a' is said to be in a file whose name", "{\"a\": \"..\"}" },
        { FAULT_RANGE, "tensor 'a' is said to be in a file whose name", "{\"a\": \"\"}" },
        { FAULT_RANGE, "tensor 'a' is said to be in a file whose name", "{\"a\": 3}" },
        { FAULT_NOT_FOUND, "three.safetensors", "{\"a\": \"three.safetensors\"}" },
        { FAULT_FORMAT, "tensor 'a' is in one.safetensors, the index says two.safetensors",
          "{\"a\": \"two.safetensors\", \"b\": \"one.safetensors\"}" },
        { FAULT_FORMAT, "tensor 'b' is in two.safetensors, the index says nothing of it",
          "{\"a\": \"one.safetensors\", \"c\": \"two.safetensors\"}" },
        { FAULT_FORMAT, "tensor 'c' is not in one.safetensors",
          "{\"a\": \"one.safetensors\", "
          "\"c\": \"one.safetensors\"}" },
        { FAULT_FORMAT, "duplicate", "{\"a\": \"one.safetensors\", \"a\": \"two.safetensors\"}" },
        { FAULT_LIMIT, "nested 5 deep", "{\"a\": [[[]]]}" },
    };
    put_shards();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[512];
        snprintf(text, sizeof text, "{\"weight_map\": %s}", bad[i].map);
        put_index(text);
        refuse(INDEX, bad[i].fault, bad[i].word);
    }
    put_index("{\"weight_map\": {}}");
    const struct layout layout = tiny_layout();
    safetensors_t *set;
    float values[4];
    assert_int_equal(safetensors_open_at(dir, INDEX, true, &why, &set), 0);
    assert_int_equal(safetensors_load(set, &layout, (struct interval){ 0, 4 }, values, &why),
                     FAULT_FORMAT);
    safetensors_close(&set);
}

// ---- Damage at random ----

// Whatever one to three changed bytes make of a file: it is refused with a reason, or what it says
// is within the file and can be read. (Sanitizers watch.)
static void changed_bytes_never_lead_outside(void **state)
{
    (void)state;
    const size_t header = sizeof tiny_header - 1, whole = 8 + header + 16;
    unsigned seed = 11, accepted = 0;
    char bytes[512];
    for (int turn = 0; turn < 4000; turn++) {
        const uint64_t length = header;
        memset(bytes, 7, sizeof bytes);
        memcpy(bytes, &length, 8);
        memcpy(bytes + 8, tiny_header, header);
        for (int change = rand_r(&seed) % 3; change >= 0; change--)
            bytes[(size_t)rand_r(&seed) % (8 + header)] = (char)rand_r(&seed);
        put("bad.safetensors", bytes, whole);
        safetensors_t *set;
        why.text[0] = 0;
        if (safetensors_open_at(dir, "bad.safetensors", true, &why, &set) < 0) {
            assert_why("bad.safetensors");
            continue;
        }
        accepted++;
        for (size_t i = 0; i < safetensors_count(set); i++) {
            const struct safetensors_tensor *tensor = safetensors_tensor(set, i);
            assert_true(tensor->begin <= tensor->end && tensor->end <= whole - 8);
            assert_true(layout_name_valid(tensor->name));
        }
        safetensors_close(&set);
    }
    assert_in_range(accepted, 1, 3999);
}

TESTS_WITH(set_up, tear_down, TEST(halves_round_to_nearest_even_everywhere),
           TEST(halves_widen_exactly), TEST(a_file_of_the_reference_package_is_read),
           TEST(float32_survives_bit_for_bit), TEST(halves_are_written_rounded),
           TEST(hostile_headers_are_refused_by_name),
           TEST(hostile_lengths_are_refused_before_memory_is_taken),
           TEST(amplifying_headers_are_refused), TEST(texts_do_not_count_as_structure),
           TEST(a_file_cut_anywhere_is_refused),
           TEST(a_file_that_shrinks_is_an_error_and_no_signal),
           TEST(what_does_not_fit_the_model_is_named), TEST(shards_are_read_under_their_index),
           TEST(hostile_indexes_are_refused_by_name), TEST(changed_bytes_never_lead_outside))
