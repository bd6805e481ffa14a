// learner_state_test -- the state of a replica with AdamW goes from one learner to another, by a
// checkpoint and from peer to peer: parameters, both moments and the number of steps. The other has the
// same digest then, and its next step the same bits. Learners are made here as BUILD leaves them; jobs
// go through their thread.

#include "common/checkpoint/checkpoint.h"
#include "common/learner/learner_inside.h"
#include "common/model/genesis.h"
#include "common/model/model_tensors.h"
#include "tests/unit/bulk_fixture.h"
#include "tests/unit/folder_fixture.h"

#include <string.h>

enum { TENSORS_MAX = 64, WAIT_MS = 60000, ROOM = 1 << 16 };

// Three leaves of the digest.
static const struct model_shape shape = { .vocab = 700,
                                          .dim = 48,
                                          .layers = 1,
                                          .heads = 4,
                                          .kv_heads = 2,
                                          .head_dim = 12,
                                          .ffn = 40,
                                          .seq_len_max = 8,
                                          .rope_theta = 10000,
                                          .rms_eps = 1e-5 };

static const struct optimizer_settings adamw = {
    .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8
};

struct replica {
    struct learner learner;
    struct learner_options options;
    struct layout_tensor tensors[TENSORS_MAX];
    struct worker *worker;
    _Alignas(8) uint8_t packed[ROOM], answer[ROOM];
};

static void serve(struct worker *worker, void *arg)
{
    struct learner *self = arg;
    struct job job;
    enum worker_turn turn;
    self->worker = worker;
    while ((turn = worker_next(worker, -1, &job)) != WORKER_END) {
        if (turn == WORKER_JOB && job.kind == FRAME_LOAD) learner_load(self, job.body);
        else if (turn == WORKER_JOB) learner_save(self, job.body);
        learner_save_look(self);
    }
    learner_save_wait(self);
}

static struct replica *replica_new(blob_store_t *store, bool trains)
{
    struct replica *replica = calloc(1, sizeof *replica);
    struct learner *self = &replica->learner;
    struct compute_device device;
    assert_non_null(replica);
    replica->options = (struct learner_options){
        .store = store, .run_id = "r", .trains = trains, .checkpoint_root = folder, .keep = 9
    };
    put("tokenizer.json", "{}", 2);
    replica->options.tokenizer_dir = folder;
    self->options = &replica->options;
    assert_int_equal(model_tensors_layout(&shape, replica->tensors, NULL, &self->layout), 0);
    self->floats = self->layout.total;
    const struct optimizer_place place = { &shape, &self->layout, { 0, self->floats }, NULL };
    struct compute_config config = { .shape = shape, .micro_batch = 1, .seq = 8, .trains = trains };
    assert_int_equal(optimizer_new(&optimizer_adamw, &place, &adamw, NULL, &self->optimizer), 0);
    optimizer_ask(self->optimizer, &config);
    assert_int_equal(compute_find("cpu", NULL, &device), 0);
    assert_int_equal(compute_new(&device, &config, NULL, &self->compute), 0);
    assert_int_equal(optimizer_begin(self->optimizer, self->compute, NULL), 0);
    self->params = compute_host(self->compute);
    self->cut = state_cut_of_floats(self->floats);
    optimizer_cut(self->optimizer, &self->cut);
    assert_int_equal(self->cut.count, 4);
    self->leaves = calloc(state_cut_leaves(&self->cut), sizeof *self->leaves);
    strcpy(self->config_json, "{\"torch_dtype\": \"float32\"}");
    self->built = true;
    replica->worker = worker_new(PORT_LEARNER, serve, self);
    return replica;
}

static void replica_free(struct replica *replica)
{
    worker_destroy(&replica->worker);
    compute_destroy(&replica->learner.compute);
    optimizer_destroy(&replica->learner.optimizer);
    free(replica->learner.leaves);
    free(replica);
}

// The thread is idle, so its learner may be touched from here.
static const void *ask(struct replica *replica, uint16_t kind, const void *job)
{
    struct wire_arena arena = { .bytes = replica->answer, .max = ROOM };
    zmq_pollitem_t item = { .fd = worker_answers_fd(replica->worker), .events = ZMQ_POLLIN };
    const size_t count = wire_pack_body(kind, job, replica->packed, ROOM);
    const void *body;
    uint16_t came;
    assert_true(count > 0);
    worker_send(replica->worker, kind, replica->packed, count);
    assert_int_equal(zmq_poll(&item, 1, WAIT_MS), 1);
    assert_true(worker_take(replica->worker, &arena, &came, &body));
    return body;
}

