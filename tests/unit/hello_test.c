// A broker in a thread, and actors by hand: what a HELLO is worth on another connection than its own, and
// whom the news let in.

#include "broker/broker.h"
#include "common/net/net.h"
#include "tests/by_hand.h"
#include "tests/test.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { SOON_MS = 10000, DIAL_MS = 500, PORT_MIN = 20000, PORTS = 10000 };

static struct broker broker;
static struct key server;
static pthread_t thread;
static void *context;
static struct identity *victim, *other;

static void *run(void *arg)
{
    broker_run(arg);
    return NULL;
}

static struct identity *identity_of(uint8_t number)
{
    const uint8_t secret[SECRET_BYTES] = { number };
    struct identity *identity;
    assert_int_equal(identity_from_secret(secret, NULL, &identity), 0);
    return identity;
}

// At the first two ports in a row that are free.
static int set_up(void **state)
{
    (void)state;
    struct why why = { 0 };
    int rc = FAULT_BUSY;
    victim = identity_of(3), other = identity_of(4);
    for (unsigned i = 0; rc == FAULT_BUSY && i < PORTS; i++) {
        const struct identity *identity = identity_of(1);
        server = curve_server_key(identity);
        const struct admission_options options = { .identity = identity_key(identity),
                                                   .server = &server };
        broker = (struct broker){ .bind = "127.0.0.1",
                                  .admit = "open",
                                  .port = (uint16_t)(PORT_MIN + ((unsigned)getpid() + i) % PORTS),
                                  .identity = (struct identity *)(uintptr_t)identity };
        assert_int_equal(admission_new(&options, &why, &broker.admission), 0);
        rc = broker_open(&broker, &why);
        if (rc < 0) broker_close(&broker);
    }
    assert_int_equal(rc, 0);
    context = zmq_ctx_new();
    return pthread_create(&thread, NULL, run, &broker);
}

static int tear_down(void **state)
{
    (void)state;
    zmq_ctx_shutdown(
        context);            // Not zmq_ctx_term, which waits for the sockets of a test that failed
    kill(getpid(), SIGTERM); // Blocked in every thread: the broker reads it
    pthread_join(thread, NULL);
    broker_close(&broker);
    identity_destroy(&victim), identity_destroy(&other);
    return 0;
}

static void *dial(const struct curve_pair *own)
{
    void *dealer = by_hand_connect(context, ZMQ_DEALER, broker.port, own, &server);
    assert_non_null(dealer);
    return dealer;
}

static void expect_refusal(void *dealer, const char *reason)
{
    struct by_hand_heard heard;
    assert_int_equal(by_hand_hear(dealer, SOON_MS, &heard)->kind, FRAME_UNDELIVERABLE);
    const struct wire_undeliverable *no = heard.body;
    assert_string_equal(no->reason, reason);
}

static void expect_welcome(void *dealer, const struct identity *identity, struct wire_hello *hello)
{
    struct by_hand_heard heard;
    assert_int_equal(by_hand_register(dealer, identity, hello, SOON_MS, &heard), FRAME_WELCOME);
}

static void recall(void *dealer)
{
    by_hand_say(dealer, victim, FRAME_RECALL, &(struct wire_recall){ .run = "live" });
}

static void a_hello_is_for_one_connection(void **state)
{
    (void)state;
    struct by_hand_heard heard;
    struct curve_pair own, thiefs;
    uint8_t frame[1024];
    curve_draw(&own), curve_draw(&thiefs);
    struct wire_hello hello = by_hand_hello(victim, &own, &server);
    void *dealer = dial(&own), *thief = dial(&thiefs);
    expect_welcome(dealer, victim, &hello);
    const size_t count = by_hand_pack(victim, FRAME_HELLO, &hello, frame, sizeof frame);
    by_hand_send(dealer, frame, count); // Again, on its own
    assert_int_equal(by_hand_hear(dealer, SOON_MS, &heard)->kind, FRAME_WELCOME);

    by_hand_send(thief, frame, count);
    expect_refusal(thief, "the HELLO is not for this connection");
    const struct key another = { { 1 } };
    struct wire_hello relayed = by_hand_hello(victim, &thiefs, &another); // Said to another broker
    by_hand_say(thief, victim, FRAME_HELLO, &relayed);
    expect_refusal(thief, "the HELLO is not for this connection");
    zmq_close(thief);

    void *same = dial(&own); // By one that has the pair, too
    for (int i = 0; i < 2; i++) {
        by_hand_send(same, frame, count);
        assert_int_equal(by_hand_hear(same, SOON_MS, &heard)->kind, FRAME_CHALLENGE);
    }
    recall(same);
    expect_refusal(same, "say HELLO first");
    zmq_close(same);
    by_hand_send(dealer, frame, count); // The victim is there still
    assert_int_equal(by_hand_hear(dealer, SOON_MS, &heard)->kind, FRAME_WELCOME);
    zmq_close(dealer);
}

