// async: which push a server applies, when a trainer pushes and pulls, and what it pushes.

#include "common/learner/async_header.h"
#include "common/learner/async_trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

enum { PLACE = 40, FLOATS = 20 };

// ---- a server -------------------------------------------------------------------------------

static struct async_server server;
static float gradient[FLOATS];

// Trainers 0, 1, ... of instances 100, 101, ... have pulled.
static void begin(uint32_t count)
{
    struct async_member trainers[ASYNC_TRAINERS_MAX];
    async_server_init(&server, ASYNC_STALENESS);
    for (uint32_t i = 0; i < count; i++) trainers[i] = (struct async_member){ i, 100 + i };
    async_server_begin(&server, PLACE, trainers, count);
    for (uint32_t i = 0; i < count; i++) async_server_pulled(&server, i);
}

static struct async_push push_of(uint32_t member, uint64_t sequence)
{
    const struct async_line *line = async_server_line(&server, member);
    return (struct async_push){ .member = member,
                                .instance = 100 + member,
                                .sequence = sequence,
                                .lease = 1 + member,
                                .place_number = PLACE,
                                .version = line ? line->pulled : 0 };
}

static enum async_verdict say(const struct async_push *push)
{
    const struct async_server before = server;
    const enum async_verdict verdict = async_server_judge(&server, push, gradient, FLOATS);
    assert_memory_equal(&server, &before, sizeof server);
    async_server_settle(&server, push, verdict);
    assert_true(async_server_is_sound(&server));
    return verdict;
}

static enum async_verdict push(uint32_t member, uint64_t sequence)
{
    const struct async_push said = push_of(member, sequence);
    return say(&said);
}

static void a_push_is_applied_once(void **state)
{
    (void)state;
    begin(2);
    assert_int_equal(push(0, 1), ASYNC_APPLY);
    assert_int_equal(server.version, 1);
    assert_int_equal(push(0, 1), ASYNC_APPLIED_BEFORE);
    assert_int_equal(push(0, 2), ASYNC_APPLY);
    assert_int_equal(push(0, 1), ASYNC_APPLIED_BEFORE);
    assert_int_equal(push(0, 0), ASYNC_NO_SEQUENCE);
    assert_int_equal(server.version, 2);
    assert_int_equal(async_server_line(&server, 0)->pushes, 2);
    assert_int_equal(push(1, 7), ASYNC_APPLY); // A server that was loaded lacks some
}

// Lag is counted in the pushes of all.
static void a_push_that_lags_is_discarded(void **state)
{
    static const uint64_t limits[][3] = { { 1, 1500, 1 },  { 2, 1500, 3 },   { 3, 1500, 4 },
                                          { 4, 1500, 6 },  { 64, 1500, 96 }, { 3, 100, 1 },
                                          { 10, 1100, 11 } };
    (void)state;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        begin((uint32_t)limits[i][0]);
        server.staleness = limits[i][1];
        assert_int_equal(async_server_limit(&server), limits[i][2]);
    }
    begin(2); // Three pushes and more are too many
    struct async_push late = push_of(1, 1);
    for (uint64_t i = 1; i <= 2; i++) {
        assert_int_equal(push(0, i), ASYNC_APPLY);
        async_server_pulled(&server, 0);
    }
    assert_int_equal(say(&late), ASYNC_APPLY);
    assert_int_equal(async_server_line(&server, 1)->lags[2], 1);
    late.sequence = 2;
    assert_int_equal(say(&late), ASYNC_STALE);
    assert_int_equal(server.version, 3);
    assert_int_equal(say(&late), ASYNC_STALE); // A retry is told the same, and counts once
    const struct async_line *line = async_server_line(&server, 1);
    assert_int_equal(line->pushes, 2);
    assert_int_equal(line->discards, 1);
    assert_int_equal(line->lags[3], 1);
    async_server_pulled(&server, 1);
    assert_int_equal(say(&late), ASYNC_STALE);
    assert_int_equal(push(1, 3), ASYNC_APPLY);
    assert_int_equal(line->lags[0], 1);
}

// A lag beyond the table is counted in its last field, and one that is discarded does not block the next push.
static void a_long_lag_is_counted(void **state)
{
    (void)state;
    begin(64);
    struct async_push late = push_of(1, 1);
    for (uint64_t i = 1; i <= 50; i++) assert_int_equal(push(0, i), ASYNC_APPLY);
    assert_int_equal(say(&late), ASYNC_APPLY);
    assert_int_equal(async_server_line(&server, 1)->lags[ASYNC_LAGS - 1], 1);
    assert_int_equal(async_server_line(&server, 0)->lags[ASYNC_LAGS - 1], 35);
}

