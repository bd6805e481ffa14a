// What the gate counts of each connection, and which of them it hears and cuts; what a refusal says; and which news
// are kept.

#include "broker/broker.h"
#include "common/net/net.h"
#include "common/net/signed_frame.h"
#include "common/net/zap.h"
#include "tests/test.h"
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FD = 20, MINUTE_MS = 60000, TICK_MS = 200 };

static uint8_t frame[4096];

static struct broker *open_gate(void)
{
    struct broker *self = calloc(1, sizeof *self);
    assert_non_null(self);
    self->connections = broker_connections_new(100);
    self->backlog = backlog_new();
    return self;
}

static void close_gate(struct broker *self)
{
    connections_destroy(&self->connections);
    backlog_destroy(&self->backlog);
    admission_destroy(&self->admission);
    free(self->office);
    free(self);
}

static size_t pack(uint16_t kind, const void *body)
{
    const struct wire_head head = { .kind = kind };
    const size_t count = wire_pack(&head, body, frame, sizeof frame);
    assert_true(count > 0);
    return count;
}

static bool may_say(struct broker *self, size_t count, uint64_t now_ms)
{
    const struct delivery in = { .is_sound = true,
                                 .frame = frame,
                                 .count = count,
                                 .parts = 2,
                                 .bytes = count,
                                 .fd = FD,
                                 .now_ms = now_ms };
    return broker_may_say(self, &in, NULL);
}

// An actor that the broker forgot is known again soon, however much it sends meanwhile.
// At each tick first its mail, which takes all that a stranger may say, then a HELLO.
static void a_hello_gets_through_behind_other_mail(void **state)
{
    (void)state;
    struct broker *self = open_gate();
    const struct wire_ping ping = { .instance = 1 };
    const struct wire_hello hello = { .role = ACTOR_TRAINER, .name = "trainer.1", .instance = 1 };
    uint32_t pings = 0, hellos = 0, ticks = 0;
    for (uint64_t now_ms = 1000; now_ms < 1000 + MINUTE_MS; now_ms += TICK_MS, ticks++) {
        const size_t bytes = pack(FRAME_PING, &ping);
        pings += may_say(self, bytes, now_ms);
        pings += may_say(self, bytes, now_ms);
        hellos += may_say(self, pack(FRAME_HELLO, &hello), now_ms);
    }
    assert_int_equal(hellos, ticks);
    assert_in_range(pings, ticks, ticks + 20);
    close_gate(self);
}

// *ret_socket takes the place of a socket of the broker; what the broker sends there comes out of the returned
// socket, and the other way round.
static void *open_pair(struct broker *self, void **ret_socket)
{
    static int pairs;
    char endpoint[32];
    void *other = zmq_socket(self->context, ZMQ_PAIR);
    snprintf(endpoint, sizeof endpoint, "inproc://pair.%d", pairs++);
    *ret_socket = zmq_socket(self->context, ZMQ_PAIR);
    assert_true(other && *ret_socket);
    assert_int_equal(zmq_bind(other, endpoint), 0);
    assert_int_equal(zmq_connect(*ret_socket, endpoint), 0);
    return other;
}

static void report(void *reports, uint16_t kind, int32_t fd)
{
    uint8_t event[sizeof kind + sizeof fd];
    memcpy(event, &kind, sizeof kind);
    memcpy(event + sizeof kind, &fd, sizeof fd);
    assert_true(zmq_send(reports, event, sizeof event, ZMQ_SNDMORE) >= 0);
    assert_true(zmq_send(reports, "", 0, 0) >= 0);
}

