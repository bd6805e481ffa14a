// tap_test -- which topics an observer may ask for.

#include "common/actor/tap.h"
#include "tests/test.h"

#include <string.h>

static void test_topics(void **state)
{
    (void)state;
    uint16_t kinds[3];
    size_t count;
    struct why why = { 0 };
    assert_int_equal(tap_parse_topics("RUN,commit", 3, &why, kinds, &count), 0);
    assert_int_equal(count, 2);
    assert_int_equal(kinds[0], FRAME_RUN);
    assert_int_equal(kinds[1], FRAME_COMMIT);
    assert_int_equal(tap_parse_topics("COMIT", 3, &why, kinds, &count), FAULT_USAGE);
    assert_non_null(strstr(why.text, "did you mean COMMIT?"));
    static const char *const bad[] = {
        "", ",", "RUN,,RUN", "JOIN", "RUN,BEAT,ROUND,COMMIT", "TRAIN"
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(tap_parse_topics(bad[i], 3, &why, kinds, &count), FAULT_USAGE);
}

TESTS(TEST(test_topics))
