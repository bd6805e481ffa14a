// A real broker admits the right actors, refuses the others with a reason, and cuts off those that
// lose their place.

#include "common/actor/cost.h"
#include "common/base/clock.h"
#include "tests/live/own_actor.h"
#include "tests/by_hand.h"
#include "tests/test.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum { SOON_MS = 15000 };

static char *public_key(const char *name, char hex[KEY_HEX])
{
    struct identity *identity = testbed_identity(name);
    key_to_hex(identity_key(identity), hex);
    identity_destroy(&identity);
    return hex;
}

static void write_list(struct testbed *bed, const char *const *names)
{
    char text[2048] = "# the members\n", hex[KEY_HEX];
    for (; *names; names++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s  # %s\n", public_key(*names, hex), *names);
    }
    testbed_write_file(bed, "list", text, strlen(text));
}

// Monitor and status make a key for the moment, which the broker does not admit: both end at once,
// with the reason and what to do.
static void an_onlooker_is_told(struct testbed *bed, const char *reason)
{
    char line[1024], rest[512];
    testbed_start(bed, "monitor0");
    testbed_actor(bed, "monitor0")->may_end = true;
    assert_int_equal(testbed_await_end(bed, "monitor0", SOON_MS), EX_NOPERM);
    assert_true(testbed_log_has(bed, "monitor0", reason, rest, sizeof rest));
    assert_non_null(strstr(rest, "give a key that it admits, with -i FILE"));
    assert_false(testbed_log_has(bed, "monitor0", "UNDELIVERABLE", NULL, 0)); // It is no news
    snprintf(line, sizeof line,
             "cd %s && %s/shoal status --ticket ticket --run-id live 2>erred; c=$?; grep -q '%s' "
             "erred && exit $c",
             bed->dir, bed->bin, reason);
    assert_int_equal(WEXITSTATUS(system(line)), EX_NOPERM);
}

// ---- lists --------------------------------------------------------------------------------------

// Behind the WELCOME in its log.
static bool is_refused_again(struct testbed *bed, const void *arg)
{
    (void)arg;
    static char log[1 << 20];
    char path[300];
    snprintf(path, sizeof path, "%s/trainer1.log", bed->dir);
    testbed_read_file(path, log, sizeof log);
    const char *welcome = strstr(log, "broker.welcome");
    return welcome && strstr(welcome, "broker.refused");
}

static void only_listed_keys_and_only_while_listed(void **state)
{
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){
        .trainers = 2, .init_min_clients = 1, .admit = "allowlist=list", .owned = true });
    static const char *const without[] = { "data-provider", "checkpointer", "trainer0", "observer",
                                           NULL },
                             *const with[] = { "data-provider", "checkpointer", "trainer0",
                                               "observer",      "trainer1",     NULL };
    write_list(bed, without);
    testbed_start(bed, "broker");
    testbed_await_log(bed, "broker", "broker.ready", TESTBED_WAIT_MS);
    testbed_start(bed, "trainer1");
    testbed_await_log(bed, "trainer1", "the broker does not admit our key", SOON_MS);
    assert_false(testbed_log_has(bed, "broker", "name=trainer.", NULL, 0)); // It never got that far
    testbed_await_log(bed, "trainer1", "waiting: 127.0.0.1:", SOON_MS);
    an_onlooker_is_told(bed, "the broker does not admit our key");

    testbed_write_file(bed, "list", "nonsense\n", 9);
    testbed_signal(bed, "broker", SIGHUP);
    testbed_await_log(bed, "broker", "gate.reload fault=FORMAT", SOON_MS);
    write_list(bed, with);
    testbed_signal(bed, "broker", SIGHUP);
    testbed_await_log(bed, "broker", "gate.reload policy=", SOON_MS);
    testbed_await_log(bed, "trainer1", "broker.welcome", SOON_MS);

    write_list(bed, without); // Out again: cut off, not only ignored
    testbed_signal(bed, "broker", SIGHUP);
    testbed_wait(bed, is_refused_again, bed, SOON_MS);
    assert_true(is_refused_again(bed, bed));
    testbed_signal(bed, "trainer1", SIGKILL);
}

// ---- invitations --------------------------------------------------------------------------------

