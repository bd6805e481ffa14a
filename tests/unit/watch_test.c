// watch_test -- what `shoal status --watch` measures and shows, from messages and times; and how a
// block is drawn in place.

#include "actors/shoal/run/run_view.c" // The front command's own parts are in no library
#include "actors/shoal/run/watch.c"
#include "actors/shoal/show.c"
#include "actors/shoal/status_line.c"
#include "tests/test.h"

#include <pty.h>
#include <stdlib.h>
#include <unistd.h>

enum { SEQ = 100, BATCH = 8, MEMBERS = 5 };

static struct watch *watch;
static struct run_view *view;
static struct last_heard told[MEMBERS_MAX], coordinator = { true, 300 };
static bool was_told[MEMBERS_MAX];

static struct key key_of(uint32_t member) { return (struct key){ { (uint8_t)(0xa0 + member) } }; }

static void tell(uint16_t kind, struct key sender, const void *body)
{
    const struct msg msg = { .kind = kind, .sender = sender, .incarnation = 1, .body = body };
    watch_hear(watch, view, run_view_hear(view, &msg));
}

// Three trainers, a checkpointer, and a trainer that left.
static void tell_roster(void)
{
    static const char *const names[MEMBERS] = { "anna", "bob", "carol", "checkpointer.6", "gone" };
    struct wire_member members[MEMBERS] = { { 0 } };
    for (uint32_t i = 0; i < MEMBERS; i++) {
        members[i] = (struct wire_member){
            .index = i, .key = key_of(i), .role = ACTOR_TRAINER, .state = MEMBER_HEALTHY
        };
        snprintf(members[i].name, sizeof members[i].name, "%s", names[i]);
    }
    members[2].state = MEMBER_PENDING;
    members[3].role = ACTOR_CHECKPOINTER;
    members[4].state = MEMBER_WITHDRAWN;
    tell(FRAME_ROSTER, key_of(99),
         &(struct wire_roster){ .version = 1, .members = members, .members_count = MEMBERS });
}

static void tell_run(uint64_t step, float loss, uint8_t phase)
{
    const struct wire_run run = { .phase = phase,
                                  .epoch = 1,
                                  .round = step + 1,
                                  .step = step,
                                  .total_steps = 100,
                                  .samples_done = step * BATCH,
                                  .log_seq = step,
                                  .tokens_done = step * BATCH * SEQ,
                                  .loss = loss,
                                  .tokens_per_s = phase == PHASE_TRAIN && loss > 0 ? 1600 : 0,
                                  .steps_per_s = phase == PHASE_TRAIN && loss > 0 ? 2 : 0,
                                  .phase_left_ms = 5200 };
    tell(FRAME_RUN, key_of(99), &run);
}

static void open_round(uint64_t round)
{
    static const struct wire_client clients[] = { { .member = 0 }, { .member = 1 } };
    static const struct interval dealt = { 0, BATCH };
    tell(FRAME_ROUND, key_of(99),
         &(struct wire_round){ .epoch = 1,
                               .round = round,
                               .step = round - 1,
                               .batch_size = BATCH,
                               .dealt = &dealt,
                               .dealt_count = 1,
                               .clients = clients,
                               .clients_count = 2,
                               .trainers = 2 });
}

// Anna has three quarters of the samples.
static void commit(uint64_t round, float loss)
{
    static const struct wire_accepted accepted[] = { { .client = 0, .begin = 0, .end = 6 },
                                                     { .client = 1, .begin = 6, .end = 8 } };
    tell(FRAME_COMMIT, key_of(99),
         &(struct wire_commit){ .epoch = 1,
                                .round = round,
                                .step = round - 1,
                                .outcome = OUTCOME_COMMITTED,
                                .accepted = accepted,
                                .accepted_count = 2,
                                .samples = BATCH });
    tell_run(round, loss, PHASE_TRAIN);
}

static void train(uint64_t from, uint64_t to)
{
    for (uint64_t round = from; round <= to; round++) {
        open_round(round);
        commit(round, 5 - (float)round / 20);
    }
}

static uint64_t broker_silent_ms;

static const char *drawn(void)
{
    static char text[8192];
    FILE *out = fmemopen(text, sizeof text, "w");
    const struct watch_heard heard = { &coordinator, told, was_told, broker_silent_ms };
    assert_non_null(out);
    watch_draw(out, watch, "demo", view, &heard, true);
    fclose(out);
    return text;
}

static void says(const char *what)
{
    const char *text = drawn();
    if (!strstr(text, what)) fail_msg("no \"%s\" in:\n%s", what, text);
}

static int set_up(void **state)
{
    (void)state;
    watch = calloc(1, sizeof *watch);
    view = calloc(1, sizeof *view);
    broker_silent_ms = 0;
    memset(told, 0, sizeof told);
    memset(was_told, 0, sizeof was_told);
    coordinator = (struct last_heard){ true, 300 };
    tell_roster();
    return watch && view ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    free(watch);
    free(view);
    return 0;
}

static void the_screen(void **state)
{
    (void)state;
    tell_run(10, 5, PHASE_TRAIN);
    train(11, 30);
    open_round(31);
    for (uint32_t i = 0; i < 4; i++)
        told[i] = (struct last_heard){ true, 200 + i }, was_told[i] = true;
    told[3] = (struct last_heard){ false, 7000 };
    tell(FRAME_PROGRESS, key_of(1), &(struct wire_progress){ .round = 31, .step = 30 });
    assert_string_equal(
        drawn(),
        "run demo: RoundTrain, at most 5.2s more; coordinator heard 0.3s ago\n"
        "step 30 of 100 [#######.................] epoch 1, round 31\n"
        "loss 3.500  █▅▅▅▅▅▄▄▄▄▃▃▃▃▂▂▂▂▁▁▁\n"
        "2 steps/s, 1.60k tokens/s, 24.0k tokens so far, about 35s left\n"
        "\n"
        "  member          state     tokens/s  heard     now\n"
        "  anna            healthy      1.20k  0.2s ago  computes\n"
        "  bob             healthy        400  0.2s ago  has its result, waits for the others\n"
        "  carol           pending          0  0.2s ago  waits for the next epoch\n"
        "  checkpointer.6  healthy          -  7.0s ago  not connected\n");
}

