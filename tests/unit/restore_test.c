// A restore takes the durable state of a run back, and voids each checkpoint of the steps it gave
// up. The simulator shows what it does to replicas and to a whole run (tests/sim/check_restore.c).

#include "actors/checkpointer/checkpointer.h"
#include "common/pace/rounds/rounds.h"
#include "tests/test.h"
#include <stdlib.h>
#include <string.h>

enum { WAY_BACK = 7, STEP = 9, EPOCH = 4 };

static struct run *new_run(void)
{
    struct run *run = calloc(1, sizeof *run);
    assert_non_null(run);
    run_init(run, &pace_rounds.run, 1);
    return run;
}

static struct key key(uint8_t first) { return (struct key){ { first } }; }
static struct hash hash(uint8_t first) { return (struct hash){ { first } }; }

static void admit(struct run *run, uint32_t index)
{
    run_apply(run, FRAME_RECORD_MEMBER,
              &(struct wire_member){ .index = index,
                                     .key = key((uint8_t)(index + 1)),
                                     .role = ACTOR_TRAINER,
                                     .state = MEMBER_HEALTHY });
}

static void assert_residual(const struct run *run, uint32_t member, uint8_t first)
{
    const struct wire_residual wanted = { hash(first) };
    assert_memory_equal(&rounds_run_of(run)->residuals[member], &wanted, sizeof wanted);
}

// A checkpoint of WAY_BACK with two members' residuals; then one trained on, and a third one came.
static struct run *far_run(void)
{
    struct run *run = new_run();
    run_apply(run, FRAME_RECORD_GENESIS,
              &(struct wire_record_genesis){ .run = "r", .step = WAY_BACK });
    run_apply(run, FRAME_RECORD_DATA, &(struct wire_record_data){ .samples = 1000 });
    admit(run, 0), admit(run, 1);
    struct wire_residual *residuals = ((struct rounds_run *)(void *)run->pace_state)->residuals;
    residuals[0].hash = hash(10), residuals[1].hash = hash(11); // As commits before would have it
    run_apply(
        run, FRAME_RECORD_CHECKPOINT,
        &(struct wire_checkpoint){ .step = WAY_BACK, .digest = hash(20), .name = "step-00000007" });
    admit(run, 2);
    residuals[0].hash = hash(12), residuals[2].hash = hash(13);
    run->step = STEP;
    return run;
}

static void take_back(struct run *run)
{
    struct wire_record_restore back = run_way_back(run);
    assert_int_equal(back.step, WAY_BACK);
    back.epoch = EPOCH;
    run_apply(run, FRAME_RECORD_RESTORE, &back);
}

// A member of the checkpoint goes on from the residual it had there; a later member begins at zero.
static void residuals_are_those_of_the_checkpoint(void **state)
{
    (void)state;
    struct run *run = far_run();
    take_back(run);
    assert_residual(run, 0, 10);
    assert_residual(run, 1, 11);
    assert_residual(run, 2, 0);
    free(run);
}

static void a_snapshot_knows_the_restore_and_the_way_back(void **state)
{
    (void)state;
    static struct interval returned[TABLE_INTERVALS_MAX];
    struct run *run = far_run(), *again = new_run(), *after = new_run();
    struct wire_snapshot snapshot = run_to_snapshot(run, returned);
    run_from_snapshot(again, &snapshot);
    take_back(again);
    assert_residual(again, 0, 10);
    assert_residual(again, 2, 0);
    snapshot = run_to_snapshot(again, returned);
    run_from_snapshot(after, &snapshot);
    assert_int_equal(after->step, WAY_BACK);
    assert_int_equal(after->restored_step, WAY_BACK);
    assert_int_equal(after->restored_epoch, EPOCH);
    free(run), free(again), free(after);
}

static void what_is_given_up_is_beyond_and_before(void **state)
{
    (void)state;
    const struct wire_run run = {
        .step = STEP + 5, .epoch = EPOCH + 1, .restored_step = WAY_BACK, .restored_epoch = EPOCH
    };
    assert_true(replica_is_given_up(&run, STEP, EPOCH - 1));
    assert_false(replica_is_given_up(&run, STEP, EPOCH));         // Trained again
    assert_false(replica_is_given_up(&run, WAY_BACK, EPOCH - 1)); // The checkpoint itself
    const struct wire_run never = { .step = STEP };
    assert_false(replica_is_given_up(&never, STEP, 0));
}

