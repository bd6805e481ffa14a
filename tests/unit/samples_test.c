// The pure parts of the data plane: the shuffle, the NumPy header, which tokens are which sample.
#include "common/data/npy.h"
#include "common/data/samples.h"
#include "common/data/shuffle.h"
#include "tests/test.h"
#include <string.h>

static struct why why;

// ---- shuffle

static void test_shuffle_golden(void **state)
{
    (void)state;
    // From an independent implementation of the formulas in shuffle.h, in another language
    static const uint64_t pass0[] = { 7, 8, 4, 3, 6, 2, 1, 9, 5, 0 };
    static const uint64_t pass1[] = { 1, 3, 5, 8, 7, 9, 2, 0, 4, 6 };
    uint8_t seed[SHUFFLE_SEED_BYTES];
    struct shuffle shuffle;
    for (int i = 0; i < SHUFFLE_SEED_BYTES; i++) seed[i] = (uint8_t)i;
    shuffle_init(&shuffle, 10, seed, 0);
    for (uint64_t i = 0; i < 10; i++) assert_int_equal(shuffle_at(&shuffle, i), pass0[i]);
    shuffle_init(&shuffle, 10, seed, 1);
    for (uint64_t i = 0; i < 10; i++) assert_int_equal(shuffle_at(&shuffle, i), pass1[i]);
    shuffle_init(&shuffle, (UINT64_C(1) << 40) + 3, seed, 7);
    assert_true(shuffle_at(&shuffle, 0) == 797069918002u);
    assert_true(shuffle_at(&shuffle, 1) == 1029901933640u);
    assert_true(shuffle_at(&shuffle, UINT64_C(1) << 40) == 190421077345u);
}

static void test_shuffle_is_a_bijection(void **state)
{
    (void)state;
    const uint8_t seed[SHUFFLE_SEED_BYTES] = { 42 };
    struct shuffle shuffle;
    for (uint64_t n = 1; n <= 130; n++) {
        uint8_t seen[130] = { 0 };
        shuffle_init(&shuffle, n, seed, n);
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t to = shuffle_at(&shuffle, i);
            assert_true(to < n && !seen[to]);
            seen[to] = 1;
        }
    }
}

// Over many passes every index visits every place about equally often, small n included.
static void test_shuffle_is_even(void **state)
{
    (void)state;
    enum { N = 6, PASSES = 6000 };
    const uint8_t seed[SHUFFLE_SEED_BYTES] = { 1, 2, 3 };
    uint32_t visits[N][N] = { { 0 } };
    struct shuffle shuffle;
    for (uint64_t pass = 0; pass < PASSES; pass++) {
        shuffle_init(&shuffle, N, seed, pass);
        for (uint64_t i = 0; i < N; i++) visits[i][shuffle_at(&shuffle, i)]++;
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) // 1000 expected, 29 its deviation
            assert_in_range(visits[i][j], 1000 - 150, 1000 + 150);
}

// ---- npy

static const char good[] = "{'descr': '<u2', 'fortran_order': False, 'shape': (8,), }    \n";

static int parse(const char *dictionary, uint64_t tokens, struct npy *npy)
{
    uint8_t bytes[512] = "\x93NUMPY\x01";
    const size_t length = strlen(dictionary);
    bytes[8] = (uint8_t)length;
    memcpy(bytes + 10, dictionary, length);
    return npy_parse(bytes, 10 + length, 10 + length + 2 * tokens, "x.npy", &why, npy);
}

static void test_npy_header(void **state)
{
    (void)state;
    struct npy npy;
    assert_int_equal(parse(good, 8, &npy), 0);
    assert_int_equal(npy.tokens, 8);
    assert_int_equal(npy.token_bytes, 2);
    assert_int_equal(npy.offset, 10 + strlen(good));
    assert_int_equal(parse("{\"shape\":(8,),\"fortran_order\":False,\"descr\":\"<u2\"}", 8, &npy),
                     0);

    static const struct {
        const char *dictionary;
        int fault;
        const char *word;
    } bad[] = {
        { "{'descr': '|u1', 'fortran_order': False, 'shape': (8,), }", FAULT_UNSUPPORTED, "|u1" },
        { "{'descr': '<i8', 'fortran_order': False, 'shape': (8,), }", FAULT_UNSUPPORTED, "<i8" },
        { "{'descr': '>u2', 'fortran_order': False, 'shape': (8,), }", FAULT_UNSUPPORTED, ">u2" },
        { "{'descr': '<u2', 'fortran_order': True, 'shape': (8,), }", FAULT_UNSUPPORTED,
          "fortran" },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (4, 2), }", FAULT_UNSUPPORTED,
          "2 dim" },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (), }", FAULT_UNSUPPORTED, "0 dim" },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (9,), }", FAULT_FORMAT, "9 tokens" },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (8), }", FAULT_FORMAT, "dictionary" },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (8,), }   \n", FAULT_FORMAT,
          "elements of 2 bytes begin at byte 71" },
        { "{'descr': '<u2', 'fortran_order': False, }", FAULT_FORMAT, "dictionary" },
        { "{'descr': '<u2', 'descr': '<u2', 'fortran_order': False, 'shape': (8,), }", FAULT_FORMAT,
          "dictionary" },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (8,), 'x': 1}", FAULT_FORMAT,
          "dictionary" },
        { "{'descr': '<u2', 'fortran_order': 0, 'shape': (8,), }", FAULT_FORMAT, "dictionary" },
        { "{'descr': [('a', '<u2')], 'fortran_order': False, 'shape': (8,), }", FAULT_FORMAT,
          "dictio" },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (8,), } x", FAULT_FORMAT,
          "dictionary" },
        { "{'descr': '<u2', 'fortran_order': False, 'shape': (99999999999999999999,)}",
          FAULT_FORMAT, "dictionary" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(parse(bad[i].dictionary, 8, &npy), bad[i].fault);
        if (!strstr(why.text, bad[i].word)) fail_msg("'%s' not in '%s'", bad[i].word, why.text);
    }
}

