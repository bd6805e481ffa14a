// Chooses the pace once, then passes everything on to it.

#include "common/member/pace_part.h"

// The pace of the run. CONFIG does not name one yet.
static uint32_t pace_of(const struct wire_config *config)
{
    (void)config;
    return 1;
}

static const struct member_pace *chosen(const struct pace_part *self)
{
    return self->chosen ? member_paces[self->chosen - 1] : NULL;
}

void pace_part_hear(void *state, const struct member_turn *turn)
{
    struct pace_part *self = state;
    if (self->chosen == 0) self->chosen = pace_of(&turn->member->config);
    const struct member_pace *pace = chosen(self);
    if (pace) pace->hear(self->state, turn);
}

void pace_part_look(void *state, const struct member_turn *turn)
{
    struct pace_part *self = state;
    const struct member_pace *pace = chosen(self);
    if (pace) pace->look(self->state, turn);
}

bool pace_part_position(const struct pace_part *self, const struct member *member,
                        struct wire_save *ret_save)
{
    const struct member_pace *pace = chosen(self);
    return pace && pace->position(self->state, member, ret_save);
}
