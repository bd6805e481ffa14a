// windows_learner_test -- learners in one process take windows together over loopback, and a small
// coordinator, which follows the rules of the pace and keeps nothing, gives, freezes and closes
// them. Members die and join by a seed. Whatever happens, the state is that of one learner alone.

#include "common/bulk/blob_store.h"
#include "common/checkpoint/hf_folder.h"
#include "common/checkpoint/shared_dir.h"
#include "common/data/manifest.h"
#include "common/group/group.h"
#include "common/kernel/kernels.h"
#include "common/learner/learner.h"
#include "common/learner/state_pieces.h"
#include "common/model/genesis.h"
#include "common/model/model_config.h"
#include "common/model/model_tensors.h"
#include "common/run/holder.h"
#include "common/run/schedule.h"
#include "tests/unit/folder_fixture.h"

#include <sys/stat.h>
#include <zmq.h>
#include <stdatomic.h>
#include "common/base/failpoint.h"
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum {
    SEQ = 12,
    BATCH = 11,
    STEPS = 24,
    WINDOW = 6,
    MEMBERS_MAX_HERE = 8,
    WAIT_MS = 60000,
    BORN = 77,
    PASS = 10
};

static struct model_shape shape = { .vocab = 40,
                                    .dim = 24,
                                    .layers = 2,
                                    .heads = 4,
                                    .kv_heads = 2,
                                    .head_dim = 6,
                                    .ffn = 40,
                                    .seq_len_max = SEQ,
                                    .rope_theta = 10000,
                                    .rms_eps = 1e-5 };

struct member {
    struct worker *worker; // NULL: dead
    struct learner_options options;
    struct identity *identity;
    blob_store_t *store;
    char root[300], endpoint[128];
    uint16_t kind; // Of the newest answer, whose body lies in the arena
    const void *body;
    struct wire_arena arena;
    uint64_t instance;
};

static struct member members[MEMBERS_MAX_HERE];
static float rate = 0.01f;
static int products = PRODUCTS_FLOAT32;
static uint64_t newest_whole; // The step of the newest save that a learner has said is whole
static uint64_t chance, next_instance = 1, next_window = 1, next_level = 1;
static struct wire_windows_config strategy = { .lanes = 8,
                                               .window_ms = 1000,
                                               .step_timeout_ms = 20000,
                                               .link = LINK_PLAIN,
                                               .connections = 1,
                                               .clip_norm = 0.5,
                                               .weight_decay = 0.1,
                                               .beta1 = 0.9,
                                               .beta2 = 0.95,
                                               .eps = 1e-8,
                                               .batch_start = 3,
                                               .batch_end = BATCH,
                                               .batch_warmup_tokens = 90 * SEQ };

static uint64_t roll(uint64_t below)
{
    uint64_t z = chance += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (z ^ z >> 31) % below;
}

// ---- what a run is made of ----------------------------------------------------------------------

static bool shares_moments; // The next files are those of a run of shares

static void make_files_with(uint16_t odd_token)
{
    // A model of six leaves, whose moments the members share; or a small one
    strategy.parts = shares_moments ? PARTS_MOMENTS : PARTS_NONE;
    shape.dim = shares_moments ? 64 : 24, shape.ffn = shares_moments ? 200 : 40;
    static uint16_t tokens[4000];
    struct layout_tensor tensors[64];
    struct layout layout;
    struct manifest manifest;
    size_t files;
    for (size_t i = 0; i < 4000; i++) tokens[i] = (uint16_t)((i * i + i / 7) % shape.vocab);
    if (odd_token) tokens[20 * SEQ + 5] = odd_token;
    assert_int_equal(mkdir(path_of("data"), 0755), 0);
    put("data/train.bin", tokens, sizeof tokens);
    char data[300];
    snprintf(data, sizeof data, "%.200s/data", folder);
    assert_int_equal(manifest_build(data, 2, NULL, &manifest), 0);
    assert_int_equal(manifest_write(&manifest, data, NULL), 0);
    manifest_free(&manifest);
    assert_int_equal(mkdir(path_of("model"), 0755), 0);
    char *json = model_shape_to_config_json(&shape);
    put("model/config.json", json, strlen(json));
    free(json);
    put("model/tokenizer.json", "{}", 2);
    assert_int_equal(model_tensors_layout(&shape, tensors, NULL, &layout), 0);
    float *params = malloc(layout.total * sizeof *params);
    genesis_fill(&shape, 5, params);
    const int dir = open(path_of("model"), O_RDONLY | O_DIRECTORY);
    struct why why = { 0 };
    const struct safetensors_source source = safetensors_from_memory(params);
    if (hf_folder_write_weights(dir, &layout, &source, NULL, 0, 1 << 30, &why, &files) < 0)
        fail_msg("%s", why.text);
    close(dir);
    free(params);
}

static void make_files(void) { make_files_with(0); }

static void send_job(struct member *self, uint16_t kind, const void *job)
{
    _Alignas(8) static uint8_t packed[1 << 18];
    const size_t count = wire_pack_body(kind, job, packed, sizeof packed);
    assert_true(count > 0);
    worker_send(self->worker, kind, packed, count);
}

// The next answer. False: none within the time.
static bool hear(struct member *self, int timeout_ms)
{
    zmq_pollitem_t item = { .fd = worker_answers_fd(self->worker), .events = ZMQ_POLLIN };
    if (zmq_poll(&item, 1, timeout_ms) <= 0) return false;
    self->arena.used = 0;
    if (!worker_take(self->worker, &self->arena, &self->kind, &self->body)) return false;
    if (self->kind == FRAME_WHOLE) newest_whole = ((const struct wire_whole *)self->body)->step;
    return true;
}

static const void *hear_kind(struct member *self, uint16_t kind)
{
    do assert_true(hear(self, WAIT_MS));
    while (self->kind != kind);
    return self->body;
}

