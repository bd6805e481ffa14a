// Mistakes of operators and damage on disks: each is refused by name, or survived, and the run goes
// on.

#include "common/base/clock.h"
#include "tests/by_hand.h"
#include "tests/live/testbed.h"
#include "tests/test.h"
#include <inttypes.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>
#include <zmq.h>

enum { END_MS = 10000 };

static char path[600]; // Of the last in_dir()
static const char *in_dir(struct testbed *bed, const char *name)
{
    snprintf(path, sizeof path, "%s/%s", bed->dir, name);
    return path;
}

static struct testbed *make(void **state)
{
    return *state = testbed_new(&(struct testbed_options){ .trainers = 2,
                                                           .epoch_rounds = 6,
                                                           .total_steps = 12,
                                                           .train_s = 2,
                                                           .cooldown_s = 1 });
}

static void expect(struct testbed *bed, const char *name, int code, const char *text)
{
    int got = testbed_await_end(bed, name, END_MS);
    if (got != code) testbed_fail(bed, "%s ends with %d, not %d", name, got, code);
    if (!testbed_log_has(bed, name, text, NULL, 0))
        testbed_fail(bed, "%s does not say \"%s\"", name, text);
}

// ---- identities ---------------------------------------------------------------------------------

static void keys_that_are_none_are_refused(void **state)
{
    struct testbed *bed = make(state);
    testbed_actor(bed, "trainer0");
    assert_int_equal(chmod(in_dir(bed, "trainer0.key"), 0644), 0);
    testbed_start(bed, "trainer0");
    expect(bed, "trainer0", EX_NOPERM, "trainer0.key");
    testbed_actor(bed, "trainer1");
    assert_int_equal(truncate(in_dir(bed, "trainer1.key"), 31), 0);
    testbed_start(bed, "trainer1");
    expect(bed, "trainer1", EX_DATAERR, "31");
    testbed_start_with(
        bed, "trainer2",
        &(struct testbed_launch){ .args = (const char *const[]){ "-i", "nowhere.key", NULL } });
    expect(bed, "trainer2", EX_NOINPUT, "nowhere.key");
}

static void one_identity_is_for_one_process(void **state)
{
    struct testbed *bed = make(state);
    testbed_start_all(bed);
    testbed_await_step(bed, 1);
    testbed_start_with(
        bed, "trainer8",
        &(struct testbed_launch){ .args = (const char *const[]){
                                      "-i", "trainer0.key", "--state-dir", "trainer0", NULL } });
    expect(bed, "trainer8", EX_TEMPFAIL, "trainer0");
    testbed_start_with(
        bed, "trainer9",
        &(struct testbed_launch){ .args = (const char *const[]){ "-i", "trainer0.key", NULL } });
    expect(bed, "trainer0", EX_NOPERM, "a newer process uses this identity");
    testbed_finish(bed);
}

// ---- strangers ----------------------------------------------------------------------------------

static void a_member_of_another_run_is_refused(void **state)
{
    struct testbed *bed = make(state);
    testbed_start(bed, "broker");
    testbed_start(bed, "coordinator");
    testbed_start_with(
        bed, "trainer0",
        &(struct testbed_launch){ .args = (const char *const[]){ "--run-id", "other", NULL } });
    expect(bed, "trainer0", EX_CONFIG, "keeps run \"live\", not \"other\"");
}

// Sends a frame of another protocol without a HELLO; the answer names the protocol that we speak.
static void another_protocol_is_refused_by_name(void **state)
{
    struct testbed *bed = make(state);
    uint8_t frame[512], answer[1024];
    struct wire_head head = { .kind = FRAME_PING, .run = "live" };
    char endpoint[64], from[64];
    int patience_ms = 5000;
    testbed_start(bed, "broker");
    size_t count = wire_pack(&head, &(struct wire_ping){ 0 }, frame, sizeof frame);
    assert_true(count > 1);
    frame[1] = WIRE_PROTOCOL + 1; // [array][protocol]..
    void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_DEALER);
    const struct curve_key broker = by_hand_server(&bed->ticket.server);
    struct curve_pair own;
    curve_draw(&own);
    zap_secure_client(socket, &own, &broker);
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%u", bed->port);
    zmq_setsockopt(socket, ZMQ_RCVTIMEO, &patience_ms, sizeof patience_ms);
    assert_int_equal(zmq_connect(socket, endpoint), 0);
    zmq_send(socket, "coordinator", 11, ZMQ_SNDMORE);
    zmq_send(socket, frame, count, 0);
    int size = zmq_recv(socket, from, sizeof from, 0);
    int bytes = size < 0 ? -1 : zmq_recv(socket, answer, sizeof answer, 0);
    int zero = 0;
    zmq_setsockopt(socket, ZMQ_LINGER, &zero, sizeof zero);
    zmq_close(socket);
    zmq_ctx_term(context);
    assert_true(bytes > 0);
    static uint8_t memory[4096];
    struct wire_arena arena = { .bytes = memory, .max = sizeof memory };
    struct wire_refusal refusal;
    const void *body;
    assert_true(wire_unpack(answer, (size_t)bytes, WIRE_MAIL, &arena, &head, &body, &refusal));
    assert_int_equal(head.kind, FRAME_UNDELIVERABLE);
    const struct wire_undeliverable *no = body;
    print_message("%s\n", no->reason);
    assert_non_null(strstr(no->reason, "protocol"));
}

