// A restore takes the durable state of a run back, and voids each checkpoint of the steps it gave
// up. The simulator shows what it does to replicas and to a whole run (tests/sim/check_restore.c).

#include "actors/checkpointer/checkpointer.h"
#include "common/pace/rounds/rounds.h"
#include "tests/test.h"
#include <stdlib.h>
#include <string.h>

enum { RESTORE_POINT = 7, STEP = 9, EPOCH = 4 };

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

// A checkpoint of RESTORE_POINT with two members' residuals; then one trained on, and a third one came.
static struct run *far_run(void)
{
    struct run *run = new_run();
    run_apply(
        run, FRAME_RECORD_GENESIS,
        &(struct wire_record_genesis){ .run = "r", .step = RESTORE_POINT, .digest = hash(20) });
    run_apply(run, FRAME_RECORD_DATA, &(struct wire_record_data){ .samples = 1000 });
    admit(run, 0), admit(run, 1);
    struct wire_residual *residuals = ((struct rounds_run *)(void *)run->pace_state)->residuals;
    residuals[0].hash = hash(10), residuals[1].hash = hash(11); // As commits before would have it
    run_apply(run, FRAME_RECORD_CHECKPOINT,
              &(struct wire_checkpoint){
                  .step = RESTORE_POINT, .digest = hash(20), .name = "step-00000007" });
    admit(run, 2);
    residuals[0].hash = hash(12), residuals[2].hash = hash(13);
    run->step = STEP;
    return run;
}

static void take_back(struct run *run)
{
    struct wire_record_restore back = run_restore_point(run);
    assert_int_equal(back.step, RESTORE_POINT);
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

static void a_snapshot_knows_the_restore_and_its_point(void **state)
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
    assert_int_equal(after->step, RESTORE_POINT);
    assert_int_equal(after->restored_step, RESTORE_POINT);
    assert_int_equal(after->restored_epoch, EPOCH);
    assert_memory_equal(&after->first_point, &run->first_point, sizeof run->first_point);
    assert_false(hash_is_none(&run->first_point.digest));
    free(run), free(again), free(after);
}

// The checkpoint of an epoch's end comes when the run has trained on. A restore goes back to that end.
static void a_checkpoint_of_the_epochs_end_may_come_late(void **state)
{
    (void)state;
    static struct interval returned[TABLE_INTERVALS_MAX];
    struct run *run = far_run(), *again = new_run();
    struct wire_residual *residuals = ((struct rounds_run *)(void *)run->pace_state)->residuals;
    const struct wire_checkpoint late = { .step = STEP, .digest = hash(21), .name = "late" };
    run_apply(run, FRAME_RECORD_EPOCH_END,
              &(struct wire_epoch_end){ .step = STEP, .digest = hash(21) });
    residuals[0].hash = hash(14);
    run->step = STEP + 1;
    assert_true(run_is_end(run, STEP, &late.digest));
    struct wire_snapshot snapshot = run_to_snapshot(run, returned); // Between the two
    run_from_snapshot(again, &snapshot);
    run_apply(again, FRAME_RECORD_CHECKPOINT,
              &(struct wire_checkpoint){ .step = STEP, .digest = hash(22), .name = "other" });
    assert_int_equal(run_restore_point(again).step, RESTORE_POINT);
    run_apply(again, FRAME_RECORD_CHECKPOINT, &late);
    struct wire_record_restore back = run_restore_point(again);
    assert_int_equal(back.step, STEP);
    assert_true(hash_equal(&back.digest, &late.digest));
    back.epoch = EPOCH;
    run_apply(again, FRAME_RECORD_RESTORE, &back);
    assert_residual(again, 0, 12);
    assert_residual(again, 2, 13);
    assert_true(run_is_end(again, STEP, &late.digest)); // It is not given up
    take_back(run);
    assert_false(run_is_end(run, STEP, &late.digest));
    free(run), free(again);
}

// ---- samples that failed ------------------------------------------------------------------------

_Alignas(16) static uint8_t packed[1 << 16], room[1 << 20], part[RUN_PART_BYTES];

// A body as it comes back from the disk. Good until the next call.
static const void *stored(uint16_t kind, const void *body)
{
    struct wire_arena arena = { .bytes = room, .max = sizeof room };
    struct wire_refusal refusal;
    const void *back;
    const size_t count = wire_pack_body(kind, body, packed, sizeof packed);
    assert_true(count > 0);
    assert_true(wire_unpack_body(packed, count, kind, &arena, &back, &refusal));
    return back;
}

