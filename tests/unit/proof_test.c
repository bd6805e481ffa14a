// A true proof of samples is accepted; everything else is refused, 10,000 flipped bytes among it.
#include "common/base/bytes.h"
#include "common/data/proof.h"
#include "common/data/token_files.h"
#include "tests/unit/folder_fixture.h"
#include "tests/test.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEQ = 100, FLIPS = 10000, TOKENS = 700000, ROWS = 8 }; // More than one MiB, in two files

static struct why why;
static uint64_t prng;

static uint64_t draw(uint64_t below)
{
    prng = prng * 6364136223846793005u + 1442695040888963407u;
    return (prng >> 20) % below;
}

static void put_files(void)
{
    static uint16_t tokens[TOKENS];
    prng = 5;
    for (size_t i = 0; i < TOKENS; i++) tokens[i] = (uint16_t)draw(50000);
    put("a.bin", tokens, sizeof tokens);
    put("b.bin", tokens + 5000, 3000 * 2 + 2);
    static const char head[] = "\x93NUMPY\x01\x00\x46\x00{'descr': '<u2', 'fortran_order': False, "
                               "'shape': (3000,), }";
    uint8_t npy[80 + 6000];
    memset(npy, ' ', 80);
    memcpy(npy, head, sizeof head - 1);
    npy[79] = '\n';
    memcpy(npy + 80, tokens, 6000);
    put("c.npy", npy, sizeof npy);
    struct manifest manifest;
    assert_int_equal(manifest_build(folder, 2, &why, &manifest), 0);
    assert_int_equal(manifest_write(&manifest, folder, &why), 0);
    manifest_free(&manifest);
}

static token_files_t *open_files(uint32_t seq_len, bool shuffled)
{
    struct samples_config config = {
        .token_bytes = 2, .seq_len = seq_len, .shuffled = shuffled, .seed = { 7 }
    };
    token_files_t *files;
    if (token_files_open(folder, &config, &why, &files) < 0) fail_msg("%s", why.text);
    return files;
}

static struct dataset describe(token_files_t *files, uint8_t **ret_bytes, size_t *ret_count)
{
    struct dataset dataset;
    const struct samples *samples = token_files_samples(files);
    const struct hash order = dataset_order_of(samples);
    assert_int_equal(
        dataset_describe(samples, token_files_manifest(files), &why, ret_bytes, ret_count), 0);
    if (dataset_parse(*ret_bytes, *ret_count, token_files_digest(files), &order, &why, &dataset) <
        0)
        fail_msg("%s", why.text);
    return dataset;
}

static void every_sample_is_proved_wherever_it_lies(void **state)
{
    static const uint32_t lengths[] = { 1, 100, 2047, 2999 };
    (void)state;
    put_files();
    for (size_t i = 0; i < 8; i++) {
        token_files_t *files = open_files(lengths[i / 2], i % 2);
        uint8_t *bytes;
        size_t count;
        struct dataset dataset = describe(files, &bytes, &count);
        const size_t row = samples_tokens(&dataset.samples);
        uint32_t *proved = calloc(row, 4), *read = calloc(row, 4);
        const uint64_t all = token_files_count(files);
        assert_true(dataset.samples.count == all);
        for (uint64_t n = 0; n < 400; n++) { // The last ones of the pass, and the next
            const uint64_t position = n < 40 ? all - 20 + n : draw(2 * all);
            struct proof proof = { 0 };
            assert_int_equal(token_files_prove(files, position, 1, &proof, &why), 0);
            if (dataset_check(&dataset, position, 1, proof.bytes, proof.count, proved, &why) < 0)
                fail_msg("%s", why.text);
            assert_int_equal(token_files_read(files, position, 1, read, &why), 0);
            assert_memory_equal(proved, read, row * 4);
            // A true proof of another place proves nothing; other tokens may be the same there.
            if (!dataset.samples.config.shuffled || i < 2 || n < 40) goto next;
            assert_true(dataset_check(&dataset, position + 1, 1, proof.bytes, proof.count, proved,
                                      &why) < 0 ||
                        samples_locate(&dataset.samples, position).offset / 4096 ==
                            samples_locate(&dataset.samples, position + 1).offset / 4096);
        next:
            free(proof.bytes);
        }
        free(proved), free(read), free(bytes);
        dataset_free(&dataset);
        token_files_close(&files);
    }
}

static void no_flipped_bit_of_a_proof_is_believed(void **state)
{
    (void)state;
    put_files();
    token_files_t *files = open_files(SEQ, true);
    uint8_t *bytes;
    size_t count;
    struct dataset dataset = describe(files, &bytes, &count);
    static uint32_t tokens[ROWS * (SEQ + 1)];
    uint64_t refused = 0;
    struct proof proof = { 0 };
    for (uint64_t i = 0; i < FLIPS; i++) {
        const uint64_t position = 3 * (i / 100);
        if (i % 100 == 0) {
            proof.count = 0;
            assert_int_equal(token_files_prove(files, position, ROWS, &proof, &why), 0);
            assert_int_equal(
                dataset_check(&dataset, position, ROWS, proof.bytes, proof.count, tokens, &why), 0);
            assert_true(dataset_check(&dataset, position, ROWS, proof.bytes, draw(proof.count),
                                      tokens, &why) < 0);
            assert_true(dataset_check(&dataset, position, ROWS - 1, proof.bytes, proof.count,
                                      tokens, &why) < 0);
        }
        const size_t at = draw(proof.count);
        const uint8_t bit = (uint8_t)(1u << draw(8));
        proof.bytes[at] ^= bit;
        refused +=
            dataset_check(&dataset, position, ROWS, proof.bytes, proof.count, tokens, &why) < 0;
        proof.bytes[at] ^= bit;
    }
    assert_true(refused == FLIPS);
    free(proof.bytes), free(bytes);
    dataset_free(&dataset);
    token_files_close(&files);
}

