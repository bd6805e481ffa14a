// Messages over a channel, out and in.
//
// Out, plain: head and payload in one sendmsg, from where they lie. A large vector goes without a
// copy: its pages are given to a pipe and from there to the socket, so they must not change until
// the other end has read them (DONE sees to that). Out, sealed: record by record, each sealed into
// the channel's room and written from there, while it is in the cache.
//
// In: the payload goes straight to its place, and the next head is read along with it. A sealed
// record is opened where it lies.
//
// With several channels each takes a message in turn, so that they move forward together. What the messages are is
// said by sums (sum.c) or by questions (questions.c): a window has one of the two.

#include "common/group/group_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIPE_BYTES = 1 << 20, PIPE_FULL = 768 << 10 };

void channel_close(struct channel *self)
{
    if (self->fd >= 0) close(self->fd);
    for (int i = 0; i < 2; i++)
        if (self->pipe[i] >= 0) close(self->pipe[i]);
    sealing_destroy(&self->seal);
    sealing_destroy(&self->unseal);
    *self = (struct channel){ .fd = -1, .pipe = { -1, -1 }, .room = self->room };
}

static void end(struct peer *peer, struct channel *channel, const char *how)
{
    char name[PEER_NAME_MAX];
    peer_end(peer, FAULT_UNREACHABLE, "%s: its link ended: %s", peer_name(peer, name), how);
    channel_close(channel);
}

static bool is_talk(const group_t *self)
{
    return self->traffic == TRAFFIC_ASKS || self->traffic == TRAFFIC_ANSWERS;
}

// ---- out ------------------------------------------------------------------------------------

bool channels_idle(const group_t *self, const struct peer *peer)
{
    for (uint32_t c = 0; c < self->options.connections; c++) {
        const struct channel *channel = &peer->channels[c];
        if (channel->iov_count || channel->from_left || channel->piped) return false;
    }
    return true;
}

// Bytes that are sealed at a time: the rooms of all channels together are bounded.
static size_t record_of(const group_t *self)
{
    const uint32_t others = self->member_count > 1 ? self->member_count - 1 : 1;
    const size_t most = RECORD_ROOM_MAX / (self->options.connections * others);
    return most < 4096 ? 4096 : (most < RECORD_MAX ? most : RECORD_MAX) >> 12 << 12;
}

static void seal_record(group_t *self, struct channel *channel)
{
    const size_t most = record_of(self);
    const size_t count = channel->from_left < most ? channel->from_left : most;
    if (!channel->room) channel->room = malloc(RECORD_MAX + SEALING_TAG);
    ensure(channel->room);
    sealing_put(&channel->seal, channel->from, count, channel->room, channel->room + count);
    channel->from += count;
    channel->from_left -= count;
    channel->iov[channel->iov_count++] = (struct iovec){ channel->room, count + SEALING_TAG };
}

// The next bytes of this channel. False: there are none.
static bool compose(group_t *self, struct peer *peer, struct channel *channel)
{
    struct message message;
    const uint8_t *from;
    if (channel->from_left) {
        seal_record(self, channel);
        return true;
    }
    if (!(is_talk(self) ? talk_next : sum_next)(self, peer, &message, &from)) return false;
    const bool sealed = channel->seal.context;
    if (sealed) message.record = (uint32_t)(record_of(self) >> 10);
    message_pack(&message, channel->head_out);
    if (sealed)
        sealing_put(&channel->seal, channel->head_out, HEAD_BYTES, channel->head_out,
                    channel->head_out + HEAD_BYTES);
    channel->iov[0] = (struct iovec){ channel->head_out, sealed ? HEAD_MAX : HEAD_BYTES };
    channel->iov_count = 1;
    if (sealed) {
        channel->from = from;
        channel->from_left = message.length;
        seal_record(self, channel);
    } else {
        channel->iov[channel->iov_count++] =
            (struct iovec){ (void *)(uintptr_t)from, message.length };
    }
    return true;
}

static void written(struct channel *channel, size_t count)
{
    while (count) {
        struct iovec *first = &channel->iov[0];
        const size_t n = count < first->iov_len ? count : first->iov_len;
        first->iov_base = (uint8_t *)first->iov_base + n;
        first->iov_len -= n;
        count -= n;
        if (first->iov_len) return;
        channel->iov[0] = channel->iov[1];
        channel->iov_count--;
    }
}