static void build(struct member *self)
{
    char *json = model_shape_to_config_json(&shape);
    struct wire_config config = { .seq_len = SEQ,
                                  .heartbeat_ms = 1000,
                                  .lease_ms = 10000,
                                  .snapshot_rounds = 1,
                                  .total_steps = STEPS,
                                  .products = (uint8_t)products,
                                  .micro_batch = 2,
                                  .model = { (const uint8_t *)json, (uint32_t)strlen(json) },
                                  .data = { .kind = DATA_LOCAL, .token_bytes = 2 },
                                  .strategy = { FRAME_WINDOWS_CONFIG, &strategy } };
    snprintf(config.run, sizeof config.run, "r");
    snprintf(config.genesis, sizeof config.genesis, "%.200s/model", folder);
    snprintf(config.data.where, sizeof config.data.where, "%.200s/data", folder);
    send_job(self, FRAME_BUILD, &config);
    const struct wire_built *built = hear_kind(self, FRAME_BUILT);
    if (!built->ok) fail_msg("%s", built->reason);
    const struct wire_links *links = hear_kind(self, FRAME_LINKS);
    memcpy(self->endpoint, links->endpoint, sizeof self->endpoint);
    free(json);
}

// A process begins: with the run's first parameters, or with the newest checkpoint of `from`.
static void be_born(struct member *self, uint32_t number, uint64_t step, const struct member *from)
{
    uint8_t secret[SECRET_BYTES] = { (uint8_t)(number + 1) };
    assert_int_equal(identity_from_secret(secret, NULL, &self->identity), 0);
    assert_int_equal(blob_store_new(NULL, NULL, &self->store), 0);
    snprintf(self->root, sizeof self->root, "%.200s/saved-%u", folder, number);
    mkdir(self->root, 0755);
    self->instance = next_instance++;
    self->options = (struct learner_options){ .identity = self->identity,
                                              .store = self->store,
                                              .run_id = "r",
                                              .threads = 1 + number % 3,
                                              .micro_batch = 4, // The run's is taken instead
                                              .trains = true,
                                              .checkpoint_root = self->root,
                                              .tokenizer_dir = NULL,
                                              .keep = 1,
                                              .instance = self->instance,
                                              .links_announced = "tcp://127.0.0.1:1" };
    snprintf(self->options.links_bind, sizeof self->options.links_bind, "127.0.0.1:0");
    assert_int_equal(compute_find("cpu", NULL, &self->options.device), 0);
    self->arena.max = 1 << 16;
    self->arena.bytes = malloc(self->arena.max);
    self->worker = worker_new(PORT_LEARNER, learner_body, &self->options);
    build(self);
    struct wire_load load = { .step = step, .genesis = !from };
    if (from) snprintf(load.path, sizeof load.path, "%.250s", from->root);
    else snprintf(load.path, sizeof load.path, "%.200s/model", folder);
    send_job(self, FRAME_LOAD, &load);
    const struct wire_loaded *loaded = hear_kind(self, FRAME_LOADED);
    if (!loaded->ok) fail_msg("%s", loaded->reason);
}

static void die(struct member *self)
{
    worker_destroy(&self->worker);
    blob_store_destroy(&self->store);
    identity_destroy(&self->identity);
    free(self->arena.bytes);
    *self = (struct member){ 0 };
}

// ---- a small coordinator ------------------------------------------------------------------------

struct course {
    uint64_t step, samples_done;
};

static uint32_t batch_at(uint64_t samples_done)
{
    return schedule_batch_size(strategy.batch_start, strategy.batch_end,
                               strategy.batch_warmup_tokens, samples_done * SEQ);
}

static void link_with(struct member *const *group, uint32_t count, struct wire_linked *ret_list)
{
    for (uint32_t i = 0; i < count; i++) {
        ret_list[i] = (struct wire_linked){ .key = *identity_key(group[i]->identity),
                                            .instance = group[i]->instance };
        memcpy(ret_list[i].endpoint, group[i]->endpoint, sizeof ret_list[i].endpoint);
    }
}

// All link with one another while none has a window, and say so.
static void link_all(struct member *const *group, uint32_t count)
{
    static uint64_t number;
    struct wire_linked list[MEMBERS_MAX_HERE];
    link_with(group, count, list);
    const struct wire_expect job = { .number = ++number,
                                     .trainers = list,
                                     .trainers_count = count };
    for (uint32_t i = 0; i < count; i++) send_job(group[i], FRAME_EXPECT, &job);
    for (uint32_t i = 0; i < count; i++) {
        const struct wire_links *links;
        do links = hear_kind(group[i], FRAME_LINKS);
        while (links->linking != number || links->linked != ((uint64_t)1 << count) - 1);
        assert_string_equal(links->endpoint, group[i]->endpoint);
    }
}

struct plan {
    struct wire_take_window job;
    struct wire_linked linked[MEMBERS_MAX_HERE];
    float rates[WINDOW];
    struct interval dealt;
};

static void plan_window(struct plan *plan, const struct course *at, uint32_t steps,
                        struct member *const *group, uint32_t count)
{
    uint64_t samples = at->samples_done;
    for (uint32_t k = 0; k < steps; k++) {
        plan->rates[k] = rate / (float)(1 + at->step + k);
        samples += batch_at(samples);
    }
    plan->dealt = (struct interval){ at->samples_done, samples };
    link_with(group, count, plan->linked);
    plan->job = (struct wire_take_window){ .number = next_window++,
                                           .step = at->step,
                                           .steps = steps,
                                           .samples_done = at->samples_done,
                                           .lr_bits = { (const uint8_t *)plan->rates, steps * 4 },
                                           .samples = &plan->dealt,
                                           .samples_count = 1,
                                           .group = plan->linked,
                                           .group_count = count,
                                           .born_unix_ms = BORN,
                                           .pass_samples = PASS };
}

static void give_one(struct plan *plan, struct member *const *group, uint32_t place)
{
    plan->job.place = place;
    send_job(group[place], FRAME_TAKE_WINDOW, &plan->job);
}

static void give_window(const struct course *at, uint32_t steps, struct member *const *group,
                        uint32_t count)
{
    struct plan plan;
    plan_window(&plan, at, steps, group, count);
    for (uint32_t i = 0; i < count; i++) give_one(&plan, group, i);
}

// Freezes all who live. Returns where the rule of the pace closes the window.
static uint64_t freeze(struct member *const *group, uint32_t count, uint64_t committed)
{
    struct holder_answer answers[MEMBERS_MAX_HERE];
    const struct wire_level level = { next_window - 1, next_level++ };
    uint32_t live = 0;
    for (uint32_t i = 0; i < count; i++)
        if (group[i]->worker) send_job(group[i], FRAME_FREEZE, &level);
    for (uint32_t i = 0; i < count; i++) {
        if (!group[i]->worker) continue;
        const struct wire_frozen *frozen = hear_kind(group[i], FRAME_FROZEN);
        answers[live++] = (struct holder_answer){ frozen->step, frozen->has };
    }
    return holder_window_end(answers, live, committed);
}