static void make_ticket(struct testbed *bed, uint8_t number, uint16_t uses,
                        char text[TICKET_TEXT_MAX])
{
    struct ticket ticket = bed->ticket;
    struct invitation invitation = { .expires_unix_s = clock_unix_ms() / 1000 + 600,
                                     .uses = uses,
                                     .number = { number } };
    struct identity *owner = testbed_identity("coordinator");
    snprintf(ticket.run, sizeof ticket.run, "%s", bed->options.run_id);
    invitation_sign(&invitation, owner, &ticket.server, ticket.run, ticket.invitation);
    ticket.has_invitation = true;
    ticket_print(&ticket, text);
    identity_destroy(&owner);
}

static void a_ticket_is_for_one(void **state)
{
    struct testbed *bed = *state =
        testbed_new(&(struct testbed_options){ .trainers = 2, .admit = "invite", .owned = true });
    char text[TICKET_TEXT_MAX];
    make_ticket(bed, 1, 1, text);
    const struct testbed_launch invited = { .args =
                                                (const char *const[]){ "--ticket", text, NULL } };
    testbed_start(bed, "broker");
    testbed_start(bed, "coordinator"); // The owner's key needs none
    testbed_await_log(bed, "coordinator", "broker.welcome", SOON_MS);
    testbed_start(bed, "trainer2");
    assert_int_equal(testbed_await_end(bed, "trainer2", SOON_MS), EX_NOPERM);
    assert_true(testbed_log_has(bed, "trainer2", "an invitation is needed", NULL, 0));
    an_onlooker_is_told(bed, "the broker refuses us: an invitation is needed");
    testbed_start_with(bed, "trainer0", &invited);
    testbed_await_log(bed, "trainer0", "member.admitted", SOON_MS);
    testbed_start_with(bed, "trainer1", &invited);
    assert_int_equal(testbed_await_end(bed, "trainer1", SOON_MS), EX_NOPERM);
    assert_true(testbed_log_has(bed, "trainer1", "the invitation is used up", NULL, 0));
    // Another life of the broker: it has stored which keys it admitted.
    testbed_signal(bed, "broker", SIGKILL);
    testbed_start(bed, "broker");
    testbed_await_log(bed, "broker", "actor.hello name=trainer.", SOON_MS);
    testbed_start_with(bed, "trainer1", &invited);
    assert_int_equal(testbed_await_end(bed, "trainer1", SOON_MS), EX_NOPERM);
    // The ticket is revoked: whom it let in is cut off, and told why.
    testbed_await_log(bed, "trainer0", "broker.welcome", SOON_MS);
    testbed_write_file(bed, "revoked", text, strlen(text));
    testbed_actor(bed, "trainer0")->may_end = true;
    testbed_signal(bed, "broker", SIGHUP);
    assert_int_equal(testbed_await_end(bed, "trainer0", SOON_MS), EX_NOPERM);
    assert_true(testbed_log_has(bed, "trainer0", "the run's owner has revoked it", NULL, 0));
}

static void a_wrong_server_key_is_said(void **state)
{
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){ .trainers = 1 });
    char hex[KEY_HEX];
    public_key("somebody", hex);
    testbed_start(bed, "broker");
    testbed_await_log(bed, "broker", "broker.ready", TESTBED_WAIT_MS);
    uint64_t began_ms = clock_ms();
    testbed_start_with(
        bed, "trainer0",
        &(struct testbed_launch){ .args = (const char *const[]){ "--server-key", hex, NULL } });
    testbed_await_log(bed, "trainer0", "does not hold the key", 5000);
    print_message("said after %" PRIu64 " ms\n", (uint64_t)(clock_ms() - began_ms));
}

// ---- actors of the test's own -------------------------------------------------------------------

