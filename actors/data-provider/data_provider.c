// The role's list of parts: only the view of the newest round, whose number goes into the pings.
// member.c joins and stays in the run.

#include "actors/data-provider/data_provider.h"

void data_provider_init(struct data_provider *self) { self->member.role = ACTOR_PROVIDER; }

void data_provider_step(void *state, const struct msg *in, struct outbox *out)
{
    struct data_provider *self = state;
    const struct part parts[] = { { &self->view, round_view_hear, NULL, NULL }, { 0 } };
    parts_step(&(struct member_turn){ .member = &self->member, .in = in, .out = out }, parts);
}
