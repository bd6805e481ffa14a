// An actor's post where no descriptor is left: it says so, and goes on when there are some again.
#include "common/actor/post.h"
#include "common/base/clock.h"
#include "common/net/curve.h"
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

TESTS(TEST(test_no_descriptor_is_left))
