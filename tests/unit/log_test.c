// log_test -- what a line of the log tells is found in it; as JSON it is one object, whatever bytes
// it has. And the line of a trainer for a step.

#include "common/base/log.h"
#include "common/member/step_line.h"
#include "tests/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static json_t *object_of(const char *line)
{
    static const struct log_style style = { .actor = "trainer.3fa2", .json = true };
    char text[LOG_JSON_MAX];
    json_error_t error;
    const size_t count = log_json(&style, LOG_INFO, 1795384503123, line, text, sizeof text);
    assert_int_equal(count, strlen(text));
    assert_null(strchr(text, '\n'));
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!object) fail_msg("%s: %s", error.text, text);
    return object;
}

static const char *string_of(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static void test_a_line_becomes_an_object(void **state)
{
    (void)state;
    json_t *object = object_of("round.trained name=trainer.3fa2 step=100 loss=2.713 lr=4e-05 "
                               "reason=\"the \"peer\"'s fault\"; again");
    const json_t *fields = json_object_get(object, "fields");
    assert_int_equal(json_integer_value(json_object_get(object, "unix_ms")), 1795384503123);
    assert_string_equal(string_of(object, "from"), "trainer.3fa2");
    assert_int_equal(json_integer_value(json_object_get(object, "priority")), LOG_INFO);
    assert_string_equal(string_of(object, "event"), "round.trained");
    assert_int_equal(json_object_size(fields), 5);
    assert_string_equal(string_of(fields, "name"), "trainer.3fa2");
    assert_int_equal(json_integer_value(json_object_get(fields, "step")), 100);
    assert_true(json_real_value(json_object_get(fields, "loss")) > 2.7);
    assert_true(json_real_value(json_object_get(fields, "lr")) < 5e-5);
    assert_string_equal(string_of(fields, "reason"), "the \"peer\"'s fault");
    json_decref(object);
}

static void test_the_keys_have_an_order(void **state)
{
    (void)state;
    static const struct log_style style = { .actor = "trainer.3fa2", .json = true };
    char text[LOG_JSON_MAX];
    log_json(&style, LOG_INFO, 1795384503123, "a.b y=1 x=2.713 lr=0.0004", text, sizeof text);
    assert_string_equal(
        text,
        "{\"unix_ms\":1795384503123,\"from\":\"trainer.3fa2\",\"priority\":6,\"event\":\"a.b\","
        "\"text\":\"a.b y=1 x=2.713 lr=0.0004\",\"fields\":{\"y\":1,\"x\":2.713,\"lr\":0.0004}}");
}

// What has digits alone may be a digest; what is no number as JSON writes it is a text.
static void test_only_numbers_are_numbers(void **state)
{
    (void)state;
    json_t *object = object_of("a.b digest=1234567890123456 hex=0012 part=4/5 e=12e4 none= at=1. "
                               "huge=1e999 is=true list=[1] space=\" 5\" n=-7");
    const json_t *fields = json_object_get(object, "fields");
    static const char *const texts[] = { "digest", "hex", "part", "none", "at",
                                         "huge",   "is",  "list", "space" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_non_null(string_of(fields, texts[i]));
    assert_true(json_is_real(json_object_get(fields, "e")));
    assert_int_equal(json_integer_value(json_object_get(fields, "n")), -7);
    json_decref(object);
}

static void test_any_bytes_are_told(void **state)
{
    (void)state;
    char line[1024];
    json_t *object = object_of("waiting: no coordinator of run \"demo\" yet");
    assert_null(json_object_get(object, "event"));
    assert_int_equal(json_object_size(json_object_get(object, "fields")), 0);
    json_decref(object);
    object = object_of("a.b reason=\"\xc3\xa9\xff\xed\xa0\x80\xf0\x9f\x98\x80\t\"");
    assert_string_equal(string_of(json_object_get(object, "fields"), "reason"),
                        "\xc3\xa9????\xf0\x9f\x98\x80\t");
    json_decref(object);
    object = object_of("a.b step=1 name=x step=9"); // Behind our own fields may be a peer's words
    assert_int_equal(json_integer_value(json_object_get(json_object_get(object, "fields"), "step")),
                     1);
    json_decref(object);
    for (unsigned byte = 1; byte < 256; byte++) { // The longest line, of the widest bytes
        memset(line, (int)byte, sizeof line - 1);
        memcpy(line, "a.b x=", 6);
        line[sizeof line - 1] = 0;
        json_decref(object_of(line));
    }
}

// What log_line writes to stderr.
static const char *written(const struct log_style *style)
{
    static char text[4096];
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const int own = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    log_begin(style);
    log_line(LOG_INFO, "round.trained name=%s step=%d", "trainer.3fa2", 100);
    dup2(own, STDERR_FILENO);
    close(own), close(ends[1]);
    const ssize_t count = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    text[count > 0 ? count : 0] = 0;
    log_begin(&(struct log_style){ 0 });
    return text;
}

// A child of a service has JOURNAL_STREAM, too: where its stderr is another stream, lines have the
// date.
static void test_the_form_follows_the_stream(void **state)
{
    (void)state;
    const struct log_style json = { .actor = "trainer.3fa2", .json = true };
    unsetenv("JOURNAL_STREAM");
    const char *line = written(&(struct log_style){ .actor = "trainer.3fa2" });
    int year, month, day;
    assert_int_equal(sscanf(line, "%4d-%2d-%2d ", &year, &month, &day), 3);
    assert_true(year >= 2024 && month <= 12 && day <= 31);
    assert_string_equal(line + strlen("2026-11-22 21:55:03.123"),
                        " round.trained name=trainer.3fa2 step=100\n");
    setenv("JOURNAL_STREAM", "1:2", 1);
    assert_true(written(&(struct log_style){ .actor = "trainer.3fa2" })[0] != '<');
    assert_true(strncmp(written(&json), "{\"unix_ms\":", 11) == 0);
    unsetenv("JOURNAL_STREAM");
}

static void *no_memory(size_t bytes)
{
    (void)bytes;
    return NULL;
}

static void test_a_line_is_written_without_memory(void **state)
{
    (void)state;
    json_set_alloc_funcs(no_memory, free);
    const char *line = written(&(struct log_style){ .actor = "trainer.3fa2", .json = true });
    json_set_alloc_funcs(malloc, free);
    assert_non_null(strstr(line, " round.trained name=trainer.3fa2 step=100\n"));
}

// ---- a trainer's line ---------------------------------------------------------------------------

static void test_a_trainer_writes_one_line_a_step(void **state)
{
    (void)state;
    char text[STEP_LINE_MAX];
    struct member *member = test_calloc(1, sizeof *member);
    memcpy(member->name, "trainer.3fa2", 13);
    member->has_run = true;
    member->now.step = 100;
    member->now.tokens_per_s = 12345;
    member->step_held = member->loss_step = 100;
    member->loss = 2.713f, member->step_lr = 0.0004f;
    assert_true(step_line(member, text));
    assert_string_equal(
        text, "round.trained name=trainer.3fa2 step=100 loss=2.713 lr=0.0004 tokens_per_s=12345");
    // Of another step it has no loss, and a pace may have no rate; behind the run it writes nothing
    member->step_held = 101;
    assert_true(step_line(member, text));
    assert_string_equal(text,
                        "round.trained name=trainer.3fa2 step=101 lr=0.0004 tokens_per_s=12345");
    member->step_lr = 0;
    assert_true(step_line(member, text));
    assert_string_equal(text, "round.trained name=trainer.3fa2 step=101 tokens_per_s=12345");
    member->config.strategy.kind = FRAME_WINDOWS_CONFIG;
    assert_true(step_line(member, text));
    assert_string_equal(text, "step.trained name=trainer.3fa2 step=101 tokens_per_s=12345");
    member->step_held = 50;
    assert_false(step_line(member, text));
    member->loss_step = 50; // But its own step is told
    assert_true(step_line(member, text));
    // So is that of one that waits for the next epoch, and nobody else's
    member->now.step = member->step_held = 51;
    memset(member->key.bytes, 7, sizeof member->key.bytes);
    struct wire_member own = { .key = member->key, .state = MEMBER_PENDING };
    roster_put(&member->roster, &own);
    assert_false(step_line(member, text));
    member->loss_step = 51;
    assert_true(step_line(member, text));
    test_free(member);
}

TESTS(TEST(test_a_line_becomes_an_object), TEST(test_the_keys_have_an_order),
      TEST(test_only_numbers_are_numbers), TEST(test_any_bytes_are_told),
      TEST(test_the_form_follows_the_stream), TEST(test_a_line_is_written_without_memory),
      TEST(test_a_trainer_writes_one_line_a_step))
