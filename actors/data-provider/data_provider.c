// The role's list of parts: only the pace, which follows how far the run is, for the pings. member.c
// joins and stays in the run.

#include "actors/data-provider/data_provider.h"

void data_provider_init(struct data_provider *self) { self->member.role = ACTOR_PROVIDER; }

void data_provider_step(void *state, const struct msg *in, struct outbox *out)
{
    struct data_provider *self = state;
    const struct part parts[] = { { &self->pace, pace_part_hear, pace_part_look, NULL }, { 0 } };
    parts_step(&(struct member_turn){ .member = &self->member, .in = in, .out = out }, parts);
}
