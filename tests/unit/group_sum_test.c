// group_sum: a member of two whose other one is the test: what it may send of a sum, piece by piece.

#include "common/crypto/identity.h"
#include "common/group/group_inside.h"

#include <sys/socket.h>
#include <unistd.h>

#include "tests/test.h"

enum { LEAF = GROUP_LEAF_FLOATS * sizeof(float) };

static struct why why;
static struct group_blame blame;

static struct identity *identity_of(int number)
{
    uint8_t secret[SECRET_BYTES];
    struct identity *identity;
    memset(secret, number, sizeof secret);
    assert_int_equal(identity_from_secret(secret, &why, &identity), 0);
    return identity;
}

struct pair {
    struct identity *identity;
    group_t *group;
    int channel; // The other's end of the first one. What does not go over it goes nowhere
};

static struct pair pair_new(uint32_t connections)
{
    struct pair self;
    struct identity *identities[] = { identity_of(7), identity_of(8) };
    const struct group_options options = { .identity = identities[0],
                                           .run = "a run",
                                           .bind = "127.0.0.1:0",
                                           .connections = connections,
                                           .called_fd = -1 };
    const struct group_member other = { .key = *identity_key(identities[1]) };
    int ends[2];
    assert_int_equal(group_new(&options, &why, &self.group), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    struct peer *peer = links_peer_new(self.group, &other);
    peer->place = 1;
    peer->channels[0].fd = ends[0];
    peer->channels[0].may_read = peer->channels[0].may_write = true;
    self.channel = ends[1];
    self.group->members[1] = peer;
    self.group->member_count = 2;
    self.group->window = 1;
    self.group->fault = 0;
    self.identity = identities[0];
    identity_destroy(&identities[1]);
    return self;
}

static void pair_destroy(struct pair *self)
{
    group_destroy(&self->group);
    identity_destroy(&self->identity);
    close(self->channel);
}

static void put(const struct pair *self, const void *bytes, size_t count)
{
    assert_int_equal(send(self->channel, bytes, count, 0), count);
}

static const uint8_t zeros[LEAF];

// Sends a message of the sum 0, and `count` bytes of its payload.
static void give(const struct pair *self, enum message_kind kind, uint64_t offset, uint32_t length,
                 size_t count)
{
    const struct message message = {
        .kind = kind, .window = 1, .length = length, .offset = offset
    };
    uint8_t head[HEAD_BYTES];
    message_pack(&message, head);
    put(self, head, sizeof head);
    put(self, zeros, count);
}

static float result[2 * GROUP_LEAF_FLOATS];

static struct group_sum sum_of_two(enum group_way way, uint64_t number, uint64_t floats)
{
    static const float values[2 * GROUP_LEAF_FLOATS], *nodes[] = { values };
    return (struct group_sum){ .way = way,
                               .number = number,
                               .floats = floats,
                               .lanes = 2,
                               .batch = 2,
                               .nodes = nodes,
                               .result = result,
                               .timeout_ms = 1000 };
}

static void assert_refused(int rc, const char *says)
{
    assert_int_equal(rc, FAULT_FORMAT);
    assert_int_equal(blame.member, 1);
    assert_non_null(strstr(why.text, says));
}

// The result is whole, and the head of a piece comes once more. What comes behind that head, during the next sum,
// is not written to the result of this one.
static void a_result_that_comes_twice_is_refused(void **state)
{
    enum { SHARE = 4000, SOME = 4 };
    const uint64_t floats = (LEAF + SHARE) / sizeof(float);
    struct group_sum sum = sum_of_two(GROUP_ALL, 0, floats);
    struct pair pair = pair_new(1);
    uint8_t rest[SHARE - SOME];
    (void)state;
    give(&pair, MESSAGE_PART, 0, LEAF, LEAF);
    give(&pair, MESSAGE_RESULT, LEAF, SHARE, SHARE);
    give(&pair, MESSAGE_RESULT, LEAF, SHARE, SOME);
    assert_int_equal(group_add(pair.group, &sum, &why, &blame), 0);
    memset(rest, 1, sizeof rest);
    (void)!send(pair.channel, rest, sizeof rest, MSG_NOSIGNAL); // Its end may be closed by now
    sum = sum_of_two(GROUP_ALL, 1, floats);
    sum.result = malloc(LEAF + SHARE);
    const int rc = group_add(pair.group, &sum, &why, &blame);
    assert_memory_equal(result, zeros, LEAF);
    assert_memory_equal(result + GROUP_LEAF_FLOATS, zeros, SHARE);
    assert_refused(rc, "it sent a result twice");
    free(sum.result);
    pair_destroy(&pair);
}

// The same, of a part of a segment that cannot be added yet: our own is not final.
static void a_part_that_comes_twice_is_refused(void **state)
{
    const uint64_t floats = GROUP_LEAF_FLOATS + 1000;
    struct group_sum sum = sum_of_two(GROUP_SCATTER, 0, floats);
    struct pair pair = pair_new(1);
    (void)state;
    give(&pair, MESSAGE_PART, 0, LEAF, LEAF);
    give(&pair, MESSAGE_PART, 0, LEAF, 4);
    assert_int_equal(group_begin(pair.group, &sum, &why, &blame), 0);
    group_offer(pair.group, floats);
    assert_int_equal(group_end(pair.group, &why, &blame), 0);
    sum = sum_of_two(GROUP_SCATTER, 1, floats);
    assert_refused(group_add(pair.group, &sum, &why, &blame), "it sent a part twice");
    pair_destroy(&pair);
}

// Two pieces, as there are two connections. They may come in any order; one of them twice is not both.
static void a_piece_does_not_stand_for_another(void **state)
{
    const struct group_sum sum = sum_of_two(GROUP_SCATTER, 0, 2 * GROUP_LEAF_FLOATS);
    (void)state;
    for (uint64_t second = 0; second < 2; second++) {
        struct pair pair = pair_new(2);
        give(&pair, MESSAGE_PART, LEAF / 2, LEAF / 2, LEAF / 2);
        give(&pair, MESSAGE_PART, second * LEAF / 2, LEAF / 2, LEAF / 2);
        const int rc = group_add(pair.group, &sum, &why, &blame);
        if (second) assert_refused(rc, "it sent a part twice");
        else assert_int_equal(rc, 0);
        pair_destroy(&pair);
    }
}

TESTS(TEST(a_result_that_comes_twice_is_refused), TEST(a_part_that_comes_twice_is_refused),
      TEST(a_piece_does_not_stand_for_another))
