// group_handshakes -- the rules at a group's door: who is let in, how many handshakes are answered, when a broken
// connection is made again. This test makes the other end of each handshake by hand.

#include "tests/unit/group_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

// ---- who is let in --------------------------------------------------------------------------

struct stranger {
    const char *run;
    uint64_t instance; // 0: the right one
    bool other_key;
    enum group_link link;
    int fault; // Of the stranger, if it connects
    const char *says;
};

// Member 1 is not quite what member 0 expects. Whoever connects is told why; nobody forms a window.
static void be_strange(void *arg)
{
    const struct stranger *how = arg;
    struct group_options options = options_of(me);
    if (me == 1) {
        options.run = how->run;
        options.link = how->link;
        if (how->other_key) options.identity = identity_of(5);
    }
    group_t *group = group_of(&options);
    struct group_member members[2] = { shared->members[0], shared->members[1] };
    if (me == 0 && how->other_key) members[1].key = *identity_key(identity_of(1));
    if (how->instance) members[1].instance = me == 0 ? how->instance : members[1].instance;
    const bool connects = key_compare(&members[me].key, &members[1 - me].key) < 0;
    const int rc = group_form(group, 1, members, 2, me, 300, &why, &blame);
    CHECK(rc < 0 && blame.member == 1 - me && !blame.gone);
    CHECK(rc == (connects ? how->fault : FAULT_TIMEOUT) || rc == FAULT_UNREACHABLE);
    if (connects && rc == FAULT_DENIED) CHECK(strstr(why.text, how->says));
    pthread_barrier_wait(&shared->barrier);
    group_destroy(&group);
}

