// Every named place (failpoints.def): the process is killed there, the call there fails, time goes
// by there, in the middle of a run; it comes back, and the run ends with all replicas, ledger and
// checkpoint in agreement. Short form: a twelfth of the places, killed, by LIVE_SEED, and two whose
// failure must end an actor, beside one run that shows which are passed. LIVE_LONG=1: all, with
// every action, at the first, the second and a later passing; one not reached is a failure.

#include "tests/live/testbed.h"
#include "common/base/ensure.h"
#include "tests/test.h"
#include <inttypes.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS_A_TRY = 20,
    SLOW_MS = 30,
    TRIES_MAX = 12,
    SHORT_SHARE = 12,
    STEPS_MAX = 4000,
    LONG_LEDGER_MS = 150000,
    REST_MS = 400000,
    BACK_MS = 75000
}; // Rate limit: an actor that comes 20 times within a minute is refused for the rest of it

static const struct place {
    const char *name, *actor, *actions;
} places[] = {
#define FAILPOINT(name, actor, actions) { #name, actor, actions },
#include "tests/live/failpoints.def"
};
enum { PLACES = sizeof places / sizeof *places };

static bool is_any_of(const char *name, const char *list) // Of words, each between spaces
{
    char word[64];
    snprintf(word, sizeof word, " %s ", name);
    return strstr(list, word) != NULL;
}

// The journal of a member and the ledger of the run: their calls fail in the short form, too.
static const char always[] = " journal_write ledger_commit ";
enum { ALWAYS = 2 };

// Places that only a coordinator passes that begins a run, and those that only a long ledger
// passes.
static bool is_of_a_beginning(const struct place *p)
{
    return is_any_of(p->name, " ledger_make config_copy owner_sync ");
}
static bool is_of_a_long_ledger(const struct place *p)
{
    return is_any_of(p->name, " ledger_snapshot ledger_grow ");
}

// ---- one place ----------------------------------------------------------------------------------

static void start_with(struct testbed *bed, const char *name, const char *what)
{
    char preload[300], choice[96];
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s/failpoint.so", bed->live);
    snprintf(choice, sizeof choice, "SHOAL_FAILPOINT=%s", what);
    testbed_start_with(
        bed, name,
        &(struct testbed_launch){ .env = (const char *const[]){ preload, choice, NULL } });
}

static void await_back(struct testbed *bed, const char *name)
{
    const char *word = strcmp(name, "broker") == 0        ? "actor.hello name=coordinator"
                       : strcmp(name, "coordinator") == 0 ? "coordinator.ready"
                                                          : "member.admitted";
    testbed_await_log(bed, name, word, BACK_MS);
}

static bool is_reached(struct testbed *bed, const void *arg)
{
    return testbed_log_has(bed, arg, "failpoint.reached", NULL, 0);
}

static bool has_died(struct testbed *bed, const void *arg)
{
    return testbed_actor(bed, arg)->pid == 0;
}

// A trainer comes back, and asks for the model and for the commits since.
static void provoke(struct testbed *bed, const char *name)
{
    for (int n = 0; n < TRIES_MAX && !testbed_wait(bed, is_reached, name, 1000); n++) {
        testbed_signal(bed, "trainer1", SIGKILL);
        testbed_start(bed, "trainer1");
        await_back(bed, "trainer1");
    }
}

// So that there are commits behind the checkpoint that the epoch began with.
static void hear_an_epoch_begin(struct testbed *bed)
{
    testbed_await_epoch(bed, bed->news.run.epoch + 1);
    testbed_await_phase(bed, PHASE_TRAIN);
    testbed_await_step(bed, bed->news.commits + 4);
}

static void reach(struct testbed *bed, const struct place *p, uint64_t time, const char *action)
{
    char what[96], missing[160];
    const char *name = p->actor;
    snprintf(what, sizeof what, "%s:%" PRIu64 ":%s", p->name, time, action);
    if (strcmp(p->name, "blob_load") == 0) hear_an_epoch_begin(bed);
    testbed_signal(bed, name, SIGKILL);
    start_with(bed, name, what);
    testbed_actor(bed, name)->may_end = true;
    if (strcmp(p->name, "quit") == 0) {
        await_back(bed, name);
        kill(testbed_actor(bed, name)->pid, SIGTERM);
    }
    if (is_any_of(p->name, " send_commits serve_chunk serve_leaves ")) provoke(bed, name);
    snprintf(missing, sizeof missing, "%s at %s", name, what);
    const bool later = is_of_a_long_ledger(p);
    testbed_await(bed, is_reached, name, later ? LONG_LEDGER_MS : BACK_MS, missing);
}

static void restart_plainly(struct testbed *bed, const char *name)
{
    testbed_signal(bed, name, SIGKILL);
    testbed_start(bed, name);
    await_back(bed, name);
}