// An accepted connection, which is at *ret_port.
static int accept_one(uint16_t *ret_port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof at;
    const int listener = socket(AF_INET, SOCK_STREAM, 0), dialer = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
    assert_int_equal(connect(dialer, (struct sockaddr *)&at, size), 0);
    const int fd = accept(listener, NULL, NULL);
    assert_true(fd >= 0);
    close(listener), close(dialer);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

// Its number was a subscriber's until a moment ago, and another one's, which has come and gone. The turn hears the
// monitor of the mail first.
static void a_connection_stays_that_was_given_a_subscribers_number(void **state)
{
    (void)state;
    struct broker *self = open_gate();
    self->context = net_context_new(0);
    self->zap = zap_open(self->context);
    void *mail = open_pair(self, &self->events[AT_MAIL]);
    void *news = open_pair(self, &self->events[AT_NEWS]);
    uint16_t port;
    const int fd = accept_one(&port);
    self->port = (uint16_t)(port - 1); // So it is at the news
    report(news, ZMQ_EVENT_ACCEPTED, fd);
    broker_mind_gate(self, 1);
    assert_int_equal(connections_count(self->connections, AT_NEWS), 1);
    self->port = port;
    report(news, ZMQ_EVENT_DISCONNECTED, fd);
    report(news, ZMQ_EVENT_ACCEPTED, fd);
    report(news, ZMQ_EVENT_DISCONNECTED, fd);
    report(mail, ZMQ_EVENT_ACCEPTED, fd);
    broker_mind_gate(self, 2);
    assert_int_equal(connections_count(self->connections, AT_NEWS), 0);
    assert_int_equal(connections_count(self->connections, AT_MAIL), 1);
    backlog_sent(self->backlog, fd, BACKLOG_MAX);
    assert_true(backlog_is_full(self->backlog, fd));
    close(fd);
    void *sockets[] = { mail, news, self->events[AT_MAIL], self->events[AT_NEWS], self->zap };
    for (size_t i = 0; i < sizeof sockets / sizeof *sockets; i++) zmq_close(sockets[i]);
    net_context_destroy(&self->context);
    close_gate(self);
}

// The longest name has 49 bytes: an actor finds its letter by the name that it wrote to.
static void a_refusal_has_the_whole_name(void **state)
{
    (void)state;
    static const struct key key = { { 1 } };
    static const struct delivery letter = { .sender = { .fd = -1 } };
    static uint8_t memory[4096];
    struct wire_arena arena = { .bytes = memory, .max = sizeof memory };
    struct wire_head head;
    struct wire_refusal refusal;
    const void *body;
    char name[ACTOR_NAME_MAX + 1];
    int bytes = 0;
    struct broker *self = open_gate();
    self->context = net_context_new(0);
    void *peer = open_pair(self, &self->mail);
    actor_name_with(ACTOR_SERVER, "fifteen-letters", &key, name);
    letter_refuse(self, &letter, name, FRAME_JOIN, "its queue is full");
    for (int part = 0; part < 3; part++) bytes = zmq_recv(peer, frame, sizeof frame, ZMQ_DONTWAIT);
    assert_true(bytes > 0);
    assert_true(wire_unpack(frame, (size_t)bytes, WIRE_MAIL, &arena, &head, &body, &refusal));
    assert_string_equal(((const struct wire_undeliverable *)body)->to, name);
    zmq_close(peer), zmq_close(self->mail);
    net_context_destroy(&self->context);
    close_gate(self);
}

static struct key actor_of(uint8_t number)
{
    uint8_t secret[SECRET_BYTES] = { number };
    struct identity *identity;
    assert_int_equal(identity_from_secret(secret, NULL, &identity), 0);
    const struct key key = *identity_key(identity);
    identity_destroy(&identity);
    return key;
}

static char list[] = "/tmp/gate.XXXXXX";

static void write_list(const struct key *key, const char *roles)
{
    char hex[KEY_HEX];
    FILE *file = fopen(list, "w");
    assert_non_null(file);
    fprintf(file, "%s %s\n", key_to_hex(key, hex), roles);
    assert_int_equal(fclose(file), 0);
}

// The actor comes on connection `fd`, in this role: what a HELLO that is in order leads to.
static void welcome(struct broker *self, int fd, const struct key *actor, uint8_t role)
{
    struct delivery in = { .sender = { .count = 1, .bytes = { (uint8_t)fd }, .fd = fd },
                           .fd = fd,
                           .user = { { (uint8_t)fd } },
                           .now_ms = 1 };
    struct wire_hello hello = { .role = role, .instance = 1 };
    struct curve_key user;
    actor_name(role, actor, hello.name);
    memcpy(user.bytes, in.user.bytes, CURVE_BYTES);
    assert_non_null(connections_heard(self->connections, fd, AT_MAIL, &user, 100, 1));
    assert_null(post_office_hello(self->office, &in.sender, actor, &in.user, &hello, true, 1));
    broker_welcomed(self, &in, actor);
    assert_true(broker_has_welcomed(self, &in));
}

static struct broker *open_gate_with(enum admission_policy policy)
{
    static struct key server;
    struct broker *self = open_gate();
    const struct admission_options options = {
        .policy = policy, .list_path = list, .identity = &server, .server = &server
    };
    self->office = calloc(1, sizeof *self->office);
    assert_non_null(self->office);
    assert_int_equal(admission_new(&options, NULL, &self->admission), 0);
    return self;
}

// The descriptors are none, so cutting one does nothing more.
static void a_role_that_the_list_takes_is_taken(void **state)
{
    (void)state;
    enum { AS_TRAINER = 100, AS_MONITOR };
    const struct key actor = actor_of(3);
    close(mkstemp(list));
    write_list(&actor, "trainer monitor");
    struct broker *self = open_gate_with(ADMIT_ALLOWLIST);
    welcome(self, AS_TRAINER, &actor, ACTOR_TRAINER);
    welcome(self, AS_MONITOR, &actor, ACTOR_MONITOR);
    broker_cut_unlisted(self);
    assert_int_equal(self->cut, 0);
    write_list(&actor, "monitor");
    assert_int_equal(admission_reload(self->admission, NULL), 0);
    broker_cut_unlisted(self);
    assert_int_equal(self->cut, 1);
    const struct delivery trainer = { .fd = AS_TRAINER, .user = { { AS_TRAINER } } };
    assert_false(broker_has_welcomed(self, &trainer));
    close_gate(self);
    unlink(list);
}

// Also one whose name moves from one to the next: who holds many keeps others out.
static void an_actor_keeps_its_newest_connections(void **state)
{
    (void)state;
    enum { FIRST = 100, MOST = 8 };
    const struct key actor = actor_of(3), other = actor_of(4);
    struct broker *self = open_gate_with(ADMIT_OPEN);
    welcome(self, FIRST + 50, &other, ACTOR_TRAINER);
    for (int fd = FIRST; fd < FIRST + MOST; fd++) welcome(self, fd, &actor, ACTOR_TRAINER);
    assert_int_equal(self->cut, 0);
    welcome(self, FIRST + MOST, &actor, ACTOR_TRAINER);
    assert_int_equal(self->cut, 1);
    const struct delivery first = { .fd = FIRST, .user = { { FIRST } } };
    assert_false(broker_has_welcomed(self, &first));
    assert_int_equal(connections_count(self->connections, AT_MAIL), MOST + 1);
    close_gate(self);
}

static uint32_t conversions;

bool __real_curve_of_key(const struct key *key, struct curve_key *ret_name);
bool __wrap_curve_of_key(const struct key *key, struct curve_key *ret_name);
bool __wrap_curve_of_key(const struct key *key, struct curve_key *ret_name)
{
    conversions++;
    return __real_curve_of_key(key, ret_name);
}

// A conversion takes 0.1 ms, and while a connection waits to be cut each letter is looked at.
static void an_ejection_converts_no_key_but_its_own(void **state)
{
    enum { FIRST = 100, EJECTED = 107, END = 200 };
    (void)state;
    struct broker *self = open_gate_with(ADMIT_OPEN);
    for (int fd = FIRST; fd < END; fd++) {
        const struct key actor = actor_of((uint8_t)fd);
        welcome(self, fd, &actor, ACTOR_TRAINER);
    }
    const struct wire_member member = { .key = actor_of(EJECTED), .state = MEMBER_EJECTED };
    conversions = 0;
    broker_eject(self, &member, 1);
    for (int fd = FIRST; fd < END; fd++) {
        const struct delivery letter = {
            .fd = fd, .user = { { (uint8_t)fd } }, .parts = 2, .now_ms = 1
        };
        const struct peer *from = post_office_at(self->office, &letter.user);
        assert_int_equal(broker_may_say(self, &letter, from), fd != EJECTED);
    }
    broker_cut_unlisted(self);
    assert_int_equal(self->cut, 1);
    assert_int_equal(conversions, 1);
    close_gate(self);
}

// As the coordinator of the run does it.
static void publish(struct broker *self, const struct identity *identity, const char *run,
                    uint16_t kind, const void *body)
{
    static const struct peer coordinator = { .role = ACTOR_COORDINATOR };
    struct wire_head head = { .kind = kind, .incarnation = 1, .seq = 1 };
    snprintf(head.run, sizeof head.run, "%s", run);
    head.sender = *identity_key(identity);
    size_t count = wire_pack(&head, body, frame, sizeof frame);
    assert_true(count > 0);
    count = signed_frame_sign(identity, frame, count, sizeof frame);
    assert_true(count > 0);
    broker_publish(self, &coordinator, &head, frame, count);
}

// One run after the other at one broker: more topics than it has room for.
static void the_newest_of_many_runs_is_kept(void **state)
{
    enum { RUNS = BULLETINS_MAX / 2 + 8 };
    (void)state;
    static const struct wire_run run;
    static const struct wire_beat beat;
    static const struct route asks = { .fd = -1 };
    const uint8_t secret[SECRET_BYTES] = { 1 };
    struct identity *identity;
    struct wire_recall recall;
    assert_int_equal(identity_from_secret(secret, NULL, &identity), 0);
    struct broker *self = open_gate();
    self->context = net_context_new(0);
    void *peer = open_pair(self, &self->mail), *reader = open_pair(self, &self->news);
    for (int i = 1; i <= RUNS; i++) {
        snprintf(recall.run, sizeof recall.run, "run-%d", i);
        publish(self, identity, recall.run, FRAME_RUN, &run);
        publish(self, identity, recall.run, FRAME_BEAT, &beat);
    }
    broker_recall(self, &asks, &recall);
    int parts = 0;
    while (zmq_recv(peer, frame, sizeof frame, ZMQ_DONTWAIT) >= 0) parts++;
    assert_int_equal(parts, 2 * 3);
    assert_int_equal(self->bulletins_count, BULLETINS_MAX);
    assert_int_equal(self->published, 2 * RUNS);
    zmq_close(peer), zmq_close(reader), zmq_close(self->mail), zmq_close(self->news);
    net_context_destroy(&self->context);
    for (uint32_t i = 0; i < self->bulletins_count; i++) free(self->bulletins[i].frame);
    identity_destroy(&identity);
    close_gate(self);
}

TESTS(TEST(a_hello_gets_through_behind_other_mail),
      TEST(a_connection_stays_that_was_given_a_subscribers_number),
      TEST(a_refusal_has_the_whole_name), TEST(a_role_that_the_list_takes_is_taken),
      TEST(an_actor_keeps_its_newest_connections), TEST(an_ejection_converts_no_key_but_its_own),
      TEST(the_newest_of_many_runs_is_kept))
