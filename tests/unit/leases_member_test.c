// leases_member_test -- a trainer and a parameter server in a group that pulls tasks: what the learner gets, what is
// told, said again and ignored, and how a group ends.

#include "common/pace/leases/leases_member.h"
#include "tests/test.h"
#include <stdlib.h>
#include <string.h>

enum { STEP = 100, ME = 1, INSTANCE = 7, BEAT = 1000 };

extern const struct member_pace member_pace_leases;

static struct member *member;
static struct replica replica;
static struct blobs *blobs;
static uint8_t *state;
static struct effect effects[32];
static uint8_t out_bytes[1 << 16], arena_bytes[1 << 16];
static struct outbox out;
static uint64_t now_ms;

static struct wire_leases_config config;

static int set_up(void **unused)
{
    (void)unused;
    free(member);
    free(state);
    free(blobs);
    member = calloc(1, sizeof *member);
    state = calloc(1, sizeof(struct pace_part));
    blobs = calloc(1, sizeof *blobs);
    assert_true(member && state && blobs);
    config = (struct wire_leases_config){ .servers = 1, .task_samples = 8, .buddies = 1 };
    member->role = ACTOR_TRAINER;
    member->index = ME;
    member->instance = INSTANCE;
    member->admitted = member->has_config = member->has_run = true;
    member->config.heartbeat_ms = BEAT;
    member->config.strategy = (struct wire_part){ FRAME_LEASES_CONFIG, &config };
    member->now =
        (struct wire_run){ .phase = PHASE_TRAIN, .round = 1, .step = STEP, .pin_step = STEP };
    member->roster.count = 3;
    replica = (struct replica){ .built = true,
                                .holding = true,
                                .ready = true,
                                .step = STEP,
                                .pin_step = STEP,
                                .digest = hash_of("a", 1) };
    now_ms = 1000;
    return 0;
}

static int tear_down(void **unused)
{
    (void)unused;
    free(member);
    free(state);
    free(blobs);
    member = NULL;
    state = NULL;
    blobs = NULL;
    return 0;
}

// The member hears this, and does what is due. What it says is in `out`.
static void hear(uint16_t kind, const void *body, unsigned heard)
{
    const struct msg in = {
        .now_ms = now_ms += 10, .kind = kind, .run = "", .from = "", .body = body
    };
    out = (struct outbox){ effects, 0, 32, out_bytes, 0, sizeof out_bytes };
    const struct member_turn turn = { .member = member,
                                      .replica = &replica,
                                      .blobs = blobs,
                                      .in = &in,
                                      .out = &out,
                                      .heard = heard };
    member_pace_leases.hear(state, &turn);
    replica.ready = replica.holding && !replica.applying;
    member_pace_leases.look(state, &turn);
}

static void tick(uint64_t after_ms)
{
    now_ms += after_ms - 10;
    hear(FRAME_WAKE, &(struct wire_wake){ 0 }, HEARD_TICK);
}

// The newest thing of this kind that it says; NULL: nothing.
static const void *said(uint16_t kind)
{
    struct wire_arena arena = { .bytes = arena_bytes, .max = sizeof arena_bytes };
    struct wire_refusal refusal;
    const void *body = NULL;
    for (uint32_t i = 0; i < out.count; i++)
        if (effects[i].kind == kind)
            assert_true(
                wire_unpack_body(effects[i].body, effects[i].bytes, kind, &arena, &body, &refusal));
    return body;
}

// Trainers 0 and we, and server 2; or trainer 0 and we as the server.
static void hear_group(uint64_t number, uint64_t step)
{
    static const struct wire_place group[] = {
        { .member = 0, .instance = 3, .links = "tcp://127.0.0.1:7001" },
        { .member = ME, .instance = INSTANCE },
        { .member = 2, .instance = 4 },
    };
    const uint32_t count = member->role == ACTOR_TRAINER || config.servers == 2 ? 3 : 2;
    hear(
        FRAME_GROUP,
        &(struct wire_group){
            .number = number, .epoch = number, .step = step, .group = group, .group_count = count },
        HEARD_PACE);
}

static void hear_task(uint64_t number, uint64_t lease)
{
    const struct interval samples = { 8, 16 };
    hear(FRAME_TASK,
         &(struct wire_task){ .lease = lease,
                              .number = number,
                              .step = STEP,
                              .lr_bits = 5,
                              .samples = &samples,
                              .samples_count = 1,
                              .left_ms = 1000 },
         HEARD_PACE);
}

