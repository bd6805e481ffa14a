// toml_edit_test -- one key is set, and every other byte stays.

#include "actors/shoal/local/toml_edit.c" // The front command's own parts are in no library
#include "tests/test.h"

#include <stdint.h>

static void check(const char *text, const char *table, const char *key, const char *expected)
{
    char *edited = toml_edit(text, table, key, "9");
    if (!expected) assert_null(edited);
    else assert_string_equal(edited, expected);
    free(edited);
}

static void test_keys(void **state)
{
    (void)state;
    check("a = 1\nb = 2\n", "", "b", "a = 1\nb = 9\n");
    check("a = 1 # why\n[t]\na = 2\n", "t", "a", "a = 1 # why\n[t]\na = 9\n");
    check("a = 1\n[t]\nb = 2\n[u]\na = 3\n", "t", "a", "a = 1\n[t]\na = 9\nb = 2\n[u]\na = 3\n");
    check("[t]\n# a = 5\n  a=1\n", "t", "a", "[t]\n# a = 5\na = 9\n");
    check("[t]\nab = 1\n", "t", "a", "[t]\na = 9\nab = 1\n");
    check("[t.u]\na = 1\n[t]\n", "t", "a", "[t.u]\na = 1\n[t]\na = 9\n");
    check("[t]", "t", "a", "[t]\na = 9\n");
    check("", "", "a", "a = 9\n");
    check("a = 1\n", "t", "a", NULL);
    check("[t]\n# What a is.\n# a = 5\n\n[u]\n# a = 6\n", "t", "a",
          "[t]\n# What a is.\na = 9\n\n[u]\n# a = 6\n");
    check("[t]\n# [u]\n#a = 5\n", "t", "a", "[t]\na = 9\n# [u]\n#a = 5\n");
}

TESTS(TEST(test_keys))