// Whether a write that failed only has to wait. If not, the link has ended.
static bool must_wait(struct peer *peer, struct channel *channel)
{
    channel->may_write = false;
    if (errno == EAGAIN) return true;
    channel->may_read = true; // What it said before it ended is still read, and its end
    channel->iov_count = 0;
    channel->from_left = channel->piped = 0;
    char name[PEER_NAME_MAX];
    peer_end(peer, FAULT_UNREACHABLE, "%s: its link ended: %s", peer_name(peer, name),
             strerror(errno));
    return false;
}

// At most one message. True: it is written, and there may be more.
static bool write_message(group_t *self, struct peer *peer, struct channel *channel, bool *moved)
{
    if (!channel->iov_count && !compose(self, peer, channel)) return false;
    while (channel->iov_count || channel->from_left) {
        if (!channel->iov_count) compose(self, peer, channel);
        const struct msghdr bytes = { .msg_iov = channel->iov,
                                      .msg_iovlen = (size_t)channel->iov_count };
        size_t asked = 0;
        for (int i = 0; i < channel->iov_count; i++) asked += channel->iov[i].iov_len;
        const ssize_t n = sendmsg(channel->fd, &bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0) {
            must_wait(peer, channel);
            return false;
        }
        *moved = true;
        written(channel, (size_t)n);
        if ((size_t)n < asked) {
            channel->may_write = false;
            return false;
        }
    }
    return true;
}

static bool has_pipe(struct channel *channel)
{
    if (channel->pipe[0] >= 0) return true;
    if (pipe2(channel->pipe, O_NONBLOCK | O_CLOEXEC) != 0) return false;
    fcntl(channel->pipe[1], F_SETPIPE_SZ, PIPE_BYTES); // Refused: a smaller one does, too
    return true;
}

// Fills the pipe: heads by copy, payload by page.
static void fill_pipe(group_t *self, struct peer *peer, struct channel *channel, bool *moved)
{
    while (channel->piped < PIPE_FULL && (channel->iov_count || compose(self, peer, channel))) {
        const struct iovec *first = &channel->iov[0];
        const ssize_t n = first->iov_len <= HEAD_BYTES
                              ? write(channel->pipe[1], first->iov_base, first->iov_len)
                              : vmsplice(channel->pipe[1], first, 1, SPLICE_F_NONBLOCK);
        if (n <= 0) return;
        channel->piped += (size_t)n;
        written(channel, (size_t)n);
        *moved = true;
    }
}

static void write_spliced(group_t *self, struct peer *peer, struct channel *channel, bool *moved)
{
    for (;;) {
        fill_pipe(self, peer, channel, moved);
        if (!channel->piped) return;
        const ssize_t n =
            splice(channel->pipe[0], NULL, channel->fd, NULL, channel->piped, SPLICE_F_NONBLOCK);
        if (n <= 0) {
            must_wait(peer, channel);
            return;
        }
        channel->piped -= (size_t)n;
        *moved = true;
    }
}

bool channels_write(group_t *self, struct peer *peer)
{
    bool moved = false, more = true;
    struct channel *only = &peer->channels[0];
    if (peer_has_left(self, peer)) return false;
    if (self->sum.spliced && only->fd >= 0 && has_pipe(only)) {
        if (only->may_write) write_spliced(self, peer, only, &moved);
        return moved;
    }
    while (more) {
        more = false;
        for (uint32_t c = 0; c < self->options.connections; c++) {
            struct channel *channel = &peer->channels[c];
            if (channel->fd >= 0 && channel->may_write)
                more |= write_message(self, peer, channel, &moved);
        }
    }
    return moved;
}

// ---- in -------------------------------------------------------------------------------------

static void refuse(struct peer *peer, struct channel *channel, const char *what)
{
    char name[PEER_NAME_MAX];
    peer->fault = 0; // Says more than that a connection ended
    peer_end(peer, FAULT_FORMAT, "%s: %s; the link is closed", peer_name(peer, name), what);
    channel_close(channel);
}

