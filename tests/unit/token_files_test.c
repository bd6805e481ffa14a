// The local dataset and its manifest.
#include "common/crypto/merkle.h"
#include "common/data/manifest.h"
#include "common/data/token_files.h"
#include "tests/unit/folder_fixture.h"
#include "tests/test.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct why why;

// `count` tokens first, first + 1, ... of `size` bytes.
static void put_tokens(const char *name, uint32_t first, size_t count, uint32_t size)
{
    uint8_t *bytes = malloc(count * size + 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < count; i++) le_put(bytes + i * size, first + (uint32_t)i, size);
    put(name, bytes, count * size);
    free(bytes);
}

static const char good[] = "{'descr': '<u2', 'fortran_order': False, 'shape': (8,), }    \n";

static void put_npy(const char *name, const char *dictionary, uint32_t first, size_t count)
{
    uint8_t bytes[4096];
    const size_t length = strlen(dictionary);
    memcpy(bytes, "\x93NUMPY\x01\x00", 8);
    le_put(bytes + 8, length, 2);
    memcpy(bytes + 10, dictionary, length);
    for (size_t i = 0; i < count; i++) le_put(bytes + 10 + length + 2 * i, first + i, 2);
    put(name, bytes, 10 + length + 2 * count);
}

static struct samples_config config_of(uint32_t token_bytes, uint32_t seq_len)
{
    return (struct samples_config){ .token_bytes = token_bytes, .seq_len = seq_len };
}

static token_files_t *open_files(const struct samples_config *config)
{
    token_files_t *self = NULL;
    const int rc = token_files_open(folder, config, &why, &self);
    if (rc < 0) print_message("%s\n", why.text);
    assert_int_equal(rc, 0);
    return self;
}

static void test_the_width_is_not_guessed(void **state)
{
    (void)state;
    struct manifest manifest;
    uint32_t width = 0;
    put_npy("a.npy", good, 1, 8);
    assert_int_equal(token_files_width(folder, &why, &width), 0);
    assert_int_equal(width, 2);
    put_tokens("b.bin", 1, 8, 4);
    assert_int_equal(token_files_width(folder, &why, &width), FAULT_USAGE);
    assert_non_null(strstr(why.text, "b.bin"));
    assert_non_null(strstr(why.text, "say --token-bytes 2 or --token-bytes 4"));
    unlink(path_of("a.npy"));
    assert_int_equal(manifest_build(folder, 4, &why, &manifest), 0);
    assert_int_equal(manifest_write(&manifest, folder, &why), 0);
    manifest_free(&manifest);
    assert_int_equal(token_files_width(folder, &why, &width), 0);
    assert_int_equal(width, 4);
    put("manifest.json", "{", 1);
    assert_int_equal(token_files_width(folder, &why, &width), FAULT_FORMAT);
    assert_int_equal(token_files_width("/nowhere", &why, &width), FAULT_NOT_FOUND);
}

static void assert_refused(const struct samples_config *config, int fault, const char *word)
{
    token_files_t *self = NULL;
    assert_int_equal(token_files_open(folder, config, &why, &self), fault);
    assert_null(self);
    if (!strstr(why.text, word)) fail_msg("'%s' is not in '%s'", word, why.text);
}

// ---- token files

static void test_order_overlap_and_exact_fit(void **state)
{
    (void)state;
    put_tokens("b.bin", 2000, 9, 2); // 2 samples of 4 + 1, exactly
    put_tokens("a.ds", 1000, 8, 2);  // 1 sample: 7 more tokens are not enough for 2
    put_npy("Z.npy", good, 500, 8);  // 'Z' stands before 'a' in bytes
    put("notes.txt", "x", 1);
    put(".hidden.bin", "x", 1);
    struct samples_config config = config_of(2, 4);
    token_files_t *self = open_files(&config);
    uint32_t tokens[5][5];
    assert_int_equal(token_files_count(self), 4);
    assert_null(token_files_digest(self));
    assert_int_equal(token_files_read(self, 0, 5, &tokens[0][0], &why), 0);
    static const uint32_t firsts[] = { 500, 1000, 2000, 2004, 500 }; // Last: the next pass
    for (uint32_t s = 0; s < 5; s++)
        for (uint32_t t = 0; t < 5; t++) assert_int_equal(tokens[s][t], firsts[s] + t);
    assert_int_equal(token_files_read(self, UINT64_MAX - 1, 5, &tokens[0][0], &why), FAULT_RANGE);
    token_files_close(&self);
    assert_null(self);
}