static void a_push_that_may_not_be_is_refused(void **state)
{
    (void)state;
    begin(2);
    assert_int_equal(push(0, 1), ASYNC_APPLY);
    const struct async_server before = server;
    struct async_push bad[8];
    static const enum async_verdict verdicts[] = { ASYNC_OTHER_INSTANCE, ASYNC_OTHER_INSTANCE,
                                                   ASYNC_OTHER_PLACE,    ASYNC_OTHER_LEASE,
                                                   ASYNC_OTHER_LEASE,    ASYNC_OTHER_LEASE,
                                                   ASYNC_NO_VERSION,     ASYNC_NO_VERSION };
    for (int i = 0; i < 8; i++) bad[i] = push_of(1, 1);
    bad[0].instance = 99;
    bad[1].member = 2;
    bad[2].place_number = PLACE - 1;
    bad[3].lease = 1; // That of trainer 0
    bad[4].lease = 0;
    bad[5] = push_of(0, 2), bad[5].lease = 0;
    bad[6].version = 1; // It has pulled version 0
    bad[7].version = ASYNC_NEVER;
    for (int i = 0; i < 8; i++) {
        assert_int_equal(say(&bad[i]), verdicts[i]);
        assert_true(async_is_refusal(verdicts[i]));
    }
    assert_int_equal(async_server_line(&server, 1)->refusals, 6);
    assert_int_equal(server.version, before.version);
    assert_int_equal(push(1, 1), ASYNC_APPLY);
    struct async_push old = push_of(1, 2);
    old.lease = 9;
    assert_int_equal(say(&old), ASYNC_APPLY);
    old.sequence = 3, old.lease = 2; // It went on to 9
    assert_int_equal(say(&old), ASYNC_OTHER_LEASE);
}

static void numbers_that_are_not_finite_are_refused(void **state)
{
    static const float bad[] = { NAN, -NAN, INFINITY, -INFINITY };
    (void)state;
    begin(1);
    for (int i = 0; i < 4; i++) {
        gradient[(i * 7) % FLOATS] = bad[i];
        assert_int_equal(push(0, 1), ASYNC_NOT_FINITE);
        gradient[(i * 7) % FLOATS] = 3.4e38f;
    }
    assert_int_equal(async_server_line(&server, 0)->refusals, 4);
    assert_int_equal(push(0, 1), ASYNC_APPLY);
    const struct async_push second = push_of(0, 2);
    // The optimizer could not use it: what was judged is not what was done
    async_server_settle(&server, &second, ASYNC_NOT_FINITE);
    assert_int_equal(server.version, 1);
}

static void a_new_process_begins_anew(void **state)
{
    (void)state;
    begin(2);
    assert_int_equal(push(0, 1), ASYNC_APPLY);
    assert_int_equal(push(0, 2), ASYNC_APPLY);
    const struct async_member again[] = { { 0, 500 }, { 1, 101 } };
    async_server_begin(&server, PLACE, again, 2);
    assert_int_equal(push(0, 3), ASYNC_OTHER_INSTANCE); // Of the old process
    struct async_push first = push_of(0, 1);
    first.instance = 500;
    assert_int_equal(say(&first), ASYNC_STALE); // It has nothing of this server yet
    async_server_pulled(&server, 0);
    first = push_of(0, 2);
    first.instance = 500;
    assert_int_equal(say(&first), ASYNC_APPLY);
    const struct async_line *line = async_server_line(&server, 0);
    assert_int_equal(line->pushes, 4);
    assert_int_equal(line->pulls, 0);                 // The first one of a process is not counted
    async_server_begin(&server, PLACE, &again[1], 1); // Trainer 0 has left
    assert_int_equal(say(&first), ASYNC_OTHER_INSTANCE);
    assert_int_equal(async_server_limit(&server), 1);
    async_server_begin(&server, PLACE, again, 2); // And is back, in the same life
    assert_int_equal(say(&first), ASYNC_APPLIED_BEFORE);
}