static void hear_trained(uint64_t lease, bool done)
{
    hear(FRAME_TASK_TRAINED,
         &(struct wire_task_trained){ .lease = lease,
                                      .done = done,
                                      .samples = done ? 8 : 3,
                                      .because = "",
                                      .loss = 2.5f,
                                      .tokens_per_s = 10,
                                      .pushes = 4,
                                      .discarded = 1,
                                      .lag = 2 },
         0);
}

static bool closing_saves; // What is put together is saved

static void hear_close(uint64_t number, uint64_t attempt, uint64_t step)
{
    hear(FRAME_CLOSE_GROUP, &(struct wire_close_group){ number, attempt, step, 7, closing_saves },
         HEARD_PACE);
}

static void hear_settled(uint64_t attempt, bool ok)
{
    struct wire_settled settled = { .number = 1, .attempt = attempt, .ok = ok };
    if (ok) settled.digest = hash_of("z", 1);
    else memcpy(settled.because, "a peer is gone", 15);
    hear(FRAME_GROUP_SETTLED, &settled, 0);
}

// RUN, as the epoch is over.
static void hear_over(uint64_t step)
{
    member->now.phase = PHASE_COOLDOWN;
    member->now.step = step;
    hear(FRAME_RUN, &member->now, HEARD_RUN);
}

static void hear_formed(uint64_t number)
{
    hear(FRAME_GROUP_FORMED, &(struct wire_group_formed){ number }, 0);
}

// Its links do not stand yet.
static void begin_unlinked(void)
{
    hear(FRAME_LINKS, &(struct wire_links){ .endpoint = "tcp://127.0.0.1:7002" }, 0);
    hear_group(1, STEP);
    assert_non_null(said(FRAME_TAKE_GROUP));
}

static void begin(void)
{
    begin_unlinked();
    hear_formed(1);
}

// ---- saves ----------------------------------------------------------------------------------------

static void hear_save(uint64_t number, uint64_t step)
{
    hear(FRAME_SAVE_SHARE, &(struct wire_save_share){ number, step }, HEARD_PACE);
}

static void hear_taken(uint64_t number, uint64_t step, const struct hash *digest)
{
    struct wire_share_saved saved = { .number = number, .step = step };
    if (digest) saved.digest = *digest;
    hear(FRAME_SHARE_TAKEN, &saved, 0);
}

static void a_server_saves_what_it_is_told_to_save_once(void **unused)
{
    (void)unused;
    const struct hash digest = hash_of("s", 1);
    member->role = ACTOR_SERVER;
    member->now.restore_point_step = 60;
    hear_save(1, STEP + 4); // It has no group
    assert_null(said(FRAME_TAKE_SHARE));
    begin();
    hear_save(2, STEP + 4);
    assert_null(said(FRAME_TAKE_SHARE));
    hear_save(1, STEP + 4);
    const struct wire_take_share *job = said(FRAME_TAKE_SHARE);
    assert_non_null(job);
    assert_true(job->number == 1 && job->step == STEP + 4 && job->spare == 60);
    hear_save(1, STEP + 4);
    assert_null(said(FRAME_TAKE_SHARE));
    hear_taken(1, STEP + 4, &digest);
    const struct wire_busy *busy = said(FRAME_BUSY); // At once
    assert_non_null(busy);
    assert_true(busy->saved.number == 1 && busy->saved.step == STEP + 4 &&
                hash_equal(&busy->saved.digest, &digest));
    hear_save(1, STEP + 8);
    assert_non_null(said(FRAME_TAKE_SHARE));
}

static void a_trainer_saves_nothing(void **unused)
{
    (void)unused;
    begin();
    hear_save(1, STEP + 4);
    assert_null(said(FRAME_TAKE_SHARE));
}

