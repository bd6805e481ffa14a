// selection_test -- many chosen numbers and their string of bits are the same thing, both ways, as
// the page says, and no string is longer than it may be.

#include "tests/unit/distro_fixture.h"
#include "tests/test.h"

#include "common/optimizer/selection.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBERS_MAX = 65536, BYTES_MAX = 1 << 14 };

static struct selection_tables tables;
static struct selection self;
static uint16_t numbers[NUMBERS_MAX], found[NUMBERS_MAX];
static float values[NUMBERS_MAX];
static uint8_t bytes[BYTES_MAX];

static int begin(void **state)
{
    (void)state;
    selection_tables_init(&tables);
    return 0;
}

static int read_one(const struct bits *bits, uint64_t at, struct why *why, uint16_t *ret_numbers,
                    uint32_t *ret_count, uint64_t *ret_signs)
{
    struct selection_reading one = { .bits = *bits, .at = at, .numbers = ret_numbers };
    uint32_t done;
    const int rc = selection_read_each(&self, &one, 1, why, &done);
    assert_int_equal(done, rc == 0);
    *ret_count = one.count, *ret_signs = one.signs;
    return rc;
}

static void write_at(uint32_t at, uint32_t count)
{
    memset(bytes, 0, sizeof bytes);
    struct bits_writer writer = bits_writer_at(bytes, at);
    selection_write(&self, numbers, values, count, &writer);
    bits_flush(&writer);
}

// What follows the string is garbage, as a neighbour's is: none of it counts.
static void there_and_back(uint32_t at, uint32_t count)
{
    write_at(at, count);
    const size_t size = (at + self.bits + 7) / 8;
    const struct bits bits = { bytes, size };
    struct why why = { "" };
    uint32_t got;
    uint64_t signs;
    assert_true(bits_are_zero(&(struct bits){ bytes, BYTES_MAX }, at + self.bits, 8 * BYTES_MAX));
    for (uint32_t bit = at + self.bits; bit < 8 * size; bit++)
        bytes[bit / 8] |= (uint8_t)(1u << bit % 8);
    if (read_one(&bits, at, &why, found, &got, &signs) < 0) fail_msg("%s", why.text);
    assert_int_equal(got, count);
    assert_memory_equal(found, numbers, count * sizeof numbers[0]);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(bits_at(&bits, signs + i) & 1, values[i] < 0.0f);
}

static uint32_t draw(uint64_t *seed, uint32_t first, uint32_t end, uint32_t wanted)
{
    uint32_t count = 0;
    for (uint32_t i = first; i < end && count < wanted; i++) {
        if (fixture_random(seed) % (end - i) >= wanted - count) continue;
        numbers[count] = (uint16_t)i;
        values[count++] = fixture_random(seed) & 1 ? -1.0f : 1.0f;
    }
    return count;
}

// By another program, which searches each slope's base alone: bits, shift, marks, cells, cell.
static void sizes_are_those_of_the_page(void **state)
{
    (void)state;
    static const uint32_t known[][7] = {
        { 1024, 64, 428, 1, 576, 9, 64 },
        { 1024, 13, 117, 3, 141, 3, 47 },
        { 256, 17, 111, 0, 256, 4, 64 },
        { 256, 256, 412, 0, 256, 4, 64 },
        { 64, 22, 80, 0, 64, 1, 64 },
        { 64, 64, 103, 0, 64, 1, 64 },
        { 43, 29, 69, 0, 43, 1, 43 },
        { 32, 32, 52, 0, 32, 1, 32 },
        { 2025, 40, 334, 2, 547, 9, 61 },
        { 1600, 12, 116, 4, 112, 2, 56 },
        { 4096, 11, 124, 5, 139, 3, 47 },
        { 4096, 4096, 6592, 0, 4096, 64, 64 },
        { 16384, 64, 684, 5, 576, 9, 64 },
        { 65536, 9, 141, 9, 137, 3, 46 },
        { 65536, 4096, 27392, 1, 36864, 576, 64 },
        { 65536, 65536, 105472, 0, 65536, 1024, 64 },
        { 4, 2, 6, 0, 4, 1, 4 },
        { 16, 1, 7, 1, 9, 1, 9 },
        { 35, 2, 13, 1, 20, 1, 20 },
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        selection_init(&self, &tables, known[i][0], known[i][1]);
        const uint32_t is[] = { self.elements, self.top_k, self.bits, self.shift,
                                self.marks,    self.cells, self.cell };
        assert_memory_equal(is, known[i], sizeof is);
    }
}

