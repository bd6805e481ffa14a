// Which connections are closed when descriptors or memory run short, and what waits for those that
// stay.
#include "common/net/connections.h"
#include "tests/test.h"
#include <stdio.h>
#include <string.h>

enum { AT_MAIL, AT_NEWS, FDS = 64, PENDING_MAX = 12 << 20, SUBSCRIBED_MAX = 64 << 10 };

struct kernel {
    int cuts[FDS], count;
    struct connection_counts counts[FDS];
    bool gone[FDS];
};

static void note(void *arg, int fd)
{
    struct kernel *kernel = arg;
    kernel->cuts[kernel->count++] = fd;
}

static bool measure(void *arg, int fd, struct connection_counts *ret_counts)
{
    *ret_counts = ((struct kernel *)arg)->counts[fd];
    return !((struct kernel *)arg)->gone[fd];
}

static struct connections *new_connections(uint32_t room)
{
    const struct connections_limits limits[] = { { room, PENDING_MAX, false },
                                                 { room, SUBSCRIBED_MAX, true } };
    return connections_new(limits, 2, 256 << 20);
}

static void the_oldest_unknown_goes_first(void **state)
{
    (void)state;
    struct connections *self = new_connections(4);
    const struct curve_key key = { { 3 } };
    struct kernel kernel = { .count = 0 };
    for (int fd = 10; fd < 16; fd++) connections_opened(self, fd, AT_MAIL, 100 - (uint64_t)fd);
    connections_heard(self, 15, AT_MAIL, &key, 10, 200)->known = true;
    connections_heard(self, 14, AT_MAIL, &key, 10, 200); // Proven is not enough
    connections_cut_surplus(self, note, &kernel);
    assert_int_equal(kernel.count, 2); // 15 is the oldest, and known
    assert_int_equal(kernel.cuts[0], 14);
    assert_int_equal(kernel.cuts[1], 13);
    assert_int_equal(connections_count(self, AT_MAIL), 4);
    connections_closed(self, 14, AT_MAIL), connections_closed(self, 14, AT_MAIL);
    connections_closed(self, 99, AT_MAIL);
    assert_int_equal(connections_count(self, AT_MAIL), 4);
    connections_cut_key(self, &key, note, &kernel);
    assert_int_equal(kernel.count, 3);
    assert_int_equal(kernel.cuts[2], 15);
    connections_destroy(&self);
}

static void a_connection_without_an_actor_does_not_stay(void **state)
{
    (void)state;
    struct connections *self = new_connections(8);
    const struct curve_key key = { { 3 } };
    struct kernel kernel = { .count = 0 };
    for (int fd = 10; fd < 15; fd++) connections_opened(self, fd, AT_MAIL, 100);
    connections_opened(self, 20, AT_MAIL, 200);          // Young
    connections_heard(self, 11, AT_MAIL, &key, 10, 200); // Says something
    connections_heard(self, 12, AT_MAIL, &key, 10, 200)->actor =
        (struct key){ { 1 } }; // Was welcomed
    connections_heard(self, 13, AT_MAIL, &key, 10, 200)->known = true;
    connections_closed(self, 14, AT_MAIL);
    connections_cut_mute(self, 101, note, &kernel);
    assert_int_equal(kernel.count, 2);
    assert_int_equal(kernel.cuts[0], 10);
    assert_int_equal(kernel.cuts[1], 11);
    connections_cut_mute(self, 101, note, &kernel); // They are cut once
    assert_int_equal(kernel.count, 2);
    connections_destroy(&self);
}

static void an_actor_has_few_connections(void **state)
{
    (void)state;
    struct connections *self = new_connections(8);
    const struct curve_key key = { { 3 } };
    const struct key actor = { { 1 } }, other = { { 2 } };
    struct kernel kernel = { .count = 0 };
    for (int fd = 10; fd < 14; fd++) {
        connections_opened(self, fd, AT_MAIL, 100 - (uint64_t)fd);
        connections_heard(self, fd, AT_MAIL, &key, 10, 200)->actor = actor;
    }
    connections_opened(self, 20, AT_MAIL, 1);
    connections_heard(self, 20, AT_MAIL, &key, 10, 200)->actor = other;
    connections_opened(self, 21, AT_NEWS, 1);
    connections_heard(self, 21, AT_NEWS, &key, 10, 200)->actor = actor;
    connections_cut_crowd(self, AT_MAIL, &actor, 4, note, &kernel);
    assert_int_equal(kernel.count, 0);
    connections_cut_crowd(self, AT_MAIL, &actor, 2, note, &kernel);
    assert_int_equal(kernel.count, 2); // The oldest
    assert_int_equal(kernel.cuts[0], 13);
    assert_int_equal(kernel.cuts[1], 12);
    assert_int_equal(connections_count(self, AT_MAIL), 3);
    connections_destroy(&self);
}

