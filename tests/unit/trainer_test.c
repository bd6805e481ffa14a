// A trainer publishes the result of the samples that the round gave it. It publishes none that it
// began for a round which an older copy of the ledger has replaced by another round of the same
// number.

#include "actors/trainer/trainer.h"
#include "common/pace/rounds/rounds_member.h"
#include "tests/test.h"
#include <string.h>

enum { NOW_MS = 1000 };
static uint64_t now_ms = NOW_MS;
static struct trainer trainer;
static struct effect effects[16];
static uint8_t bytes[16384];

static struct hash named(const char *name) { return hash_of(name, strlen(name)); }

static struct key key_named(const char *name)
{
    struct key key;
    memcpy(key.bytes, named(name).bytes, KEY_BYTES);
    return key;
}

// How many effects of this kind it brings.
static uint32_t hear(uint16_t kind, const void *body, uint16_t counted)
{
    struct outbox out = { effects, 0, 16, bytes, 0, sizeof bytes };
    const struct msg in = { .now_ms = now_ms,
                            .kind = kind,
                            .run = "r",
                            .from = "",
                            .incarnation = 1,
                            .sender = key_named("coordinator"),
                            .body = body };
    uint32_t count = 0;
    trainer_step(&trainer, &in, &out);
    for (uint32_t i = 0; i < out.count; i++) count += effects[i].kind == counted;
    return count;
}

// Client 0 of two is ours, and trains.
static uint32_t hear_round(uint32_t samples)
{
    static struct wire_client clients[2] = { { .member = 0 }, { .member = 1 } },
                              witness = { .member = 1 };
    static struct interval dealt;
    dealt = (struct interval){ 0, samples };
    return hear(FRAME_ROUND,
                &(struct wire_round){ .round = 5,
                                      .step = 3,
                                      .seed = 7,
                                      .batch_size = samples,
                                      .dealt = &dealt,
                                      .dealt_count = 1,
                                      .clients = clients,
                                      .clients_count = 2,
                                      .witnesses = &witness,
                                      .witnesses_count = 1 },
                FRAME_TRAIN);
}

static uint32_t claims_of_result(void)
{
    return hear(FRAME_TRAINED,
                &(struct wire_trained){ .round = 5,
                                        .ok = true,
                                        .base = named("parameters"),
                                        .payload = named("payload"),
                                        .payload_bytes = 1 },
                FRAME_CLAIM);
}

static int set_up(void **state)
{
    (void)state;
    now_ms = NOW_MS;
    memset(&trainer, 0, sizeof trainer);
    trainer_init(&trainer);
    struct member *member = &trainer.member;
    strcpy(member->run, "r");
    member->admitted = member->has_config = member->has_run = true;
    member->coordinator = key_named("coordinator");
    member->key = key_named("key 0");
    member->incarnation = 1;
    member->instance = 9;
    member->now = (struct wire_run){ .phase = PHASE_TRAIN, .round = 5, .step = 3 };
    static const struct wire_rounds_config strategy = { .payload_bytes = 1 };
    member->config.strategy = (struct wire_part){ FRAME_ROUNDS_CONFIG, &strategy };
    member->roster.count = 2;
    for (uint32_t i = 0; i < 2; i++)
        member->roster.members[i] = (struct wire_member){
            .index = i, .role = ACTOR_TRAINER, .state = MEMBER_HEALTHY, .instance = 9
        };
    trainer.replica.holding = true;
    trainer.replica.step = 3;
    trainer.replica.digest = named("parameters");
    return 0;
}

static void a_result_is_claimed(void **state)
{
    (void)state;
    assert_int_equal(hear_round(4), 1);
    assert_int_equal(hear_round(4), 0);            // Told once more: the same round
    assert_int_equal(claims_of_result(), 1);       // To all
    assert_int_equal(trainer.member.loss_step, 4); // The loss is told with the line of step 4
    now_ms += MEMBER_RETRY_MS - 1;
    assert_int_equal(hear(FRAME_WAKE, NULL, FRAME_CLAIM), 0);
    now_ms++;
    assert_int_equal(hear(FRAME_WAKE, NULL, FRAME_CLAIM),
                     1); // To the witness, which may have missed it
    assert_int_equal(hear(FRAME_WAKE, NULL, FRAME_CLAIM), 0);
}

static void a_result_of_a_replaced_round_is_not_claimed(void **state)
{
    (void)state;
    assert_int_equal(hear_round(4), 1);
    trainer.member.has_round = false;   // Its position was given up
    assert_int_equal(hear_round(6), 0); // The learner is still at work
    assert_int_equal(claims_of_result(), 0);
}

// A later round failed, then an older copy of the ledger opened this round again: two claims of one
// round would eject their author.
static void of_a_round_is_claimed_once(void **state)
{
    (void)state;
    assert_int_equal(hear_round(4), 1);
    assert_int_equal(claims_of_result(), 1);
    trainer.member.has_round = false;
    ((struct rounds_member *)(void *)trainer.pace.state)->training.tried_round = 0;
    assert_int_equal(hear_round(6), 0);
    assert_int_equal(rounds_of(&trainer.pace)->training.tried_round,
                     5); // It was tried, and skipped
}

TESTS(TEST_WITH(a_result_is_claimed, set_up, NULL),
      TEST_WITH(a_result_of_a_replaced_round_is_not_claimed, set_up, NULL),
      TEST_WITH(of_a_round_is_claimed_once, set_up, NULL))
