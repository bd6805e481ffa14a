// letter -- takes all parts of a letter, however many they are, and notes whether they have the
// right form. Sending first asks whether too many bytes wait for the receiver, then counts the
// bytes that it sent.

#include "broker/letter.h"
#include "broker/broker.h"
#include "common/net/zap.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

// ---- taking -------------------------------------------------------------------------------------

enum { PART_ROUTE, PART_NAME, PART_FRAME, PARTS };

static bool take_route(struct delivery *in, zmq_msg_t *part)
{
    if (zmq_msg_size(part) > ROUTE_MAX) return false;
    in->sender.count = (uint8_t)zmq_msg_size(part);
    memcpy(in->sender.bytes, zmq_msg_data(part), in->sender.count);
    return true;
}

static bool take_name(struct delivery *in, zmq_msg_t *part)
{
    size_t count = zmq_msg_size(part);
    if (count > ACTOR_NAME_MAX) return false;
    memcpy(in->to, zmq_msg_data(part), count);
    in->to[count] = 0;
    for (size_t i = 0; i < count; i++)
        if ((uint8_t)in->to[i] < 0x20) return false; // Answers and logs quote the name
    return true;
}

// Reads every part but keeps only the last one, the frame. The connection's key is read from it,
// because the routing id does not carry the key.
enum letter_result letter_take(void *socket, uint64_t now_ms, struct delivery *ret_letter)
{
    struct delivery *in = ret_letter;
    struct curve_key user;
    *in = (struct delivery){ .fd = -1, .now_ms = now_ms, .is_sound = true };
    zmq_msg_init(&in->part);
    uint32_t number = 0;
    for (bool more = true; more; number++) {
        letter_end(in);
        if (zmq_msg_recv(&in->part, socket, ZMQ_DONTWAIT) < 0) return LETTER_NONE;
        more = zmq_msg_more(&in->part);
        if (number != PART_ROUTE) in->bytes += zmq_msg_size(&in->part);
        if (number == PART_ROUTE) in->is_sound = take_route(in, &in->part);
        if (number == PART_NAME) in->is_sound &= take_name(in, &in->part);
    }
    if (number == 1 || !zap_user(&in->part, &user)) return LETTER_DROPPED;
    memcpy(in->user.bytes, user.bytes, CURVE_BYTES);
    in->is_sound &= number == PARTS;
    in->parts = number - 1;
    in->fd = in->sender.fd = zmq_msg_get(&in->part, ZMQ_SRCFD);
    in->frame = zmq_msg_data(&in->part);
    in->count = zmq_msg_size(&in->part);
    return LETTER_TAKEN;
}

void letter_end(struct delivery *letter)
{
    zmq_msg_close(&letter->part);
    zmq_msg_init(&letter->part);
}

// ---- sending ------------------------------------------------------------------------------------

bool letter_send(struct broker *self, const struct route *to, const char *from, const void *frame,
                 size_t count)
{
    if (!broker_may_send(self, to->fd)) {
        errno = EAGAIN;
        return false;
    }
    if (zmq_send(self->mail, to->bytes, to->count, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) return false;
    zmq_send(self->mail, from, strlen(from), ZMQ_SNDMORE | ZMQ_DONTWAIT);
    if (zmq_send(self->mail, frame, count, ZMQ_DONTWAIT) < 0) return false;
    backlog_sent(self->backlog, to->fd, strlen(from));
    backlog_sent(self->backlog, to->fd, count);
    return true;
}

// Sends nothing if the frame cannot be encoded, for example if it would quote bytes that are not
// text.
void letter_answer(struct broker *self, const struct route *to, uint16_t kind, const void *body)
{
    struct wire_head head = { .kind = kind, .incarnation = self->instance, .seq = ++self->seq };
    size_t count = wire_pack(&head, body, self->buffer, sizeof self->buffer);
    if (count > 0) letter_send(self, to, "broker", self->buffer, count);
}

void letter_refuse(struct broker *self, const struct delivery *letter, const char *to,
                   uint16_t kind, const char *reason)
{
    struct wire_undeliverable no = { .kind = kind };
    snprintf(no.to, sizeof no.to, "%.*s", ACTOR_NAME_MAX, to);
    snprintf(no.reason, sizeof no.reason, "%s", reason);
    self->undeliverable++;
    letter_answer(self, &letter->sender, FRAME_UNDELIVERABLE, &no);
}
