#pragma once
// windows_fixture -- learners in one process that take windows together over loopback, and a small
// coordinator, which follows the rules of the pace and keeps nothing, gives, freezes and closes them.
// Members die and join by a seed.

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
    // The newest LISTED
    uint64_t listed, listed_window;
    uint32_t lists_count;
    struct wire_blob lists[MEMBERS_MAX_HERE];
};

static struct member members[MEMBERS_MAX_HERE];
static struct state_cut built_cut; // Of the newest model
static bool next_drops;            // The next windows begin behind a break
static struct wire_kept next_kept; // The memory save that is on record, as they say
static float rate = 0.01f;
static int products = PRODUCTS_FLOAT32;
static uint64_t newest_whole; // The step of the newest save that a learner has said is whole
static float newest_loss;     // That a learner has said of a step
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

static const struct wire_leases_config *leases; // Not NULL: models are built for a run of these

static inline uint64_t roll(uint64_t below)
{
    uint64_t z = chance += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (z ^ z >> 31) % below;
}

// ---- what a run is made of ----------------------------------------------------------------------

static bool shares_moments; // The next files are those of a run of shares

static inline void make_files_with(uint16_t odd_token)
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

static inline void make_files(void) { make_files_with(0); }

static inline void send_job(struct member *self, uint16_t kind, const void *job)
{
    _Alignas(8) static uint8_t packed[1 << 18];
    const size_t count = wire_pack_body(kind, job, packed, sizeof packed);
    assert_true(count > 0);
    worker_send(self->worker, kind, packed, count);
}

// The next answer. False: none within the time.
static inline bool hear(struct member *self, int timeout_ms)
{
    zmq_pollitem_t item = { .fd = worker_answers_fd(self->worker), .events = ZMQ_POLLIN };
    if (zmq_poll(&item, 1, timeout_ms) <= 0) return false;
    self->arena.used = 0;
    if (!worker_take(self->worker, &self->arena, &self->kind, &self->body)) return false;
    if (self->kind == FRAME_LISTED) {
        const struct wire_listed *said = self->body;
        self->listed = said->step, self->listed_window = said->window;
        self->lists_count = said->lists_count;
        memcpy(self->lists, said->lists, said->lists_count * sizeof *said->lists);
    }
    if (self->kind == FRAME_WHOLE) newest_whole = ((const struct wire_whole *)self->body)->step;
    if (self->kind == FRAME_STEPPED) newest_loss = ((const struct wire_stepped *)self->body)->loss;
    return true;
}

static inline const void *hear_kind(struct member *self, uint16_t kind)
{
    do assert_true(hear(self, WAIT_MS));
    while (self->kind != kind);
    return self->body;
}

// Runs begin with the state in this folder; "": with the model's parameters.
static char first_state[256];

static inline void tell_build(struct member *self, uint32_t micro_batch)
{
    char *json = model_shape_to_config_json(&shape);
    struct wire_config config = { .seq_len = SEQ,
                                  .heartbeat_ms = 1000,
                                  .lease_ms = 10000,
                                  .snapshot_rounds = 1,
                                  .total_steps = STEPS,
                                  .products = (uint8_t)products,
                                  .micro_batch = micro_batch,
                                  .model = { (const uint8_t *)json, (uint32_t)strlen(json) },
                                  .data = { .kind = DATA_LOCAL, .token_bytes = 2 },
                                  .strategy = { FRAME_WINDOWS_CONFIG, &strategy } };
    if (leases) config.strategy = (struct wire_part){ FRAME_LEASES_CONFIG, leases };
    snprintf(config.run, sizeof config.run, "r");
    snprintf(config.genesis, sizeof config.genesis, "%.200s/model", folder);
    memcpy(config.first_state, first_state, sizeof first_state);
    snprintf(config.data.where, sizeof config.data.where, "%.200s/data", folder);
    send_job(self, FRAME_BUILD, &config);
    free(json);
}

static inline void build(struct member *self)
{
    tell_build(self, 2);
    const struct wire_built *built = hear_kind(self, FRAME_BUILT);
    if (!built->ok) fail_msg("%s", built->reason);
    built_cut = state_cut_of_floats(built->floats);
    for (uint32_t i = 0; i < built->items_count; i++)
        state_cut_add(&built_cut, built->items[i].bytes);
    const struct wire_links *links = hear_kind(self, FRAME_LINKS);
    memcpy(self->endpoint, links->endpoint, sizeof self->endpoint);
}

// Members begin with blobs and pins in a folder each, and not in memory.
static bool stores_in_folders;

static inline blob_store_t *new_store(uint32_t number)
{
    char dir[PATH_MAX];
    blob_store_t *store;
    const struct blob_store_options options = { .dir = stores_in_folders ? dir : NULL,
                                                .lazy = true };
    snprintf(dir, sizeof dir, "%.200s/store-%u", folder, number);
    mkdir(dir, 0755);
    assert_int_equal(blob_store_new(&options, NULL, &store), 0);
    return store;
}

static uint32_t serving; // The members that are born as parameter servers, as bits

