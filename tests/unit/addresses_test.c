// A bind that fails because the address is another machine's is answered with our own addresses; and
// the address that leads to a peer.
#include "common/base/private_address.h"
#include "common/net/addresses.h"
#include "common/net/net.h"
#include "tests/test.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

// What ZeroMQ says of the endpoint, and what we make of it.
static int refused(const char *host, struct why *why)
{
    char endpoint[64];
    void *context = net_context_new(1), *socket = net_socket_new(context, ZMQ_ROUTER, 100, 10);
    snprintf(endpoint, sizeof endpoint, "tcp://%s:*", host);
    const int rc = zmq_bind(socket, endpoint), error = zmq_errno();
    net_socket_close(&socket);
    net_context_destroy(&context);
    return rc == 0 ? 0 : addresses_refuse(host, error, why);
}

static void another_machines_address_is_refused_with_ours(void **state)
{
    (void)state;
    static const char *const hosts[] = { "192.0.2.1", "nosuch0" };
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        char says[100];
        struct why why = { 0 };
        snprintf(says, sizeof says, "%s is no address of this machine; it has ", hosts[i]);
        assert_int_equal(refused(hosts[i], &why), FAULT_UNAVAILABLE);
        if (!strstr(why.text, says) || !strstr(why.text, "127.0.0.1")) fail_msg("%s", why.text);
    }
}

static void other_errors_are_left_alone(void **state)
{
    (void)state;
    struct why why = { "as it was" };
    assert_int_equal(refused("127.0.0.1", &why), 0);
    assert_int_equal(addresses_refuse("127.0.0.1", EADDRINUSE, &why), 0);
    assert_int_equal(addresses_refuse("127.0.0.1", EACCES, &why), 0);
    assert_string_equal(why.text, "as it was");
}

static void the_loopback_leads_to_itself(void **state)
{
    (void)state;
    struct why why = { 0 };
    char own[ADDRESSES_TEXT_MAX];
    assert_int_equal(addresses_towards("127.0.0.1:5550", &why, own), 0);
    assert_string_equal(own, "127.0.0.1");
    assert_int_equal(addresses_towards("tcp://127.0.0.1:5550", &why, own), 0);
    assert_string_equal(own, "127.0.0.1");
    assert_int_equal(addresses_towards("no port", &why, own), FAULT_NOT_FOUND);
    assert_string_equal(why.text, "no port: no such host");
    assert_int_equal(addresses_towards("255.255.255.255:1", &why, own), FAULT_UNREACHABLE);
    assert_string_equal(own, "127.0.0.1");
}

static void loopback_is_told_from_the_rest(void **state)
{
    (void)state;
    static const char *const here[] = { "127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1" };
    static const char *const there[] = { "10.0.0.127", "128.0.0.1",          "0.0.0.0",  "::",
                                         "::2",        "::ffff:192.0.2.127", "localhost" };
    for (size_t i = 0; i < sizeof here / sizeof *here; i++)
        assert_true(addresses_is_loopback(here[i]));
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        assert_false(addresses_is_loopback(there[i]));
}

// At the edges of each block.
static void private_blocks_have_their_edges(void **state)
{
    (void)state;
    static const char *const here[] = {
        "127.0.0.1",       "127.255.255.255", "10.0.0.0",    "10.255.255.255",
        "172.16.0.0",      "172.31.255.255",  "192.168.0.0", "192.168.9.9",
        "192.168.255.255", "169.254.1.1",     "::1",         "fc00::1",
        "fdff::1",         "fe80::1",         "febf::1",     "::ffff:10.1.2.3"
    };
    static const char *const there[] = {
        "128.0.0.0",   "9.255.255.255",  "11.0.0.0",  "172.32.0.0", "172.15.255.255", "192.169.0.0",
        "100.64.0.1",  "0.0.0.0",        "192.0.2.7", "::2",        "fe00::1",        "fec0::1",
        "2001:db8::7", "::ffff:8.8.8.8", "localhost", "",           "10.0.0"
    };
    for (size_t i = 0; i < sizeof here / sizeof *here; i++)
        assert_true(address_is_private(here[i]));
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        assert_false(address_is_private(there[i]));
}

static void an_endpoint_is_public_by_its_address(void **state)
{
    (void)state;
    static const char *const not_public[] = { "tcp://127.0.0.1:5550",
                                              "tcp://[fd00::1]:5550",
                                              "tcp://broker.example.net:5550",
                                              "ipc:///run/mail",
                                              "tcp://",
                                              "tcp://:1",
                                              "tcp://[]:1",
                                              "tcp://[:1",
                                              "192.0.2.7:5550" };
    assert_true(address_of_endpoint_is_public("tcp://192.0.2.7:5550"));
    assert_true(address_of_endpoint_is_public("tcp://[2001:db8::7]:5550"));
    for (size_t i = 0; i < sizeof not_public / sizeof *not_public; i++)
        assert_false(address_of_endpoint_is_public(not_public[i]));
}

TESTS(TEST(another_machines_address_is_refused_with_ours), TEST(other_errors_are_left_alone),
      TEST(the_loopback_leads_to_itself), TEST(loopback_is_told_from_the_rest),
      TEST(private_blocks_have_their_edges), TEST(an_endpoint_is_public_by_its_address))