static uint64_t close_window(struct member *const *group, uint32_t count, uint64_t committed)
{
    const uint64_t end = freeze(group, count, committed);
    const struct wire_close_window job = { next_window - 1, end, true };
    struct hash digest = { { 0 } };
    for (uint32_t i = 0; i < count; i++) {
        if (!group[i]->worker) continue;
        send_job(group[i], FRAME_CLOSE_WINDOW, &job);
        const struct wire_closed_window *closed = hear_kind(group[i], FRAME_CLOSED_WINDOW);
        if (!closed->ok) fail_msg("%s", closed->reason);
        assert_int_equal(closed->step, end);
        if (hash_is_none(&digest)) digest = closed->digest;
        assert_true(hash_equal(&digest, &closed->digest));
    }
    return end;
}

// Waits until all say that the window is over, or one that it is broken.
static void await_end(struct member *const *group, uint32_t count, uint64_t end)
{
    zmq_pollitem_t items[MEMBERS_MAX_HERE];
    struct member *waited[MEMBERS_MAX_HERE];
    bool over[MEMBERS_MAX_HERE] = { false };
    for (;;) {
        uint32_t left = 0;
        for (uint32_t i = 0; i < count; i++) {
            if (!group[i]->worker || over[group[i] - members]) continue;
            items[left] =
                (zmq_pollitem_t){ .fd = worker_answers_fd(group[i]->worker), .events = ZMQ_POLLIN };
            waited[left++] = group[i];
        }
        if (left == 0) return;
        assert_true(zmq_poll(items, (int)left, WAIT_MS) > 0);
        for (uint32_t i = 0; i < left; i++) {
            if (!hear(waited[i], 0)) continue;
            if (waited[i]->kind == FRAME_BROKE) return;
            const struct wire_stepped *stepped = waited[i]->body;
            if (waited[i]->kind == FRAME_STEPPED && stepped->step == end)
                over[waited[i] - members] = true;
        }
    }
}

static uint32_t living(struct member *ret_group[MEMBERS_MAX_HERE])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < MEMBERS_MAX_HERE; i++)
        if (members[i].worker) ret_group[count++] = &members[i];
    return count;
}

// The newest state of a member, for a joiner.
static void save(struct member *self, uint64_t step)
{
    struct wire_save job = { .step = step };
    send_job(self, FRAME_CLOSE_WINDOW, &(struct wire_close_window){ 0, step, true });
    job.digest = ((const struct wire_closed_window *)hear_kind(self, FRAME_CLOSED_WINDOW))->digest;
    send_job(self, FRAME_SAVE, &job);
    const struct wire_saved *saved = hear_kind(self, FRAME_SAVED);
    if (!saved->ok) fail_msg("%s", saved->reason);
}

static void join(uint32_t number, uint64_t step)
{
    struct member *group[MEMBERS_MAX_HERE];
    assert_true(living(group) > 0);
    if (step == 0) {
        be_born(&members[number], number, 0, NULL);
    } else {
        save(group[0], step);
        be_born(&members[number], number, step, group[0]);
    }
}

// STEPS steps in windows; `deaths` of them with a death in the middle, each followed by a joiner.
static struct hash run(uint32_t world, uint32_t deaths, uint64_t seed)
{
    struct course at = { 0, 0 };
    chance = seed;
    for (uint32_t i = 0; i < world; i++) be_born(&members[i], i, 0, NULL);
    while (at.step < STEPS) {
        struct member *group[MEMBERS_MAX_HERE];
        const uint32_t count = living(group);
        const uint32_t steps = STEPS - at.step < WINDOW ? (uint32_t)(STEPS - at.step) : WINDOW;
        uint32_t dead = UINT32_MAX;
        if (deaths % 2 == 1) link_all(group, count);
        give_window(&at, steps, group, count);
        if (deaths > 0 && count > 1) {
            struct member *victim = group[roll(count)];
            dead = (uint32_t)(victim - members);
            deaths--;
            usleep((useconds_t)roll(3000));
            die(victim);
        }
        await_end(group, count, at.step + steps);
        const uint64_t end = close_window(group, count, at.step);
        for (; at.step < end; at.step++) at.samples_done += batch_at(at.samples_done);
        if (dead != UINT32_MAX) join(dead, at.step);
    }
    struct member *group[MEMBERS_MAX_HERE];
    living(group);
    send_job(group[0], FRAME_CLOSE_WINDOW, &(struct wire_close_window){ 0, STEPS, true });
    const struct hash digest =
        ((const struct wire_closed_window *)hear_kind(group[0], FRAME_CLOSED_WINDOW))->digest;
    for (uint32_t i = 0; i < MEMBERS_MAX_HERE; i++)
        if (members[i].worker) die(&members[i]);
    return digest;
}

static void every_world_ends_in_the_same_state(void **state)
{
    (void)state;
    make_files();
    const struct hash alone = run(1, 0, 1);
    const uint32_t worlds[] = { 2, 3, 4, 7, 8 };
    for (uint32_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        const struct hash digest = run(worlds[i], 0, 1);
        assert_true(hash_equal(&digest, &alone));
    }
}

// ---- moments by shares --------------------------------------------------------------------------

static void share_moments(void)
{
    shares_moments = true;
    make_files();
    shares_moments = false;
}

// Of eight members two have no share.
static void shares_of_any_world_end_in_the_same_state(void **state)
{
    const uint32_t worlds[] = { 1, 2, 3, 4, 7, 8 };
    (void)state;
    share_moments();
    strategy.parts = PARTS_NONE;
    const struct hash alone = run(1, 0, 1);
    strategy.parts = PARTS_MOMENTS;
    for (uint32_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        const struct hash digest = run(worlds[i], 0, 1);
        assert_true(hash_equal(&digest, &alone));
    }
}