static void deal_to(struct run *run, uint64_t number, uint64_t count)
{
    struct interval list[8];
    uint32_t listed;
    assert_int_equal(table_deal(&run->table, number, count, list, 8, &listed), TABLE_OK);
}

// No round gives up a sample, so the tests do.
static void give_up(struct run *run, uint64_t number, uint64_t sample)
{
    const struct interval list = { sample, sample + 1 };
    assert_int_equal(table_fail(&run->table, number, &list, 1), TABLE_OK);
}

// One letter a sample from 0 on: done, todo, pending, failed. Those behind the last are todo.
static void assert_table(const struct run *run, const char *wanted)
{
    static const char letters[] = {
        [TABLE_DONE] = 'd', [TABLE_TODO] = 't', [TABLE_PENDING] = 'p', [TABLE_FAILED] = 'f'
    };
    char is[32] = { 0 };
    for (uint64_t i = 0; i < strlen(wanted); i++) is[i] = letters[table_state_at(&run->table, i)];
    assert_string_equal(is, wanted);
    assert_true(table_check(&run->table));
    assert_true(run->table.cursor <= strlen(wanted));
}

// A checkpoint of RESTORE_POINT, with samples in every state, and one trained on.
static struct run *run_with_failed(void)
{
    struct run *run = new_run();
    const struct interval done[] = { { 0, 2 }, { 4, 5 } }, later[] = { { 2, 3 }, { 5, 6 } };
    run_apply(
        run, FRAME_RECORD_GENESIS,
        &(struct wire_record_genesis){ .run = "r", .step = RESTORE_POINT, .digest = hash(20) });
    run_apply(run, FRAME_RECORD_DATA, &(struct wire_record_data){ .samples = 1000 });
    deal_to(run, 1, 6);
    deal_to(run, 2, 6);
    assert_int_equal(table_done(&run->table, 1, done, 2), TABLE_OK);
    give_up(run, 1, 3), give_up(run, 2, 8), give_up(run, 2, 11); // The last one at the cursor
    assert_table(run, "ddpfdpppfppf");
    run_apply(run, FRAME_RECORD_CHECKPOINT,
              &(struct wire_checkpoint){ .step = RESTORE_POINT, .digest = hash(20), .name = "it" });
    assert_int_equal(table_done(&run->table, 1, later, 2), TABLE_OK);
    give_up(run, 2, 6);
    deal_to(run, 3, 2);
    run->step = STEP;
    assert_table(run, "dddfddfpfppfpp");
    return run;
}

static const char restore_point_table[] = "ddtfdtttfttf";

static void a_restore_keeps_what_had_failed(void **state)
{
    (void)state;
    struct run *run = run_with_failed();
    struct wire_record_restore back = run_restore_point(run);
    back.epoch = EPOCH;
    run_apply(run, FRAME_RECORD_RESTORE, stored(FRAME_RECORD_RESTORE, &back));
    assert_int_equal(run->step, RESTORE_POINT);
    assert_table(run, restore_point_table); // What failed later is tried again
    // It is never dealt again
    deal_to(run, 4, 8);
    assert_table(run, "ddpfdpppfppfpp");
    free(run);
}

static void a_snapshot_keeps_what_failed(void **state)
{
    (void)state;
    struct run *run = run_with_failed(), *again = new_run();
    const struct wire_snapshot snapshot = run_to_snapshot(run, part);
    assert_true(run_from_snapshot(again, stored(FRAME_SNAPSHOT, &snapshot)));
    assert_table(again, "dddfddfpfppfpp");
    assert_true(table_equal(&again->table, &run->table)); // The numbers, too
    take_back(again);
    assert_table(again, restore_point_table);
    free(run), free(again);
}

static void what_is_given_up_is_beyond_and_before(void **state)
{
    (void)state;
    const struct wire_run run = { .step = STEP + 5,
                                  .epoch = EPOCH + 1,
                                  .restored_step = RESTORE_POINT,
                                  .restored_epoch = EPOCH };
    assert_true(replica_is_given_up(&run, STEP, EPOCH - 1));
    assert_false(replica_is_given_up(&run, STEP, EPOCH));              // Trained again
    assert_false(replica_is_given_up(&run, RESTORE_POINT, EPOCH - 1)); // The checkpoint itself
    const struct wire_run never = { .step = STEP };
    assert_false(replica_is_given_up(&never, STEP, 0));
}

