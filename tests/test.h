#pragma once
// test -- what every test program begins and ends with: cmocka, after the headers that it wants and
// does not include itself, and its main.
//
//     static void words_are_counted(void **state) { ... }
//     static void files_are_read(void **state) { ... }
//
//     TESTS(TEST(words_are_counted), TEST_WITH(files_are_read, make_folder, remove_folder))
//
// They run in this order. A test that is not listed does not compile: nobody calls it.

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#define TEST(name) cmocka_unit_test(name)
// Before the test and after it, also where it fails; NULL: nothing.
#define TEST_WITH(name, set_up, tear_down) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#define TESTS(...) TESTS_WITH(NULL, NULL, __VA_ARGS__)
// Before the first of them and after the last.
#define TESTS_WITH(set_up, tear_down, ...)                                                         \
    int main(void)                                                                                 \
    {                                                                                              \
        const struct CMUnitTest tests[] = { __VA_ARGS__ };                                         \
        return cmocka_run_group_tests(tests, set_up, tear_down);                                   \
    }