// The coordinator's word that a member was ejected ends the member's connection, and it does not
// come back.
static void the_ejected_are_cut_off(void **state)
{
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){ .owned = true });
    testbed_start(bed, "broker");
    struct own *coordinator = own_new(bed, "coordinator", ACTOR_COORDINATOR),
               *trainer = own_new(bed, "trainer0", ACTOR_TRAINER),
               *other = own_new(bed, "trainer1", ACTOR_TRAINER);
    assert_true(own_await(coordinator, FRAME_WELCOME, SOON_MS));
    assert_true(own_await(trainer, FRAME_WELCOME, SOON_MS));
    assert_true(own_await(other, FRAME_WELCOME, SOON_MS));
    post_mail(trainer->post, "coordinator", FRAME_PING, &(struct wire_ping){ .instance = 1 });
    assert_true(own_await(coordinator, FRAME_PING, SOON_MS));

    struct wire_member member = { .role = ACTOR_TRAINER, .state = MEMBER_EJECTED };
    member.key = *identity_key(trainer->identity);
    memcpy(member.name, trainer->name, sizeof member.name);
    post_publish(coordinator->post, FRAME_ROSTER,
                 &(struct wire_roster){ .version = 1, .members = &member, .members_count = 1 });
    testbed_await_log(bed, "broker", "gate.banned name=trainer.", SOON_MS);
    post_mail(trainer->post, "coordinator", FRAME_PING, &(struct wire_ping){ .instance = 1 });
    assert_false(own_await(coordinator, FRAME_PING, 1000));
    assert_false(own_await(trainer, FRAME_WELCOME, 2000));
    assert_non_null(post_trouble(trainer->post)); // It dialled again, and was refused
    assert_non_null(strstr(post_trouble(trainer->post), "this key was ejected"));
    post_mail(other->post, "coordinator", FRAME_PING, &(struct wire_ping){ .instance = 1 });
    assert_true(own_await(coordinator, FRAME_PING, SOON_MS));
    own_destroy(coordinator), own_destroy(trainer), own_destroy(other);
}

// A frame that another key signed is refused on our connection.
// Whether the broker gave it back. `self->letter` is the UNDELIVERABLE then.
static bool is_given_back(struct own *self, uint64_t timeout_ms)
{
    for (const uint64_t began_ms = clock_ms(); clock_ms() < began_ms + timeout_ms;) {
        zmq_pollitem_t item = { .socket = post_mail_socket(self->post), .events = ZMQ_POLLIN };
        enum post_result result;
        post_tick(self->post);
        while ((result = post_take(self->post, true, &self->arena, &self->letter)) != POST_NOTHING)
            if (result == POST_RETURNED) return true;
        zmq_poll(&item, 1, 5);
    }
    return false;
}

static bool monitor_saw(struct testbed *bed, const void *arg)
{
    return testbed_log_has(bed, "monitor0", arg, NULL, 0);
}

// News goes to everybody. A key that was admitted and did not join publishes none; once it has joined, it does.
static void only_members_publish(void **state)
{
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){ .owned = true });
    const struct wire_progress progress = { .round = 424242 };
    testbed_start(bed, "broker");
    testbed_start(bed, "monitor0");
    testbed_start(bed, "coordinator");
    testbed_await_phase(bed, PHASE_WAITING);
    struct own *stranger = own_new(bed, "stranger", ACTOR_TRAINER);
    assert_true(own_await(stranger, FRAME_WELCOME, SOON_MS));
    assert_true(post_mail(stranger->post, "news", FRAME_PROGRESS, &progress));
    assert_true(is_given_back(stranger, SOON_MS));
    const struct wire_undeliverable *no = stranger->letter.msg.body;
    assert_int_equal(no->kind, FRAME_PROGRESS);
    assert_non_null(strstr(no->reason, "only members of the run publish"));

    struct wire_join join = { .role = ACTOR_TRAINER,
                              .endpoint = "tcp://127.0.0.1:9",
                              .instance = 1 };
    memcpy(join.name, stranger->name, sizeof join.name);
    assert_true(post_mail(stranger->post, "coordinator", FRAME_JOIN, &join));
    assert_true(own_await(stranger, FRAME_ADMITTED, SOON_MS));
    for (const uint64_t began_ms = clock_ms();
         !monitor_saw(bed, "424242");) { // The roster is told soon
        assert_true(clock_ms() < began_ms + SOON_MS);
        assert_true(post_mail(stranger->post, "news", FRAME_PROGRESS, &progress));
        testbed_wait(bed, monitor_saw, "424242", 200);
    }

    const struct wire_leave leave = { .instance = 1 }; // Then it is none any more
    assert_true(post_mail(stranger->post, "coordinator", FRAME_LEAVE, &leave));
    for (const uint64_t began_ms = clock_ms(); !is_given_back(stranger, 200);) {
        assert_true(clock_ms() < began_ms + SOON_MS);
        assert_true(post_mail(stranger->post, "news", FRAME_PROGRESS, &progress));
    }
    own_destroy(stranger);
}

