// A role's pace is the one that CONFIG tells, of whatever table the program is linked with. Before
// CONFIG nothing reaches it; afterwards it hears all, also while another CONFIG is asked for.

#include "common/member/pace_part.h"
#include "tests/test.h"
#include <string.h>

struct counts {
    uint32_t heard, looked;
};

static void hear(void *state, const struct member_turn *turn)
{
    (void)turn;
    ((struct counts *)state)->heard++;
}

static void look(void *state, const struct member_turn *turn)
{
    (void)turn;
    ((struct counts *)state)->looked++;
}

static bool position(const void *state, const struct member *member, struct wire_save *ret_save)
{
    (void)member;
    *ret_save = (struct wire_save){ .step = ((const struct counts *)state)->heard };
    return true;
}

static const struct member_pace counting = { "counting", FRAME_NONE, hear, look, position };
const struct member_pace *const member_paces[] = { &counting, NULL };

static struct member member;
static struct pace_part part;

// What the pace has heard and looked at so far, after one more message.
static struct counts step(void)
{
    const struct msg in = { .kind = FRAME_APPLIED, .run = "r", .from = "" };
    const struct member_turn turn = { .member = &member, .in = &in };
    struct counts counts;
    pace_part_hear(&part, &turn);
    pace_part_look(&part, &turn);
    memcpy(&counts, part.state, sizeof counts);
    return counts;
}

static void the_configuration_tells_the_pace(void **state)
{
    struct wire_save save = { .step = 77 };
    (void)state;
    assert_int_equal(step().heard, 0);
    assert_false(pace_part_position(&part, &member, &save));
    assert_int_equal(save.step, 77);
    member.has_config = true;
    assert_int_equal(step().heard, 1);
    assert_true(pace_part_position(&part, &member, &save));
    assert_int_equal(save.step, 1);
    member.has_config =
        false; // The coordinator restarted with other settings, which are on the way
    assert_int_equal(step().heard, 2);
    assert_int_equal(step().looked, 3);
}

TESTS(TEST(the_configuration_tells_the_pace))
