// The post office: which role may send which frame to which role, and which key owns a name and a
// connection.
#include "broker/post_office.h"
#include "common/actor/cost.h"
#include "tests/test.h"
#include <stdio.h>
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

static bool may_go_between_members(uint16_t kind)
{
    for (uint8_t from = 0; from < ACTOR_COUNT; from++)
        for (uint8_t to = 0; to < ACTOR_COUNT; to++)
            if (from != ACTOR_COORDINATOR && to != ACTOR_COORDINATOR &&
                !post_office_forbids_mail(from, kind, to))
                return true;
    return false;
}

// Whatever one member sends to another, its budget for a second (broker/gate.c) does not fill a
// line of 4 Mbit/s. And the budget suffices for a round in which the news are lost.
static void letters_fill_no_members_line(void **state)
{
    (void)state;
    enum { FRAMES_S = 2000, AROUND = 250, OTHERS = 63 }; // Around: names, CURVE, TCP
    uint32_t kinds = 0;
    for (uint16_t kind = 0; (kind = wire_kind_next(kind));) {
        if (!may_go_between_members(kind)) continue;
        const size_t bytes_s = FRAMES_S / cost_in_frames(kind) * (wire_frame_max(kind) + AROUND);
        if (bytes_s >= 200000) fail_msg("%s: %zu bytes/s", wire_kind_name(kind), bytes_s);
        kinds++;
    }
    assert_int_equal(kinds, 3);
    assert_true(OTHERS * (cost_in_frames(FRAME_CLAIM) + cost_in_frames(FRAME_ACK)) < FRAMES_S);
    assert_true(cost_in_frames(FRAME_REVEAL) + COST_NEWS_FRAMES * 3u + cost_in_frames(FRAME_VOTE) +
                    cost_in_frames(FRAME_FINDING) <=
                COST_ROUND_FRAMES);
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
    assert_null(post_office_hello(self, &here, &key, &connection, &hello, false, 0));
    assert_true(post_office_knows(self, &here, &key, &connection, &hello));
    assert_false(post_office_knows(self, &here, &key, &other, &hello));
    assert_false(post_office_knows(self, &there, &key, &connection, &hello));
    assert_false(post_office_knows(self, &here, &other, &connection, &hello));
    hello.instance = 6;
    assert_false(post_office_knows(self, &here, &key, &connection, &hello));
    assert_null(
        post_office_hello(self, &there, &key, &connection, &hello, false, 1)); // A newer process
    hello.instance = 5;
    assert_non_null(post_office_hello(self, &here, &key, &connection, &hello, false, 2));
    assert_null(post_office_sender(self, &here, 2));
    assert_true(key_equal(&post_office_sender(self, &there, 2)->connection, &connection));
    free(self);
}

static const struct key anna = { { 1 } }, bob = { { 3 } };
static const struct route first = { .count = 1, .bytes = { 7 } },
                          second = { .count = 1, .bytes = { 8 } };

static const char *hello_as(struct post_office *self, const struct route *route,
                            const struct key *key, const char *name, uint64_t instance)
{
    struct wire_hello hello = { .role = ACTOR_TRAINER, .instance = instance };
    snprintf(hello.name, sizeof hello.name, "%s", name);
    return post_office_hello(self, route, key, key, &hello, false, 0);
}

// The name that no key has by itself. It is free when its holder has been silent for a lease.
static void a_name_that_is_held_is_refused_for_now(void **state)
{
    (void)state;
    struct post_office *self = calloc(1, sizeof *self);
    struct wire_hello hello = { .role = ACTOR_COORDINATOR, .instance = 5, .name = "coordinator" };
    assert_null(post_office_hello(self, &first, &anna, &anna, &hello, false, 0));
    assert_ptr_equal(
        post_office_hello(self, &second, &bob, &bob, &hello, false, POST_OFFICE_LEASE_MS),
        POST_OFFICE_HELD);
    assert_null(
        post_office_hello(self, &second, &bob, &bob, &hello, false, POST_OFFICE_LEASE_MS + 1));
    free(self);
}

// An actor keeps its budget when it opens a new connection. Another key under the same name starts with a full one.
static void what_is_kept_with_an_actor_outlives_its_connection(void **state)
{
    (void)state;
    struct post_office *self = calloc(1, sizeof *self);
    struct wire_hello hello = { .role = ACTOR_COORDINATOR, .instance = 5, .name = "coordinator" };
    assert_null(post_office_hello(self, &first, &anna, &anna, &hello, false, 0));
    post_office_own(self, post_office_named(self, "coordinator"))[7] = 9;
    assert_null(post_office_hello(self, &second, &anna, &bob, &hello, false, 1));
    assert_int_equal(post_office_own(self, post_office_named(self, "coordinator"))[7], 9);
    assert_null(
        post_office_hello(self, &first, &bob, &anna, &hello, false, POST_OFFICE_LEASE_MS + 2));
    assert_int_equal(post_office_own(self, post_office_named(self, "coordinator"))[7], 0);
    free(self);
}