// 2 of 35: the words of 2, 1 and 0 marks have 1, 5 and 10 bits: 0, 10000 and 1000100000, and with the
// last one added 1, 00001 and zeros, the first bit lowest. 5 and 14 have the highs 2 and 7, the lows 1 and 0, the marks 2 and 7 + 1, whose rank is
// 2 + C(8, 2) = 30 in 8 bits; then lows 1, 0 and signs 0, 1.
static void the_bits_lie_where_the_page_says(void **state)
{
    (void)state;
    selection_init(&self, &tables, 35, 2);
    numbers[0] = 5, numbers[1] = 14, values[0] = 1.0f, values[1] = -1.0f;
    write_at(0, 2);
    assert_int_equal(le_get(bytes, 8), 1 | 30 << 1 | 1 << 9 | 1 << 12);
    write_at(0, 1); // Mark 2 in 5 bits, low 1, sign 0
    assert_int_equal(le_get(bytes, 8), 16 | 2 << 5 | 1 << 10);
    write_at(0, 0);
    assert_int_equal(le_get(bytes, 8), 0);
}

// The words are a prefix code, and the longest string that they allow fits: by trying all sums of
// counts, cell by cell.
static void no_string_is_longer(void **state)
{
    (void)state;
    static const uint32_t known[][2] = { { 1024, 64 }, { 1024, 13 }, { 256, 17 },   { 256, 100 },
                                         { 35, 2 },    { 64, 64 },   { 2025, 300 }, { 4096, 11 } };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        selection_init(&self, &tables, known[i][0], known[i][1]);
        uint32_t taken = 0;
        for (uint32_t c = 0; c <= self.count_max; c++) {
            const struct selection_word word = self.words[c];
            assert_true(word.bits >= 1 && word.bits <= SELECTION_WORD_BITS);
            taken += 1u << (SELECTION_WORD_BITS - word.bits);
            for (uint32_t d = 0; d < c; d++) {
                const uint32_t both =
                    word.bits < self.words[d].bits ? word.bits : self.words[d].bits;
                assert_true((word.word ^ self.words[d].word) & ((1u << both) - 1));
            }
        }
        assert_true(taken <= 1u << SELECTION_WORD_BITS);
        static uint32_t most[2][1025]; // By marks so far
        memset(most, 0, sizeof most);
        for (uint32_t cell = 0; cell < self.cells; cell++) {
            const uint32_t *before = most[cell % 2];
            uint32_t *after = most[(cell + 1) % 2];
            memset(after, 0, sizeof most[0]);
            for (uint32_t sum = 0; sum <= self.top_k; sum++)
                for (uint32_t c = 0; c <= self.count_max && c <= sum; c++) {
                    if (cell > 0 && before[sum - c] == 0) continue; // More than so many cells hold
                    if (cell == 0 && sum != c) continue;
                    const uint32_t bits = before[sum - c] + self.words[c].bits +
                                          self.words[c].rank_bits + c * (1 + self.shift);
                    if (bits > after[sum]) after[sum] = bits;
                }
        }
        for (uint32_t sum = 0; sum <= self.top_k; sum++)
            assert_true(most[self.cells % 2][sum] <= self.bits);
    }
}

static const uint32_t kinds[][2] = {
    { 1024, 64 },  { 1024, 13 },  { 1024, 700 }, { 1024, 1024 },  { 256, 17 },  { 64, 22 },
    { 64, 64 },    { 43, 29 },    { 33, 25 },    { 2025, 40 },    { 1600, 12 }, { 4096, 11 },
    { 4096, 300 }, { 16384, 64 }, { 65536, 9 },  { 65535, 4000 }, { 35, 2 },    { 16, 1 },
};

static void selections_go_there_and_back(void **state)
{
    (void)state;
    uint64_t seed = 93;
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++) {
        const uint32_t n = kinds[kind][0], k = kinds[kind][1];
        selection_init(&self, &tables, n, k);
        for (int round = 0; round < 300; round++) {
            const uint32_t count = round % 3 ? k : (uint32_t)(fixture_random(&seed) % (k + 1));
            const uint32_t width = round % 4 ? n : count; // All side by side
            const uint32_t first = (uint32_t)(fixture_random(&seed) % (n - width + 1));
            assert_int_equal(draw(&seed, first, first + width, count), count);
            there_and_back((uint32_t)(fixture_random(&seed) % 64), count);
        }
        there_and_back(7, draw(&seed, 0, k, k)); // The first ones, the last ones, none
        there_and_back(7, draw(&seed, n - k, n, k));
        there_and_back(7, 0);
    }
}

// In a cell of 64, for each place: the least and the greatest rank with each mark there.
static void every_border_of_a_mark_is_found(void **state)
{
    (void)state;
    selection_init(&self, &tables, 64, 64);
    for (uint32_t i = 0; i < 64; i++) values[i] = 1.0f;
    for (uint32_t count = 1; count <= 64; count++) {
        for (uint32_t mark = count - 1; mark < 64; mark++) {
            for (uint32_t below = 0; below < 2; below++) {
                for (uint32_t i = 0; i + 1 < count; i++)
                    numbers[i] = (uint16_t)(below ? mark - (count - 1) + i : i);
                numbers[count - 1] = (uint16_t)mark;
                there_and_back(0, count);
            }
        }
    }
}