static void a_port_is_for_one_broker(void **state)
{
    struct testbed *bed = make(state);
    testbed_start(bed, "broker");
    testbed_await_log(bed, "broker", "broker.ready", TESTBED_WAIT_MS);
    char port[16];
    snprintf(port, sizeof port, "%u", bed->port);
    testbed_start_with(
        bed, "broker2",
        &(struct testbed_launch){
            .args = (const char *const[]){ "-i", "broker.key", "-s", port, NULL }, .bare = true });
    expect(bed, "broker2", EX_TEMPFAIL, port);
}

// ---- the coordinator's state --------------------------------------------------------------------

static void begin_and_stop(struct testbed *bed)
{
    testbed_start(bed, "broker");
    testbed_start(bed, "coordinator");
    testbed_await_log(bed, "coordinator", "broker.welcome", TESTBED_WAIT_MS);
    testbed_signal(bed, "coordinator", SIGTERM);
}

static void another_state_toml_is_refused_by_its_first_key(void **state)
{
    struct testbed *bed = make(state);
    begin_and_stop(bed);
    bed->options.total_steps = 13;
    bed->options.batch = 9;
    testbed_write_state(bed, "state.toml");
    testbed_start(bed, "coordinator");
    expect(bed, "coordinator", EX_DATAERR, "config.total_steps was 12, now is 13");
}

// What is right for `shoal train` alone, written to state.toml by a command whose %s is that file,
// is refused for a run before there is a ledger.
static void expect_refused(void **state, const char *edit, const char *says)
{
    struct testbed *bed = make(state);
    char command[900];
    snprintf(command, sizeof command, edit, in_dir(bed, "state.toml"));
    assert_int_equal(system(command), 0);
    testbed_start(bed, "broker");
    testbed_start(bed, "coordinator");
    expect(bed, "coordinator", EX_CONFIG, says);
}

static void an_optimizer_for_one_is_refused(void **state)
{
    expect_refused(state,
                   "sed -i -e '/^compression/d; s/optimizer.Distro/optimizer.AdamW/' -e "
                   "'s/^quantize.*/betas = [0.9, 0.95]\\neps = 1e-8\\nweight_decay = 0.1/' '%s'",
                   "AdamW, Adam and SGD exchange no results, so a run cannot be made");
}

static void saves_that_no_run_writes_are_refused(void **state)
{
    expect_refused(state, "printf '[checkpoint]\\nshared_dir = \"/tmp\"\\nsteps = 4\\n' >> '%s'",
                   "do not trust one another with parts of the state");
}

static void a_ledger_of_another_run_is_refused(void **state)
{
    struct testbed *bed = make(state);
    begin_and_stop(bed);
    bed->options.run_id = "other";
    testbed_write_state(bed, "state.toml");
    testbed_start(bed, "coordinator");
    expect(bed, "coordinator", EX_DATAERR, "live");
    bed->options.run_id = "live";
}

static void a_run_of_another_key_is_refused(void **state)
{
    struct testbed *bed = make(state);
    begin_and_stop(bed);
    testbed_actor(bed, "trainer0");
    testbed_start_with(
        bed, "coordinator",
        &(struct testbed_launch){ .args = (const char *const[]){ "-i", "trainer0.key", NULL } });
    expect(bed, "coordinator", EX_DATAERR, "coordinator/owner: the run belongs to key");
}

