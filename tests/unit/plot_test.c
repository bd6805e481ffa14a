// plot_test -- logs of `shoal train` as numbers, and the picture made of them.

#include "actors/shoal/plot/chart.c" // The front command's own parts are in no library
#include "actors/shoal/plot/curves.c"
#include "tests/unit/folder_fixture.h"

#define HEAD                                                                                       \
    "step,tokens,batch,loss,learning_rate,gradient_norm,seconds,tokens_per_s,heldout_loss\n"

static struct curves read_text(const char *text)
{
    struct curves curves;
    struct why why = { 0 };
    put("log", text, strlen(text));
    if (curves_read(path_of("log"), &why, &curves) < 0) fail_msg("%s", why.text);
    return curves;
}

static void refuses(const char *text, const char *reason)
{
    struct curves curves;
    struct why why = { 0 };
    put("log", text, strlen(text));
    assert_int_equal(curves_read(path_of("log"), &why, &curves), FAULT_FORMAT);
    if (!strstr(why.text, reason)) fail_msg("\"%s\" does not say \"%s\"", why.text, reason);
    curves_free(&curves);
}

static void csv_and_json_lines_are_the_same(void **state)
{
    (void)state;
    static const char *const logs[] = {
        HEAD "1,256,2,5.5,0.001,1.5,0.5,512,\n2,512,2,5.25,0.002,1.5,0.5,500,5.125\n",
        "{\"step\":1,\"loss\":5.5,\"learning_rate\":0.001,\"tokens_per_s\":512,"
        "\"heldout_loss\":null}\n"
        "{\"step\":2,\"loss\":5.25,\"learning_rate\":0.002,\"tokens_per_s\":500,"
        "\"heldout_loss\":5.125}\n",
    };
    for (size_t i = 0; i < 2; i++) {
        struct curves curves = read_text(logs[i]);
        assert_int_equal(curves.count, 2);
        assert_int_equal(curves.rows[1].step, 2);
        assert_true(curves.rows[0].values[CURVE_LOSS] == 5.5);
        assert_true(curves.rows[1].values[CURVE_RATE] == 0.002);
        assert_true(curves.rows[0].values[CURVE_TOKENS] == 512);
        assert_true(isnan(curves.rows[0].values[CURVE_HELDOUT]));
        assert_true(curves_last(&curves, CURVE_HELDOUT) == 5.125);
        curves_free(&curves);
    }
}

// Killed after step 4 and resumed from the checkpoint of step 2; killed again within a line.
static void a_resumed_training_counts_once(void **state)
{
    (void)state;
    struct curves curves =
        read_text("step,loss\n1,5\n2,4\n3,3.5\n4,nan\n3,3.25\n4,3\n5,2.75\n6,2.");
    static const double losses[] = { 5, 4, 3.25, 3, 2.75 };
    assert_int_equal(curves.count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(curves.rows[i].step, i + 1);
        assert_true(curves.rows[i].values[CURVE_LOSS] == losses[i]);
    }
    curves_free(&curves);
}

static void what_is_no_log_is_refused(void **state)
{
    (void)state;
    struct why why = { 0 };
    struct curves curves;
    refuses("", "it has no step yet");
    refuses(HEAD, "it has no step yet");
    refuses("the cat sat\n", "log:1: neither names of columns");
    refuses("step,loss\n1,2\n2,many\n", "log:3: a field is no number");
    refuses("step,loss\n1\n", "log:2: fewer fields");
    refuses("step,loss\n1,2,3\n", "log:2: more fields");
    refuses("step,loss\n-1,2\n", "log:2: the step is no number");
    refuses("{\"step\":1}\n{\"loss\":1}\n", "log:2: no JSON object with a \"step\"");
    refuses("{\"step\":1}\n[\n", "log:2: no JSON object");
    assert_int_equal(curves_read(path_of("none"), &why, &curves), FAULT_NOT_FOUND);
}