static void a_connection_is_there_until_it_is_closed(void **state)
{
    (void)state;
    struct connections *self = new_connections(4);
    const struct curve_key key = { { 3 } }, other = { { 4 } };
    struct kernel kernel = { .count = 0 };
    connections_opened(self, 10, AT_MAIL, 100);
    assert_false(connections_has(self, 10, AT_MAIL, &key)); // Its key is not proven
    connections_heard(self, 10, AT_MAIL, &key, 10, 200);
    assert_true(connections_has(self, 10, AT_MAIL, &key));
    assert_false(connections_has(self, 10, AT_MAIL, &other));
    assert_false(connections_has(self, 10, AT_NEWS, &key));
    assert_false(connections_has(self, 11, AT_MAIL, &key));
    assert_false(connections_has(self, -1, AT_MAIL, &key));
    connections_closed(self, 10, AT_MAIL);
    assert_false(connections_has(self, 10, AT_MAIL, &key));
    connections_heard(self, 10, AT_MAIL, &key, 10, 300);
    connections_cut_one(self, 10, note, &kernel);
    assert_false(connections_has(self, 10, AT_MAIL, &key)); // Cut: as good as closed
    connections_destroy(&self);
}

static void a_hoarding_connection_is_cut(void **state)
{
    (void)state;
    struct connections *self = new_connections(40);
    const struct curve_key key = { { 3 } };
    struct kernel kernel = { .count = 0 };
    for (int fd = 10; fd < 50; fd++) connections_opened(self, fd, AT_MAIL, 1);
    connections_opened(self, 50, AT_NEWS, 1);
    // All that came is out: what was on the wire is counted to the byte.
    const struct connection *heard =
        connections_heard(self, 10, AT_MAIL, &key, connections_part_bytes(1 << 24), 2);
    kernel.counts[10].received = (1 << 24) + 33 + 9;
    kernel.counts[11].received = PENDING_MAX + 1;
    kernel.counts[50].received = SUBSCRIBED_MAX + 1;
    connections_cut_hoarders(self, measure, note, &kernel);
    assert_int_equal(kernel.count, 2);
    assert_int_equal(kernel.cuts[0], 11);
    assert_int_equal(kernel.cuts[1], 50);
    assert_int_equal(heard->pending, 0);
    // Each within its bound, all together not: the largest go until they are.
    for (int fd = 12; fd < 42; fd++) kernel.counts[fd].received = (10 << 20) + (uint64_t)fd;
    connections_cut_hoarders(self, measure, note, &kernel);
    assert_int_equal(kernel.count, 2 + 5); // 25 times 10 MiB fit into 256
    assert_int_equal(kernel.cuts[2], 41);
    connections_destroy(&self);
}

// A message may be on its way still when its connection has ended: no such connection remains.
static void an_actor_that_is_gone_is_forgotten(void **state)
{
    (void)state;
    struct connections *self = new_connections(40);
    const struct curve_key key = { { 3 } };
    struct kernel kernel = { .gone = { [10] = true } };
    connections_opened(self, 10, AT_MAIL, 1);
    connections_closed(self, 10, AT_MAIL);
    assert_non_null(connections_heard(self, 10, AT_MAIL, &key, 10, 2));
    assert_int_equal(connections_count(self, AT_MAIL), 1);
    connections_cut_hoarders(self, measure, note, &kernel);
    assert_int_equal(connections_count(self, AT_MAIL), 0);
    assert_int_equal(kernel.count, 0);
    assert_null(connections_heard(self, -1, AT_MAIL, &key, 10, 2));
    assert_null(connections_heard(self, CONNECTIONS_FD_MAX, AT_MAIL, &key, 10, 2));
    connections_destroy(&self);
}

// The news report the end of a connection after the mail have reported the next one on its descriptor.
static void the_end_of_another_sockets_connection_changes_nothing(void **state)
{
    (void)state;
    struct connections *self = new_connections(40);
    const struct curve_key key = { { 3 } };
    connections_opened(self, 10, AT_NEWS, 1);
    connections_opened(self, 10, AT_MAIL, 2);
    connections_heard(self, 10, AT_MAIL, &key, 10, 3);
    connections_closed(self, 10, AT_NEWS);
    assert_true(connections_has(self, 10, AT_MAIL, &key));
    assert_int_equal(connections_count(self, AT_MAIL), 1);
    assert_int_equal(connections_count(self, AT_NEWS), 0);
    connections_closed(self, 10, AT_MAIL);
    assert_int_equal(connections_count(self, AT_MAIL), 0);
    connections_destroy(&self);
}

TESTS(TEST(the_oldest_unknown_goes_first), TEST(a_connection_without_an_actor_does_not_stay),
      TEST(an_actor_has_few_connections), TEST(a_connection_is_there_until_it_is_closed),
      TEST(a_hoarding_connection_is_cut), TEST(an_actor_that_is_gone_is_forgotten),
      TEST(the_end_of_another_sockets_connection_changes_nothing))