// Its word is said on in the next group: it may have been lost.
static void a_server_saves_what_its_group_puts_together(void **unused)
{
    (void)unused;
    const struct hash digest = hash_of("z", 1);
    member->role = ACTOR_SERVER;
    closing_saves = true;
    begin();
    hear_close(1, 1, STEP + 5);
    hear_save(1, STEP + 4); // Its share is about to be that of another step
    assert_null(said(FRAME_TAKE_SHARE));
    hear_settled(1, false);
    assert_null(said(FRAME_TAKE_SHARE));
    hear_close(1, 2, STEP + 5);
    hear_settled(2, true);
    const struct wire_take_share *job = said(FRAME_TAKE_SHARE);
    assert_non_null(job);
    assert_true(job->number == 1 && job->step == STEP + 5);
    hear_close(1, 3, STEP + 5);
    hear_settled(3, true);
    assert_null(said(FRAME_TAKE_SHARE));
    closing_saves = false;
    hear_over(STEP + 5);
    assert_non_null(said(FRAME_END_GROUP));
    hear_taken(1, STEP + 5, &digest);
    member->now.phase = PHASE_TRAIN, member->now.round = 2, member->now.pin_step = STEP + 5;
    replica.pin_step = replica.step;
    hear_group(2, STEP + 5);
    assert_non_null(said(FRAME_TAKE_GROUP));
    const struct wire_busy *busy = said(FRAME_BUSY);
    assert_non_null(busy);
    assert_true(busy->saved.number == 1 && busy->saved.step == STEP + 5);
    hear_close(2, 1, STEP + 9);
    hear_settled(1, true); // Of the first group
    assert_null(said(FRAME_TAKE_SHARE));
}

// ---- groups ---------------------------------------------------------------------------------------

static void a_group_is_taken_once(void **unused)
{
    (void)unused;
    hear(FRAME_LINKS, &(struct wire_links){ .endpoint = "tcp://127.0.0.1:7002" }, 0);
    const struct wire_busy *busy = said(FRAME_BUSY);
    assert_non_null(busy); // So that a group can name it
    assert_string_equal(busy->links, "tcp://127.0.0.1:7002");
    hear_group(1, STEP);
    const struct wire_take_group *job = said(FRAME_TAKE_GROUP);
    assert_non_null(job);
    assert_int_equal(job->place, 1);
    assert_int_equal(job->servers, 1);
    assert_int_equal(job->group_count, 3);
    assert_string_equal(job->group[0].endpoint, "tcp://127.0.0.1:7001");
    assert_true(replica.applying);
    assert_int_equal(member->round, 1);
    hear_group(1, STEP);
    assert_null(said(FRAME_TAKE_GROUP));
}

static void only_a_group_that_fits_is_taken(void **unused)
{
    (void)unused;
    static const struct wire_place bad[] = { { .member = ME, .instance = INSTANCE },
                                             { .member = 0, .instance = 3 },
                                             { .member = 2, .instance = 4 } };
    hear(FRAME_GROUP,
         &(struct wire_group){ .number = 1, .step = STEP, .group = bad, .group_count = 3 },
         HEARD_PACE); // Not in the order of the roster
    assert_null(said(FRAME_TAKE_GROUP));
    hear_group(1, STEP + 1); // Its step is not held
    assert_null(said(FRAME_TAKE_GROUP));
    replica.pin_step = STEP - 1;
    hear_group(2, STEP); // The state that it begins with is not pinned yet
    assert_null(said(FRAME_TAKE_GROUP));
    member->instance++; // Another process than it names
    replica.pin_step = STEP;
    tick(10);
    assert_null(said(FRAME_TAKE_GROUP));
    member->instance--;
    tick(10); // RUN may come later
    assert_non_null(said(FRAME_TAKE_GROUP));
}

static void a_group_that_was_lost_is_asked_for(void **unused)
{
    (void)unused;
    tick(10);
    const struct wire_ask *ask = said(FRAME_ASK);
    assert_non_null(ask);
    assert_int_equal(ask->topic, TOPIC_RUN);
    tick(10);
    assert_null(said(FRAME_ASK));
    hear_group(1, STEP);
    tick(2000);
    assert_null(said(FRAME_ASK));
}

// ---- tasks ----------------------------------------------------------------------------------------

