// nfc_test -- normalization form C of strings that Hugging Face's normalizer gave, and its bounds.
// tests/peers/tokenizer_test.sh compares every code point with Hugging Face's.

#include "common/text/nfc.h"
#include "common/text/unicode.h"
#include "tests/test.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void check(const char *text, size_t count, const char *wanted, size_t wanted_count)
{
    struct why why = { 0 };
    uint8_t *normal;
    size_t normal_count;
    if (nfc_normalize((const uint8_t *)text, count, &why, &normal, &normal_count) < 0)
        fail_msg("\"%.*s\": %s", (int)count, text, why.text);
    if (normal_count != wanted_count || memcmp(normal, wanted, wanted_count) != 0)
        fail_msg("\"%.*s\": \"%.*s\"", (int)count, text, (int)normal_count, normal);
    free(normal);
}

static void test_strings(void **state)
{
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        { "", "" },
        { "plain", "plain" },
        { "cafe\u0301 cafe\u0301", "caf\u00e9 caf\u00e9" },
        { "\u0301e", "\u0301e" },             // Nothing to join
        { "q\u0307\u0323", "q\u0323\u0307" }, // Put in order
        { "\u1ea5\u0323", "\u1ead\u0301" },   // A mark comes between the parts of a letter
        { "\u1112\u1161\u11ab", "\ud55c" },   // Hangul
        { "\uac00\u11a8", "\uac01" },         //
        { "\u0344", "\u0308\u0301" },         // Falls apart, and stays so
        { "\u0958", "\u0915\u093c" },         //
        { "\u212b\uf900", "\u00c5\u8c48" },   // Becomes another
        { "=\u0338", "\u2260" },              //
        { "\U00011935\U00011930", "\U00011935\U00011930" }, // Newer than Hugging Face's table: stay
        { "\U000105d2\u0307", "\U000105d2\u0307" },         //
        { "\U0001e2ae\u0301\u0323", "\U0001e2ae\u0323\u0301" },
        { "x\u0301\U0001e2ae\u0323", "x\u0301\U0001e2ae\u0323" },
        { "\xff\u0301e\xcc", "\xff\u0301e\xcc" }, // No valid UTF-8
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t count = strlen(cases[i].wanted);
        check(cases[i].text, strlen(cases[i].text), cases[i].wanted, count);
        check(cases[i].wanted, count, cases[i].wanted, count); // A second time changes nothing
    }
    check("e\u0301\0e\u0301", 7, "\u00e9\0\u00e9", 5);
    assert_int_equal(nfc_begin((const uint8_t *)"abc\xff\0 \xc3\xa9", 8), 8);
    assert_int_equal(nfc_begin((const uint8_t *)"abce\xcc\x81", 6), 3);
}

// What is given to the library begins and ends so that the rest of the text does not matter: each
// piece of a text that is cut before a character without flags is normalized as in the whole.
static void test_stretches_are_independent(void **state)
{
    static const uint32_t points[] = { 'a',    0x301,  0x323, 0x344, 0x1ea5, 0x1100, 0x1161, 0x11a8,
                                       0xac00, 0x212b, 0x958, 0xdd9, 0xdcf,  0xdca,  ' ',    0x4e00,
                                       0xf900, 0x3131, 0x345, 0x334, '=',    0x338,  0x1d15f };
    uint32_t seed = 1;
    (void)state;
    for (int round = 0; round < 2000; round++) {
        uint8_t text[200], whole[800];
        size_t count = 0, cut = 0, parts = 0;
        for (int i = 0; i < 20; i++) {
            seed = seed * 1664525 + 1013904223;
            const uint32_t point = points[(seed >> 8) % (sizeof points / sizeof *points)];
            if (!(unicode_classes[point] & UNICODE_NFC_CHANGES)) cut = count;
            count += unicode_put(point, text + count);
        }
        uint8_t *one, *two, *all;
        size_t one_count, two_count, all_count;
        assert_int_equal(nfc_normalize(text, cut, NULL, &one, &one_count), 0);
        assert_int_equal(nfc_normalize(text + cut, count - cut, NULL, &two, &two_count), 0);
        assert_int_equal(nfc_normalize(text, count, NULL, &all, &all_count), 0);
        memcpy(whole, one, one_count), parts = one_count;
        memcpy(whole + parts, two, two_count), parts += two_count;
        assert_int_equal(parts, all_count);
        assert_memory_equal(whole, all, all_count);
        free(one), free(two), free(all);
    }
}

// Marks that stand in the worst order.
static void test_many_marks_are_bounded(void **state)
{
    enum { MARKS = NFC_MARKS_MAX, RUNS = 8, SECONDS_MAX = 2 };
    static uint8_t text[RUNS * (2 * MARKS + 1) + 4];
    struct why why = { 0 };
    size_t count = 0, marks = 1;
    uint8_t *normal;
    (void)state;
    for (int run = 0; run < RUNS; run++) {
        text[count++] = 'x';
        for (int i = 0; i < MARKS; i++) count += unicode_put(i % 2 ? 0x334 : 0x345, text + count);
    }
    const clock_t began = clock();
    assert_int_equal(nfc_normalize(text, count, &why, &normal, &marks), 0);
    assert_int_equal(marks, count);
    assert_true((clock() - began) / CLOCKS_PER_SEC < SECONDS_MAX);
    free(normal);
    count += unicode_put(0x345, text + count);
    assert_int_equal(nfc_normalize(text, count, &why, &normal, &marks), FAULT_LIMIT);
    assert_non_null(strstr(why.text, "more than 4096 combining characters in a row"));
}

TESTS(TEST(test_strings), TEST(test_stretches_are_independent), TEST(test_many_marks_are_bounded))