static void test_four_byte_tokens(void **state)
{
    (void)state;
    put_tokens("a.bin", 4000000000u, 5, 4);
    struct samples_config config = config_of(4, 2);
    token_files_t *self = open_files(&config);
    uint32_t tokens[3];
    assert_int_equal(token_files_count(self), 2);
    assert_int_equal(token_files_read(self, 1, 1, tokens, &why), 0);
    assert_int_equal(tokens[2], 4000000004u);
    token_files_close(&self);
}

static void test_shuffled_passes(void **state)
{
    (void)state;
    enum { N = 50 };
    put_tokens("a.bin", 0, N / 2 + 1, 2);
    put_tokens("b.bin", N / 2, N / 2 + 1, 2);
    struct samples_config config = config_of(2, 1);
    config.shuffled = true;
    config.seed[0] = 9;
    token_files_t *self = open_files(&config);
    uint32_t tokens[2 * N][2];
    bool differs = false;
    assert_int_equal(token_files_read(self, 0, 2 * N, &tokens[0][0], &why), 0);
    for (int pass = 0; pass < 2; pass++) {
        uint8_t seen[N] = { 0 };
        for (int i = 0; i < N; i++) {
            const uint32_t first = tokens[pass * N + i][0];
            assert_true(first < N && !seen[first]++);
            assert_int_equal(tokens[pass * N + i][1], first + 1);
            differs = differs || first != tokens[i][0];
        }
    }
    assert_true(differs); // The second pass has an order of its own
    uint32_t again[2];
    assert_int_equal(token_files_read(self, 17, 1, again, &why), 0);
    assert_int_equal(again[0], tokens[17][0]); // Back in the first pass
    token_files_close(&self);
}

static void test_refused_at_open(void **state)
{
    (void)state;
    struct samples_config config = config_of(2, 4);
    assert_refused(&config, FAULT_NOT_FOUND, "no token file");
    put_tokens("a.bin", 0, 4, 2);
    assert_refused(&config, FAULT_RANGE, "a.bin has 4 tokens");
    put("a.bin", "0123456789abc", 13);
    assert_refused(&config, FAULT_FORMAT, "a.bin has 13 bytes");
    put("a.bin", "", 0);
    assert_refused(&config, FAULT_RANGE, "a.bin has 0 tokens");
    put_tokens("a.bin", 0, 10, 2);
    put("b.npy", "0123456789", 10);
    assert_refused(&config, FAULT_FORMAT, "b.npy");
    put_npy("b.npy", good, 0, 8);
    config.token_bytes = 4;
    assert_refused(&config, FAULT_FORMAT, "b.npy: its tokens have 2 bytes");
    config.token_bytes = 3;
    assert_refused(&config, FAULT_RANGE, "token size is 3");
    config = config_of(2, 0);
    assert_refused(&config, FAULT_RANGE, "seq_len is 0");
    config.seq_len = SAMPLES_SEQ_MAX + 1;
    assert_refused(&config, FAULT_RANGE, "seq_len");
    config.seq_len = 4;
    assert_int_equal(mkdir(path_of("c.bin"), 0755), 0);
    assert_refused(&config, FAULT_FORMAT, "not a plain file");
    snprintf(folder + strlen(folder), 8, "/none");
    assert_refused(&config, FAULT_NOT_FOUND, "none");
    *strrchr(folder, '/') = 0;
}