// Its own HELLO, and a challenge that is another's: the signature does not count yet.
static void a_signature_of_another_is_none(void **state)
{
    (void)state;
    struct by_hand_heard heard;
    struct curve_pair own;
    curve_draw(&own);
    void *dealer = dial(&own);
    struct wire_hello hello = by_hand_hello(victim, &own, &server);
    by_hand_say(dealer, victim, FRAME_HELLO, &hello);
    assert_int_equal(by_hand_hear(dealer, SOON_MS, &heard)->kind, FRAME_CHALLENGE);
    memcpy(hello.challenge, ((const struct wire_challenge *)heard.body)->bytes,
           sizeof hello.challenge);
    struct wire_head head = { .kind = FRAME_HELLO, .run = "live", .seq = 1 };
    head.sender = *identity_key(victim);
    uint8_t frame[1024];
    size_t count = wire_pack(&head, &hello, frame, sizeof frame);
    count = signed_frame_sign(other, frame, count, sizeof frame);
    by_hand_send(dealer, frame, count);
    expect_refusal(dealer, "the signature does not verify");
    zmq_close(dealer);
}

static void *dial_as_mine(const struct curve_pair *own)
{
    void *dealer = by_hand_connect_as("mine", context, ZMQ_DEALER, broker.port, own, &server);
    assert_non_null(dealer);
    return dealer;
}

// A peer chooses its routing id, and the thief chooses the same once the peer is gone. The broker's socket
// ignores a second connection of one id, and tells nobody when the first has ended: the thief dials until
// it is heard.
static void a_routing_id_is_no_proof(void **state)
{
    (void)state;
    struct by_hand_heard heard = { 0 };
    struct curve_pair own;
    curve_draw(&own);
    struct wire_hello hello = by_hand_hello(victim, &own, &server);
    hello.instance = 2;
    void *dealer = dial_as_mine(&own);
    expect_welcome(dealer, victim, &hello);
    for (int dials = 0; heard.kind == FRAME_NONE && dials < SOON_MS / DIAL_MS; dials++) {
        zmq_close(dealer);
        dealer = dial_as_mine(&own);
        recall(dealer);
        by_hand_hear(dealer, DIAL_MS, &heard);
    }
    assert_int_equal(heard.kind, FRAME_UNDELIVERABLE);
    const struct wire_undeliverable *no = heard.body;
    assert_string_equal(no->reason, "say HELLO first");
    by_hand_say(dealer, victim, FRAME_HELLO, &hello);
    assert_int_equal(by_hand_hear(dealer, SOON_MS, &heard)->kind, FRAME_CHALLENGE);
    zmq_close(dealer);
}

// ---- the news -----------------------------------------------------------------------------------

// What the handshake of a subscriber with this pair comes to.
static uint16_t subscribe(const struct curve_pair *own)
{
    const struct curve_key key = by_hand_server(&server);
    struct net_event event;
    char endpoint[64];
    void *news = zmq_socket(context, ZMQ_SUB);
    void *events =
        net_watch(context, news, ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH);
    zmq_pollitem_t item = { .socket = events, .events = ZMQ_POLLIN };
    zap_secure_client(news, own, &key);
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%u", broker.port + 1u);
    assert_int_equal(zmq_connect(news, endpoint), 0);
    assert_int_equal(zmq_poll(&item, 1, SOON_MS), 1);
    assert_true(net_hear(events, &event));
    net_socket_close(&news), net_socket_close(&events);
    return event.kind;
}

static void the_news_are_for_the_welcomed(void **state)
{
    (void)state;
    struct curve_pair own, strangers;
    curve_draw(&own), curve_draw(&strangers);
    void *dealer = dial(&own);
    struct wire_hello hello = by_hand_hello(other, &own, &server);
    assert_int_equal(subscribe(&own), ZMQ_EVENT_HANDSHAKE_FAILED_AUTH);
    expect_welcome(dealer, other, &hello);
    assert_int_equal(subscribe(&own), ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    assert_int_equal(subscribe(&strangers), ZMQ_EVENT_HANDSHAKE_FAILED_AUTH);
    zmq_close(dealer);
}

// It connected to the news while it was welcome, and subscribes once it is banned. The broker's thread sleeps
// in between, so the table is ours to change.
static void the_banned_do_not_subscribe(void **state)
{
    (void)state;
    const struct curve_key key = by_hand_server(&server);
    struct identity *third = identity_of(5);
    struct curve_pair own;
    struct net_event event = { .kind = 0 };
    char endpoint[64];
    curve_draw(&own);
    void *dealer = dial(&own);
    struct wire_hello hello = by_hand_hello(third, &own, &server);
    expect_welcome(dealer, third, &hello);
    void *news = zmq_socket(context, ZMQ_SUB);
    void *events = net_watch(context, news, ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED);
    zmq_pollitem_t item = { .socket = events, .events = ZMQ_POLLIN };
    zap_secure_client(news, &own, &key);
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%u", broker.port + 1u);
    assert_int_equal(zmq_connect(news, endpoint), 0);
    assert_int_equal(zmq_poll(&item, 1, SOON_MS), 1);
    assert_true(net_hear(events, &event) && event.kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    assert_true(admission_ban(broker.admission, identity_key(third)));
    assert_int_equal(zmq_setsockopt(news, ZMQ_SUBSCRIBE, "", 0), 0);
    assert_int_equal(zmq_poll(&item, 1, SOON_MS), 1);
    assert_true(net_hear(events, &event) && event.kind == ZMQ_EVENT_DISCONNECTED);
    net_socket_close(&news), net_socket_close(&events);
    zmq_close(dealer);
    identity_destroy(&third);
}

TESTS_WITH(set_up, tear_down, TEST(a_hello_is_for_one_connection),
           TEST(a_signature_of_another_is_none), TEST(a_routing_id_is_no_proof),
           TEST(the_news_are_for_the_welcomed), TEST(the_banned_do_not_subscribe))
