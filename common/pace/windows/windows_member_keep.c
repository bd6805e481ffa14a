// windows_member_keep -- the member's part of memory saves (keeping.h; common/member/keeper.h): whose shares they are,
// and what STANDS says of them from then on.
//
// With parameter servers all this is among them: the trainers keep nothing.
//
// A window with `drops` ends a memory save that is not on record by then.

#include "common/pace/windows/windows_member.h"

static void hear_listed(struct windows_member *self, const struct member_turn *turn,
                        const struct wire_listed *said)
{
    const struct wire_window *newest = windows_member_newest(self);
    const struct wire_windows_config *config = windows_config_of(&turn->member->config);
    struct keeper_group group = { .count = config->servers ? config->servers : newest->group_count,
                                  .buddies = config->buddies };
    if (!windows_member_in_hand(self) || said->lists_count != group.count ||
        newest->group_count < group.count) {
        keeper_drop(&self->keeper, turn);
        return;
    }
    for (uint32_t i = 0; i < group.count; i++)
        group.members[i] = newest->group[newest->group_count - group.count + i].member;
    keeper_take(&self->keeper, turn, said, &group);
}

static void hear_fetched(struct windows_member *self, const struct member_turn *turn)
{
    if (!keeper_hear(&self->keeper, turn, &self->stands.kept)) return;
    self->stands.kept_step = self->keeper.step;
    self->stands.kept_window = self->keeper.in;
    self->say_ms = 0;
}

void windows_member_keep_hear(struct windows_member *self, const struct member_turn *turn)
{
    switch (turn->in->kind) {
    case FRAME_LISTED: hear_listed(self, turn, turn->in->body); break;
    case FRAME_FETCHED_SHARE: hear_fetched(self, turn); break;
    }
}
