// parties_test -- who has a part in a round: a newcomer does not get the place of one who has, and an auditor does
// not wait for a residual that nothing can have.

#include "common/pace/rounds/auditor.h"
#include "common/pace/rounds/claims.h"
#include "common/pace/rounds/rounds.h"
#include "tests/test.h"
#include <stdlib.h>

static void *zeroed(size_t bytes)
{
    void *memory = calloc(1, bytes);
    assert_non_null(memory);
    return memory;
}

// The room for members is full, and all of them are gone.
static void a_newcomer_has_no_part_in_the_round(void **state)
{
    (void)state;
    struct run *run = zeroed(sizeof *run);
    const struct interval dealt = { 0, 4 };
    const struct wire_client client = { .member = 0 }, witness = { .member = 1 };
    run_init(run, &pace_rounds.run, 2);
    run->roster.count = MEMBERS_MAX;
    for (uint32_t i = 0; i < MEMBERS_MAX; i++) run->roster.members[i].state = MEMBER_DROPPED;
    assert_int_equal(run_free_place(run), 0);
    round_open((struct round *)(uintptr_t)round_of(run),
               &(struct wire_round){ .round = 1,
                                     .batch_size = 4,
                                     .dealt = &dealt,
                                     .dealt_count = 1,
                                     .clients = &client,
                                     .clients_count = 1,
                                     .witnesses = &witness,
                                     .witnesses_count = 1 });
    assert_int_equal(run_free_place(run), 2);
    free(run);
}

enum { FLOATS = 1000 };
static struct member *member;
static struct blobs *blobs;
static struct replica *replica;
static struct round_view *view;
static struct auditor *auditor;

// We, client 0, audit client 1.
static int set_up(void **state)
{
    (void)state;
    struct wire_member list[2] = {
        { .key = { { 1 } }, .role = ACTOR_TRAINER, .state = MEMBER_HEALTHY },
        { .index = 1, .key = { { 2 } }, .role = ACTOR_TRAINER, .state = MEMBER_HEALTHY },
    };
    member = zeroed(sizeof *member);
    blobs = zeroed(sizeof *blobs);
    replica = zeroed(sizeof *replica);
    view = zeroed(sizeof *view);
    auditor = zeroed(sizeof *auditor);
    member->admitted = member->has_round = member->has_run = true;
    member->round = member->now.round = 2;
    member->now.phase = PHASE_TRAIN;
    strcpy(member->run, "r");
    assert_true(roster_load(&member->roster, 2, list, 2));
    replica->holding = true;
    replica->floats = FLOATS;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(member);
    free(blobs);
    free(replica);
    free(view);
    free(auditor);
    return 0;
}

static void reveal(const struct wire_claim *claim, struct hash residual)
{
    static struct effect effects[16];
    static uint8_t bytes[8192];
    struct outbox out = { effects, 0, 16, bytes, 0, sizeof bytes };
    const struct wire_reveal said = { .claim = *claim,
                                      .residual = { residual, FLOATS * sizeof(float) } };
    const struct msg in = { .now_ms = 1000,
                            .kind = FRAME_REVEAL,
                            .run = "r",
                            .from = "trainer.1",
                            .sender = claim->author,
                            .body = &said };
    const struct member_turn turn = {
        .member = member, .blobs = blobs, .replica = replica, .in = &in, .out = &out
    };
    if (auditor->round == 0) auditor_begin(auditor, view, &turn);
    assert_int_equal(auditor->round, 2);
    auditor_hear_reveal(auditor, view, &turn);
}

static void a_residual_without_a_name_is_not_wanted(void **state)
{
    (void)state;
    const struct wire_claim claim = { .run = "r",
                                      .round = 1,
                                      .end = 1,
                                      .author = member->roster.members[1].key,
                                      .residual_from = { { 5 } },
                                      .payload = { { 6 } },
                                      .payload_bytes = 100 };
    const struct wire_client clients[2] = { { .member = 0 }, { .member = 1 } };
    const struct interval dealt = { 1, 5 }, audited = { 0, 1 };
    const struct wire_audit audit = { .member = 1,
                                      .round = 1,
                                      .result = claim_hash(&claim),
                                      .payload = claim.payload,
                                      .payload_bytes = 100,
                                      .residual_from = claim.residual_from,
                                      .intervals = 1 };
    round_open(&view->round, &(struct wire_round){ .round = 2,
                                                   .step = 1,
                                                   .batch_size = 4,
                                                   .dealt = &dealt,
                                                   .dealt_count = 1,
                                                   .clients = clients,
                                                   .clients_count = 2,
                                                   .audits = &audit,
                                                   .audits_count = 1,
                                                   .audited = &audited,
                                                   .audited_count = 1 });
    reveal(&claim, (struct hash){ 0 });
    assert_int_equal(blobs->count, 0);
    reveal(&claim, (struct hash){ { 7 } });
    assert_int_equal(blobs->count, 1);
}

TESTS(TEST(a_newcomer_has_no_part_in_the_round),
      TEST_WITH(a_residual_without_a_name_is_not_wanted, set_up, tear_down))
