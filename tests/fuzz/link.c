// What a peer of a group may send: the handshake of a link, and then messages on its connections.
//
// handshake: an honest handshake in memory, with edits. An edit is four bytes: which message (0 to
// 2), where (two bytes), and what is changed there. Whatever is changed anywhere, no link stands.
//
// link: a member of two, the other one being the input. Bytes and messages go into its two
// connections; then it sums, or hears a word. Each event begins with its kind:
//
//     0 n ..       n bytes as they are to the control connection; 1: to the channel
//     2 a b c d e  a message to the control connection: kind a, node b, (c | d << 8) bytes of e
//     3 ..         the same to the channel, at leaf e; 65535 bytes stand for 65536, a leaf
//     4 a          sums another vector (of a few sizes), for which nobody waits
//     5            hears a word

#include "common/group/group_inside.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/network.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct identity *identity_of(unsigned number)
{
    static struct identity *identities[2];
    uint8_t secret[SECRET_BYTES];
    if (!identities[number]) {
        memset(secret, 3 + (int)number, sizeof secret);
        ensure(identity_from_secret(secret, NULL, &identities[number]) == 0);
    }
    return identities[number];
}

// ---- handshake ------------------------------------------------------------------------------

static enum handshake_refusal judge(void *arg, const struct handshake_party *from,
                                    const struct handshake_purpose *purpose)
{
    (void)arg;
    if (!key_equal(&from->key, identity_key(identity_of(0))) || from->instance != 1)
        return HANDSHAKE_REFUSED_STRANGER;
    return purpose->channel == 2 ? HANDSHAKE_REFUSED_NONE : HANDSHAKE_REFUSED_PURPOSE;
}

struct edits {
    const uint8_t *bytes;
    size_t count;
    bool changed;
};

// Moves a message from one end to the other, edited. False: there is none, or it is refused.
static bool carry(struct handshake *from, struct handshake *to, uint8_t number, struct edits *edits)
{
    uint8_t copy[HANDSHAKE_IN_MAX], before[HANDSHAKE_IN_MAX];
    const size_t size = from->out_count;
    if (from->out_done == size || to->in_count != size) return false;
    memcpy(before, from->out, size);
    memcpy(copy, from->out, size);
    for (size_t i = 0; i + 4 <= edits->count; i += 4)
        if (edits->bytes[i] == number)
            copy[le_get(edits->bytes + i + 1, 2) % size] ^= edits->bytes[i + 3];
    edits->changed |= memcmp(copy, before, size) != 0;
    from->out_done = size;
    memcpy(to->in, copy, size);
    struct why why = { 0 };
    const int rc = handshake_take(to, &why);
    ensure(rc == 0 || why.text[0]);
    return rc == 0;
}

bool handshake_fuzz_check(const uint8_t *bytes, size_t count)
{
    static const struct hash run = { "a run" };
    const struct handshake_self selves[2] = {
        { .protocol = "link",
          .identity = identity_of(0),
          .run = run,
          .instance = 1,
          .judge = judge },
        { .protocol = "link",
          .identity = identity_of(1),
          .run = run,
          .instance = 2,
          .judge = judge },
    };
    const struct handshake_party party = { *identity_key(identity_of(1)), 2 };
    const struct handshake_purpose purpose = { .channel = 2, .channels = 3, .number = 4 };
    struct handshake connects, accepts;
    struct edits edits = { bytes, count, false };
    handshake_connect(&connects, &selves[0], &party, &purpose);
    handshake_accept(&accepts, &selves[1]);
    const bool stands = carry(&connects, &accepts, 0, &edits) &&
                        carry(&accepts, &connects, 1, &edits) &&
                        carry(&connects, &accepts, 2, &edits);
    ensure(stands == (connects.done && accepts.done) || connects.done != accepts.done);
    ensure(stands == !edits.changed);
    if (stands) {
        ensure(memcmp(connects.send_key, accepts.take_key, SEALING_KEY) == 0);
        ensure(memcmp(connects.take_key, accepts.send_key, SEALING_KEY) == 0);
        ensure(memcmp(connects.send_key, connects.take_key, SEALING_KEY) != 0);
    }
    handshake_wipe(&connects);
    handshake_wipe(&accepts);
    return stands;
}

