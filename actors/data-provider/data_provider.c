#include "actors/data-provider/data_provider.h"
#include <sysexits.h>

void data_provider_init(struct data_provider *self) { self->member.role = ACTOR_PROVIDER; }

void data_provider_step(void *state, const struct msg *in, struct outbox *out)
{
    struct data_provider *self = state;
    if (in->kind == FRAME_QUIT) {
        member_leave(&self->member, out);
        if (!self->member.admitted) outbox_quit(out, EX_OK, "stopped before it was admitted");
        return;
    }
    if (in->kind == FRAME_JOURNAL) {
        self->journal = *(const struct wire_journal *)in->body;
        member_recall_position(&self->member, &self->journal);
        return;
    }
    unsigned heard = member_hear(&self->member, in, out);
    if (heard & HEARD_ACK && ((const struct wire_ack *)in->body)->kind == FRAME_LEAVE)
        outbox_quit(out, EX_OK, "left the run");
    if (member_should_keep(&self->member, &self->journal)) {
        member_keep_position(&self->member, &self->journal);
        outbox_store(out, FRAME_JOURNAL, &self->journal);
    }
}
