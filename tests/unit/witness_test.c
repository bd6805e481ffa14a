// A witness with a replica names its own base alone, and none while its replica is not at the
// round's step; a witness without one names all. And which claims it can show, and which it does
// not fetch.

#include "common/pace/rounds/witness.h"
#include "tests/test.h"
#include <string.h>

static struct member member;
static struct round_view view;
static struct witness witness;
static struct blobs blobs;
static uint64_t now_ms;

static struct hash named(const char *name) { return hash_of(name, strlen(name)); }

static struct key key_named(const char *name)
{
    struct key key;
    memcpy(key.bytes, named(name).bytes, KEY_BYTES);
    return key;
}

// Two trainers, of which the first is elected; both have claimed, on different parameters.
static struct wire_rounds_config strategy;

static int set_up(void **state)
{
    (void)state;
    static struct share shares[2] = { { .trainer = 0, .begin = 0, .end = 1 },
                                      { .trainer = 1, .begin = 1, .end = 2 } };
    static uint32_t by_trainer[2] = { 0, 1 };
    memset(&member, 0, sizeof member);
    memset(&view, 0, sizeof view);
    memset(&witness, 0, sizeof witness);
    memset(&blobs, 0, sizeof blobs);
    member.admitted = member.has_round = member.has_run = true;
    member.now = (struct wire_run){ .phase = PHASE_TRAIN, .round = 5 };
    view.round.opened.round = 5;
    view.round.clients_count = 2, view.round.witnesses_count = 1;
    view.round.clients[1].member = 1;
    strategy.payload_bytes = 1;
    member.config.strategy = (struct wire_part){ FRAME_ROUNDS_CONFIG, &strategy };
    member.roster.count = 2;
    for (uint32_t i = 0; i < 2; i++) {
        member.roster.members[i] =
            (struct wire_member){ .index = i, .role = ACTOR_TRAINER, .state = MEMBER_HEALTHY };
    }
    view.deal =
        (struct deal){ .shares = shares, .by_trainer = by_trainer, .trainers = 2, .count = 2 };
    witness_begin(&witness, &view, &member, 0);
    for (uint32_t i = 0; i < 2; i++) {
        const struct hash payload = named(i ? "payload 1" : "payload 0");
        witness.sightings[i].claimed = true;
        witness.sightings[i].seen =
            (struct wire_seen){ .client = i,
                                .result = named(i ? "result 1" : "result 0"),
                                .payload = payload,
                                .payload_bytes = 1,
                                .base = named(i ? "false" : "true") };
        blobs_have(&blobs, &(struct wire_blob){ payload, 1 }, 3);
    }
    return 0;
}

static void a_replica_names_its_own_base(void **state)
{
    (void)state;
    witness.has_replica = true;
    witness.base = named("true");
    assert_true(witness_is_due(&witness, &view, &blobs, &member, now_ms));
    witness_cast(&witness, &view, &blobs, &member, now_ms);
    assert_true(witness.vote.complete);
    assert_int_equal(witness.vote.seen_count, 1);
    assert_int_equal(witness.vote.seen[0].client, 0);
}

// A replica that is not yet at the step waits as long as it may; then it names no base.
static void a_replica_that_is_behind_names_no_base(void **state)
{
    (void)state;
    witness.has_replica = true;
    assert_false(witness_is_due(&witness, &view, &blobs, &member, now_ms));
    member.now.phase = PHASE_WITNESS;
    assert_true(witness_is_due(&witness, &view, &blobs, &member, now_ms));
    witness_cast(&witness, &view, &blobs, &member, now_ms);
    assert_false(witness.vote.complete);
    assert_int_equal(witness.vote.seen_count, 0);
}

static void without_a_replica_all_bases_are_named(void **state)
{
    (void)state;
    assert_true(witness_is_due(&witness, &view, &blobs, &member, now_ms));
    witness_cast(&witness, &view, &blobs, &member, now_ms);
    assert_int_equal(witness.vote.seen_count, 2);
}

// How many CLAIM_COPYs a SEND_CLAIM brings.
static uint32_t claim_copies(uint64_t round, uint32_t client)
{
    static struct effect effects[8];
    static uint8_t bytes[8192];
    struct outbox out = { effects, 0, 8, bytes, 0, sizeof bytes };
    witness_hear_send_claim(&witness, &(struct wire_send_claim){ round, client }, &out);
    for (uint32_t i = 0; i < out.count; i++) assert_int_equal(effects[i].kind, FRAME_CLAIM_COPY);
    return out.count;
}