// Each instruction set that this processor has, 1 to 3 threads, two deaths and two joiners in each world. SAME_BITS=n:
// all worlds on each, in both precisions, with n seeds; else half of the worlds, one seed.
static void every_instruction_set_ends_in_the_same_state(void **state)
{
    const char *const isas[] = { "avx512bf16", "avx512", "avx2", "base" };
    const uint32_t worlds[] = { 1, 2, 3, 4, 7, 8 };
    const char *const own = kernels_chosen()->name, *seeds = getenv("SAME_BITS");
    uint32_t runs = 0;
    (void)state;
    make_files();
    for (int half = 0; half < (seeds ? 2 : 1); half++) {
        products = half ? PRODUCTS_BF16 : PRODUCTS_FLOAT32;
        const struct hash alone = run(1, 0, 1);
        for (uint32_t n = 0; n < 24u * (seeds ? (uint32_t)atoi(seeds) : 1); n++) {
            const uint32_t i = n % 4, w = n / 4 % 6;
            if ((!seeds && (i + w) % 2) || !learn_set_isa(isas[i])) continue;
            const struct hash digest = run(worlds[w], worlds[w] > 1 ? 2 : 0, n);
            assert_true(hash_equal(&digest, &alone));
            runs++;
        }
        assert_true(learn_set_isa(own));
    }
    products = PRODUCTS_FLOAT32;
    print_message("%u runs on the instruction sets of this processor end in one state\n", runs);
}

static void deaths_change_no_bit(uint64_t from, uint64_t to)
{
    make_files();
    const struct hash alone = run(1, 0, 1);
    for (uint64_t seed = from; seed < to; seed++) {
        const struct hash digest = run(2 + (uint32_t)seed % 3, 3, seed);
        assert_true(hash_equal(&digest, &alone));
    }
}

static void deaths_and_joiners_change_no_bit(void **state)
{
    (void)state;
    deaths_change_no_bit(1, 4);
}

// A gradient of four leaves: it is summed in parts, while the backward pass is still at work.
static void deaths_in_a_backward_pass_change_no_bit(void **state)
{
    (void)state;
    shape.vocab = 900;
    deaths_change_no_bit(4, 7);
    shape.vocab = 40;
}

// ---- a step that is void ------------------------------------------------------------------------

// Gives a window and hears who calls its step void, as bits, and why (`any`: or for the sum); then closes it there. Nobody else is broken.
static uint64_t try_window(struct course *at, struct member *const *group, uint32_t count,
                           uint8_t unsound, bool any)
{
    uint64_t who = 0, broken_at = UINT64_MAX;
    give_window(at, WINDOW, group, count);
    await_end(group, count, at->step + WINDOW);
    for (uint32_t i = 0; i < count; i++) {
        if (group[i]->kind != FRAME_BROKE) continue;
        const struct wire_broke *broke = group[i]->body;
        if (broke->unsound != unsound && !(any && broke->unsound == UNSOUND_SUM))
            fail_msg("%s", broke->reason);
        assert_false(broke->has);
        assert_true(broke->missing == 0 && broke->step >= at->step);
        broken_at = broke->step;
        who |= (uint64_t)1 << i;
    }
    const uint64_t end = close_window(group, count, at->step);
    assert_true(who == 0 || end == broken_at);
    for (; at->step < end; at->step++) at->samples_done += batch_at(at->samples_done);
    return who;
}

static uint32_t begin_group(struct member *ret_group[MEMBERS_MAX_HERE], uint32_t world)
{
    for (uint32_t i = 0; i < world; i++) be_born(&members[i], i, 0, NULL);
    return living(ret_group);
}

static void end_group(void)
{
    for (uint32_t i = 0; i < MEMBERS_MAX_HERE; i++)
        if (members[i].worker) die(&members[i]);
}

static void a_foreign_token_voids_its_step_at_one_member(void **state)
{
    (void)state;
    struct member *group[MEMBERS_MAX_HERE];
    struct course at = { 0, 0 };
    make_files_with(60000);
    const uint32_t count = begin_group(group, 3);
    uint64_t who = 0;
    while (at.step < STEPS && who == 0) who = try_window(&at, group, count, UNSOUND_TOKENS, false);
    const uint64_t step = at.step;
    assert_true(who == 1 || who == 2 || who == 4);
    assert_true(try_window(&at, group, count, UNSOUND_TOKENS, false) == who); // The same samples
    assert_true(at.step == step);
    end_group();
}

// The rate of the first step spoils the parameters of all. Nobody takes a step after it.
static void a_gradient_that_is_not_finite_is_applied_by_nobody(void **state)
{
    (void)state;
    struct member *group[MEMBERS_MAX_HERE];
    struct course at = { 0, 0 };
    make_files();
    const uint32_t count = begin_group(group, 3);
    rate = 1e36f;
    assert_true(try_window(&at, group, count, UNSOUND_GRADIENT, true) != 0);
    rate = 0.01f;
    const uint64_t step = at.step;
    assert_true(try_window(&at, group, count, UNSOUND_GRADIENT, false) != 0);
    assert_true(at.step == step && step > 0);
    end_group();
}

// ---- a state that changed by itself -------------------------------------------------------------

// What a member holds is pinned under its digest.
static struct hash pin(struct member *self, uint64_t step)
{
    send_job(self, FRAME_CLOSE_WINDOW, &(struct wire_close_window){ 0, step, true });
    return ((const struct wire_closed_window *)hear_kind(self, FRAME_CLOSED_WINDOW))->digest;
}

// Gives it the state that another one has pinned, as a fetcher does; of an item a float is changed, one of
// those that every sample uses.
enum { NO_ITEM = 99 };
static void give_state(struct member *self, const struct member *from, uint64_t step,
                       const struct hash *digest, uint32_t flipped_item)
{
    struct blob_snapshot state = { .step = step };
    struct hash roots[STATE_ITEMS_MAX];
    const void *items[STATE_ITEMS_MAX];
    struct blob_ref ref;
    assert_int_equal(blob_store_pinned(from->store, digest, NULL, &ref, &state.cut), 0);
    struct state_copy copy;
    assert_int_equal(blob_store_new_copy(self->store, state_cut_room(&state.cut), NULL, &copy), 0);
    memcpy(copy.bytes, ref.bytes, state_cut_room(&state.cut));
    blob_store_release(&ref);
    for (uint32_t i = 0; i < state.cut.count; i++)
        items[i] = copy.bytes + state_cut_place(&state.cut, i);
    if (flipped_item != NO_ITEM)
        copy.bytes[state_cut_place(&state.cut, flipped_item) + 4 * 2000 + 3] ^= 0x30;
    state.digest = state_cut_digest(&state.cut, items, roots);
    blob_store_stage(self->store, &state, &copy);
    send_job(self, FRAME_LOAD, &(struct wire_load){ .step = step });
    const struct wire_loaded *loaded = hear_kind(self, FRAME_LOADED);
    if (!loaded->ok) fail_msg("%s", loaded->reason);
}

