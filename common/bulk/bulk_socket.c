#include "common/bulk/bulk_socket.h"
#include "common/base/ensure.h"
#include "common/net/endpoint.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

bool bulk_connect(void *socket, const struct identity *identity, const struct wire_holder *holder)
{
    struct curve_key curve;
    // Other transports lead into this machine or this process, and a name to whoever answers for it.
    if (!endpoint_is_numeric(holder->endpoint) || !curve_of_key(&holder->key, &curve)) {
        errno = EINVAL;
        return false;
    }
    net_set(socket, ZMQ_IPV6, endpoint_is_ipv6(holder->endpoint));
    zap_secure_client(socket, identity, &curve);
    return zmq_connect(socket, holder->endpoint) == 0;
}

// ---- receiving ------------------------------------------------------------------------------

void bulk_mail_init(struct bulk_mail *mail)
{
    memset(mail, 0, sizeof *mail);
    zmq_msg_init(&mail->raw);
}

void bulk_mail_end(struct bulk_mail *mail) { zmq_msg_close(&mail->raw); }

static bool take_id(struct bulk_mail *mail, zmq_msg_t *part)
{
    mail->id_count = zmq_msg_size(part);
    if (mail->id_count > sizeof mail->id) return false;
    memcpy(mail->id, zmq_msg_data(part), mail->id_count);
    return true;
}

// At a ROUTER only what came over CURVE; a DEALER has no handler, and its server's key is proven.
static bool take_user(struct bulk_mail *mail, zmq_msg_t *part, bool is_router)
{
    if (!is_router) return true;
    if (!zap_user(part, &mail->user)) return false;
    mail->fd = zmq_msg_get(part, ZMQ_SRCFD);
    return true;
}

static bool take_frame(struct bulk_mail *mail, zmq_msg_t *part)
{
    struct wire_arena arena = { mail->arena, 0, sizeof mail->arena };
    struct wire_refusal refusal;
    return zmq_msg_size(part) <= BULK_FRAME_MAX &&
           wire_unpack(zmq_msg_data(part), zmq_msg_size(part), WIRE_BULK, &arena, &mail->head,
                       &mail->body, &refusal);
}

static bool take_raw(struct bulk_mail *mail, zmq_msg_t *part)
{
    zmq_msg_move(&mail->raw, part);
    return mail->has_raw = true;
}

// The parts of a message arrive together or not at all, so this waits for nobody.
enum bulk_heard bulk_mail_recv(struct bulk_mail *mail, void *socket)
{
    int type;
    size_t size = sizeof type;
    ensure(zmq_getsockopt(socket, ZMQ_TYPE, &type, &size) == 0);
    const int first = type == ZMQ_ROUTER ? 0 : 1; // 0: routing id, 1: frame, 2: raw bytes
    int number = first;
    bool is_sound = true, more = true;
    zmq_msg_close(&mail->raw);
    zmq_msg_init(&mail->raw);
    mail->has_raw = false;
    mail->body = NULL;
    mail->fd = -1;
    mail->wire_bytes = 0;
    for (; more; number++) {
        zmq_msg_t part;
        zmq_msg_init(&part);
        if (zmq_msg_recv(&part, socket, ZMQ_DONTWAIT) < 0) {
            zmq_msg_close(&part);
            return number == first ? BULK_NOTHING : BULK_MALFORMED;
        }
        more = zmq_msg_more(&part);
        if (number > 0) mail->wire_bytes += connections_part_bytes(zmq_msg_size(&part));
        if (is_sound)
            is_sound = number == 0   ? take_id(mail, &part)
                       : number == 1 ? take_user(mail, &part, first == 0) && take_frame(mail, &part)
                       : number == 2 ? take_raw(mail, &part)
                                     : false;
        zmq_msg_close(&part);
    }
    return is_sound && mail->body ? BULK_MAIL : BULK_MALFORMED;
}

// ---- sending --------------------------------------------------------------------------------

// Once the first part of a message is accepted, the others are (a peer that goes away in between is
// sent to nowhere); so only the first can be refused.
// The first part, which decides whether there is room for the whole. How much the other end of the queue
// has taken since is told to this thread by a command, which zmq_send looks for only once in a while
// (libzmq's max_command_delay, a millisecond): so a queue that seems full is looked at again.
static int send_first(void *socket, const void *bytes, size_t count, int flags)
{
    int events;
    size_t size = sizeof events;
    if (zmq_send(socket, bytes, count, ZMQ_DONTWAIT | flags) >= 0) return 0;
    if (zmq_errno() != EAGAIN) return -1;
    ensure(zmq_getsockopt(socket, ZMQ_EVENTS, &events, &size) == 0);
    return zmq_send(socket, bytes, count, ZMQ_DONTWAIT | flags) >= 0 ? 0 : -1;
}

size_t bulk_send(void *socket, const struct bulk_mail *to, const char *run, uint16_t kind,
                 const void *body, zmq_msg_t *raw)
{
    struct wire_head head = { .kind = kind };
    uint8_t frame[BULK_FRAME_MAX];
    snprintf(head.run, sizeof head.run, "%s", run);
    const size_t count = wire_pack(&head, body, frame, sizeof frame);
    ensure(count > 0);
    const uint64_t raw_bytes = raw ? connections_part_bytes(zmq_msg_size(raw)) : 0;
    const int more = raw ? ZMQ_SNDMORE : 0;
    if (to) {
        if (send_first(socket, to->id, to->id_count, ZMQ_SNDMORE) < 0) return 0;
        ensure(zmq_send(socket, frame, count, ZMQ_DONTWAIT | more) >= 0);
    } else if (send_first(socket, frame, count, more) < 0) return 0;
    if (raw) ensure(zmq_msg_send(raw, socket, ZMQ_DONTWAIT) >= 0);
    return connections_part_bytes(count) + raw_bytes;
}