// All strings of small selections: as many are accepted as there are contents, and each is what is
// written from what it says.
static void a_content_has_one_string(void **state)
{
    (void)state;
    static const uint32_t known[][3] = {
        { 35, 2, 1 + 70 + 595 * 4 }, { 16, 1, 33 }, { 17, 1, 35 }, { 4, 2, 33 }, { 5, 5, 243 },
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        uint32_t accepted = 0;
        selection_init(&self, &tables, known[i][0], known[i][1]);
        assert_true(self.bits <= 16);
        for (uint32_t string = 0; string < 1u << self.bits; string++) {
            uint8_t given[8];
            uint32_t count;
            uint64_t signs;
            le_put(given, string, sizeof given);
            const struct bits bits = { given, sizeof given };
            if (read_one(&bits, 0, NULL, numbers, &count, &signs) < 0) continue;
            for (uint32_t c = 0; c < count; c++)
                values[c] = bits_at(&bits, signs + c) & 1 ? -1.0f : 1.0f;
            write_at(0, count);
            assert_memory_equal(bytes, given, sizeof given);
            accepted++;
        }
        assert_int_equal(accepted, known[i][2]);
    }
}

// A few bits turned over: refused, or another content's string. Some of both must occur.
static void damaged_strings_are_refused_or_canonical(void **state)
{
    (void)state;
    uint64_t seed = 94;
    uint32_t passed = 0, refused = 0;
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++) {
        const uint32_t n = kinds[kind][0], k = kinds[kind][1];
        selection_init(&self, &tables, n, k);
        for (int round = 0; round < 300; round++) {
            static uint8_t given[BYTES_MAX];
            uint32_t count;
            uint64_t signs;
            write_at(0, draw(&seed, 0, n, round % 2 ? k : k / 2));
            for (uint64_t left = fixture_random(&seed) % 3 + 1; left > 0; left--) {
                const uint32_t bit = (uint32_t)(fixture_random(&seed) % self.bits);
                bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            }
            memcpy(given, bytes, sizeof given);
            const struct bits bits = { given, sizeof given };
            struct why why = { "" };
            if (read_one(&bits, 0, &why, numbers, &count, &signs) < 0) {
                assert_true(why.text[0] != 0);
                refused++;
                continue;
            }
            assert_true(count <= k && (count == 0 || numbers[count - 1] < n));
            for (uint32_t c = 0; c < count; c++)
                values[c] = bits_at(&bits, signs + c) & 1 ? -1.0f : 1.0f;
            write_at(0, count);
            assert_memory_equal(bytes, given, sizeof given);
            passed++;
        }
    }
    assert_true(passed > 500 && refused > 500);
}

// Several at once are what they are alone, whether their cells have room together or not; of two
// faults the first one counts, wherever it shows.
static void several_are_read_as_one_after_the_other(void **state)
{
    (void)state;
    enum { TOGETHER = 9, MORE = 40 };
    static uint8_t given[MORE][BYTES_MAX];
    static uint16_t together[MORE][NUMBERS_MAX];
    struct selection_reading each[MORE];
    uint64_t seed = 95;
    uint32_t faults = 0, whole = 0;
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++) {
        const uint32_t n = kinds[kind][0], k = kinds[kind][1];
        selection_init(&self, &tables, n, k);
        for (uint32_t round = 0; round < 30; round++) {
            const uint32_t total = round % 3 ? TOGETHER : MORE;
            uint32_t count = 0, first = total, done;
            uint64_t signs;
            struct why why = { "" }, first_why = { "" };
            int fault = 0;
            for (uint32_t i = 0; i < total; i++) {
                write_at(0, draw(&seed, 0, n, (uint32_t)(fixture_random(&seed) % (k + 1))));
                const uint32_t bit = (uint32_t)(fixture_random(&seed) % self.bits);
                if (round % 2 && i % 4 == 3) bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
                memcpy(given[i], bytes, sizeof bytes);
                each[i] = (struct selection_reading){ .bits = { given[i], sizeof bytes },
                                                      .numbers = together[i] };
            }
            const int rc = selection_read_each(&self, each, total, &why, &done);
            for (uint32_t i = 0; i < total && fault == 0; i++) {
                fault = read_one(&each[i].bits, 0, &first_why, found, &count, &signs);
                if (fault < 0) first = i;
                if (fault < 0) break;
                assert_true(i < done && each[i].count == count && each[i].signs == signs);
                assert_memory_equal(together[i], found, count * sizeof found[0]);
            }
            assert_int_equal(rc, fault);
            assert_int_equal(done, first);
            assert_string_equal(why.text, first_why.text);
            faults += rc < 0, whole += rc == 0;
        }
    }
    assert_true(faults > 50 && whole > 200);
}

