// Members detect a coordinator whose disk is an older copy: it ends with an error that names both
// ledger heads, and no member follows it meanwhile. With the newer copy put back the run goes on. A
// member that was away detects it as well. With --begin-anew the owner gives up what a newcomer
// heard from the older copy only. And shoal status detects a forged ledger that is consistent
// except for the seed of one round.

#include "common/ledger/ledger.h"
#include "common/wire/wire.h"
#include "tests/live/testbed.h"
#include "tests/test.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>

static void shell(struct testbed *bed, const char *command)
{
    char line[1024];
    snprintf(line, sizeof line, "cd %s && %s", bed->dir, command);
    assert_int_equal(system(line), 0);
}

// Starts the coordinator on the older copy and waits for its end.
static void ends_with(struct testbed *bed, const char *word)
{
    testbed_start(bed, "coordinator");
    testbed_actor(bed, "coordinator")->may_end = true;
    assert_int_equal(testbed_await_end(bed, "coordinator", TESTBED_WAIT_MS), EX_DATAERR);
    assert_true(testbed_log_has(bed, "coordinator", word, NULL, 0));
}

static bool has_heard(struct testbed *bed, const void *frames)
{
    return bed->news.frames >= *(const uint64_t *)frames;
}

static void is_found_out(struct testbed *bed)
{
    ends_with(bed, "fell behind: record");
    assert_true(testbed_log_has(bed, "coordinator", "Put the newer copy back", NULL, 0));
}

static int append_bent(void *arg, const struct record *record)
{
    static uint8_t memory[1 << 20], packed[1 << 16];
    struct wire_arena arena = { .bytes = memory, .max = sizeof memory };
    struct ledger *to = arg;
    struct wire_refusal refusal;
    struct why why;
    uint16_t kind;
    const void *body;
    uint64_t seq;
    assert_true(wire_unpack_record(record->bytes, record->count, WIRE_LOCAL, &arena, &kind, &body,
                                   &refusal));
    struct wire_round round;
    if (kind == FRAME_RECORD_ROUND) {
        round = *(const struct wire_round *)body;
        round.seed ^= round.round == 5;
        body = &round;
    }
    const size_t count = wire_pack_record(kind, body, packed, sizeof packed);
    assert_true(count > 0);
    return ledger_append(to, packed, count, NULL, &why, &seq);
}

// Returns the exit code; the output is in the file `said`.
static int read_status(struct testbed *bed, const char *ledger)
{
    char line[1024];
    snprintf(line, sizeof line, "cd %s && %s/shoal status --ledger %s > said 2>&1", bed->dir,
             bed->bin, ledger);
    return WEXITSTATUS(system(line));
}

static void another_seed_is_found_out(struct testbed *bed)
{
    char from_dir[300], to_dir[300], text[512];
    struct ledger_report report;
    struct ledger *from, *to;
    struct why why;
    snprintf(from_dir, sizeof from_dir, "%s/coordinator", bed->dir);
    snprintf(to_dir, sizeof to_dir, "%s/bent", bed->dir);
    assert_int_equal(ledger_open_readonly(from_dir, &why, &from), 0);
    assert_int_equal(ledger_open(to_dir, bed->options.run_id, NULL, &why, &to), 0);
    assert_int_equal(ledger_begin(to, &why), 0);
    assert_int_equal(ledger_each(from, 1, append_bent, to, &why), 0);
    assert_int_equal(ledger_commit(to, &why), 0);
    ledger_close(&to);
    ledger_close(&from);
    shell(bed, "cp coordinator/state.toml bent/");
    assert_false(ledger_check(to_dir, bed->options.run_id, &report, text, sizeof text));
    assert_non_null(strstr(text, "the seed of round 5"));
    assert_int_equal(read_status(bed, "bent"), EX_DATAERR);
    shell(bed, "grep -q 'DOES NOT HOLD.*the seed of round 5' said");
    shell(bed, "rm bent/state.toml"); // Now nobody can tell
    assert_int_equal(read_status(bed, "bent"), EX_NOINPUT);
    shell(bed, "grep -q 'NOT VERIFIED.*bent/state.toml cannot be loaded' said");
    shell(bed, "! grep -q 'DOES NOT HOLD\\|evidence verified' said");
    assert_int_equal(read_status(bed, "coordinator"), 0);
    shell(bed, "grep -q 'evidence verified: [1-9][0-9]* draws' said");
}

static void an_older_copy_of_the_ledger_is_found_out(void **state)
{
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){
        .trainers = 3, .epoch_rounds = 8, .total_steps = 24, .lease_s = 30 });
    testbed_start_all(bed);
    testbed_await_step(bed, 4);
    testbed_signal(bed, "coordinator", SIGKILL);
    shell(bed, "cp -r coordinator older");
    testbed_start(bed, "coordinator");
    testbed_await_step(bed, 9);
    testbed_signal(bed, "coordinator", SIGKILL);
    shell(bed, "mv coordinator newer && cp -r older coordinator");
    is_found_out(bed);
    // Members that have all been restarted know it from their journals.
    for (unsigned i = 0; i < 3; i++) testbed_signal(bed, testbed_trainer(i), SIGKILL);
    testbed_signal(bed, "checkpointer", SIGKILL);
    testbed_signal(bed, "data-provider", SIGKILL);
    shell(bed, "rm -r coordinator && cp -r older coordinator");
    testbed_start(bed, testbed_trainer(1));
    is_found_out(bed);
    // A newcomer that came while the older copy was up knows only that copy: the owner decides.
    testbed_signal(bed, testbed_trainer(1), SIGKILL);
    shell(bed, "rm -r coordinator && cp -r older coordinator");
    testbed_start(bed, "coordinator");
    testbed_start(bed, testbed_trainer(3));
    testbed_await_log(bed, "coordinator", "member.joined name=trainer", TESTBED_WAIT_MS);
    const uint64_t frames = bed->news.frames + 10; // Each heartbeat one, with where the ledger is
    testbed_await(bed, has_heard, &frames, TESTBED_WAIT_MS, "news of the older copy");
    testbed_signal(bed, "coordinator", SIGKILL);
    shell(bed, "rm -r coordinator && cp -r newer coordinator");
    ends_with(bed, "start this once with --begin-anew");
    const char *const begin[] = { "--begin-anew", NULL };
    testbed_start_with(bed, "coordinator", &(struct testbed_launch){ .args = begin });
    testbed_await_log(bed, testbed_trainer(3), "step=9", TESTBED_WAIT_MS); // It follows the run
    testbed_signal(bed, "coordinator", SIGKILL);
    testbed_signal(bed, testbed_trainer(3), SIGKILL);
    // A new ledger where there was none does not pass for the old one either.
    shell(bed, "rm -r coordinator");
    testbed_start(bed, testbed_trainer(1));
    ends_with(bed, "Put it back; or give that run up and start once with --begin-anew");
    shell(bed, "rm -r coordinator && mv newer coordinator");
    testbed_start(bed, "coordinator");
    testbed_start(bed, "data-provider");
    testbed_start(bed, "checkpointer");
    testbed_start(bed, testbed_trainer(0));
    testbed_start(bed, testbed_trainer(2));
    assert_true(testbed_finish(bed).ledger.starts == 3);
    another_seed_is_found_out(bed);
}

TESTS(TESTBED_TEST(an_older_copy_of_the_ledger_is_found_out))