static void step(struct replica *replica)
{
    struct learner *self = &replica->learner;
    float *gradient = compute_at(self->compute, COMPUTE_GRADIENT);
    for (uint64_t i = 0; i < self->floats; i++)
        gradient[i] = (float)((i * 37 + self->step * 11) % 101) * 0.01f - 0.5f;
    assert_int_equal(optimizer_step(self->optimizer, 0.01f, NULL), 0);
    self->step++;
    assert_int_equal(learner_take_digest(self, NULL), 0);
}

static void begin(struct replica *replica, uint32_t steps)
{
    genesis_fill(&shape, 5, replica->learner.params);
    for (uint32_t i = 0; i < steps; i++) step(replica);
    replica->learner.holding = true;
}

static const struct wire_loaded *load(struct replica *replica, const struct wire_load *job)
{
    return ask(replica, FRAME_LOAD, job);
}

static void save(struct replica *replica, uint64_t step, const struct hash *digest)
{
    const struct wire_save job = { .step = step, .digest = *digest, .born_unix_ms = 4711 };
    const struct wire_saved *saved = ask(replica, FRAME_SAVE, &job);
    assert_string_equal(saved->reason, "");
    assert_true(saved->ok);
}

static void assert_same(const struct replica *a, const struct replica *b)
{
    assert_true(a->learner.step == b->learner.step);
    assert_true(hash_equal(&a->learner.digest, &b->learner.digest));
    assert_memory_equal(a->learner.params, b->learner.params, a->learner.floats * sizeof(float));
}

static struct wire_load from_folder(uint64_t step)
{
    struct wire_load job = { .step = step };
    snprintf(job.path, sizeof job.path, "%s", folder);
    return job;
}

// By a checkpoint of the held step, and of a step that is pinned and no longer held: its moments are
// those of that step. A keeper, which does not train, loads it and saves it again.
static void a_checkpoint_brings_the_moments(void **state)
{
    (void)state;
    blob_store_t *stores[2];
    for (int i = 0; i < 2; i++) assert_int_equal(blob_store_new(NULL, NULL, &stores[i]), 0);
    struct replica *one = replica_new(stores[0], true), *other = replica_new(stores[1], true),
                   *keeper = replica_new(stores[1], false);
    begin(one, 3);
    save(one, 3, &one->learner.digest);
    const struct wire_load third = from_folder(3), fourth = from_folder(4);
    const struct wire_loaded *loaded = load(keeper, &third);
    assert_string_equal(loaded->reason, "");
    assert_true(loaded->born_unix_ms == 4711);
    assert_same(keeper, one);
    save(keeper, 3, &one->learner.digest);
    assert_true(load(other, &third)->ok);
    assert_same(other, one);

    step(one), step(other);
    assert_same(other, one);
    assert_int_equal(learner_pin(&one->learner, NULL), 0);
    const struct hash pinned = one->learner.digest;
    step(one);
    save(one, 4, &pinned);
    assert_true(load(keeper, &fourth)->ok);
    assert_same(keeper, other);
    assert_true(load(other, &fourth)->ok);
    step(other);
    assert_same(other, one);

    const struct wire_save gone = { .step = 9, .digest = { { 9 } } };
    const struct wire_saved *saved = ask(one, FRAME_SAVE, &gone);
    assert_true(!saved->ok && strstr(saved->reason, "are pinned"));
    replica_free(one), replica_free(other), replica_free(keeper);
    for (int i = 0; i < 2; i++) blob_store_destroy(&stores[i]);
}

// A state is loaded whole or not at all: without its moments, or with others.
static void a_checkpoint_of_something_else_is_refused(void **state)
{
    (void)state;
    blob_store_t *store;
    assert_int_equal(blob_store_new(NULL, NULL, &store), 0);
    struct replica *one = replica_new(store, true);
    begin(one, 2);
    const float *params = one->learner.params;
    struct checkpoint_info info = { .run = "r", .step = 2, .protocol = 1, .pass_length = 1 };
    struct checkpoint_parts parts = { .config_json = "{}", .keep = 1 };
    info.digest = digest_of(params, one->learner.floats);
    assert_int_equal(checkpoint_write(folder, &info, &parts, &one->learner.layout, params, NULL),
                     0);
    const struct wire_load job = from_folder(2);
    const struct wire_loaded *loaded = load(one, &job);
    assert_true(!loaded->ok && strstr(loaded->reason, "'adamw-m' was not saved"));
    assert_false(one->learner.holding);
    replica_free(one);
    blob_store_destroy(&store);
}

