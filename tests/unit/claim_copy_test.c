// Two claims of one round eject their author however many claims others show meanwhile: who shows much
// takes room from nobody but itself. Claims are shown to a coordinator's audit; their signatures are the
// shell's to check.

#include "common/pace/rounds/rounds.h"
#include "common/pace/turn.h"
#include "tests/test.h"
#include <stdlib.h>
#include <string.h>

// Places of the roster. Those that flood are fewer than a third; all but the liar are honest otherwise.
enum { LIAR, ONE, ANOTHER, FIRST_FLOODER, FLOODERS = 5460, MEMBERS = 16384, ROUND = 9 };

static const struct rules rules = { .run_id = "r" };
static struct {
    struct audit audit;
    struct run run;
    struct presence presence;
} * self;

static struct key key_of(uint32_t member)
{
    struct key key = { { 0 } };
    memcpy(key.bytes, &member, sizeof member);
    return key;
}

static void open_round(uint64_t number)
{
    struct round *round = &((struct rounds_run *)(void *)self->run.pace_state)->round;
    self->run.number = round->opened.round = number;
    round->open = true;
}

static int set_up(void **state)
{
    (void)state;
    self = calloc(1, sizeof *self);
    if (!self) return -1;
    run_init(&self->run, &pace_rounds.run, 16);
    open_round(ROUND);
    struct roster *roster = &self->run.roster;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        struct wire_member *member = &roster->members[i];
        *member = (struct wire_member){ .index = i, .state = MEMBER_HEALTHY, .key = key_of(i) };
    }
    struct wire_member *members = malloc(sizeof roster->members);
    if (!members) return -1;
    memcpy(members, roster->members, sizeof roster->members);
    const bool loaded = roster_load(roster, 1, members, MEMBERS);
    free(members);
    return loaded ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    free(self);
    return 0;
}

static void show(uint32_t shower, uint32_t author, uint64_t round, uint32_t payload)
{
    static const uint8_t signature[WIRE_SIGNATURE_BYTES] = { 1 };
    static struct effect effects[128];
    static uint8_t bytes[1 << 20];
    struct outbox out = { effects, 0, 128, bytes, 0, sizeof bytes };
    const struct turn turn = {
        .run = &self->run, .rules = &rules, .presence = &self->presence, .out = &out
    };
    const struct wire_claim claim = { .run = "r",
                                      .author = key_of(author),
                                      .round = round,
                                      .end = 1,
                                      .payload = hash_of(&payload, sizeof payload) };
    const struct wire_head head = { .kind = FRAME_CLAIM, .run = "r", .sender = claim.author };
    uint8_t frame[CLAIM_FRAME_MAX];
    size_t count = wire_pack(&head, &claim, frame, sizeof frame);
    count = wire_put_signature(frame, count, signature, sizeof frame);
    assert_true(count > 0);
    const struct wire_claim_copy claim_copy = { .claim = { frame, (uint32_t)count } };
    const struct msg in = {
        .kind = FRAME_CLAIM_COPY, .run = "r", .sender = key_of(shower), .body = &claim_copy
    };
    audit_hear_claim_copy(&self->audit, &turn, &in);
}

static bool is_ejected(uint32_t member)
{
    return self->run.roster.members[member].state == MEMBER_EJECTED;
}

// Claims of honest members, and of those that flood.
static void flood(uint32_t flooders, uint32_t claims_each)
{
    static uint32_t author = ANOTHER;
    for (uint32_t i = 0; i < claims_each; i++)
        for (uint32_t f = 0; f < flooders; f++) {
            author = author + 1 < MEMBERS ? author + 1 : ANOTHER + 1;
            show(FIRST_FLOODER + f, author, ROUND - author % 3, 1);
        }
}

static void two_claims_of_one_round_eject(void **state)
{
    (void)state;
    show(ONE, LIAR, ROUND, 1);
    show(ONE, LIAR, ROUND, 1);
    show(ANOTHER, LIAR, ROUND - 1, 2);
    show(ANOTHER, LIAR, ROUND - 3, 2); // Too old
    assert_false(is_ejected(LIAR));
    show(ANOTHER, LIAR, ROUND, 2);
    assert_true(is_ejected(LIAR));
}

static void one_that_floods_pushes_nothing_out(void **state)
{
    (void)state;
    show(FIRST_FLOODER, LIAR, ROUND, 1); // First, to make it the oldest that it can give up
    show(ONE, LIAR, ROUND, 1);
    flood(1, CLAIM_COPIES_MAX + 1000);
    show(ANOTHER, LIAR, ROUND, 2);
    assert_true(is_ejected(LIAR));
}

static void one_that_floods_takes_no_room(void **state)
{
    (void)state;
    flood(1, CLAIM_COPIES_MAX + 1000);
    for (uint64_t round = ROUND - 2; round <= ROUND; round++) show(ONE, LIAR, round, 1);
    flood(1, 1000);
    show(ANOTHER, LIAR, ROUND - 2, 2);
    assert_true(is_ejected(LIAR));
}

static void as_many_as_may_lie_leave_each_member_its_newest(void **state)
{
    (void)state;
    flood(FLOODERS, 2);
    show(ONE, LIAR, ROUND, 1);
    flood(FLOODERS, 3);
    show(ANOTHER, LIAR, ROUND, 2);
    assert_true(is_ejected(LIAR));
}

static void what_is_of_no_more_use_makes_room(void **state)
{
    (void)state;
    flood(1, CLAIM_COPIES_MAX);
    open_round(ROUND + 3);
    show(ONE, LIAR, ROUND, 1); // Too old
    assert_int_equal(self->audit.claim_copies_count, CLAIM_COPIES_MAX);
    show(ONE, LIAR, self->run.number, 1);
    show(ONE, LIAR, self->run.number, 2);
    assert_true(is_ejected(LIAR));
}

static void another_at_its_place_did_not_sign_it(void **state)
{
    (void)state;
    show(ONE, LIAR, ROUND, 1);
    audit_forget(&self->audit, LIAR);
    show(ANOTHER, LIAR, ROUND, 2);
    assert_false(is_ejected(LIAR));
}

TESTS(TEST_WITH(two_claims_of_one_round_eject, set_up, tear_down),
      TEST_WITH(one_that_floods_pushes_nothing_out, set_up, tear_down),
      TEST_WITH(one_that_floods_takes_no_room, set_up, tear_down),
      TEST_WITH(as_many_as_may_lie_leave_each_member_its_newest, set_up, tear_down),
      TEST_WITH(what_is_of_no_more_use_makes_room, set_up, tear_down),
      TEST_WITH(another_at_its_place_did_not_sign_it, set_up, tear_down))
