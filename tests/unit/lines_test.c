// lines_test -- the lines of zmq-monitor: time and sender, numbers as numbers, one member's only.

#include "actors/zmq-monitor/lines.c" // The monitor's own parts are in no library
#include "tests/test.h"

#include <unistd.h>

static const struct key coordinator = { { 0xc0 } }, alice = { { 0xa1 } };

// What lines_print writes to the standard output for this frame.
static char *line_of(struct lines *lines, uint16_t kind, const struct key *sender, const void *body)
{
    static char text[4096];
    struct letter letter = { .msg = { .kind = kind, .sender = *sender, .body = body },
                             .run = "demo" };
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    const int own = dup(STDOUT_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    lines_print(lines, &letter);
    fflush(stdout);
    dup2(own, STDOUT_FILENO);
    close(own), close(ends[1]);
    const ssize_t count = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    text[count > 0 ? count : 0] = 0;
    return text;
}

static uint32_t bits_of(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static void test_a_rate_is_a_number(void **state)
{
    (void)state;
    struct lines text = { 0 }, json = { .json = true };
    const struct wire_commit commit = { .round = 7, .lr_bits = bits_of(0.0004f), .samples = 8 };
    const char *line = line_of(&text, FRAME_COMMIT, &coordinator, &commit);
    assert_non_null(strstr(line, " lr=0.0004 "));
    assert_null(strstr(line, "lr_bits"));
    assert_int_equal(line[LOG_TIME - 1], ' ');
    assert_true(strncmp(line + LOG_TIME, "coordinator COMMIT round=7 ", 27) == 0);
    assert_non_null(strstr(line, " samples=8 "));
    line = line_of(&json, FRAME_COMMIT, &coordinator, &commit);
    assert_true(strncmp(line, "{\"unix_ms\":", 11) == 0);
    assert_non_null(strstr(line, ",\"from\":\"coordinator\",\"kind\":\"COMMIT\","));
    assert_non_null(strstr(line, ",\"lr\":0.00039999999,")); // Nine digits, as of every float
    assert_null(strstr(line, "lr_bits"));
    assert_string_equal(line + strlen(line) - 3, "}}\n");
    free(text.line), free(json.line);
}

// Of a window's rates the first and the last, as numbers.
static void test_a_window_is_a_line(void **state)
{
    (void)state;
    struct lines text = { 0 }, json = { .json = true };
    uint8_t bits[12];
    le_put(bits, bits_of(0.0004f), 4);
    le_put(bits + 4, bits_of(0.0003f), 4);
    le_put(bits + 8, bits_of(0.0002f), 4);
    const struct wire_window window = { .number = 7, .steps = 3, .lr_bits = { bits, 12 } };
    const char *line = line_of(&text, FRAME_WINDOW, &coordinator, &window);
    assert_true(strncmp(line + LOG_TIME, "coordinator WINDOW number=7 ", 28) == 0);
    assert_non_null(strstr(line, " steps=3 "));
    assert_non_null(strstr(line, " lr=0.0004..0.0002 samples="));
    line = line_of(&json, FRAME_WINDOW, &coordinator, &window);
    assert_non_null(strstr(line, ",\"lr\":[0.00039999999,0.000199999995],\"samples\""));
    const struct wire_steps steps = { .number = 7, .end = 3, .lr_bits = bits_of(0.5f) };
    line = line_of(&text, FRAME_STEPS, &coordinator, &steps);
    assert_true(strncmp(line + LOG_TIME, "coordinator STEPS number=7 ", 27) == 0);
    assert_non_null(strstr(line, " lr=0.5 "));
    free(text.line), free(json.line);
}

static void test_gaps_are_counted(void **state)
{
    (void)state;
    struct lines lines = { .shows_gaps = true };
    for (uint64_t number = 1; number <= 9; number += 2) // 2, 4, 6 and 8 are missing
        line_of(&lines, FRAME_WINDOW, &coordinator, &(struct wire_window){ .number = number });
    line_of(&lines, FRAME_STEPS, &coordinator, &(struct wire_steps){ .step = 5, .end = 10 });
    line_of(&lines, FRAME_STEPS, &coordinator, &(struct wire_steps){ .step = 10, .end = 20 });
    line_of(&lines, FRAME_STEPS, &coordinator, &(struct wire_steps){ .step = 27, .end = 30 });
    line_of(&lines, FRAME_STEPS, &coordinator, &(struct wire_steps){ .step = 12, .end = 31 });
    for (uint64_t round = 1; round <= 4; round += 3)
        line_of(&lines, FRAME_ROUND, &coordinator, &(struct wire_round){ .round = round });
    assert_int_equal(lines.missing[0], 2);
    assert_int_equal(lines.missing[2], 4);
    assert_int_equal(lines.missing[3], 7);
    free(lines.line);
}

// The field's name in a text of a peer is not the field.
static void test_a_text_stays_as_it_is(void **state)
{
    (void)state;
    struct lines text = { 0 }, json = { .json = true };
    const struct wire_run run = { .lacks = "\" lr_bits=1 \"lr_bits\":1" };
    assert_non_null(strstr(line_of(&text, FRAME_RUN, &coordinator, &run),
                           "\"\\\" lr_bits=1 \\\"lr_bits\\\":1\""));
    assert_non_null(strstr(line_of(&json, FRAME_RUN, &coordinator, &run),
                           "\"\\\" lr_bits=1 \\\"lr_bits\\\":1\""));
    free(text.line), free(json.line);
}

static void test_one_member_only(void **state)
{
    (void)state;
    struct lines lines = { .member = "trainer.a1" };
    const struct wire_progress progress = { .step = 5, .loss = 2.5f };
    const char *line = line_of(&lines, FRAME_PROGRESS, &alice, &progress);
    assert_non_null(strstr(line, " trainer.a100000000000000 PROGRESS round=0 step=5 loss=2.5 "));
    assert_string_equal(line_of(&lines, FRAME_PROGRESS, &coordinator, &progress), "");
    assert_string_equal(line_of(&lines, FRAME_RUN, &alice, &(struct wire_run){ 0 }), "");
    assert_int_equal(lines.printed, 1);
    assert_int_equal(lines.hidden, 2);
    free(lines.line);
}

// The roster has the label; it is heard for that even where it is not to be shown.
static void test_a_label_is_shown(void **state)
{
    (void)state;
    static const char *const called[] = { "anna", "a1", "trainer.anna", "trainer.a1", "trainer" };
    static const char *const not_called[] = { "nna", "bob", "anna.b", "coordinator" };
    struct lines lines = { .hides_roster = true };
    struct wire_member member = { .key = alice, .role = ACTOR_TRAINER };
    const struct wire_roster roster = { .version = 1, .members = &member, .members_count = 1 };
    const struct wire_progress progress = { .step = 5 };
    snprintf(member.name, sizeof member.name, "trainer.anna.a100000000000000");
    assert_non_null(strstr(line_of(&lines, FRAME_PROGRESS, &alice, &progress), " trainer.a1"));
    assert_string_equal(line_of(&lines, FRAME_ROSTER, &coordinator, &roster), "");
    assert_non_null(strstr(line_of(&lines, FRAME_PROGRESS, &alice, &progress),
                           " trainer.anna.a100000000000000 PROGRESS "));
    for (int i = 0; i < 5; i++) {
        lines.member = called[i];
        assert_true(line_of(&lines, FRAME_PROGRESS, &alice, &progress)[0]);
    }
    for (int i = 0; i < 4; i++) {
        lines.member = not_called[i];
        assert_string_equal(line_of(&lines, FRAME_PROGRESS, &alice, &progress), "");
    }
    lines.member = NULL;
    snprintf(member.name, sizeof member.name, "trainer.\x1b[2J.a100000000000000");
    line_of(&lines, FRAME_ROSTER, &coordinator, &roster); // Not a name of this key: not printed
    assert_non_null(strstr(line_of(&lines, FRAME_PROGRESS, &alice, &progress), " trainer.a1"));
    lines_end(&lines);
}

TESTS(TEST(test_a_rate_is_a_number), TEST(test_a_window_is_a_line), TEST(test_gaps_are_counted),
      TEST(test_a_text_stays_as_it_is), TEST(test_one_member_only), TEST(test_a_label_is_shown))
