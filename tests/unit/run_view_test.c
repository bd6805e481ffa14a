// run_view_test -- the view that an observer makes of the news, how the demo tells that a process
// is back, what a ledger of windows adds up to, and what is said of one that cannot be verified.

#include "actors/shoal/local/demo_kills.c" // The front command's own parts are in no library
#include "actors/coordinator/rules_shell.h"
#include "actors/shoal/run/ledger_report.c"
#include "actors/shoal/run/run_view.c"
#include "common/run/lags.h"
#include "tests/test.h"

#include <stdlib.h>
#include <unistd.h>

static const struct key coordinator = { { 0xc0 } }, alice = { { 0xa1 } }, bob = { { 0xb0 } };

static unsigned hear(struct run_view *view, uint16_t kind, uint64_t incarnation, const void *body)
{
    struct msg msg = {
        .kind = kind, .sender = coordinator, .incarnation = incarnation, .body = body
    };
    return run_view_hear(view, &msg);
}

static unsigned hear_roster_of_two(struct run_view *view)
{
    const struct wire_member members[] = { { .index = 0, .key = alice, .role = ACTOR_TRAINER },
                                           { .index = 1, .key = bob, .role = ACTOR_TRAINER } };
    return hear(view, FRAME_ROSTER, 1,
                &(struct wire_roster){ .version = 1, .members = members, .members_count = 2 });
}

static unsigned open_round(struct run_view *view, uint64_t incarnation, uint64_t round)
{
    static const struct wire_client clients[] = { { .member = 1 },
                                                  { .member = 0 } }; // Bob is client 0
    static const struct interval dealt = { 0, 8 };
    return hear(view, FRAME_ROUND, incarnation,
                &(struct wire_round){ .round = round,
                                      .step = round - 1,
                                      .batch_size = 8,
                                      .dealt = &dealt,
                                      .dealt_count = 1,
                                      .clients = clients,
                                      .clients_count = 2 });
}

static unsigned commit(struct run_view *view, uint64_t incarnation, uint64_t round, uint32_t client)
{
    const struct wire_accepted accepted[] = { { .client = client, .begin = 0, .end = 4 } };
    return hear(view, FRAME_COMMIT, incarnation,
                &(struct wire_commit){ .round = round,
                                       .step = round - 1,
                                       .outcome = OUTCOME_COMMITTED,
                                       .accepted = accepted,
                                       .accepted_count = 1 });
}

static struct run_view *started(void)
{
    struct run_view *view = calloc(1, sizeof *view);
    assert_non_null(view);
    assert_int_equal(hear(view, FRAME_RUN, 1, &(struct wire_run){ .phase = PHASE_WARMUP }),
                     VIEW_RUN | VIEW_PHASE);
    assert_int_equal(hear_roster_of_two(view), VIEW_ROSTER);
    return view;
}

// What the broker had kept comes by mail, and may come after the news: the run's last RUN has the
// digest that `shoal up` prints.
static void test_an_older_word_comes_later(void **state)
{
    (void)state;
    struct run_view *view = started();
    struct wire_run end = { .phase = PHASE_FINISHED, .step = 4, .digest_step = 4 };
    struct wire_run before = { .phase = PHASE_COOLDOWN, .step = 4 };
    struct msg news = {
        .kind = FRAME_RUN, .sender = coordinator, .incarnation = 1, .seq = 9, .body = &end
    };
    struct msg kept = news;
    kept.seq = 8, kept.body = &before;
    assert_int_equal(run_view_hear(view, &news), VIEW_RUN | VIEW_PHASE);
    assert_int_equal(run_view_hear(view, &kept), 0);
    assert_int_equal(open_round(view, 1, 4), VIEW_ROUND); // Seq 0
    assert_int_equal(view->now.phase, PHASE_FINISHED);
    assert_int_equal(view->now.digest_step, 4);
    assert_int_equal(view->now.step, 4);
    assert_int_equal(hear_roster_of_two(view), VIEW_ROSTER); // Of seq 0, as the one before
    kept.kind = FRAME_MEMBERS, kept.seq = 7;
    const struct wire_member third = { .index = 2, .role = ACTOR_TRAINER };
    kept.body = &(struct wire_members){ 1, 2, &third, 1 };
    assert_int_equal(run_view_hear(view, &kept), VIEW_ROSTER);
    assert_int_equal(hear_roster_of_two(view), 0);
    assert_int_equal(view->roster.count, 3);
    // After a restart the coordinator counts from 1 again. Its changes do not apply to a roster
    // told before the restart.
    kept.incarnation = 2, kept.seq = 1;
    kept.body = &(struct wire_members){ 1, 3, &third, 1 };
    assert_int_equal(run_view_hear(view, &kept), VIEW_REBORN);
    news.incarnation = 2, news.seq = 1, news.body = &before;
    assert_int_equal(run_view_hear(view, &news), VIEW_RUN | VIEW_PHASE);
    free(view);
}

