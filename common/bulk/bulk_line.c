// bulk_line -- connects and shakes hands; then each message is a buffer, sealed when it is queued (or, if
// the line is not open yet, when it opens), and written as the socket takes it. Receiving goes part by
// part: the head says how long the frame and the raw bytes are.

#include "common/bulk/bulk_line.h"
#include "common/base/bytes.h"
#include "common/base/ensure.h"
#include "common/net/endpoint.h"
#include "common/net/tcp.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { RAW_KEPT_MAX = BULK_CHUNK_MAX + SEALING_TAG };

struct bulk_message {
    struct bulk_message *next;
    size_t frame_count, raw_count, count, done;
    bool has_raw;
    uint8_t
        bytes[]; // As on the wire: head, frame, raw, each with room for its tag if the line seals
};

// ---- life -----------------------------------------------------------------------------------

struct handshake_self bulk_line_self(const struct identity *identity, const char *run)
{
    return (struct handshake_self){ .protocol = BULK_PROTOCOL,
                                    .identity = identity,
                                    .run = hash_of(run, strlen(run)) };
}

static void init(struct bulk_line *self, int fd)
{
    *self = (struct bulk_line){ .fd = fd };
    self->out_end = &self->out;
    self->handshake = malloc(sizeof *self->handshake);
    ensure(self->handshake);
}

int bulk_line_connect(struct bulk_line *self, const struct handshake_self *own,
                      const struct wire_holder *holder, struct why *why)
{
    const struct handshake_party party = { .key = holder->key };
    int fd;
    *self = (struct bulk_line){ .fd = -1 };
    if (!endpoint_is_numeric(holder->endpoint))
        return why_set(why, FAULT_CONFIG, "'%s' is no endpoint in numbers", holder->endpoint);
    const int rc = tcp_connect(holder->endpoint, why, &fd);
    if (rc < 0) return rc;
    init(self, fd);
    self->seals = !tcp_names_loopback(holder->endpoint);
    const struct handshake_purpose purpose = { .sealed = self->seals };
    handshake_connect(self->handshake, own, &party, &purpose);
    return 0;
}

void bulk_line_accept(struct bulk_line *self, const struct handshake_self *own, int fd)
{
    init(self, fd);
    self->stands = true;
    handshake_accept(self->handshake, own);
}

static void drop_handshake(struct bulk_line *self)
{
    if (self->handshake) handshake_wipe(self->handshake);
    free(self->handshake);
    self->handshake = NULL;
}

void bulk_line_close(struct bulk_line *self)
{
    struct bulk_message *next;
    if (self->fd >= 0) close(self->fd);
    drop_handshake(self);
    sealing_destroy(&self->seal);
    sealing_destroy(&self->unseal);
    for (struct bulk_message *message = self->out; message; message = next) {
        next = message->next;
        free(message);
    }
    free(self->raw);
    *self = (struct bulk_line){ .fd = -1 };
}