// All say at the same step whose state differs, and nobody has that step. Returns the step.
static uint64_t hear_differ(struct member *const *group, uint32_t count, uint64_t differ)
{
    uint64_t step = 0;
    for (uint32_t i = 0; i < count; i++) {
        while (group[i]->kind != FRAME_BROKE) assert_true(hear(group[i], WAIT_MS));
        const struct wire_broke *broke = group[i]->body;
        if (broke->differ != differ) fail_msg("%s", broke->reason);
        assert_false(broke->has || broke->missing || broke->unsound);
        if (i > 0) assert_true(broke->step == step);
        step = broke->step;
    }
    return step;
}

static void go_on_to_the_end(struct course *at, struct member *const *group, uint32_t count)
{
    while (at->step < STEPS) {
        const uint32_t steps = STEPS - at->step < WINDOW ? (uint32_t)(STEPS - at->step) : WINDOW;
        const uint64_t end = at->step + steps;
        give_window(at, steps, group, count);
        await_end(group, count, end);
        assert_true(close_window(group, count, at->step) == end);
        for (; at->step < end; at->step++) at->samples_done += batch_at(at->samples_done);
    }
}

// The state has four leaves, an item each. A float of one member changes before step WINDOW: it is found when the turn of a
// leaf comes in which it can be seen. Returns the digest in which the run ends.
static struct hash find(uint32_t flipped_item, uint64_t found_at)
{
    struct member *group[MEMBERS_MAX_HERE];
    struct course at = { 0, 0 };
    const uint32_t count = begin_group(group, 3);
    assert_true(try_window(&at, group, count, UNSOUND_NONE, false) == 0 && at.step == WINDOW);
    const struct hash digest = pin(group[2], WINDOW);
    give_state(group[2], group[2], WINDOW, &digest, flipped_item);
    give_window(&at, WINDOW, group, count);
    assert_true(hear_differ(group, count, 4) == found_at);
    assert_true(freeze(group, count, WINDOW) == found_at);
    struct hash good = { { 0 } };
    for (uint32_t i = 0; i < count; i++) {
        send_job(group[i], FRAME_CLOSE_WINDOW,
                 &(struct wire_close_window){ next_window - 1, found_at, true });
        const struct wire_closed_window *closed = hear_kind(group[i], FRAME_CLOSED_WINDOW);
        assert_true(closed->ok == (i != 2)); // Its state must be fetched
        if (i == 0) good = closed->digest;
        if (i == 1) assert_true(hash_equal(&good, &closed->digest));
    }
    give_state(group[2], group[0], found_at, &good, NO_ITEM);
    for (; at.step < found_at; at.step++) at.samples_done += batch_at(at.samples_done);
    go_on_to_the_end(&at, group, count);
    const struct hash last = pin(group[2], STEPS);
    end_group();
    return last;
}

static void a_state_that_changed_is_found_within_its_leaves(void **state)
{
    (void)state;
    make_files();
    const struct hash alone = run(1, 0, 1);
    // The step that compares the second moments is the next one: no gradient was spoiled.
    const struct hash at_once = find(2, WINDOW);
    assert_true(hash_equal(&at_once, &alone));
    // The first moments move the parameters; two steps later these are compared.
    const struct hash later = find(1, WINDOW + 2);
    assert_false(hash_equal(&later, &alone)); // Its gradient of one step was another one
    find(0, WINDOW + 2);
}

// Of two, neither is right.
static void two_that_differ_name_each_other(void **state)
{
    (void)state;
    struct member *group[MEMBERS_MAX_HERE];
    struct course at = { 0, 0 };
    make_files();
    const uint32_t count = begin_group(group, 2);
    const struct hash digest = pin(group[0], 0);
    give_state(group[0], group[0], 0, &digest, 1);
    give_window(&at, WINDOW, group, count);
    assert_true(hear_differ(group, count, 2) == 1); // Whose turn comes in step 1
    assert_true(freeze(group, count, 0) == 1);
    const struct hash a = pin(group[0], 1), b = pin(group[1], 1); // Both keep what they hold
    assert_true(!hash_is_none(&a) && !hash_is_none(&b) && !hash_equal(&a, &b));
    end_group();
}

// One of two wants to stop, and both have the next window already. They stop behind the one step of the first,
// and begin no other.
static void a_group_that_stops_begins_no_window(void **state)
{
    (void)state;
    struct member *group[MEMBERS_MAX_HERE];
    struct course at = { 0, 0 };
    struct plan first, next;
    make_files();
    const uint32_t count = begin_group(group, 2);
    plan_window(&first, &at, 1, group, count);
    at = (struct course){ 1, first.dealt.end };
    plan_window(&next, &at, WINDOW, group, count);
    give_one(&first, group, 0); // It waits for the other one, and hears the rest meanwhile
    give_one(&next, group, 0);
    send_job(group[0], FRAME_STOP_WINDOW, &(struct wire_stop_window){ next.job.number });
    give_one(&first, group, 1);
    give_one(&next, group, 1);
    uint32_t samples = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct wire_stepped *stepped = hear_kind(group[i], FRAME_STEPPED);
        assert_true(stepped->stopped && stepped->step == 1);
        samples += stepped->samples; // Each says its own part
    }
    assert_int_equal(samples, batch_at(0));
    assert_int_equal(close_window(group, count, 0), 1);
    end_group();
}

// ---- a member that is late ----------------------------------------------------------------------

enum { LATE_US = 260000 }; // More than the floor of the learner

static atomic_bool is_slowing;
static atomic_int slowed;

// The learners pass their failpoints in this process: the first that does so once it is asked for is slow from then on,
// or waits in its save until it is let go.
static pthread_mutex_t holding = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t held = PTHREAD_COND_INITIALIZER;
static bool is_holding, holds;

