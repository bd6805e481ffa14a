// leases_learner_test -- learners in one process are trainers and asynchronous servers of a group: they train tasks, push,
// pull, and put their state together. The tests are the coordinator.

#include "common/compute/compute.h"
#include "common/data/source.h"
#include "common/optimizer/optimizer.h"
#include "tests/unit/windows_fixture.h"

enum { SERVERS = 2, BATCH_HERE = 5, SAMPLES = 300 };

static struct wire_leases_config config;
static uint64_t next_group, next_lease, next_attempt;

// A model of six leaves, and a group in which nothing is stale.
static void begin_run(uint32_t push_every, uint32_t pull_every)
{
    config = (struct wire_leases_config){ .servers = SERVERS,
                                          .push_every = push_every,
                                          .pull_every = pull_every,
                                          .staleness = 1000,
                                          .task_samples = 2 * BATCH_HERE,
                                          .time_min_ms = 1000,
                                          .time_max_ms = 10000,
                                          .settle_ms = 20000,
                                          .link = LINK_PLAIN,
                                          .connections = 1,
                                          .clip_norm = 0.5,
                                          .weight_decay = 0.1,
                                          .beta1 = 0.9,
                                          .beta2 = 0.95,
                                          .eps = 1e-8,
                                          .batch_start = BATCH_HERE,
                                          .batch_end = BATCH_HERE };
    leases = &config;
    share_moments();
}

static void end_run(void)
{
    end_group();
    leases = NULL;
}

// ---- a small coordinator ------------------------------------------------------------------------

struct here {
    struct member *group[MEMBERS_MAX_HERE];
    uint32_t count;
    uint64_t step, samples_done;
};

static void take(struct here *at, uint32_t servers)
{
    struct wire_linked linked[MEMBERS_MAX_HERE];
    link_with(at->group, at->count, linked);
    struct wire_take_group job = { .number = ++next_group,
                                   .step = at->step,
                                   .samples_done = at->samples_done,
                                   .group = linked,
                                   .group_count = at->count,
                                   .servers = servers,
                                   .born_unix_ms = BORN,
                                   .pass_samples = SAMPLES };
    next_attempt = 0;
    for (job.place = 0; job.place < at->count; job.place++)
        send_job(at->group[job.place], FRAME_TAKE_GROUP, &job);
}

// Members 0 .. count-1, of which the last two are servers.
static struct here begin(uint32_t trainers)
{
    struct here at = { .count = trainers + SERVERS };
    for (uint32_t i = 0; i < at.count; i++) {
        be_born(&members[i], i, 0, NULL);
        at.group[i] = &members[i];
    }
    take(&at, SERVERS);
    return at;
}

static float rate_at(uint64_t step) { return rate / (float)(1 + step); }

static void give(const struct here *at, struct member *trainer, struct interval samples)
{
    struct wire_train_task job = {
        .lease = ++next_lease, .step = at->step, .samples = &samples, .samples_count = 1
    };
    const float of_step = rate_at(at->step);
    memcpy(&job.lr_bits, &of_step, sizeof of_step);
    send_job(trainer, FRAME_TRAIN_TASK, &job);
}

static struct wire_task_trained hear_trained(struct member *trainer)
{
    const struct wire_task_trained *said = hear_kind(trainer, FRAME_TASK_TRAINED);
    if (!said->done) fail_msg("%s", said->because);
    return *said;
}

// Of so many batches, from the next sample on. The samples begin anew when all are trained.
static struct interval next_samples(struct here *at, uint32_t batches)
{
    const uint64_t count = (uint64_t)batches * BATCH_HERE, from = at->samples_done % SAMPLES;
    at->samples_done += count;
    return (struct interval){ from, from + count };
}

// One task, to its end.
static struct wire_task_trained train(struct here *at, struct member *trainer, uint32_t batches)
{
    give(at, trainer, next_samples(at, batches));
    at->step += batches;
    const struct wire_task_trained said = hear_trained(trainer);
    assert_int_equal(said.samples, batches * BATCH_HERE);
    return said;
}

// All living members put the state together, and end in one digest.
static struct hash settle(const struct here *at, uint64_t among)
{
    const struct wire_close_group job = { next_group, ++next_attempt, at->step, among };
    struct hash digest = { { 0 } };
    for (uint32_t i = 0; i < at->count; i++)
        if (among >> i & 1) send_job(at->group[i], FRAME_SETTLE_GROUP, &job);
    for (uint32_t i = 0; i < at->count; i++) {
        if (!(among >> i & 1)) continue;
        const struct wire_settled *said = hear_kind(at->group[i], FRAME_GROUP_SETTLED);
        if (!said->ok) fail_msg("%u: %s", i, said->because);
        assert_true(said->number == job.number && said->attempt == job.attempt);
        if (hash_is_none(&digest)) digest = said->digest;
        assert_true(hash_equal(&digest, &said->digest) && !hash_is_none(&digest));
    }
    return digest;
}

static void end(const struct here *at, bool keep)
{
    const struct wire_end_group job = { next_group, keep, keep ? at->step : 0 };
    for (uint32_t i = 0; i < at->count; i++)
        if (at->group[i]->worker) send_job(at->group[i], FRAME_END_GROUP, &job);
}

// ---- a plain loop -------------------------------------------------------------------------------