static void test_follows_rounds(void **state)
{
    (void)state;
    struct run_view *view = started();
    assert_int_equal(open_round(view, 1, 1), VIEW_ROUND);
    assert_string_equal(run_view_phase(view), "RoundTrain");
    assert_int_equal(open_round(view, 1, 1), 0); // Recalled: nothing new
    assert_int_equal(commit(view, 1, 1, 0), VIEW_COMMIT);
    assert_int_equal(commit(view, 1, 1, 0), 0);
    assert_int_equal(view->now.step, 1);
    assert_true(run_view_accepts(view, &bob));
    assert_false(run_view_accepts(view, &alice));
    assert_false(run_view_accepts(view, &coordinator));
    assert_int_equal(commit(view, 1, 2, 0), VIEW_COMMIT); // Its ROUND was lost: no member is named
    assert_false(run_view_accepts(view, &bob));
    free(view);
}

// News may overtake each other: a ROUND that comes after its COMMIT still says whose results these
// are.
static void test_a_round_is_heard_after_its_commit(void **state)
{
    (void)state;
    struct run_view *view = started();
    assert_int_equal(commit(view, 1, 1, 0), VIEW_COMMIT);
    assert_false(run_view_accepts(view, &bob));
    assert_int_equal(open_round(view, 1, 1), VIEW_ROUND);
    assert_true(run_view_accepts(view, &bob));
    assert_false(view->round.open);
    free(view);
}

// What contradicts itself is no news, and nothing of it is kept.
static void test_what_cannot_be_is_not_kept(void **state)
{
    (void)state;
    struct run_view *view = started();
    const struct wire_client clients[] = { { .member = 1 } };
    const struct wire_member members[] = { { .index = 1, .key = alice } };
    const struct interval dealt[] = { { 4, 8 }, { 8, 8 } };
    struct wire_round round = { .round = 1,
                                .batch_size = 5, // And 4 samples
                                .dealt = dealt,
                                .dealt_count = 1,
                                .clients = clients,
                                .clients_count = 1 };
    assert_int_equal(hear(view, FRAME_ROUND, 1, &round), 0);
    round.batch_size = 4, round.dealt_count = 2; // One of them empty
    assert_int_equal(hear(view, FRAME_ROUND, 1, &round), 0);
    round.dealt_count = 1, round.clients_count = 0;
    assert_int_equal(hear(view, FRAME_ROUND, 1, &round), 0);
    assert_int_equal(view->round.opened.round, 0);
    assert_int_equal(view->now.phase, PHASE_WARMUP);
    round.clients_count = 1;
    assert_int_equal(hear(view, FRAME_ROUND, 1, &round), VIEW_ROUND);
    assert_int_equal(hear(view, FRAME_ROSTER, 1,
                          &(struct wire_roster){ 2, .members = members, .members_count = 1 }),
                     0);
    assert_int_equal(run_view_member(view, &bob), 1);
    free(view);
}

static unsigned tell_steps(struct run_view *view, uint64_t window, uint64_t from, uint64_t to)
{
    return hear(view, FRAME_STEPS, 1,
                &(struct wire_steps){
                    .number = window, .step = from, .end = to, .samples = 8 * (to - from) });
}

