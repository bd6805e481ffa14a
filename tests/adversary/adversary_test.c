// Four trainers, one of which lies (hostile.c), as real processes: it is ejected within the given
// rounds, no honest trainer is ejected, the honest replicas end in the same bits, and the model has
// lost nothing.
//
// As a test each kind has one short run with half of the clients auditing, after one of the three
// honest ones alone; of the nine kinds of wrong results three are drawn by LIVE_SEED. For the long form
// (adversaries.sh) ADVERSARY names one kind and ADVERSARY_SEED the run: with 25 % audits and
// LONG_STEPS steps; one line of figures goes to the file ADVERSARY_OUT. "none" is the run of the
// three honest ones alone.

#include "common/base/clock.h"
#include "common/checkpoint/checkpoint.h"
#include "common/model/batch.h"
#include "common/model/model_config.h"
#include "common/model/model_tensors.h"
#include "tests/live/testbed.h"
#include "tests/test.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHORT_STEPS = 24,
    LONG_STEPS = 240,
    TRAINERS = 4, // The liar is one of them
    LATE_EPOCHS = 2,
    LATE_ROUNDS = 40,
    ROUNDS_MAX = 25,
    SEQ_LEN = 32,
    HELD_OUT = 256,
    UNHEALTHY_ROUNDS = 3,
    LATE_FROM = 3, // Round in which it begins
    LATE_FOUND = 20,
    LATE_LONG_STEPS = 2400, // So long that one wait is no tenth of it
    DAY_MS = 86400000,
    LOSS_PERCENT = 2
};
#define LIAR "trainer3"

struct expected {
    const char *kind; // Word of hostile.c
    unsigned rounds;  // From the first deed to the ejection at most; 0: not ejected
    const char *guilt;
    const char *deed; // What its log says of each
};

static const struct expected kinds[] = {
    { "sign-flip", ROUNDS_MAX, "wrong-result", "hostile.result round=" },
    { "times-10", ROUNDS_MAX, "wrong-result", "hostile.result round=" },
    { "noise", ROUNDS_MAX, "wrong-result", "hostile.result round=" },
    { "lazy", ROUNDS_MAX, "wrong-result", "hostile.result round=" },
    { "stale", ROUNDS_MAX, "wrong-result", "hostile.result round=" },
    { "copy", ROUNDS_MAX, "wrong-result", "hostile.result round=" },
    { "wrong-batch", ROUNDS_MAX, "wrong-result", "hostile.result round=" },
    { "nan", ROUNDS_MAX, "wrong-result", "hostile.result round=" },
    { "nan-residual", ROUNDS_MAX, "wrong-result", "hostile.result round=" },
    { "equivocate", 1, "equivocation", "hostile.result round=" },
    { "withhold", 0, "", "hostile.result round=" },
    { "accuse", ROUNDS_MAX, "false-accusation", "hostile.finding round=" },
    { "silent", 0, "wrong-result",
      "hostile.result round=" }, // For its audit debt, in a later epoch
    { "late", 0, "", "" },
    { "flaky", 0, "", "" },
    { "none", 0, "", "" },
};

static const struct expected *expected_of(const char *kind)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].kind, kind) == 0) return &kinds[i];
    fail_msg("%s is no kind of hostile.c", kind);
    return NULL;
}

struct played {
    uint64_t first, ejected; // Rounds: of the first deed; that was open at the ejection
    char guilt[32];
    unsigned honest_ejected;
    unsigned dropped, honest_dropped; // How often the liar was, and others
    uint64_t dropped_first;           // Round that was open then
    uint64_t waited_ms,
        after_ms; // In rounds of all four that went on without a result; in all: since then
    double loss, seconds;
    struct testbed_end end;
};

// ---- what became of it ----------------------------------------------------------------------------

static uint64_t number_behind(const char *line, const char *before)
{
    const char *at = strstr(line, before);
    return at ? strtoull(at + strlen(before), NULL, 10) : 0;
}

// Of the day.
static uint64_t time_of(const char *line)
{
    unsigned hours, minutes, seconds, ms;
    assert_int_equal(sscanf(line, "%*s %u:%u:%u.%u", &hours, &minutes, &seconds, &ms), 4);
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + ms;
}

// A round after the first drop. One that lacks a result has waited for it from beginning to end. While the late one
// is out, a result that is missing is not its doing: the machine is loaded.
static void add_round(struct played *ret, const char *line, uint64_t dropped_at_ms)
{
    const uint64_t accepted = number_behind(line, "accepted=");
    const uint64_t of = number_behind(strstr(line, "accepted="), "/");
    ret->after_ms = (time_of(line) + DAY_MS - dropped_at_ms) % DAY_MS;
    if (of == TRAINERS && accepted < of)
        ret->waited_ms += number_behind(line, "train_ms=") + number_behind(line, "witness_ms=");
}

