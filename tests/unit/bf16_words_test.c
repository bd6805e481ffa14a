// bf16_words_test -- every bfloat16 goes through as it is, and every float between two becomes the nearest.

#include "common/learner/bf16_words.h"
#include "tests/test.h"
#include <math.h>
#include <string.h>

static float of_bits(uint32_t bits)
{
    float a;
    memcpy(&a, &bits, sizeof a);
    return a;
}

static uint32_t bits_of(float a)
{
    uint32_t bits;
    memcpy(&bits, &a, sizeof bits);
    return bits;
}

static float through(float a)
{
    float words[1], back[1];
    bf16_words_pack(&a, 1, words);
    bf16_words_unpack(words, 1, back);
    return back[0];
}

// All 65,536 of them, also NaN with its payload.
static void what_is_one_stays_as_it_is(void **state)
{
    (void)state;
    for (uint32_t upper = 0; upper <= 0xffff; upper++) {
        const float a = of_bits(upper << 16), back = through(a);
        if (isnan(a)) assert_true(isnan(back) && signbit(back) == signbit(a));
        else assert_int_equal(bits_of(back), upper << 16);
    }
}

// A quarter and three quarters of the way to the next one, and halfway, where the even one of the two is meant.
static void what_lies_between_becomes_the_nearest(void **state)
{
    (void)state;
    for (uint32_t upper = 0; upper < 0x7f80; upper += 7) {
        const uint32_t even = upper + (upper & 1);
        assert_int_equal(bits_of(through(of_bits(upper << 16 | 0x4000))), upper << 16);
        assert_int_equal(bits_of(through(of_bits(upper << 16 | 0xc000))), (upper + 1) << 16);
        assert_int_equal(bits_of(through(of_bits(upper << 16 | 0x8000))), even << 16);
        assert_int_equal(bits_of(through(-of_bits(upper << 16 | 0x7fff))),
                         0x80000000 | upper << 16);
    }
    assert_true(isinf(through(of_bits(0x7f7fffff)))); // Beyond the largest one
    assert_true(isnan(through(of_bits(0x7f800001)))); // Its payload lies below what is kept
}

static void any_number_of_floats(void **state)
{
    (void)state;
    float from[67], words[34], back[68];
    for (uint32_t i = 0; i < 67; i++) from[i] = (float)i - 30.5f;
    for (uint32_t count = 0; count <= 67; count++) {
        const uint64_t room = bf16_words_count(count);
        for (uint32_t i = 0; i < 34; i++) words[i] = -1;
        for (uint32_t i = 0; i < 68; i++) back[i] = -1;
        bf16_words_pack(from, count, words);
        bf16_words_unpack(words, count, back);
        assert_memory_equal(back, from, count * sizeof *from);
        assert_true(back[count] == -1 && (room == 34 || words[room] == -1));
    }
}

TESTS(TEST(what_is_one_stays_as_it_is), TEST(what_lies_between_becomes_the_nearest),
      TEST(any_number_of_floats))
