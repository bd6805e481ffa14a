// The witness as an actor of its own: a member without a replica, in runs that elect such
// witnesses.

#include "actors/witness/witness.h"
#include <sysexits.h>

enum { KEPT_STEPS = 64 }; // Payloads of so many commits are still served, if they fit

void witness_actor_init(struct witness_actor *self) { self->member.role = ACTOR_WITNESS; }

static void advance(struct witness_actor *self, uint64_t now_ms, struct outbox *out)
{
    if (witness_is_due(&self->witness, &self->blobs, &self->member)) {
        self->journal.vote = witness_cast(&self->witness, &self->blobs, &self->member);
        self->journal.vote_round = self->witness.round;
        member_keep_position(&self->member, &self->journal);
        outbox_store(out, FRAME_JOURNAL, &self->journal);
    }
    witness_send(&self->witness, &self->member, now_ms, out);
    blobs_fetch(&self->blobs, &self->member, now_ms, out);
}

void witness_actor_step(void *state, const struct msg *in, struct outbox *out)
{
    struct witness_actor *self = state;
    switch (in->kind) {
    case FRAME_JOURNAL:
        self->journal = *(const struct wire_journal *)in->body;
        self->witness.voted_round = self->journal.vote_round;
        member_recall_position(&self->member, &self->journal);
        return;
    case FRAME_INHERITED: blobs_inherit(&self->blobs, in->body); return;
    case FRAME_QUIT:
        member_leave(&self->member, out);
        if (!self->member.admitted) outbox_quit(out, EX_OK, "stopped before it was admitted");
        return;
    case FRAME_CLAIM:
        witness_hear_claim(&self->witness, &self->blobs, &self->member, in, out);
        break;
    case FRAME_PRODUCE:
        if (member_is_coordinator(&self->member, in))
            witness_hear_produce(&self->witness, in->body, out);
        break;
    case FRAME_FETCHED: blobs_hear(&self->blobs, in->body, in->now_ms, out); break;
    default: {
        unsigned heard = member_hear(&self->member, in, out);
        if (heard & HEARD_RUN) blobs_date(&self->blobs, self->member.now.step);
        if (heard & HEARD_ADMITTED && self->journal.born_unix_ms != self->member.born_unix_ms) {
            self->journal = (struct wire_journal){ .born_unix_ms = self->member.born_unix_ms };
            self->witness.voted_round = 0;
        }
        if (heard & HEARD_ROUND) {
            witness_begin(&self->witness, &self->member);
            blobs_forget_void(&self->blobs, self->member.round.step, out);
            const uint64_t keep = blobs_steps_kept(KEPT_STEPS, self->member.round.clients_count);
            if (self->member.round.step > keep)
                blobs_forget(&self->blobs, self->member.round.step - keep, out);
        }
        if (heard & HEARD_REBORN) self->witness.acknowledged = false;
        if (heard & HEARD_COMMIT) witness_hear_commit(&self->witness, in->body, out);
        if (heard & HEARD_ACK) {
            const struct wire_ack *ack = in->body;
            if (ack->kind == FRAME_LEAVE) outbox_quit(out, EX_OK, "left the run");
            witness_hear_ack(&self->witness, ack);
        }
        if (heard & HEARD_RUN && self->member.now.phase == PHASE_FINISHED)
            outbox_quit(out, EX_OK, "the run is finished");
    }
    }
    advance(self, in->now_ms, out);
}