static void no_flipped_bit_of_a_description_is_believed(void **state)
{
    (void)state;
    put_files();
    token_files_t *files = open_files(SEQ, true);
    uint8_t *bytes;
    size_t count;
    struct dataset dataset = describe(files, &bytes, &count), other;
    const struct hash *data = token_files_digest(files), order = dataset.order;
    for (size_t bit = 0; bit < 8 * count; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_true(dataset_parse(bytes, count, data, &order, &why, &other) < 0);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t less = 0; less < count; less++)
        assert_true(dataset_parse(bytes, less, data, &order, &why, &other) < 0);
    assert_int_equal(dataset_parse(bytes, count, data, &order, &why, &other), 0);
    dataset_free(&other);
    dataset_free(&dataset);
    free(bytes);
    token_files_close(&files);
}

// What is described is parsed as a manifest's whose digest fits it; `order` is that of its own
// offsets.
static int parse_forged(token_files_t *files, uint8_t *bytes, size_t count, size_t at,
                        uint64_t offset, uint32_t file)
{
    struct samples forged = *token_files_samples(files);
    struct samples_file list[3];
    struct dataset dataset;
    uint8_t before[8];
    assert_int_equal(forged.file_count, 3);
    memcpy(list, forged.files, sizeof list);
    memcpy(before, bytes + at, 8);
    le_put(bytes + at, offset, 8);
    forged.files = list;
    list[file].offset = offset;
    forged.count = 0; // As many as the offsets leave
    for (uint32_t i = 0; i < 3; i++)
        forged.count +=
            ((token_files_manifest(files)->files[i].bytes - list[i].offset) / 2 - 1) / SEQ;
    const struct hash order = dataset_order_of(&forged);
    const int rc = dataset_parse(bytes, count, token_files_digest(files), &order, &why, &dataset);
    memcpy(bytes + at, before, 8);
    if (rc == 0) dataset_free(&dataset);
    return rc;
}

// The bytes are the manifest's and each proof would hold: but what is trained on is another's
// choice.
static void tokens_begin_where_their_file_says(void **state)
{
    (void)state;
    put_files();
    token_files_t *files = open_files(SEQ, true);
    uint8_t *bytes;
    size_t count;
    struct dataset dataset = describe(files, &bytes, &count), other;
    const size_t first = 12 + SHUFFLE_SEED_BYTES + 4 + 4 + 5 + 8, each = 4 + 5 + 8 + 8 + HASH_BYTES;
    const uint64_t npy = dataset.samples.files[2].offset;
    assert_int_equal(npy, 80);
    assert_int_equal(parse_forged(files, bytes, count, first, 0, 0), 0);
    assert_int_equal(parse_forged(files, bytes, count, first + 2 * each, npy, 2), 0);
    static const struct {
        uint32_t file;
        uint64_t offset;
    } bad[] = {
        { 0, 1 }, { 0, 2 },  { 0, 1000000 }, { 1, 4096 },
        { 2, 0 }, { 2, 81 }, { 2, 6080 },    { 2, 1u << 20 },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (parse_forged(files, bytes, count, first + bad[i].file * each, bad[i].offset,
                         bad[i].file) != FAULT_FORMAT)
            fail_msg("file %u from byte %u is taken", bad[i].file, (unsigned)bad[i].offset);

    // A description with fewer samples than there are
    const struct hash positions = dataset_positions(&dataset.samples),
                      few = dataset_order(&positions, 1);
    assert_int_equal(dataset_parse(bytes, count, token_files_digest(files), &few, &why, &other),
                     FAULT_DIGEST);
    dataset_free(&dataset);
    free(bytes);
    token_files_close(&files);
}

// A disk that forgets while the file is open: same size, same times, another bit.
static void rot(uint64_t at, uint8_t bit)
{
    char path[600];
    struct stat before;
    uint8_t byte;
    snprintf(path, sizeof path, "%s/a.bin", folder);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0 && fstat(fd, &before) == 0 && pread(fd, &byte, 1, (off_t)at) == 1);
    byte ^= bit;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    const struct timespec times[] = { before.st_atim, before.st_mtim };
    assert_int_equal(futimens(fd, times), 0);
    close(fd);
}

static void a_bit_that_rots_is_found_whenever_it_is_read(void **state)
{
    (void)state;
    put_files();
    token_files_t *files = open_files(SEQ, false);
    static uint32_t tokens[SEQ + 1];
    const uint64_t all = (TOKENS - 1) / SEQ;
    for (uint64_t i = 0; i < 1000; i++) {
        const uint64_t position = draw(all), at = position * SEQ * 2 + draw(2 * (SEQ + 1));
        const uint8_t bit = (uint8_t)(1u << draw(8));
        if (i % 2) assert_int_equal(token_files_read(files, position, 1, tokens, &why), 0);
        rot(at, bit);
        assert_int_equal(token_files_read(files, position, 1, tokens, &why), FAULT_DIGEST);
        rot(at, bit);
        assert_int_equal(token_files_read(files, position, 1, tokens, &why), 0);
    }
    token_files_close(&files);
}

TESTS(FOLDER_TEST(every_sample_is_proved_wherever_it_lies),
      FOLDER_TEST(no_flipped_bit_of_a_proof_is_believed),
      FOLDER_TEST(no_flipped_bit_of_a_description_is_believed),
      FOLDER_TEST(tokens_begin_where_their_file_says),
      FOLDER_TEST(a_bit_that_rots_is_found_whenever_it_is_read))
