// reach_test -- whose address the coordinator tries, how often, and what it says; then the same over
// sockets: a bulk server, one of another key, a port where nobody listens.

#include "actors/coordinator/reach_shell.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/bulk/bulk_server.h"
#include "tests/test.h"
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { T = 100000 };
#define HERE "tcp://198.51.100.4:7000"

static struct reach reach;
static struct reach_answer answer;
static uint32_t place;

static int set_up(void **state)
{
    (void)state;
    memset(&reach, 0, sizeof reach);
    memset(&answer, 0, sizeof answer);
    return 0;
}

static enum reach_verdict ask_as(uint32_t key, uint64_t number, const char *endpoint,
                                 uint64_t now_ms)
{
    struct wire_reach asked = { .number = number };
    struct msg in = {
        .now_ms = now_ms, .kind = FRAME_REACH, .run = "r", .from = "trainer.1", .body = &asked
    };
    snprintf(asked.endpoint, sizeof asked.endpoint, "%s", endpoint);
    memcpy(in.sender.bytes, &key, sizeof key);
    return reach_hear(&reach, &in, &place, &answer);
}

static enum reach_verdict ask(uint64_t number, uint64_t now_ms)
{
    return ask_as(1, number, HERE, now_ms);
}

static void expect_refused(uint8_t reason, uint64_t number, const char *text)
{
    assert_int_equal(answer.kind, FRAME_REFUSED);
    assert_int_equal(answer.refused.kind, FRAME_REACH);
    assert_int_equal(answer.refused.reason, reason);
    assert_int_equal(answer.refused.round, number);
    assert_string_equal(answer.to, "trainer.1");
    if (!strstr(answer.refused.text, text)) fail_msg("%s", answer.refused.text);
}

static void a_question_is_tried_once(void **state)
{
    (void)state;
    assert_int_equal(ask(7, T), REACH_TRY);
    assert_string_equal(reach.places[place].endpoint, HERE);
    const uint32_t first = place;
    const struct key asker = reach.places[place].key;
    assert_true(reach_holds_back(&reach, &asker, T)); // Its JOIN waits
    assert_int_equal(ask(7, T + 500), REACH_NOTHING); // Repeated while it is tried
    assert_int_equal(ask(8, T + REACH_AGAIN_MS), REACH_SAYS);
    expect_refused(REFUSAL_NOT_NOW, 8, "ask again");
    reach_end(&reach, first, REACH_PROVED, 0, T, &answer);
    assert_false(reach_holds_back(&reach, &asker, T));
    assert_int_equal(answer.kind, FRAME_ACK);
    assert_int_equal(answer.ack.kind, FRAME_REACH);
    assert_int_equal(answer.ack.round, 7);
    assert_string_equal(answer.to, "trainer.1");
    answer.kind = 0;
    assert_int_equal(ask(7, T + REACH_AGAIN_MS - 1), REACH_SAYS); // The ACK was lost
    assert_int_equal(answer.kind, FRAME_ACK);
    assert_int_equal(ask(8, T + REACH_AGAIN_MS - 1), REACH_SAYS);
    expect_refused(REFUSAL_NOT_NOW, 8, "ask again");
    assert_int_equal(ask_as(1, 7, "tcp://198.51.100.4:7001", T + REACH_AGAIN_MS - 1), REACH_SAYS);
    expect_refused(REFUSAL_NOT_NOW, 7, "ask again");
    assert_int_equal(ask(8, T + REACH_AGAIN_MS), REACH_TRY);
    assert_int_equal(place, first);
}

// As a member does: it repeats its question each second, and after a refusal it asks another one.
static void a_late_repeat_does_not_stand_in_the_way(void **state)
{
    (void)state;
    assert_int_equal(ask(7, T), REACH_TRY);
    reach_end(&reach, place, REACH_FAILED, ETIMEDOUT, T + 3000, &answer);
    answer.kind = 0;
    assert_int_equal(ask(7, T + 3001), REACH_SAYS);
    expect_refused(REFUSAL_UNREACHABLE, 7, "connection timed out");
    const struct key asker = reach.places[place].key, other = { { 77 } };
    assert_true(
        reach_holds_back(&reach, &asker, T + 3000 + REACH_KEPT_MS - 1)); // A JOIN on its way
    assert_false(reach_holds_back(&reach, &asker, T + 3000 + REACH_KEPT_MS));
    assert_false(reach_holds_back(&reach, &other, T + 3001));
    assert_int_equal(ask(8, T + 5000), REACH_TRY);
    reach_end(&reach, place, REACH_PROVED, 0, T + 5001, &answer);
    assert_int_equal(ask(8, T + 5000 + REACH_KEPT_MS), REACH_SAYS);
    assert_int_equal(ask(8, T + 5001 + REACH_KEPT_MS),
                     REACH_TRY); // What was found may have changed
}

