// The post office: which role may send which frame to which role, and which key owns a name and a
// connection.
#include "broker/post_office.h"
#include "tests/test.h"
#include <stdlib.h>
#include <string.h>

static void roles_are_checked(void **state)
{
    (void)state;
    static const struct {
        uint8_t from;
        uint16_t kind;
        uint8_t to;
        bool may;
    } mail[] = {
        { ACTOR_TRAINER, FRAME_JOIN, ACTOR_COORDINATOR, true },
        { ACTOR_TRAINER, FRAME_CLAIM, ACTOR_WITNESS, true },
        { ACTOR_TRAINER, FRAME_VOTE, ACTOR_COORDINATOR, true },
        { ACTOR_TRAINER, FRAME_VOTE, ACTOR_TRAINER, false },
        { ACTOR_PROVIDER, FRAME_VOTE, ACTOR_COORDINATOR, false },
        { ACTOR_WITNESS, FRAME_CLAIM_COPY, ACTOR_COORDINATOR, true },
        { ACTOR_TRAINER, FRAME_REVEAL, ACTOR_TRAINER, true },
        { ACTOR_WITNESS, FRAME_REVEAL, ACTOR_TRAINER, false },
        { ACTOR_TRAINER, FRAME_CLAIM, ACTOR_COORDINATOR, false },
        { ACTOR_COORDINATOR, FRAME_SEND_CLAIM, ACTOR_WITNESS, true },
        { ACTOR_TRAINER, FRAME_SEND_CLAIM, ACTOR_WITNESS, false },
        { ACTOR_TRAINER, FRAME_CHECKPOINT, ACTOR_COORDINATOR, false },
        { ACTOR_CHECKPOINTER, FRAME_CHECKPOINT, ACTOR_COORDINATOR, true },
        { ACTOR_MONITOR, FRAME_ASK, ACTOR_COORDINATOR, true },
        { ACTOR_PROVIDER, FRAME_REACH, ACTOR_COORDINATOR, true },
        { ACTOR_OPERATOR, FRAME_REACH, ACTOR_COORDINATOR, true },
        { ACTOR_TRAINER, FRAME_REACH, ACTOR_TRAINER, false },
        { ACTOR_MONITOR, FRAME_CONTROL, ACTOR_COORDINATOR, false },
        { ACTOR_OPERATOR, FRAME_CONTROL, ACTOR_COORDINATOR, true },
        { ACTOR_OPERATOR, FRAME_CONTROL, ACTOR_CHECKPOINTER, false },
        { ACTOR_COORDINATOR, FRAME_CONTROL, ACTOR_CHECKPOINTER, true },
        { ACTOR_COORDINATOR, FRAME_ROUND, ACTOR_TRAINER, true },
        { ACTOR_TRAINER, FRAME_ROUND, ACTOR_TRAINER, false },
        { ACTOR_TRAINER, FRAME_ADMITTED, ACTOR_TRAINER, false },
        { ACTOR_TRAINER, FRAME_WELCOME, ACTOR_TRAINER, false },
        { ACTOR_COORDINATOR, FRAME_UNDELIVERABLE, ACTOR_TRAINER, false },
    };
    for (size_t i = 0; i < sizeof mail / sizeof *mail; i++)
        assert_int_equal(!post_office_forbids_mail(mail[i].from, mail[i].kind, mail[i].to),
                         mail[i].may);
    assert_null(post_office_forbids_news(ACTOR_TRAINER, FRAME_CLAIM));
    assert_null(post_office_forbids_news(ACTOR_COORDINATOR, FRAME_ROSTER));
    assert_non_null(post_office_forbids_news(ACTOR_TRAINER, FRAME_ROSTER));
    assert_non_null(post_office_forbids_news(ACTOR_MONITOR, FRAME_CLAIM));
    assert_non_null(post_office_forbids_news(ACTOR_WITNESS, FRAME_PROGRESS));
    assert_non_null(post_office_forbids_news(ACTOR_COORDINATOR, FRAME_PING));
}

static void a_name_and_a_connection_belong_together(void **state)
{
    (void)state;
    struct post_office *self = calloc(1, sizeof *self);
    const struct key key = { { 1 } }, connection = { { 2 } }, other = { { 3 } };
    const struct route here = { .count = 1, .bytes = { 7 } },
                       there = { .count = 1, .bytes = { 8 } };
    struct wire_hello hello = { .role = ACTOR_TRAINER, .instance = 5 };
    actor_name(ACTOR_TRAINER, &key, hello.name);
    assert_false(post_office_knows(self, &here, &key, &connection, &hello));
    assert_null(post_office_hello(self, &here, &key, &connection, &hello, 0));
    assert_true(post_office_knows(self, &here, &key, &connection, &hello));
    assert_false(post_office_knows(self, &here, &key, &other, &hello));
    assert_false(post_office_knows(self, &there, &key, &connection, &hello));
    assert_false(post_office_knows(self, &here, &other, &connection, &hello));
    hello.instance = 6;
    assert_false(post_office_knows(self, &here, &key, &connection, &hello));
    assert_null(post_office_hello(self, &there, &key, &connection, &hello, 1)); // A newer process
    hello.instance = 5;
    assert_non_null(post_office_hello(self, &here, &key, &connection, &hello, 2));
    assert_null(post_office_sender(self, &here, 2));
    assert_true(key_equal(&post_office_sender(self, &there, 2)->connection, &connection));
    free(self);
}

TESTS(TEST(roles_are_checked), TEST(a_name_and_a_connection_belong_together))
