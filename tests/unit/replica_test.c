// A replica refuses a model whose results are not of the run's size, and a commit with a result of
// another size, which it does not fetch.

#include "common/member/replica.h"
#include "common/pace/rounds/replay.h"
#include "tests/test.h"
#include <string.h>
#include <sysexits.h>

enum { SIZE = 100, STEP = 7 };

static struct member member;
static struct replica replica;
static struct replay replay;
static struct blobs blobs;
static struct effect effects[16];
static uint8_t out_bytes[1 << 14];

static struct outbox outbox(void)
{
    return (struct outbox){ effects, 0, 16, out_bytes, 0, sizeof out_bytes };
}

static struct wire_rounds_config strategy;

static int set_up(void **state)
{
    (void)state;
    memset(&member, 0, sizeof member);
    memset(&replica, 0, sizeof replica);
    memset(&replay, 0, sizeof replay);
    memset(&blobs, 0, sizeof blobs);
    strategy.payload_bytes = SIZE;
    member.config.strategy = (struct wire_part){ FRAME_ROUNDS_CONFIG, &strategy };
    replica.step = STEP;
    replica.holding = true;
    return 0;
}

// The replica hears this message; returns what it says.
static struct outbox turn(uint16_t kind, const void *body, unsigned heard)
{
    const struct msg in = { .now_ms = 1000, .kind = kind, .run = "", .from = "", .body = body };
    struct outbox out = outbox();
    const struct member_turn turn = { &member, &blobs, &replica, &in, &out, heard };
    replica_hear(&replica, &turn);
    replay_hear(&replay, &turn);
    replica_look(&replica, &turn);
    replay_look(&replay, &turn);
    return out;
}

// Whether a commit with a sound result and one of this size is kept, and its payloads are wanted.
static bool takes_commit(uint32_t payload_bytes)
{
    const struct hash name = hash_of(&payload_bytes, sizeof payload_bytes);
    const struct wire_accepted accepted[] = {
        { .begin = 0, .end = 1, .payload = hash_of("a", 1), .payload_bytes = SIZE },
        { .begin = 1, .end = 2, .payload = name, .payload_bytes = payload_bytes }
    };
    const struct outbox out = turn(FRAME_COMMIT,
                                   &(struct wire_commit){ .step = STEP,
                                                          .outcome = OUTCOME_COMMITTED,
                                                          .lr_bits = 0x3f000000, // 0.5
                                                          .accepted = accepted,
                                                          .accepted_count = 2 },
                                   HEARD_PACE);
    assert_int_equal(blobs.wanted, replay_knows_commit(&replay, &replica, STEP) ? 2 : 0);
    assert_int_equal(out.count, replay_knows_commit(&replay, &replica, STEP) ? 0 : 1); // A note
    return replay_knows_commit(&replay, &replica, STEP);
}

static void a_commit_of_another_size_is_ignored(void **state)
{
    (void)state;
    assert_false(takes_commit(SIZE - 1));
    assert_false(takes_commit(1u << 30));
    assert_true(takes_commit(SIZE));
}

// The trainer's log has a line for it (step_line.h).
static void an_applied_commit_is_told(void **state)
{
    (void)state;
    assert_true(takes_commit(SIZE));
    turn(FRAME_APPLIED, &(struct wire_applied){ .ok = true, .step = STEP + 1 }, 0);
    assert_int_equal(member.steps_taken, 1);
    assert_int_equal(member.step_held, STEP + 1);
    assert_true(member.step_lr > 0.49f && member.step_lr < 0.51f);
}

// The coordinator must not take it for one that holds the newest step.
static void a_dropped_state_is_not_told(void **state)
{
    (void)state;
    member.admitted = member.has_run = true;
    replica.built = true;
    member.step_held = STEP;
    struct outbox out = outbox();
    replica_drop(&replica, "it differs", &out);
    turn(FRAME_WAKE, NULL, HEARD_TICK);
    assert_int_equal(member.step_held, 0);
}

// Returns how many effects it has.
static uint32_t hear_built(const struct wire_built *built)
{
    return turn(FRAME_BUILT, built, 0).count;
}

static void a_model_of_another_size_is_given_up(void **state)
{
    (void)state;
    assert_int_equal(hear_built(&(struct wire_built){ .ok = true, .payload_bytes = SIZE }), 0);
    assert_true(replica.built);
    assert_int_equal(hear_built(&(struct wire_built){ .ok = true, .payload_bytes = 99 }), 1);
    assert_false(replica.built);
    struct wire_arena arena = { .bytes = (uint8_t[1024]){ 0 }, .max = 1024 };
    struct wire_refusal refusal;
    const void *body;
    assert_int_equal(effects[0].kind, FRAME_QUIT);
    assert_true(
        wire_unpack_body(effects[0].body, effects[0].bytes, FRAME_QUIT, &arena, &body, &refusal));
    assert_int_equal(((const struct wire_quit *)body)->code, EX_CONFIG);
    assert_string_equal(((const struct wire_quit *)body)->text,
                        "the results of the model built here have 99 bytes, those of the run 100; "
                        "take the version of this program that the coordinator is of");
}