static void sign(uint32_t client)
{
    witness.sightings[client].frame_bytes = 3;
    memcpy(witness.sightings[client].frame, "abc", 3);
}

static void next_round(void)
{
    view.round.opened.round++;
    witness_begin(&witness, &view, &member, now_ms);
}

// The question comes by mail and the next round by the news: either may be first.
static void the_claims_of_the_round_before_can_be_shown(void **state)
{
    (void)state;
    sign(0);
    assert_int_equal(claim_copies(5, 0), 1);
    assert_int_equal(claim_copies(5, 1), 0); // Its frame was not kept
    next_round();
    assert_int_equal(claim_copies(5, 0), 1);
    assert_int_equal(claim_copies(6, 0), 0); // No claim has come yet
    next_round();
    assert_int_equal(claim_copies(5, 0), 0);
    assert_int_equal(claim_copies(6, 0), 0);
}

// A claim by mail as client 1 of the open round would send it.
static const char *head_run = "r";
static uint32_t hear_claim(const char *payload, uint32_t payload_bytes, uint32_t frame_bytes)
{
    static struct effect effects[8];
    static uint8_t bytes[8192], frame[CLAIM_FRAME_MAX + 1];
    struct outbox out = { effects, 0, 8, bytes, 0, sizeof bytes };
    const struct wire_claim claim = { .run = "r",
                                      .round = 5,
                                      .client = 1,
                                      .begin = 1,
                                      .end = 2,
                                      .author = key_named("key 1"),
                                      .payload = named(payload),
                                      .payload_bytes = payload_bytes };
    const struct msg in = { .kind = FRAME_CLAIM,
                            .run = head_run,
                            .from = "trainer.1",
                            .body = &claim,
                            .sender = key_named("key 1"),
                            .frame = frame,
                            .frame_bytes = frame_bytes };
    strcpy(member.run, "r");
    member.roster.members[1].key = key_named("key 1");
    member.key = key_named("key 0");
    witness_hear_claim(
        &witness, &view,
        &(struct member_turn){ .member = &member, .blobs = &blobs, .in = &in, .out = &out });
    return out.count;
}

// How many CLAIM_COPYs it brings that this result of client 0 is committed.
static uint32_t committed(uint64_t round, const char *result)
{
    static struct effect effects[8];
    static uint8_t bytes[8192];
    struct outbox out = { effects, 0, 8, bytes, 0, sizeof bytes };
    struct wire_accepted accepted = { .client = 0, .result = named(result) };
    uint32_t count = 0;
    witness_hear_commit(
        &witness,
        &(struct wire_commit){ .round = round, .accepted = &accepted, .accepted_count = 1 }, &out);
    for (uint32_t i = 0; i < out.count; i++) count += effects[i].kind == FRAME_CLAIM_COPY;
    return count;
}

static void a_claim_that_was_not_committed_is_shown(void **state)
{
    (void)state;
    sign(0);
    assert_int_equal(committed(5, "result 0"), 0);
    assert_int_equal(committed(5, "another"), 1);
    assert_int_equal(committed(6, "another"), 0);
    next_round(); // The news of a round may come before the commit
    for (int i = 0; i < 10 * PROOFS_MAX; i++)
        assert_int_equal(committed(5, "another"), i < PROOFS_MAX - 1);
    assert_int_equal(committed(6, "another"), 0); // It has not claimed
}

static void what_could_not_be_shown_is_no_claim(void **state)
{
    (void)state;
    assert_int_equal(CLAIM_FRAME_MAX, wire_frame_max(FRAME_CLAIM)); // No longer one is unpacked
    witness.sightings[1].claimed = false;
    hear_claim("a", 1, CLAIM_FRAME_MAX + 1);
    assert_false(witness.sightings[1].claimed);
    hear_claim("a", 1, 0);
    assert_false(witness.sightings[1].claimed);
    head_run = "elsewhere"; // The coordinator takes no proof with another run in its head
    hear_claim("a", 1, 100);
    assert_false(witness.sightings[1].claimed);
    head_run = "r";
    hear_claim("a", 1, CLAIM_FRAME_MAX);
    assert_true(witness.sightings[1].claimed);
    assert_int_equal(hear_claim("b", 1, 100), 3); // A note and two claim_copies
    assert_int_equal(claim_copies(5, 1), 1);
}

