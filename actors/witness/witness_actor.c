// The role's list of parts: pace and blobs.

#include "actors/witness/witness_actor.h"

void witness_actor_init(struct witness_actor *self) { self->member.role = ACTOR_WITNESS; }

void witness_actor_step(void *state, const struct msg *in, struct outbox *out)
{
    struct witness_actor *self = state;
    const struct part parts[] = { { &self->pace, pace_part_hear, pace_part_look, NULL },
                                  { &self->blobs, blobs_hear, blobs_look, NULL },
                                  { 0 } };
    parts_step(
        &(struct member_turn){
            .member = &self->member, .blobs = &self->blobs, .in = in, .out = out },
        parts);
}