static void tell_steps(uint64_t window, uint64_t from, uint64_t to)
{
    tell(FRAME_STEPS, key_of(99),
         &(struct wire_steps){ .number = window,
                               .epoch = 1,
                               .step = from,
                               .end = to,
                               .samples = (to - from) * BATCH });
    tell_run(to, 4, PHASE_TRAIN);
}

// Nothing on it says "round".
static void the_screen_of_windows(void **state)
{
    (void)state;
    static const struct wire_place group[] = { { .member = 0 } };
    static const struct interval samples = { 0, 20 * BATCH };
    tell_run(10, 5, PHASE_TRAIN);
    assert_null(strstr(drawn(), "epoch 1,")); // Which pace it has is not known yet
    tell(FRAME_WINDOW, key_of(99),
         &(struct wire_window){ .number = 3,
                                .epoch = 1,
                                .step = 10,
                                .steps = 20,
                                .samples = &samples,
                                .samples_count = 1,
                                .group = group,
                                .group_count = 1 });
    says("\n2 steps/s, 1.60k tokens/s"); // By the window, before the first STEPS
    tell(FRAME_PROGRESS, key_of(0),
         &(struct wire_progress){ .round = 3, .step = 12, .samples = BATCH });
    tell_steps(3, 10, 14);
    tell_steps(3, 14, 30);
    view->now.round = 3;
    assert_string_equal(drawn(),
                        "run demo: Train, at most 5.2s more; coordinator heard 0.3s ago\n"
                        "step 30 of 100 [#######.................] epoch 1, window 3\n"
                        "loss 4.000  █▁▁\n"
                        "2 steps/s, 1.60k tokens/s, 24.0k tokens so far, about 35s left\n"
                        "\n"
                        "  member          state     tokens/s  heard     now\n"
                        "  anna            healthy      1.60k  -         computes\n"
                        "  bob             healthy          0  -         stands by\n"
                        "  carol           pending          0  -         waits for the next epoch\n"
                        "  checkpointer.6  healthy          -  -         follows\n");
}

// A member's part of them is that of its newest results, however the rounds fell before.
static void tokens_per_s_are_those_of_the_run(void **state)
{
    (void)state;
    tell_run(10, 5, PHASE_TRAIN);
    says("  anna            healthy          -  -");
    train(11, 60);
    says("  anna            healthy      1.20k  -");
    says("  bob             healthy        400");
}

static void what_is_dead_is_said(void **state)
{
    (void)state;
    tell_run(10, 0, PHASE_TRAIN);
    says("loss -");
    says("- tokens/s, 8.00k tokens so far\n");
    coordinator.connected = false;
    coordinator.ms_ago = 4000;
    says("run demo: the coordinator is not connected, last heard 4.0s ago; its last word was: "
         "RoundTrain\n");
    told[0] = (struct last_heard){ true, 5000 };
    was_told[0] = true;
    says("5.0s ago  silent");
    tell_run(10, 0, PHASE_WAITING);
    says("waits for the run to begin");
    broker_silent_ms = 2600;
    says("run demo: the broker has been silent for 2.6s; its last word was: WaitingForMembers\n");
}

static void a_long_curve_fits(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) hear_loss(watch, i < 500 ? 3 : 2);
    assert_int_equal(watch->per_loss, 32);
    assert_int_equal(watch->losses_count, 32);
    assert_true(watch->losses[0] == 3 && watch->losses[31] == 2);
}

// The second block takes the place of the first, whose fourth line is gone; nothing is wider than
// the terminal, nor higher.
static void a_block_is_drawn_in_place(void **state)
{
    (void)state;
    int screen, terminal;
    char got[512] = "";
    struct winsize size = { .ws_row = 4, .ws_col = 12 };
    struct status_line line;
    assert_int_equal(openpty(&screen, &terminal, NULL, NULL, &size), 0);
    FILE *out = fdopen(terminal, "w");
    setenv("TERM", "xterm", 1);
    status_line_init(&line, out);
    assert_true(line.is_tty);
    status_line_draw_block(&line, "▁▂▃ one two three\n2\n3\n4\n");
    status_line_draw_block(&line, "1\n2\n");
    static const char wanted[] = "\r\033[K▁▂▃ one two\r\n\r\033[K2\r\n\r\033[K3\r\n\033[J"
                                 "\033[3A\r\033[K1\r\n\r\033[K2\r\n\033[J";
    for (size_t count = 0; count < sizeof wanted - 1;) {
        const ssize_t more = read(screen, got + count, sizeof got - 1 - count);
        assert_true(more > 0);
        count += (size_t)more;
    }
    assert_string_equal(got, wanted);
    fclose(out);
    close(screen);
}

TESTS(TEST_WITH(the_screen, set_up, tear_down), TEST_WITH(the_screen_of_windows, set_up, tear_down),
      TEST_WITH(tokens_per_s_are_those_of_the_run, set_up, tear_down),
      TEST_WITH(what_is_dead_is_said, set_up, tear_down),
      TEST_WITH(a_long_curve_fits, set_up, tear_down), TEST(a_block_is_drawn_in_place))
