// show_test -- numbers as people read them.

#include "actors/shoal/show.c" // The front command's own parts are in no library
#include "tests/test.h"
#include <stdlib.h>

static void test_counts(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        { 0, "0" },         { 999, "999" },      { 1000, "1.00k" },    { 18432, "18.4k" },
        { 123456, "123k" }, { 999960, "1.00M" }, { 3200000, "3.20M" }, { 7.5e9, "7.50G" },
        { 2e19, "20.0E" },  { INFINITY, "?" },
    };
    char text[SHOW_MAX];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(show_count(cases[i].value, text), cases[i].text);
}

static void test_durations(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {
        { 0, "0.0s" },    { 0.84, "0.8s" },  { 9.96, "10s" }, { 42.4, "42s" }, { 59.6, "1m00s" },
        { 185, "3m05s" }, { 7800, "2h10m" }, { -1, "?" },     { NAN, "?" },    { 1e30, "?" },
    };
    char text[SHOW_MAX];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(show_duration(cases[i].seconds, text), cases[i].text);
}

static void test_bars(void **state)
{
    (void)state;
    char text[SHOW_MAX];
    assert_string_equal(show_bar(0, 4, text), "....");
    assert_string_equal(show_bar(0.5, 4, text), "##..");
    assert_string_equal(show_bar(7, 4, text), "####");
    assert_string_equal(show_bar(NAN, 4, text), "....");
    assert_int_equal(strlen(show_bar(0.3, 1000, text)), SHOW_MAX - 4);
}

static void test_plurals(void **state)
{
    (void)state;
    assert_string_equal(show_s(0), "s"); // 0 trainers
    assert_string_equal(show_s(1), "");
    assert_string_equal(show_s(2), "s");
}

static void test_starts(void **state)
{
    (void)state;
    char text[SHOW_MAX];
    assert_int_equal(setenv("TZ", "UTC", 1), 0);
    tzset();
    assert_string_equal(show_start(0, text), "never");
    assert_string_equal(show_start(1800000000346, text), "2027-01-15 08:00:00");
}

static void test_a_column_for_each_name(void **state)
{
    (void)state;
    assert_int_equal(show_wider(4, "anna"), 4);
    assert_int_equal(show_wider(3, "anna"), 4);
}

TESTS(TEST(test_starts), TEST(test_a_column_for_each_name), TEST(test_plurals), TEST(test_counts),
      TEST(test_durations), TEST(test_bars))