// The state that the run has is in the memory of several, and one of them is cut off: the others fail to fetch it, and
// stay, since they have parts of it. The coordinator ends the wait.
static void who_keeps_a_part_in_memory_stays(void **state)
{
    (void)state;
    for (uint64_t memory_step = STEP - 1; memory_step <= STEP; memory_step++) {
        set_up(NULL);
        member.admitted = member.has_run = true;
        member.roster.version = 1;
        member.now = (struct wire_run){ .phase = PHASE_WAITING,
                                        .step = STEP,
                                        .pin_step = STEP,
                                        .pin_digest = hash_of("a", 1),
                                        .memory_window = 3,
                                        .memory_step = memory_step };
        replica = (struct replica){ .built = true, .failures = REPLICA_FAILURES_MAX };
        const struct outbox out = turn(FRAME_WAKE, NULL, HEARD_TICK);
        bool quits = false;
        for (uint32_t i = 0; i < out.count; i++) quits |= effects[i].kind == FRAME_QUIT;
        assert_int_equal(quits, memory_step != STEP);
    }
}

// The step of the LOAD that it begins with, from this newest checkpoint of its own; and the folder.
static uint64_t begins_with(uint64_t own_step, uint64_t run_step, char ret_path[256])
{
    struct wire_arena arena = { .bytes = (uint8_t[1024]){ 0 }, .max = 1024 };
    struct wire_refusal refusal;
    const void *body;
    set_up(NULL);
    memset(&member, 0, sizeof member);
    member.admitted = member.has_run = true;
    member.roster.version = 1;
    member.config = (struct wire_config){ .genesis = "genesis", .genesis_step = 20 };
    member.now = (struct wire_run){ .step = run_step, .pin_step = 20 };
    replica = (struct replica){ .built = true, .resume = { .path = "own", .step = own_step } };
    const struct outbox out = turn(FRAME_WAKE, NULL, HEARD_TICK);
    assert_true(out.count == 1 && effects[0].kind == FRAME_LOAD);
    assert_true(
        wire_unpack_body(effects[0].body, effects[0].bytes, FRAME_LOAD, &arena, &body, &refusal));
    const struct wire_load *load = body;
    memcpy(ret_path, load->path, sizeof load->path);
    assert_int_equal(load->genesis, strcmp(load->path, "genesis") == 0);
    return load->step;
}

static void a_run_begins_where_an_earlier_one_ended(void **state)
{
    char path[256];
    (void)state;
    assert_int_equal(begins_with(0, 20, path), 20);
    assert_string_equal(path, "genesis");
    assert_int_equal(begins_with(19, 20, path), 20); // Of the earlier run
    assert_string_equal(path, "genesis");
    assert_int_equal(begins_with(20, 20, path), 20);
    assert_string_equal(path, "genesis");
    assert_int_equal(begins_with(24, 20, path), 20); // The run lost its ledger
    assert_string_equal(path, "genesis");
    assert_int_equal(begins_with(24, 30, path), 24);
    assert_string_equal(path, "own");
}

// No member holds the pinned step any more, and the only checkpoint is of the run's first step. A
// member that can replay then begins with genesis.
static void a_checkpoint_of_the_first_step_hides_nothing(void **state)
{
    char path[256];
    (void)state;
    begins_with(0, 20, path);
    member.now = (struct wire_run){
        .step = 29, .pin_step = 29, .pin_digest = hash_of("29", 2), .checkpoint_step = 20
    };
    replica = (struct replica){ .built = true, .can_replay = true, .failures = 1 };
    const struct outbox out = turn(FRAME_WAKE, NULL, HEARD_TICK);
    assert_true(out.count == 1 && effects[0].kind == FRAME_LOAD);
}

// Its folder has other parameters than the run began with: the folder would lead to the same ones
// again, so its peers are asked next.
static void a_folder_that_differs_is_not_read_again(void **state)
{
    char path[256];
    (void)state;
    assert_int_equal(begins_with(0, 20, path), 20);
    member.now.pin_digest = member.now.digest = hash_of("the run's", 9);
    member.now.digest_step = 20;
    const struct wire_loaded loaded = { .ok = true, .step = 20, .digest = hash_of("ours", 4) };
    turn(FRAME_LOADED, &loaded, 0);
    assert_false(replica.holding);
    replica.retry_ms = 0;
    const struct outbox out = turn(FRAME_WAKE, NULL, HEARD_TICK);
    assert_int_equal(out.count, 1);
    assert_int_equal(effects[0].kind, FRAME_FETCH_MODEL);
}