// Strangers with more keys than there are places: a member and the owner find one, and stay.
static void strangers_keep_no_member_out(void **state)
{
    (void)state;
    struct post_office *self = calloc(1, sizeof *self);
    struct wire_hello hello = { .role = ACTOR_TRAINER, .instance = 5 };
    struct route route = { .count = 5 };
    for (uint32_t i = 0; i < POST_OFFICE_PEERS_MAX; i++) {
        struct key key = { { 2 } };
        memcpy(key.bytes + 1, &i, sizeof i);
        memcpy(route.bytes, &i, sizeof i);
        actor_name(ACTOR_TRAINER, &key, hello.name);
        assert_null(post_office_hello(self, &route, &key, &key, &hello, i == 0, i));
    }
    actor_name(ACTOR_TRAINER, &anna, hello.name);
    assert_ptr_equal(post_office_hello(self, &first, &anna, &anna, &hello, false, 20000),
                     POST_OFFICE_FULL);
    assert_null(post_office_hello(self, &first, &anna, &anna, &hello, true, 20000));
    assert_non_null(post_office_named(self, hello.name));
    assert_int_equal(self->count, POST_OFFICE_PEERS_MAX);
    const struct key seated = { { 2, 0 } }, oldest = { { 2, 1 } };
    actor_name(ACTOR_TRAINER, &seated, hello.name);
    assert_non_null(post_office_named(self, hello.name)); // Heard longest ago, and has a seat
    actor_name(ACTOR_TRAINER, &oldest, hello.name);
    assert_null(post_office_named(self, hello.name));
    for (uint32_t i = 0; i < POST_OFFICE_PEERS_MAX; i++) self->peers[i].has_seat = true;
    actor_name(ACTOR_TRAINER, &bob, hello.name);
    assert_ptr_equal(post_office_hello(self, &second, &bob, &bob, &hello, true, 20000),
                     POST_OFFICE_FULL);
    free(self);
}

static void the_label_of_a_name_is_only_shown(void **state)
{
    (void)state;
    struct post_office *self = calloc(1, sizeof *self);
    assert_null(hello_as(self, &first, &anna, "trainer.anna.0100000000000000", 5));
    assert_null(hello_as(self, &second, &bob, "trainer.anna.0300000000000000", 5));
    assert_int_equal(self->count, 2);
    static const char *const names[] = { "trainer.anna.0100000000000000",
                                         "trainer.0100000000000000",
                                         "trainer.eve.0100000000000000" };
    for (int i = 0; i < 3; i++)
        assert_true(key_equal(&post_office_named(self, names[i])->key, &anna));
    assert_string_equal(post_office_sender(self, &first, 0)->name, names[0]);

    // Another process of the key, under another label and from another connection, takes its place.
    const struct route third = { .count = 1, .bytes = { 9 } };
    struct wire_hello hello = { .role = ACTOR_TRAINER, .instance = 6 };
    snprintf(hello.name, sizeof hello.name, "trainer.new.0100000000000000");
    assert_null(hello_as(self, &third, &anna, hello.name, 6));
    assert_int_equal(self->count, 2);
    assert_null(post_office_sender(self, &first, 0));
    assert_string_equal(post_office_named(self, names[0])->name, hello.name);
    assert_true(post_office_knows(self, &third, &anna, &anna, &hello));
    hello.name[8] = 'N';
    assert_false(post_office_knows(self, &third, &anna, &anna, &hello));
    assert_non_null(hello_as(self, &first, &anna, names[0], 5)); // The earlier process
    post_office_forget(self, &third);
    assert_null(post_office_named(self, names[0]));
    assert_non_null(post_office_named(self, "trainer.0300000000000000"));
    free(self);
}

static void a_name_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct post_office *self = calloc(1, sizeof *self);
    static const char *const names[] = {
        "trainer.anna.0300000000000000", // Another key's
        "witness.anna.0100000000000000",
        "trainer.Anna.0100000000000000",
        "trainer.2nd.0100000000000000",
        "trainer.an na.0100000000000000",
        "trainer..0100000000000000",
        "trainer.a.b.0100000000000000",
        "trainer.sixteen-letters-.0100000000000000",
        "trainer.anna.0100000000000000.",
        "trainer.anna",
        "anna.0100000000000000",
        "coordinator",
        "",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!hello_as(self, &first, &anna, names[i], 1)) fail_msg("\"%s\" is let in", names[i]);
    assert_int_equal(self->count, 0);
    free(self);
}

// The longest name has two bytes to spare.
static void names_are_made_and_read(void **state)
{
    (void)state;
    char name[ACTOR_NAME_MAX + 1], part[ACTOR_NAME_MAX + 1];
    actor_name_with(ACTOR_SERVER, "fifteen-letters", &anna, name);
    assert_string_equal(name, "parameter-server.fifteen-letters.0100000000000000");
    assert_true(strlen(name) == 49 && actor_name_fits(name, ACTOR_SERVER, &anna));
    actor_name_plain(name, part);
    assert_string_equal(part, "parameter-server.0100000000000000");
    assert_true(actor_name_is_same(name, part));
    actor_name_label(name, part);
    assert_string_equal(part, "fifteen-letters");
    assert_true(actor_label_is_sound("fee") && actor_label_is_sound("facade-5"));
    assert_false(actor_label_is_sound("c34962b0")); // A key's first digits
    actor_name_with(ACTOR_COORDINATOR, "anna", &anna, name);
    assert_string_equal(name, "coordinator");
    assert_true(actor_name_fits(name, ACTOR_COORDINATOR, &bob));
    assert_false(actor_name_fits("coordinator.anna.0100000000000000", ACTOR_COORDINATOR, &anna));
    assert_false(actor_name_is_same("coordinator", "coordinator.0100000000000000"));
}

TESTS(TEST(roles_are_checked), TEST(letters_fill_no_members_line),
      TEST(a_name_and_a_connection_belong_together), TEST(a_name_that_is_held_is_refused_for_now),
      TEST(strangers_keep_no_member_out), TEST(what_is_kept_with_an_actor_outlives_its_connection),
      TEST(the_label_of_a_name_is_only_shown), TEST(a_name_that_does_not_fit_is_refused),
      TEST(names_are_made_and_read))