// The coordinator's log in order: the round that is open when a trainer is ejected is the one after
// the newest that was closed.
static void read_ejections(struct testbed *bed, const char *liar, struct played *ret)
{
    char line[1024];
    uint64_t closed = 0, dropped_at_ms = 0;
    FILE *log = fopen(testbed_actor(bed, "coordinator")->log, "r");
    assert_non_null(log);
    while (fgets(line, sizeof line, log)) {
        if (strstr(line, "round.committed ") || strstr(line, "round.void "))
            closed = number_behind(line, "round=");
        if (ret->dropped && strstr(line, "round.committed ")) add_round(ret, line, dropped_at_ms);
        const char *name = strstr(line, " name=");
        const bool is_liar = name && strncmp(strchr(name, '=') + 1, liar, strlen(liar)) == 0;
        if (strstr(line, "member.dropped ")) {
            if (is_liar && ret->dropped++ == 0) {
                ret->dropped_first = closed + 1;
                dropped_at_ms = time_of(line);
            }
            ret->honest_dropped += !is_liar;
        }
        if (!strstr(line, "member.ejected ")) continue;
        if (!is_liar) ret->honest_ejected++;
        else if (sscanf(strstr(line, "guilt="), "guilt=%31s", ret->guilt) == 1)
            ret->ejected = closed + 1;
    }
    fclose(log);
}

static uint64_t first_deed(struct testbed *bed, const char *deed)
{
    char rest[256];
    return deed[0] && testbed_log_has(bed, LIAR, deed, rest, sizeof rest) ? strtoull(rest, NULL, 10)
                                                                          : 0;
}

// ---- the model at the end -------------------------------------------------------------------------

// Words as in the text of the testbed, in another order.
static void fill_held_out(uint32_t *ret_tokens)
{
    static const char *const words[] = { "the ",   "shoal ", "turns ", "as ", "one ",  "and ",
                                         "holds ", "its ",   "depth ", "in ", "dark ", "water\n" };
    uint64_t seed = 4711;
    size_t count = 0;
    const size_t want = (size_t)HELD_OUT * (SEQ_LEN + 1);
    while (count < want)
        for (const char *c = words[testbed_draw(&seed) % 12]; *c && count < want; c++)
            ret_tokens[count++] = (unsigned char)*c;
}

static double held_out_loss(struct testbed *bed)
{
    static uint32_t tokens[HELD_OUT * (SEQ_LEN + 1)];
    struct layout_tensor tensors[64];
    struct layout layout;
    struct model_shape shape;
    struct why why = { 0 };
    checkpoint_t *checkpoint;
    model_t *model;
    char path[512], json[8192];
    double loss = 0.0;
    snprintf(path, sizeof path, "%s/model/config.json", bed->dir);
    testbed_read_file(path, json, sizeof json);
    assert_int_equal(model_shape_from_config_json(json, strlen(json), &why, &shape), 0);
    assert_int_equal(model_tensors_layout(&shape, tensors, &why, &layout), 0);
    float *params = malloc(model_parameter_count(&shape) * sizeof *params);
    snprintf(path, sizeof path, "%s/checkpoints", bed->dir);
    assert_int_equal(checkpoint_open_newest(path, bed->options.run_id, &why, &checkpoint), 0);
    assert_int_equal(checkpoint_load_params(checkpoint, &layout, params, &why), 0);
    checkpoint_close(&checkpoint);
    const struct model_options options = { 16, SEQ_LEN, GEMM_FLOAT32, false };
    const struct batch batch = { tokens, HELD_OUT, SEQ_LEN, 16 };
    fill_held_out(tokens);
    assert_int_equal(model_new(&shape, &options, NULL, &why, &model), 0);
    assert_int_equal(batch_loss(model, params, &batch, &why, &loss), 0);
    model_destroy(&model);
    free(params);
    return loss;
}

// ---- a run ----------------------------------------------------------------------------------------

static bool has_finished(struct testbed *bed, const void *arg)
{
    (void)arg;
    return bed->news.has_run && bed->news.run.phase == PHASE_FINISHED;
}

static void start_liar(struct testbed *bed, const char *kind, char ret_name[ACTOR_NAME_MAX + 1])
{
    char as[64];
    snprintf(as, sizeof as, "HOSTILE=%s", kind);
    const char *const env[] = { as, NULL };
    testbed_start_with(bed, LIAR,
                       &(struct testbed_launch){ .env = env, .program = "hostile-trainer" });
    testbed_actor(bed, LIAR)->may_end = true; // An ejected trainer gives up
    testbed_await_log(bed, LIAR, "member.admitted", TESTBED_WAIT_MS);
    char rest[256];
    testbed_log_has(bed, LIAR, "actor.ready name=", rest, sizeof rest);
    assert_int_equal(sscanf(rest, "%47s", ret_name), 1);
}