struct plain {
    struct layout_tensor tensors[64];
    struct layout layout;
    compute_t *compute;
    optimizer_t *optimizer;
    provider_t *provider;
};

static void begin_plain(struct plain *self)
{
    const struct optimizer_settings settings = {
        .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8
    };
    const struct samples_config samples = { .seq_len = SEQ,
                                            .vocab_size = shape.vocab,
                                            .token_bytes = 2 };
    struct wire_data_source data = { .kind = DATA_LOCAL, .token_bytes = 2 };
    const struct hash any = { { 0 } };
    struct compute_device device;
    assert_int_equal(model_tensors_layout(&shape, self->tensors, NULL, &self->layout), 0);
    assert_int_equal(compute_find("cpu", NULL, &device), 0);
    const struct optimizer_place place = { &shape, &self->layout, { 0, self->layout.total }, NULL };
    assert_int_equal(optimizer_new(&optimizer_adamw, &place, &settings, NULL, &self->optimizer), 0);
    struct compute_config compute = {
        .shape = shape, .micro_batch = 4, .seq = SEQ, .trains = true
    };
    optimizer_ask(self->optimizer, &compute);
    assert_int_equal(compute_new(&device, &compute, NULL, &self->compute), 0);
    assert_int_equal(optimizer_begin(self->optimizer, self->compute, NULL), 0);
    genesis_fill(&shape, 5, compute_host(self->compute));
    assert_int_equal(compute_push(self->compute, NULL), 0);
    snprintf(data.where, sizeof data.where, "%.200s/data", folder);
    assert_int_equal(source_open_folder(&data, &samples, &any, NULL, &self->provider), 0);
}

static void end_plain(struct plain *self)
{
    provider_close(&self->provider);
    compute_destroy(&self->compute);
    optimizer_destroy(&self->optimizer);
}

// The samples of a task, in batches.
static void train_plain(struct plain *self, struct interval at, float of_step)
{
    uint32_t tokens[BATCH_HERE * (SEQ + 1)];
    double loss, norm;
    for (uint64_t from = at.begin; from < at.end; from += BATCH_HERE) {
        assert_int_equal(provider_read(self->provider, from, BATCH_HERE, tokens, NULL), 0);
        assert_int_equal(compute_gradient(self->compute, tokens, BATCH_HERE, NULL, &loss), 0);
        assert_int_equal(compute_clip(self->compute, config.clip_norm, NULL, &norm), 0);
        assert_int_equal(optimizer_step(self->optimizer, of_step, NULL), 0);
    }
}

static struct hash digest_of_plain(struct plain *self)
{
    struct state_cut cut = state_cut_of_floats(self->layout.total);
    optimizer_cut(self->optimizer, &cut);
    struct hash leaves[64];
    assert_true(state_cut_leaves(&cut) <= 64);
    assert_int_equal(compute_leaves(self->compute, COMPUTE_PARAMETERS, NULL, leaves), 0);
    assert_int_equal(
        optimizer_leaves(self->optimizer, NULL, leaves + state_item_leaves(cut.bytes[0])), 0);
    return state_cut_root(&cut, leaves);
}

// ---- the tests ----------------------------------------------------------------------------------

// A trainer alone that pushes and pulls after each batch takes the steps of a plain loop, also in a second group, which
// begins with the state that the first one has put together.
static void one_trainer_ends_in_the_bits_of_a_plain_loop(void **unused)
{
    struct plain plain;
    (void)unused;
    begin_run(1, 1);
    begin_plain(&plain);
    struct here at = begin(1);
    for (int group = 0; group < 2; group++) {
        if (group > 0) take(&at, SERVERS);
        for (int task = 0; task < 4; task++) {
            const float of_step = rate_at(at.step);
            const uint64_t from = at.samples_done;
            const struct wire_task_trained said = train(&at, at.group[0], 3);
            train_plain(&plain, (struct interval){ from, at.samples_done }, of_step);
            assert_int_equal(said.pushes, 3 * (task + 1));
            assert_true(said.discarded == 0 && said.lag == 0 && said.tokens_per_s > 0);
        }
        const struct hash digest = settle(&at, 7), wanted = digest_of_plain(&plain);
        assert_true(hash_equal(&digest, &wanted));
        end(&at, true);
    }
    end_plain(&plain);
    end_run();
}

// Two tasks at a time until each has had so many. Returns the mean loss of the last two.
static float train_two(struct here *at, uint32_t tasks, uint32_t batches)
{
    float loss = 0;
    for (uint32_t task = 0; task < tasks; task++) {
        for (int t = 0; t < 2; t++) give(at, at->group[t], next_samples(at, batches));
        at->step += 2 * batches;
        loss = 0;
        for (int t = 0; t < 2; t++) loss += hear_trained(at->group[t]).loss / 2;
    }
    return loss;
}

static void two_trainers_end_in_one_digest(void **unused)
{
    (void)unused;
    begin_run(1, 1);
    struct here at = begin(2);
    const float first = train_two(&at, 1, 3), last = train_two(&at, 9, 3);
    settle(&at, 15);
    print_message("# losses %.3f %.3f\n", (double)first, (double)last);
    assert_true(last < first - 0.1f);
    end(&at, true);
    end_run();
}

TESTS(FOLDER_TEST(one_trainer_ends_in_the_bits_of_a_plain_loop),
      FOLDER_TEST(two_trainers_end_in_one_digest))
