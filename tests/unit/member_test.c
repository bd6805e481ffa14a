// A member gives up when its own process cannot mend the fault, and says why; it asks the right
// providers for samples.

#include "common/member/member.h"
#include "tests/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum { PROVIDERS = 40, LIST = 16 };

static struct member *member;
static struct effect effects[16];
static uint8_t bytes[8192];
static struct outbox out;

static int set_up(void **state)
{
    (void)state;
    member = calloc(1, sizeof *member);
    return member ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    free(member);
    return 0;
}

// Mail of the coordinator. The code that the member ends with, or -1.
static int hear(uint16_t kind, const void *body, unsigned *ret_heard)
{
    static _Alignas(8) uint8_t unpacked[2048];
    const struct msg in = { .kind = kind, .from = "coordinator", .run = "", .body = body };
    out = (struct outbox){ effects, 0, 16, bytes, 0, sizeof bytes };
    *ret_heard = member_hear(member, &in, &out);
    for (uint32_t i = 0; i < out.count; i++) {
        struct wire_arena arena = { .bytes = unpacked, .max = sizeof unpacked };
        struct wire_refusal refusal;
        const void *quit;
        if (effects[i].kind != FRAME_QUIT) continue;
        assert_true(wire_unpack_body(effects[i].body, effects[i].bytes, FRAME_QUIT, &arena, &quit,
                                     &refusal));
        return (int)((const struct wire_quit *)quit)->code;
    }
    return -1;
}

// It cannot join with another endpoint than its own.
static void a_member_refused_for_its_endpoint_ends(void **state)
{
    (void)state;
    struct wire_refused refused = { .kind = FRAME_VOTE,
                                    .reason = REFUSAL_MALFORMED,
                                    .text = "endpoint tcp://x:1: must be" };
    unsigned heard;
    assert_int_equal(hear(FRAME_REFUSED, &refused, &heard), -1);
    assert_int_equal(heard, HEARD_REFUSED);
    refused.kind = FRAME_JOIN;
    assert_int_equal(hear(FRAME_REFUSED, &refused, &heard), EX_CONFIG);
}

// Rounds, roster, claims and votes are another run's: nothing of them may be said in this one.
static void another_run_of_the_name_is_another_life(void **state)
{
    (void)state;
    struct wire_admitted admitted = { .born_unix_ms = 1000 };
    unsigned heard;
    assert_int_equal(hear(FRAME_ADMITTED, &admitted, &heard), -1);
    assert_int_equal(heard, HEARD_ADMITTED);
    assert_int_equal(hear(FRAME_ADMITTED, &admitted, &heard),
                     -1); // It was dropped, and joined again
    assert_int_equal(heard, HEARD_ADMITTED);
    // The ledger was lost, and with it all memberships: so a member hears of another run
    const struct wire_refused lost = { .kind = FRAME_PING, .reason = REFUSAL_NOT_MEMBER };
    assert_int_equal(hear(FRAME_REFUSED, &lost, &heard), -1);
    assert_int_equal(heard, 0);
    admitted.born_unix_ms = 2000;
    assert_int_equal(hear(FRAME_ADMITTED, &admitted, &heard), EX_TEMPFAIL);
    assert_int_equal(heard, 0);
}

static void be_admitted_by(const struct key *key)
{
    const struct wire_admitted admitted = { .born_unix_ms = 1000 };
    const struct msg in = {
        .kind = FRAME_ADMITTED, .from = "coordinator", .run = "", .body = &admitted, .sender = *key
    };
    out = (struct outbox){ effects, 0, 16, bytes, 0, sizeof bytes };
    member_hear(member, &in, &out);
}

// Its ADMITTED came before the coordinator had proved its ledger, and was ignored.
static void a_beat_of_another_run_ends_a_member(void **state)
{
    (void)state;
    const struct wire_admitted admitted = { .born_unix_ms = 1000 };
    struct wire_beat beat = { .born_unix_ms = 1000, .log_seq = 1 };
    unsigned heard;
    assert_int_equal(hear(FRAME_ADMITTED, &admitted, &heard), -1);
    assert_int_equal(hear(FRAME_BEAT, &beat, &heard), -1);
    beat.born_unix_ms = 2000;
    assert_int_equal(hear(FRAME_BEAT, &beat, &heard), EX_TEMPFAIL);
}