static struct played play(void **state, const struct expected *expected, uint64_t seed,
                          bool is_long)
{
    const bool alone = strcmp(expected->kind, "none") == 0;
    const bool waits = strcmp(expected->kind, "withhold") == 0; // Each round until its time is up
    const bool late = strcmp(expected->kind, "late") == 0 || strcmp(expected->kind, "flaky") == 0;
    const bool hides = strcmp(expected->kind, "silent") == 0; // And loses its place for the epoch
    struct played outcome = { 0 };
    char run_id[32], liar[ACTOR_NAME_MAX + 1] = "";
    const uint64_t began_ms = clock_ms();
    const unsigned steps = late && is_long ? LATE_LONG_STEPS
                           : is_long       ? LONG_STEPS
                           : late          ? LATE_EPOCHS * LATE_ROUNDS
                           : hides         ? 2 * SHORT_STEPS
                                           : SHORT_STEPS;
    snprintf(run_id, sizeof run_id, "%s-%" PRIu64, expected->kind, seed);
    struct testbed *bed = *state =
        testbed_new(&(struct testbed_options){ .run_id = run_id,
                                               .trainers = 1,
                                               .init_min_clients = alone || hides || late ? 3 : 4,
                                               .total_steps = steps,
                                               .epoch_rounds = hides  ? 8
                                                               : late ? LATE_ROUNDS
                                                                      : 4 * steps,
                                               .full_values = true,
                                               .verification_percent = late      ? 0
                                                                       : is_long ? 25
                                                                                 : 50,
                                               .train_s = waits  ? 1
                                                          : late ? 4
                                                                 : 10,
                                               .least_s = late    ? 1
                                                          : waits ? 1
                                                                  : 10,
                                               .witness_s = waits   ? 0.5
                                                            : hides ? 1
                                                                    : 5,
                                               .lease_s = hides ? 2 : 5,
                                               .warmup_s = 20,
                                               .cooldown_s = 20 });
    testbed_start_all(bed);
    if (!alone) start_liar(bed, expected->kind, liar);
    testbed_start(bed, testbed_trainer(1));
    testbed_start(bed, testbed_trainer(2));
    testbed_await(bed, has_finished, NULL, 400000, "Finished");
    outcome.first = first_deed(bed, expected->deed);
    if (late) { // It may be out, and then has not the last step
        testbed_signal(bed, LIAR, SIGTERM);
        testbed_await_end(bed, LIAR, TESTBED_WAIT_MS);
    }
    outcome.end = testbed_finish(bed);
    if (!alone) read_ejections(bed, liar, &outcome);
    outcome.loss = held_out_loss(bed);
    outcome.seconds = (double)(clock_ms() - began_ms) / 1000.0;
    print_message("%s: first deed in round %" PRIu64 ", ejected in round %" PRIu64
                  " (%s), honest ejected %u, loss "
                  "%.4f, %" PRIu64 " voids, %" PRIu64 " partial, %.1f s\n",
                  expected->kind, outcome.first, outcome.ejected,
                  outcome.guilt[0] ? outcome.guilt : "-", outcome.honest_ejected, outcome.loss,
                  outcome.end.ledger.voids, outcome.end.ledger.partial, outcome.seconds);
    return outcome;
}

static void put_figures(const struct expected *expected, uint64_t seed,
                        const struct played *outcome)
{
    FILE *out = fopen(getenv("ADVERSARY_OUT"), "a");
    assert_non_null(out);
    fprintf(out,
            "%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%s\t%u\t%.6f\t%" PRIu64 "\t%" PRIu64
            "\t%.1f\t%u\t%" PRIu64 "\t%.4f\n",
            expected->kind, seed, outcome->first, outcome->ejected,
            outcome->guilt[0] ? outcome->guilt : "-", outcome->honest_ejected, outcome->loss,
            outcome->end.ledger.voids, outcome->end.ledger.partial, outcome->seconds,
            outcome->honest_dropped, outcome->dropped_first,
            outcome->after_ms ? (double)outcome->waited_ms / (double)outcome->after_ms : 0.0);
    assert_int_equal(fclose(out), 0);
}

// The verdict of the long form is the table's.
static void one_run_is_recorded(void **state)
{
    const uint64_t seed = strtoull(getenv("ADVERSARY_SEED"), NULL, 10);
    const struct expected *expected = expected_of(getenv("ADVERSARY"));
    const struct played outcome = play(state, expected, seed, true);
    put_figures(expected, seed, &outcome);
}