// Any bytes give an answer: every truncation a refusal, every mutation no accident.
static void test_npy_is_total(void **state)
{
    (void)state;
    uint8_t bytes[128] = "\x93NUMPY\x01";
    const size_t length = 10 + strlen(good);
    struct npy npy;
    bytes[8] = (uint8_t)strlen(good);
    memcpy(bytes + 10, good, strlen(good));
    for (size_t cut = 0; cut < length; cut++)
        assert_true(npy_parse(bytes, cut, cut, "x.npy", &why, &npy) < 0);
    uint32_t random = 1, accepted = 0;
    for (int round = 0; round < 20000; round++) {
        uint8_t copy[128];
        memcpy(copy, bytes, sizeof copy);
        for (int i = 0; i < 1 + round % 3; i++) { // Its own characters, elsewhere; or any
            random = random * 1664525 + 1013904223;
            copy[(random >> 16) % length] =
                round % 4 ? copy[(random >> 4) % length] : (uint8_t)(random >> 8);
        }
        if (npy_parse(copy, length, length + 16, "x.npy", &why, &npy) == 0) {
            assert_true(npy.offset + npy.tokens * npy.token_bytes == length + 16);
            accepted++;
        }
    }
    assert_in_range(accepted, 1, 10000); // Blanks and quotes may change harmlessly
}

static void test_npy_versions(void **state)
{
    (void)state;
    struct npy npy;
    uint8_t bytes[256] = "\x93NUMPY\x02";
    bytes[8] = (uint8_t)strlen(good);
    memcpy(bytes + 12, good, strlen(good));
    assert_int_equal(npy_parse(bytes, 12 + strlen(good), 12 + strlen(good) + 16, "x", &why, &npy),
                     0);
    assert_int_equal(npy.offset, 12 + strlen(good));
    bytes[6] = 3;
    assert_int_equal(npy_parse(bytes, 12 + strlen(good), 12 + strlen(good) + 16, "x", &why, &npy),
                     0);
    bytes[6] = 4;
    assert_int_equal(npy_parse(bytes, 200, 200, "x", &why, &npy), FAULT_UNSUPPORTED);
    bytes[6] = 2;
    bytes[10] = 1; // 64 KiB of header
    assert_int_equal(npy_parse(bytes, 200, 200, "x", &why, &npy), FAULT_LIMIT);
}

// ---- samples

static void test_more_samples_than_32_bits(void **state)
{
    (void)state;
    struct samples samples;
    const struct samples_config config = { .token_bytes = 2, .seq_len = 1 };
    assert_int_equal(samples_init(&samples, &config, &why), 0);
    assert_int_equal(samples_add(&samples, "a", 0, (UINT64_C(1) << 33) + 1, &why), 0);
    assert_int_equal(samples_add(&samples, "b", 100, (UINT64_C(1) << 34) + 1, &why), 0);
    assert_true(samples.count == UINT64_C(3) << 33);
    struct sample_place place = samples_locate(&samples, (UINT64_C(1) << 33) - 1);
    assert_int_equal(place.file, 0);
    assert_true(place.offset == (UINT64_C(1) << 34) - 2);
    place = samples_locate(&samples, (UINT64_C(1) << 33) + 5);
    assert_int_equal(place.file, 1);
    assert_true(place.offset == 110 && place.token == 5);
    place = samples_locate(&samples, (UINT64_C(3) << 33) * 9 + 3);
    assert_int_equal(place.file, 0);
    assert_true(place.token == 3);
    assert_int_equal(samples_add(&samples, "c", 0, UINT64_C(1) << 63, &why), FAULT_LIMIT);
    samples_free(&samples);
}

TESTS(TEST(test_shuffle_golden), TEST(test_shuffle_is_a_bijection), TEST(test_shuffle_is_even),
      TEST(test_npy_header), TEST(test_npy_is_total), TEST(test_npy_versions),
      TEST(test_more_samples_than_32_bits))
