// Which members to ask for a blob, for parameters or for samples, in an order that spreads the
// load.

#include "common/member/member.h"
#include <string.h>

static void add_holder(struct wire_holder *holder, const struct wire_member *member)
{
    memcpy(holder->endpoint, member->endpoint, sizeof holder->endpoint);
    holder->key = member->key;
}

enum { HOLDS_ALL, MAY_HOLD, HOLDS_NOTHING };

// A pending member has no parameters, or those of an earlier epoch. A standalone witness has blobs
// but no parameters.
static int holds(const struct wire_member *member)
{
    const bool replica = role_takes_steps(member->role) || member->role == ACTOR_CHECKPOINTER;
    if (!roster_is_here(member) || !member->endpoint[0] ||
        (!replica && member->role != ACTOR_WITNESS))
        return HOLDS_NOTHING;
    return replica && member->state == MEMBER_HEALTHY ? HOLDS_ALL : MAY_HOLD;
}

uint32_t member_holders(const struct member *self, uint32_t first_member, uint32_t tries,
                        struct wire_holder *ret_list, uint32_t max)
{
    uint32_t count = 0;
    const struct wire_member *first = member_at(self, first_member);
    if (first && first->endpoint[0] && first_member != self->index && count < max)
        add_holder(&ret_list[count++], first);
    for (int sort = HOLDS_ALL; sort <= MAY_HOLD; sort++)
        for (uint32_t n = 1; n <= self->roster.count && count < max; n++) {
            // mutant: the same neighbours are asked again and again
            const uint64_t place = self->index + n + (uint64_t)tries * max;
            const uint32_t i = (uint32_t)(place % self->roster.count);
            if (i == first_member || i == self->index || holds(&self->roster.members[i]) != sort)
                continue;
            add_holder(&ret_list[count++], &self->roster.members[i]);
        }
    return count;
}

static bool provides(const struct member *self, uint32_t index)
{
    const struct wire_member *member = &self->roster.members[index];
    return member->role == ACTOR_PROVIDER && member->state == MEMBER_HEALTHY && member->endpoint[0];
}

uint32_t member_providers(const struct member *self, uint64_t number, struct wire_holder *ret_list,
                          uint32_t max)
{
    uint32_t all = 0, count = 0, nth = 0;
    for (uint32_t i = 0; i < self->roster.count; i++) all += provides(self, i);
    for (uint32_t turn = 0; all > 0 && turn < 2; turn++, nth = 0)
        for (uint32_t i = 0; i < self->roster.count && count < max; i++) {
            if (!provides(self, i)) continue;
            // mutant: data: some providers are never asked
            const bool later = nth++ >= (self->index + number) % all; // From ours on
            if (later == (turn == 0)) add_holder(&ret_list[count++], &self->roster.members[i]);
        }
    return count;
}