static void only_numbers_are_tried(void **state)
{
    (void)state;
    static const char *const bad[] = { "", "tcp://localhost:7000", "tcp://0.0.0.0:7000",
                                       "tcp://198.51.100.4:0", "ipc://x" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(ask_as(1, 7, bad[i], T), REACH_SAYS);
        expect_refused(REFUSAL_MALFORMED, 7, "numbers and no name");
    }
    assert_int_equal(ask_as(0, 7, HERE, T), REACH_NOTHING); // Signed by nobody
    assert_int_equal(reach.tries, 0);
}

static void what_is_found_is_said(void **state)
{
    (void)state;
    static const struct {
        enum reach_end end;
        int error;
        uint8_t reason;
        const char *text;
    } rows[] = {
        { REACH_FAILED, ETIMEDOUT, REFUSAL_UNREACHABLE,
          "nobody answers at 198.51.100.4:7000: connection timed out; open this port in the "
          "firewall, "
          "or give --announce an address and port that lead here" },
        { REACH_FAILED, ECONNREFUSED, REFUSAL_UNREACHABLE, ":7000: connection refused; open" },
        { REACH_FAILED, EHOSTUNREACH, REFUSAL_UNREACHABLE, ":7000: no route leads there; open" },
        { REACH_OTHER, 0, REFUSAL_UNREACHABLE, "another program answers at 198.51.100.4:7000" },
        { REACH_FAILED, EMFILE, REFUSAL_NOT_NOW, "cannot try 198.51.100.4:7000 now" },
        { REACH_LATE, 0, REFUSAL_NOT_NOW, "says nothing within 3000 ms" },
        { REACH_BUSY, 0, REFUSAL_NOT_NOW, "198.51.100.4:7000 answers, and takes no more probes" },
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(ask_as(1 + i, i, HERE, T), REACH_TRY);
        reach_end(&reach, place, rows[i].end, rows[i].error, T, &answer);
        expect_refused(rows[i].reason, i, rows[i].text);
        memset(&answer, 0, sizeof answer);
        assert_int_equal(ask_as(1 + i, i, HERE, T + 1), REACH_SAYS); // Repeated: the same
        expect_refused(rows[i].reason, i, rows[i].text);
    }
    // The longest address leaves the advice whole
    assert_int_equal(ask_as(9, 9, "tcp://[2001:db8:1111:2222:3333:4444:5555:6666]:65535", T),
                     REACH_TRY);
    reach_end(&reach, place, REACH_FAILED, ETIMEDOUT, T, &answer);
    expect_refused(REFUSAL_UNREACHABLE, 9, "]:65535: connection timed out; open");
    expect_refused(REFUSAL_UNREACHABLE, 9, "that lead here");
}

static void many_askers_wait_for_each_other(void **state)
{
    (void)state;
    for (uint32_t i = 1; i <= REACH_TRIES_MAX; i++)
        assert_int_equal(ask_as(i, 1, HERE, T), REACH_TRY);
    assert_int_equal(ask_as(1000, 1, HERE, T), REACH_SAYS);
    expect_refused(REFUSAL_NOT_NOW, 1, "64 addresses are being tried");
    reach_end(&reach, place, REACH_PROVED, 0, T, &answer);
    assert_int_equal(ask_as(1000, 1, HERE, T), REACH_TRY);
    // As many as can be remembered: the next waits until the first may ask again
    for (uint32_t i = 2000; i < 2000 + REACH_PLACES - REACH_TRIES_MAX - 1; i++) {
        reach_end(&reach, place, REACH_PROVED, 0, T, &answer);
        assert_int_equal(ask_as(i, 1, HERE, T + 1), REACH_TRY);
    }
    reach_end(&reach, place, REACH_PROVED, 0, T, &answer);
    assert_int_equal(ask_as(3000, 1, HERE, T + 1), REACH_SAYS);
    expect_refused(REFUSAL_NOT_NOW, 1, "256 keys have asked");
    assert_int_equal(ask_as(3000, 1, HERE, T + REACH_AGAIN_MS), REACH_TRY);
}

// A key whose answer is still kept loses its place to nobody while another is free.
static void another_key_takes_a_free_place(void **state)
{
    (void)state;
    assert_int_equal(ask(7, T), REACH_TRY);
    reach_end(&reach, place, REACH_FAILED, ETIMEDOUT, T, &answer);
    const struct key asker = reach.places[place].key;
    assert_int_equal(ask_as(2, 1, HERE, T + REACH_AGAIN_MS), REACH_TRY);
    reach_end(&reach, place, REACH_PROVED, 0, T + REACH_AGAIN_MS, &answer);
    assert_true(reach_holds_back(&reach, &asker, T + REACH_KEPT_MS - 1));
    assert_int_equal(ask(7, T + REACH_KEPT_MS - 1), REACH_SAYS);
    expect_refused(REFUSAL_UNREACHABLE, 7, "connection timed out");
    // All places taken: the oldest answer goes first, though its place is not the first
    reach.places[0].ended_ms = T + 1;
    for (uint32_t i = 3; i <= REACH_PLACES; i++) {
        assert_int_equal(ask_as(i, 1, HERE, T + REACH_AGAIN_MS), REACH_TRY);
        reach_end(&reach, place, REACH_PROVED, 0, T + (i != 100) * REACH_AGAIN_MS, &answer);
    }
    assert_int_equal(ask_as(1000, 1, HERE, T + 2 * REACH_AGAIN_MS), REACH_TRY);
    assert_int_equal(place, 99);
    assert_true(reach_holds_back(&reach, &asker, T + REACH_KEPT_MS));
}