static void strangers_are_refused(void **state)
{
    static const struct stranger strangers[] = {
        { "another run", 0, false, GROUP_PLAIN, FAULT_DENIED, "another run" },
        { "a run", 77, false, GROUP_PLAIN, FAULT_DENIED, "process" },
        { "a run", 0, true, GROUP_PLAIN, FAULT_DENIED, "key" },
        { "a run", 0, false, GROUP_SEALED, FAULT_DENIED, "of another kind" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++)
        run(2, be_strange, (void *)(uintptr_t)&strangers[i], 0);
}

static void options_are_checked(void **state)
{
    (void)state;
    struct group_options options = options_of(0);
    group_t *group = NULL, *other = NULL;
    char bind[64];
    options.connections = 65;
    assert_int_equal(group_new(&options, &why, &group), FAULT_RANGE);
    options.connections = 1;
    options.bind = "203.0.113.7:0";
    assert_int_equal(group_new(&options, &why, &group), FAULT_CONFIG);
    assert_non_null(strstr(why.text, "203.0.113.7:0 is a public address"));
    options.bind = "nowhere";
    assert_int_equal(group_new(&options, &why, &group), FAULT_CONFIG);
    options.bind = "127.0.0.1:abc";
    assert_int_equal(group_new(&options, &why, &group), FAULT_CONFIG);
    assert_non_null(strstr(why.text, "127.0.0.1:abc: no address to listen on"));
    options.bind = "127.0.0.1:0";
    assert_int_equal(group_new(&options, &why, &group), 0);
    snprintf(bind, sizeof bind, "127.0.0.1:%u", group_port(group));
    options.bind = bind;
    assert_int_equal(group_new(&options, &why, &other), FAULT_BUSY);
    assert_null(other);
    struct group_member members[2] = { { .key = *identity_key(options.identity), .instance = 100 },
                                       { .instance = 1, .endpoint = "tcp://203.0.113.9:7001" } };
    assert_int_equal(group_form(group, 1, members, 2, 0, 100, &why, &blame), FAULT_CONFIG);
    assert_non_null(strstr(why.text, "203.0.113.9"));
    assert_int_equal(blame.member, 1);
    assert_int_equal(group_tell(group, "x", 1, &why, &blame), FAULT_CONFIG);
    strcpy(members[1].endpoint, "tcp://127.0.0.1:abc");
    assert_int_equal(group_expect(group, members, 2, &why), FAULT_CONFIG);
    assert_non_null(strstr(why.text, "tcp://127.0.0.1:abc is no endpoint of a member"));
    // Nobody listens at port 1
    strcpy(members[1].endpoint, "tcp://127.0.0.1:1");
    assert_int_equal(group_form(group, 2, members, 2, 0, 200, &why, &blame), FAULT_UNREACHABLE);
    assert_non_null(strstr(why.text, "tcp://127.0.0.1:1: Connection refused"));
    assert_int_equal(blame.member, 1);
    assert_false(blame.gone);
    group_destroy(&group);
}

static struct handshake_self self_of(const struct group_options *who)
{
    return (struct handshake_self){ .protocol = GROUP_PROTOCOL,
                                    .identity = who->identity,
                                    .run = hash_of(who->run, strlen(who->run)),
                                    .instance = who->instance };
}

// Begins to connect as `own`, which asks for nothing else.
static int call(group_t *group, const struct handshake_self *own, uint32_t channel,
                struct handshake *ret_handshake)
{
    const struct handshake_party party = { group->key, group->options.instance };
    const struct handshake_purpose purpose = { .channel = channel, .channels = 1, .number = 1 };
    char endpoint[64];
    int fd;
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%u", group_port(group));
    assert_int_equal(tcp_connect(endpoint, &why, &fd), 0);
    handshake_connect(ret_handshake, own, &party, &purpose);
    return fd;
}

// The group serves its links meanwhile. 1: the connection stands.
static int connect_by_hand(group_t *group, const struct group_options *who, uint32_t channel,
                           int *ret_fd)
{
    const struct handshake_self own = self_of(who);
    const uint64_t until_ms = clock_ms() + FORM_MS;
    struct handshake handshake;
    int rc = 0;
    *ret_fd = call(group, &own, channel, &handshake);
    while (rc == 0) {
        assert_true(clock_ms() < until_ms);
        group_serve(group, 0, &why);
        if (tcp_connected(*ret_fd) == 0) rc = handshake_move(&handshake, *ret_fd, &why);
    }
    handshake_wipe(&handshake);
    return rc;
}

// A group of one that expects `ret_other`, which has to connect.
static group_t *expect_one(struct group_options options[2], const struct group_options **ret_other)
{
    struct group_member members[2];
    group_t *group;
    options[0] = options_of(0), options[1] = options_of(1);
    const bool first =
        key_compare(identity_key(options[0].identity), identity_key(options[1].identity)) > 0;
    const struct group_options *own = &options[!first], *other = &options[first];
    for (int i = 0; i < 2; i++)
        members[i] =
            (struct group_member){ .key = *identity_key(i ? other->identity : own->identity),
                                   .instance = i ? other->instance : own->instance,
                                   .endpoint = "tcp://127.0.0.1:1" };
    assert_int_equal(group_new(own, &why, &group), 0);
    assert_int_equal(group_expect(group, members, 2, &why), 0);
    assert_int_equal(group_form(group, 1, members, 1, 0, FORM_MS, &why, &blame), 0);
    *ret_other = other;
    return group;
}

// One that is expected has a control connection, and no channel: nobody would read it.
static void one_that_is_expected_gets_no_channel(void **state)
{
    struct group_options options[2];
    const struct group_options *other;
    int control, channel;
    (void)state;
    group_t *group = expect_one(options, &other);
    assert_int_equal(connect_by_hand(group, other, 0, &control), 1);
    assert_int_equal(connect_by_hand(group, other, 1, &channel), FAULT_DENIED);
    assert_non_null(strstr(why.text, "not come to this window"));
    assert_int_equal(group_linked(group), 3);
    close(control);
    close(channel);
    group_destroy(&group);
}

// Whether an ANSWER waits at this end; it stays there.
static bool is_answer_here(int fd)
{
    uint8_t answer[HANDSHAKE_ANSWER];
    return recv(fd, answer, sizeof answer, MSG_PEEK | MSG_DONTWAIT) == sizeof answer;
}

// All of a large group have said HELLO before the first has heard its ANSWER.
static void all_of_a_large_group_link_at_once(void **state)
{
    enum { OTHERS = 17 };
    struct group_options options[OTHERS + 1];
    struct group_member members[OTHERS + 1];
    struct handshake_self selves[OTHERS];
    struct handshake handshakes[OTHERS];
    int fds[OTHERS];
    group_t *group;
    (void)state;
    for (uint32_t m = 0; m <= OTHERS; m++) { // The last has the greatest key: it accepts
        options[m] = options_of(m);
        const struct group_options before = options[m ? m - 1 : 0];
        if (key_compare(identity_key(before.identity), identity_key(options[m].identity)) <= 0)
            continue;
        options[m - 1] = options[m];
        options[m] = before;
    }
    for (uint32_t m = 0; m <= OTHERS; m++)
        members[m] = (struct group_member){ .key = *identity_key(options[m].identity),
                                            .instance = options[m].instance,
                                            .endpoint = "tcp://127.0.0.1:1" };
    assert_int_equal(group_new(&options[OTHERS], &why, &group), 0);
    assert_int_equal(group_expect(group, members, OTHERS + 1, &why), 0);
    const uint64_t until_ms = clock_ms() + FORM_MS;
    for (uint32_t m = 0; m < OTHERS; m++) {
        selves[m] = self_of(&options[m]);
        fds[m] = call(group, &selves[m], 0, &handshakes[m]);
        while (tcp_connected(fds[m]) != 0) assert_true(clock_ms() < until_ms);
        assert_int_equal(handshake_move(&handshakes[m], fds[m], &why), 0);
    }
    for (uint32_t m = 0; m < OTHERS; m++)
        while (!is_answer_here(fds[m])) {
            assert_true(clock_ms() < until_ms);
            group_serve(group, 0, &why);
        }
    for (uint32_t m = 0; m < OTHERS; m++)
        assert_int_equal(handshake_move(&handshakes[m], fds[m], &why), 1);
    while (group_linked(group) != (2u << OTHERS) - 1) {
        assert_true(clock_ms() < until_ms);
        group_serve(group, 100, &why);
    }
    for (uint32_t m = 0; m < OTHERS; m++) close(fds[m]);
    group_destroy(&group);
}

// Says HELLO, which anybody can in the name of a member, and hangs up once it is answered. Whether the answer was one
// that costs work.
static bool is_answered(group_t *group, const struct group_options *who)
{
    enum { REFUSAL = 16 }; // Of the ANSWER's bytes
    const struct handshake_self own = self_of(who);
    const uint64_t until_ms = clock_ms() + FORM_MS;
    struct handshake handshake;
    uint8_t answer[HANDSHAKE_ANSWER];
    ssize_t count = 0;
    const int fd = call(group, &own, 0, &handshake);
    while (tcp_connected(fd) != 0) assert_true(clock_ms() < until_ms);
    assert_int_equal(send(fd, handshake.out, handshake.out_count, 0), handshake.out_count);
    while ((count = recv(fd, answer, sizeof answer, MSG_PEEK)) < (ssize_t)sizeof answer) {
        assert_true(clock_ms() < until_ms);
        group_serve(group, 0, &why);
    }
    handshake_wipe(&handshake);
    close(fd);
    assert_in_set(answer[REFUSAL],
                  ((uintmax_t[]){ HANDSHAKE_REFUSED_NONE, HANDSHAKE_REFUSED_BUSY }), 2);
    return answer[REFUSAL] == HANDSHAKE_REFUSED_NONE;
}

// What is said in a member's name without its key has so many answers; the member itself has any number.
static void hellos_without_a_proof_have_a_rate(void **state)
{
    struct group_options options[2];
    const struct group_options *other;
    uint32_t answered = 0;
    int fd;
    (void)state;
    group_t *group = expect_one(options, &other);
    for (uint32_t i = 0; i < 2 * CALLERS_KEY; i++) {
        assert_int_equal(connect_by_hand(group, other, 0, &fd), 1);
        close(fd);
    }
    const uint64_t began_ms = clock_ms();
    for (uint32_t i = 0; i < 4 * CALLERS_KEY; i++) answered += is_answered(group, other);
    const uint64_t took_ms = clock_ms() - began_ms;
    assert_in_range(answered, CALLERS_KEY, CALLERS_KEY + took_ms / CALLERS_KEY_MS + 1);
    group_destroy(&group);
}

// ---- a member that accepts ------------------------------------------------------------------

// A member that accepts, by hand: it moves whenever the group asks whether it is called away, which is before each
// sleep. Its lines are a control connection, then channels, as the group connected them.
struct hand {
    struct handshake_self self;
    int listener;
    uint32_t count; // Of lines
    struct line {
        int fd;
        struct handshake handshake;
    } lines[4];
    uint64_t said; // The window of its last FORM
};

static enum handshake_refusal want_all(void *arg, const struct handshake_party *from,
                                       const struct handshake_purpose *purpose)
{
    (void)arg, (void)from, (void)purpose;
    return HANDSHAKE_REFUSED_NONE;
}

struct pair_of_hand {
    group_t *group;
    struct group_member members[2];
    uint32_t own; // The place of the group, which connects
};

static struct pair_of_hand pair_by_hand(struct hand *hand, bool (*move)(void *hand))
{
    struct group_options options[2] = { options_of(0), options_of(1) };
    struct pair_of_hand self = { .members = { { .instance = 100 }, { .instance = 101 } } };
    uint16_t port;
    for (int i = 0; i < 2; i++) self.members[i].key = *identity_key(options[i].identity);
    self.own = key_compare(&self.members[0].key, &self.members[1].key) > 0;
    struct group_member *other = &self.members[!self.own];
    hand->self = self_of(&options[!self.own]);
    hand->self.judge = want_all;
    options[self.own].called = move;
    options[self.own].called_arg = hand;
    assert_int_equal(group_new(&options[self.own], &why, &self.group), 0);
    assert_int_equal(tcp_listen("127.0.0.1:0", &why, &hand->listener, &port), 0);
    snprintf(other->endpoint, sizeof other->endpoint, "tcp://127.0.0.1:%u", port);
    return self;
}

static void hand_move(struct hand *self, uint32_t line)
{
    if (self->lines[line].handshake.done || self->lines[line].fd < 0) return;
    if (handshake_move(&self->lines[line].handshake, self->lines[line].fd, &why) >= 0) return;
    close(self->lines[line].fd);
    self->lines[line].fd = -1;
}

// Answers the FORM of each window with its own.
static void hand_form(struct hand *self)
{
    uint8_t bytes[HEAD_BYTES];
    struct message message;
    if (!self->count || !self->lines[0].handshake.done) return;
    while (recv(self->lines[0].fd, bytes, sizeof bytes, 0) == sizeof bytes) {
        message_unpack(bytes, &message);
        if (message.kind != MESSAGE_FORM) continue;
        assert_int_equal(send(self->lines[0].fd, bytes, sizeof bytes, 0), sizeof bytes);
        self->said = message.window;
    }
}

// A channel that is begun in window 1 is answered once the group has heard our FORM of window 2. True: in window 1 it is
// begun.
static bool answer_a_channel_late(void *arg)
{
    struct hand *self = arg;
    const bool is_late = self->said == 2;
    for (int fd; (fd = tcp_accept(self->listener)) >= 0; self->count++) {
        assert_true(self->count < sizeof self->lines / sizeof *self->lines);
        self->lines[self->count].fd = fd;
        handshake_accept(&self->lines[self->count].handshake, &self->self);
    }
    for (uint32_t line = 0; line < self->count; line++)
        if (line == 0 || is_late) hand_move(self, line);
    hand_form(self);
    return self->said == 1 && self->count == 2;
}

// Both ends of a channel belong to the same window.
static void a_channel_of_an_earlier_window_is_begun_anew(void **state)
{
    struct hand hand = { .count = 0 };
    struct pair_of_hand pair = pair_by_hand(&hand, answer_a_channel_late);
    (void)state;
    assert_int_equal(group_form(pair.group, 1, pair.members, 2, pair.own, FORM_MS, &why, &blame),
                     FAULT_INTERRUPTED);
    assert_int_equal(group_form(pair.group, 2, pair.members, 2, pair.own, FORM_MS, &why, &blame),
                     0);
    const struct handshake *last = &hand.lines[hand.count - 1].handshake;
    assert_int_equal(last->purpose.channel, 1);
    assert_int_equal(last->purpose.number, 2);
    group_destroy(&pair.group);
    for (uint32_t line = 0; line < hand.count; line++) close(hand.lines[line].fd);
    close(hand.listener);
}

// Each link stands, and ends at once.
static bool end_each_line(void *arg)
{
    struct hand *self = arg;
    struct line *line = &self->lines[0];
    if (line->fd < 0) {
        line->fd = tcp_accept(self->listener);
        handshake_accept(&line->handshake, &self->self);
    }
    if (line->fd < 0) return false;
    hand_move(self, 0);
    if (line->handshake.done) {
        close(line->fd);
        line->fd = -1;
        self->count++;
    }
    return false;
}

static void a_link_that_ends_at_once_is_tried_again_after_pauses(void **state)
{
    struct hand hand = { .lines = { { .fd = -1 } } };
    struct pair_of_hand pair = pair_by_hand(&hand, end_each_line);
    (void)state;
    assert_true(group_form(pair.group, 1, pair.members, 2, pair.own, 300, &why, &blame) < 0);
    assert_in_range(hand.count, 2, 30);
    group_destroy(&pair.group);
    close(hand.listener);
}

// Eight others listen, and do not answer whether they are there: they are asked at once, not one after another.
static void those_that_do_not_answer_are_asked_together(void **state)
{
    struct group_options options[MAX];
    struct group_member members[MAX];
    int listeners[MAX];
    uint32_t own = 0;
    group_t *group;
    (void)state;
    for (uint32_t m = 0; m < MAX; m++) {
        uint16_t port;
        options[m] = options_of(m);
        members[m] = (struct group_member){ .key = *identity_key(options[m].identity),
                                            .instance = options[m].instance };
        assert_int_equal(tcp_listen("127.0.0.1:0", &why, &listeners[m], &port), 0);
        snprintf(members[m].endpoint, sizeof members[m].endpoint, "tcp://127.0.0.1:%u", port);
        if (key_compare(&members[m].key, &members[own].key) > 0) own = m; // All others connect
    }
    assert_int_equal(group_new(&options[own], &why, &group), 0);
    const uint64_t start_ms = clock_ms();
    assert_true(group_form(group, 1, members, MAX, own, 150, &why, &blame) < 0);
    assert_true(clock_ms() - start_ms <
                7 * PROBE_MS); // One after another takes eight times as long
    group_destroy(&group);
    for (uint32_t m = 0; m < MAX; m++) close(listeners[m]);
}

static bool is_connected_twice(void *arg)
{
    static int times;
    const int fd = tcp_accept(*(int *)arg);
    if (fd >= 0) times++; // Stays open, and nobody answers
    return times == 2;
}

// A process that is there, and does not answer the handshake: once that is over, it is connected again.
static void one_that_does_not_answer_is_connected_again(void **state)
{
    enum { HANDSHAKE_MS = 5000 };
    struct group_options options[2] = { options_of(0), options_of(1) };
    struct group_member members[2] = { { .instance = 100 }, { .instance = 101 } };
    group_t *group;
    int dumb;
    uint16_t port;
    (void)state;
    for (int i = 0; i < 2; i++) members[i].key = *identity_key(options[i].identity);
    const uint32_t own = key_compare(&members[0].key, &members[1].key) > 0; // It connects
    options[own].called = is_connected_twice;
    options[own].called_arg = &dumb;
    assert_int_equal(group_new(&options[own], &why, &group), 0);
    assert_int_equal(tcp_listen("127.0.0.1:0", &why, &dumb, &port), 0);
    snprintf(members[!own].endpoint, sizeof members[0].endpoint, "tcp://127.0.0.1:%u", port);
    assert_int_equal(group_form(group, 1, members, 2, own, HANDSHAKE_MS + 2000, &why, &blame),
                     FAULT_INTERRUPTED);
    close(dumb);
    group_destroy(&group);
}

TESTS(TEST(options_are_checked), TEST(strangers_are_refused),
      TEST(one_that_is_expected_gets_no_channel), TEST(hellos_without_a_proof_have_a_rate),
      TEST(all_of_a_large_group_link_at_once), TEST(a_channel_of_an_earlier_window_is_begun_anew),
      TEST(a_link_that_ends_at_once_is_tried_again_after_pauses),
      TEST(those_that_do_not_answer_are_asked_together),
      TEST(one_that_does_not_answer_is_connected_again))