static void axes_have_round_numbers(void **state)
{
    (void)state;
    static const struct {
        double low, high;
        int ticks;
        struct axis axis;
    } cases[] = {
        { 1.7, 5.6, 5, { 1, 6, 1 } },         { 0, 0.004, 2, { 0, 0.004, 0.002 } },
        { 0, 460, 8, { 0, 500, 100 } },       { 2.31, 2.44, 5, { 2.3, 2.45, 0.05 } },
        { 0, 18432, 2, { 0, 20000, 10000 } }, { 3, 3, 5, { 3, 6, 1 } },
        { 0, 0, 2, { 0, 1, 0.5 } },           { -3, 2, 5, { -3, 2, 1 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct axis axis = chart_axis(cases[i].low, cases[i].high, cases[i].ticks);
        const double near = cases[i].axis.step / 1000;
        if (fabs(axis.low - cases[i].axis.low) > near ||
            fabs(axis.high - cases[i].axis.high) > near ||
            fabs(axis.step - cases[i].axis.step) > near)
            fail_msg("%g..%g: from %g to %g by %g", cases[i].low, cases[i].high, axis.low,
                     axis.high, axis.step);
    }
    char text[TEXT_MAX];
    assert_string_equal(tick_text(0.1 * 3 - 0.3, 0.1, text), "0");
    assert_string_equal(tick_text(20000, 10000, text), "20k");
    assert_string_equal(tick_text(1500000, 500000, text), "1.5M");
    assert_string_equal(tick_text(2e-5, 1e-5, text), "2e-05");
    assert_string_equal(tick_text(12345600, 1, text), "12.3456M");
    assert_string_equal(tick_text(12345601, 1, text), "12.345601M");
    assert_string_equal(tick_text(1.00000002, 1e-8, text), "1.00000002");
}

// 1000 tokens in one second, then 1000 in nine: 200 a second, not 555.
static void tokens_per_s_are_a_mean_over_time(void **state)
{
    (void)state;
    static struct point points[CHART_POINTS_MAX];
    struct curves curves = { 0 };
    struct chart chart = { .x = { 0, 1600, 100 } };
    for (uint64_t step = 1; step <= 1600; step++)
        add_row(&curves,
                &(struct curves_row){ .step = step,
                                      .values = { NAN, NAN, NAN, step % 2 ? 1000 : 1000 / 9.0 } });
    assert_int_equal(thin_out(&chart, &curves, CURVE_TOKENS, points), CHART_POINTS_MAX);
    assert_true(fabs(points[1].y - 200) < 1e-6);
    curves_free(&curves);
}

static char picture[200 << 10];

static size_t draw(const struct chart_log *logs, size_t count, const char *title)
{
    FILE *out = fmemopen(picture, sizeof picture, "w");
    assert_non_null(out);
    chart_draw(out, title, logs, count);
    assert_int_equal(fflush(out), 0);
    const long bytes = ftell(out);
    fclose(out);
    return (size_t)bytes;
}

static size_t count_of(const char *what)
{
    size_t count = 0;
    for (const char *at = picture; (at = strstr(at, what)); at += strlen(what)) count++;
    return count;
}

// Each tag is closed, in order; names of tags have at most 15 bytes.
static void assert_well_formed(void)
{
    char open[8][16];
    size_t depth = 0;
    assert_int_equal(strncmp(picture, "<svg xmlns=\"http://www.w3.org/2000/svg\"", 39), 0);
    for (const char *at = picture; (at = strchr(at, '<')); at++) {
        const char *end = strchr(at, '>');
        char name[16] = "";
        assert_non_null(end);
        sscanf(at + 1 + (at[1] == '/'), "%15[a-z]", name);
        assert_true(name[0]);
        if (at[1] == '/') {
            assert_true(depth > 0);
            assert_string_equal(name, open[--depth]);
        } else if (end[-1] != '/') {
            assert_true(depth < 8);
            strcpy(open[depth++], name);
        }
    }
    assert_int_equal(depth, 0);
}

static void a_long_training_is_a_small_picture(void **state)
{
    (void)state;
    struct chart_log logs[2] = { { .name = "a" }, { .name = "<b> & \"c\"" } };
    for (size_t log = 0; log < 2; log++)
        for (uint64_t step = 1; step <= 100000; step++) {
            struct curves_row row = { .step = step,
                                      .values = { 2 + (double)(step % 2), NAN, 1e-3, 9000 } };
            if (step % 1000 == 0) row.values[CURVE_HELDOUT] = 2.25;
            add_row(&logs[log].curves, &row);
        }
    assert_true(draw(logs, 2, "one & two") < 30000);
    assert_well_formed();
    assert_int_equal(count_of("<title>one &amp; two</title>"), 1);
    assert_int_equal(count_of("&lt;b&gt; &amp; &quot;c&quot;"), 1);
    assert_int_equal(count_of("<polyline"), 2 * 4);
    assert_int_equal(count_of("NaN") + count_of("nan") + count_of("inf"), 0);
    // Each point is the mean of its neighbours, 2.5; so the axis need not reach from 2 to 3.
    assert_int_equal(count_of(">2.5<"), 1);
    assert_int_equal(count_of(">3<"), 0);
    curves_free(&logs[0].curves);
    curves_free(&logs[1].curves);
}

// Losses and steps whose neighbours have no number between them, and numbers at the ends of a
// double's range: the picture ends, and has only numbers in it.
static void ticks_that_no_double_can_tell_apart_end(void **state)
{
    (void)state;
    static const char *const logs[] = {
        "step,loss\n1,1.2\n2,1.2000000000000002\n",
        "step,loss\n9007199254740991,1\n9007199254740992,2\n",
        "{\"step\":9223372036854775806,\"loss\":1}\n{\"step\":9223372036854775807,\"loss\":2}\n",
        "step,loss\n1,-1.7e308\n2,1.7e308\n3,2\n",
        "{\"step\":1,\"loss\":-1.7e308}\n{\"step\":2,\"loss\":1.7e308}\n"
        "{\"step\":3,\"loss\":2}\n",
        "step,loss\n1,0\n2,5e-324\n",
    };
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        struct chart_log log = { .name = "a", .curves = read_text(logs[i]) };
        draw(&log, 1, "a");
        assert_well_formed();
        assert_int_equal(count_of("nan") + count_of("inf"), 0);
        assert_true(count_of("<line") >= 2 && count_of("<line") < 40);
        curves_free(&log.curves);
    }
}

// In a log that is drawn by means, and in one that is not.
static void a_step_of_no_tokens_is_left_out(void **state)
{
    (void)state;
    for (uint64_t steps = 8; steps <= 400; steps += 392) {
        struct chart_log log = { .name = "a" };
        for (uint64_t step = 1; step <= steps; step++)
            add_row(&log.curves,
                    &(struct curves_row){ .step = step,
                                          .values = { 2, NAN, NAN, step % 5 ? 1000 : 0 } });
        draw(&log, 1, "a");
        assert_well_formed();
        assert_int_equal(count_of("nan") + count_of("inf"), 0);
        assert_int_equal(count_of(">1000<"), 1); // The axis still has its numbers
        curves_free(&log.curves);
    }
}

static void what_no_log_has_gets_no_panel(void **state)
{
    (void)state;
    struct chart_log log = { .name = "a", .curves = read_text("step,loss\n7,2.5\n") };
    draw(&log, 1, "a");
    assert_well_formed();
    assert_int_equal(count_of("loss, nats per token"), 1);
    assert_int_equal(count_of("learning rate") + count_of("tokens/s") + count_of("held-out"), 0);
    assert_int_equal(count_of("<circle"), 1); // A line of one point would be invisible
    curves_free(&log.curves);
    log.curves = read_text("step\n7\n8\n");
    draw(&log, 1, "a");
    assert_well_formed();
    curves_free(&log.curves);
}

TESTS_WITH(folder_set_up, folder_tear_down, TEST(csv_and_json_lines_are_the_same),
           TEST(a_resumed_training_counts_once), TEST(what_is_no_log_is_refused),
           TEST(axes_have_round_numbers), TEST(tokens_per_s_are_a_mean_over_time),
           TEST(a_long_training_is_a_small_picture), TEST(ticks_that_no_double_can_tell_apart_end),
           TEST(a_step_of_no_tokens_is_left_out), TEST(what_no_log_has_gets_no_panel))
