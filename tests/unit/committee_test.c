// The golden values come from Psyche's own shuffle sources, compiled and run; the hashes of whole
// lists from a separate implementation (one index at a time, in another language) that reproduces
// them.

#include "common/run/committee.h"
#include "tests/test.h"

#include <string.h>

static uint32_t positions[MEMBERS_MAX];

static void assert_positions(const uint32_t *expected, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) assert_int_equal(positions[i], expected[i]);
}

static void small_lists_are_those_of_psyche(void **state)
{
    (void)state;
    static const uint32_t committee_12345[] = { 1, 7, 2, 9, 5, 0, 8, 3, 4, 6 };
    static const uint32_t witness_12345[] = { 7, 4, 9, 2, 6, 1, 0, 3, 5, 8 };
    static const uint32_t witness_7[] = { 3, 2, 0, 1, 4 };
    committee_positions(12345, SALT_COMMITTEE, 10, positions);
    assert_positions(committee_12345, 10);
    committee_positions(12345, SALT_WITNESS, 10, positions);
    assert_positions(witness_12345, 10);
    committee_positions(7, SALT_WITNESS, 5, positions);
    assert_positions(witness_7, 5);
}

// SHA-256 of the positions as 32-bit little-endian numbers.
static void large_lists_are_those_of_psyche(void **state)
{
    (void)state;
    static const struct {
        uint64_t seed;
        enum committee_salt salt;
        uint32_t n;
        const char *digest;
    } lists[] = {
        { 12345, SALT_COMMITTEE, 1,
          "df3f619804a92fdb4057192dc43dd748ea778adc52bc498ce80524c014b81119" },
        { 12345, SALT_COMMITTEE, 2,
          "7c9fa136d4413fa6173637e883b6998d32e1d675f88cddff9dcbcf331820f4b8" },
        { 12345, SALT_COMMITTEE, 255,
          "7d709f685133d9f7d105f5d3158c1153ebe343eb1de8e391e9c499eca1a31243" },
        { 12345, SALT_COMMITTEE, 256,
          "9cd8af2a470c04e0b0e8a7644a2e5e7223b29942a89d2c5d662579bb5f68c54e" },
        { 12345, SALT_COMMITTEE, 257,
          "48b63a5425c128352bf7f0d16ad81a6ebeedeec05bbe16d4b620f6287b8b9e32" },
        { 12345, SALT_COMMITTEE, 1000,
          "a7eb1e15760b86aefaa336f46103492ad9e2519a681f5118f366f6364f50772d" },
        { 12345, SALT_COMMITTEE, 16384,
          "92247f635c3ca7010c9cec4d72d54f89805b513d230597155c2f9713a1c9e35d" },
        { UINT64_MAX, SALT_WITNESS, 300,
          "76089bd9902fb0fe15d915f769de4e34a8b1c1b3d8c5c48a1e14ab3f06a37772" },
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        struct hasher hasher;
        char text[HASH_HEX];
        committee_positions(lists[i].seed, lists[i].salt, lists[i].n, positions);
        hasher_init(&hasher);
        for (uint32_t at = 0; at < lists[i].n; at++) hasher_add_number(&hasher, positions[at], 4);
        const struct hash digest = hasher_end(&hasher);
        assert_string_equal(hash_to_hex(&digest, text), lists[i].digest);
    }
}

static void every_position_is_taken_once(void **state)
{
    (void)state;
    static bool taken[MEMBERS_MAX];
    for (uint32_t n = 1; n <= MEMBERS_MAX; n = n * 2 + 1) {
        memset(taken, 0, sizeof taken);
        committee_positions(n, SALT_COMMITTEE, n, positions);
        for (uint32_t i = 0; i < n; i++) {
            assert_true(positions[i] < n);
            assert_false(taken[positions[i]]);
            taken[positions[i]] = true;
        }
    }
}

TESTS(TEST(small_lists_are_those_of_psyche), TEST(large_lists_are_those_of_psyche),
      TEST(every_position_is_taken_once))
