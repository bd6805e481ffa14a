// bloom_test -- a Bloom filter has Psyche's bits, the stated rate of false positives, and refuses
// what cannot be one.

#include "common/pace/rounds/bloom.h"
#include "tests/test.h"

#include <math.h>
#include <string.h>

static uint64_t words[BLOOM_WORDS(MEMBERS_MAX)], other_words[BLOOM_WORDS(MEMBERS_MAX)];
static uint8_t bytes[BLOOM_HEAD_BYTES + 8 * BLOOM_WORDS(MEMBERS_MAX)];

static struct hash item_of(uint64_t number) { return hash_of(&number, sizeof number); }

// From Psyche's sources: SHA-256 of 32 zero bytes, 1024 bits.
static void places_are_those_of_psyche(void **state)
{
    (void)state;
    const uint8_t zeros[32] = { 0 };
    const struct hash item = hash_of(zeros, sizeof zeros);
    assert_int_equal(bloom_place(&item, 1, 1024), 842);
    assert_int_equal(bloom_place(&item, 0xdeadbeef, 1024), 216);
}

// The integers agree with the formulas for every n there can be.
static void the_size_follows_the_formula(void **state)
{
    (void)state;
    const long double ln2 = logl(2.0L);
    for (uint32_t n = 1; n <= MEMBERS_MAX; n++) {
        struct bloom bloom;
        bloom_init(&bloom, n, 0, words);
        const uint32_t least = (uint32_t)ceill(-(long double)n * logl(0.01L) / (ln2 * ln2));
        assert_int_equal(bloom.bits, (least + 63) / 64 * 64);
        const uint32_t keys = (uint32_t)roundl((long double)bloom.bits / n * ln2);
        assert_int_equal(bloom.keys, keys < 1 ? 1 : keys);
        assert_true(bloom.bits / 64 <= BLOOM_WORDS(n));
        assert_int_equal(bloom_bytes(n), BLOOM_HEAD_BYTES + bloom.bits / 8);
    }
}

// Over `filters` seeds: everything added is found, and of what was not, the share that is found
// too.
static double false_positives(uint32_t n, int filters, int asked)
{
    int found = 0;
    for (int f = 0; f < filters; f++) {
        struct bloom bloom;
        bloom_init(&bloom, n, (uint64_t)f * 7919 + n, words);
        for (uint32_t i = 0; i < n; i++) {
            const struct hash item = item_of((uint64_t)f << 32 | i);
            bloom_add(&bloom, &item);
        }
        for (uint32_t i = 0; i < n; i++) {
            const struct hash item = item_of((uint64_t)f << 32 | i);
            assert_true(bloom_has(&bloom, &item));
        }
        for (int i = 0; i < asked; i++) {
            const struct hash item = item_of((uint64_t)f << 32 | (1u << 31) | (uint32_t)i);
            found += bloom_has(&bloom, &item);
        }
    }
    return (double)found / filters / asked;
}

static void false_positives_are_one_in_a_hundred(void **state)
{
    (void)state;
    static const struct {
        uint32_t n;
        int filters, asked;
    } sizes[] = {
        { 1, 200, 200 },    { 8, 400, 250 },    { 64, 200, 500 },
        { 256, 100, 1000 }, { 1000, 20, 4000 }, { 10000, 3, 25000 },
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const double rate = false_positives(sizes[i].n, sizes[i].filters, sizes[i].asked);
        print_message("n = %5u: %.2f %% false positives\n", sizes[i].n, rate * 100);
        assert_true(rate <= 0.013);
    }
}

static void what_is_stored_loads(void **state)
{
    (void)state;
    for (uint32_t n = 0; n <= 300; n += 25) {
        struct bloom bloom, loaded;
        bloom_init(&bloom, n, 77 + n, words);
        for (uint32_t i = 0; i < n; i++) {
            const struct hash item = item_of(i);
            bloom_add(&bloom, &item);
        }
        bloom_store(&bloom, bytes);
        assert_true(bloom_load(bytes, bloom_bytes(n), n, other_words, &loaded));
        assert_int_equal(loaded.seed, bloom.seed);
        assert_int_equal(loaded.keys, bloom.keys);
        assert_memory_equal(words, other_words, bloom.bits / 8);
    }
}

static void what_cannot_be_true_is_refused(void **state)
{
    (void)state;
    struct bloom bloom, loaded = { .seed = 42 };
    const size_t count = bloom_bytes(100);
    bloom_init(&bloom, 100, 5, words);
    bloom_store(&bloom, bytes);
    assert_false(bloom_load(bytes, count - 1, 100, other_words, &loaded));
    assert_false(bloom_load(bytes, count + 1, 100, other_words, &loaded));
    assert_false(bloom_load(bytes, 0, 100, other_words, &loaded));
    assert_false(bloom_load(bytes, count, 200, other_words, &loaded)); // The receiver knows n
    assert_int_equal(bloom_bytes(99), count); // As large, and yet another n
    assert_false(bloom_load(bytes, count, 99, other_words, &loaded));
    memset(bytes + BLOOM_HEAD_BYTES, 0xff, count - BLOOM_HEAD_BYTES); // Affirms everything
    assert_false(bloom_load(bytes, count, 100, other_words, &loaded));
    assert_int_equal(loaded.seed, 42);
    for (uint32_t n = 1; n <= MEMBERS_MAX; n++) { // Whatever n is, that is a lie
        bloom_init(&bloom, n, 0, words);
        assert_true(bloom.keys * n < bloom.bits);
    }
}

static void empty_has_nothing(void **state)
{
    (void)state;
    struct bloom bloom;
    bloom_init(&bloom, 0, 9, words);
    assert_int_equal(bloom.items, 1);
    for (uint64_t i = 0; i < 100; i++) {
        const struct hash item = item_of(i);
        assert_false(bloom_has(&bloom, &item));
    }
}

TESTS(TEST(places_are_those_of_psyche), TEST(the_size_follows_the_formula),
      TEST(false_positives_are_one_in_a_hundred), TEST(what_is_stored_loads),
      TEST(what_cannot_be_true_is_refused), TEST(empty_has_nothing))
