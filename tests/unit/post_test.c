// An actor's post: whom it takes a letter to be from; and where no descriptor is left it says so, and goes on when
// there are some again.
#include "common/actor/post.h"
#include "common/base/clock.h"
#include "common/net/curve.h"
#include "common/net/net.h"
#include "tests/test.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { DESCRIPTORS = 128 };

static struct why why;
static int taken[DESCRIPTORS], taken_count;

static void take_descriptors(void)
{
    int fd;
    while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) taken[taken_count++] = fd;
}

static void give_descriptors_back(void)
{
    while (taken_count > 0) close(taken[--taken_count]);
}

static void tick_for(struct post *post, uint64_t ms)
{
    for (const uint64_t end_ms = clock_ms() + ms; clock_ms() < end_ms;) {
        nanosleep(&(struct timespec){ 0, 50000000 }, NULL);
        post_tick(post);
    }
}

static void test_no_descriptor_is_left(void **state)
{
    (void)state;
    static const uint8_t secret[SECRET_BYTES] = { 1 };
    const struct rlimit limit = { DESCRIPTORS, DESCRIPTORS };
    struct identity *identity;
    struct post *post = NULL;
    struct ticket ticket = { .address = "127.0.0.1:1" }; // No broker answers there
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(identity_from_secret(secret, &why, &identity), 0);
    ticket.server = curve_server_key(identity);
    const struct post_options options = {
        .identity = identity, .name = "somebody", .run = "demo", .broker = &ticket, .quiet = true
    };
    take_descriptors();
    assert_int_equal(post_new(&options, &why, &post), FAULT_BUSY);
    assert_non_null(strstr(why.text, "128 are allowed: raise LimitNOFILE"));
    assert_null(post);
    give_descriptors_back();
    assert_int_equal(post_new(&options, &why, &post), 0);
    take_descriptors();
    tick_for(post, POST_SILENCE_MS + 1500);
    assert_non_null(post_trouble(post));
    assert_non_null(strstr(post_trouble(post), "no descriptor is left"));
    give_descriptors_back();
    tick_for(post, 1500);
    assert_null(post_trouble(post));
    post_destroy(&post);
    identity_destroy(&identity);
}

// A broker's mail socket that lets every key in; `ticket` leads to it.
static void *open_mail(void *context, const struct identity *identity, struct ticket *ticket)
{
    struct curve_pair own;
    char endpoint[64];
    size_t size = sizeof endpoint;
    void *mail = net_socket_new(context, ZMQ_ROUTER, -1, 10);
    assert_non_null(mail);
    curve_of_broker(identity, &own);
    net_set(mail, ZMQ_CURVE_SERVER, 1);
    assert_int_equal(zmq_setsockopt(mail, ZMQ_CURVE_SECRETKEY, own.secret, CURVE_BYTES), 0);
    assert_int_equal(zmq_bind(mail, "tcp://127.0.0.1:*"), 0);
    assert_int_equal(zmq_getsockopt(mail, ZMQ_LAST_ENDPOINT, endpoint, &size), 0);
    snprintf(ticket->address, sizeof ticket->address, "%s", endpoint + strlen("tcp://"));
    memcpy(ticket->server.bytes, own.public.bytes, KEY_BYTES);
    return mail;
}

// The HELLO of the post shows the way to it.
static void send_as(void *mail, struct post *post, const char *name)
{
    char route[64], rest[4096];
    int bytes;
    net_set(mail, ZMQ_RCVTIMEO, 20);
    while ((bytes = zmq_recv(mail, route, sizeof route, 0)) < 0) post_tick(post);
    while (zmq_recv(mail, rest, sizeof rest, ZMQ_DONTWAIT) >= 0) continue;
    assert_true(zmq_send(mail, route, (size_t)bytes, ZMQ_SNDMORE) >= 0);
    assert_true(zmq_send(mail, name, strlen(name), ZMQ_SNDMORE) >= 0);
    assert_true(zmq_send(mail, "x", 1, 0) >= 0);
}

// An answer goes to the name that the letter came from, so all of it must be there.
static void the_longest_name_comes_through_whole(void **state)
{
    (void)state;
    static const uint8_t secret[SECRET_BYTES] = { 1 };
    struct identity *identity;
    struct ticket ticket = { .address = "" };
    char name[ACTOR_NAME_MAX + 1];
    struct post *post;
    assert_int_equal(identity_from_secret(secret, &why, &identity), 0);
    void *context = net_context_new(1), *mail = open_mail(context, identity, &ticket);
    actor_name_with(ACTOR_SERVER, "fifteen-letters", identity_key(identity), name);
    assert_int_equal(strlen(name), 49);
    const struct post_options options = {
        .identity = identity, .name = name, .run = "demo", .broker = &ticket, .quiet = true
    };
    assert_int_equal(post_new(&options, &why, &post), 0);
    send_as(mail, post, name);
    zmq_pollitem_t item = { .socket = post_mail_socket(post), .events = ZMQ_POLLIN };
    assert_int_equal(zmq_poll(&item, 1, 5000), 1);
    struct post_frame *frame = post_receive(post, true);
    assert_non_null(frame);
    assert_string_equal(frame->from, name);
    post_release(&frame);
    post_destroy(&post);
    net_socket_close(&mail);
    net_context_destroy(&context);
    identity_destroy(&identity);
}

TESTS(TEST(the_longest_name_comes_through_whole), TEST(test_no_descriptor_is_left))