// The head is here: where does its payload go? False: it must wait, or the link is ended.
static bool begin(group_t *self, struct peer *peer, struct channel *channel)
{
    const bool sealed = channel->unseal.context;
    if (!channel->held) {
        if (sealed && !sealing_take(&channel->unseal, channel->head_in, HEAD_BYTES,
                                    channel->head_in + HEAD_BYTES)) {
            refuse(peer, channel, "it sent what is not sealed with its key");
            return false;
        }
        message_unpack(channel->head_in, &channel->in);
        if (sealed != (channel->in.record > 0)) {
            refuse(peer, channel, "it sent a message whose records have no size");
            return false;
        }
    }
    const enum sum_place place =
        (is_talk(self) ? talk_place : sum_place)(self, peer, &channel->in, &channel->to);
    channel->held = place == SUM_HELD;
    if (place == SUM_WRONG) channel_close(channel);
    if (place != SUM_TAKEN) return false;
    channel->head_got = 0;
    channel->left = channel->in.length;
    channel->record_got = 0;
    channel->reading = true;
    return true;
}

static bool read_head(group_t *self, struct peer *peer, struct channel *channel)
{
    const size_t size = channel->unseal.context ? HEAD_MAX : HEAD_BYTES;
    if (channel->head_got < size) {
        const ssize_t n = recv(channel->fd, channel->head_in + channel->head_got,
                               size - channel->head_got, MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN) {
            channel->may_read = false;
            return false;
        }
        if (n <= 0) {
            end(peer, channel, n < 0 ? strerror(errno) : "it hung up");
            return false;
        }
        channel->head_got += (size_t)n;
        if (channel->head_got < size) {
            channel->may_read = false;
            return false;
        }
    }
    return begin(self, peer, channel);
}

static ssize_t read_vector(struct peer *peer, struct channel *channel, struct iovec *iov, int count)
{
    size_t asked = 0;
    for (int i = 0; i < count; i++) asked += iov[i].iov_len;
    const ssize_t n = readv(channel->fd, iov, count);
    if (n < 0 && errno == EAGAIN) {
        channel->may_read = false;
        return -1;
    }
    if (n <= 0) {
        end(peer, channel, n < 0 ? strerror(errno) : "it hung up in the middle of a message");
        return -1;
    }
    if ((size_t)n < asked) channel->may_read = false;
    return n;
}

// True: bytes came.
static bool read_plain(struct peer *peer, struct channel *channel)
{
    struct iovec iov[2] = { { channel->to, channel->left }, { channel->head_in, HEAD_BYTES } };
    const ssize_t n = read_vector(peer, channel, iov, 2);
    if (n < 0) return false;
    const size_t here = (size_t)n < channel->left ? (size_t)n : channel->left;
    channel->to += here;
    channel->left -= here;
    channel->head_got = (size_t)n - here;
    return true;
}

static bool read_sealed(struct peer *peer, struct channel *channel)
{
    const size_t most = (size_t)channel->in.record << 10;
    const size_t count = channel->left < most ? channel->left : most;
    const size_t got = channel->record_got, body = got < count ? count - got : 0;
    const size_t tag_got = got > count ? got - count : 0;
    struct iovec iov[3] = { { channel->to + (got < count ? got : count), body },
                            { channel->tag + tag_got, SEALING_TAG - tag_got },
                            { channel->head_in, count == channel->left ? HEAD_MAX : 0 } };
    const ssize_t n = read_vector(peer, channel, iov, 3);
    if (n < 0) return false;
    channel->record_got += (size_t)n;
    if (channel->record_got < count + SEALING_TAG) return true;
    channel->head_got = channel->record_got - count - SEALING_TAG;
    channel->record_got = 0;
    if (!sealing_take(&channel->unseal, channel->to, count, channel->tag)) {
        refuse(peer, channel, "it sent what is not sealed with its key");
        return false;
    }
    channel->to += count;
    channel->left -= count;
    return true;
}

// Until a message is whole, or nothing more is here. True: something moved.
static bool read_message(group_t *self, struct peer *peer, struct channel *channel)
{
    bool moved = false;
    while (channel->fd >= 0 && channel->may_read) {
        if (!channel->reading && !read_head(self, peer, channel)) return moved;
        if (!(channel->unseal.context ? read_sealed : read_plain)(peer, channel)) return moved;
        moved = true;
        if (channel->left) continue;
        channel->reading = false;
        (is_talk(self) ? talk_arrived : sum_arrived)(self, peer, &channel->in);
        return true;
    }
    return moved;
}

bool channels_read(group_t *self, struct peer *peer)
{
    bool moved = false;
    for (uint32_t c = 0; c < self->options.connections; c++)
        moved |= read_message(self, peer, &peer->channels[c]);
    if (moved && peer_has_left(self, peer)) peer->moved_ms = clock_ms();
    return moved;
}
