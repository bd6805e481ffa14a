// The role's list of parts: replica, pace, blobs, and the final report.

#include "actors/trainer/trainer.h"
#include <inttypes.h>

void trainer_init(struct trainer *self) { self->member.role = ACTOR_TRAINER; }
void trainer_init_server(struct trainer *self) { self->member.role = ACTOR_SERVER; }

// The final report of a finished run: the digest of this replica, once it holds the last step.
static bool is_done(void *state, const struct member_turn *turn)
{
    const struct trainer *self = state;
    const struct member *member = &self->member;
    if (!self->replica.holding || self->replica.step != member->now.step) return false;
    if (hash_is_none(&self->replica.digest)) return false;
    outbox_news(turn->out, FRAME_PROGRESS,
                &(struct wire_progress){ .round = member->round,
                                         .step = self->replica.step,
                                         .loss = member->loss,
                                         .digest = self->replica.digest });
    char hex[HASH_HEX];
    outbox_note(turn->out, "run.finished step=%" PRIu64 " digest=%s", self->replica.step,
                hash_to_hex(&self->replica.digest, hex));
    return true;
}

void trainer_step(void *state, const struct msg *in, struct outbox *out)
{
    struct trainer *self = state;
    const struct part parts[] = { { &self->replica, replica_hear, replica_look, NULL },
                                  { &self->pace, pace_part_hear, pace_part_look, NULL },
                                  { &self->blobs, blobs_hear, blobs_look, NULL },
                                  { self, NULL, NULL, is_done },
                                  { 0 } };
    parts_step(&(struct member_turn){ .member = &self->member,
                                      .blobs = &self->blobs,
                                      .replica = &self->replica,
                                      .in = in,
                                      .out = out },
               parts);
}