// It goes on from its piece: sequences count, versions do not.
static void a_server_that_comes_back_is_pulled_first(void **state)
{
    (void)state;
    begin(2);
    assert_int_equal(push(0, 1), ASYNC_APPLY);
    const struct async_server piece = server;
    assert_int_equal(push(0, 2), ASYNC_APPLY);
    server = piece;
    const struct async_member trainers[] = { { 0, 100 }, { 1, 101 } };
    async_server_begin(&server, PLACE + 1, trainers, 2);
    assert_int_equal(push(0, 2), ASYNC_OTHER_PLACE);
    struct async_push again = push_of(0, 1);
    again.place_number = PLACE + 1;
    assert_int_equal(say(&again), ASYNC_APPLIED_BEFORE);
    again.sequence = 2, again.version = 0;
    assert_int_equal(say(&again), ASYNC_STALE);
    async_server_pulled(&server, 0);
    again.sequence = 3, again.version = 1;
    assert_int_equal(say(&again), ASYNC_APPLY);
    assert_int_equal(async_server_judge_pull(&server, 1, 101, PLACE), ASYNC_OTHER_PLACE);
    assert_int_equal(async_server_judge_pull(&server, 1, 102, PLACE + 1), ASYNC_OTHER_INSTANCE);
    assert_int_equal(async_server_judge_pull(&server, 9, 101, PLACE + 1), ASYNC_OTHER_INSTANCE);
    assert_int_equal(async_server_judge_pull(&server, 1, 101, PLACE + 1), ASYNC_TAKEN);
}

// 200 trainers come and go, 60 at a time. The one that was seen longest ago is forgotten.
static void lines_are_used_again(void **state)
{
    struct async_member trainers[60];
    (void)state;
    begin(2);
    for (uint32_t turn = 0; turn < 20; turn++) {
        for (uint32_t i = 0; i < 60; i++)
            trainers[i] = (struct async_member){ turn * 7 + i, 100 + turn * 7 + i };
        async_server_begin(&server, PLACE, trainers, 60);
        assert_true(async_server_is_sound(&server));
        for (uint32_t i = 0; i < 60; i++) {
            const struct async_line *line = async_server_line(&server, turn * 7 + i);
            assert_non_null(line);
            // Those of the group before are known
            assert_int_equal(line->sequence, turn > 0 && i < 53 ? turn : 0);
            async_server_pulled(&server, turn * 7 + i);
            struct async_push said = push_of(turn * 7 + i, turn + 1);
            said.lease = 1000 * (turn + 1) + i;
            assert_int_equal(say(&said), ASYNC_APPLY);
        }
    }
    assert_null(async_server_line(&server, 0));
}

static void one_that_was_loaded_is_checked(void **state)
{
    (void)state;
    begin(3);
    assert_true(async_server_is_sound(&server));
    const struct async_server sound = server;
    server.lines[1].member = 0;
    assert_false(async_server_is_sound(&server));
    server = sound, server.lines[1].pulled = 1;
    assert_false(async_server_is_sound(&server));
    server = sound, server.lines[1].live = 2;
    assert_false(async_server_is_sound(&server));
    server = sound, server.staleness = (uint64_t)1 << 40;
    assert_false(async_server_is_sound(&server));
    server = sound, server.version = ASYNC_NEVER;
    assert_false(async_server_is_sound(&server));
    for (int verdict = 0; verdict < ASYNC_VERDICTS; verdict++)
        assert_non_null(async_verdict_text(verdict));
}