static void test_follows_windows(void **state)
{
    (void)state;
    struct run_view *view = started();
    const struct wire_place group[] = { { .member = 1 } };
    const struct interval samples[] = { { 0, 100 }, { 200, 260 } };
    struct wire_window window = { .number = 4,
                                  .step = 10,
                                  .steps = 20,
                                  .samples = samples,
                                  .samples_count = 2,
                                  .group = group,
                                  .group_count = 1 };
    assert_null(view->unit);
    assert_int_equal(hear(view, FRAME_WINDOW, 1, &window), VIEW_WINDOW);
    assert_int_equal(hear(view, FRAME_WINDOW, 1, &window), 0); // Recalled: nothing new
    assert_string_equal(view->unit->name, "window");
    assert_int_equal(view->window.samples, 160);
    assert_true(run_view_in_group(view, 1));
    assert_false(run_view_in_group(view, 0));
    view->now.phase = PHASE_TRAIN;
    assert_string_equal(run_view_phase(view), "Train");
    assert_int_equal(tell_steps(view, 4, 10, 16), VIEW_COMMIT);
    assert_int_equal(view->now.step, 16);
    assert_int_equal(tell_steps(view, 4, 10, 16), 0);           // Said again
    assert_int_equal(tell_steps(view, 4, 16, 16), 0);           // It was closed
    assert_int_equal(tell_steps(view, 4, 16, 12), 0);           // Cannot be
    assert_int_equal(tell_steps(view, 6, 12, 14), VIEW_COMMIT); // After a restore
    assert_int_equal(view->now.step, 14);
    free(view);
}

static void test_old_lives_are_passed_over(void **state)
{
    (void)state;
    struct run_view *view = started();
    const struct wire_beat beat = { .phase = PHASE_TRAIN };
    assert_true(hear(view, FRAME_BEAT, 2, &beat) & VIEW_REBORN);
    assert_int_equal(hear(view, FRAME_RUN, 1, &(struct wire_run){ .phase = PHASE_FINISHED }), 0);
    assert_string_equal(run_view_phase(view), "RoundTrain");
    assert_false(hear(view, FRAME_BEAT, 2, &beat) & VIEW_REBORN);
    free(view);
}

static void test_progress_needs_a_known_sender(void **state)
{
    (void)state;
    struct run_view *view = started();
    const struct wire_progress progress = { .step = 5, .digest = { { 0xa1 } } };
    struct msg msg = { .kind = FRAME_PROGRESS, .sender = bob, .body = &progress };
    assert_int_equal(run_view_hear(view, &msg), VIEW_PROGRESS);
    assert_int_equal(view->progress[1].step, 5);
    msg.sender = (struct key){ { 0 } };
    assert_int_equal(run_view_hear(view, &msg), 0);
    free(view);
}

static void test_a_killed_trainer_is_back(void **state)
{
    (void)state;
    struct run_view *view = started();
    struct demo_kill kill = { .name = "bob", .key = bob, .at_step = 1 };
    assert_false(demo_kill_is_due(&kill, view, open_round(view, 1, 1), 100)); // Step 0 is too early
    assert_false(demo_kill_is_due(&kill, view, commit(view, 1, 1, 0), 110));  // No round is open
    assert_true(demo_kill_is_due(&kill, view, open_round(view, 1, 2), 120));
    assert_false(demo_kill_is_due(&kill, view, VIEW_ROUND, 121)); // Once
    assert_false(
        demo_kill_came_back(&kill, view, commit(view, 1, 2, 0), 130)); // Of the round it died in
    open_round(view, 1, 3);
    assert_false(demo_kill_came_back(&kill, view, commit(view, 1, 3, 1), 140)); // Alice's
    open_round(view, 1, 4);
    assert_true(demo_kill_came_back(&kill, view, commit(view, 1, 4, 0), 150));
    assert_int_equal(kill.back_round - kill.round, 2);
    assert_int_equal(kill.back_ms - kill.ms, 30);
    free(view);
}