// The owner is the ticket's, else the journal's, else whoever admits us first; the journal keeps it.
static void only_the_owner_is_followed(void **state)
{
    (void)state;
    static const struct key owner = { { 1 } }, other = { { 2 } };
    const struct wire_journal journal = { .owner = owner, .born_unix_ms = 1000 };
    unsigned heard;
    hear(FRAME_JOURNAL, &journal, &heard);
    be_admitted_by(&other);
    assert_false(member->admitted);
    assert_int_equal(out.count, 1);
    assert_int_equal(effects[0].kind, FRAME_NOTE);
    be_admitted_by(&owner);
    assert_true(member->admitted);
    for (uint32_t i = 0; i < out.count; i++) assert_int_not_equal(effects[i].kind, FRAME_JOURNAL);

    *member = (struct member){ .coordinator = other }; // Of the ticket
    hear(FRAME_JOURNAL, &journal, &heard);
    be_admitted_by(&owner);
    assert_false(member->admitted);
    be_admitted_by(&other);
    assert_true(member->admitted && key_equal(&member->journal.owner, &other));
    bool is_stored = false;
    for (uint32_t i = 0; i < out.count; i++) is_stored |= effects[i].kind == FRAME_JOURNAL;
    assert_true(is_stored);

    const struct wire_ack proof = { .kind = FRAME_POSITION, .round = 90 };
    member->position.log_seq = 90;
    for (int i = 0; i < 2; i++) {
        member_hear_proof(member, &(struct msg){ .kind = FRAME_ACK,
                                                 .body = &proof,
                                                 .incarnation = 2000,
                                                 .sender = i == 0 ? owner : other });
        assert_int_equal(member->proved_incarnation, i == 0 ? 0 : 2000);
    }
}

static void beat(uint64_t incarnation, uint64_t log_seq, uint64_t roster_version)
{
    static const uint8_t frame[100];
    const struct wire_beat body = { .log_seq = log_seq, .roster_version = roster_version };
    const struct msg in = { .kind = FRAME_BEAT,
                            .from = "coordinator",
                            .run = "",
                            .body = &body,
                            .incarnation = incarnation,
                            .frame = frame,
                            .frame_bytes = sizeof frame };
    out = (struct outbox){ effects, 0, 16, bytes, 0, sizeof bytes };
    member_hear(member, &in, &out);
}

// An older copy of the ledger was up for a while, and the owner gave up what is known of it: its
// counts say nothing, neither of roster and round nor of how far the ledger is.
static void what_the_owner_gave_up_is_forgotten(void **state)
{
    (void)state;
    const struct wire_ack proof = { .kind = FRAME_POSITION, .round = 90 };
    member->admitted = true;
    beat(1000, 90, 30);
    member->roster.version = 30, member->has_round = true;
    beat(2000, 50, 3); // Another life, that has proved nothing
    assert_int_equal(member->position.log_seq, 90);
    assert_int_equal(out.effects[0].kind, FRAME_POSITION);
    member_hear_proof(member,
                      &(struct msg){ .kind = FRAME_ACK, .body = &proof, .incarnation = 2000 });
    beat(2000, 51, 3);
    assert_int_equal(member->position.log_seq, 51);
    member->journal.position.log_seq = 90;
    assert_true(member_should_keep(member));
    assert_false(member->has_round);
    assert_int_equal(member->roster.version, 0); // Whatever comes is newer
    member->has_round = true;
    beat(2000, 50, 3); // Overtaken: no life of its own
    assert_int_equal(member->position.log_seq, 51);
    assert_true(member->has_round);
}

static struct wire_member line(uint32_t index, uint8_t state)
{
    struct wire_member line = { .index = index, .role = ACTOR_TRAINER, .state = state };
    line.key.bytes[0] = (uint8_t)(index + 1);
    return line;
}

// Hears of the roster by the life `incarnation` of the coordinator. Whether it asks for the whole one.
static bool asks_after(uint16_t kind, const void *body, uint64_t incarnation)
{
    const struct msg in = {
        .kind = kind, .from = "coordinator", .run = "", .body = body, .incarnation = incarnation
    };
    out = (struct outbox){ effects, 0, 16, bytes, 0, sizeof bytes };
    member->proved_incarnation = incarnation; // It is followed
    member_hear(member, &in, &out);
    for (uint32_t i = 0; i < out.count; i++)
        if (effects[i].kind == FRAME_ASK) return true;
    return false;
}