void bulk_line_cut(struct bulk_line *self)
{
    static const struct linger none = { .l_onoff = 1 };
    if (self->fd >= 0) setsockopt(self->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    bulk_line_close(self);
}

// ---- sending --------------------------------------------------------------------------------

static size_t tag_bytes(const struct bulk_line *self) { return self->seals ? SEALING_TAG : 0; }

// One part of a message, to `to`, from wherever it is. Returns where the next part begins.
static uint8_t *put_part(struct bulk_line *self, const void *from, size_t count, uint8_t *to)
{
    if (self->is_open && self->seals) sealing_put(&self->seal, from, count, to, to + count);
    else if (from != to && count > 0) memcpy(to, from, count);
    return to + count + tag_bytes(self);
}

// Seals what was queued before there was a key.
static void seal_waiting(struct bulk_line *self)
{
    for (struct bulk_message *message = self->out; message && self->seals;
         message = message->next) {
        uint8_t *at = put_part(self, message->bytes, BULK_HEAD, message->bytes);
        at = put_part(self, at, message->frame_count, at);
        if (message->has_raw) put_part(self, at, message->raw_count, at);
    }
}

size_t bulk_line_put(struct bulk_line *self, const char *run, uint16_t kind, const void *body,
                     const void *raw, size_t raw_count)
{
    struct wire_head wire = { .kind = kind };
    uint8_t head[BULK_HEAD], frame[BULK_FRAME_MAX];
    snprintf(wire.run, sizeof wire.run, "%s", run);
    const size_t tag = tag_bytes(self), frame_count = wire_pack(&wire, body, frame, sizeof frame);
    ensure(frame_count > 0 && raw_count < UINT32_MAX);
    const size_t count = BULK_HEAD + tag + frame_count + tag + (raw ? raw_count + tag : 0);
    struct bulk_message *message = malloc(sizeof *message + count);
    ensure(message);
    *message = (struct bulk_message){
        .frame_count = frame_count, .raw_count = raw_count, .has_raw = raw, .count = count
    };
    le_put(head, frame_count, 4);
    le_put(head + 4, raw ? 1 + raw_count : 0, 4);
    uint8_t *at = put_part(self, head, sizeof head, message->bytes);
    at = put_part(self, frame, frame_count, at);
    if (raw) put_part(self, raw, raw_count, at);
    *self->out_end = message;
    self->out_end = &message->next;
    self->out_bytes += count;
    return count;
}

static int write_some(struct bulk_line *self, struct why *why)
{
    while (self->out) {
        struct bulk_message *message = self->out;
        const ssize_t n = send(self->fd, message->bytes + message->done,
                               message->count - message->done, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
        if (n < 0) return why_set(why, FAULT_UNREACHABLE, "%s", strerror(errno));
        message->done += (size_t)n;
        self->out_bytes -= (size_t)n;
        if (message->done < message->count) continue;
        self->out = message->next;
        if (!self->out) self->out_end = &self->out;
        free(message);
    }
    return 1;
}

// ---- until it is open -----------------------------------------------------------------------

bool bulk_line_is_greeted(const struct bulk_line *self)
{
    const struct handshake *handshake = self->handshake;
    return self->is_open || (handshake && handshake->in != handshake->hello && !handshake->ends);
}

static int open_line(struct bulk_line *self, struct why *why)
{
    self->seals = self->handshake->purpose.sealed;
    self->key = self->handshake->peer.key;
    if (!handshake_seal(self->handshake, &self->seal, &self->unseal))
        return why_set(why, FAULT_MEMORY, "no memory for the keys of a connection");
    drop_handshake(self);
    tcp_tune(self->fd);
    tcp_watch(self->fd);
    tcp_bound_unsent(self->fd, BULK_UNSENT_MAX);
    self->is_open = true;
    self->in_count = BULK_HEAD + tag_bytes(self);
    seal_waiting(self);
    return 1;
}

static int shake_hands(struct bulk_line *self, struct why *why)
{
    if (!self->stands) {
        const int error = tcp_connected(self->fd);
        if (error == EINPROGRESS) return 0;
        if (error) return why_set(why, FAULT_UNREACHABLE, "%s", strerror(error));
        self->stands = true;
    }
    struct handshake *handshake = self->handshake;
    const int rc = handshake_move(handshake, self->fd, why);
    if (rc == 0 && handshake->ends && handshake->out_done == handshake->out_count)
        return why_set(why, FAULT_DENIED, "refused: %s",
                       handshake_refusal_text(handshake->refusal));
    return rc <= 0 ? rc : open_line(self, why);
}

int bulk_line_move(struct bulk_line *self, struct why *why)
{
    const int rc = self->is_open ? 1 : shake_hands(self, why);
    return rc <= 0 ? rc : write_some(self, why);
}

short bulk_line_events(const struct bulk_line *self)
{
    if (!self->stands) return POLLOUT;
    if (!self->is_open) return handshake_events(self->handshake);
    return (short)(POLLIN | (self->out ? POLLOUT : 0));
}

// ---- receiving ------------------------------------------------------------------------------

static enum bulk_heard end(struct why *why, const char *reason)
{
    why_set(why, FAULT_PROTOCOL, "%s", reason);
    return BULK_ENDED;
}

// Moves bytes that were read ahead to the part that is being received.
static void take_ahead(struct bulk_line *self, uint8_t *to)
{
    const size_t here = self->ahead_to - self->ahead_from, lacks = self->in_count - self->in_got;
    const size_t count = here < lacks ? here : lacks;
    if (count > 0) memcpy(to + self->in_got, self->ahead + self->ahead_from, count);
    self->ahead_from += count;
    self->in_got += count;
}

// Reads the rest of a part, and ahead of it as many bytes as there are and fit.
static ssize_t read_ahead(struct bulk_line *self, uint8_t *to)
{
    const size_t lacks = self->in_count - self->in_got;
    struct iovec parts[2] = { { to + self->in_got, lacks }, { self->ahead, sizeof self->ahead } };
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
    const ssize_t n = recvmsg(self->fd, &message, MSG_DONTWAIT);
    if (n <= 0) return n;
    self->in_got += (size_t)n < lacks ? (size_t)n : lacks;
    self->ahead_from = 0;
    self->ahead_to = (size_t)n < lacks ? 0 : (size_t)n - lacks;
    return n;
}

// BULK_MAIL: this part is whole, and opened.
static enum bulk_heard read_part(struct bulk_line *self, uint8_t *to, struct why *why)
{
    take_ahead(self, to);
    while (self->in_got < self->in_count) {
        const ssize_t n = read_ahead(self, to);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return BULK_NOTHING;
        if (n <= 0) return end(why, n < 0 ? strerror(errno) : "it hung up");
    }
    const size_t count = self->in_count - tag_bytes(self);
    if (self->seals && !sealing_take(&self->unseal, to, count, to + count))
        return end(why, "a record was not sealed by the other end as its next one");
    return BULK_MAIL;
}

static void begin_part(struct bulk_line *self, enum bulk_part part, size_t count)
{
    self->in_part = part;
    self->in_got = 0;
    self->in_count = count + tag_bytes(self);
}

static enum bulk_heard take_head(struct bulk_line *self, struct why *why)
{
    const size_t frame = (size_t)le_get(self->head, 4), raw = (size_t)le_get(self->head + 4, 4);
    if (frame == 0 || frame > BULK_FRAME_MAX) return end(why, "a frame of a wrong length");
    self->frame_count = frame;
    self->has_raw = raw > 0;
    self->raw_count = raw ? raw - 1 : 0;
    if (self->raw_count > self->raw_max || (raw && self->raw_max == 0))
        return end(why, "more bytes than were asked for");
    begin_part(self, IN_FRAME, frame);
    return BULK_MAIL;
}

static bool make_room(struct bulk_line *self)
{
    const size_t room = self->raw_count + SEALING_TAG;
    if (room <= self->raw_room && self->raw_room <= RAW_KEPT_MAX) return true;
    free(self->raw);
    self->raw = malloc(room);
    self->raw_room = self->raw ? room : 0;
    return self->raw;
}

static enum bulk_heard take_frame(struct bulk_line *self, struct bulk_mail *mail, struct why *why)
{
    struct wire_arena arena = { mail->arena, 0, sizeof mail->arena };
    struct wire_refusal refusal;
    begin_part(self, IN_HEAD, BULK_HEAD);
    if (!wire_unpack(self->frame, self->frame_count, WIRE_BULK, &arena, &mail->head, &mail->body,
                     &refusal))
        return end(why, "a frame that is none of the bulk plane");
    mail->raw = self->has_raw ? self->raw : NULL;
    mail->raw_count = self->raw_count;
    return BULK_MAIL;
}

enum bulk_heard bulk_line_recv(struct bulk_line *self, struct bulk_mail *mail, struct why *why)
{
    enum bulk_heard heard;
    if (self->fd < 0 || !self->is_open) return BULK_NOTHING;
    if (self->in_part == IN_HEAD) {
        heard = read_part(self, self->head, why);
        if (heard == BULK_MAIL) heard = take_head(self, why);
        if (heard != BULK_MAIL) return heard;
    }
    if (self->in_part == IN_FRAME) {
        heard = read_part(self, self->frame, why);
        if (heard != BULK_MAIL) return heard;
        if (!self->has_raw) return take_frame(self, mail, why);
        if (!make_room(self)) return end(why, "no memory for its bytes");
        begin_part(self, IN_RAW, self->raw_count);
    }
    heard = read_part(self, self->raw, why);
    return heard == BULK_MAIL ? take_frame(self, mail, why) : heard;
}