// What goes on from a checkpoint is the run as it is, not the one that came further and was taken
// back.
static void the_newest_is_of_the_latest_epoch(void **state)
{
    (void)state;
    assert_true(replica_is_newer(WAY_BACK, EPOCH, STEP, EPOCH - 1));
    assert_false(replica_is_newer(STEP, EPOCH - 1, WAY_BACK, EPOCH));
    assert_true(replica_is_newer(STEP, EPOCH, WAY_BACK, EPOCH));
    assert_false(replica_is_newer(STEP, EPOCH, STEP, EPOCH));
}

static struct checkpointer checkpointer;
static uint8_t out_bytes[1 << 16];
static struct effect effects[64];

static struct outbox hear_run(const struct wire_run *run)
{
    struct outbox out = { effects, 0, 64, out_bytes, 0, sizeof out_bytes };
    struct member *member = &checkpointer.member;
    const struct msg in = { .now_ms = 1000,
                            .kind = FRAME_RUN,
                            .run = "r",
                            .from = "coordinator",
                            .sender = member->coordinator,
                            .body = run };
    checkpointer_step(&checkpointer, &in, &out);
    return out;
}

// A checkpoint that a restore gave up is none, also where the news come when the run is as far
// again: or the run's own at that step would never be written.
static void a_checkpoint_given_up_is_none(void **state)
{
    (void)state;
    checkpointer_init(&checkpointer);
    checkpointer.member.admitted = true;
    checkpointer.member.coordinator = key(1);
    checkpointer.saved = (struct wire_checkpoint){ .epoch = EPOCH - 1, .step = STEP };
    checkpointer.registering = true;
    checkpointer.position.step = STEP, checkpointer.position.epoch = EPOCH;
    hear_run(&(struct wire_run){ .step = STEP, .epoch = EPOCH - 1, .log_seq = 1 });
    assert_int_equal(checkpointer.saved.step, STEP);
    hear_run(&(struct wire_run){ .step = STEP,
                                 .epoch = EPOCH,
                                 .log_seq = 2,
                                 .restored_step = WAY_BACK,
                                 .restored_epoch = EPOCH });
    assert_int_equal(checkpointer.saved.step, 0);
    assert_false(checkpointer.registering);
    assert_int_equal(checkpointer.position.step, STEP); // Of the time after it
}

// Each SAVE names the way back, which is to outlive all that is written after it.
static void the_way_back_is_spared(void **state)
{
    (void)state;
    checkpointer = (struct checkpointer){ 0 };
    checkpointer_init(&checkpointer);
    checkpointer.member.admitted = true;
    checkpointer.member.coordinator = key(1);
    checkpointer.replica.holding = checkpointer.replica.built = true;
    checkpointer.replica.step = checkpointer.wanted.step = STEP;
    const struct outbox out = hear_run(&(struct wire_run){
        .step = STEP, .epoch = EPOCH, .log_seq = 1, .way_back_step = WAY_BACK });
    uint32_t saves = 0;
    for (uint32_t i = 0; i < out.count; i++) {
        _Alignas(8) static uint8_t bytes[4096];
        struct wire_arena arena = { .bytes = bytes, .max = sizeof bytes };
        struct wire_refusal refusal;
        const void *body;
        if (effects[i].kind != FRAME_SAVE) continue;
        assert_true(wire_unpack_body(effects[i].body, effects[i].bytes, FRAME_SAVE, &arena, &body,
                                     &refusal));
        assert_int_equal(((const struct wire_save *)body)->spare, WAY_BACK);
        saves++;
    }
    assert_int_equal(saves, 1);
}

TESTS(TEST(residuals_are_those_of_the_checkpoint),
      TEST(a_snapshot_knows_the_restore_and_the_way_back),
      TEST(what_is_given_up_is_beyond_and_before), TEST(a_checkpoint_given_up_is_none),
      TEST(the_newest_is_of_the_latest_epoch), TEST(the_way_back_is_spared))
