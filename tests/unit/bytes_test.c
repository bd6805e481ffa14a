// Numbers as bytes: the written order, every width, and nothing beside the bytes asked for.
#include "common/base/hash.h"
#include "tests/test.h"

static const uint64_t NUMBER = 0x0123456789abcdef;
static const uint8_t little[8] = { 0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01 };
static const uint8_t big[8] = { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef };

static void numbers_lie_in_the_order_that_is_asked_for(void **state)
{
    (void)state;
    for (size_t count = 0; count <= 8; count++) {
        uint8_t bytes[2][10];
        const uint64_t kept = count == 8 ? NUMBER : NUMBER & ((UINT64_C(1) << 8 * count) - 1);
        memset(bytes, 0x55, sizeof bytes);
        le_put(bytes[0] + 1, NUMBER, count);
        be_put(bytes[1] + 1, NUMBER, count);
        assert_memory_equal(bytes[0] + 1, little, count);
        assert_memory_equal(bytes[1] + 1, big + 8 - count, count);
        for (int i = 0; i < 2; i++) assert_true(bytes[i][0] == 0x55 && bytes[i][1 + count] == 0x55);
        assert_true(le_get(bytes[0] + 1, count) == kept && be_get(bytes[1] + 1, count) == kept);
    }
}

static void a_hashed_number_is_its_bytes(void **state)
{
    (void)state;
    struct hasher hasher;
    hasher_init(&hasher);
    hasher_add_number(&hasher, NUMBER, 3);
    hasher_add_number(&hasher, NUMBER, 8);
    const struct hash got = hasher_end(&hasher), expected = hash_of_two(little, 3, little, 8);
    assert_true(hash_equal(&got, &expected));
}

static void a_hash_as_a_number_is_its_first_bytes(void **state)
{
    (void)state;
    struct hash hash = { { 0 } };
    memcpy(hash.bytes, little, sizeof little);
    hash.bytes[8] = 1;
    assert_true(hash_to_number(&hash) == NUMBER);
}

TESTS(TEST(numbers_lie_in_the_order_that_is_asked_for), TEST(a_hashed_number_is_its_bytes),
      TEST(a_hash_as_a_number_is_its_first_bytes))