// Also one that overlaps what is known; not one after a gap, nor one of a life that did not tell the roster: its
// ledger may be another.
static void the_roster_follows_its_changes(void **state)
{
    (void)state;
    const struct wire_member lines[] = { line(0, MEMBER_PENDING), line(1, MEMBER_PENDING) };
    const struct wire_member next[] = { line(1, MEMBER_HEALTHY), line(2, MEMBER_PENDING) };
    const struct wire_member far = line(9, MEMBER_PENDING);
    const struct roster *roster = &member->roster;
    member->admitted = true;
    assert_false(asks_after(FRAME_ROSTER, &(struct wire_roster){ 5, lines, 2 }, 1000));
    assert_int_equal(roster->count, 2);
    assert_true(asks_after(FRAME_MEMBERS, &(struct wire_members){ 6, 8, next, 2 }, 1000));
    assert_true(asks_after(FRAME_MEMBERS, &(struct wire_members){ 5, 8, &far, 1 }, 1000));
    assert_int_equal(roster->version, 5);
    assert_int_equal(roster->count, 2);
    assert_false(asks_after(FRAME_MEMBERS, &(struct wire_members){ 4, 7, next, 2 }, 1000));
    assert_int_equal(roster->version, 7);
    assert_int_equal(roster->count, 3);
    assert_int_equal(roster_count(roster, ACTOR_TRAINER, MEMBER_HEALTHY), 1);
    assert_false(asks_after(FRAME_MEMBERS, &(struct wire_members){ 4, 7, lines, 2 }, 1000));
    assert_int_equal(roster_count(roster, ACTOR_TRAINER, MEMBER_HEALTHY), 1); // It came late

    assert_true(asks_after(FRAME_MEMBERS, &(struct wire_members){ 7, 8, lines, 2 }, 2000));
    assert_int_equal(roster->version, 7);
    assert_false(asks_after(FRAME_ROSTER, &(struct wire_roster){ 3, lines, 1 }, 2000));
    assert_int_equal(roster->version, 3);
    assert_int_equal(roster->count, 1);
}

// Also where more than a message has room for would keep it from those that follow.
static void every_provider_has_its_turn(void **state)
{
    (void)state;
    struct member *self = member;
    struct wire_holder list[LIST];
    bool met[PROVIDERS] = { false };
    self->roster.count = PROVIDERS;
    for (uint32_t i = 0; i < PROVIDERS; i++) {
        self->roster.members[i] =
            (struct wire_member){ .index = i, .role = ACTOR_PROVIDER, .state = MEMBER_HEALTHY };
        snprintf(self->roster.members[i].endpoint, sizeof self->roster.members[i].endpoint,
                 "tcp://127.0.0.1:%u", 10000 + i);
    }
    self->index = 7;
    for (uint64_t number = 1; number <= PROVIDERS; number++) {
        assert_int_equal(member_providers(self, number, list, LIST), LIST);
        for (uint32_t i = 0; i < LIST; i++) {
            const uint32_t provider = (uint32_t)atoi(strrchr(list[i].endpoint, ':') + 1) - 10000;
            assert_int_equal(provider, (7 + number + i) % PROVIDERS);
            met[provider] = true;
        }
    }
    for (uint32_t i = 0; i < PROVIDERS; i++) assert_true(met[i]);
}

static bool holds(const struct wire_member *other)
{
    return other->role == ACTOR_TRAINER && other->state == MEMBER_HEALTHY;
}

// Whatever stands next to it in the roster: providers that hold what it lacks are asked first, and
// in some try each of them.
static void no_neighbours_shut_anybody_out(void **state)
{
    (void)state;
    enum { HOSTILE = 100, MEMBERS = 300, MAX = 64, TRIES = 6 };
    static struct wire_holder list[MAX];
    bool met[MEMBERS] = { false };
    struct member *self = member;
    self->roster.count = MEMBERS;
    self->index = 20;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        const bool hostile = i > self->index && i <= self->index + HOSTILE;
        self->roster.members[i] = (struct wire_member){
            .index = i, .role = i % 2 ? ACTOR_WITNESS : ACTOR_TRAINER, .state = MEMBER_HEALTHY
        };
        if (hostile && !(i % 2)) self->roster.members[i].state = MEMBER_PENDING;
        snprintf(self->roster.members[i].endpoint, sizeof self->roster.members[i].endpoint,
                 "tcp://127.0.0.1:%u", 10000 + i);
    }
    for (uint32_t tries = 0; tries < TRIES; tries++) {
        assert_int_equal(member_holders(self, 25, tries, list, MAX), MAX);
        for (uint32_t i = 0; i < MAX; i++) {
            const uint32_t holder = (uint32_t)atoi(strrchr(list[i].endpoint, ':') + 1) - 10000;
            assert_int_equal(i == 0, holder == 25);
            assert_true(i == 0 || holds(&self->roster.members[holder]));
            met[holder] = true;
        }
    }
    for (uint32_t i = 0; i < MEMBERS; i++)
        if (i != self->index && holds(&self->roster.members[i])) assert_true(met[i]);
}

