// Broker, coordinator, data provider and checkpointer in one network namespace, trainers in
// another, a veth pair between them: a whole run over what is not loopback. A trainer that would
// announce an address that the others cannot reach is refused, with the one to use; one that a
// firewall hides is told so by the coordinator, at its start and when it joins again. The test's own process is
// the first namespace, a child of it holds the second; all of it is gone when they are.

#include "tests/live/netns.h"
#include "tests/live/own_actor.h"
#include "tests/live/testbed.h"
#include "tests/test.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#define HERE  "10.213.7.1"
#define THERE "10.213.7.2"
// An address of the other namespace, of which nothing that arrives is answered: as behind a firewall.
#define WALLED  "198.51.100.4"
#define GATED   "198.51.100.5" // The same, until and after it is an address there
#define NOWHERE "192.0.2.130"  // No route leads there

static pid_t holder; // Lives in the other namespace

static bool open_gate(int netns, bool open)
{
    return netns_run(netns,
                     open ? "ip addr add " GATED "/32 dev lo" : "ip addr del " GATED "/32 dev lo");
}

static bool connect_them(int netns)
{
    char line[160];
    snprintf(line, sizeof line, "ip link add live0 type veth peer name live1 netns %d",
             (int)holder);
    return netns_run(-1, "ip link set lo up") && netns_run(-1, line) &&
           netns_run(-1, "ip addr add " HERE "/30 dev live0") &&
           netns_run(-1, "ip link set live0 up") && netns_run(netns, "ip link set lo up") &&
           netns_run(netns, "ip addr add " THERE "/30 dev live1") &&
           netns_run(netns, "ip link set live1 up") &&
           netns_run(-1, "ip route add " WALLED " via " THERE) &&
           netns_run(netns, "ip route add blackhole " WALLED) &&
           netns_run(-1, "ip route add " GATED " via " THERE) &&
           netns_run(-1, "ip route add blackhole " NOWHERE) &&
           netns_run(netns, "ip route add blackhole " GATED) && open_gate(netns, true);
}

// With its default, 127.0.0.1, or where it listens everywhere and announces nothing.
static void expect_refused(struct testbed *bed, const char *address, int netns)
{
    const struct testbed_launch far = { .args =
                                            (const char *const[]){ "--bulk-bind", address, NULL },
                                        .netns = netns };
    testbed_start_with(bed, "trainer2", &far);
    assert_int_equal(testbed_await_end(bed, "trainer2", TESTBED_WAIT_MS), EX_CONFIG);
    assert_true(testbed_log_has(bed, "trainer2", "is " THERE ": --bulk-bind " THERE, NULL, 0));
}

// A trainer that others cannot reach is told so by the coordinator, with its address, and is not in
// the run; the coordinator's log names it.
static void expect_unreachable(struct testbed *bed)
{
    static const char text[] = "nobody answers at " WALLED ":7000: connection timed out; open this "
                               "port in the firewall, or give --announce";
    assert_int_equal(testbed_await_end(bed, "trainer3", TESTBED_WAIT_MS), EX_CONFIG);
    assert_true(testbed_log_has(bed, "trainer3", text, NULL, 0));
    assert_true(testbed_log_has(bed, "trainer3", "; --bind-p2p-port keeps", NULL, 0));
    assert_false(testbed_log_has(bed, "trainer3", "--unchecked-address", NULL, 0));
    assert_true(testbed_log_has(bed, "coordinator", "address.refused to=trainer.", NULL, 0));
    assert_true(testbed_log_has(bed, "coordinator", text, NULL, 0));
    assert_false(testbed_log_has(bed, "trainer3", "member.admitted", NULL, 0));
}

// A member was in the run, and a firewall has closed since: it stays out, so that no round waits for it.
static void shut_out(struct testbed *bed, int netns)
{
    const struct testbed_launch gated = {
        .args = (const char *const[]){ "--bulk-bind", "0.0.0.0", "--announce", GATED, NULL },
        .netns = netns
    };
    testbed_start_with(bed, "trainer4", &gated);
    testbed_await_log(bed, "trainer4", "member.admitted", TESTBED_WAIT_MS);
    testbed_signal(bed, "trainer4", SIGSTOP);
    assert_true(open_gate(netns, false));
    testbed_await_log(bed, "coordinator", "member.dropped", TESTBED_WAIT_MS);
    testbed_signal(bed, "trainer4", SIGCONT);
    testbed_await_log(bed, "trainer4", "member.lapsed", TESTBED_WAIT_MS);
}

