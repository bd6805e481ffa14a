// Of many endpoints, those that listen answer, the others do not, and the time is kept.
#include "common/base/clock.h"
#include "common/net/knock.h"
#include "tests/test.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

// A socket on a free port of the loopback. `backlog` 0: it is bound, but nobody listens.
static int bind_one(int backlog, char ret_endpoint[64])
{
    struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof own;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&own, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &size), 0);
    if (backlog) assert_int_equal(listen(fd, backlog), 0);
    snprintf(ret_endpoint, 64, "tcp://127.0.0.1:%u", ntohs(own.sin_port));
    return fd;
}

static void each_gets_its_answer(void **state)
{
    (void)state;
    char open[64], closed[64];
    const int listens = bind_one(200, open), silent = bind_one(0, closed);
    struct knock knocks[3 * KNOCK_AT_ONCE];
    const uint32_t count = sizeof knocks / sizeof *knocks;
    const char *const endpoints[] = { open, closed, "tcp://localhost:1" };
    const int errors[] = { 0, ECONNREFUSED, EINVAL };
    for (uint32_t i = 0; i < count; i++) knocks[i].endpoint = endpoints[i % 3];
    knock_all(knocks, count, 3000);
    for (uint32_t i = 0; i < count; i++) assert_int_equal(knocks[i].error, errors[i % 3]);
    close(listens), close(silent);
}

// A full backlog: the kernel drops what comes next, as a firewall does.
static void silence_ends_in_time(void **state)
{
    (void)state;
    char full[64];
    const int listens = bind_one(1, full);
    struct knock knocks[3 * KNOCK_AT_ONCE];
    const uint32_t count = sizeof knocks / sizeof *knocks;
    int callers[8];
    struct sockaddr_in at;
    socklen_t size = sizeof at;
    assert_int_equal(getsockname(listens, (struct sockaddr *)&at, &size), 0);
    for (int i = 0; i < 8; i++) {
        callers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(callers[i], (struct sockaddr *)&at, size);
    }
    for (uint32_t i = 0; i < count; i++) knocks[i].endpoint = full;
    const uint64_t began_ms = clock_ms();
    knock_all(knocks, count, 400);
    assert_in_range(clock_ms() - began_ms, 400, 900);
    // A quarter of a second each: a second turn begins, a third does not.
    uint32_t silent = 0, not_asked = 0;
    for (uint32_t i = 0; i < count; i++) {
        silent += knocks[i].error == ETIMEDOUT;
        not_asked += knocks[i].error == ECANCELED;
    }
    assert_int_equal(silent, 2 * KNOCK_AT_ONCE);
    assert_int_equal(not_asked, KNOCK_AT_ONCE);
    for (int i = 0; i < 8; i++) close(callers[i]);
    close(listens);
}

TESTS(TEST(each_gets_its_answer), TEST(silence_ends_in_time))