// ---- refusals: strings by hand, of 2 of 35 and of 17 of 256 (four cells of 64, no shift)

struct field {
    uint32_t value, width;
};

static int read_fields(const struct field *fields, size_t count, struct why *why)
{
    memset(bytes, 0, sizeof bytes);
    struct bits_writer writer = bits_writer_at(bytes, 0);
    for (size_t i = 0; i < count; i++) bits_write(&writer, fields[i].value, fields[i].width);
    bits_flush(&writer);
    const struct bits bits = { bytes, sizeof bytes };
    uint32_t marks;
    uint64_t signs;
    return read_one(&bits, 0, why, found, &marks, &signs);
}

enum { ONE_MARK = 16, TWO_MARKS = 1 }; // Words of 5 bits and of 1

static void malformed_strings_are_refused(void **state)
{
    (void)state;
    static const struct {
        struct field fields[4];
        int fault;
        const char *says;
    } known[] = {
        { { { TWO_MARKS, 1 }, { 30, 8 }, { 1, 2 }, { 2, 2 } }, 0, "" },
        { { { ONE_MARK, 5 }, { 17, 5 }, { 0, 1 }, { 1, 1 } }, 0, "" },           // 34, the last
        { { { 0x3ee, 10 } }, FAULT_FORMAT, "no word" },                          // Not in the code
        { { { TWO_MARKS, 1 }, { 190, 8 } }, FAULT_RANGE, "below 190" },          // Of 20: 190 pairs
        { { { ONE_MARK, 5 }, { 20, 5 } }, FAULT_RANGE, "below 20" },             // Of 20 marks
        { { { ONE_MARK, 5 }, { 18, 5 } }, FAULT_RANGE, "must be below 18" },     // High 18 of 0..17
        { { { ONE_MARK, 5 }, { 17, 5 }, { 1, 1 } }, FAULT_RANGE, "0..34" },      // 35
        { { { TWO_MARKS, 1 }, { 0, 8 }, { 1, 2 } }, FAULT_RANGE, "not ascend" }, // 1, 0
        { { { TWO_MARKS, 1 }, { 0, 8 }, { 3, 2 } }, FAULT_RANGE, "not ascend" }, // 1, 1
        { { { TWO_MARKS, 1 }, { 0, 8 }, { 2, 2 } }, 0, "" },                     // 0, 1
        { { { ONE_MARK, 5 }, { 3, 5 }, { 0, 2 }, { 1, 1 } }, FAULT_FORMAT, "behind" },
        { { { 0, 10 }, { 1, 1 } }, FAULT_FORMAT, "behind" }, // None
    };
    selection_init(&self, &tables, 35, 2);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct why why = { "" };
        assert_int_equal(read_fields(known[i].fields, 4, &why), known[i].fault);
        if (!strstr(why.text, known[i].says)) fail_msg("row %zu says: %s", i, why.text);
    }
    selection_init(&self, &tables, 256, 17);
    const struct selection_word nine = self.words[9];
    const struct field twice[] = {
        { nine.word, nine.bits }, { 0, 32 }, { 0, nine.rank_bits - 32u }, { nine.word, nine.bits }
    }; // 18 marks
    struct why why = { "" };
    assert_int_equal(read_fields(twice, 4, &why), FAULT_FORMAT);
    assert_non_null(strstr(why.text, "18 coefficients up to cell 1, it must be 0..17"));
}

// A mark beyond the last high would wrap to a small number in 16 bits.
static void a_number_beyond_16_bits_is_refused(void **state)
{
    (void)state;
    selection_init(&self, &tables, 65536, 9);
    assert_int_equal(self.cells * self.cell, 138); // Highs 0..127, so 9 or 10 marks too many
    const uint32_t in_last = 128 - 2 * self.cell;
    const struct field fields[] = { { self.words[0].word, self.words[0].bits },
                                    { self.words[0].word, self.words[0].bits },
                                    { self.words[1].word, self.words[1].bits },
                                    { in_last, self.words[1].rank_bits } };
    struct why why = { "" };
    assert_int_equal(read_fields(fields, 4, &why), FAULT_RANGE);
    assert_non_null(strstr(why.text, "must be below 128"));
}

TESTS_WITH(begin, NULL, TEST(sizes_are_those_of_the_page), TEST(the_bits_lie_where_the_page_says),
           TEST(no_string_is_longer), TEST(selections_go_there_and_back),
           TEST(every_border_of_a_mark_is_found), TEST(a_content_has_one_string),
           TEST(damaged_strings_are_refused_or_canonical),
           TEST(several_are_read_as_one_after_the_other), TEST(malformed_strings_are_refused),
           TEST(a_number_beyond_16_bits_is_refused))
