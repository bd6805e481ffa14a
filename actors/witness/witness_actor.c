// The role's list of parts: rounds and blobs. Without a replica the rounds part only witnesses.

#include "actors/witness/witness_actor.h"

void witness_actor_init(struct witness_actor *self) { self->member.role = ACTOR_WITNESS; }

void witness_actor_step(void *state, const struct msg *in, struct outbox *out)
{
    struct witness_actor *self = state;
    const struct part parts[] = { { &self->rounds, rounds_member_hear, rounds_member_look, NULL },
                                  { &self->blobs, blobs_hear, blobs_look, NULL },
                                  { 0 } };
    parts_step(
        &(struct member_turn){
            .member = &self->member, .blobs = &self->blobs, .in = in, .out = out },
        parts);
}
