// leases_learner_test -- learners in one process are trainers and asynchronous servers of a group: they train
// tasks, push, pull, and put their state together. The tests are the coordinator.

#include "common/compute/compute.h"
#include "common/data/source.h"
#include "common/learner/bf16_words.h"
#include "common/optimizer/optimizer.h"
#include "common/vector/share_list.h"
#include "tests/unit/windows_fixture.h"

enum { SERVERS = 2, BATCH_HERE = 5, SAMPLES = 300 };

static struct wire_leases_config config;
static uint64_t next_group, next_lease, next_attempt;

// A model of six leaves, and a group in which nothing is stale.
static void begin_run_with(uint32_t push_every, uint32_t pull_every, uint16_t odd_token)
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
    shares_moments = true;
    make_files_with(odd_token);
    shares_moments = false;
}

static void begin_run(uint32_t push_every, uint32_t pull_every)
{
    begin_run_with(push_every, pull_every, 0);
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
    serving = ((1u << SERVERS) - 1) << trainers;
    for (uint32_t i = 0; i < at.count; i++) {
        be_born(&members[i], i, 0, NULL);
        at.group[i] = &members[i];
    }
    take(&at, SERVERS);
    return at;
}

static void hear_formed(struct member *at)
{
    const struct wire_group_formed *said = hear_kind(at, FRAME_GROUP_FORMED);
    assert_int_equal(said->number, next_group);
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

// Of so many batches, from the next sample on. Behind the last sample comes the first one again.
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
    const struct wire_close_group job = { next_group, ++next_attempt, at->step, among, false };
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

static void swap_servers(struct here *at)
{
    struct member *last = at->group[at->count - 1];
    at->group[at->count - 1] = at->group[at->count - 2];
    at->group[at->count - 2] = last;
}

// A trainer alone that pushes and pulls after each batch takes the steps of a plain loop, also in a second group,
// which begins with the state that the first one has put together; each server has the other share then.
static void one_trainer_ends_in_the_bits_of_a_plain_loop(void **unused)
{
    struct plain plain;
    (void)unused;
    begin_run(1, 1);
    begin_plain(&plain);
    struct here at = begin(1);
    for (int group = 0; group < 2; group++) {
        if (group > 0) swap_servers(&at), take(&at, SERVERS);
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

// The samples of a task, in batches, at parameters that are as old as the last pull, one in `pull_every` batches.
static void train_plain_behind(struct plain *self, struct interval at, float of_step, float *pulled,
                               uint32_t *since_pull)
{
    uint32_t tokens[BATCH_HERE * (SEQ + 1)];
    double loss, norm;
    for (uint64_t from = at.begin; from < at.end; from += BATCH_HERE) {
        if (*since_pull == config.pull_every) {
            memcpy(pulled, compute_host(self->compute), self->layout.total * sizeof *pulled);
            *since_pull = 0;
        }
        assert_int_equal(provider_read(self->provider, from, BATCH_HERE, tokens, NULL), 0);
        assert_int_equal(
            compute_gradient_at(self->compute, pulled, tokens, BATCH_HERE, NULL, &loss), 0);
        assert_int_equal(compute_clip(self->compute, config.clip_norm, NULL, &norm), 0);
        assert_int_equal(optimizer_step(self->optimizer, of_step, NULL), 0);
        ++*since_pull;
    }
}

// It computes a batch while the push before is on its way, and never at parameters that are older than its last pull.
static void a_batch_that_is_computed_ahead_has_the_same_bits(void **unused)
{
    struct plain plain;
    (void)unused;
    begin_run(1, 3);
    config.staleness = 100;
    begin_plain(&plain);
    struct here at = begin(1);
    float *pulled = malloc(plain.layout.total * sizeof *pulled);
    uint32_t since_pull = config.pull_every; // The group begins with a pull
    assert_non_null(pulled);
    for (int task = 0; task < 4; task++) {
        const float of_step = rate_at(at.step);
        const uint64_t from = at.samples_done % SAMPLES;
        const struct wire_task_trained said = train(&at, at.group[0], 4);
        const struct interval samples = { from, from + 4 * BATCH_HERE };
        train_plain_behind(&plain, samples, of_step, pulled, &since_pull);
        assert_true(said.pushes == 4u * (unsigned)(task + 1) && said.discarded == 0);
    }
    const struct hash digest = settle(&at, 7), wanted = digest_of_plain(&plain);
    assert_true(hash_equal(&digest, &wanted));
    free(pulled);
    end_plain(&plain);
    end_run();
}

static void round_all(float *floats, uint64_t count)
{
    float *words = malloc((bf16_words_count(count) + 1) * sizeof *words);
    assert_non_null(words);
    bf16_words_pack(floats, count, words);
    bf16_words_unpack(words, count, floats);
    free(words);
}

// In bf16 a trainer computes at parameters that are rounded, and its gradients are rounded behind the clipping. What the
// servers keep and move is not.
static void what_travels_may_be_bf16(void **unused)
{
    struct plain plain;
    uint32_t tokens[BATCH_HERE * (SEQ + 1)];
    double loss, norm;
    (void)unused;
    begin_run(1, 1);
    config.transfer = TRANSFER_BF16;
    begin_plain(&plain);
    struct here at = begin(1);
    const uint64_t floats = plain.layout.total;
    float *pulled = malloc(floats * sizeof *pulled);
    assert_non_null(pulled);
    for (int task = 0; task < 4; task++) {
        const float of_step = rate_at(at.step);
        const uint64_t from = at.samples_done % SAMPLES;
        train(&at, at.group[0], 3);
        for (uint64_t sample = from; sample < from + 3 * BATCH_HERE; sample += BATCH_HERE) {
            memcpy(pulled, compute_host(plain.compute), floats * sizeof *pulled);
            round_all(pulled, floats);
            assert_int_equal(provider_read(plain.provider, sample, BATCH_HERE, tokens, NULL), 0);
            assert_int_equal(
                compute_gradient_at(plain.compute, pulled, tokens, BATCH_HERE, NULL, &loss), 0);
            assert_int_equal(compute_clip(plain.compute, config.clip_norm, NULL, &norm), 0);
            round_all(compute_at(plain.compute, COMPUTE_GRADIENT), floats);
            assert_int_equal(optimizer_step(plain.optimizer, of_step, NULL), 0);
        }
    }
    const struct hash digest = settle(&at, 7), wanted = digest_of_plain(&plain);
    assert_true(hash_equal(&digest, &wanted));
    free(pulled);
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
    config.link = LINK_SEALED;
    struct here at = begin(2);
    const float first = train_two(&at, 1, 3), last = train_two(&at, 9, 3);
    settle(&at, 15);
    print_message("# losses %.3f %.3f\n", (double)first, (double)last);
    assert_true(last < first - 0.1f);
    end(&at, true);
    end_run();
}

// What it has pushed is applied, and what it was about to push is not. The others go on, also in the next group.
static void a_trainer_dies_within_a_task(void **unused)
{
    (void)unused;
    begin_run(1, 1);
    struct here at = begin(2);
    train_two(&at, 2, 3);
    give(&at, at.group[1], (struct interval){ 0, SAMPLES });
    die(at.group[1]);
    const struct wire_task_trained said = train(&at, at.group[0], 4);
    assert_int_equal(said.pushes + said.discarded, 2 * 3 + 4);
    settle(&at, 1 | 4 | 8);
    end(&at, true);
    at.group[1] = at.group[2], at.group[2] = at.group[3], at.count = 3;
    take(&at, SERVERS);
    train(&at, at.group[0], 2);
    settle(&at, 7);
    end_run();
}

static void load_genesis(struct member *self)
{
    struct wire_load load = { .genesis = true };
    snprintf(load.path, sizeof load.path, "%.200s/model", folder);
    send_job(self, FRAME_LOAD, &load);
    const struct wire_loaded *loaded = hear_kind(self, FRAME_LOADED);
    if (!loaded->ok) fail_msg("%s", loaded->reason);
}

// The run goes back to its beginning: nothing is left of what was trained.
static void begin_again(void)
{
    struct here at = { .group = { &members[0], &members[2], &members[3] }, .count = 3 };
    struct plain plain;
    load_genesis(&members[0]);
    load_genesis(&members[2]);
    be_born(&members[3], 3, 0, NULL);
    begin_plain(&plain);
    take(&at, SERVERS);
    train(&at, at.group[0], 3);
    train_plain(&plain, (struct interval){ 0, 3 * BATCH_HERE }, rate_at(0));
    const struct hash digest = settle(&at, 7), wanted = digest_of_plain(&plain);
    assert_true(hash_equal(&digest, &wanted));
    end_plain(&plain);
}

// The trainer that pushes says so. It cannot go on, and has no state of its own.
static void a_server_dies(void **unused)
{
    (void)unused;
    begin_run(1, 1);
    struct here at = begin(2);
    train_two(&at, 1, 2);
    die(at.group[3]);
    give(&at, at.group[0], (struct interval){ 0, SAMPLES });
    const struct wire_group_broke *broke = hear_kind(at.group[0], FRAME_GROUP_BROKE);
    assert_int_equal(broke->number, next_group);
    assert_int_equal(broke->dead, 8);
    assert_true(broke->because[0]);
    // Its share is lost: nobody can put the state together
    const struct wire_close_group job = { next_group, ++next_attempt, at.step, 7, false };
    for (int i = 0; i < 3; i++) send_job(at.group[i], FRAME_SETTLE_GROUP, &job);
    for (int i = 0; i < 3; i++) {
        const struct wire_settled *said = hear_kind(at.group[i], FRAME_GROUP_SETTLED);
        assert_true(!said->ok && strstr(said->because, "server"));
    }
    end(&at, false);
    at.count = 3, at.step = 0;
    take(&at, SERVERS); // They hold nothing now
    for (int i = 0; i < 3; i++) {
        broke = hear_kind(at.group[i], FRAME_GROUP_BROKE);
        assert_true(broke->number == next_group && strstr(broke->because, "not held"));
    }
    begin_again();
    end_run();
}

// ---- saves --------------------------------------------------------------------------------------

// The run saves to a folder.
static void begin_run_that_saves(void)
{
    begin_run(1, 1);
    config.save_steps = 1;
    config.keep = 100;
    snprintf(config.shared_dir, sizeof config.shared_dir, "%.200s/shared", folder);
    assert_int_equal(mkdir(config.shared_dir, 0755), 0);
}

static void order_save(const struct here *at, uint32_t place)
{
    send_job(at->group[place], FRAME_TAKE_SHARE,
             &(struct wire_take_share){ .number = next_group, .step = at->step });
}

// How its part of the save of this step ended: the digest, if it was the last one.
static struct hash hear_saved(const struct here *at, uint32_t place)
{
    const struct wire_share_saved *said = hear_kind(at->group[place], FRAME_SHARE_TAKEN);
    assert_true(said->number == next_group && said->step == at->step);
    return said->digest;
}

// One server after the other; each goes on before the next one is asked.
static struct hash save_all(const struct here *at)
{
    struct hash digest = { { 0 } };
    for (uint32_t i = at->count - config.servers; i < at->count; i++) {
        assert_true(hash_is_none(&digest));
        order_save(at, i);
        digest = hear_saved(at, i);
    }
    return digest;
}

static void load_save(struct member *self, uint64_t step, const struct hash *digest)
{
    struct wire_load load = { .step = step, .pieces = true, .born_unix_ms = BORN };
    snprintf(load.path, sizeof load.path, "%s", config.shared_dir);
    send_job(self, FRAME_LOAD, &load);
    const struct wire_loaded *loaded = hear_kind(self, FRAME_LOADED);
    if (!loaded->ok) fail_msg("%s", loaded->reason);
    assert_true(loaded->step == step && hash_equal(&loaded->digest, digest));
}

// The trainer's process goes on from the save, with so many servers, all of them new; new_trainer: so does that.
static void go_on_from(struct here *at, const struct here *saved, const struct hash *digest,
                       uint32_t servers, bool new_trainer)
{
    for (uint32_t i = new_trainer ? 0 : 1; i < at->count; i++) die(at->group[i]);
    if (!new_trainer) end(at, false);
    config.servers = servers;
    serving = ((1u << servers) - 1) << 1;
    *at = (struct here){ .count = 1 + servers,
                         .step = saved->step,
                         .samples_done = saved->samples_done };
    for (uint32_t i = 0; i < at->count; i++) {
        at->group[i] = &members[i];
        if (!members[i].worker) be_born(&members[i], i, 0, NULL);
        load_save(&members[i], saved->step, digest);
    }
    take(at, servers);
}

static void train_both(struct here *at, struct plain *plain, int tasks)
{
    for (int task = 0; task < tasks; task++) {
        const float of_step = rate_at(at->step);
        const uint64_t from = at->samples_done;
        train(at, at->group[0], 3);
        train_plain(plain, (struct interval){ from, at->samples_done }, of_step);
    }
}

// Servers save their shares beside the training. All is lost later, and the run goes on from the save: with new
// servers, with three in the place of two, and with five in the place of three. It ends in the bits of a loop that
// never stopped.
static void servers_save_their_shares_and_go_on(void **unused)
{
    struct plain plain;
    (void)unused;
    begin_run_that_saves();
    begin_plain(&plain);
    struct here at = begin(1);
    train_both(&at, &plain, 2);
    const struct here saved = at;
    const struct hash digest = save_all(&at), wanted = digest_of_plain(&plain);
    assert_true(hash_equal(&digest, &wanted));
    for (int task = 0; task < 3; task++) train(&at, at.group[0], 2); // The save knows nothing of it
    go_on_from(&at, &saved, &digest, SERVERS, false);
    train_both(&at, &plain, 2);
    const struct here later = at;
    const struct hash second = save_all(&at), wanted_second = digest_of_plain(&plain);
    assert_true(hash_equal(&second, &wanted_second));
    go_on_from(&at, &later, &second, 3, true);
    train_both(&at, &plain, 2);
    const struct here latest = at;
    const struct hash third = save_all(&at), wanted_third = digest_of_plain(&plain);
    assert_true(hash_equal(&third, &wanted_third));
    go_on_from(&at, &latest, &third, 5, true);
    train_both(&at, &plain, 2);
    const struct hash last = settle(&at, 63), wanted_last = digest_of_plain(&plain);
    assert_true(hash_equal(&last, &wanted_last));
    config.servers = SERVERS;
    end_plain(&plain);
    end_run();
}

// What a group has put together is saved as that, also when a server wrote another save just before.
static void what_is_put_together_is_saved(void **unused)
{
    (void)unused;
    begin_run_that_saves();
    struct here at = begin(2);
    train_two(&at, 2, 2);
    for (uint32_t i = 2; i < 4; i++) order_save(&at, i);
    train_two(&at, 1, 2);
    const struct hash digest = settle(&at, 15);
    for (uint32_t i = 2; i < 4; i++) order_save(&at, i);
    struct hash saved = { { 0 } };
    for (uint32_t i = 2; i < 4; i++) {
        const struct wire_share_saved *said;
        do said = hear_kind(at.group[i], FRAME_SHARE_TAKEN);
        while (said->step != at.step);
        if (!hash_is_none(&said->digest)) saved = said->digest;
    }
    assert_true(hash_equal(&saved, &digest));
    end(&at, true);
    take(&at, SERVERS);
    // Of a group that is over there is no share
    send_job(at.group[2], FRAME_TAKE_SHARE,
             &(struct wire_take_share){ .number = next_group - 1, .step = at.step });
    const struct wire_share_saved *said = hear_kind(at.group[2], FRAME_SHARE_TAKEN);
    assert_true(said->number == next_group - 1 && hash_is_none(&said->digest));
    train_two(&at, 1, 2);
    end_run();
}

// Between the parts of two servers a task is trained: their numbers of steps differ, and that of the first one
// counts.
static void parts_of_different_instants_make_a_save(void **unused)
{
    (void)unused;
    begin_run_that_saves();
    struct here at = begin(1);
    train(&at, at.group[0], 3);
    const struct here saved = at;
    order_save(&at, 1);
    const struct hash none = hear_saved(&at, 1);
    assert_true(hash_is_none(&none));
    train(&at, at.group[0], 3);
    at.step = saved.step;
    order_save(&at, 2);
    const struct hash digest = hear_saved(&at, 2);
    assert_false(hash_is_none(&digest));
    go_on_from(&at, &saved, &digest, SERVERS, false);
    assert_int_equal(train(&at, at.group[0], 3).discarded, 0);
    settle(&at, 7);
    end_run();
}

// ---- copies in memory ---------------------------------------------------------------------------

static struct wire_share_copied copy_of(const struct here *at, uint32_t place, uint64_t step)
{
    send_job(at->group[place], FRAME_TAKE_COPY, &(struct wire_save_share){ next_group, step });
    const struct wire_share_copied *said = hear_kind(at->group[place], FRAME_COPY_TAKEN);
    assert_true(said->number == next_group && said->step == step);
    return *said;
}

static void give_lists(const struct here *at, const struct wire_blob *lists)
{
    const struct wire_keep_shares job = { next_group, at->step, lists, SERVERS };
    for (uint32_t i = 0; i < SERVERS; i++) {
        struct member *server = at->group[at->count - SERVERS + i];
        send_job(server, FRAME_GIVE_LISTS, &job);
        const struct wire_listed *said = hear_kind(server, FRAME_LISTED);
        assert_true(said->window == next_group && said->step == at->step && said->place == i &&
                    said->lists_count == SERVERS);
        assert_memory_equal(said->lists, lists, SERVERS * sizeof *lists);
    }
}

// The digest of the state by its lists, which are blobs of the servers.
static struct hash digest_by(const struct here *at, const struct wire_blob *lists)
{
    struct hash *leaves = calloc(state_cut_leaves(&built_cut), sizeof *leaves);
    struct blob_ref ref;
    for (uint32_t i = 0; i < SERVERS; i++) {
        const struct member *server = at->group[at->count - SERVERS + i];
        assert_int_equal(blob_store_get(server->store, &lists[i].hash, NULL, &ref), 0);
        assert_int_equal(
            share_list_join(&built_cut, i, SERVERS, SHARE_OF_FIRST, ref.bytes, ref.count, leaves),
            SHARE_FITS);
        blob_store_release(&ref);
    }
    const struct hash digest = state_cut_root(&built_cut, leaves);
    free(leaves);
    return digest;
}

static bool has_copy(const struct here *at, uint64_t step)
{
    blob_share_t *share = blob_store_share(at->group[at->count - 1]->store, step);
    const bool has = share != NULL;
    if (share) blob_share_release(&share);
    return has;
}

// Between two tasks both servers copy: their lists are those of the state that a plain loop has. One of them is asked
// after the next task: the state is the plain one's no more, and has the number of steps of the first. When a copy is on
// record the one before it goes; a copy that is given up goes with the next order.
static void servers_copy_their_shares_and_go_on(void **unused)
{
    struct plain plain;
    struct wire_blob lists[SERVERS];
    (void)unused;
    begin_run(1, 1);
    config.memory_every = 1;
    config.buddies = 1;
    begin_plain(&plain);
    struct here at = begin(1);
    train_both(&at, &plain, 2);
    for (uint32_t i = 0; i < SERVERS; i++) lists[i] = copy_of(&at, 1 + i, at.step).list;
    give_lists(&at, lists);
    const struct hash first = digest_by(&at, lists), wanted = digest_of_plain(&plain);
    assert_true(hash_equal(&first, &wanted));
    const uint64_t kept = at.step;
    for (uint32_t i = 0; i < SERVERS; i++)
        send_job(at.group[1 + i], FRAME_KEPT, &(struct wire_kept){ next_group, kept });
    train_both(&at, &plain, 1);
    const uint64_t second = at.step;
    lists[0] = copy_of(&at, 1, second).list;
    train_both(&at, &plain, 1);
    lists[1] = copy_of(&at, 2, second).list;
    assert_true(has_copy(&at, kept) && has_copy(&at, second));
    const struct hash mixed = digest_by(&at, lists), later = digest_of_plain(&plain);
    assert_false(hash_equal(&mixed, &later));
    const struct wire_share_copied third = copy_of(&at, 2, at.step); // `second` is given up
    assert_false(hash_is_none(&third.list.hash));
    assert_true(has_copy(&at, kept) && !has_copy(&at, second) && has_copy(&at, at.step));
    // A trainer has none, and of a group that is over there is none
    struct wire_share_copied none = copy_of(&at, 0, at.step);
    assert_true(hash_is_none(&none.list.hash));
    const struct hash last = settle(&at, 7), wanted_last = digest_of_plain(&plain);
    assert_true(hash_equal(&last, &wanted_last));
    end(&at, true);
    next_group++;
    none = copy_of(&at, 2, at.step);
    assert_true(hash_is_none(&none.list.hash));
    next_group--;
    take(&at, SERVERS); // Of a run that has no memory save any more
    const struct wire_share_copied fresh = copy_of(&at, 2, at.step + 1);
    assert_false(hash_is_none(&fresh.list.hash));
    assert_true(!has_copy(&at, kept) && has_copy(&at, at.step + 1));
    end_plain(&plain);
    end_run();
}

// A server is told to save while it waits for the others to link.
static void a_save_ends_no_forming(void **unused)
{
    (void)unused;
    begin_run_that_saves();
    struct here at = begin(1);
    train(&at, at.group[0], 1);
    settle(&at, 7);
    end(&at, true);
    struct wire_linked linked[MEMBERS_MAX_HERE];
    link_with(at.group, at.count, linked);
    struct wire_take_group job = { .number = ++next_group,
                                   .step = at.step,
                                   .samples_done = at.samples_done,
                                   .group = linked,
                                   .group_count = at.count,
                                   .servers = SERVERS,
                                   .place = 1,
                                   .born_unix_ms = BORN,
                                   .pass_samples = SAMPLES };
    next_attempt = 0;
    send_job(at.group[1], FRAME_TAKE_GROUP, &job);
    assert_false(hear(at.group[1], 200)); // It waits
    order_save(&at, 1);
    assert_false(hear(at.group[1], 200)); // And goes on waiting
    job.place = 0, send_job(at.group[0], FRAME_TAKE_GROUP, &job);
    job.place = 2, send_job(at.group[2], FRAME_TAKE_GROUP, &job);
    const struct hash none = hear_saved(&at, 1);
    assert_true(hash_is_none(&none));
    train(&at, at.group[0], 2);
    settle(&at, 7);
    end_run();
}

// What a server knew of pushes goes on with its share, if there are as many servers: its log counts them on.
static void what_a_server_knew_goes_on(void **unused)
{
    char line[256];
    unsigned long counted = 0;
    (void)unused;
    begin_run_that_saves();
    struct here at = begin(1);
    train(&at, at.group[0], 3);
    const struct here saved = at;
    const struct hash digest = save_all(&at);
    const int error = dup(STDERR_FILENO);
    FILE *log = fopen(path_of("log"), "w+");
    assert_true(log && error >= 0 && dup2(fileno(log), STDERR_FILENO) >= 0);
    go_on_from(&at, &saved, &digest, SERVERS, false);
    train(&at, at.group[0], 2);
    settle(&at, 7);
    dup2(error, STDERR_FILENO), close(error);
    rewind(log);
    while (fgets(line, sizeof line, log))
        if (strstr(line, "leases.served place=0")) counted += strstr(line, " pushes=5 ") != NULL;
    fclose(log);
    assert_int_equal(counted, SERVERS);
    end_run();
}

// ---- how often ----------------------------------------------------------------------------------

// The lines that servers say in the log when they end.
static uint32_t count_lines(FILE *log, const char *what)
{
    char line[1024];
    uint32_t count = 0;
    rewind(log);
    while (fgets(line, sizeof line, log)) count += strstr(line, what) != NULL;
    return count;
}

// "Each trainer uploads its accumulated gradient every n mini-batches; every m it downloads."
static void a_trainer_pushes_and_pulls_as_often_as_it_is_told(void **unused)
{
    const int error = dup(STDERR_FILENO);
    (void)unused;
    begin_run(2, 3);
    FILE *log = fopen(path_of("log"), "w+");
    assert_true(log && error >= 0 && dup2(fileno(log), STDERR_FILENO) >= 0);
    struct here at = begin(1);
    struct wire_task_trained said = { 0 };
    for (int task = 0; task < 10; task++) said = train(&at, at.group[0], 6);
    assert_true(said.pushes == 30 && said.discarded == 0);
    // The last pull comes behind the answer: this task begins with it
    said = train(&at, at.group[0], 1);
    assert_int_equal(said.pushes, 31);
    settle(&at, 7);
    dup2(error, STDERR_FILENO), close(error);
    assert_int_equal(count_lines(log, "leases.served place=0 pushes=31 discarded=0 refused=0 "
                                      "pulls=20 version=31"),
                     SERVERS);
    fclose(log);
    end_run();
}

// A trainer that pulls when it is told to alone: each second push is too late, and what was computed ahead of the pull
// behind it is computed again. So its other batches are the steps of a plain loop.
static void what_comes_too_late_is_discarded(void **unused)
{
    struct plain plain;
    (void)unused;
    begin_run(1, 1000);
    config.staleness = 1;
    begin_plain(&plain);
    struct here at = begin(1);
    const float of_step = rate_at(at.step);
    const struct wire_task_trained said = train(&at, at.group[0], 12);
    assert_true(said.pushes == 6 && said.discarded == 6 && said.lag == 1);
    assert_true(said.lags.of_0 == 6 && said.lags.of_1 == 6 && said.lags.of_2 == 0);
    for (uint64_t from = 0; from < 12 * BATCH_HERE; from += 2 * BATCH_HERE)
        train_plain(&plain, (struct interval){ from, from + BATCH_HERE }, of_step);
    const struct hash digest = settle(&at, 7), wanted = digest_of_plain(&plain);
    assert_true(hash_equal(&digest, &wanted));
    end_plain(&plain);
    end_run();
}

// A PIN of a step that is not held means nothing, and ends a wait all the same.
static void disturb(struct member *self)
{
    send_job(self, FRAME_PIN, &(struct wire_pin){ .step = UINT32_MAX });
}

// Jobs come while a trainer waits for answers, and while a server waits for questions: both go on behind them.
static void save_meanwhile(struct here *at, const struct wire_save *job)
{
    give(at, at->group[0], next_samples(at, 20));
    at->step += 20;
    send_job(at->group[0], FRAME_SAVE, job);
    send_job(at->group[2], FRAME_SAVE, job);
    bool saved = false, trained = false;
    while (!saved || !trained) {
        disturb(at->group[0]);
        disturb(at->group[3]);
        if (!hear(at->group[0], 1)) continue;
        assert_int_not_equal(at->group[0]->kind, FRAME_GROUP_BROKE);
        const void *said = at->group[0]->body;
        saved |= at->group[0]->kind == FRAME_SAVED;
        trained |= at->group[0]->kind == FRAME_TASK_TRAINED;
        if (at->group[0]->kind == FRAME_SAVED) assert_true(((const struct wire_saved *)said)->ok);
        if (at->group[0]->kind == FRAME_TASK_TRAINED)
            assert_true(((const struct wire_task_trained *)said)->done);
    }
    assert_true(((const struct wire_saved *)hear_kind(at->group[2], FRAME_SAVED))->ok);
}

// A trainer comes with a checkpoint of what the group before it has put together, and one leaves.
static void groups_of_different_sizes_follow_one_another(void **unused)
{
    (void)unused;
    begin_run(2, 1);
    struct here at = begin(1);
    train(&at, at.group[0], 4);
    struct wire_save job = { .step = at.step, .digest = settle(&at, 7) };
    end(&at, true);
    send_job(at.group[0], FRAME_SAVE, &job);
    const struct wire_saved *saved = hear_kind(at.group[0], FRAME_SAVED);
    if (!saved->ok) fail_msg("%s", saved->reason);
    be_born(&members[3], 3, at.step, at.group[0]);
    at.group[3] = at.group[2], at.group[2] = at.group[1], at.group[1] = &members[3];
    at.count = 4;
    take(&at, SERVERS);
    save_meanwhile(&at, &job);
    train_two(&at, 3, 3);
    settle(&at, 15);
    end(&at, true);
    at.group[0] = at.group[1], at.group[1] = at.group[2], at.group[2] = at.group[3], at.count = 3;
    take(&at, SERVERS);
    train(&at, at.group[0], 2);
    settle(&at, 7);
    end_run();
}

// A member of an attempt does not come to it: the others say so, and the next one is without it.
static void an_attempt_that_fails_is_made_again(void **unused)
{
    (void)unused;
    begin_run(1, 1);
    config.settle_ms = 300;
    struct here at = begin(2);
    train_two(&at, 1, 2);
    const struct wire_close_group job = { next_group, ++next_attempt, at.step, 15, false };
    for (int i = 1; i < 4; i++) send_job(at.group[i], FRAME_SETTLE_GROUP, &job);
    for (int i = 1; i < 4; i++) {
        const struct wire_settled *said = hear_kind(at.group[i], FRAME_GROUP_SETTLED);
        assert_true(!said->ok && said->because[0]);
    }
    settle(&at, 2 | 4 | 8);
    settle(&at, 2 | 4 | 8); // And once more, for one that has not heard
    end_run();
}

// Servers go to put the state together while trainers wait for their answers: no group is broken by that.
static void a_task_in_hand_is_given_up(void **unused)
{
    (void)unused;
    begin_run(1, 2);
    struct here at = begin(2);
    for (int round = 0; round < 3; round++) {
        if (round > 0) take(&at, SERVERS);
        for (uint32_t i = 0; i < at.count; i++) hear_formed(at.group[i]);
        train_two(&at, 1, 2);
        for (int t = 0; t < 2; t++) give(&at, at.group[t], (struct interval){ 0, SAMPLES });
        at.step += 3;
        const struct wire_close_group job = { next_group, ++next_attempt, at.step, 15, false };
        for (int i = 3; i >= 2; i--) send_job(at.group[i], FRAME_SETTLE_GROUP, &job);
        // In the first round each trainer sees that the servers have left, and says nothing of it
        for (int t = 0; t < 2 && round == 0; t++) assert_false(hear(at.group[t], 200));
        for (int i = 1; i >= 0; i--) send_job(at.group[i], FRAME_SETTLE_GROUP, &job);
        struct hash digest = { { 0 } };
        for (int i = 0; i < 4; i++) {
            assert_true(hear(at.group[i], WAIT_MS));
            assert_int_equal(at.group[i]->kind, FRAME_GROUP_SETTLED);
            const struct wire_settled *said = at.group[i]->body;
            if (!said->ok) fail_msg("%s", said->because);
            if (i == 0) digest = said->digest;
            assert_true(hash_equal(&digest, &said->digest));
        }
        end(&at, true);
    }
    end_run();
}

// Its batches are of the size of its step, the last one of what is left.
static void a_task_is_cut_by_the_schedule(void **unused)
{
    (void)unused;
    begin_run(1, 1);
    config.batch_start = 2, config.batch_end = 7, config.batch_warmup_tokens = 60 * SEQ;
    struct here at = begin(1);
    uint64_t samples = 0, batches = 0;
    for (; at.step < 20; at.step += 4) {
        uint32_t batch = 0;
        give(&at, at.group[0], (struct interval){ 10 * at.step, 10 * at.step + 15 });
        for (int i = 0; i < 4; i++) {
            const uint32_t next = schedule_batch_size(2, 7, 60 * SEQ, samples * SEQ);
            if (i == 0) batch = next;
            samples += next;
        }
        batches += (15 + batch - 1) / batch;
        const struct wire_task_trained said = hear_trained(at.group[0]);
        assert_int_equal(said.samples, 15);
        assert_int_equal(said.pushes, batches);
    }
    assert_true(batches < 5 * 8 && batches > 5 * 3);
    settle(&at, 7);
    end_run();
}

// A task that cannot be trained fails, and its trainer goes on with the next one. What was pushed before stays.
static void a_task_that_cannot_be_read_fails(void **unused)
{
    (void)unused;
    begin_run_with(2, 1, 1000); // A token that the model has not
    struct here at = begin(1);
    give(&at, at.group[0], (struct interval){ 5, 30 });
    const struct wire_task_trained *said = hear_kind(at.group[0], FRAME_TASK_TRAINED);
    print_message("# %s\n", said->because);
    assert_true(!said->done && said->because[0]);
    assert_int_equal(said->samples, 2 * BATCH_HERE); // The third batch was computed, and is dropped
    assert_int_equal(said->pushes, 1);
    at.samples_done = 100;
    assert_int_equal(train(&at, at.group[0], 2).pushes, 2);
    settle(&at, 7);
    end_run();
}

TESTS(FOLDER_TEST(one_trainer_ends_in_the_bits_of_a_plain_loop),
      FOLDER_TEST(a_batch_that_is_computed_ahead_has_the_same_bits),
      FOLDER_TEST(two_trainers_end_in_one_digest), FOLDER_TEST(a_trainer_dies_within_a_task),
      FOLDER_TEST(a_server_dies), FOLDER_TEST(a_trainer_pushes_and_pulls_as_often_as_it_is_told),
      FOLDER_TEST(what_comes_too_late_is_discarded),
      FOLDER_TEST(groups_of_different_sizes_follow_one_another),
      FOLDER_TEST(an_attempt_that_fails_is_made_again), FOLDER_TEST(a_task_in_hand_is_given_up),
      FOLDER_TEST(a_task_is_cut_by_the_schedule), FOLDER_TEST(a_task_that_cannot_be_read_fails),
      FOLDER_TEST(servers_save_their_shares_and_go_on), FOLDER_TEST(what_is_put_together_is_saved),
      FOLDER_TEST(parts_of_different_instants_make_a_save), FOLDER_TEST(a_save_ends_no_forming),
      FOLDER_TEST(what_a_server_knew_goes_on), FOLDER_TEST(what_travels_may_be_bf16),
      FOLDER_TEST(servers_copy_their_shares_and_go_on))