// Turns one bit of the run's name wherever it stands in a record.
static void damage(struct testbed *bed)
{
    static uint8_t bytes[8 << 20];
    int fd = open(in_dir(bed, "coordinator/data.mdb"), O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t count = read(fd, bytes, sizeof bytes);
    for (ssize_t i = 0; i + 5 < count; i++)
        if (memcmp(bytes + i, "\xa4live", 5) == 0) bytes[i + 4] ^= 1;
    assert_int_equal(pwrite(fd, bytes, (size_t)count, 0), count);
    close(fd);
}

static void a_damaged_ledger_is_refused(void **state)
{
    struct testbed *bed = make(state);
    begin_and_stop(bed);
    damage(bed);
    testbed_start(bed, "coordinator");
    expect(bed, "coordinator", EX_DATAERR, "record 1");
}

// ---- full disks ---------------------------------------------------------------------------------

// A small file system of this process and its children alone, gone with them.
static void mount_small(struct testbed *bed, const char *name, const char *size)
{
    static bool apart;
    char options[64];
    snprintf(options, sizeof options, "size=%s,mode=700", size);
    mkdir(in_dir(bed, name), 0700);
    if ((!apart &&
         (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)) ||
        mount("tmpfs", path, "tmpfs", 0, options) != 0) {
        print_message("SKIP: no small file system to fill: %s (needs root)\n", strerror(errno));
        skip();
    }
    apart = true;
}

static int unmount_small(void **state)
{
    struct testbed *bed = *state;
    if (bed) testbed_kill_all(bed);
    if (bed) umount2(in_dir(bed, "coordinator"), MNT_DETACH);
    if (bed) umount2(in_dir(bed, "checkpoints"), MNT_DETACH);
    return testbed_teardown(state);
}

static void a_full_disk_stops_the_coordinator_and_loses_nothing(void **state)
{
    struct testbed *bed = make(state);
    mount_small(bed, "coordinator", "64k");
    static const char *const names[] = { "coordinator",  "broker",   "data-provider",
                                         "checkpointer", "trainer0", "trainer1" };
    for (int i = 0; i < 6; i++) {
        testbed_start(bed, names[i]);
        testbed_actor(bed, names[0])->may_end = true;
    }
    expect(bed, "coordinator", EX_IOERR, "no space left");
    assert_int_equal(mount(NULL, in_dir(bed, "coordinator"), NULL, MS_REMOUNT, "size=64m,mode=700"),
                     0);
    testbed_start(bed, "coordinator");
    testbed_finish(bed);
}

static void a_full_disk_costs_a_checkpoint_and_not_the_run(void **state)
{
    struct testbed *bed = make(state);
    mount_small(bed, "checkpoints", "48k");
    testbed_start_all(bed);
    testbed_await_log(bed, "checkpointer", "checkpoint.failed", TESTBED_WAIT_MS);
    testbed_await_step(bed, 7);
    assert_int_equal(mount(NULL, in_dir(bed, "checkpoints"), NULL, MS_REMOUNT, "size=64m,mode=700"),
                     0);
    testbed_finish(bed);
}

// ---- data ---------------------------------------------------------------------------------------

static void write_tokens(struct testbed *bed, size_t bytes, uint16_t token)
{
    static uint16_t tokens[8000];
    for (size_t i = 0; i < 8000; i++) tokens[i] = i == 4000 ? token : (uint16_t)('a' + i % 26);
    unlink(in_dir(bed, "data/manifest.json"));
    testbed_write_file(bed, "data/text.bin", tokens, bytes);
}

static void token_files_that_cannot_be_are_refused(void **state)
{
    struct testbed *bed = make(state);
    write_tokens(bed, 6401, 'a');
    testbed_start(bed, "data-provider");
    expect(bed, "data-provider", EX_DATAERR, "text.bin");
    write_tokens(bed, 64, 'a');
    testbed_start(bed, "data-provider");
    expect(bed, "data-provider", EX_DATAERR, "text.bin");
}

static void a_token_file_may_shrink_under_its_reader(void **state)
{
    struct testbed *bed = make(state);
    testbed_start_all(bed);
    testbed_await_step(bed, 2);
    assert_int_equal(truncate(in_dir(bed, "data/text.bin"), 1000), 0);
    testbed_await_log(bed, "trainer0", "train.failed", TESTBED_WAIT_MS);
    char reason[300];
    testbed_log_has(bed, "trainer0", "train.failed", reason, sizeof reason);
    print_message("%s\n", reason);
    assert_non_null(strstr(reason, "text.bin"));
    testbed_signal(bed, "data-provider", SIGKILL);
    testbed_write_data(bed);
    testbed_start(bed, "data-provider");
    testbed_finish(bed);
}

static void a_token_beyond_the_vocabulary_is_never_trained(void **state)
{
    struct testbed *bed = make(state);
    char reason[300];
    char command[1000];
    write_tokens(bed, 16000, 300);
    snprintf(command, sizeof command, "%s/shoal manifest %s --token-bytes 2 > /dev/null", bed->bin,
             in_dir(bed, "data"));
    assert_int_equal(system(command), 0);
    testbed_start_all(bed);
    struct {
        const char *name;
    } either = { NULL };
    for (uint64_t until_ms = clock_ms() + TESTBED_WAIT_MS; !either.name && clock_ms() < until_ms;) {
        testbed_pass_ms(bed, 50);
        for (unsigned i = 0; i < 2; i++)
            if (testbed_log_has(bed, testbed_trainer(i), "train.failed", reason, sizeof reason))
                either.name = testbed_trainer(i);
    }
    assert_non_null(either.name);
    print_message("%s: %s\n", either.name, reason);
    assert_non_null(strstr(reason, "300"));
}

static void a_provider_may_be_dead_for_a_while(void **state)
{
    struct testbed *bed = make(state);
    testbed_start_all(bed);
    testbed_await_step(bed, 2);
    testbed_signal(bed, "data-provider", SIGKILL);
    testbed_await_log(bed, "trainer0", "train.failed", TESTBED_WAIT_MS);
    testbed_start(bed, "data-provider");
    testbed_finish(bed);
}

// ---- numbers and checkpoints --------------------------------------------------------------------

static bool has_round(struct testbed *bed, const void *arg)
{
    return bed->news.rounds >= *(const uint64_t *)arg;
}

static void a_loss_that_is_no_number_is_said_and_survived(void **state)
{
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){
        .trainers = 2, .poisoned = true, .train_s = 0.5, .no_checkpointer = true });
    char reason[300];
    uint64_t rounds = 2;
    testbed_start_all(bed);
    testbed_await_log(bed, "trainer0", "train.failed", TESTBED_WAIT_MS);
    testbed_log_has(bed, "trainer0", "train.failed", reason, sizeof reason);
    print_message("%s\n", reason);
    assert_non_null(strstr(reason, "dealt again"));
    testbed_await(bed, has_round, &rounds, TESTBED_WAIT_MS, "the batch in another round");
    assert_int_equal(bed->news.commits, 0);
    assert_true(testbed_actor(bed, "trainer0")->pid && testbed_actor(bed, "trainer1")->pid);
}