// A process begins: with the run's first parameters, or with the newest checkpoint of `from`.
static inline void be_born(struct member *self, uint32_t number, uint64_t step,
                           const struct member *from)
{
    uint8_t secret[SECRET_BYTES] = { (uint8_t)(number + 1) };
    assert_int_equal(identity_from_secret(secret, NULL, &self->identity), 0);
    self->store = new_store(number);
    snprintf(self->root, sizeof self->root, "%.200s/saved-%u", folder, number);
    mkdir(self->root, 0755);
    self->instance = next_instance++;
    self->options = (struct learner_options){ .identity = self->identity,
                                              .store = self->store,
                                              .run_id = "r",
                                              .threads = 1 + number % 3,
                                              .micro_batch = 4, // The run's is taken instead
                                              .trains = true,
                                              .serves = serving >> number & 1,
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

static inline void die(struct member *self)
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

static inline uint32_t batch_at(uint64_t samples_done)
{
    return schedule_batch_size(strategy.batch_start, strategy.batch_end,
                               strategy.batch_warmup_tokens, samples_done * SEQ);
}

static inline void link_with(struct member *const *group, uint32_t count,
                             struct wire_linked *ret_list)
{
    for (uint32_t i = 0; i < count; i++) {
        ret_list[i] = (struct wire_linked){ .key = *identity_key(group[i]->identity),
                                            .instance = group[i]->instance };
        memcpy(ret_list[i].endpoint, group[i]->endpoint, sizeof ret_list[i].endpoint);
    }
}

// All link with one another while none has a window, and say so.
static inline void link_all(struct member *const *group, uint32_t count)
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

static inline void plan_window(struct plan *plan, const struct course *at, uint32_t steps,
                               struct member *const *group, uint32_t count)
{
    uint64_t samples = at->samples_done;
    assert_true(steps <= WINDOW);
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
                                           .pass_samples = PASS,
                                           .kept_step = next_kept.step,
                                           .kept_window = next_kept.window,
                                           .drops = next_drops };
}

static inline void give_one(struct plan *plan, struct member *const *group, uint32_t place)
{
    plan->job.place = place;
    send_job(group[place], FRAME_TAKE_WINDOW, &plan->job);
}

static inline void give_window(const struct course *at, uint32_t steps, struct member *const *group,
                               uint32_t count)
{
    struct plan plan;
    plan_window(&plan, at, steps, group, count);
    for (uint32_t i = 0; i < count; i++) give_one(&plan, group, i);
}

// Freezes all who live. Returns where the rule of the pace closes the window.
static inline uint64_t freeze(struct member *const *group, uint32_t count, uint64_t committed)
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

static inline uint64_t close_window(struct member *const *group, uint32_t count, uint64_t committed)
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
static inline void await_end(struct member *const *group, uint32_t count, uint64_t end)
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

static inline uint32_t living(struct member *ret_group[MEMBERS_MAX_HERE])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < MEMBERS_MAX_HERE; i++)
        if (members[i].worker) ret_group[count++] = &members[i];
    return count;
}

// The newest state of a member, for a joiner.
static inline void save(struct member *self, uint64_t step)
{
    struct wire_save job = { .step = step };
    send_job(self, FRAME_CLOSE_WINDOW, &(struct wire_close_window){ 0, step, true });
    job.digest = ((const struct wire_closed_window *)hear_kind(self, FRAME_CLOSED_WINDOW))->digest;
    send_job(self, FRAME_SAVE, &job);
    const struct wire_saved *saved = hear_kind(self, FRAME_SAVED);
    if (!saved->ok) fail_msg("%s", saved->reason);
}

static inline void join(uint32_t number, uint64_t step)
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
static inline struct hash run(uint32_t world, uint32_t deaths, uint64_t seed)
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

static inline void share_moments(void)
{
    shares_moments = true;
    make_files();
    shares_moments = false;
}

static inline uint32_t begin_group(struct member *ret_group[MEMBERS_MAX_HERE], uint32_t world)
{
    for (uint32_t i = 0; i < world; i++) be_born(&members[i], i, 0, NULL);
    return living(ret_group);
}

static inline void end_group(void)
{
    for (uint32_t i = 0; i < MEMBERS_MAX_HERE; i++)
        if (members[i].worker) die(&members[i]);
}

static inline void go_on_to_the_end(struct course *at, struct member *const *group, uint32_t count)
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

// One window, and the digest behind it.
static inline struct hash take_steps(struct course *at, uint32_t steps, struct member *const *group,
                                     uint32_t count)
{
    give_window(at, steps, group, count);
    await_end(group, count, at->step + steps);
    assert_int_equal(close_window(group, count, at->step), at->step + steps);
    for (uint32_t k = 0; k < steps; k++, at->step++) at->samples_done += batch_at(at->samples_done);
    send_job(group[0], FRAME_CLOSE_WINDOW, &(struct wire_close_window){ 0, at->step, true });
    return ((const struct wire_closed_window *)hear_kind(group[0], FRAME_CLOSED_WINDOW))->digest;
}

// ---- a learner that is slow, or waits -----------------------------------------------------------

enum { LATE_US = 260000 }; // More than the floor of the learner

static atomic_bool is_slowing;
static atomic_int slowed;

// The learners pass their failpoints in this process: the first that does so once it is asked for is slow from then on,
// or waits in its save until it is let go.
static pthread_mutex_t holding = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t held = PTHREAD_COND_INITIALIZER;
static bool is_holding, holds;

static inline void hold_one(void)
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

static inline void hold(bool wish)
{
    pthread_mutex_lock(&holding);
    is_holding = wish;
    pthread_cond_broadcast(&held);
    pthread_mutex_unlock(&holding);
}

static inline void await_hold(void)
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