static void a_try_ends_in_time(void **state)
{
    (void)state;
    assert_true(reach_due_ms(&reach) == UINT64_MAX);
    assert_int_equal(ask_as(1, 1, HERE, T), REACH_TRY);
    const uint32_t first = place;
    assert_int_equal(ask_as(2, 1, HERE, T + 5), REACH_TRY);
    assert_int_equal(reach_due_ms(&reach), T + REACH_DEADLINE_MS);
    assert_int_equal(reach_late(&reach, T + REACH_DEADLINE_MS - 1), REACH_PLACES);
    assert_int_equal(reach_late(&reach, T + REACH_DEADLINE_MS), first);
    reach_end(&reach, first, REACH_FAILED, ETIMEDOUT, T, &answer);
    assert_int_equal(reach_late(&reach, T + REACH_DEADLINE_MS), REACH_PLACES);
    assert_int_equal(reach_due_ms(&reach), T + 5 + REACH_DEADLINE_MS);
}

// ---- sockets ------------------------------------------------------------------------------------

static void keep(void *arg, const struct reach_answer *said)
{
    *(struct reach_answer *)arg = *said;
}

static struct identity *make(uint8_t seed)
{
    uint8_t secret[SECRET_BYTES] = { seed };
    struct identity *identity;
    ensure(identity_from_secret(secret, NULL, &identity) == 0);
    return identity;
}

static void try_endpoint(struct reach_shell *shell, const struct identity *identity,
                         const char *endpoint)
{
    struct wire_reach asked = { .number = 1 };
    const struct msg in = { .now_ms = clock_ms(),
                            .kind = FRAME_REACH,
                            .run = "r",
                            .from = "trainer.1",
                            .sender = *identity_key(identity),
                            .body = &asked };
    struct pollfd item = { .fd = reach_shell_fd(shell), .events = POLLIN };
    snprintf(asked.endpoint, sizeof asked.endpoint, "%s", endpoint);
    answer = (struct reach_answer){ 0 };
    reach_shell_hear(shell, &in);
    while (answer.kind == 0 && poll(&item, 1, 10000) == 1) reach_shell_take(shell);
}

// A port of this machine at which nobody listens, as long as the socket is there.
static int take_port(char endpoint[64])
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof at;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ensure(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 &&
           getsockname(fd, (struct sockaddr *)&at, &size) == 0);
    snprintf(endpoint, 64, "tcp://127.0.0.1:%u", ntohs(at.sin_port));
    return fd;
}

static void a_bulk_server_is_known_by_its_key(void **state)
{
    (void)state;
    char nobody[64];
    struct why why = { 0 };
    struct reach_shell *shell, *other; // Of another run
    bulk_server_t *server;
    struct identity *identities[] = { make(1), make(2), make(3) }, *coordinator = make(4);
    const struct bulk_server_options options = { .identity = identities[0],
                                                 .endpoint = "tcp://127.0.0.1:*",
                                                 .run = "r" };
    assert_int_equal(reach_shell_new(coordinator, "r", keep, &answer, &why, &shell), 0);
    assert_int_equal(bulk_server_new(&options, &why, &server), 0);
    assert_int_equal(reach_shell_new(coordinator, "s", keep, &answer, &why, &other), 0);
    const int fd = take_port(nobody);
    try_endpoint(shell, identities[0], bulk_server_endpoint(server)); // No key is a guest there
    assert_int_equal(answer.kind, FRAME_ACK);
    try_endpoint(shell, identities[1], bulk_server_endpoint(server));
    expect_refused(REFUSAL_UNREACHABLE, 1, "another program answers at 127.0.0.1:");
    try_endpoint(other, identities[0], bulk_server_endpoint(server));
    expect_refused(REFUSAL_UNREACHABLE, 1, "another program answers at 127.0.0.1:");
    try_endpoint(shell, identities[2], nobody);
    expect_refused(REFUSAL_UNREACHABLE, 1, "connection refused");
    close(fd);
    bulk_server_destroy(&server);
    reach_shell_destroy(&shell);
    reach_shell_destroy(&other);
    for (size_t i = 0; i < 3; i++) identity_destroy(&identities[i]);
    identity_destroy(&coordinator);
}

TESTS(TEST_WITH(a_question_is_tried_once, set_up, NULL),
      TEST_WITH(a_late_repeat_does_not_stand_in_the_way, set_up, NULL),
      TEST_WITH(only_numbers_are_tried, set_up, NULL),
      TEST_WITH(what_is_found_is_said, set_up, NULL),
      TEST_WITH(many_askers_wait_for_each_other, set_up, NULL),
      TEST_WITH(another_key_takes_a_free_place, set_up, NULL),
      TEST_WITH(a_try_ends_in_time, set_up, NULL),
      TEST_WITH(a_bulk_server_is_known_by_its_key, set_up, NULL))