static bool has_checkpoint(struct testbed *bed, const void *arg)
{
    (void)arg;
    return bed->news.run.checkpoint_step > 0;
}

static void a_truncated_checkpoint_is_passed_over_by_name(void **state)
{
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){
        .trainers = 2, .epoch_rounds = 6, .total_steps = 18, .train_s = 2, .cooldown_s = 1 });
    char file[64]; // The run may be over before the checkpointer is back
    testbed_start_all(bed);
    testbed_await(bed, has_checkpoint, NULL, TESTBED_WAIT_MS, "a checkpoint");
    testbed_signal(bed, "checkpointer", SIGKILL);
    uint64_t step = bed->news.run.checkpoint_step;
    assert_true(step > 0);
    snprintf(file, sizeof file, "checkpoints/step-%08" PRIu64 "/model.safetensors", step);
    assert_int_equal(truncate(in_dir(bed, file), 5000), 0);
    testbed_start(bed, "checkpointer");
    snprintf(file, sizeof file, "checkpoint.damaged step=%" PRIu64, step);
    testbed_await_log(bed, "checkpointer", file, TESTBED_WAIT_MS);
    testbed_finish(bed);
}

TESTS(TESTBED_TEST(keys_that_are_none_are_refused), TESTBED_TEST(one_identity_is_for_one_process),
      TESTBED_TEST(a_member_of_another_run_is_refused),
      TESTBED_TEST(another_protocol_is_refused_by_name), TESTBED_TEST(a_port_is_for_one_broker),
      TESTBED_TEST(another_state_toml_is_refused_by_its_first_key),
      TESTBED_TEST(an_optimizer_for_one_is_refused),
      TESTBED_TEST(saves_that_no_run_writes_are_refused),
      TESTBED_TEST(a_ledger_of_another_run_is_refused),
      TESTBED_TEST(a_run_of_another_key_is_refused), TESTBED_TEST(a_damaged_ledger_is_refused),
      TEST_WITH(a_full_disk_stops_the_coordinator_and_loses_nothing, NULL, unmount_small),
      TEST_WITH(a_full_disk_costs_a_checkpoint_and_not_the_run, NULL, unmount_small),
      TESTBED_TEST(token_files_that_cannot_be_are_refused),
      TESTBED_TEST(a_token_file_may_shrink_under_its_reader),
      TESTBED_TEST(a_token_beyond_the_vocabulary_is_never_trained),
      TESTBED_TEST(a_provider_may_be_dead_for_a_while),
      TESTBED_TEST(a_loss_that_is_no_number_is_said_and_survived),
      TESTBED_TEST(a_truncated_checkpoint_is_passed_over_by_name))
