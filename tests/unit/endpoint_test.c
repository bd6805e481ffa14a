// Endpoints that peers name are numeric addresses: libzmq never has to resolve a name.
#include "common/net/endpoint.h"
#include "tests/test.h"
#include <string.h>

static const char *const good[] = {
    "tcp://127.0.0.1:1",
    "tcp://192.0.2.7:65535",
    "tcp://255.255.255.255:5550",
    "tcp://[::1]:7000",
    "tcp://[2001:db8::7]:7000",
    "tcp://[::ffff:192.0.2.7]:7000",
    "tcp://[2001:0db8:ffff:ffff:ffff:ffff:255.255.255.255]:7000",
};

static const char *const bad[] = {
    "",
    "tcp",
    "tcp:/",
    "tcp://",
    "tcp://:",
    "tcp://:7000",
    "tcp://[",
    "tcp://[]",
    "tcp://[]:7000",
    // Names, and what a resolver or libzmq would take for an address
    "tcp://slow.example:7000",
    "tcp://localhost:7000",
    "tcp://lo:7000",
    "tcp://*:7000",
    "tcp://127.1:7000",
    "tcp://2130706433:7000",
    "tcp://0x7f.0.0.1:7000",
    "tcp://127.0.0.01:7000",
    "tcp://127.0.0.256:7000",
    "tcp://127.0.0.1.:7000",
    "tcp:// 127.0.0.1:7000",
    "tcp://127.0.0.1 :7000",
    "tcp://lo;127.0.0.1:7000",
    "tcp://127.0.0.1:1;127.0.0.1:7000",
    "tcp://x@127.0.0.1:7000",
    "tcp://[127.0.0.1]:7000",
    "tcp://127.0.0.1]:7000",
    "tcp://::1:7000",
    "tcp://[::1:7000",
    "tcp://[::1]7000",
    "tcp://[[::1]]:7000",
    "tcp://[fe80::1%eth0]:7000",
    "tcp://[fe80::1%2]:7000",
    "tcp://[slow.example]:7000",
    "tcp://[1:2:3:4:5:6:7:8:9]:7000",
    "tcp://[2001:0db8:ffff:ffff:ffff:ffff:255.255.255.2550]:7000",
    // Nowhere
    "tcp://0.0.0.0:7000",
    "tcp://[::]:7000",
    "tcp://[0:0:0:0:0:0:0:0]:7000",
    // Ports
    "tcp://127.0.0.1",
    "tcp://127.0.0.1:",
    "tcp://127.0.0.1:0",
    "tcp://127.0.0.1:*",
    "tcp://127.0.0.1:65536",
    "tcp://127.0.0.1:99999",
    "tcp://127.0.0.1:4294968296",
    "tcp://127.0.0.1:18446744073709552616",
    "tcp://127.0.0.1:07000",
    "tcp://127.0.0.1:+7000",
    "tcp://127.0.0.1:-1",
    "tcp://127.0.0.1: 7000",
    "tcp://127.0.0.1:7000 ",
    "tcp://127.0.0.1:7000/",
    "tcp://127.0.0.1:http",
    "tcp://127.0.0.1:7000:7000",
    "tcp://[::1]",
    "tcp://[::1]:",
    "tcp://[::1]:0",
    "tcp://[::1]:65536",
    // Other transports
    "127.0.0.1:7000",
    "TCP://127.0.0.1:7000",
    "udp://127.0.0.1:7000",
    "inproc://stop",
    "ipc:///tmp/x",
    "ws://127.0.0.1:7000",
    " tcp://127.0.0.1:7000",
};

static void test_good_and_bad(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (!endpoint_is_numeric(good[i])) fail_msg("'%s' is one", good[i]);
        assert_int_equal(endpoint_is_ipv6(good[i]), strchr(good[i], '[') != NULL);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (endpoint_is_numeric(bad[i])) fail_msg("'%s' is none", bad[i]);
}

// As it comes out of a frame: no longer than 127 bytes, and nothing is read behind its end.
static void test_any_length(void **state)
{
    (void)state;
    static const char whole[] = "tcp://[2001:db8::7]:65535";
    char text[128];
    for (size_t count = 0; count < sizeof whole; count++) {
        memset(text, '1', sizeof text);
        memcpy(text, whole, count);
        text[count] = 0;
        assert_int_equal(endpoint_is_numeric(text), count > strlen("tcp://[2001:db8::7]:"));
        memset(text + count, '1', sizeof text - count);
        text[127] = 0;
        assert_false(endpoint_is_numeric(text));
    }
}

TESTS(TEST(test_good_and_bad), TEST(test_any_length))
