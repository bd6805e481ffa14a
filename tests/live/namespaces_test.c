// Broker, coordinator, data provider and checkpointer in one network namespace, trainers in
// another, a veth pair between them: a whole run over what is not loopback. The test's own process
// is the first namespace, a child of it holds the second; all of it is gone when they are.

#include "tests/live/testbed.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define HERE "10.213.7.1"
#define THERE "10.213.7.2"

static pid_t holder;                    // Lives in the other namespace

static bool run_in(int netns, const char *line)
{
    char text[256], *args[16], *rest = NULL;
    int count = 0, status;
    snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok_r(text, " ", &rest); word && count < 15;
         word = strtok_r(NULL, " ", &rest))
        args[count++] = word;
    args[count] = NULL;
    pid_t pid = fork();
    if (pid == 0) {
        if (netns && setns(netns, CLONE_NEWNET) != 0) _exit(125);
        execvp(args[0], args);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

// A process in a namespace of its own; returns a descriptor of it, or -1.
static int make_namespace(void)
{
    int ready[2];
    char path[64], byte = 0;
    if (pipe2(ready, O_CLOEXEC) != 0) return -1;
    holder = fork();
    if (holder == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (unshare(CLONE_NEWNET) != 0 || write(ready[1], "y", 1) != 1) _exit(1);
        for (;;) pause();
    }
    close(ready[1]);
    bool made = holder > 0 && read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    snprintf(path, sizeof path, "/proc/%d/ns/net", (int)holder);
    return made ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

static bool connect_them(int netns)
{
    char line[160];
    snprintf(line, sizeof line, "ip link add live0 type veth peer name live1 netns %d",
             (int)holder);
    return run_in(0, "ip link set lo up") && run_in(0, line) &&
           run_in(0, "ip addr add " HERE "/30 dev live0") && run_in(0, "ip link set live0 up") &&
           run_in(netns, "ip link set lo up") &&
           run_in(netns, "ip addr add " THERE "/30 dev live1") &&
           run_in(netns, "ip link set live1 up");
}

static void trainers_are_elsewhere(void **state)
{
    if (unshare(CLONE_NEWNET) != 0) {
        print_message("SKIP: no network namespace of our own: %s (needs root)\n", strerror(errno));
        skip();
    }
    int netns = make_namespace();
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
    testbed_start(bed, "broker");
    testbed_start(bed, "coordinator");
    testbed_start_with(bed, "data-provider", &here);
    testbed_start_with(bed, "checkpointer", &here);
    testbed_await_log(bed, "data-provider", "member.admitted", TESTBED_WAIT_MS);
    for (unsigned i = 0; i < 3; i++) testbed_start_with(bed, testbed_trainer(i), &there);
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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test_teardown(trainers_are_elsewhere,
                                                                  end_holder) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