static const char *reason_of(const struct by_hand_heard *heard)
{
    assert_int_equal(heard->kind, FRAME_UNDELIVERABLE);
    return ((const struct wire_undeliverable *)heard->body)->reason;
}

// The thief has all that a victim's HELLO and a core dump of the victim tell: the frame, and the CURVE pair of
// its connection. It has no connection of its own on which the frame is worth anything.
static void no_actor_speaks_for_another(void **state)
{
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){ .owned = true });
    struct identity *victim = testbed_identity("trainer0");
    struct by_hand_heard heard;
    struct curve_pair own, thiefs;
    uint8_t frame[1024];
    curve_draw(&own), curve_draw(&thiefs);
    testbed_start(bed, "broker");
    testbed_await_log(bed, "broker", "broker.ready", TESTBED_WAIT_MS);
    void *context = zmq_ctx_new();
    const struct key *server = &bed->ticket.server;
    void *dealer = by_hand_connect(context, ZMQ_DEALER, bed->port, &own, server);
    struct wire_hello hello = by_hand_hello(victim, &own, server);
    assert_int_equal(by_hand_register(dealer, victim, &hello, SOON_MS, &heard), FRAME_WELCOME);
    const size_t count = by_hand_pack(victim, FRAME_HELLO, &hello, frame, sizeof frame);

    // With a key of its own
    void *other = by_hand_connect(context, ZMQ_DEALER, bed->port, &thiefs, server);
    by_hand_send(other, frame, count);
    assert_string_equal(reason_of(by_hand_hear(other, SOON_MS, &heard)),
                        "the HELLO is not for this connection");
    // With the victim's, while the victim is there and when it is gone
    for (int gone = 0; gone < 2; gone++) {
        void *same = by_hand_connect(context, ZMQ_DEALER, bed->port, &own, server);
        by_hand_send(same, frame, count);
        assert_int_equal(by_hand_hear(same, SOON_MS, &heard)->kind, FRAME_CHALLENGE);
        by_hand_send(same, frame, count);
        assert_int_equal(by_hand_hear(same, SOON_MS, &heard)->kind, FRAME_CHALLENGE);
        by_hand_say(same, victim, FRAME_RECALL, &(struct wire_recall){ .run = "live" });
        assert_string_equal(reason_of(by_hand_hear(same, SOON_MS, &heard)), "say HELLO first");
        zmq_close(same);
        if (dealer) zmq_close(dealer);
        dealer = NULL;
    }
    // One that is signed for another broker, which relays it and our challenge
    const struct key elsewhere = { { 1 } };
    hello = by_hand_hello(victim, &thiefs, &elsewhere);
    assert_int_equal(by_hand_register(other, victim, &hello, SOON_MS, &heard), FRAME_UNDELIVERABLE);
    assert_string_equal(reason_of(&heard), "the HELLO is not for this connection");
    zmq_close(other);
    zmq_ctx_term(context);
    identity_destroy(&victim);
}

// Without --owner, on a loopback: the coordinator is away, the broker has started again, and another key is
// coordinator first. Nobody follows it, neither who was in the run nor who starts again. The true one is
// refused for now, does not end, and has the run back once the broker has started once more.
// The broker gives a listener that is new to it the newest RUN, but no PROGRESS. One that has heard the PROGRESS of the
// newest step hears those of the next ones, too: testbed_stop looks for the last one.
static bool hears_progress(struct testbed *bed, const void *arg)
{
    const uint64_t step = bed->news.run.step;
    return step >= *(const uint64_t *)arg && bed->news.told[step % TESTBED_STEPS_MAX] == step + 1;
}