static void kill_at(struct testbed *bed, const struct place *p, uint64_t time)
{
    reach(bed, p, time, "kill");
    testbed_await(bed, has_died, p->actor, TESTBED_WAIT_MS, "the end of the killed actor");
    restart_plainly(bed, p->actor);
}

static bool has_told_why(struct testbed *bed, const void *arg)
{
    const struct place *p = arg;
    return testbed_log_has(bed, p->actor, strerror(EIO), NULL, 0) ||
           testbed_log_has(bed, p->actor, strerror(ENOSPC), NULL, 0);
}

// By itself, and not by a signal.
static void end_of_it(struct testbed *bed, const struct place *p, const char *action)
{
    const int code = testbed_await_end(bed, p->actor, TESTBED_WAIT_MS);
    if (code == 0 || code > 128) testbed_fail(bed, "%s at %s: exit %d", action, p->name, code);
    if (!has_told_why(bed, p))
        testbed_fail(bed, "%s at %s: its log does not say why it ends", action, p->name);
}

struct going {
    const char *name;
    uint64_t commits;
};

static bool has_died_or_gone_on(struct testbed *bed, const void *arg)
{
    const struct going *going = arg;
    return has_died(bed, going->name) || bed->news.commits >= going->commits;
}

// An actor that must end (X) ends, and is started again as by systemd. Any other may instead go on
// for two commits.
static void fail_at(struct testbed *bed, const struct place *p, uint64_t time, const char *action)
{
    reach(bed, p, time, action);
    const struct going going = { p->actor, bed->news.commits + 2 };
    if (!strchr(p->actions, 'X'))
        testbed_await(bed, has_died_or_gone_on, &going, TESTBED_WAIT_MS, "an end, or two commits");
    if (strchr(p->actions, 'X') || has_died(bed, p->actor)) end_of_it(bed, p, action);
    restart_plainly(bed, p->actor);
    testbed_await_step(bed, bed->news.commits + 1);
}

static void try_place(struct testbed *bed, const struct place *p, uint64_t time, bool all)
{
    kill_at(bed, p, time);
    if (all && strchr(p->actions, 'E')) fail_at(bed, p, time, "eio");
    if (all && strchr(p->actions, 'F')) fail_at(bed, p, time, "enospc");
    if (all && strchr(p->actions, 'W')) {
        reach(bed, p, time, "700");
        testbed_await_step(bed, bed->news.commits + 2);
        restart_plainly(bed, p->actor);
    }
}

// ---- runs ---------------------------------------------------------------------------------------

static struct testbed *begin(void **state, unsigned tries, const char *slowly)
{
    const unsigned steps = 40 + tries * ROUNDS_A_TRY;
    struct testbed *bed = *state =
        testbed_new(&(struct testbed_options){ .trainers = 3,
                                               .epoch_rounds = 8,
                                               .total_steps = steps < STEPS_MAX ? steps : STEPS_MAX,
                                               .snapshot_rounds = 3,
                                               .train_s = 1,
                                               .witness_s = 1,
                                               .lease_s = 2,
                                               .cooldown_s = 3,
                                               .min_clients = 1 });
    bed->options.trainers = 0;
    testbed_start_all(bed);
    bed->options.trainers = 3;
    if (slowly) start_with(bed, "trainer0", slowly);
    else testbed_start(bed, "trainer0");
    for (unsigned i = 0; i < 3; i++) { // One by one: trainer1 asks the member after it first
        if (i > 0) testbed_start(bed, testbed_trainer(i));
        await_back(bed, testbed_trainer(i));
    }
    testbed_await_step(bed, 1);
    return bed;
}

static bool is_finished(struct testbed *bed, const void *arg)
{
    (void)arg;
    return bed->news.run.phase == PHASE_FINISHED;
}

static void finish(struct testbed *bed)
{
    restart_plainly(bed, "trainer0"); // At its own pace again
    if (is_finished(bed, NULL)) testbed_fail(bed, "the run ended before the last place");
    testbed_await(bed, is_finished, NULL, REST_MS, "the rest of the run");
    testbed_finish(bed);
}

// The places that `wanted` lists, each at one passing.
static void run_places(void **state, const bool wanted[PLACES], uint64_t time, bool all)
{
    char slowly[64];
    unsigned tries = 0;
    for (unsigned i = 0; i < PLACES; i++)
        if (wanted[i]) tries += 1 + (all ? (unsigned)strlen(places[i].actions) : 0);
    if (tries == 0) return;
    tries += all ? 0 : ALWAYS;
    snprintf(slowly, sizeof slowly, "learner_train:1+:%d", SLOW_MS);
    struct testbed *bed = begin(state, tries, slowly);
    for (unsigned i = 0; i < PLACES; i++) {
        if (wanted[i]) try_place(bed, &places[i], time, all);
        if (!all && is_any_of(places[i].name, always)) fail_at(bed, &places[i], 1, "eio");
    }
    finish(bed);
    testbed_destroy((struct testbed **)state);
}