// ---- whether others can connect to it ------------------------------------------------------------

static uint32_t count_said(uint16_t kind)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < out.count; i++) count += effects[i].kind == kind;
    return count;
}

static void hear_at(uint64_t now_ms, uint16_t kind, const void *body)
{
    const bool local = kind == FRAME_START || kind == FRAME_WAKE;
    const struct msg in = {
        .now_ms = now_ms, .kind = kind, .from = local ? "" : "coordinator", .run = "", .body = body
    };
    out = (struct outbox){ effects, 0, 16, bytes, 0, sizeof bytes };
    member_hear(member, &in, &out);
}

static void start_asking(void)
{
    memset(member, 0, sizeof *member);
    member->address.is_checked = true;
    snprintf(member->endpoint, sizeof member->endpoint, "tcp://198.51.100.4:7000");
    hear_at(1000, FRAME_START, &(struct wire_start){ .instance = 50 });
    hear_at(1100, FRAME_WELCOME, &(struct wire_welcome){ 0 });
    assert_int_equal(count_said(FRAME_REACH), 1);
    assert_int_equal(count_said(FRAME_JOIN), 0);
}

static void wake(uint64_t now_ms) { hear_at(now_ms, FRAME_WAKE, &(struct wire_wake){ now_ms }); }

static void refuse_reach(uint64_t now_ms, uint8_t reason, uint64_t number)
{
    const struct wire_refused refused = {
        .kind = FRAME_REACH, .reason = reason, .round = number, .text = "nobody answers at x"
    };
    hear_at(now_ms, FRAME_REFUSED, &refused);
}

static void a_member_asks_before_it_joins(void **state)
{
    (void)state;
    start_asking();
    wake(1300);
    assert_int_equal(count_said(FRAME_REACH), 0);
    wake(2100); // The question or its answer was lost
    assert_int_equal(count_said(FRAME_REACH), 1);
    hear_at(2110, FRAME_ACK, &(struct wire_ack){ .kind = FRAME_REACH, .round = 49 });
    assert_int_equal(count_said(FRAME_JOIN), 0); // That was another process of ours
    hear_at(2110, FRAME_ACK, &(struct wire_ack){ .kind = FRAME_REACH, .round = 50 });
    assert_int_equal(count_said(FRAME_JOIN), 1);
    wake(9000);
    assert_int_equal(count_said(FRAME_REACH), 0);
    assert_int_equal(count_said(FRAME_JOIN), 1); // Its retry

    memset(member, 0, sizeof *member); // --unchecked-address
    hear_at(1000, FRAME_START, &(struct wire_start){ .instance = 50 });
    assert_int_equal(count_said(FRAME_REACH), 0);
    assert_int_equal(count_said(FRAME_JOIN), 1);
}

static void a_member_that_nobody_answers_joins(void **state)
{
    (void)state;
    start_asking();
    wake(6099);
    assert_int_equal(count_said(FRAME_JOIN), 0);
    member->address.ask_ms = 9000; // Not due by itself
    wake(6300);
    assert_int_equal(effects[1].kind, FRAME_REACH); // After the alarm, and before the JOIN
    assert_int_equal(effects[2].kind, FRAME_JOIN);
    start_asking();
    refuse_reach(1200, REFUSAL_NOT_NOW, 50);
    wake(1300);
    assert_int_equal(count_said(FRAME_JOIN), 1);
    assert_int_equal(count_said(FRAME_REACH), 0);
    hear_at(1310, FRAME_ADMITTED, &(struct wire_admitted){ .instance = 50, .born_unix_ms = 1 });
    wake(6300); // It still wants to know
    assert_int_equal(count_said(FRAME_REACH), 1);
    wake(7400);
    wake(21400); // But not for ever
    assert_int_equal(count_said(FRAME_REACH), 0);
    assert_false(member->address.is_unknown);
}