static void hold_one(void)
{
    pthread_mutex_lock(&holding);
    if (is_holding && !holds) {
        holds = true;
        pthread_cond_broadcast(&held);
        while (is_holding) pthread_cond_wait(&held, &holding);
        holds = false;
    }
    pthread_mutex_unlock(&holding);
}

static void hold(bool wish)
{
    pthread_mutex_lock(&holding);
    is_holding = wish;
    pthread_cond_broadcast(&held);
    pthread_mutex_unlock(&holding);
}

static void await_hold(void)
{
    pthread_mutex_lock(&holding);
    while (!holds) pthread_cond_wait(&held, &holding);
    pthread_mutex_unlock(&holding);
}

int failpoint_reached(const char *name)
{
    static _Thread_local bool is_slow;
    if (strcmp(name, "checkpoint_sync") == 0) hold_one();
    if (strcmp(name, "learner_train") != 0 || !is_slowing) return 0;
    if (!is_slow) is_slow = atomic_fetch_add(&slowed, 1) == 0;
    if (is_slow) usleep(LATE_US);
    return 0;
}

// Of each member, the newest word on who is late, up to the end of the window.
static void hear_late(struct member *const *group, uint32_t count, uint64_t end, uint32_t *ret_late)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct wire_stepped *stepped;
        do {
            stepped = hear_kind(group[i], FRAME_STEPPED);
            ret_late[i] = stepped->late;
            assert_true(!stepped->late ||
                        (stepped->late_ms > 200 && 3 * stepped->usual_ms < stepped->late_ms));
            assert_true(!stepped->late || stepped->train_ms < stepped->late_ms);
        } while (stepped->step < end);
    }
}

// One window. Returns 1 + the place of the member that the others call late at its end; 0: nobody.
static uint32_t run_window(struct course *at, struct member *const *group, uint32_t count,
                           uint32_t steps)
{
    uint32_t late[MEMBERS_MAX_HERE], slow = 0;
    give_window(at, steps, group, count);
    hear_late(group, count, at->step + steps, late);
    for (uint32_t i = 0; i < steps; i++, at->step++) at->samples_done += batch_at(at->samples_done);
    for (uint32_t i = 0; i < count; i++) slow = late[i] ? late[i] : slow;
    for (uint32_t i = 0; i < count && slow; i++)
        assert_int_equal(late[i], i + 1 == slow ? 0 : slow);
    return slow;
}

static void a_member_that_is_late_twice_is_said_until_it_is_on_time(void **state)
{
    (void)state;
    struct member *group[MEMBERS_MAX_HERE];
    struct course at = { 0, 0 };
    uint32_t slow = 0;
    make_files();
    const uint32_t count = begin_group(group, 3);
    assert_int_equal(run_window(&at, group, count, WINDOW), 0);
    is_slowing = true;
    for (int tries = 0; tries < 5 && !slow; tries++) slow = run_window(&at, group, count, 3);
    assert_in_range(slow, 1, count);
    is_slowing = false;
    assert_int_equal(run_window(&at, group, count, WINDOW), 0);
    end_group();
}

// ---- a HAVE that does not fit -------------------------------------------------------------------

// A member that holds the key of its place, sums as it should, and says what it likes.
static void a_have_that_does_not_fit_breaks_the_window(void **state)
{
    enum { PATIENCE_MS = 5000 };
    uint8_t secret[SECRET_BYTES] = { 2 };
    static uint8_t word[GROUP_WORD_MAX];
    struct identity *identity;
    struct why why = { 0 };
    struct group_blame blame;
    struct layout_tensor tensors[64];
    struct layout layout;
    struct plan plan;
    group_t *links;
    (void)state;
    make_files();
    be_born(&members[0], 0, 0, NULL);
    assert_int_equal(identity_from_secret(secret, NULL, &identity), 0);
    const struct group_options options = { identity,       "r", 77, "127.0.0.1:0", GROUP_PLAIN, 1,
                                           .called_fd = -1 };
    assert_int_equal(group_new(&options, &why, &links), 0);
    assert_int_equal(model_tensors_layout(&shape, tensors, NULL, &layout), 0);
    struct member forger = { .identity = identity, .instance = 77 };
    snprintf(forger.endpoint, sizeof forger.endpoint, "tcp://127.0.0.1:%u", group_port(links));
    plan_window(&plan, &(struct course){ 0, 0 }, WINDOW,
                (struct member *[]){ &members[0], &forger }, 2);
    give_one(&plan, (struct member *[]){ &members[0], &forger }, 0);
    struct group_member group[2];
    for (int i = 0; i < 2; i++) {
        group[i] = (struct group_member){ plan.linked[i].key, plan.linked[i].instance, "" };
        memcpy(group[i].endpoint, plan.linked[i].endpoint, sizeof group[i].endpoint);
    }
    assert_int_equal(group_form(links, plan.job.number, group, 2, 1, PATIENCE_MS, &why, &blame), 0);
    float *vector = calloc(2 * layout.total, sizeof *vector);
    const float *nodes[LANE_NODES_MAX];
    for (int i = 0; i < LANE_NODES_MAX; i++) nodes[i] = vector;
    const struct group_sum sum = { .floats = layout.total,
                                   .lanes = 8,
                                   .batch = batch_at(0),
                                   .nodes = nodes,
                                   .result = vector + layout.total,
                                   .timeout_ms = PATIENCE_MS };
    assert_int_equal(group_add(links, &sum, &why, &blame), 0);
    const struct wire_have have = { .window = plan.job.number, .first_piece = (uint64_t)1 << 40 };
    const size_t count = wire_pack_body(FRAME_HAVE, &have, word, sizeof word);
    assert_int_equal(group_tell(links, word, count, &why, &blame), 0);
    const struct wire_broke *broke = hear_kind(&members[0], FRAME_BROKE);
    assert_int_equal(broke->missing, 2);
    assert_non_null(strstr(broke->reason, "told a HAVE that does not fit"));
    group_destroy(&links);
    identity_destroy(&identity);
    free(vector);
    end_group();
}

// ---- saves in pieces ----------------------------------------------------------------------------

static char saves_root[PATH_MAX];

static void save_every(uint32_t steps)
{
    shape.vocab = 900; // Four leaves
    newest_whole = 0;
    make_files();
    strategy.save_steps = steps;
    strategy.keep = 100;
    snprintf(strategy.shared_dir, sizeof strategy.shared_dir, "%.200s/shared", folder);
    assert_int_equal(mkdir(strategy.shared_dir, 0755), 0);
    assert_int_equal(shared_dir_root(strategy.shared_dir, "r", BORN, NULL, saves_root), 0);
}