static void test_a_killed_coordinator_is_back(void **state)
{
    (void)state;
    struct run_view *view = started();
    struct demo_kill kill = { .name = "coordinator" };
    assert_true(demo_kill_is_due(&kill, view, open_round(view, 1, 1), 100));
    assert_false(
        demo_kill_came_back(&kill, view, commit(view, 1, 1, 0), 110)); // Said before it died
    unsigned heard = open_round(view, 2, 2);
    assert_true(heard & VIEW_REBORN);
    assert_false(demo_kill_came_back(&kill, view, heard, 120));
    assert_int_equal(kill.reborn_ms, 120);
    assert_true(demo_kill_came_back(&kill, view, commit(view, 2, 2, 0), 130));
    assert_int_equal(kill.state, KILL_BACK);
    free(view);
}

static struct reader ledger;

static int read_window(uint64_t number, uint64_t begin, uint64_t end)
{
    const struct interval samples = { begin, end };
    const struct wire_window window = { .number = number, .samples = &samples, .samples_count = 1 };
    return see(&ledger, FRAME_RECORD_WINDOW, &window, 1);
}

static int read_steps(uint64_t number, uint64_t step, uint64_t end, bool closed)
{
    const struct wire_steps steps = { .number = number,
                                      .epoch = 1,
                                      .step = step,
                                      .end = end,
                                      .samples = 8 * (end - step),
                                      .closed = closed };
    return see(&ledger, FRAME_RECORD_STEPS, &steps, 1);
}

// The window behind an open one is voided with it; its samples are dealt again.
static void test_a_ledger_of_windows_adds_up(void **state)
{
    (void)state;
    static struct ledger_report report;
    struct why why = { 0 };
    ledger = (struct reader){ .report = &report, .why = &why };
    assert_int_equal(read_window(1, 0, 80), 0);
    assert_int_equal(read_steps(1, 0, 4, false), 0);
    assert_int_equal(read_window(2, 80, 160), 0);
    assert_int_equal(read_steps(1, 4, 10, false), 0);
    assert_int_equal(read_steps(2, 10, 13, true), 0); // It broke
    assert_int_equal(read_window(3, 104, 200), 0);
    assert_int_equal(read_steps(2, 13, 14, false), FAULT_CORRUPT);
    assert_int_equal(read_steps(3, 13, 13, false), 0);
    assert_int_equal(read_steps(3, 13, 25, false), 0);
    assert_true(report.has_windows);
    assert_int_equal(report.windows, 3);
    assert_int_equal(report.commits, 4);
    assert_int_equal(report.steps, 25);
    assert_int_equal(report.last_step, 25);
    assert_int_equal(report.samples, 200);
    assert_int_equal(report.steps_twice + report.steps_skipped + report.samples_twice, 0);
    const struct wire_record_restore restore = { .step = 10, .data_position = { .cursor = 80 } };
    assert_int_equal(see(&ledger, FRAME_RECORD_RESTORE, &restore, 1), 0);
    assert_int_equal(read_steps(3, 25, 26, false), FAULT_CORRUPT); // Given up
    assert_int_equal(read_window(4, 80, 160), 0);
    assert_int_equal(read_steps(4, 10, 20, false), 0);
    assert_int_equal(report.last_step, 20);
    assert_int_equal(report.steps, 20);
    assert_int_equal(report.steps_undone, 15);
    assert_int_equal(report.samples_twice, 0);
    assert_int_equal(read_window(5, 72, 96), 0); // What no coordinator does
    assert_int_equal(read_steps(5, 19, 22, false), 0);
    assert_int_equal(report.steps_twice, 1);
    assert_int_equal(report.samples_twice, 24);
    for (int i = 0; i < WINDOWS_OPEN; i++) free(ledger.windows[i].samples);
    free(ledger.trained);
}

static int read_lease(uint64_t number, uint32_t member, uint64_t begin, uint64_t end)
{
    const struct interval samples = { begin, end };
    const struct wire_lease lease = {
        .number = number, .member = member, .task = begin, .samples = &samples, .samples_count = 1
    };
    return see(&ledger, FRAME_RECORD_LEASE, &lease, 1);
}

static int read_lease_end(uint64_t lease, uint8_t fate, uint64_t samples, uint64_t from,
                          uint64_t to)
{
    const struct wire_lease_ended ended = {
        .lease = lease, .fate = fate, .samples = samples, .step = from, .end = to
    };
    return see(&ledger, FRAME_RECORD_LEASE_END, &ended, 1);
}