static void in_the_midst_of_a_run(void **state)
{
    static const char *const actors[] = { "broker",       "coordinator", "data-provider",
                                          "checkpointer", "trainer1",    "trainer2" };
    uint64_t seed = testbed_seed();
    const unsigned first = (unsigned)(testbed_draw(&seed) % SHORT_SHARE);
    bool wanted[PLACES] = { false };
    if (!testbed_is_long()) {
        for (unsigned i = first; i < PLACES; i += SHORT_SHARE)
            wanted[i] = !is_of_a_beginning(&places[i]) && !is_of_a_long_ledger(&places[i]);
        run_places(state, wanted, 1, false);
        return;
    }
    for (uint64_t pass = 1; pass <= 3; pass++)
        for (unsigned a = 0; a < sizeof actors / sizeof *actors; a++) {
            // A place passed once in a life is passed at its start
            static const char once[] =
                " connect ready welcome hello quit broker_hello journal_open "
                " ledger_recovered ledger_take_over ledger_begin blob_load learner_build "
                " file_create file_write file_sync file_rename file_renamed "
                " spool_create spool_sync_dir spool_found "
                "learner_load "
                " fetch_model fetch_stage learner_save learner_saved checkpoint_manifest "
                " checkpoint_rename checkpoint_durable checkpoint_retire send_commits "
                "serve_leaves ";
            const uint64_t time = pass < 3 ? pass : 3 + testbed_draw(&seed) % 4;
            for (unsigned i = 0; i < PLACES; i++)
                wanted[i] = strcmp(places[i].actor, actors[a]) == 0 &&
                            !is_of_a_beginning(&places[i]) && !is_of_a_long_ledger(&places[i]) &&
                            (pass == 1 || !is_any_of(places[i].name, once));
            run_places(state, wanted, time, true);
        }
}

static void at_the_beginning_of_a_run(void **state)
{
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){ .total_steps = 8 });
    testbed_start(bed, "broker");
    for (unsigned i = 0; i < PLACES; i++) {
        const struct place *p = &places[i];
        if (!is_of_a_beginning(p)) continue;
        if (strchr(p->actions, 'E')) {
            reach(bed, p, 1, "eio");
            end_of_it(bed, p, "eio");
        }
        reach(bed, p, 1, "kill");
        testbed_await(bed, has_died, p->actor, TESTBED_WAIT_MS, "the end of the killed actor");
    }
    testbed_signal(bed, "broker", SIGKILL);
    testbed_start_all(bed);
    testbed_finish(bed);
}

static void in_a_long_ledger(void **state)
{
    if (!testbed_is_long()) {
        print_message("SKIP: thousands of rounds; LIVE_LONG=1 runs them\n");
        skip();
    }
    struct testbed *bed = begin(state, 130, NULL);
    for (unsigned i = 0; i < PLACES; i++)
        if (is_of_a_long_ledger(&places[i])) {
            if (strchr(places[i].actions,
                       'X')) { // Not restarted without the failpoint: its map would grow
                reach(bed, &places[i], 1, "eio");
                end_of_it(bed, &places[i], "eio");
            }
            kill_at(bed, &places[i], 1);
        }
    finish(bed);
}

// ---- which places one quiet run passes ----------------------------------------------------------

static void a_quiet_run_passes_most(void **state)
{
    char preload[300], list[400], text[8192];
    unsigned passed = 0;
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){ .total_steps = 12 });
    snprintf(list, sizeof list, "%s/passed", bed->dir);
    snprintf(preload, sizeof preload, "%s/failpoint.so", bed->live);
    setenv("SHOAL_FAILPOINT_LIST", list, 1);
    setenv("LD_PRELOAD", preload, 1); // For all processes started from here on
    testbed_start_all(bed);
    testbed_finish(bed);
    unsetenv("LD_PRELOAD");
    unsetenv("SHOAL_FAILPOINT_LIST");
    testbed_read_file(list, text, sizeof text);
    for (unsigned i = 0; i < PLACES; i++) {
        char line[80];
        snprintf(line, sizeof line, "%s\n", places[i].name);
        const char *at = strstr(text, line);
        passed += at && (at == text || at[-1] == '\n');
    }
    print_message("%u of %d places are passed when nothing goes wrong\n", passed, PLACES);
    assert_true(passed >= 45);
}

TESTS(TESTBED_TEST(a_quiet_run_passes_most), TESTBED_TEST(at_the_beginning_of_a_run),
      TESTBED_TEST(in_the_midst_of_a_run), TESTBED_TEST(in_a_long_ledger))
