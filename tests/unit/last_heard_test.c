// last_heard_test -- what the broker says of an actor, written and read.

#include "common/actor/last_heard.h"
#include "tests/test.h"

static void test_reads_what_it_writes(void **state)
{
    (void)state;
    static const struct {
        struct last_heard heard;
        const char *text;
        bool alive;
    } cases[] = {
        { { true, 412 }, "connected, last heard 412 ms ago", true },
        { { true, LAST_HEARD_MAX_MS + 1 }, "connected, last heard 3001 ms ago", false },
        { { false, 7012 }, "not connected, last heard 7012 ms ago", false },
        { { false, 0 }, "not connected, last heard 0 ms ago", false },
        { { false, NEVER_HEARD }, "not connected", false },
    };
    char text[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct last_heard heard = { 0 };
        last_heard_print(&cases[i].heard, text, sizeof text);
        assert_string_equal(text, cases[i].text);
        assert_true(last_heard_parse(text, &heard));
        assert_int_equal(heard.connected, cases[i].heard.connected);
        assert_int_equal(heard.ms_ago, cases[i].heard.ms_ago);
        assert_int_equal(last_heard_is_alive(&heard), cases[i].alive);
    }
}

static void test_refuses_other_texts(void **state)
{
    (void)state;
    static const char *const others[] = { "",
                                          "no actor has this name",
                                          "connected, last heard",
                                          "connected, last heard -1 ms ago",
                                          "connected, last heard 1 ms ago.",
                                          "connected twice" };
    struct last_heard heard;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(last_heard_parse(others[i], &heard));
}

TESTS(TEST(test_reads_what_it_writes), TEST(test_refuses_other_texts))