static void headers_are_read_as_they_were_written(void **state)
{
    const struct async_push said = { 7, 1, 2, 3, 4, 5, 0.25f };
    const struct async_answer answer = { ASYNC_STALE, 77 };
    uint8_t bytes[ASYNC_QUESTION_BYTES + 1] = { 0 };
    enum async_kind kind;
    struct async_push push_read;
    struct async_answer answer_read;
    (void)state;
    async_question_pack(ASYNC_PUSH, &said, bytes);
    assert_true(async_question_unpack(bytes, ASYNC_QUESTION_BYTES, 7, &kind, &push_read));
    assert_int_equal(kind, ASYNC_PUSH);
    assert_true(push_read.member == 7 && push_read.instance == 1 && push_read.sequence == 2);
    assert_true(push_read.lease == 3 && push_read.place_number == 4 && push_read.version == 5);
    assert_true(push_read.rate == 0.25f);
    static const float no_rates[] = { -1, INFINITY, NAN };
    for (int i = 0; i < 3; i++) {
        struct async_push wrong = said;
        wrong.rate = no_rates[i];
        async_question_pack(ASYNC_PUSH, &wrong, bytes);
        assert_false(async_question_unpack(bytes, ASYNC_QUESTION_BYTES, 7, &kind, &push_read));
    }
    async_question_pack(ASYNC_PUSH, &said, bytes);
    assert_false(async_question_unpack(bytes, ASYNC_QUESTION_BYTES + 1, 7, &kind, &push_read));
    assert_false(async_question_unpack(bytes, ASYNC_QUESTION_BYTES - 1, 7, &kind, &push_read));
    bytes[0] = ASYNC_PULL; // A pull has no sequence
    assert_false(async_question_unpack(bytes, ASYNC_QUESTION_BYTES, 7, &kind, &push_read));
    bytes[0] = 3;
    assert_false(async_question_unpack(bytes, ASYNC_QUESTION_BYTES, 7, &kind, &push_read));
    bytes[0] = ASYNC_PUSH, bytes[3] = 1;
    assert_false(async_question_unpack(bytes, ASYNC_QUESTION_BYTES, 7, &kind, &push_read));
    async_question_pack(ASYNC_PULL, &said, bytes);
    assert_true(async_question_unpack(bytes, ASYNC_QUESTION_BYTES, 7, &kind, &push_read));
    assert_true(kind == ASYNC_PULL && push_read.instance == 1 && push_read.place_number == 4);
    async_answer_pack(&answer, bytes);
    assert_true(async_answer_unpack(bytes, ASYNC_ANSWER_BYTES, &answer_read));
    assert_true(answer_read.verdict == ASYNC_STALE && answer_read.version == 77);
    bytes[0] = ASYNC_VERDICTS;
    assert_false(async_answer_unpack(bytes, ASYNC_ANSWER_BYTES, &answer_read));
    assert_false(async_answer_unpack(bytes, 0, &answer_read));
}

// ---- a trainer ------------------------------------------------------------------------------

static struct why why;
static double norm;

static void mean(struct async_trainer *self, float *sum, uint64_t floats)
{
    assert_int_equal(async_trainer_mean(self, NULL, sum, floats, 0, &why, &norm), 0);
}

// Tasks of so many batches; what a server counts of them. `staleness` in thousandths.
static void train(uint32_t tasks, uint32_t batches, uint32_t push_every, uint32_t pull_every,
                  uint32_t staleness)
{
    struct async_trainer trainer;
    float sum[1], one[1] = { 1 };
    begin(1);
    server.staleness = staleness;
    async_trainer_init(&trainer, push_every, pull_every);
    for (uint32_t task = 0; task < tasks; task++)
        for (uint32_t batch = 1; batch <= batches; batch++) {
            async_trainer_add(&trainer, NULL, sum, one, 1, 8);
            const unsigned due = async_trainer_due(&trainer, batch == batches);
            if (due & ASYNC_PUSH_DUE) {
                mean(&trainer, sum, 1);
                assert_true(sum[0] == 1);
                struct async_push said = push_of(0, trainer.sequence);
                said.lease = 1 + task;
                const enum async_verdict verdict = say(&said);
                assert_true(verdict == ASYNC_APPLY || verdict == ASYNC_STALE);
                async_trainer_pushed(&trainer, verdict == ASYNC_STALE);
            }
            // A push that was stale may have made a pull due
            if ((due | async_trainer_due(&trainer, false)) & ASYNC_PULL_DUE) {
                async_server_pulled(&server, 0);
                async_trainer_pulled(&trainer);
            }
        }
    assert_int_equal(async_trainer_due(&trainer, true) & ASYNC_PUSH_DUE, 0);
}

// "n and m do not have to be equal."
static void it_pushes_every_n_and_pulls_every_m_batches(void **state)
{
    const struct async_line *line;
    (void)state;
    train(10, 6, 2, 3, 5000);
    line = async_server_line(&server, 0);
    assert_int_equal(line->pushes, 30);
    assert_int_equal(line->pulls, 20);
    assert_int_equal(line->discards, 0);
    train(10, 6, 2, 3, ASYNC_STALENESS); // Of three pushes one is stale, when a pull is due anyway
    line = async_server_line(&server, 0);
    assert_true(line->pushes == 30 && line->pulls == 20 && line->discards == 10);
    train(5, 12, 2, 3, 5000);
    line = async_server_line(&server, 0);
    assert_true(line->pushes == 30 && line->pulls == 20 && server.version == 30);
    train(12, 5, 2, 3, 5000); // 2, 2 and what is left of each task; pulls over the borders
    line = async_server_line(&server, 0);
    assert_true(line->pushes == 36 && line->pulls == 20);
    train(7, 1, 1, 1, ASYNC_STALENESS);
    line = async_server_line(&server, 0);
    assert_true(line->pushes == 7 && line->pulls == 7 && line->discards == 0);
    train(1, 5, 9, 9, ASYNC_STALENESS);
    line = async_server_line(&server, 0);
    assert_true(line->pushes == 1 && line->pulls == 0);
}