// It joins by itself when the firewall is open.
static void let_in(struct testbed *bed, int netns)
{
    static const char text[] =
        " (connection timed out): the run goes on without us; open this port in the firewall";
    testbed_await_log(bed, "trainer4", "nobody reaches us at " GATED ":", TESTBED_WAIT_MS);
    assert_true(testbed_log_has(bed, "trainer4", text, NULL, 0));
    assert_true(open_gate(netns, true));
    testbed_await_log(bed, "trainer4", "address.reached ", TESTBED_WAIT_MS);
    testbed_signal(bed, "trainer4", SIGTERM);
}

// The coordinator came when the member had stopped waiting for an answer: question and JOIN arrive
// together. The JOIN is left out while the address is tried.
static void expect_no_haste(struct testbed *bed)
{
    static const char endpoint[] = "tcp://" WALLED ":7001";
    struct own *own = own_new(bed, "hasty", ACTOR_WITNESS);
    struct wire_reach reach = { .number = 1 };
    struct wire_join join = { .role = ACTOR_WITNESS, .instance = 1 };
    memcpy(reach.endpoint, endpoint, sizeof endpoint);
    memcpy(join.endpoint, endpoint, sizeof endpoint);
    memcpy(join.name, own->name, sizeof join.name);
    assert_true(own_await(own, FRAME_WELCOME, TESTBED_WAIT_MS));
    post_mail(own->post, "coordinator", FRAME_REACH, &reach);
    post_mail(own->post, "coordinator", FRAME_JOIN, &join);
    assert_false(own_await(own, FRAME_ADMITTED, 1000));
    assert_true(own_await(own, FRAME_REFUSED, TESTBED_WAIT_MS));
    const struct wire_refused *refused = own->letter.msg.body;
    assert_int_equal(refused->kind, FRAME_REACH);
    assert_int_equal(refused->reason, REFUSAL_UNREACHABLE);
    post_mail(own->post, "coordinator", FRAME_JOIN, &join); // Sent before it heard that
    assert_false(own_await(own, FRAME_ADMITTED, 500));
    own_destroy(own);
}

// The kernel says EINVAL of a blackhole route. It is the asker's trouble, not the coordinator's.
static void expect_no_route(struct testbed *bed)
{
    struct own *own = own_new(bed, "lost", ACTOR_WITNESS);
    const struct wire_reach reach = { .endpoint = "tcp://" NOWHERE ":7002", .number = 1 };
    assert_true(own_await(own, FRAME_WELCOME, TESTBED_WAIT_MS));
    post_mail(own->post, "coordinator", FRAME_REACH, &reach);
    assert_true(own_await(own, FRAME_REFUSED, TESTBED_WAIT_MS));
    const struct wire_refused *refused = own->letter.msg.body;
    assert_int_equal(refused->reason, REFUSAL_UNREACHABLE);
    assert_non_null(
        strstr(refused->text, "nobody answers at " NOWHERE ":7002: no route leads there"));
    own_destroy(own);
}

// `shoal doctor` there, before a trainer is started: it ends with `code` and says `text`.
static void expect_doctor(struct testbed *bed, const char *announce, int netns, int code,
                          const char *text)
{
    const char *const args[] = {
        "doctor", "ticket", "--run-id=live", "--announce", announce, NULL
    };
    testbed_start_with(bed, "doctor",
                       &(struct testbed_launch){
                           .args = args, .netns = netns, .bare = true, .program = "../bin/shoal" });
    testbed_actor(bed, "doctor")->may_end = true;
    assert_int_equal(testbed_await_end(bed, "doctor", TESTBED_WAIT_MS), code);
    if (!testbed_log_has(bed, "doctor", text, NULL, 0))
        testbed_fail(bed, "doctor does not say \"%s\"", text);
}

