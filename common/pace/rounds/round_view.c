// Takes a ROUND of the followed coordinator if it is newer than the known one and sound, and deals
// its samples to its trainers. The other functions answer questions about that round.

#include "common/pace/rounds/round_view.h"
#include "common/run/phase.h"

void round_view_hear(void *state, const struct member_turn *turn)
{
    struct round_view *self = state;
    struct member *member = turn->member;
    const struct wire_round *round = turn->in->body;
    self->opened = false;
    if (!(turn->heard & HEARD_PACE) || turn->in->kind != FRAME_ROUND) return;
    if (member->has_round && round->round <= member->round) return;
    if (!round_is_sound(round)) return; // No correct coordinator sends it
    round_open(&self->round, round);
    member->round = round->round;
    self->opened = member->has_round = true;
    const uint32_t trainers = round_trainers(&self->round, self->trainers);
    self->deal = (struct deal){ .capacity = MEMBERS_MAX,
                                .shares = self->shares,
                                .by_trainer = self->by_trainer };
    assignment_deal(round->seed, self->trainers, trainers, round->batch_size, &self->deal);
}

bool round_view_is_open(const struct round_view *self, const struct member *member)
{
    return member->has_round && member->now.round == self->round.opened.round &&
           phase_makes_steps(member->now.phase);
}

uint32_t round_view_own_place(const struct round_view *self, const struct member *member)
{
    if (!member->admitted || !member->has_round) return NO_MEMBER;
    return round_client_place(&self->round, member->index);
}

bool round_view_elects_us(const struct round_view *self, const struct member *member)
{
    if (!member->admitted || !member->has_round) return false;
    return round_witness_place(&self->round, member->index) != NO_MEMBER;
}

const struct wire_member *round_view_client(const struct round_view *self,
                                            const struct member *member, uint32_t client)
{
    return client < self->round.clients_count
               ? member_at(member, self->round.clients[client].member)
               : NULL;
}