static void test_token_outside_vocabulary(void **state)
{
    (void)state;
    put_tokens("a.bin", 250, 9, 2);
    struct samples_config config = config_of(2, 4);
    config.vocab_size = 256;
    token_files_t *self = open_files(&config);
    uint32_t tokens[5];
    assert_int_equal(token_files_read(self, 0, 1, tokens, &why), 0);
    assert_int_equal(token_files_read(self, 3, 1, tokens, &why), FAULT_RANGE);
    assert_non_null(strstr(why.text, "a.bin: token 6 is 256"));
    assert_non_null(strstr(why.text, "position 3"));
    assert_int_equal(token_files_read(self, 4, 1, tokens, &why), 0); // Usable as before
    token_files_close(&self);
}

static void test_file_that_changes_under_us(void **state)
{
    (void)state;
    put_tokens("a.bin", 0, 50000, 2);
    struct samples_config config = config_of(2, 100);
    token_files_t *self = open_files(&config);
    uint32_t tokens[101];
    assert_int_equal(token_files_read(self, 400, 1, tokens, &why), 0);
    assert_int_equal(truncate(path_of("a.bin"), 1000), 0);
    assert_int_equal(token_files_read(self, 400, 1, tokens, &why), FAULT_CORRUPT);
    assert_non_null(strstr(why.text, "a.bin"));
    token_files_close(&self);

    put_tokens("a.bin", 0, 50000, 2);
    self = open_files(&config);
    put_tokens("new", 7, 50000, 2);
    char from[512];
    snprintf(from, sizeof from, "%s", path_of("new"));
    assert_int_equal(rename(from, path_of("a.bin")), 0);
    assert_int_equal(token_files_read(self, 0, 1, tokens, &why), FAULT_CORRUPT);
    token_files_close(&self);

    self = open_files(&config);
    assert_int_equal(unlink(path_of("a.bin")), 0);
    assert_int_equal(token_files_read(self, 0, 1, tokens, &why), FAULT_NOT_FOUND);
    token_files_close(&self);
}

// ---- manifest

static void write_manifest(uint32_t token_bytes)
{
    struct manifest manifest;
    assert_int_equal(manifest_build(folder, token_bytes, &why, &manifest), 0);
    assert_int_equal(manifest_write(&manifest, folder, &why), 0);
    manifest_free(&manifest);
}