// What it says of a trainer's memory is what the trainer says.
static void doctor_agrees_on_memory(struct testbed *bed)
{
    char rest[24], text[80];
    testbed_await_log(bed, "trainer0", "learner.memory ", TESTBED_WAIT_MS);
    assert_true(testbed_log_has(bed, "trainer0", "host_mib=", rest, sizeof rest));
    rest[strcspn(rest, " ")] = 0;
    snprintf(text, sizeof text, "a trainer takes %s MiB", rest);
    assert_true(testbed_log_has(bed, "doctor", text, NULL, 0));
}

static void trainers_are_elsewhere(void **state)
{
    static const char drawn[] =
        " (a port chosen now; give --bind-p2p-port for the one that will be used)";
    if (unshare(CLONE_NEWNET) != 0) {
        print_message("SKIP: no network namespace of our own: %s (needs root)\n", strerror(errno));
        skip();
    }
    int netns = netns_hold(&holder);
    if (netns < 0 || !connect_them(netns)) {
        print_message("SKIP: no veth pair between two namespaces (needs root, ip and veth)\n");
        skip();
    }
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){
        .host = HERE, .trainers = 3, .epoch_rounds = 8, .total_steps = 24 });
    const struct testbed_launch here = { .args =
                                             (const char *const[]){ "--bulk-bind", HERE, NULL } };
    const struct testbed_launch there = { .args =
                                              (const char *const[]){ "--bulk-bind", THERE, NULL },
                                          .netns = netns };
    // As behind NAT: what it binds is not what it announces.
    const struct testbed_launch behind = {
        .args = (const char *const[]){ "--bulk-bind", "0.0.0.0", "--announce", THERE, NULL },
        .netns = netns
    };
    const struct testbed_launch walled = { .args = (const char *const[]){ "--bulk-bind", "0.0.0.0",
                                                                          "--announce",
                                                                          WALLED ":7000", NULL },
                                           .netns = netns };
    testbed_start(bed, "broker");
    testbed_start(bed, "coordinator");
    testbed_start_with(bed, "trainer3", &walled);
    testbed_actor(bed, "trainer3")->may_end = true;
    testbed_start_with(bed, "data-provider", &here);
    testbed_start_with(bed, "checkpointer", &here);
    testbed_await_log(bed, "data-provider", "member.admitted", TESTBED_WAIT_MS);
    shut_out(bed, netns);
    expect_refused(bed, "127.0.0.1", netns);
    expect_refused(bed, "0.0.0.0", netns);
    for (unsigned i = 0; i < 2; i++) testbed_start_with(bed, testbed_trainer(i), &there);
    testbed_await_log(bed, "checkpointer", "member.admitted", TESTBED_WAIT_MS);
    for (unsigned i = 0; i < 2; i++)
        testbed_await_log(bed, testbed_trainer(i), "member.admitted", TESTBED_WAIT_MS);
    expect_doctor(bed, THERE, netns, EX_OK, "bad: 0, ");
    assert_true(testbed_log_has(bed, "doctor", "members       4 of 4 answer", NULL, 0));
    assert_true(testbed_log_has(bed, "doctor", "own address   the coordinator reaches us at " THERE,
                                NULL, 0));
    assert_true(testbed_log_has(bed, "doctor", drawn, NULL, 0));
    doctor_agrees_on_memory(bed);
    expect_doctor(bed, THERE ":1", netns, EX_UNAVAILABLE, "nobody answers at " THERE ":1");
    assert_false(testbed_log_has(bed, "doctor", "--unchecked-address", NULL, 0));
    testbed_start_with(bed, "trainer2", &behind);
    expect_no_haste(bed);
    expect_no_route(bed);
    expect_unreachable(bed);
    let_in(bed, netns);
    struct testbed_end end = testbed_finish(bed);
    assert_int_equal(end.ledger.voids, 0);
    close(netns);
}

static int end_holder(void **state)
{
    if (holder > 0) {
        kill(holder, SIGKILL);
        waitpid(holder, NULL, 0);
    }
    holder = 0;
    return testbed_teardown(state);
}

TESTS(TEST_WITH(trainers_are_elsewhere, NULL, end_holder))