// The run lost its ledger and began anew under its name: the folder has other parameters of the same step, and
// epochs count again (seed 26495).
static void a_checkpoint_of_an_earlier_run_is_not_held(void **state)
{
    char path[256];
    (void)state;
    for (uint64_t born = 7; born <= 8; born++) {
        assert_int_equal(begins_with(24, 30, path), 24);
        member.born_unix_ms = 8;
        const struct wire_loaded loaded = {
            .ok = true, .step = 24, .epoch = 3, .born_unix_ms = born, .digest = hash_of("24", 2)
        };
        turn(FRAME_LOADED, &loaded, 0);
        assert_int_equal(replica.holding, born == 8);
        assert_int_equal(replica.peers_turn, born != 8);
    }
}

// The fetcher is told the bytes of each item, as BUILT said them.
static void what_is_fetched_has_the_sizes_of_what_was_built(void **state)
{
    char path[256];
    (void)state;
    const struct wire_state_item items[] = { { .bytes = 36 }, { .bytes = 36 }, { .bytes = 8 } };
    begins_with(0, 20, path);
    hear_built(&(struct wire_built){
        .ok = true, .floats = 9, .payload_bytes = SIZE, .items = items, .items_count = 3 });
    member.now.pin_digest = hash_of("20", 2);
    replica.built = true; // The pace has no word on the size of results here
    replica.loading = false, replica.peers_turn = true, replica.retry_ms = 0;
    const struct outbox out = turn(FRAME_WAKE, NULL, HEARD_TICK);
    struct wire_arena arena = { .bytes = (uint8_t[1024]){ 0 }, .max = 1024 };
    struct wire_refusal refusal;
    const void *body;
    assert_true(out.count == 1 && effects[0].kind == FRAME_FETCH_MODEL);
    assert_true(wire_unpack_body(effects[0].body, effects[0].bytes, FRAME_FETCH_MODEL, &arena,
                                 &body, &refusal));
    const struct wire_fetch_model *fetch = body;
    assert_true(fetch->floats == 9 && fetch->items_count == 3);
    for (int i = 0; i < 3; i++) assert_true(fetch->items[i].bytes == items[i].bytes);
}

// One that goes from pin to pin has no use for any other step, be that of its own folder newer.
static void a_pinned_step_is_sought_in_our_folders(void **state)
{
    (void)state;
    struct wire_arena arena = { .bytes = (uint8_t[1024]){ 0 }, .max = 1024 };
    struct wire_refusal refusal;
    const void *body;
    set_up(NULL);
    member.admitted = member.has_run = true;
    member.roster.version = 1;
    member.now = (struct wire_run){ .step = 40, .pin_step = 35, .pin_digest = hash_of("p", 1) };
    replica = (struct replica){ .built = true,
                                .follows_pins = true,
                                .resume = { .path = "own", .step = 30 } };
    const struct outbox out = turn(FRAME_WAKE, NULL, HEARD_TICK);
    assert_true(out.count == 1 && effects[0].kind == FRAME_LOAD);
    assert_true(
        wire_unpack_body(effects[0].body, effects[0].bytes, FRAME_LOAD, &arena, &body, &refusal));
    assert_int_equal(((const struct wire_load *)body)->step, 35);
}

// The run came to step 76, was restored to 59, and came to 76 again with another state (seed 18265).
static void the_end_of_an_epoch_that_was_given_up_binds_nobody(void **state)
{
    (void)state;
    const struct wire_epoch_end end = { .epoch = 10, .step = 76, .digest = hash_of("before", 6) };
    for (uint64_t restored = 0; restored <= 12; restored += 12) {
        set_up(NULL);
        member.admitted = member.has_run = true;
        member.now =
            (struct wire_run){ .step = 76, .restored_step = 59, .restored_epoch = restored };
        replica = (struct replica){
            .built = true, .holding = true, .step = 76, .epoch = 12, .digest = hash_of("again", 5)
        };
        turn(FRAME_EPOCH_END, &end, HEARD_EPOCH_END);
        assert_int_equal(replica.holding, restored == 12);
    }
}

TESTS(TEST(the_end_of_an_epoch_that_was_given_up_binds_nobody),
      TEST(a_checkpoint_of_an_earlier_run_is_not_held),
      TEST(a_pinned_step_is_sought_in_our_folders),
      TEST_WITH(what_is_fetched_has_the_sizes_of_what_was_built, set_up, NULL),
      TEST_WITH(a_folder_that_differs_is_not_read_again, set_up, NULL),
      TEST_WITH(a_commit_of_another_size_is_ignored, set_up, NULL),
      TEST_WITH(an_applied_commit_is_told, set_up, NULL),
      TEST_WITH(a_dropped_state_is_not_told, set_up, NULL), TEST(who_keeps_a_part_in_memory_stays),
      TEST_WITH(a_model_of_another_size_is_given_up, set_up, NULL),
      TEST(a_run_begins_where_an_earlier_one_ended),
      TEST(a_checkpoint_of_the_first_step_hides_nothing))