static void save_no_more(void)
{
    strategy.save_steps = 0;
    shape.vocab = 40;
}

// One window, and the digest behind it.
static struct hash take_steps(struct course *at, uint32_t steps, struct member *const *group,
                              uint32_t count)
{
    give_window(at, steps, group, count);
    await_end(group, count, at->step + steps);
    assert_int_equal(close_window(group, count, at->step), at->step + steps);
    for (uint32_t k = 0; k < steps; k++, at->step++) at->samples_done += batch_at(at->samples_done);
    send_job(group[0], FRAME_CLOSE_WINDOW, &(struct wire_close_window){ 0, at->step, true });
    return ((const struct wire_closed_window *)hear_kind(group[0], FRAME_CLOSED_WINDOW))->digest;
}

// The saves that are whole, newest first.
static size_t list_saves(uint64_t ret_steps[CHECKPOINT_LIST_MAX])
{
    size_t count = 0;
    return pieces_list(saves_root, NULL, ret_steps, &count) == 0 ? count : 0;
}

// Until one of them has said that a save of a later step than `than` is whole. False: the time was up.
static bool await_whole(struct member *const *group, uint32_t count, uint64_t than, int timeout_ms)
{
    zmq_pollitem_t items[MEMBERS_MAX_HERE];
    for (uint32_t i = 0; i < count; i++)
        items[i] =
            (zmq_pollitem_t){ .fd = worker_answers_fd(group[i]->worker), .events = ZMQ_POLLIN };
    while (newest_whole <= than) {
        if (zmq_poll(items, (int)count, timeout_ms) <= 0) return false;
        for (uint32_t i = 0; i < count; i++)
            if (items[i].revents) hear(group[i], 0);
    }
    return true;
}

// A save is skipped if a saver is not done with the one before: then the next one is tried.
static uint64_t take_steps_until_saved(struct course *at, struct member *const *group,
                                       uint32_t count, uint64_t than)
{
    enum { TRIES = 8, PATIENCE_MS = 2000 };
    for (int try = 0; try < TRIES; try++) {
        take_steps(at, strategy.save_steps - (uint32_t)(at->step % strategy.save_steps), group,
                   count);
        if (await_whole(group, count, than, PATIENCE_MS)) return newest_whole;
    }
    fail_msg("nothing is saved up to step %" PRIu64, at->step);
    return 0;
}

static void expect_saved(uint64_t step, uint32_t workers, const struct hash *digest)
{
    struct why why = { 0 };
    pieces_t *pieces = NULL;
    struct hash found;
    if (pieces_open(saves_root, step, "r", &why, &pieces) != 0 ||
        pieces_verify(pieces, &why) != 0 || state_pieces_digest(pieces, &why, &found) != 0)
        fail_msg("%s", why.text);
    assert_int_equal(pieces_meta(pieces)->workers, workers);
    assert_true(hash_equal(&found, digest));
    pieces_close(&pieces);
}

static void a_group_saves_its_state_in_pieces(void **state)
{
    enum { EVERY = 4, SAVES = 16 };
    (void)state;
    struct member *group[MEMBERS_MAX_HERE];
    struct hash digests[SAVES];
    struct course at = { 0, 0 };
    save_every(0);
    begin_group(group, 1);
    for (int i = 0; i < SAVES; i++) digests[i] = take_steps(&at, EVERY, group, 1);
    end_group();
    strategy.save_steps = EVERY;
    begin_group(group, 3);
    at = (struct course){ 0, 0 };
    take_steps(&at, 1, group, 3); // A save is within a window
    const uint64_t by_three = take_steps_until_saved(&at, group, 3, 0);
    die(group[1]);
    struct member *rest[] = { group[0], group[2] };
    const uint64_t by_two = take_steps_until_saved(&at, rest, 2, by_three);
    expect_saved(by_three, 3, &digests[by_three / EVERY - 1]);
    expect_saved(by_two, 2, &digests[by_two / EVERY - 1]);
    // A process that begins with a save holds its state
    be_born(&members[1], 1, 0, NULL);
    struct wire_load load = { .step = by_two, .pieces = true, .born_unix_ms = BORN };
    snprintf(load.path, sizeof load.path, "%s", strategy.shared_dir);
    send_job(&members[1], FRAME_LOAD, &load);
    const struct wire_loaded *loaded = hear_kind(&members[1], FRAME_LOADED);
    if (!loaded->ok) fail_msg("%s", loaded->reason);
    assert_true(loaded->step == by_two);
    assert_true(hash_equal(&loaded->digest, &digests[by_two / EVERY - 1]));
    save_no_more();
    end_group();
}

// ---- moments by shares, whose holders change ----------------------------------------------------

// Four members, three, five, two, six: each takes its share when a window begins.
static void shares_are_dealt_again_when_a_group_ends(void **state)
{
    static const uint32_t worlds[] = { 4, 3, 5, 2, 6 };
    enum { STEPS_EACH = 4, WORLDS = sizeof worlds / sizeof *worlds };
    struct member *group[MEMBERS_MAX_HERE];
    struct hash digests[WORLDS];
    struct course at = { 0, 0 };
    (void)state;
    share_moments();
    strategy.parts = PARTS_NONE;
    begin_group(group, 1);
    for (int i = 0; i < WORLDS; i++) digests[i] = take_steps(&at, STEPS_EACH, group, 1);
    end_group();
    strategy.parts = PARTS_MOMENTS;
    uint32_t count = begin_group(group, worlds[0]);
    at = (struct course){ 0, 0 };
    for (int i = 0; i < WORLDS; i++) {
        while (count > worlds[i]) die(&members[--count]);
        while (count < worlds[i]) join(count++, at.step);
        assert_int_equal(living(group), count);
        const struct hash digest = take_steps(&at, STEPS_EACH, group, count);
        assert_true(hash_equal(&digest, &digests[i]));
    }
    end_group();
}