static void nobody_follows_an_impostor(void **state)
{
    const unsigned tries = testbed_is_long() ? 20 : 2;
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){
        .trainers = 2, .epoch_rounds = 4, .total_steps = 4000, .lease_s = 4, .train_s = 6 });
    testbed_start_all(bed);
    testbed_await_step(bed, 2);
    for (unsigned i = 0; i < tries; i++) {
        testbed_signal(bed, "coordinator", SIGKILL);
        testbed_signal(bed, "broker", SIGKILL);
        testbed_start(bed, "broker");
        struct own *impostor = own_new(bed, "impostor", ACTOR_COORDINATOR);
        assert_true(own_await(impostor, FRAME_WELCOME, SOON_MS));
        testbed_await_log(bed, "broker", "gate.owner key=", SOON_MS);
        testbed_signal(bed, "trainer1", SIGKILL);
        testbed_start(bed, "trainer1");
        assert_true(own_await(impostor, FRAME_JOIN, SOON_MS));
        const struct wire_admitted admitted = {
            .instance = ((const struct wire_join *)impostor->letter.msg.body)->instance,
            .born_unix_ms = bed->news.run.log_seq,
        };
        post_mail(impostor->post, impostor->letter.from, FRAME_ADMITTED, &admitted);
        testbed_await_log(bed, "trainer1", "coordinator.impostor", SOON_MS);
        testbed_start(bed, "coordinator");
        testbed_await_log(bed, "coordinator", "another key was coordinator at this broker first",
                          SOON_MS);
        own_destroy(impostor);
        testbed_signal(bed, "broker", SIGKILL);
        testbed_start(bed, "broker");
        const uint64_t step = bed->news.commits + 2;
        testbed_await(bed, hears_progress, &step, TESTBED_WAIT_MS, "the digest of a later step");
    }
    testbed_stop(bed);
}

static void publish_progress(struct own *trainer, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        post_publish(trainer->post, FRAME_PROGRESS, &(struct wire_progress){ .step = i });
}

// A trainer that has used up its burst says at once all that many quick rounds need.
static void quick_rounds_are_within_the_budget(void **state)
{
    enum { BURST = 8000, ROUNDS = 150 };
    struct testbed *bed = *state = testbed_new(&(struct testbed_options){ .owned = true });
    testbed_start(bed, "broker");
    struct own *coordinator = own_new(bed, "coordinator", ACTOR_COORDINATOR),
               *trainer = own_new(bed, "trainer0", ACTOR_TRAINER);
    assert_true(own_await(coordinator, FRAME_WELCOME, SOON_MS));
    assert_true(own_await(trainer, FRAME_WELCOME, SOON_MS));
    const struct wire_ping ping = { .instance = 1 };
    struct wire_round round = { .batch_size = 1 };
    publish_progress(trainer, BURST / COST_NEWS_FRAMES * 19 / 20);
    assert_true(post_mail(trainer->post, "coordinator", FRAME_PING, &ping));
    assert_true(own_await(coordinator, FRAME_PING, SOON_MS));
    for (round.round = 1; round.round <= ROUNDS; round.round++)
        post_publish(coordinator->post, FRAME_ROUND, &round);
    assert_true(post_mail(coordinator->post, trainer->name, FRAME_ROUND, &round));
    assert_true(own_await(trainer, FRAME_ROUND, SOON_MS));
    publish_progress(trainer, ROUNDS * COST_ROUND_FRAMES / COST_NEWS_FRAMES);
    assert_true(post_mail(trainer->post, "coordinator", FRAME_PING, &ping));
    assert_true(own_await(coordinator, FRAME_PING, SOON_MS));
    assert_false(testbed_log_has(bed, "broker", "gate.over_budget", NULL, 0));
    own_destroy(coordinator), own_destroy(trainer);
    testbed_signal(bed, "broker", SIGTERM);
}

TESTS(TESTBED_TEST(only_listed_keys_and_only_while_listed), TESTBED_TEST(a_ticket_is_for_one),
      TESTBED_TEST(a_wrong_server_key_is_said), TESTBED_TEST(the_ejected_are_cut_off),
      TESTBED_TEST(only_members_publish), TESTBED_TEST(no_actor_speaks_for_another),
      TESTBED_TEST(nobody_follows_an_impostor), TESTBED_TEST(quick_rounds_are_within_the_budget))
