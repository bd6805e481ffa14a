// instance_test -- the number of a process rises, whatever the clock does.

#include "common/base/instance.h"
#include "tests/unit/folder_fixture.h"
#include "tests/test.h"
#include <string.h>

static uint64_t take(uint64_t unix_ms)
{
    struct why why = { 0 };
    uint64_t instance = 0;
    assert_int_equal(instance_take(folder, unix_ms, &why, &instance), 0);
    return instance;
}

static void it_is_the_clock_where_that_rises(void **state)
{
    (void)state;
    assert_int_equal(take(1000), 1000);
    assert_int_equal(take(5000), 5000);
}

static void it_rises_where_the_clock_does_not(void **state)
{
    (void)state;
    assert_int_equal(take(5000), 5000);
    assert_int_equal(take(5000), 5001);
    assert_int_equal(take(17), 5002);
    assert_int_equal(take(6000), 6000);
}

static void what_we_did_not_write_is_refused(void **state)
{
    static const char *const texts[] = { "",
                                         "\n",
                                         "x\n",
                                         "-1\n",
                                         "12",
                                         "12 \n",
                                         " 12\n",
                                         "12\n3\n",
                                         "18446744073709551615\n",
                                         "99999999999999999999\n" };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct why why = { 0 };
        uint64_t instance = 7;
        put("instance", texts[i], strlen(texts[i]));
        assert_int_equal(instance_take(folder, 1, &why, &instance), FAULT_CORRUPT);
        assert_int_equal(instance, 7);
    }
}

TESTS(TEST_WITH(it_is_the_clock_where_that_rises, folder_set_up, folder_tear_down),
      TEST_WITH(it_rises_where_the_clock_does_not, folder_set_up, folder_tear_down),
      TEST_WITH(what_we_did_not_write_is_refused, folder_set_up, folder_tear_down))