static void a_trainer_trains_one_task_after_the_other(void **unused)
{
    (void)unused;
    begin();
    const struct wire_get_task *get = said(FRAME_GET_TASK);
    assert_non_null(get);
    assert_int_equal(get->number, 1);
    assert_int_equal(get->after, 0);
    hear_task(1, 5);
    const struct wire_train_task *job = said(FRAME_TRAIN_TASK);
    assert_non_null(job);
    assert_int_equal(job->lease, 5);
    assert_int_equal(job->lr_bits, 5);
    assert_int_equal(job->samples[0].begin, 8);
    assert_int_equal(((const struct wire_busy *)said(FRAME_BUSY))->lease, 5);
    tick(BEAT);
    assert_null(said(FRAME_GET_TASK));
    hear_trained(5, true);
    const struct wire_task_end *end = said(FRAME_TASK_END);
    assert_non_null(end);
    assert_true(end->done);
    assert_int_equal(end->lease, 5);
    assert_int_equal(end->samples, 8);
    assert_int_equal(end->instance, INSTANCE);
    assert_non_null(said(FRAME_PROGRESS));
    assert_null(said(FRAME_GET_TASK));
    tick(10);
    assert_null(said(FRAME_TASK_END));
    tick(BEAT); // It may be lost
    assert_non_null(said(FRAME_TASK_END));
    hear(FRAME_ACK, &(struct wire_ack){ .kind = FRAME_TASK_END, .round = 4 }, HEARD_ACK);
    assert_null(said(FRAME_GET_TASK)); // Of another one
    hear(FRAME_ACK, &(struct wire_ack){ .kind = FRAME_TASK_END, .round = 5 }, HEARD_ACK);
    get = said(FRAME_GET_TASK);
    assert_non_null(get);
    assert_int_equal(get->after, 5);
    tick(2 * BEAT);
    assert_null(said(FRAME_TASK_END));
    const struct wire_busy *busy = said(FRAME_BUSY);
    assert_int_equal(busy->pushes, 4);
    assert_int_equal(busy->discarded, 1);
    assert_int_equal(busy->lag, 2);
}

static void hear_ack(uint64_t lease)
{
    hear(FRAME_ACK, &(struct wire_ack){ .kind = FRAME_TASK_END, .round = lease }, HEARD_ACK);
}

// It ends when the end of the third one has been heard. One that is trained in between sets the count to zero.
static void one_that_fails_three_tasks_in_a_row_ends(void **unused)
{
    static const bool done[] = { false, false, true, false, false, false };
    (void)unused;
    begin();
    for (uint64_t lease = 1; lease <= 6; lease++) {
        hear_task(1, lease);
        hear_trained(lease, done[lease - 1]);
        assert_null(said(FRAME_QUIT));
        hear_ack(lease);
        assert_true((said(FRAME_QUIT) != NULL) == (lease == 6));
    }
    const struct wire_quit *quit = said(FRAME_QUIT);
    assert_int_equal(quit->code, 75);
    assert_non_null(strstr(quit->text, "3 tasks in a row have failed"));
}

static void tasks_under_old_numbers_are_ignored(void **unused)
{
    (void)unused;
    begin();
    hear_task(2, 5); // Of another group
    assert_null(said(FRAME_TRAIN_TASK));
    hear_task(1, 5);
    assert_non_null(said(FRAME_TRAIN_TASK));
    hear_task(1, 5);
    assert_null(said(FRAME_TRAIN_TASK));
    hear_task(1, 6); // It has one
    assert_null(said(FRAME_TRAIN_TASK));
    hear_trained(4, true);
    assert_null(said(FRAME_TASK_END));
    hear_trained(5, true);
    hear(FRAME_ACK, &(struct wire_ack){ .kind = FRAME_TASK_END, .round = 5 }, HEARD_ACK);
    hear_task(1, 5); // The mail comes once more
    assert_null(said(FRAME_TRAIN_TASK));
    hear_task(1, 6);
    assert_non_null(said(FRAME_TRAIN_TASK));
}

// Nobody is at fault: it tries again as often as it takes.
static void one_that_nobody_gives_samples_goes_on(void **unused)
{
    (void)unused;
    begin();
    for (uint64_t lease = 1; lease <= 5; lease++) {
        hear_task(1, lease);
        hear(FRAME_TASK_TRAINED,
             &(struct wire_task_trained){ .lease = lease, .no_data = true, .because = "nobody" },
             0);
        const struct wire_task_end *end = said(FRAME_TASK_END);
        assert_true(end && end->lease == lease && !end->done && end->no_data);
        hear(FRAME_ACK, &(struct wire_ack){ .kind = FRAME_TASK_END, .round = lease }, HEARD_ACK);
        assert_null(said(FRAME_QUIT));
    }
}

