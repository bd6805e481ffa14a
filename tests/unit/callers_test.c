// callers_test -- how many calls of an address are answered, by a clock of our own.

#include "common/net/callers.h"
#include "tests/test.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

enum { T = 1000000 };

static struct callers callers;

static int set_up(void **state)
{
    (void)state;
    callers = (struct callers){ .seed = { 1 } };
    return 0;
}

// A connection for which key number `key` is named; 0: a probe.
static bool call(const char *address, uint32_t key, uint64_t now_ms)
{
    struct sockaddr_storage from = { 0 };
    struct sockaddr_in in = { .sin_family = AF_INET };
    struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
    struct key named = { { (uint8_t)key, (uint8_t)(key >> 8) } };
    if (inet_pton(AF_INET, address, &in.sin_addr) == 1) memcpy(&from, &in, sizeof in);
    else if (inet_pton(AF_INET6, address, &in6.sin6_addr) == 1) memcpy(&from, &in6, sizeof in6);
    else fail();
    return callers_admit(&callers, (const struct sockaddr *)&from, key ? &named : NULL, now_ms);
}

// How many of `count` calls in `ms` are answered; they name `keys` keys in turn, or are probes.
static uint32_t pour(const char *address, uint32_t keys, uint32_t count, uint64_t ms)
{
    uint32_t answered = 0;
    for (uint32_t i = 0; i < count; i++)
        answered += call(address, keys ? 1 + i % keys : 0, T + i * ms / count);
    return answered;
}

static void a_flood_of_probes_gets_its_rate(void **state)
{
    (void)state;
    const uint32_t answered = pour("192.0.2.1", 0, 39000, 10000);
    assert_in_range(answered, CALLERS_PROBES + 195, CALLERS_PROBES + 205);
    assert_true(call("198.51.100.9", 0, T + 10000)); // The coordinator's is answered meanwhile
    assert_true(call("192.0.2.1", 0, T + 10100));
}

// Of the same address, for example behind one NAT.
static void probes_leave_room_for_connections(void **state)
{
    (void)state;
    pour("192.0.2.1", 0, 39000, 10000);
    uint32_t answered = 0;
    for (uint32_t i = 0; i < 1000; i++) answered += call("192.0.2.1", 1 + i, T + 10000);
    assert_in_range(answered, CALLERS_CONNECTIONS, CALLERS_CONNECTIONS + 5);
    assert_false(call("192.0.2.1", 0, T + 10000));
}

static void a_key_leaves_room_for_its_neighbours(void **state)
{
    (void)state;
    const uint32_t answered = pour("192.0.2.1", 1, 39000, 10000);
    assert_in_range(answered, CALLERS_KEY + 35, CALLERS_KEY + 45);
    assert_true(call("192.0.2.1", 2, T + 10000));
    assert_true(call("198.51.100.9", 1, T + 10000)); // Somebody else may have used its name there
}

static void an_address_that_names_all_keys_has_a_rate_too(void **state)
{
    (void)state;
    const uint32_t answered = pour("192.0.2.1", 500, 39000, 10000),
                   most = CALLERS_CONNECTIONS + CALLERS_PROBES * 5 + 1000;
    assert_in_range(answered, most - 5, most + 5);
}

static void an_address_is_one_caller(void **state)
{
    (void)state;
    pour("2001:db8::1", 0, 1000, 1);
    assert_false(call("2001:db8::ffff:2", 0, T)); // Of the same network
    assert_true(call("2001:db8:0:1::1", 0, T));
    pour("192.0.2.1", 0, 1000, 1);
    assert_false(call("::ffff:192.0.2.1", 0, T)); // The same, at a socket for both families
    assert_true(call("::ffff:192.0.2.2", 0, T));
}

static void who_proves_its_key_has_any_number(void **state)
{
    (void)state;
    struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr = { htonl(0xC0000201) } };
    const struct key named = { { 1 } };
    for (uint32_t i = 0; i < 2000; i++) {
        assert_true(call("192.0.2.1", 1, T));
        callers_pay_back(&callers, (const struct sockaddr *)&from, &named);
    }
    assert_int_equal(pour("192.0.2.1", 1, 1000, 1), CALLERS_KEY);
}

TESTS(TEST_WITH(who_proves_its_key_has_any_number, set_up, NULL),
      TEST_WITH(a_flood_of_probes_gets_its_rate, set_up, NULL),
      TEST_WITH(probes_leave_room_for_connections, set_up, NULL),
      TEST_WITH(a_key_leaves_room_for_its_neighbours, set_up, NULL),
      TEST_WITH(an_address_that_names_all_keys_has_a_rate_too, set_up, NULL),
      TEST_WITH(an_address_is_one_caller, set_up, NULL))