// One of three dies in a window that the two others end without it. The next window has its share for somebody else.
static void moments_that_died_are_missed(void **state)
{
    enum { STEPS_EACH = 4 };
    struct member *group[MEMBERS_MAX_HERE];
    struct course at = { 0, 0 };
    struct plan plan;
    (void)state;
    share_moments();
    begin_group(group, 3);
    take_steps(&at, STEPS_EACH, group, 3);
    plan_window(&plan, &at, STEPS_EACH, group, 3);
    give_one(&plan, group, 0);
    give_one(&plan, group, 2);
    die(group[1]);
    struct member *rest[] = { group[0], group[2] };
    hear_kind(rest[0], FRAME_BROKE);
    assert_int_equal(freeze(rest, 2, at.step),
                     at.step); // They stand where all of the state is here
    struct wire_close_window job = { next_window - 1, at.step, true };
    for (int i = 0; i < 2; i++) {
        send_job(rest[i], FRAME_CLOSE_WINDOW, &job);
        const struct wire_closed_window *closed = hear_kind(rest[i], FRAME_CLOSED_WINDOW);
        assert_true(closed->ok && !hash_is_none(&closed->digest));
    }
    take_steps(&at, STEPS_EACH, rest, 2);
    give_window(&at, 3, rest, 2);
    await_end(rest, 1, at.step + 2); // In its middle
    die(rest[1]);
    do hear(rest[0], WAIT_MS);
    while (rest[0]->kind != FRAME_BROKE);
    const uint64_t end = freeze(rest, 1, at.step);
    job = (struct wire_close_window){ next_window - 1, end, false };
    send_job(rest[0], FRAME_CLOSE_WINDOW, &job);
    const struct wire_closed_window *closed = hear_kind(rest[0], FRAME_CLOSED_WINDOW);
    assert_true(closed->ok); // That the next window has another cut is not known yet
    job.digest = true, job.window = 0;
    send_job(rest[0], FRAME_CLOSE_WINDOW, &job);
    closed = hear_kind(rest[0], FRAME_CLOSED_WINDOW);
    assert_true(!closed->ok && strstr(closed->reason, "only our share"));
    at.step = end;
    give_window(&at, 2, rest, 1);
    const struct wire_broke *broke = hear_kind(rest[0], FRAME_BROKE);
    assert_non_null(strstr(broke->reason, "moments of a member that is gone are lost"));
    job = (struct wire_close_window){ next_window - 1, end, false };
    send_job(rest[0], FRAME_CLOSE_WINDOW, &job);
    closed = hear_kind(rest[0], FRAME_CLOSED_WINDOW);
    assert_true(!closed->ok && strstr(closed->reason, "are lost"));
    end_group();
}

// ---- saves, again -------------------------------------------------------------------------------

// The first steps have 3 samples and more. A pass has 10: its last sample is in one of the steps 1 to 4.
static void a_pass_ends_with_a_save(void **state)
{
    (void)state;
    static uint64_t steps[CHECKPOINT_LIST_MAX];
    struct member *group[MEMBERS_MAX_HERE];
    struct course at = { 0, 0 };
    save_every(0);
    strategy.save_passes = 1;
    begin_group(group, 2);
    while (at.samples_done < PASS) {
        assert_int_equal(list_saves(steps), 0);
        take_steps(&at, 1, group, 2);
    }
    assert_true(await_whole(group, 2, 0, WAIT_MS));
    assert_true(list_saves(steps) == 1 && steps[0] == at.step);
    strategy.save_passes = 0;
    save_no_more();
    end_group();
}

// One member's disk stands still at step 2. The two others have written, and could save again at step 4.
static void while_one_writes_nobody_saves(void **state)
{
    (void)state;
    static uint64_t steps[CHECKPOINT_LIST_MAX];
    char path[PATH_MAX + 32];
    struct member *group[MEMBERS_MAX_HERE];
    struct course at = { 0, 0 };
    save_every(2);
    begin_group(group, 3);
    hold(true);
    take_steps(&at, 2, group, 3);
    await_hold();
    take_steps(&at, 3, group, 3);
    snprintf(path, sizeof path, "%s/step-00000004.save-%" PRIu64, saves_root, next_window - 1);
    assert_int_equal(access(path, F_OK), -1);
    hold(false);
    assert_true(take_steps_until_saved(&at, group, 3, 2) > 4);
    const size_t count = list_saves(steps);
    assert_true(count == 2 && steps[1] == 2);
    save_no_more();
    end_group();
}

// The shared folder is gone: the save fails, at each member, and the steps go on. It comes back, empty.
static void a_save_that_fails_stops_nothing(void **state)
{
    (void)state;
    struct member *group[MEMBERS_MAX_HERE];
    struct course at = { 0, 0 };
    save_every(3);
    begin_group(group, 2);
    take_steps(&at, 2, group, 2);
    assert_int_equal(rmdir(strategy.shared_dir), 0);
    take_steps(&at, 2, group, 2);
    assert_int_equal(access(saves_root, F_OK), -1);
    assert_int_equal(mkdir(strategy.shared_dir, 0755), 0);
    take_steps_until_saved(&at, group, 2, 0);
    save_no_more();
    end_group();
}

TESTS(FOLDER_TEST(every_world_ends_in_the_same_state),
      FOLDER_TEST(shares_of_any_world_end_in_the_same_state),
      FOLDER_TEST(shares_are_dealt_again_when_a_group_ends),
      FOLDER_TEST(moments_that_died_are_missed),
      FOLDER_TEST(every_instruction_set_ends_in_the_same_state),
      FOLDER_TEST(deaths_and_joiners_change_no_bit),
      FOLDER_TEST(deaths_in_a_backward_pass_change_no_bit),
      FOLDER_TEST(a_foreign_token_voids_its_step_at_one_member),
      FOLDER_TEST(a_gradient_that_is_not_finite_is_applied_by_nobody),
      FOLDER_TEST(a_state_that_changed_is_found_within_its_leaves),
      FOLDER_TEST(two_that_differ_name_each_other),
      FOLDER_TEST(a_group_that_stops_begins_no_window),
      FOLDER_TEST(a_member_that_is_late_twice_is_said_until_it_is_on_time),
      FOLDER_TEST(a_have_that_does_not_fit_breaks_the_window),
      FOLDER_TEST(a_group_saves_its_state_in_pieces), FOLDER_TEST(while_one_writes_nobody_saves),
      FOLDER_TEST(a_pass_ends_with_a_save), FOLDER_TEST(a_save_that_fails_stops_nothing))