// The time of a task runs from when it is dealt: one that is dealt while links are made may be late when they stand.
static void a_task_is_asked_for_once_the_links_stand(void **unused)
{
    (void)unused;
    begin_unlinked();
    tick(10);
    assert_null(said(FRAME_GET_TASK));
    hear_formed(2); // Of no group of ours
    tick(2 * BEAT);
    assert_null(said(FRAME_GET_TASK));
    hear_formed(1);
    assert_non_null(said(FRAME_GET_TASK));
    hear_task(1, 5);
    hear_trained(5, true);
    hear_over(STEP + 1); // Its next group has no links yet
    replica.holding = true;
    replica.step = replica.pin_step = member->now.pin_step = STEP + 1;
    member->now.phase = PHASE_TRAIN;
    member->now.round = 2;
    hear_group(2, STEP + 1);
    assert_non_null(said(FRAME_TAKE_GROUP));
    tick(2 * BEAT);
    assert_null(said(FRAME_GET_TASK));
    hear_formed(1);
    tick(2 * BEAT);
    assert_null(said(FRAME_GET_TASK));
    hear_formed(2);
    assert_non_null(said(FRAME_GET_TASK));
}

static void a_late_end_is_not_said_again(void **unused)
{
    (void)unused;
    begin();
    hear_task(1, 5);
    hear_trained(5, false);
    const struct wire_task_end *end = said(FRAME_TASK_END);
    assert_false(end->done);
    assert_null(said(FRAME_PROGRESS));
    hear(FRAME_REFUSED,
         &(struct wire_refused){
             .kind = FRAME_TASK_END, .reason = REFUSAL_STALE, .round = 5, .text = "late" },
         HEARD_REFUSED);
    assert_non_null(said(FRAME_GET_TASK));
    tick(2 * BEAT);
    assert_null(said(FRAME_TASK_END));
}

static void who_waits_for_a_task_asks_once_a_beat(void **unused)
{
    (void)unused;
    begin();
    assert_non_null(said(FRAME_GET_TASK));
    hear(FRAME_REFUSED,
         &(struct wire_refused){
             .kind = FRAME_GET_TASK, .reason = REFUSAL_NOT_NOW, .round = 1, .text = "wait" },
         HEARD_REFUSED);
    tick(BEAT - 20);
    assert_null(said(FRAME_GET_TASK));
    tick(BEAT);
    assert_non_null(said(FRAME_GET_TASK));
    hear(FRAME_BEAT, &(struct wire_beat){ 0 }, HEARD_REBORN); // The coordinator has forgotten it
    assert_non_null(said(FRAME_GET_TASK));
    assert_non_null(said(FRAME_BUSY));
}

static void a_server_gets_no_task(void **unused)
{
    (void)unused;
    member->role = ACTOR_SERVER;
    begin();
    tick(10);
    assert_null(said(FRAME_GET_TASK));
    hear_task(1, 5);
    assert_null(said(FRAME_TRAIN_TASK));
}

static void who_leaves_ends_its_task_first(void **unused)
{
    (void)unused;
    begin();
    hear_task(1, 5);
    member->leaving = true;
    tick(BEAT);
    assert_true(member->leaves_later);
    assert_true(((const struct wire_busy *)said(FRAME_BUSY))->leaves);
    hear_trained(5, true);
    assert_true(member->leaves_later);
    hear(FRAME_ACK, &(struct wire_ack){ .kind = FRAME_TASK_END, .round = 5 }, HEARD_ACK);
    assert_false(member->leaves_later);
    assert_null(said(FRAME_GET_TASK));
}

static void a_server_leaves_when_the_group_is_over(void **unused)
{
    (void)unused;
    member->role = ACTOR_SERVER;
    begin();
    member->leaving = true;
    tick(BEAT);
    assert_true(member->leaves_later);
    hear_close(1, 1, STEP + 3);
    hear_settled(1, true);
    assert_true(member->leaves_later);
    hear_over(STEP + 3);
    assert_false(member->leaves_later);
}