// A task that is returned is trained once all the same, by another trainer. Lease 0 commits a step alone.
static void test_a_ledger_of_leases_adds_up(void **state)
{
    (void)state;
    static struct ledger_report report;
    static struct report_member members[2];
    struct why why = { 0 };
    const struct wire_place places[] = { { .member = 0 }, { .member = 1 } };
    const struct wire_group group = { .number = 1, .group = places, .group_count = 2 };
    ledger = (struct reader){ .report = &report, .why = &why };
    report.members = members, report.members_count = 2;
    assert_int_equal(see(&ledger, FRAME_RECORD_GROUP, &group, 1), 0);
    assert_int_equal(read_lease(1, 0, 0, 16), 0);
    assert_int_equal(read_lease(2, 1, 16, 32), 0);
    assert_int_equal(read_lease_end(1, FATE_DONE, 16, 0, 2), 0);
    assert_int_equal(read_lease_end(1, FATE_DONE, 16, 2, 4), FAULT_CORRUPT); // It is over
    assert_int_equal(read_lease_end(2, FATE_RETURNED, 0, 2, 2), 0);
    assert_int_equal(read_lease(3, 0, 16, 32), 0);
    assert_int_equal(read_lease_end(3, FATE_DONE, 16, 2, 4), 0);
    assert_int_equal(read_lease_end(0, FATE_DONE, 0, 4, 5), 0);
    assert_true(report.has_leases && !report.has_windows);
    assert_int_equal(report.windows, 1);
    assert_int_equal(report.commits, 3);
    assert_int_equal(report.steps, 5);
    assert_int_equal(report.samples, 32);
    assert_int_equal(report.samples_twice + report.steps_twice + report.steps_skipped, 0);
    assert_int_equal(members[0].results, 2);
    assert_int_equal(members[1].results, 0);
    assert_int_equal(members[1].windows, 1);
    const struct wire_record_restore restore = { .step = 2, .data_position = { .cursor = 16 } };
    assert_int_equal(read_lease(4, 1, 32, 48), 0);
    assert_int_equal(see(&ledger, FRAME_RECORD_RESTORE, &restore, 1), 0);
    assert_int_equal(read_lease_end(4, FATE_DONE, 16, 2, 4), FAULT_CORRUPT); // Given up
    assert_int_equal(report.steps_undone, 3);
    assert_int_equal(read_lease(5, 1, 8, 24), 0); // What no coordinator does
    assert_int_equal(read_lease_end(5, FATE_DONE, 16, 2, 4), 0);
    assert_int_equal(report.samples_twice, 8);
    for (int i = 0; i < LEASES_MAX; i++) free(ledger.out[i].samples);
    free(ledger.trained);
}

static uint64_t missing_at(uint64_t cursor, struct interval returned)
{
    const struct wire_epoch_end end = {
        .data_position = { .cursor = cursor, .returned = &returned, .returned_count = 1 }
    };
    assert_int_equal(see(&ledger, FRAME_RECORD_EPOCH_END, &end, 1), 0);
    return ledger.report->samples_missing;
}

// At the end of an epoch: what is neither committed nor returned is missing. After a restore it is counted again.
static void test_a_sample_that_is_lost_is_said(void **state)
{
    (void)state;
    static struct ledger_report report;
    struct why why = { 0 };
    const struct wire_record_genesis genesis = { .cursor = 40 };
    ledger = (struct reader){ .report = &report, .why = &why };
    assert_int_equal(see(&ledger, FRAME_RECORD_GENESIS, &genesis, 1), 0);
    assert_int_equal(missing_at(40, (struct interval){ 0, 0 }), 0);
    assert_int_equal(read_window(1, 40, 120), 0);
    assert_int_equal(read_steps(1, 0, 9, true), 0); // To 112
    assert_int_equal(missing_at(112, (struct interval){ 0, 0 }), 0);
    assert_int_equal(missing_at(120, (struct interval){ 112, 120 }), 0);
    assert_int_equal(missing_at(120, (struct interval){ 115, 120 }), 3);
    assert_int_equal(missing_at(120, (struct interval){ 0, 0 }), 8);
    assert_int_equal(missing_at(130, (struct interval){ 112, 130 }), 0); // It has come back
    const struct wire_record_restore restore = { .step = 5, .data_position = { .cursor = 80 } };
    assert_int_equal(see(&ledger, FRAME_RECORD_RESTORE, &restore, 1), 0);
    assert_int_equal(missing_at(80, (struct interval){ 0, 0 }), 0);
    assert_int_equal(missing_at(88, (struct interval){ 0, 0 }), 8);
    for (int i = 0; i < WINDOWS_OPEN; i++) free(ledger.windows[i].samples);
    free(ledger.trained);
}