// The run's first model has parameters alone, and the run pins their digest.
static void the_first_model_has_no_moments(void **state)
{
    (void)state;
    blob_store_t *store;
    assert_int_equal(blob_store_new(NULL, NULL, &store), 0);
    struct replica *one = replica_new(store, true), *other = replica_new(store, true);
    begin(one, 2);
    save(one, 2, &one->learner.digest);
    struct wire_load job = { .genesis = true };
    snprintf(job.path, sizeof job.path, "%.200s/step-00000002", folder);
    other->learner.config.genesis_digest = digest_of(one->learner.params, one->learner.floats);
    assert_string_equal(load(other, &job)->reason, "");
    assert_memory_equal(other->learner.params, one->learner.params,
                        one->learner.floats * sizeof(float));
    assert_false(hash_equal(&other->learner.digest, &one->learner.digest));
    assert_true(compute_at(other->learner.compute, COMPUTE_STATE)[7] == 0.0f);
    assert_true(compute_at(one->learner.compute, COMPUTE_STATE)[7] != 0.0f);
    other->learner.config.genesis_digest = one->learner.digest;
    const struct wire_loaded *loaded = load(other, &job);
    assert_true(!loaded->ok && strstr(loaded->reason, "the run pins"));
    replica_free(one), replica_free(other);
    blob_store_destroy(&store);
}

// Over a bulk server and a fetcher. One float that differs costs the leaf that it is in.
static void peers_give_the_moments(void **state)
{
    (void)state;
    struct fixture_holder holder = fixture_holder_new();
    struct fixture_fetcher *fetcher = fixture_fetcher_new(WAIT_MS);
    struct replica *one = replica_new(holder.store, true),
                   *joiner = replica_new(fetcher->store, true);
    const struct state_cut *cut = &one->learner.cut;
    const struct wire_load job = { .step = 3 };
    begin(one, 3);
    assert_int_equal(learner_pin(&one->learner, NULL), 0);
    fixture_fetch_state(fetcher, 3, &one->learner.digest, cut, &holder.holder, 1);
    const struct wire_fetched_model *fetched =
        fixture_answer(fetcher, FRAME_FETCHED_MODEL, WAIT_MS);
    assert_true(fetched && fetched->ok);
    assert_string_equal(load(joiner, &job)->reason, "");
    assert_same(joiner, one);

    float *moment = compute_at(joiner->learner.compute, COMPUTE_STATE + 1);
    moment[DIGEST_LEAF_FLOATS + 3] += 1; // What a broken memory may do
    assert_int_equal(learner_take_digest(&joiner->learner, NULL), 0);
    assert_false(hash_equal(&joiner->learner.digest, &one->learner.digest));
    assert_int_equal(learner_pin(&joiner->learner, NULL), 0);
    fixture_fetch_state(fetcher, 3, &one->learner.digest, cut, &holder.holder, 1);
    fetched = fixture_answer(fetcher, FRAME_FETCHED_MODEL, WAIT_MS);
    assert_true(fetched && fetched->ok);
    assert_int_equal(fetched->bytes, STATE_LEAF_BYTES + state_cut_leaves(cut) * HASH_BYTES);
    assert_true(load(joiner, &job)->ok);
    assert_same(joiner, one);
    step(one), step(joiner);
    assert_same(joiner, one);
    const struct wire_loaded *loaded = load(joiner, &job); // The stage gives it once
    assert_true(!loaded->ok && strstr(loaded->reason, "nothing is staged"));
    replica_free(one), replica_free(joiner);
    fixture_fetcher_destroy(fetcher);
    fixture_holder_destroy(&holder);
}

TESTS(FOLDER_TEST(a_checkpoint_brings_the_moments),
      FOLDER_TEST(a_checkpoint_of_something_else_is_refused),
      FOLDER_TEST(the_first_model_has_no_moments), FOLDER_TEST(peers_give_the_moments))
