// news -- publishes news at once. Of each state topic it keeps the newest frame, for actors that
// connect later and ask for it (RECALL); after many runs it forgets the oldest. A frame of a state
// topic is checked first: its signature must verify, and it must be newer than the frame kept. A
// ROSTER or MEMBERS of the coordinator also bans the keys that it ejects.

#include "broker/broker.h"
#include "common/base/clock.h"
#include "common/base/ensure.h"
#include "common/base/failpoint.h"
#include "common/net/signed_frame.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROSTER_ARENA_BYTES = 16 << 20 };

// The bulletin of a topic. If there is none, a new one; if there is no room, the oldest of another run: a coordinator
// publishes for one run, so the others are over. NULL: all are of this run.
static struct bulletin *place_of(struct broker *self, const char *topic, const char *run)
{
    const size_t length = strlen(run);
    struct bulletin *oldest = NULL;
    for (uint32_t i = 0; i < self->bulletins_count; i++) {
        struct bulletin *kept = &self->bulletins[i];
        if (strcmp(kept->topic, topic) == 0) return kept;
        if (strncmp(kept->topic, run, length) == 0 && kept->topic[length] == '.') continue;
        if (!oldest || kept->kept_ms < oldest->kept_ms) oldest = kept;
    }
    if (self->bulletins_count < BULLETINS_MAX) oldest = &self->bulletins[self->bulletins_count++];
    if (!oldest) return NULL;
    snprintf(oldest->topic, sizeof oldest->topic, "%s", topic);
    oldest->incarnation = oldest->seq = 0;
    return oldest;
}

// Keeps the frame. False if it is not newer than the one kept: it is a duplicate or a replay.
static bool keep(struct broker *self, const char *topic, const struct wire_head *head,
                 const void *frame, size_t count)
{
    struct bulletin *kept = place_of(self, topic, head->run);
    if (!kept) return true;
    if (head->incarnation < kept->incarnation ||
        (head->incarnation == kept->incarnation && head->seq <= kept->seq))
        return false;
    kept->frame = realloc(kept->frame, count);
    ensure(kept->frame);
    memcpy(kept->frame, frame, count);
    kept->count = count;
    kept->incarnation = head->incarnation;
    kept->seq = head->seq;
    kept->kept_ms = clock_ms();
    return true;
}

uint64_t broker_beat_ms(const struct broker *self, const char *run)
{
    char topic[96];
    snprintf(topic, sizeof topic, "%s.%s", run, wire_kind_name(FRAME_BEAT));
    for (uint32_t i = 0; i < self->bulletins_count; i++)
        if (strcmp(self->bulletins[i].topic, topic) == 0) return self->bulletins[i].kept_ms;
    return 0;
}

// Of a ROSTER or MEMBERS: the broker cuts ejected members off itself, whether or not they have received it, and
// gives the others their seats.
static void hear_roster(struct broker *self, const uint8_t *frame, size_t count)
{
    struct wire_arena arena = { .bytes = malloc(ROSTER_ARENA_BYTES), .max = ROSTER_ARENA_BYTES };
    struct wire_head head;
    struct wire_refusal refusal;
    const void *body;
    ensure(arena.bytes);
    if (!wire_unpack(frame, count, WIRE_NEWS, &arena, &head, &body, &refusal)) {
        free(arena.bytes);
        return;
    }
    const struct wire_roster *roster = body;
    const struct wire_members *change = body;
    if (head.kind == FRAME_ROSTER) {
        broker_eject(self, roster->members, roster->members_count);
        broker_keep_seats(self, roster);
    } else {
        broker_eject(self, change->members, change->members_count);
        broker_change_seats(self, change);
    }
    free(arena.bytes);
}

// Members believe a state topic, so its signature is verified before the frame is kept and
// published.
void broker_publish(struct broker *self, const struct peer *from, const struct wire_head *head,
                    const uint8_t *frame, size_t count)
{
    char topic[96];
    snprintf(topic, sizeof topic, "%s.%s", head->run, wire_kind_name(head->kind));
    if (wire_kind_flags(head->kind) & WIRE_STATE) {
        if (!signed_frame_verify(frame, count, head)) return;
        if (!keep(self, topic, head, frame, count)) return;
        if ((head->kind == FRAME_ROSTER || head->kind == FRAME_MEMBERS) &&
            from->role == ACTOR_COORDINATOR)
            hear_roster(self, frame, count);
    }
    if (wire_kind_flags(head->kind) & WIRE_OPENS && from->role == ACTOR_COORDINATOR) self->opened++;
    failpoint("broker_publish");
    zmq_send(self->news, topic, strlen(topic), ZMQ_SNDMORE | ZMQ_DONTWAIT);
    if (zmq_send(self->news, frame, count, ZMQ_DONTWAIT) < 0) return;
    backlog_published(self->backlog, strlen(topic));
    backlog_published(self->backlog, count);
    self->published++;
}

void broker_recall(struct broker *self, const struct route *sender,
                   const struct wire_recall *recall)
{
    failpoint("broker_recall");
    size_t length = strlen(recall->run);
    for (uint32_t i = 0; i < self->bulletins_count; i++) {
        const struct bulletin *kept = &self->bulletins[i];
        if (strncmp(kept->topic, recall->run, length) == 0 && kept->topic[length] == '.')
            letter_send(self, sender, "", kept->frame, kept->count);
    }
}

void broker_doubt_bulletins(struct broker *self)
{
    for (uint32_t i = 0; i < self->bulletins_count; i++)
        self->bulletins[i].incarnation = self->bulletins[i].seq = 0;
}

// The library keeps the subscription itself. The broker only learns the key of the connection from
// it.
bool broker_take_subscription(struct broker *self, uint64_t now_ms)
{
    zmq_msg_t part;
    zmq_msg_init(&part);
    bool some = zmq_msg_recv(&part, self->news, ZMQ_DONTWAIT) >= 0;
    if (some) broker_hear_subscriber(self, &part, now_ms);
    zmq_msg_close(&part);
    return some;
}