// ---- a ledger and its configuration -------------------------------------------------------------

static void append(struct ledger *to, uint16_t kind, const void *body)
{
    uint8_t packed[1024];
    uint64_t seq;
    const size_t count = wire_pack_record(kind, body, packed, sizeof packed);
    assert_true(count > 0);
    assert_int_equal(ledger_append(to, packed, count, NULL, NULL, &seq), 0);
}

// A sound ledger of two records: it begins the run of config/demo/allreduce.toml.
static void write_ledger(const char *dir)
{
    static struct run_config config;
    static struct config_faults faults;
    struct rules rules;
    struct ledger *to;
    assert_int_equal(config_load_run("config/demo/allreduce.toml", &config, &faults), 0);
    rules_of_config(&config, &rules);
    struct wire_record_genesis genesis = { .config = rules.config,
                                           .seed = rules.run_seed,
                                           .digest = rules.genesis_digest,
                                           .epoch = rules.first_epoch,
                                           .step = rules.first_step,
                                           .cursor = rules.first_position };
    snprintf(genesis.run, sizeof genesis.run, "%s", rules.run_id);
    assert_int_equal(ledger_open(dir, rules.run_id, NULL, NULL, &to), 0);
    assert_int_equal(ledger_begin(to, NULL), 0);
    append(to, FRAME_RECORD_GENESIS, &genesis);
    append(to, FRAME_RECORD_START, &(struct wire_record_start){ .incarnation = 7 });
    assert_int_equal(ledger_commit(to, NULL), 0);
    ledger_close(&to);
}

static void assert_report(const char *dir, int unverified_fault, const char *disproof, bool windows)
{
    struct ledger_report report = { 0 };
    struct why why = { 0 };
    assert_int_equal(ledger_report_read(dir, &why, &report), 0);
    assert_int_equal(report.unverified_fault, unverified_fault);
    assert_true(strstr(report.unverified.text, "/state.toml cannot be loaded") ||
                unverified_fault == 0);
    assert_non_null(strstr(report.disproof, disproof));
    assert_int_equal(report.disproof[0] != 0, disproof[0] != 0);
    assert_int_equal(report.has_windows, windows);
    assert_int_equal(report.records, 2); // They are counted in any case
    assert_int_equal(report.incarnation, 7);
    ledger_report_free(&report);
}

static void shell(const char *dir, const char *command)
{
    char line[400];
    snprintf(line, sizeof line, "to=%s; %s", dir, command);
    assert_int_equal(system(line), 0);
}

static void test_a_ledger_without_its_configuration_is_not_false(void **state)
{
    (void)state;
    char dir[] = "/tmp/shoal-run-view-XXXXXX";
    assert_non_null(mkdtemp(dir));
    write_ledger(dir);
    assert_report(dir, FAULT_NOT_FOUND, "", false);
    shell(dir, "cp config/demo/allreduce.toml $to/state.toml");
    assert_report(dir, 0, "", true);
    shell(dir, "echo nonsense = 1 >> $to/state.toml");
    assert_report(dir, FAULT_CONFIG, "", false);
    shell(dir, "cp config/demo/state.toml $to");
    assert_report(dir, 0, "another configuration", false);
    shell(dir, "rm -r $to");
}