// A trainer alone has a limit of 1: its second push after a pull is stale, and it pulls at once.
static void a_stale_push_makes_a_pull_due(void **state)
{
    const struct async_line *line;
    (void)state;
    train(1, 6, 1, 3, ASYNC_STALENESS);
    line = async_server_line(&server, 0);
    assert_int_equal(line->pushes, 6);
    assert_int_equal(line->discards, 3);
    assert_int_equal(line->pulls, 3);
    struct async_trainer trainer;
    float sum[1], one[1] = { 1 };
    async_trainer_init(&trainer, 1, 100);
    async_trainer_add(&trainer, NULL, sum, one, 1, 1);
    mean(&trainer, sum, 1);
    async_trainer_pushed(&trainer, true);
    assert_int_equal(async_trainer_due(&trainer, false), ASYNC_PULL_DUE);
    async_trainer_pulled(&trainer);
    assert_int_equal(async_trainer_due(&trainer, false), 0);
}

enum { MANY = 40000 };

static void a_push_is_the_mean_over_its_samples(void **state)
{
    float *sum = malloc(MANY * sizeof *sum), *values = malloc(MANY * sizeof *values);
    struct async_trainer trainer;
    pool_t *pool = pool_new(2);
    (void)state;
    async_trainer_init(&trainer, 3, 3);
    for (int i = 0; i < MANY; i++) values[i] = (float)(i % 97) / 7 - 5;
    // One batch: its own bits
    async_trainer_add(&trainer, pool, sum, values, MANY, 3);
    mean(&trainer, sum, MANY);
    assert_memory_equal(sum, values, MANY * sizeof *sum);
    async_trainer_pushed(&trainer, false);
    // Batches of 4, 2 and 2 samples
    for (int batch = 0; batch < 3; batch++) {
        for (int i = 0; i < MANY; i++) values[i] = (float)(i % 97 + 16 * batch);
        async_trainer_add(&trainer, pool, sum, values, MANY, batch ? 2 : 4);
    }
    assert_int_equal(trainer.samples, 8);
    mean(&trainer, sum, MANY);
    assert_int_equal(trainer.sequence, 2);
    for (int i = 0; i < MANY; i++) assert_true(sum[i] == (float)(i % 97) + 4 + 8);
    async_trainer_pushed(&trainer, false);
    pool_destroy(&pool);
    free(sum), free(values);
}

static void a_push_is_clipped_as_a_whole(void **state)
{
    struct async_trainer trainer;
    float sum[2], three_four[2] = { 3, 4 };
    (void)state;
    async_trainer_init(&trainer, 1, 1);
    async_trainer_add(&trainer, NULL, sum, three_four, 2, 1);
    assert_int_equal(async_trainer_mean(&trainer, NULL, sum, 2, 2.5, &why, &norm), 0);
    assert_true(norm == 5 && sum[0] == 1.5f && sum[1] == 2);
    async_trainer_pushed(&trainer, false);
    sum[0] = NAN;
    async_trainer_add(&trainer, NULL, sum, sum, 2, 1); // In place
    assert_int_equal(async_trainer_mean(&trainer, NULL, sum, 2, 2.5, &why, &norm), FAULT_NAN);
    assert_int_equal(trainer.sequence, 1);
    assert_int_equal(async_trainer_due(&trainer, true), ASYNC_PULL_DUE);
    async_trainer_add(&trainer, NULL, sum, three_four, 2, 1);
    mean(&trainer, sum, 2);
    assert_true(trainer.sequence == 2 && sum[0] == 3);
}

TESTS(TEST(a_push_is_applied_once), TEST(a_push_that_lags_is_discarded),
      TEST(a_long_lag_is_counted), TEST(a_push_that_may_not_be_is_refused),
      TEST(numbers_that_are_not_finite_are_refused), TEST(a_new_process_begins_anew),
      TEST(a_server_that_comes_back_is_pulled_first), TEST(lines_are_used_again),
      TEST(one_that_was_loaded_is_checked), TEST(headers_are_read_as_they_were_written),
      TEST(it_pushes_every_n_and_pulls_every_m_batches), TEST(a_stale_push_makes_a_pull_due),
      TEST(a_push_is_the_mean_over_its_samples), TEST(a_push_is_clipped_as_a_whole))