static void flip(const char *name, long at)
{
    FILE *file = fopen(path_of(name), "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    const int byte = fgetc(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fputc(byte ^ 1, file), byte ^ 1);
    assert_int_equal(fclose(file), 0);
}

static void test_manifest_round_trip(void **state)
{
    (void)state;
    struct manifest built, read;
    put_tokens("a.bin", 0, (5 << 18), 2); // 2.5 leaves
    put_tokens("b.ds", 5, 3, 2);
    assert_int_equal(manifest_read(folder, &why, &read), FAULT_NOT_FOUND);
    assert_int_equal(manifest_build(folder, 2, &why, &built), 0);
    assert_int_equal(built.file_count, 2);
    assert_int_equal(built.files[0].leaf_count, 3);
    const struct hash only = merkle_leaf("\5\0\6\0\7\0", 6);
    assert_memory_equal(&built.files[1].root, &only, sizeof only);
    assert_int_equal(manifest_write(&built, folder, &why), 0);
    assert_int_equal(manifest_read(folder, &why, &read), 0);
    assert_memory_equal(&built.digest, &read.digest, sizeof built.digest);
    assert_memory_equal(built.files[0].leaves, read.files[0].leaves, 3 * sizeof(struct hash));
    assert_int_equal(manifest_verify(&read, folder, &why), 0);
    flip("a.bin", 3 << 19);
    assert_int_equal(manifest_verify(&read, folder, &why), FAULT_DIGEST);
    assert_non_null(strstr(why.text, "byte 1048576"));
    flip("a.bin", 3 << 19);
    put_tokens("c.bin", 5, 3, 2);
    assert_int_equal(manifest_verify(&read, folder, &why), FAULT_DIGEST);
    manifest_free(&built);
    manifest_free(&read);
}

// Three small bytes of dataset, the digest computed by hand from the sentence in manifest.h.
static void test_manifest_digest_golden(void **state)
{
    (void)state;
    struct manifest built;
    put("a.bin", "\1\0\2\0", 4);
    assert_int_equal(manifest_build(folder, 2, &why, &built), 0);
    struct hasher hasher;
    const struct hash leaf = hash_of("\0\1\0\2\0", 5);
    hasher_init(&hasher);
    hasher_add(&hasher,
               "shoal-manifest-2"
               "\2\0\0\0"
               "\1\0\0\0"
               "\5\0\0\0"
               "a.bin",
               33);
    hasher_add(&hasher, "\4\0\0\0\0\0\0\0", 8);
    hasher_add(&hasher, leaf.bytes, HASH_BYTES);
    const struct hash digest = hasher_end(&hasher);
    assert_memory_equal(&built.digest, &digest, sizeof digest);
    manifest_free(&built);
}

static void test_reading_checks_the_manifest(void **state)
{
    (void)state;
    enum { LEAF_TOKENS = MANIFEST_LEAF_BYTES / 2 };
    struct samples_config config = config_of(2, 1000);
    uint32_t tokens[1001];
    put_tokens("a.bin", 0, 2 * LEAF_TOKENS + 5000, 2);
    write_manifest(2);
    flip("a.bin", MANIFEST_LEAF_BYTES + 77);
    token_files_t *self = open_files(&config);
    assert_non_null(token_files_digest(self));
    assert_int_equal(token_files_read(self, 3, 1, tokens, &why), 0);
    assert_int_equal(token_files_read(self, 3, 1, tokens, &why), 0); // From the bitmap now
    const uint64_t astride = LEAF_TOKENS / 1000; // Begins in the first leaf, ends in the second
    assert_int_equal(token_files_read(self, astride, 1, tokens, &why), FAULT_DIGEST);
    assert_non_null(strstr(why.text, "a.bin: the MiB that begins at byte 1048576"));
    assert_int_equal(token_files_read(self, astride + 10, 1, tokens, &why), FAULT_DIGEST);
    assert_int_equal(token_files_read(self, 2 * LEAF_TOKENS / 1000 + 1, 1, tokens, &why), 0);
    token_files_close(&self);

    flip("a.bin", MANIFEST_LEAF_BYTES + 77);
    put_tokens("b.bin", 0, 2000, 2); // Its own leaf, if also number 0
    write_manifest(2);
    flip("b.bin", 5);
    self = open_files(&config);
    assert_int_equal(token_files_read(self, 0, 1, tokens, &why), 0);
    assert_int_equal(token_files_read(self, token_files_count(self) - 1, 1, tokens, &why),
                     FAULT_DIGEST);
    token_files_close(&self);
}

static void test_folder_that_differs_from_its_manifest(void **state)
{
    (void)state;
    struct samples_config config = config_of(2, 4);
    put_tokens("a.bin", 0, 20, 2);
    write_manifest(2);
    put_tokens("b.bin", 0, 20, 2);
    assert_refused(&config, FAULT_DIGEST, "2 token files");
    assert_int_equal(unlink(path_of("b.bin")), 0);
    put_tokens("a.bin", 0, 22, 2);
    assert_refused(&config, FAULT_DIGEST, "44 bytes");
    put_tokens("a.bin", 0, 20, 2);
    config.token_bytes = 4;
    assert_refused(&config, FAULT_DIGEST, "token_bytes is 2");
    config.token_bytes = 2;
    put(MANIFEST_NAME, "{", 1);
    assert_refused(&config, FAULT_FORMAT, "no valid JSON");
}

static void test_manifest_names_must_ascend(void **state)
{
    (void)state;
    struct manifest built, read;
    put_tokens("a.bin", 0, 20, 2);
    put_tokens("b.bin", 0, 20, 2);
    assert_int_equal(manifest_build(folder, 2, &why, &built), 0);
    memcpy(built.files[0].name, "b.bin", 5);
    assert_int_equal(manifest_write(&built, folder, &why), 0);
    assert_int_equal(manifest_read(folder, &why, &read), FAULT_FORMAT);
    assert_non_null(strstr(why.text, "must ascend"));
    memcpy(built.files[1].name, "a.bin", 5);
    assert_int_equal(manifest_write(&built, folder, &why), 0);
    assert_int_equal(manifest_read(folder, &why, &read), FAULT_FORMAT);
    manifest_free(&built);
}

// Every truncation and every single changed byte of a manifest is refused, unless it is white
// space.
static void test_hostile_manifest(void **state)
{
    (void)state;
    char text[2048];
    struct manifest read;
    put_tokens("a.bin", 0, 20, 2);
    write_manifest(2);
    FILE *file = fopen(path_of(MANIFEST_NAME), "rb");
    assert_non_null(file);
    const size_t count = fread(text, 1, sizeof text, file);
    fclose(file);
    assert_in_range(count, 200, sizeof text - 1);
    for (size_t cut = 0; cut < count; cut++)
        assert_true(manifest_parse(text, cut, "m", &why, &read) < 0);
    for (size_t i = 0; i < count; i++) {
        char copy[2048];
        memcpy(copy, text, count);
        copy[i] = (char)(copy[i] ^ 1);
        if (text[i] == ' ' || text[i] == '\n') continue;
        assert_true(manifest_parse(copy, count, "m", &why, &read) < 0);
    }
}

static void assert_bad(const char *text, int fault, const char *word)
{
    struct manifest read;
    assert_int_equal(manifest_parse(text, strlen(text), "m", &why, &read), fault);
    if (!strstr(why.text, word)) fail_msg("'%s' is not in '%s'", word, why.text);
}

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define HEAD                                                                                       \
    "{\"format\":\"shoal-manifest-2\",\"token_bytes\":2,\"leaf_bytes\":1048576,"                   \
    "\"digest\":\"" ZEROS "\",\"files\":["
#define HASHES "\"root\":\"00\",\"leaves\":\"" ZEROS "\"}"

static void test_hostile_manifest_by_name(void **state)
{
    (void)state;
    assert_bad("[]", FAULT_FORMAT, "not an object");
    assert_bad("{}", FAULT_FORMAT, "must have");
    assert_bad(HEAD "]}", FAULT_FORMAT, "1 to 65536");
    assert_bad(HEAD "1]}", FAULT_FORMAT, "files[0]");
    assert_bad(HEAD "{\"name\":\"../a.bin\",\"bytes\":4," HASHES "]}", FAULT_FORMAT, "name");
    assert_bad(HEAD "{\"name\":\"a.txt\",\"bytes\":4," HASHES "]}", FAULT_FORMAT, "name");
    assert_bad(HEAD "{\"name\":\"a.bin\",\"bytes\":9223372036854775807," HASHES "]}", FAULT_FORMAT,
               "bytes");
    assert_bad(HEAD "{\"name\":\"a.bin\",\"bytes\":-4," HASHES "]}", FAULT_FORMAT, "bytes");
    assert_bad(HEAD "{\"name\":\"a.bin\",\"bytes\":4," HASHES "]}", FAULT_FORMAT, "64 for");
    assert_bad("{\"a\":1,\"a\":1}", FAULT_FORMAT, "no valid JSON");

    struct manifest read;
    const size_t count = 4 << 20;
    char *dense = malloc(count);
    assert_non_null(dense);
    memset(dense, '[', count);
    assert_int_equal(manifest_parse(dense, count, "m", &why, &read), FAULT_LIMIT);
    free(dense);
}

TESTS(FOLDER_TEST(test_order_overlap_and_exact_fit), FOLDER_TEST(test_four_byte_tokens),
      FOLDER_TEST(test_the_width_is_not_guessed), FOLDER_TEST(test_shuffled_passes),
      FOLDER_TEST(test_refused_at_open), FOLDER_TEST(test_token_outside_vocabulary),
      FOLDER_TEST(test_file_that_changes_under_us), FOLDER_TEST(test_manifest_round_trip),
      FOLDER_TEST(test_manifest_digest_golden), FOLDER_TEST(test_reading_checks_the_manifest),
      FOLDER_TEST(test_folder_that_differs_from_its_manifest),
      FOLDER_TEST(test_manifest_names_must_ascend), FOLDER_TEST(test_hostile_manifest),
      TEST(test_hostile_manifest_by_name))