static void replies_of_a_witness_are_rate_limited(void **state)
{
    (void)state;
    uint32_t answers = 0;
    witness.sightings[1].claimed = false;
    for (int i = 0; i < 10 * ANSWERS_MAX; i++) answers += hear_claim("a", 1, 100);
    assert_int_equal(answers, ANSWERS_MAX);
    for (int i = 0; i < 10 * PROOFS_MAX; i++) // Each a note and two claim_copies
        assert_int_equal(hear_claim("b", 1, 100), i < PROOFS_MAX ? 3 : 0);
    view.round.opened.round = 6;
    witness_begin(&witness, &view, &member, 0);
    assert_int_equal(witness.sightings[1].answers, 0);
}

// With or without a replica: what a claim says decides how much is fetched and kept.
static bool takes(uint32_t payload_bytes)
{
    witness.sightings[1].claimed = false;
    memset(&blobs, 0, sizeof blobs);
    hear_claim("a", payload_bytes, 100);
    assert_int_equal(blobs.wanted, witness.sightings[1].claimed);
    return witness.sightings[1].claimed;
}

static void a_claim_of_another_size_is_refused(void **state)
{
    (void)state;
    strategy.payload_bytes = 0; // The run's CONFIG is not here yet
    assert_false(takes(1));
    assert_false(takes(0));
    strategy.payload_bytes = 100;
    assert_true(takes(100));
    assert_false(takes(99));
    assert_false(takes(1u << 30));
}

// ---- who is late --------------------------------------------------------------------------------

// The payload of client 0 comes after `first_ms`, that of client 1 does not come.
static void begin_round(uint32_t first_ms)
{
    next_round();
    member.now.round = view.round.opened.round;
    memset(&blobs, 0, sizeof blobs);
    for (uint32_t i = 0; i < 2; i++) {
        witness.sightings[i].claimed = true;
        witness.sightings[i].seen = (struct wire_seen){ .client = i,
                                                        .payload = named(i ? "p1" : "p0"),
                                                        .payload_bytes = 1 };
    }
    now_ms += first_ms;
    blobs_have(&blobs, &(struct wire_blob){ named("p0"), 1 }, 3);
    witness_note(&witness, &view, &blobs, now_ms);
}

// Whether the witness would vote so long after the opening.
static bool votes_at(uint64_t waited_ms)
{
    now_ms = witness.began_ms + waited_ms;
    witness_note(&witness, &view, &blobs, now_ms);
    return witness_is_due(&witness, &view, &blobs, &member, now_ms);
}

static void the_rest_comes(void)
{
    blobs_have(&blobs, &(struct wire_blob){ named("p1"), 1 }, 3);
    assert_true(votes_at(now_ms - witness.began_ms));
}

static void what_is_usual(void)
{
    strategy.least_train_ms = 300;
    for (int i = 0; i < LATENESS_FIRST; i++) {
        begin_round(200);
        assert_false(votes_at(1000000)); // It is not known yet what is usual
        now_ms = witness.began_ms + 200;
        the_rest_comes();
    }
}

static void a_late_result_is_not_waited_for(void **state)
{
    (void)state;
    what_is_usual();
    begin_round(190);
    assert_false(votes_at(600));
    assert_true(votes_at(601));
    witness_cast(&witness, &view, &blobs, &member, now_ms);
    assert_true(witness.vote.complete);
    assert_int_equal(witness.vote.seen_count, 1);
}

static void a_vote_says_whose_result_came_last(void **state)
{
    (void)state;
    what_is_usual();
    begin_round(190);
    assert_false(votes_at(450));
    the_rest_comes();
    assert_true(votes_at(450));
    witness_cast(&witness, &view, &blobs, &member, now_ms);
    assert_int_equal(witness.vote.half_ms, 190);
    assert_int_equal(witness.vote.last, 1);
    assert_int_equal(witness.vote.last_ms, 450);
    next_round();
    assert_int_equal(witness.last_ms, 0);
}

// At the start of an epoch: the round has come, but not yet the roster in which its trainers are
// healthy.
static void with_an_older_roster_than_the_rounds_all_are_awaited(void **state)
{
    (void)state;
    next_round();
    member.now.round = view.round.opened.round;
    view.round.opened.roster_version = 1;
    for (uint32_t i = 0; i < 2; i++) member.roster.members[i].state = MEMBER_PENDING;
    assert_false(votes_at(10));
    member.roster.version = 1;
    for (uint32_t i = 0; i < 2; i++) member.roster.members[i].state = MEMBER_HEALTHY;
    assert_false(votes_at(20));
    for (uint32_t i = 0; i < 2; i++) member.roster.members[i].state = MEMBER_DROPPED;
    assert_true(votes_at(30));
}

