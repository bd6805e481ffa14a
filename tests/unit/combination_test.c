// combination_test -- a choice of k of n numbers and its state are the same thing, both ways, as
// the page says.

#include "tests/unit/distro_fixture.h"
#include "tests/test.h"

#include "common/optimizer/combination.h"

#include <string.h>

typedef combination_number number_t;

// Decodes, holds what came against the page, encodes again.
static void there_and_back(const struct combination *self, number_t number)
{
    uint16_t numbers[COMBINATION_COUNT_MAX];
    struct combination_state found = { .numbers = numbers };
    uint32_t signs;
    const uint32_t count = combination_split(self, number, &signs, &found.rank);
    found.count = count;
    assert_true(count <= self->top_k && signs >> count == 0);
    assert_true(number >= self->first[count] && number < self->first[count + 1]);
    combination_decode(self, &found, 1);
    for (uint32_t i = 0; i < count; i++)
        assert_true(numbers[i] < self->elements && (i == 0 || numbers[i] > numbers[i - 1]));
    assert_true(combination_encode(self, numbers, signs, count) == number);
}

// Every chunk of up to 14 numbers: each state is a number, each number a state, by Pascal's
// triangle.
static void every_number_of_a_small_chunk_is_one_state(void **state)
{
    (void)state;
    uint64_t pascal[15][15] = { { 0 } };
    for (uint32_t n = 0; n < 15; n++) {
        pascal[n][0] = 1;
        for (uint32_t k = 1; k <= n; k++) pascal[n][k] = pascal[n - 1][k - 1] + pascal[n - 1][k];
    }
    for (uint32_t n = 1; n < 15; n++) {
        for (uint32_t k = 1; k <= n && k <= 6; k++) {
            struct combination self;
            combination_init(&self, n, k);
            uint64_t states = 0;
            for (uint32_t c = 0; c <= k; c++) states += pascal[n][c] << c;
            assert_true(self.first[k + 1] == states);
            assert_true((number_t)1 << self.bits >= states);
            assert_true(self.bits == 0 || (number_t)1 << (self.bits - 1) < states);
            for (number_t number = 0; number < states; number++) there_and_back(&self, number);
        }
    }
}

// Colexicographic order, signs fastest: the first pairs of 4 with one sign bit set here and there.
static void the_order_is_the_one_of_the_page(void **state)
{
    (void)state;
    struct combination self;
    combination_init(&self, 4, 2);
    assert_int_equal(self.first[3], 1 + 4 * 2 + 6 * 4);
    static const uint16_t pairs[6][2] = {
        { 0, 1 }, { 0, 2 }, { 1, 2 }, { 0, 3 }, { 1, 3 }, { 2, 3 }
    };
    assert_int_equal(combination_encode(&self, NULL, 0, 0), 0);
    for (uint32_t a = 0; a < 4; a++)
        for (uint32_t sign = 0; sign < 2; sign++)
            assert_int_equal(combination_encode(&self, (uint16_t[]){ (uint16_t)a }, sign, 1),
                             1 + 2 * a + sign);
    for (uint32_t rank = 0; rank < 6; rank++)
        for (uint32_t signs = 0; signs < 4; signs++)
            assert_int_equal(combination_encode(&self, pairs[rank], signs, 2),
                             9 + 4 * rank + signs);
}

static number_t number_below(number_t limit, uint64_t *seed)
{
    return ((number_t)fixture_random(seed) << 64 | fixture_random(seed)) % limit;
}

static void real_chunks_go_there_and_back(void **state)
{
    (void)state;
    uint64_t seed = 91;
    static const uint32_t known[][3] = {
        { 4096, 8, 89 },  { 4096, 10, 109 }, { 4096, 1, 14 },   { 3072, 6, 67 },  { 2752, 5, 56 },
        { 2304, 5, 54 },  { 1600, 3, 33 },   { 65536, 8, 121 }, { 65536, 1, 18 }, { 1024, 12, 104 },
        { 256, 16, 100 }, { 64, 8, 41 },     { 64, 21, 77 },    { 33, 21, 52 },   { 32, 25, 51 },
        { 17, 17, 27 },   { 1, 1, 2 },       { 2, 2, 4 },
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct combination self;
        combination_init(&self, known[i][0], known[i][1]);
        assert_int_equal(self.bits, known[i][2]);
        for (uint32_t c = 0; c <= known[i][1]; c++) { // Where floats round worst: the borders
            there_and_back(&self, self.first[c]);
            there_and_back(&self, self.first[c + 1] - 1);
        }
        for (int round = 0; round < 20000; round++)
            there_and_back(&self, number_below(self.first[known[i][1] + 1], &seed));
    }
}

// The greatest number that a rank holds, and the one before it: a guess must not be off by one.
static void every_border_of_a_position_is_found(void **state)
{
    (void)state;
    struct combination self;
    combination_init(&self, 4096, 8);
    uint16_t numbers[8];
    for (uint32_t a = 7; a < 4096; a++) {
        for (uint32_t below = 0; below < 2; below++) { // The least and the greatest with a on top
            for (uint16_t i = 0; i < 7; i++) numbers[i] = below ? (uint16_t)(a - 7 + i) : i;
            numbers[7] = (uint16_t)a;
            there_and_back(&self, combination_encode(&self, numbers, a % 256, 8));
        }
    }
}

// States beside each other, of whatever counts, do not disturb each other.
static void several_at_once_are_each_alone(void **state)
{
    (void)state;
    enum { MANY = COMBINATION_STATES_MAX };
    uint64_t seed = 92;
    struct combination self;
    combination_init(&self, 4096, 8);
    for (int round = 0; round < 2000; round++) {
        struct combination_state states[MANY];
        uint16_t numbers[MANY][8];
        uint32_t signs[MANY];
        number_t number[MANY];
        for (uint32_t i = 0; i < MANY; i++) { // Of every count alike often
            number[i] = number_below(self.first[fixture_random(&seed) % 9 + 1], &seed);
            states[i].numbers = numbers[i];
            states[i].count = combination_split(&self, number[i], &signs[i], &states[i].rank);
        }
        const uint32_t count = 1 + (uint32_t)(fixture_random(&seed) % MANY);
        combination_decode(&self, states, count);
        for (uint32_t i = 0; i < count; i++)
            assert_true(combination_encode(&self, numbers[i], signs[i], states[i].count) ==
                        number[i]);
    }
}

static void what_does_not_fit_is_said(void **state)
{
    (void)state;
    assert_true(combination_fits(4096, 10));
    assert_false(combination_fits(4096, 11));
    assert_true(combination_fits(65536, 8));
    assert_false(combination_fits(65536, 9));
    assert_true(combination_fits(32, 25));
    assert_false(combination_fits(32, 26));
    assert_false(combination_fits(33, 25));
    for (uint32_t n = 1; n <= 65536; n = n < 300 ? n + 1 : n + 977) // No k beyond the arrays
        for (uint32_t k = 1; k <= n && k < 300; k++)
            if (combination_fits(n, k)) assert_true(k <= COMBINATION_COUNT_MAX);
}

TESTS(TEST(every_number_of_a_small_chunk_is_one_state), TEST(the_order_is_the_one_of_the_page),
      TEST(real_chunks_go_there_and_back), TEST(every_border_of_a_position_is_found),
      TEST(several_at_once_are_each_alone), TEST(what_does_not_fit_is_said))
