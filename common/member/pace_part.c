// Chooses the pace once, when CONFIG has arrived, and passes everything on to it. Before that the
// frames of a pace are ignored: the member cannot tell whose they are. It asks for them again when
// a BEAT names what it lacks.

#include "common/member/pace_part.h"

// 1 + the index in member_paces of the run's pace; 0: this program has none of that kind.
static uint32_t pace_of(const struct wire_config *config)
{
    for (uint32_t i = 0; member_paces[i]; i++)
        if (member_paces[i]->config == config->strategy.kind) return i + 1;
    return 0;
}

static const struct member_pace *chosen(const struct pace_part *self)
{
    return self->chosen ? member_paces[self->chosen - 1] : NULL;
}

void pace_part_hear(void *state, const struct member_turn *turn)
{
    struct pace_part *self = state;
    const struct member *member = turn->member;
    if (self->chosen == 0 && member->has_config) self->chosen = pace_of(&member->config);
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
    return pace && pace->position && pace->position(self->state, member, ret_save);
}