// A run of leases: GROUP tells it, and its steps are committed as RUN says.
static void test_a_group_tells_that_the_run_has_leases(void **state)
{
    struct run_view *view = calloc(1, sizeof *view);
    (void)state;
    assert_non_null(view);
    struct wire_run run = { .phase = PHASE_TRAIN, .step = 4 };
    assert_int_equal(hear(view, FRAME_RUN, 1, &run), VIEW_RUN | VIEW_PHASE);
    run.step = 5;
    assert_int_equal(hear(view, FRAME_RUN, 1, &run), VIEW_RUN);
    const struct wire_place places[] = { { .member = 3, .instance = 1 },
                                         { .member = 5, .instance = 1 } };
    const struct wire_group group = { .number = 2, .group = places, .group_count = 2 };
    assert_int_equal(hear(view, FRAME_GROUP, 1, &group), VIEW_WINDOW);
    assert_int_equal(hear(view, FRAME_GROUP, 1, &group), 0);
    assert_string_equal(view->unit->name, "group");
    assert_string_equal(run_view_phase(view), "Train");
    assert_true(run_view_in_group(view, 5) && !run_view_in_group(view, 4));
    assert_int_equal(hear(view, FRAME_RUN, 1, &run), VIEW_RUN);
    run.step = 8, run.tasks.done = 1;
    assert_int_equal(hear(view, FRAME_RUN, 1, &run), VIEW_RUN | VIEW_COMMIT);
    assert_int_equal(view->now.tasks.done, 1);
    free(view);
}

// What trainers say of their pushes, by trainer. A later word takes the place of an earlier one.
static void test_pushes_are_kept_by_trainer(void **state)
{
    struct run_view *view = calloc(1, sizeof *view);
    const struct wire_push_line lines[] = {
        { .member = 0, .pushes = 9, .discarded = 1, .samples_per_s = 4, .lags = { .of_0 = 10 } },
        { .member = 5, .pushes = 3, .samples_per_s = 1, .lags = { .of_8 = 3 } },
    };
    struct wire_pushes pushes = { .number = 1, .trainers = lines, .trainers_count = 2 };
    (void)state;
    assert_non_null(view);
    assert_int_equal(hear(view, FRAME_PUSHES, 1, &pushes), VIEW_PUSHES);
    assert_true(view->pushes.count == 2 && view->pushes.lines[1].member == 5);
    assert_true(view->pushes.lines[0].pushes == 9 && view->pushes.lines[1].lags.of_8 == 3);
    pushes.number = 2, pushes.trainers_count = 1;
    assert_int_equal(hear(view, FRAME_PUSHES, 1, &pushes), VIEW_PUSHES);
    assert_true(view->pushes.number == 2 && view->pushes.count == 1);
    free(view);
}

// The least lags of bins are 0, 1, 2, 4 ... 64; each lag is counted in one.
static void test_lags_are_counted_by_powers_of_two(void **state)
{
    struct wire_lags lags = { 0 };
    (void)state;
    for (uint64_t lag = 0; lag < 100; lag++) lags_count(&lags, lag);
    lags_count(&lags, UINT64_MAX);
    for (uint32_t bin = 0; bin < LAGS_BINS; bin++) {
        const uint64_t first = lags_first(bin);
        assert_int_equal(first, bin ? 1u << (bin - 1) : 0);
        assert_int_equal(lags_at(&lags, bin), bin + 1 == LAGS_BINS ? 37 : first ? first : 1);
    }
    assert_true(lags.of_0 == 1 && lags.of_1 == 1 && lags.of_2 == 2 && lags.of_64 == 37);
}

TESTS(TEST(test_follows_rounds), TEST(test_a_ledger_without_its_configuration_is_not_false),
      TEST(test_an_older_word_comes_later), TEST(test_a_ledger_of_windows_adds_up),
      TEST(test_a_sample_that_is_lost_is_said), TEST(test_a_round_is_heard_after_its_commit),
      TEST(test_what_cannot_be_is_not_kept), TEST(test_follows_windows),
      TEST(test_old_lives_are_passed_over), TEST(test_progress_needs_a_known_sender),
      TEST(test_a_killed_trainer_is_back), TEST(test_a_killed_coordinator_is_back),
      TEST(test_a_group_tells_that_the_run_has_leases), TEST(test_pushes_are_kept_by_trainer),
      TEST(test_lags_are_counted_by_powers_of_two), TEST(test_a_ledger_of_leases_adds_up))
