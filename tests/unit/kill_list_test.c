// kill_list_test -- what may stand in --allowed-to-kill, and that a draw is fair and repeatable.

#include "actors/shoal/local/kill_list.c" // The front command's own parts are in no library
#include "tests/test.h"
#include <string.h>

static struct kill_list parsed(const char *text, uint32_t clients)
{
    struct why why = { 0 };
    struct kill_list list;
    assert_int_equal(kill_list_parse(text, clients, 7, &why, &list), 0);
    return list;
}

static void test_lists(void **state)
{
    (void)state;
    struct kill_list list = parsed("1,3", 4);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.clients[0], 1);
    assert_int_equal(list.clients[1], 3);
    assert_int_equal(parsed("4", 4).count, 1);
    assert_int_equal(parsed(NULL, 4).count, 4);
    assert_int_equal(parsed("", 256).clients[255], 256);
}

static void test_refusals(void **state)
{
    (void)state;
    static const char *const bad[] = { "0",  "5",  "1,", ",1", "1,,2", "1;2",
                                       "x",  "-1", "+1", " 1", "1,1",  "99999999999999999999",
                                       "1 ", "0x1" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct kill_list list = { .count = 99 };
        struct why why = { 0 };
        assert_int_equal(kill_list_parse(bad[i], 4, 7, &why, &list), FAULT_USAGE);
        assert_non_null(strstr(why.text, "--allowed-to-kill"));
        assert_int_equal(list.count, 99);
    }
}

// Each client comes to the front about equally often, none is lost, and the seed says it all.
static void test_draws(void **state)
{
    (void)state;
    struct kill_list a = parsed("", 5), b = a;
    uint32_t first[6] = { 0 };
    for (int i = 0; i < 5000; i++) {
        kill_list_draw(&a, 2);
        kill_list_draw(&b, 2);
        assert_memory_equal(&a, &b, sizeof a);
        assert_int_not_equal(a.clients[0], a.clients[1]);
        first[a.clients[0]]++;
    }
    for (uint32_t client = 1; client <= 5; client++) {
        assert_in_range(first[client], 800, 1200);
        assert_true(holds(&a, client));
    }
    kill_list_draw(&a, 0);
    kill_list_draw(&a, 5);
    for (uint32_t client = 1; client <= 5; client++) assert_true(holds(&a, client));
}

TESTS(TEST(test_lists), TEST(test_refusals), TEST(test_draws))