void handshake_fuzz_write_seeds(const char *folder)
{
    static const uint8_t edits[][4] = { { 0, 16, 0, 1 },  { 0, 80, 0, 1 },  { 0, 128, 0, 9 },
                                        { 0, 160, 0, 1 }, { 1, 16, 0, 3 },  { 1, 30, 0, 1 },
                                        { 1, 64, 0, 1 },  { 1, 100, 0, 1 }, { 2, 5, 0, 1 } };
    char name[32];
    fuzz_write_seed(folder, "accepted-as-it-is", "", 0);
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        snprintf(name, sizeof name, "refused-edit-%zu", i);
        fuzz_write_seed(folder, name, edits[i], sizeof *edits);
    }
}

// ---- link -----------------------------------------------------------------------------------

struct world {
    group_t *group;
    struct peer *peer;
    int control, channel; // The other's ends
    struct sealing seal[2];
    bool sealed;
    unsigned sums;
};

static const uint8_t key[SEALING_KEY] = "of a fuzzed link";

static int join(int *ret_other, struct sealing *seal, struct sealing *unseal, struct sealing *other)
{
    int ends[2];
    ensure(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    *ret_other = ends[1];
    if (other)
        ensure(sealing_new(seal, key, true) && sealing_new(unseal, key, false) &&
               sealing_new(other, key, true));
    return ends[0];
}

static struct world open_world(bool sealed)
{
    struct world self = { .sealed = sealed };
    const bool first = key_compare(identity_key(identity_of(0)), identity_key(identity_of(1))) > 0;
    const struct group_options options = { .identity = identity_of(!first),
                                           .run = "a run",
                                           .instance = 1,
                                           .bind = "127.0.0.1:0",
                                           .link = sealed ? GROUP_SEALED : GROUP_PLAIN,
                                           .connections = 1,
                                           .called_fd = -1 };
    struct group_member other = { *identity_key(identity_of(first)), 2, "tcp://127.0.0.1:1" };
    ensure(group_new(&options, NULL, &self.group) == 0);
    ensure(group_expect(self.group, &other, 1, NULL) == 0); // The greater key: does not connect
    self.peer = self.group->peers[0];
    self.peer->place = 1;
    self.group->members[1] = self.peer;
    self.group->member_count = 2;
    self.group->window = 1;
    self.group->fault = 0;
    struct control *control = &self.peer->control;
    struct channel *channel = &self.peer->channels[0];
    control->fd =
        join(&self.control, &control->seal, &control->unseal, sealed ? &self.seal[0] : NULL);
    channel->fd =
        join(&self.channel, &channel->seal, &channel->unseal, sealed ? &self.seal[1] : NULL);
    channel->may_read = channel->may_write = true;
    return self;
}

static void close_world(struct world *self)
{
    group_destroy(&self->group);
    for (int i = 0; i < 2; i++) sealing_destroy(&self->seal[i]);
    close(self->control);
    close(self->channel);
}

// What does not fit is lost: the world ends with the input anyway.
static void give(int fd, const void *bytes, size_t count)
{
    if (count) (void)!send(fd, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void give_message(struct world *self, bool channel, const uint8_t *event)
{
    enum { LEAF = GROUP_LEAF_FLOATS * sizeof(float) };
    static uint8_t room[70000];
    const uint32_t length = (uint32_t)le_get(event + 2, 2);
    struct message message = { .kind = event[0],
                               .node = event[1],
                               .record = self->sealed && channel ? 4 : 0,
                               .length = channel && length == LEAF - 1 ? LEAF : length,
                               .window = 1,
                               .number = channel ? self->sums : event[4],
                               .offset = channel ? (uint64_t)event[4] * LEAF : 0 };
    uint8_t *at = room;
    struct sealing *seal = &self->seal[channel];
    const size_t record = message.record ? (size_t)message.record << 10 : message.length;
    message_pack(&message, at);
    if (self->sealed) sealing_put(seal, at, HEAD_BYTES, at, at + HEAD_BYTES);
    at += self->sealed ? HEAD_MAX : HEAD_BYTES;
    for (size_t left = message.length; left;) {
        const size_t count = left < record ? left : record;
        memset(at, event[4], count);
        if (self->sealed) sealing_put(seal, at, count, at, at + count);
        at += count + (self->sealed ? SEALING_TAG : 0);
        left -= count;
    }
    give(channel ? self->channel : self->control, room, (size_t)(at - room));
}

static bool add(struct world *self, uint8_t size)
{
    static const uint64_t sizes[] = { 1, 64, 1024, 16384, 16385, 40000 };
    const uint64_t floats = sizes[size % (sizeof sizes / sizeof *sizes)];
    const uint32_t lanes = size & 64 ? 3 : 2;
    static uint8_t drain[1 << 16];
    static float values[40000];
    float *result = malloc((size_t)floats * sizeof *result); // Its own block: no write beyond it
    const float *nodes[] = { values, values };
    struct why why = { 0 };
    struct group_blame blame;
    ensure(result);
    const struct group_sum sum = { .number = self->sums++,
                                   .floats = floats,
                                   .lanes = lanes,
                                   .batch = lanes,
                                   .nodes = nodes,
                                   .result = result };
    self->peer->channels[0].may_read = true; // A sum without time does not ask the system
    const int rc = group_add(self->group, &sum, &why, &blame);
    ensure(rc == 0 || why.text[0]);
    ensure(rc == 0 || rc == FAULT_TIMEOUT || rc == FAULT_FORMAT || rc == FAULT_UNREACHABLE);
    ensure(rc == 0 || blame.member == 1 || blame.member == UINT32_MAX);
    while (recv(self->channel, drain, sizeof drain, MSG_DONTWAIT) > 0) continue;
    while (recv(self->control, drain, sizeof drain, MSG_DONTWAIT) > 0) continue;
    free(result);
    return rc == 0;
}

static bool hear(struct world *self)
{
    struct why why = { 0 };
    struct group_blame blame;
    uint32_t member;
    const void *bytes;
    size_t count;
    const int rc = group_hear(self->group, 0, &why, &blame, &member, &bytes, &count);
    ensure(rc == 0 || why.text[0]);
    ensure(rc != 0 || (member == 1 && count <= GROUP_WORD_MAX));
    ensure(self->peer->words <= WORDS_MAX && self->peer->words_bytes <= WORDS_BYTES_MAX);
    return rc == 0;
}

bool link_fuzz_check(const uint8_t *bytes, size_t count)
{
    bool accepted = false;
    if (count == 0) return false;
    struct world self = open_world(bytes[0] & 1);
    for (size_t at = 1; at < count;) {
        const uint8_t kind = bytes[at++] % 6;
        const size_t rest = count - at;
        if (kind <= 1 && rest >= 1) {
            const size_t n = bytes[at] < rest - 1 ? bytes[at] : rest - 1;
            give(kind ? self.channel : self.control, bytes + at + 1, n);
            at += 1 + n;
        } else if ((kind == 2 || kind == 3) && rest >= 5) {
            give_message(&self, kind == 3, bytes + at);
            at += 5;
        } else if (kind == 4 && rest >= 1) {
            accepted |= add(&self, bytes[at++]);
        } else if (kind == 5) {
            accepted |= hear(&self);
        }
    }
    close_world(&self);
    return accepted;
}

void link_fuzz_write_seeds(const char *folder)
{
#define SEED(name, ...)                                                                            \
    do {                                                                                           \
        static const uint8_t seed[] = { __VA_ARGS__ };                                             \
        fuzz_write_seed(folder, name, seed, sizeof seed);                                          \
    } while (0)
    SEED("accepted-word", 0, 2, 4, 0, 5, 0, 7, 5);
    SEED("accepted-word-sealed", 1, 2, 4, 0, 5, 0, 7, 5);
    SEED("accepted-flat", 0, 3, 1, 0, 4, 0, 0, 4, 0);
    SEED("accepted-flat-sealed", 1, 3, 1, 0, 0, 16, 0, 4, 2);
    SEED("refused-break", 0, 2, 6, 0, 0, 0, 1, 4, 0);
    SEED("refused-form", 0, 2, 3, 0, 0, 0, 1, 4, 0);
    SEED("refused-not-sealed", 1, 1, 4, 1, 0, 4, 0, 4, 0);
    SEED("refused-result", 0, 3, 2, 0, 4, 0, 0, 4, 0);
    SEED("refused-long", 0, 3, 1, 0, 255, 255, 0, 4, 1);
    SEED("accepted-shares", 0, 3, 1, 0, 255, 255, 0, 3, 2, 0, 4, 0, 1, 4, 4);
    // The head of the result again, and half of its bytes; the rest during the next sum
    SEED("result-twice", 0, 3, 1, 0, 255, 255, 0, 3, 2, 0, 4, 0, 1, 1, 34, 2, 0, 0, 0, 4, 0, 0, 0,
         1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 7, 7, 4, 4, 1, 2,
         7, 7, 4, 4);
    SEED("refused-other-node", 0, 3, 1, 9, 4, 0, 0, 4, 0);
    SEED("two-sums", 0, 3, 1, 0, 4, 0, 0, 4, 0, 3, 1, 0, 0, 16, 0, 4, 2);
#undef SEED
}
