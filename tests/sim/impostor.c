// impostor -- somebody without a place in the run says what only its coordinator says, under the coordinator's name:
// as where a broker lets any key be coordinator, or is in its hands. It tells members that they are admitted, refused
// or ejected, that all others are, that the run is finished, and that their position is known. A member that knows
// its owner, by its ticket or its journal, does none of it (check_words.c check_stepped); one that does not is not
// spoken to, since it could not tell.

#include "common/base/ensure.h"
#include "tests/sim/sim.h"
#include <string.h>

static const struct key impostor = { "an impostor" };

static void say(struct sim *self, uint8_t to, uint16_t kind, const void *body)
{
    struct node *node = &self->nodes[to];
    const size_t bytes = wire_pack_body(kind, body, self->bytes, SCRATCH_BYTES);
    ensure(bytes > 0);
    struct parcel *parcel = parcel_new(self, NULL, kind, self->bytes, (uint32_t)bytes);
    parcel->sender = impostor;
    parcel->incarnation = self->nodes[COORDINATOR].incarnation + roll(self, 2);
    self->faults[IMPOSTURE]++;
    network_fly(self, 1 + roll(self, 20), TO_NODE_MAIL, to, node->life, "coordinator", parcel);
    parcel_release(parcel);
}

static bool knows_its_owner(const struct sim *self, const struct node *node)
{
    return self->plan.tickets || (node->has_journal && !key_is_none(&node->journal.owner));
}

static void eject_all(struct sim *self, uint8_t to, const struct member *member)
{
    static struct wire_member members[MEMBERS_MAX];
    const struct roster *roster = &member->roster;
    memcpy(members, roster->members, roster->count * sizeof *members);
    for (uint32_t i = 0; i < roster->count; i++) members[i].state = MEMBER_EJECTED;
    say(self, to, FRAME_ROSTER,
        &(struct wire_roster){
            .version = roster->version + 1, .members = members, .members_count = roster->count });
}

static void speak(struct sim *self, uint8_t to)
{
    const struct node *node = &self->nodes[to];
    const struct member *member = node->state; // The first field of every member's state
    struct wire_run run = member->now;
    switch (roll(self, 6)) {
    case 0:
        say(self, to, FRAME_ADMITTED,
            &(struct wire_admitted){ .instance = member->instance,
                                     .born_unix_ms = member->born_unix_ms + roll(self, 2) });
        break;
    case 1:
        say(self, to, FRAME_REFUSED,
            &(struct wire_refused){
                .kind = FRAME_JOIN, .reason = REFUSAL_EJECTED, .text = "by the impostor" });
        break;
    case 2:
        say(self, to, FRAME_REFUSED,
            &(struct wire_refused){
                .kind = FRAME_PING, .reason = REFUSAL_NOT_MEMBER, .text = "by the impostor" });
        break;
    case 3: eject_all(self, to, member); break;
    case 4:
        if (!member->has_run) return;
        run.phase = PHASE_FINISHED, run.log_seq++;
        say(self, to, FRAME_RUN, &run);
        break;
    case 5:
        if (member->position.log_seq == 0) return;
        say(self, to, FRAME_ACK,
            &(struct wire_ack){ .kind = FRAME_POSITION,
                                .round = member->position.log_seq,
                                .hash = member->position.chain });
        break;
    }
}

void impostor_act(struct sim *self)
{
    if (!self->plan.impostor || !faulty(self)) return;
    const uint8_t to = (uint8_t)between(self, 1, self->nodes_count - 1);
    const struct node *node = &self->nodes[to];
    if (node->up && node->role != ACTOR_OPERATOR && knows_its_owner(self, node)) speak(self, to);
}