// A member learns in each round, as it may be elected seldom.
static void a_member_that_is_not_elected_learns_what_is_usual(void **state)
{
    (void)state;
    strategy.least_train_ms = 300;
    for (int i = 0; i < LATENESS_FIRST; i++) {
        view.round.opened.round = 4;
        view.round.witnesses[0].member = 1;
        next_round();
        memset(&blobs, 0, sizeof blobs);
        hear_claim("p1", 1, 0);
        now_ms += 200;
        witness_note(&witness, &view, &blobs, now_ms);
        assert_int_equal(witness.half_ms, 0); // Its payload is on its way
        blobs_have(&blobs, &(struct wire_blob){ named("p1"), 1 }, 3);
        witness_note(&witness, &view, &blobs, now_ms);
        assert_int_equal(witness.half_ms, 200);
        assert_false(witness_is_due(&witness, &view, &blobs, &member, now_ms));
    }
    view.round.witnesses[0].member = 0;
    begin_round(190);
    assert_false(votes_at(600));
    assert_true(votes_at(601));
}

static void where_all_are_slow_nobody_is_late(void **state)
{
    (void)state;
    what_is_usual();
    begin_round(5000);
    assert_false(votes_at(15000));
    assert_true(votes_at(15001));
}

static void half_of_the_results_are_waited_for(void **state)
{
    (void)state;
    what_is_usual();
    begin_round(0);
    next_round();
    member.now.round = view.round.opened.round;
    assert_false(votes_at(1000000));
}

static void the_least_time_is_waited(void **state)
{
    (void)state;
    strategy.least_train_ms = 3000;
    for (int i = 0; i < LATENESS_FIRST; i++) {
        begin_round(200);
        the_rest_comes();
    }
    begin_round(200);
    assert_false(votes_at(3000));
    assert_true(votes_at(3001));
}

// Only its payload is fetched, so that it is here when the commit comes: nobody has verified the
// claim.
static void who_does_not_vote_believes_no_claim(void **state)
{
    (void)state;
    const struct wire_blob fresh = { named("fresh"), 1 }, other = { named("other"), 1 };
    view.round.witnesses[0].member = 1;
    next_round();
    view.round.opened.round = witness.round = 5;
    assert_int_equal(hear_claim("fresh", 1, 0), 0);
    assert_int_equal(blobs_state(&blobs, &fresh), BLOB_WANTED);
    assert_int_equal(hear_claim("other", 1, 0), 0); // One of each client
    assert_int_equal(blobs_state(&blobs, &other), BLOB_UNKNOWN);
    assert_false(witness.sightings[1].claimed);
    assert_int_equal(claim_copies(5, 1), 0);
    assert_int_equal(committed(5, "result 2"), 0);
}

// Of one that votes: a claim that nobody has verified has no frame.
static void who_votes_takes_no_claim_without_a_signature(void **state)
{
    (void)state;
    next_round();
    view.round.opened.round = witness.round = 5;
    assert_int_equal(hear_claim("fresh", 1, 0), 1); // A note that it is refused
    assert_false(witness.sightings[1].claimed);
    assert_int_equal(hear_claim("fresh", 1, CLAIM_FRAME_MAX), 1); // Its acknowledgement
    assert_true(witness.sightings[1].claimed);
}

TESTS(TEST_WITH(who_does_not_vote_believes_no_claim, set_up, NULL),
      TEST_WITH(who_votes_takes_no_claim_without_a_signature, set_up, NULL),
      TEST_WITH(a_late_result_is_not_waited_for, set_up, NULL),
      TEST_WITH(a_vote_says_whose_result_came_last, set_up, NULL),
      TEST_WITH(with_an_older_roster_than_the_rounds_all_are_awaited, set_up, NULL),
      TEST_WITH(a_member_that_is_not_elected_learns_what_is_usual, set_up, NULL),
      TEST_WITH(where_all_are_slow_nobody_is_late, set_up, NULL),
      TEST_WITH(half_of_the_results_are_waited_for, set_up, NULL),
      TEST_WITH(the_least_time_is_waited, set_up, NULL),
      TEST_WITH(a_replica_names_its_own_base, set_up, NULL),
      TEST_WITH(a_replica_that_is_behind_names_no_base, set_up, NULL),
      TEST_WITH(without_a_replica_all_bases_are_named, set_up, NULL),
      TEST_WITH(the_claims_of_the_round_before_can_be_shown, set_up, NULL),
      TEST_WITH(a_claim_that_was_not_committed_is_shown, set_up, NULL),
      TEST_WITH(what_could_not_be_shown_is_no_claim, set_up, NULL),
      TEST_WITH(replies_of_a_witness_are_rate_limited, set_up, NULL),
      TEST_WITH(a_claim_of_another_size_is_refused, set_up, NULL))
