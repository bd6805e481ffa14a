// strangers_test -- what strangers may do who know of the broker no more than a ticket says: connect, and say nothing.

#include "common/base/clock.h"
#include "tests/by_hand.h"
#include "tests/live/hostile_peer.h"
#include "tests/live/testbed.h"
#include "tests/test.h"
#include <poll.h>
#include <sys/socket.h>

enum { READY_MS = 10000 };

static struct testbed *start_broker(void **state)
{
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){ .trainers = 1 });
    testbed_start(bed, "broker");
    testbed_await_log(bed, "broker", "broker.ready", READY_MS);
    return bed;
}

// ZeroMQ gives numbers to peers without a name, and aborts where another peer has taken such a number as its name. Here
// those are taken at which a process begins that has not called srand().
static void nobody_foresees_the_numbers_of_peers(void **state)
{
    enum { TAKEN = 64, NAMELESS = 32 };
    const uint32_t first = 0xe43c9869;
    struct hostile_peer taken[TAKEN], nameless;
    struct testbed *bed = start_broker(state);
    for (uint32_t i = 0; i < TAKEN; i++) {
        const uint32_t number = first + i;
        hostile_peer_connect(&taken[i], bed->port, &bed->ticket.server, &number);
    }
    for (uint32_t i = 0; i < NAMELESS; i++) {
        assert_true(hostile_peer_connect(&nameless, bed->port, &bed->ticket.server, NULL));
        hostile_peer_close(&nameless);
    }
    for (uint32_t i = 0; i < TAKEN; i++) hostile_peer_close(&taken[i]);
}

static bool is_cut(const struct hostile_peer *peer, int wait_ms)
{
    struct pollfd item = { .fd = peer->fd, .events = POLLIN };
    char byte;
    return poll(&item, 1, wait_ms) == 1 && recv(peer->fd, &byte, 1, 0) <= 0;
}

static void who_says_no_hello_is_cut(void **state)
{
    enum { STAYS_MS = 8000, CUT_MS = 20000 };
    struct testbed *bed = start_broker(state);
    struct hostile_peer peer;
    assert_true(hostile_peer_connect(&peer, bed->port, &bed->ticket.server, NULL));
    assert_false(is_cut(&peer, STAYS_MS));
    assert_true(is_cut(&peer, CUT_MS));
    hostile_peer_close(&peer);
    testbed_await_log(bed, "broker", "said no HELLO", READY_MS);
}

TESTS(TESTBED_TEST(nobody_foresees_the_numbers_of_peers), TESTBED_TEST(who_says_no_hello_is_cut))