static void a_member_that_nobody_reaches_ends(void **state)
{
    (void)state;
    start_asking();
    refuse_reach(1200, REFUSAL_UNREACHABLE, 49);
    assert_false(member->address.is_refused);
    refuse_reach(1200, REFUSAL_UNREACHABLE, 50); // Perhaps an accident
    assert_int_equal(count_said(FRAME_QUIT), 0);
    refuse_reach(1210, REFUSAL_UNREACHABLE, 50); // The same answer again
    assert_int_equal(count_said(FRAME_QUIT), 0);
    wake(3199);
    assert_int_equal(count_said(FRAME_REACH) + count_said(FRAME_JOIN), 0);
    wake(3400);
    assert_int_equal(count_said(FRAME_REACH), 1);
    assert_int_equal(count_said(FRAME_JOIN), 0);
    refuse_reach(3410, REFUSAL_NOT_NOW, 51);
    wake(3700);
    assert_int_equal(count_said(FRAME_REACH) + count_said(FRAME_JOIN), 0);
    wake(5500);
    assert_int_equal(count_said(FRAME_REACH), 1);
    assert_int_equal(count_said(FRAME_JOIN), 0);
    unsigned heard;
    const struct wire_refused refused = { .kind = FRAME_REACH,
                                          .reason = REFUSAL_UNREACHABLE,
                                          .round = 51,
                                          .text = "nobody answers at x" };
    assert_int_equal(hear(FRAME_REFUSED, &refused, &heard), EX_CONFIG);
    assert_int_equal(heard, 0);
}

// The text of the note, or "".
static const char *find_note(void)
{
    static _Alignas(8) uint8_t unpacked[2048];
    struct wire_arena arena = { .bytes = unpacked, .max = sizeof unpacked };
    struct wire_refusal refusal;
    const void *note;
    for (uint32_t i = 0; i < out.count; i++)
        if (effects[i].kind == FRAME_NOTE && wire_unpack_body(effects[i].body, effects[i].bytes,
                                                              FRAME_NOTE, &arena, &note, &refusal))
            return ((const struct wire_note *)note)->text;
    return "";
}

static void refuse_as_blocked(uint64_t now_ms, uint64_t number)
{
    const struct wire_refused refused = {
        .kind = FRAME_REACH,
        .reason = REFUSAL_UNREACHABLE,
        .round = number,
        .text = "nobody answers at 198.51.100.4:7000: connection timed out; open this port in the "
                "firewall, or give --announce an address and port that lead here"
    };
    hear_at(now_ms, FRAME_REFUSED, &refused);
}

static void lapse(uint64_t now_ms)
{
    const struct wire_refused lost = { .kind = FRAME_PING, .reason = REFUSAL_NOT_MEMBER };
    hear_at(now_ms, FRAME_REFUSED, &lost);
}

// In the run at 2120, after the question 50.
static void come_in(void)
{
    start_asking();
    hear_at(2110, FRAME_ACK, &(struct wire_ack){ .kind = FRAME_REACH, .round = 50 });
    hear_at(2120, FRAME_ADMITTED, &(struct wire_admitted){ .instance = 50, .born_unix_ms = 1 });
    assert_true(member->admitted);
}

// A firewall may have closed since it joined first: the others would wait for it in every round, until
// it is dropped, and again in the next epoch.
static void a_member_that_is_cut_off_stays_out_until_it_is_reached(void **state)
{
    (void)state;
    come_in();
    lapse(60000);
    wake(60200);
    assert_int_equal(count_said(FRAME_REACH), 1);
    assert_int_equal(count_said(FRAME_JOIN), 0);
    refuse_as_blocked(63200, 51); // Perhaps an accident
    wake(65200);
    assert_int_equal(count_said(FRAME_REACH), 1);
    refuse_as_blocked(68200, 52);
    assert_int_equal(count_said(FRAME_QUIT), 0);
    assert_string_equal(
        find_note(),
        "address.refused nobody reaches us at 198.51.100.4:7000 (connection timed out): the run "
        "goes on without us; open this port in the firewall; asking again every 10 s");
    wake(78100); // Nobody's silence lets it in
    assert_int_equal(count_said(FRAME_REACH) + count_said(FRAME_JOIN), 0);
    wake(78300);
    assert_int_equal(count_said(FRAME_REACH), 1);
    assert_int_equal(count_said(FRAME_JOIN), 0);
    refuse_as_blocked(81300, 53);
    assert_string_equal(find_note(), ""); // Said once
    wake(91400);
    assert_int_equal(count_said(FRAME_REACH), 1);
    hear_at(91410, FRAME_ACK, &(struct wire_ack){ .kind = FRAME_REACH, .round = 54 });
    assert_int_equal(count_said(FRAME_JOIN), 1);
    assert_non_null(strstr(find_note(), "address.reached "));
}