// What goes on from a checkpoint is the run as it is, not the one that came further and was taken
// back.
static void the_newest_is_of_the_latest_epoch(void **state)
{
    (void)state;
    assert_true(replica_is_newer(RESTORE_POINT, EPOCH, STEP, EPOCH - 1));
    assert_false(replica_is_newer(STEP, EPOCH - 1, RESTORE_POINT, EPOCH));
    assert_true(replica_is_newer(STEP, EPOCH, RESTORE_POINT, EPOCH));
    assert_false(replica_is_newer(STEP, EPOCH, STEP, EPOCH));
}

static struct checkpointer checkpointer;
static uint8_t out_bytes[1 << 18];
static struct effect effects[64];

static struct outbox hear(uint16_t kind, const void *body)
{
    struct outbox out = { effects, 0, 64, out_bytes, 0, sizeof out_bytes };
    struct member *member = &checkpointer.member;
    const struct msg in = { .now_ms = 1000,
                            .kind = kind,
                            .run = "r",
                            .from = "coordinator",
                            .sender = member->coordinator,
                            .body = body };
    checkpointer_step(&checkpointer, &in, &out);
    return out;
}

static struct outbox hear_run(const struct wire_run *run) { return hear(FRAME_RUN, run); }

// The only SAVE among the effects. NULL: there is none.
static const struct wire_save *find_save(const struct outbox *out)
{
    const struct wire_save *save = NULL;
    for (uint32_t i = 0; i < out->count; i++) {
        struct wire_arena arena = { .bytes = room, .max = sizeof room };
        struct wire_refusal refusal;
        const void *body;
        if (effects[i].kind != FRAME_SAVE) continue;
        assert_true(wire_unpack_body(effects[i].body, effects[i].bytes, FRAME_SAVE, &arena, &body,
                                     &refusal));
        assert_null(save);
        save = body;
    }
    return save;
}

// A checkpointer that holds STEP.
static void make_checkpointer(void)
{
    checkpointer = (struct checkpointer){ 0 };
    checkpointer_init(&checkpointer);
    checkpointer.member.admitted = true;
    checkpointer.member.coordinator = key(1);
    checkpointer.replica.holding = checkpointer.replica.built = true;
    checkpointer.replica.step = STEP;
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
                                 .restored_step = RESTORE_POINT,
                                 .restored_epoch = EPOCH });
    assert_int_equal(checkpointer.saved.step, 0);
    assert_false(checkpointer.registering);
    assert_int_equal(checkpointer.position.step, STEP); // Of the time after it
}

// Each SAVE names the restore point, which is to outlive all that is written after it.
static void the_restore_point_is_spared(void **state)
{
    (void)state;
    make_checkpointer();
    checkpointer.wanted.step = STEP;
    const struct outbox out = hear_run(&(struct wire_run){
        .step = STEP, .epoch = EPOCH, .log_seq = 1, .restore_point_step = RESTORE_POINT });
    const struct wire_save *save = find_save(&out);
    assert_non_null(save);
    assert_int_equal(save->spare, RESTORE_POINT);
}

// From the coordinator's run through the news of an epoch's end to the job of the learner.
static void a_save_says_what_failed(void **state)
{
    (void)state;
    static struct run_lists lists;
    struct run *run = run_with_failed();
    struct wire_epoch_end end = { .epoch = EPOCH, .step = STEP, .digest = hash(21) };
    end.data_position = run_data_position(run, &lists);
    make_checkpointer();
    hear_run(&(struct wire_run){ .step = STEP, .epoch = EPOCH, .log_seq = 1 });
    const struct outbox out = hear(FRAME_EPOCH_END, stored(FRAME_EPOCH_END, &end));
    const struct wire_save *save = find_save(&out);
    assert_non_null(save);
    const struct interval returned[] = { { 7, 8 }, { 9, 11 } };
    const struct interval failed[] = { { 3, 4 }, { 6, 7 }, { 8, 9 }, { 11, 12 } };
    assert_int_equal(save->data_position.cursor, 12);
    assert_int_equal(save->data_position.returned_count, 2);
    assert_memory_equal(save->data_position.returned, returned, sizeof returned);
    assert_int_equal(save->data_position.failed_count, 4);
    assert_memory_equal(save->data_position.failed, failed, sizeof failed);
    free(run);
}