// ---- the short form -------------------------------------------------------------------------------

static double honest_loss;

static void the_honest_ones_alone(void **state)
{
    const struct played outcome = play(state, expected_of("none"), 1, false);
    assert_int_equal(outcome.end.ledger.ejections, 0);
    honest_loss = outcome.loss;
}

// After these few steps the loss of honest runs differs by less than 1 %. Unaudited sign-flip and
// noise cost 6 % and 2.4 %. The damage of any other liar is still too small to be told from chance.
static void assert_nothing_is_lost(const struct played *outcome)
{
    if (!(honest_loss > 0 && outcome->loss <= honest_loss * (100 + LOSS_PERCENT) / 100))
        fail_msg("a loss of %.4f: more than %d %% above the %.4f of the honest ones alone",
                 outcome->loss, LOSS_PERCENT, honest_loss);
}

static void liar_is_ejected(void **state)
{
    const char *kind = *state;
    const struct expected *expected = expected_of(kind);
    *state = NULL;
    const struct played outcome = play(state, expected, 1, false);
    assert_int_equal(outcome.honest_ejected, 0);
    assert_true(outcome.first > 0);
    assert_string_equal(outcome.guilt, expected->guilt);
    if (expected->rounds) { // A silent liar changes the number of steps as well
        assert_in_range(outcome.ejected - outcome.first, 0, expected->rounds);
        assert_nothing_is_lost(&outcome);
    }
}

// What it does not serve is not committed, and its samples are dealt again: testbed_finish has seen
// in the ledger that none is lost. And it is not waited for in every round of the epoch.
static void withheld_payload_is_dealt_again(void **state)
{
    const struct played outcome = play(state, expected_of("withhold"), 1, false);
    assert_true(outcome.first > 0);
    assert_int_equal(outcome.ejected + outcome.honest_ejected, 0);
    assert_int_equal(outcome.dropped, 1);
    // Each round in which it trains for all again, or audits, takes one of its misses away. A round that
    // is void is one that it missed, too.
    assert_in_range(outcome.end.ledger.partial + outcome.end.ledger.voids, UNHEALTHY_ROUNDS,
                    2 * UNHEALTHY_ROUNDS);
    assert_nothing_is_lost(&outcome);
}

// It is 3.7 s late of the 4 s that a round may take. Nobody waits so long for it, it is dropped within 20 rounds,
// and again at its first late round of the next epoch. Nobody else is. No round is void.
static void late_one_is_dropped(void **state)
{
    const char *kind = *state;
    *state = NULL;
    const struct played outcome = play(state, expected_of(kind), 1, false);
    assert_int_equal(outcome.ejected + outcome.honest_ejected, 0);
    assert_int_equal(outcome.honest_dropped, 0);
    assert_in_range(outcome.dropped, 1, LATE_EPOCHS);
    assert_in_range(outcome.dropped_first - LATE_FROM, UNHEALTHY_ROUNDS - 1, LATE_FOUND);
    assert_int_equal(outcome.end.ledger.voids, 0);
}

int main(void)
{
#define LATE_TEST(kind)                                                                            \
    {                                                                                              \
        kind " is dropped", late_one_is_dropped, NULL, testbed_teardown, (void *)(uintptr_t)kind   \
    }
#define LIAR_TEST(kind)                                                                            \
    {                                                                                              \
        kind " is ejected", liar_is_ejected, NULL, testbed_teardown, (void *)(uintptr_t)kind       \
    }
    static const struct CMUnitTest wrong[] = {
        LIAR_TEST("sign-flip"),   LIAR_TEST("times-10"), LIAR_TEST("noise"),
        LIAR_TEST("lazy"),        LIAR_TEST("stale"),    LIAR_TEST("copy"),
        LIAR_TEST("wrong-batch"), LIAR_TEST("nan"),      LIAR_TEST("nan-residual"),
    };
    enum { WRONG = sizeof wrong / sizeof *wrong, APART = 4 }; // With no divisor in common
    const char *seed = getenv("LIVE_SEED");
    const uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
    const struct CMUnitTest tests[] = {
        TESTBED_TEST(the_honest_ones_alone),
        wrong[first % WRONG],
        wrong[(first + APART) % WRONG],
        wrong[(first + 2 * APART) % WRONG],
        LIAR_TEST("equivocate"),
        LIAR_TEST("accuse"),
        LIAR_TEST("silent"),
        TESTBED_TEST(withheld_payload_is_dealt_again),
        LATE_TEST("late"),
        LATE_TEST("flaky"),
    };
    const struct CMUnitTest one[] = {
        TESTBED_TEST(one_run_is_recorded),
    };
    if (getenv("ADVERSARY")) return cmocka_run_group_tests(one, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