static void each_join_has_its_question(void **state)
{
    (void)state;
    come_in();
    lapse(5000);
    wake(5200);
    hear_at(5210, FRAME_ACK, &(struct wire_ack){ .kind = FRAME_REACH, .round = 50 });
    assert_int_equal(count_said(FRAME_JOIN), 0); // The answer of that time
    hear_at(5210, FRAME_ACK, &(struct wire_ack){ .kind = FRAME_REACH, .round = 51 });
    assert_int_equal(count_said(FRAME_JOIN), 1);
    wake(15000); // No coordinator hears it
    assert_int_equal(count_said(FRAME_REACH), 0);
    assert_int_equal(count_said(FRAME_JOIN), 1);
    wake(16000); // The next one may be elsewhere
    assert_int_equal(count_said(FRAME_REACH), 1);
    assert_int_equal(count_said(FRAME_JOIN), 0);

    memset(member, 0, sizeof *member); // --unchecked-address
    hear_at(1000, FRAME_START, &(struct wire_start){ .instance = 50 });
    hear_at(2120, FRAME_ADMITTED, &(struct wire_admitted){ .instance = 50, .born_unix_ms = 1 });
    lapse(60000);
    wake(60200);
    assert_int_equal(count_said(FRAME_REACH), 0);
    assert_int_equal(count_said(FRAME_JOIN), 1);
}

// No answer came when it joined again. Without its pings, the run soon goes on without it.
static void a_member_that_is_found_unreachable_in_the_run_leaves_it(void **state)
{
    (void)state;
    come_in();
    lapse(60000);
    wake(60200);
    wake(66300);
    assert_int_equal(count_said(FRAME_JOIN), 1);
    hear_at(66310, FRAME_ADMITTED, &(struct wire_admitted){ .instance = 50, .born_unix_ms = 1 });
    refuse_as_blocked(69300, 51);
    assert_true(member->admitted);
    wake(71400);
    refuse_as_blocked(74400, 52);
    assert_int_equal(count_said(FRAME_QUIT), 0);
    assert_false(member->admitted);
    wake(84500);
    assert_int_equal(count_said(FRAME_REACH), 1);
    assert_int_equal(count_said(FRAME_JOIN) + count_said(FRAME_PING), 0);
}

TESTS(TEST_WITH(a_member_that_is_cut_off_stays_out_until_it_is_reached, set_up, tear_down),
      TEST_WITH(each_join_has_its_question, set_up, tear_down),
      TEST_WITH(a_member_that_is_found_unreachable_in_the_run_leaves_it, set_up, tear_down),
      TEST_WITH(a_member_asks_before_it_joins, set_up, tear_down),
      TEST_WITH(a_member_that_nobody_answers_joins, set_up, tear_down),
      TEST_WITH(a_member_that_nobody_reaches_ends, set_up, tear_down),
      TEST_WITH(a_member_refused_for_its_endpoint_ends, set_up, tear_down),
      TEST_WITH(another_run_of_the_name_is_another_life, set_up, tear_down),
      TEST_WITH(a_beat_of_another_run_ends_a_member, set_up, tear_down),
      TEST_WITH(only_the_owner_is_followed, set_up, tear_down),
      TEST_WITH(the_roster_follows_its_changes, set_up, tear_down),
      TEST_WITH(what_the_owner_gave_up_is_forgotten, set_up, tear_down),
      TEST_WITH(every_provider_has_its_turn, set_up, tear_down),
      TEST_WITH(no_neighbours_shut_anybody_out, set_up, tear_down))