static void end_epoch(uint64_t step, uint8_t digest, bool *ret_tells)
{
    checkpointer.replica.step = step;
    checkpointer.replica.digest = hash(digest);
    hear_run(&(struct wire_run){ .phase = PHASE_COOLDOWN,
                                 .step = step,
                                 .epoch = EPOCH,
                                 .log_seq = step,
                                 .digest_step = step,
                                 .digest = hash(digest) });
    assert_true(checkpointer.replica.tells_later);
    hear(FRAME_EPOCH_END,
         &(struct wire_epoch_end){ .epoch = EPOCH, .step = step, .digest = hash(digest) });
    hear_run(&checkpointer.member.now);
    *ret_tells = !checkpointer.replica.tells_later;
}

static void hear_saved_step(uint64_t step, uint8_t digest, bool ok)
{
    hear(FRAME_SAVED,
         &(struct wire_saved){ .ok = ok, .step = step, .epoch = EPOCH, .digest = hash(digest) });
    hear_run(&checkpointer.member.now);
}

// The run goes on when the checkpointer says that it holds the end of an epoch: it does once it writes it. If the
// checkpoint before that is not on record yet, the run waits for this one.
static void an_end_is_held_once_it_is_written_down(void **state)
{
    bool tells;
    (void)state;
    make_checkpointer();
    end_epoch(STEP, 21, &tells);
    assert_true(tells && checkpointer.saving);
    end_epoch(STEP + 1, 22, &tells); // The learner writes the first one still
    assert_false(tells);
    hear_saved_step(STEP, 21, true);
    assert_true(checkpointer.saving && checkpointer.replica.tells_later);
    hear_saved_step(STEP + 1, 22, true);
    assert_false(checkpointer.saving || checkpointer.replica.tells_later);
    hear(FRAME_ACK,
         &(struct wire_ack){ .kind = FRAME_CHECKPOINT, .round = STEP + 1, .hash = hash(22) });
    assert_false(checkpointer.registering);
    end_epoch(STEP + 2, 23, &tells);
    assert_true(tells);
    hear_saved_step(STEP + 2, 23, false); // The disk is full
    assert_true(checkpointer.replica.tells_later);
}

// Lists that are longer than a SAVE may have: this step is not saved.
static void a_position_that_is_too_long_is_not_saved(void **state)
{
    (void)state;
    static struct interval list[CHECKPOINT_INTERVALS_MAX];
    struct wire_epoch_end end = { .epoch = EPOCH, .step = STEP, .digest = hash(21) };
    for (uint64_t i = 0; i < CHECKPOINT_INTERVALS_MAX; i++)
        list[i] = (struct interval){ 2 * i, 2 * i + 1 };
    end.data_position = (struct wire_data_position){ .cursor = 2 * CHECKPOINT_INTERVALS_MAX + 1,
                                                     .returned = (struct interval[]){ { 1, 2 } },
                                                     .returned_count = 1,
                                                     .failed = list,
                                                     .failed_count = CHECKPOINT_INTERVALS_MAX };
    make_checkpointer();
    struct outbox out = hear(FRAME_EPOCH_END, &end);
    assert_null(find_save(&out));
    end.data_position.failed_count--;
    out = hear(FRAME_EPOCH_END, &end);
    assert_non_null(find_save(&out));
    assert_int_equal(find_save(&out)->data_position.failed_count, CHECKPOINT_INTERVALS_MAX - 1);
}

TESTS(TEST(residuals_are_those_of_the_checkpoint), TEST(a_snapshot_knows_the_restore_and_its_point),
      TEST(a_checkpoint_of_the_epochs_end_may_come_late),
      TEST(what_is_given_up_is_beyond_and_before), TEST(a_checkpoint_given_up_is_none),
      TEST(the_newest_is_of_the_latest_epoch), TEST(the_restore_point_is_spared),
      TEST(a_restore_keeps_what_had_failed), TEST(a_snapshot_keeps_what_failed),
      TEST(a_save_says_what_failed), TEST(a_position_that_is_too_long_is_not_saved),
      TEST(an_end_is_held_once_it_is_written_down))