static void who_cannot_go_on_says_so(void **unused)
{
    (void)unused;
    begin();
    hear_task(1, 5);
    hear(FRAME_GROUP_BROKE,
         &(struct wire_group_broke){ .number = 2, .dead = 1, .because = "another" }, 0);
    assert_null(said(FRAME_BUSY));
    hear(FRAME_GROUP_BROKE, &(struct wire_group_broke){ .number = 1, .dead = 4, .because = "gone" },
         0);
    const struct wire_busy *busy = said(FRAME_BUSY);
    assert_non_null(busy);
    assert_true(busy->broken);
    assert_int_equal(busy->dead, 4);
    assert_int_equal(busy->lease, 0);
    assert_string_equal(busy->because, "gone");
    hear_trained(5, true);
    assert_null(said(FRAME_TASK_END));
    tick(BEAT);
    assert_null(said(FRAME_GET_TASK));
    assert_true(((const struct wire_busy *)said(FRAME_BUSY))->broken);
    hear_task(1, 6);
    assert_null(said(FRAME_TRAIN_TASK));
}

// ---- the end --------------------------------------------------------------------------------------

static void a_group_that_is_put_together_is_kept(void **unused)
{
    (void)unused;
    begin();
    hear_close(1, 1, STEP + 3);
    const struct wire_close_group *job = said(FRAME_SETTLE_GROUP);
    assert_non_null(job);
    assert_int_equal(job->members, 7);
    tick(BEAT);
    assert_null(said(FRAME_GET_TASK));
    hear_settled(1, true);
    const struct wire_settled *settled = said(FRAME_SETTLED);
    assert_non_null(settled);
    assert_int_equal(settled->step, STEP + 3);
    assert_int_equal(settled->instance, INSTANCE);
    hear_close(1, 1, STEP + 3); // It is asked again
    assert_null(said(FRAME_SETTLE_GROUP));
    assert_non_null(said(FRAME_SETTLED));
    hear_over(STEP + 3);
    const struct wire_end_group *end = said(FRAME_END_GROUP);
    assert_non_null(end);
    assert_true(end->keep);
    assert_int_equal(end->step, STEP + 3);
    assert_int_equal(replica.step, STEP + 3);
    assert_false(replica.applying);
    const struct hash digest = hash_of("z", 1);
    assert_true(hash_equal(&replica.digest, &digest));
    tick(10);
    assert_non_null(said(FRAME_HOLDS));
    assert_null(said(FRAME_SETTLED));
}

static void another_attempt_takes_the_place_of_the_first(void **unused)
{
    (void)unused;
    begin();
    hear_close(1, 1, STEP + 3);
    hear_settled(1, false);
    const struct wire_settled *settled = said(FRAME_SETTLED);
    assert_false(settled->ok);
    assert_string_equal(settled->because, "a peer is gone");
    hear_close(1, 2, STEP + 3);
    assert_non_null(said(FRAME_SETTLE_GROUP));
    assert_null(said(FRAME_SETTLED));
    hear_close(1, 1, STEP + 3); // Late
    assert_null(said(FRAME_SETTLE_GROUP));
    hear_settled(1, true);
    assert_null(said(FRAME_SETTLED)); // To the first one
    hear_settled(2, true);
    settled = said(FRAME_SETTLED);
    assert_true(settled->ok);
    assert_int_equal(settled->attempt, 2);
    hear_close(2, 3, STEP + 3); // Of another group
    assert_null(said(FRAME_SETTLE_GROUP));
}

static void a_group_that_is_lost_is_dropped(void **unused)
{
    (void)unused;
    begin();
    hear_task(1, 5);
    hear_over(STEP + 3);
    const struct wire_end_group *end = said(FRAME_END_GROUP);
    assert_non_null(end);
    assert_false(end->keep);
    assert_false(replica.holding);
    assert_false(replica.applying);
    hear_trained(5, true);
    assert_null(said(FRAME_TASK_END));
}

static void what_the_run_has_given_up_is_dropped(void **unused)
{
    (void)unused;
    begin();
    hear_close(1, 1, STEP + 3);
    hear_settled(1, true);
    member->now.restored_step = STEP;
    member->now.restored_epoch = 9;
    hear_over(STEP + 3);
    assert_false(((const struct wire_end_group *)said(FRAME_END_GROUP))->keep);
    assert_false(replica.holding);
}

