// blocks_test -- strangers from one block of addresses are bounded, and no other block pays for it.

#include "broker/blocks.h"
#include "tests/test.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static struct blocks blocks;

static int set_up(void **state)
{
    (void)state;
    memset(&blocks, 0, sizeof blocks);
    return 0;
}

static bool comes(const char *address, uint64_t now_ms)
{
    struct sockaddr_storage from = { 0 };
    struct sockaddr_in *v4 = (struct sockaddr_in *)&from;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&from;
    if (inet_pton(AF_INET, address, &v4->sin_addr) == 1) from.ss_family = AF_INET;
    else {
        assert_int_equal(inet_pton(AF_INET6, address, &v6->sin6_addr), 1);
        from.ss_family = AF_INET6;
    }
    return blocks_admit(&blocks, (struct sockaddr *)&from, now_ms);
}

// How many of `count` may come, one from each of the first 200 hosts in turn.
static uint32_t come(const char *block, uint32_t count, uint64_t now_ms)
{
    uint32_t may = 0;
    for (uint32_t i = 0; i < count; i++) {
        char address[64];
        snprintf(address, sizeof address, "%s%u", block, 1 + i % 200);
        may += comes(address, now_ms);
    }
    return may;
}

static void a_block_has_a_burst_and_a_rate(void **state)
{
    (void)state;
    assert_int_equal(come("192.0.2.", 1000, 5000), BLOCK_BURST);
    assert_int_equal(come("192.0.2.", 1000, 6000), BLOCK_STRANGERS_S);
    assert_int_equal(come("192.0.3.", 1000, 6000), BLOCK_BURST);              // Another block
    assert_int_equal(come("::ffff:192.0.2.", 1000, 7000), BLOCK_STRANGERS_S); // The same one
}

static void a_network_of_ipv6_is_one_block(void **state)
{
    (void)state;
    assert_int_equal(come("2001:db8:1:2::", 1000, 5000), BLOCK_BURST);
    assert_int_equal(come("2001:db8:1:3::", 1000, 5000), 0);
    assert_int_equal(come("2001:db8:2:2::", 1000, 5000), BLOCK_BURST);
}

static void this_machine_is_not_counted(void **state)
{
    (void)state;
    assert_int_equal(come("127.0.0.", 5000, 5000), 5000);
    for (int i = 0; i < 5000; i++) assert_true(comes("::1", 5000));
}

// The table is full: the block that was heard longest ago is forgotten, and no other.
static void many_blocks_have_their_turn(void **state)
{
    char address[64];
    (void)state;
    assert_int_equal(come("192.0.2.", 1000, 1000), BLOCK_BURST);
    for (uint32_t i = 1; i < BLOCKS_MAX; i++) {
        snprintf(address, sizeof address, "10.%u.%u.1", i / 256, i % 256);
        assert_true(comes(address, 1000 + i));
    }
    assert_false(comes("192.0.2.1", 1000));
    assert_true(comes("198.51.100.1", 5000)); // In the place of the first
    assert_int_equal(come("192.0.2.", 1000, 5000), BLOCK_BURST);
    assert_int_equal(come("198.51.100.", 1000, 5000), BLOCK_BURST - 1);
}

TESTS(TEST_WITH(a_block_has_a_burst_and_a_rate, set_up, NULL),
      TEST_WITH(a_network_of_ipv6_is_one_block, set_up, NULL),
      TEST_WITH(this_machine_is_not_counted, set_up, NULL),
      TEST_WITH(many_blocks_have_their_turn, set_up, NULL))