// The news of the end were lost.
static void a_newer_group_ends_the_one_in_hand(void **unused)
{
    (void)unused;
    begin();
    hear_close(1, 1, STEP + 3);
    hear_settled(1, true);
    member->now.round = 2;
    member->now.step = member->now.pin_step = STEP + 3;
    replica.pin_step = STEP + 3;
    hear_group(2, STEP + 3);
    assert_true(((const struct wire_end_group *)said(FRAME_END_GROUP))->keep);
    tick(10);
    const struct wire_take_group *job = said(FRAME_TAKE_GROUP);
    assert_non_null(job);
    assert_int_equal(job->number, 2);
    hear_task(1, 9); // Of the one before
    assert_null(said(FRAME_TRAIN_TASK));
}

static void a_group_that_is_over_is_not_begun(void **unused)
{
    (void)unused;
    member->now.phase = PHASE_COOLDOWN;
    hear_group(1, STEP);
    assert_null(said(FRAME_TAKE_GROUP));
}

static void a_checkpointer_takes_no_group(void **unused)
{
    (void)unused;
    member->role = ACTOR_CHECKPOINTER;
    member->now.phase = PHASE_COOLDOWN;
    hear_group(1, STEP);
    assert_null(said(FRAME_TAKE_GROUP));
    assert_non_null(said(FRAME_HOLDS));
    assert_true(replica.follows_pins);
    assert_false(replica.waits_for_pin);
}

#define CASE(name) TEST_WITH(name, set_up, tear_down)
// ---- memory saves -------------------------------------------------------------------------------

static const struct wire_blob lists[2] = { { { { 1 } }, 32 }, { { { 2 } }, 64 } };

static void hear_copy(uint64_t number, uint64_t step, uint64_t kept_step)
{
    hear(FRAME_COPY_SHARE,
         &(struct wire_copy_share){ number, step, kept_step, kept_step ? number : 0 }, HEARD_PACE);
}

static void hear_keep(uint64_t number, uint64_t step)
{
    hear(FRAME_KEEP_SHARES, &(struct wire_keep_shares){ number, step, lists, 2 }, HEARD_PACE);
}

static void hear_listed(uint64_t number, uint64_t step)
{
    hear(FRAME_LISTED,
         &(struct wire_listed){
             .window = number, .step = step, .place = 0, .lists = lists, .lists_count = 2 },
         0);
}

static void hear_copied(uint64_t step)
{
    hear(FRAME_COPY_TAKEN,
         &(struct wire_share_copied){ .number = 1, .step = step, .list = lists[0] }, 0);
}

// We are the first of two servers.
static void begin_as_server(void)
{
    member->role = ACTOR_SERVER;
    config.servers = 2;
    begin();
}

// A copy, its list, the lists of both, the share of the other: each is said as soon as it is there, and asked of the
// learner once.
static void a_server_copies_and_keeps_what_it_is_told_to(void **unused)
{
    (void)unused;
    begin_as_server();
    hear_copy(2, STEP + 4, 0); // Of another group
    assert_null(said(FRAME_TAKE_COPY));
    hear_copy(1, STEP + 4, 0);
    const struct wire_save_share *copy = said(FRAME_TAKE_COPY);
    assert_true(copy && copy->number == 1 && copy->step == STEP + 4);
    hear_copy(1, STEP + 4, 0);
    assert_null(said(FRAME_TAKE_COPY));
    hear_copied(STEP + 4);
    const struct wire_busy *busy = said(FRAME_BUSY);
    assert_true(busy && busy->copied.step == STEP + 4 && busy->copied.list.bytes == 32);
    hear_keep(1, STEP + 3); // Of other copies
    assert_null(said(FRAME_GIVE_LISTS));
    hear_keep(1, STEP + 4);
    assert_non_null(said(FRAME_GIVE_LISTS));
    hear_keep(1, STEP + 4);
    assert_null(said(FRAME_GIVE_LISTS));
    hear_listed(1, STEP + 4);
    assert_true(blobs_state(blobs, &lists[0]) == BLOB_HERE &&
                blobs_state(blobs, &lists[1]) == BLOB_WANTED);
    blobs_have(blobs, &lists[1], STEP + 4);
    tick(20);
    const struct wire_fetch_share *job = said(FRAME_FETCH_SHARE);
    assert_true(job && job->apart && job->place == 0 && job->buddies == 1 && job->lists_count == 2);
    hear(FRAME_FETCHED_SHARE,
         &(struct wire_fetched_share){
             .turn = job->turn, .step = STEP + 4, .ok = true, .digest = { { 9 } } },
         0);
    busy = said(FRAME_BUSY);
    assert_true(busy && busy->kept.number == 1 && busy->kept.step == STEP + 4 &&
                busy->kept.digest.bytes[0] == 9);
}

// That it is on record is known before the next copy is made: by the order for that one, or by RUN.
static void what_is_on_record_is_told_to_the_learner(void **unused)
{
    (void)unused;
    begin_as_server();
    hear_copy(1, STEP + 4, 0);
    hear_copied(STEP + 4);
    hear_keep(1, STEP + 4);
    hear_listed(1, STEP + 4);
    hear_copy(1, STEP + 8, STEP + 4);
    const struct wire_kept *kept = said(FRAME_KEPT);
    assert_true(kept && kept->window == 1 && kept->step == STEP + 4);
    assert_non_null(said(FRAME_TAKE_COPY));
    assert_int_equal(blobs_state(blobs, &lists[1]), BLOB_UNKNOWN); // Nobody waits for it
    member->now.memory_window = 1, member->now.memory_step = STEP + 8;
    hear(FRAME_RUN, &member->now, HEARD_RUN);
    kept = said(FRAME_KEPT);
    assert_true(kept && kept->step == STEP + 8);
    hear(FRAME_RUN, &member->now, HEARD_RUN);
    assert_null(said(FRAME_KEPT));
}

static const struct hash *forgotten(void)
{
    const struct wire_forget *forget = said(FRAME_FORGET);
    return forget && forget->blobs_count == 1 ? &forget->blobs[0].hash : NULL;
}

// Another server could not copy, so nobody asks for the list of ours: it does not stay.
static void the_list_of_a_copy_in_vain_is_forgotten(void **unused)
{
    (void)unused;
    begin_as_server();
    hear_copy(1, STEP + 4, 0);
    hear_copied(STEP + 4);
    hear_copy(1, STEP + 8, 0);
    hear_copied(STEP + 8); // The share is as it was: so is its list
    assert_null(forgotten());
    hear(FRAME_COPY_TAKEN,
         &(struct wire_share_copied){ .number = 1, .step = STEP + 12, .list = lists[1] }, 0);
    assert_true(forgotten() && hash_equal(forgotten(), &lists[0].hash));
    hear_copy(1, STEP + 12, 0);
    hear_keep(1, STEP + 12);
    hear(FRAME_COPY_TAKEN, &(struct wire_share_copied){ .number = 1, .step = STEP + 16 }, 0);
    assert_null(forgotten()); // That of the keeper, which was asked for
}

static void a_trainer_copies_nothing(void **unused)
{
    (void)unused;
    begin();
    hear_copy(1, STEP + 4, 0);
    assert_null(said(FRAME_TAKE_COPY));
    hear_keep(1, STEP + 4);
    assert_null(said(FRAME_GIVE_LISTS));
}

TESTS(CASE(a_group_is_taken_once), CASE(only_a_group_that_fits_is_taken),
      CASE(a_group_that_was_lost_is_asked_for), CASE(a_trainer_trains_one_task_after_the_other),
      CASE(one_that_fails_three_tasks_in_a_row_ends), CASE(tasks_under_old_numbers_are_ignored),
      CASE(one_that_nobody_gives_samples_goes_on), CASE(a_late_end_is_not_said_again),
      CASE(a_task_is_asked_for_once_the_links_stand), CASE(who_waits_for_a_task_asks_once_a_beat),
      CASE(a_server_gets_no_task), CASE(who_leaves_ends_its_task_first),
      CASE(a_server_leaves_when_the_group_is_over), CASE(who_cannot_go_on_says_so),
      CASE(a_group_that_is_put_together_is_kept),
      CASE(another_attempt_takes_the_place_of_the_first), CASE(a_group_that_is_lost_is_dropped),
      CASE(what_the_run_has_given_up_is_dropped), CASE(a_newer_group_ends_the_one_in_hand),
      CASE(a_group_that_is_over_is_not_begun), CASE(a_checkpointer_takes_no_group),
      CASE(a_server_saves_what_it_is_told_to_save_once), CASE(a_trainer_saves_nothing),
      CASE(a_server_saves_what_its_group_puts_together),
      CASE(a_server_copies_and_keeps_what_it_is_told_to),
      CASE(what_is_on_record_is_told_to_the_learner), CASE(the_list_of_a_copy_in_vain_is_forgotten),
      CASE(a_trainer_copies_nothing))
