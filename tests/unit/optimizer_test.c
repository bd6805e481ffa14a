// optimizer_test -- an optimizer above a device: its state by tag, its shares, its digest. One more
// optimizer, defined in this file only, shows that a lone trainer steps, saves and loads it without
// knowing it.

#include "common/base/dirfile.h"
#include "common/checkpoint/checkpoint.h"
#include "common/compute/compute.h"
#include "common/crypto/merkle.h"
#include "common/learner/solo.h"
#include "common/model/genesis.h"
#include "common/model/model_tensors.h"
#include "common/optimizer/optimizer_kind.h"
#include "common/optimizer/result.h"
#include "tests/unit/replica_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- one more optimizer: descent with momentum, u ← 0.9·u + g, p ← p − rate·u

struct descent {
    struct optimizer base;
};

static int open_descent(const struct optimizer_place *place, const struct optimizer_settings *how,
                        struct why *why, optimizer_t **ret_optimizer)
{
    (void)place, (void)how, (void)why;
    struct descent *self = calloc(1, sizeof *self);
    assert_non_null(self);
    *ret_optimizer = &self->base;
    return 0;
}

static void close_descent(optimizer_t *self) { free(self); }

static void ask_for_one(const optimizer_t *self, struct compute_config *config)
{
    (void)self;
    config->vectors = 1;
}

static int begin_descent(optimizer_t *self, struct why *why)
{
    return compute_far(self->compute) ? why_set(why, FAULT_UNSUPPORTED, "no kernel of a GPU") : 0;
}

static size_t items_of_descent(optimizer_t *self, struct state_item *ret_items)
{
    ret_items[0] = (struct state_item){ .name = "descent-u",
                                        .tag = TAG_RESHARD,
                                        .at = self->place.at,
                                        .vector = COMPUTE_STATE,
                                        .element_bytes = sizeof(float),
                                        .least = -FLT_MAX,
                                        .most = FLT_MAX };
    return 1;
}

static int step_descent(optimizer_t *self, float rate, struct why *why)
{
    (void)why;
    const struct interval at = self->place.at;
    float *u = compute_at(self->compute, COMPUTE_STATE), *p = compute_host(self->compute);
    const float *g = compute_at(self->compute, COMPUTE_GRADIENT);
    for (uint64_t i = at.begin; i < at.end; i++) {
        u[i - at.begin] = 0.9f * u[i - at.begin] + g[i];
        p[i] -= rate * u[i - at.begin];
    }
    return 0;
}

static const struct optimizer_kind descent = { .name = "Descent",
                                               .open = open_descent,
                                               .close = close_descent,
                                               .ask = ask_for_one,
                                               .begin = begin_descent,
                                               .items = items_of_descent,
                                               .step = step_descent };

static void assert_same_params(const struct world *a, const struct world *b, struct interval at)
{
    assert_memory_equal(compute_host(a->compute) + at.begin, compute_host(b->compute) + at.begin,
                        interval_length(at) * sizeof(float));
}

// Parameters and state of `from` into `to`, by what the registry says.
static void move(struct world *from, struct world *to)
{
    struct tags_item room[2][OPTIMIZER_ITEMS_MAX];
    struct tags saved, loaded;
    void *values[2][OPTIMIZER_ITEMS_MAX];
    tags_init(&saved, room[0], OPTIMIZER_ITEMS_MAX);
    tags_init(&loaded, room[1], OPTIMIZER_ITEMS_MAX);
    memcpy(compute_host(to->compute), compute_host(from->compute),
           from->layout.total * sizeof(float));
    assert_int_equal(optimizer_pull(from->optimizer, OPTIMIZER_OWN, &saved, NULL, values[0]), 0);
    assert_int_equal(optimizer_pull(to->optimizer, OPTIMIZER_OWN, &loaded, NULL, values[1]), 0);
    assert_int_equal(saved.count, loaded.count);
    for (size_t i = 0; i < saved.count; i++)
        memcpy(values[1][i], values[0][i], room[0][i].elements * room[0][i].element_bytes);
    assert_int_equal(optimizer_push(to->optimizer, OPTIMIZER_OWN, NULL), 0);
}

static const struct optimizer_kind *const kinds[] = { &optimizer_adamw, &optimizer_adam,
                                                      &optimizer_sgd, &optimizer_distro, &descent };
enum { KINDS = sizeof kinds / sizeof *kinds };

static void test_names(void **state)
{
    (void)state;
    assert_ptr_equal(optimizer_named("AdamW"), &optimizer_adamw);
    assert_ptr_equal(optimizer_named("Adam"), &optimizer_adam);
    assert_ptr_equal(optimizer_named("SGD"), &optimizer_sgd);
    assert_ptr_equal(optimizer_named("Distro"), &optimizer_distro);
    assert_null(optimizer_named("Descent")); // Has no row
}

// What is saved by tag and loaded goes on as if nothing had happened; what is forgotten does not.
static void test_state_goes_on(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        struct world *straight = world_of(kinds[k], all(), true);
        struct world *first = world_of(kinds[k], all(), true);
        struct world *second = world_of(kinds[k], all(), true);
        run(straight, 5);
        run(first, 3);
        run(second, 1);
        move(first, second);
        run(second, 2);
        assert_same_params(second, straight, all());
        move(first, second);
        assert_int_equal(optimizer_forget(second->optimizer, NULL), 0);
        run(second, 2);
        assert_true(memcmp(compute_host(second->compute), compute_host(straight->compute),
                           straight->layout.total * sizeof(float)) != 0);
        world_free(straight);
        world_free(first);
        world_free(second);
    }
}

// Values that no optimizer leaves behind are named and not taken, and all is forgotten.
static void test_what_no_optimizer_leaves(void **state)
{
    (void)state;
    static const struct {
        const struct optimizer_kind *kind;
        size_t item;
        float bad;
        const char *name;
    } cases[] = {
        { &optimizer_adamw, 0, NAN, "'adamw-m': float 3 " },
        { &optimizer_adamw, 1, -1e-20f, "'adamw-v': float 3 " },
        { &optimizer_adamw, 1, INFINITY, "'adamw-v': float 3 " },
        { &optimizer_adam, 1, -1e-20f, "'adam-v': float 3 " },
        { &optimizer_sgd, 0, NAN, "'sgd-v': float 3 " },
        { &optimizer_distro, 0, 0x1p64f, "'distro-residual': float 3 " },
        { &optimizer_distro, 0, NAN, "'distro-residual': float 3 " },
        { &descent, 0, -INFINITY, "'descent-u': float 3 " },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct world *world = world_of(cases[i].kind, all(), true);
        struct tags_item room[OPTIMIZER_ITEMS_MAX];
        struct tags tags;
        void *values[OPTIMIZER_ITEMS_MAX];
        struct why why = { 0 };
        run(world, 2);
        tags_init(&tags, room, OPTIMIZER_ITEMS_MAX);
        assert_int_equal(optimizer_pull(world->optimizer, OPTIMIZER_OWN, &tags, NULL, values), 0);
        ((float *)values[cases[i].item])[3] = cases[i].bad;
        assert_int_equal(optimizer_push(world->optimizer, OPTIMIZER_OWN, &why), FAULT_NAN);
        assert_non_null(strstr(why.text, cases[i].name));
        struct state_item items[OPTIMIZER_ITEMS_MAX];
        const size_t count = optimizer_items(world->optimizer, items);
        for (size_t item = 0; item < count; item++) {
            const float *floats = compute_at(world->compute, items[item].vector);
            if (items[item].values) assert_int_equal(*(uint64_t *)items[item].values, 0);
            else
                for (uint64_t at = 0; at < interval_length(items[item].at); at++)
                    assert_true(floats[at] == 0.0f);
        }
        world_free(world);
    }
}

// Two shares, each with moments for its own floats alone, are the whole in parts.
static void test_shares(void **state)
{
    (void)state;
    const struct optimizer_kind *const which[] = { &optimizer_adamw, &optimizer_adam,
                                                   &optimizer_sgd, &descent };
    const struct interval low = { 0, DIGEST_LEAF_FLOATS };
    const struct interval high = { DIGEST_LEAF_FLOATS, all().end };
    assert_true(all().end > DIGEST_LEAF_FLOATS);
    for (size_t k = 0; k < sizeof which / sizeof *which; k++) {
        struct world *whole = world_of(which[k], all(), true);
        struct world *untouched = world_of(which[k], all(), true);
        struct world *first = world_of(which[k], low, true);
        struct world *second = world_of(which[k], high, true);
        run(whole, 1), run(first, 1), run(second, 1);
        assert_same_params(first, whole, low);
        assert_same_params(first, untouched, high);
        assert_same_params(second, untouched, low);
        assert_same_params(second, whole, high);
        struct state_item items[OPTIMIZER_ITEMS_MAX];
        struct tags_item room[OPTIMIZER_ITEMS_MAX];
        struct tags tags;
        void *values[OPTIMIZER_ITEMS_MAX];
        assert_true(optimizer_items(second->optimizer, items) > 0);
        assert_true(interval_equal(items[0].at, high));
        tags_init(&tags, room, OPTIMIZER_ITEMS_MAX);
        assert_int_equal(optimizer_pull(second->optimizer, OPTIMIZER_OWN, &tags, NULL, values), 0);
        assert_int_equal(room[0].elements, all().end); // A share of the whole item
        world_free(whole);
        world_free(untouched);
        world_free(first);
        world_free(second);
    }
    struct world *world = world_of(&optimizer_distro, all(), true);
    const struct optimizer_place place = { &shape, &world->layout, high, NULL };
    optimizer_t *distro = NULL;
    struct why why = { 0 };
    assert_int_equal(optimizer_new(&optimizer_distro, &place, &settings, &why, &distro),
                     FAULT_UNSUPPORTED);
    assert_null(distro);
    world_free(world);
}

// The leaves that peers exchange have the digest that optimizer_digest says.
static void assert_digest_of_leaves(struct world *world)
{
    struct state_cut cut = state_cut_of_floats(world->layout.total);
    const uint64_t first = state_cut_leaves(&cut);
    const struct hash parameters = digest_of(compute_host(world->compute), world->layout.total);
    struct hash digest, leaves[64];
    optimizer_cut(world->optimizer, &cut);
    assert_true(state_cut_leaves(&cut) <= 64);
    assert_int_equal(compute_leaves(world->compute, COMPUTE_PARAMETERS, NULL, leaves), 0);
    assert_int_equal(optimizer_leaves(world->optimizer, NULL, leaves + first), 0);
    assert_int_equal(optimizer_digest(world->optimizer, &parameters, NULL, &digest), 0);
    const struct hash root = state_cut_root(&cut, leaves);
    assert_true(hash_equal(&root, &digest));
}

// What all hold alike is in the digest, what drops is not; and no checkpoint of all holds it.
static void test_digest_and_scope(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        struct world *one = world_of(kinds[k], all(), true), *two = world_of(kinds[k], all(), true);
        struct tags_item room[OPTIMIZER_ITEMS_MAX];
        struct tags tags;
        void *values[OPTIMIZER_ITEMS_MAX];
        struct hash parameters = hash_of("p", 1), before, after, other;
        assert_int_equal(optimizer_digest(one->optimizer, &parameters, NULL, &before), 0);
        run(one, 2), run(two, 2);
        assert_int_equal(optimizer_digest(one->optimizer, &parameters, NULL, &after), 0);
        assert_int_equal(optimizer_digest(two->optimizer, &parameters, NULL, &other), 0);
        assert_true(hash_equal(&after, &other));
        assert_true(hash_equal(&after, &before) == (kinds[k] == &optimizer_distro));
        assert_true(hash_equal(&after, &parameters) == (kinds[k] == &optimizer_distro));
        assert_digest_of_leaves(one);
        tags_init(&tags, room, OPTIMIZER_ITEMS_MAX);
        assert_int_equal(optimizer_pull(one->optimizer, OPTIMIZER_SHARED, &tags, NULL, values), 0);
        for (size_t i = 0; i < tags.count; i++)
            assert_true((values[i] == NULL) == (room[i].tag == TAG_DROP));
        world_free(one);
        world_free(two);
    }
}

// Removes the folder that a checkpoint was written to.
static void remove_folder(const char *path)
{
    struct why why = { 0 };
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fdopendir(fd);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.') assert_int_equal(dirfile_remove(fd, entry->d_name, &why), 0);
    closedir(dir);
    assert_int_equal(rmdir(path), 0);
}

static checkpoint_t *write_checkpoint(const char *root, struct world *world,
                                      enum optimizer_scope scope)
{
    const float *params = compute_host(world->compute);
    struct checkpoint_info info = { .run = "r", .step = 3, .protocol = 1, .pass_length = 1 };
    struct state state;
    struct why why = { 0 };
    checkpoint_t *checkpoint = NULL;
    assert_int_equal(state_save(world->optimizer, scope, &why, &state), 0);
    const struct checkpoint_parts parts = {
        .config_json = "{}", .state = &state.tags, .values = state.values, .keep = 1
    };
    assert_int_equal(checkpoint_digest(&parts, &world->layout, params, &why, &info.digest), 0);
    if (checkpoint_write(root, &info, &parts, &world->layout, params, &why) < 0 ||
        checkpoint_open(root, 3, "r", &why, &checkpoint) < 0)
        fail_msg("%s", why.text);
    return checkpoint;
}

// A member's own checkpoint brings back all; one of all leaves what drops as it is with its member.
static void test_checkpoints(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        const bool drops = kinds[k] == &optimizer_distro;
        struct world *straight = world_of(kinds[k], all(), true);
        struct world *other = world_of(kinds[k], all(), true);
        struct world *fresh = world_of(kinds[k], all(), true);
        const size_t bytes = straight->layout.total * sizeof(float);
        char own[] = "/tmp/optimizer-test-XXXXXX", shared[] = "/tmp/optimizer-test-XXXXXX";
        assert_true(mkdtemp(own) && mkdtemp(shared));
        run(straight, 3);
        checkpoint_t *checkpoint = write_checkpoint(own, straight, OPTIMIZER_OWN);
        checkpoint_t *of_all = write_checkpoint(shared, straight, OPTIMIZER_SHARED);

        memcpy(compute_host(other->compute), compute_host(straight->compute), bytes);
        assert_int_equal(state_load(other->optimizer, OPTIMIZER_OWN, checkpoint, NULL), 0);
        run(other, 1);
        memcpy(compute_host(fresh->compute), compute_host(straight->compute), bytes);
        assert_int_equal(state_load(fresh->optimizer, OPTIMIZER_SHARED, of_all, NULL), 0);
        run(fresh, 1);
        struct world *never = world_of(kinds[k], all(), true);
        memcpy(compute_host(never->compute), compute_host(straight->compute), bytes);
        run(never, 1);
        run(straight, 1);
        assert_same_params(other, straight, all());
        assert_same_params(fresh, drops ? never : straight, all());

        // What was not saved is not there, and then nothing is remembered
        if (drops) {
            assert_int_equal(state_load(other->optimizer, OPTIMIZER_OWN, of_all, NULL),
                             FAULT_NOT_FOUND);
            struct state_item items[OPTIMIZER_ITEMS_MAX];
            assert_int_equal(optimizer_items(other->optimizer, items), 1);
            const float *residual = compute_at(other->compute, items[0].vector);
            for (uint64_t i = 0; i < all().end; i++) assert_true(residual[i] == 0.0f);
        }
        checkpoint_close(&checkpoint);
        checkpoint_close(&of_all);
        remove_folder(own);
        remove_folder(shared);
        world_free(straight);
        world_free(other);
        world_free(fresh);
        world_free(never);
    }
}

// A checkpointer: it applies what others made, has no residual, and its checkpoints say so.
static void test_a_replica_that_only_applies(void **state)
{
    (void)state;
    struct world *trainer = world_of(&optimizer_distro, all(), true);
    struct world *follower = world_of(&optimizer_distro, all(), false);
    const payload_form_t *form = result_form(trainer->optimizer);
    uint8_t *payload = malloc(payload_bytes(form));
    uint32_t tokens[BATCH * (SEQ + 1)];
    double loss;
    assert_non_null(payload);
    assert_int_equal(compute_config(follower->compute)->vectors, 0);
    fill_tokens(tokens);
    assert_int_equal(compute_gradient(trainer->compute, tokens, BATCH, NULL, &loss), 0);
    assert_int_equal(result_make(trainer->optimizer, 0.01f, NULL, payload), 0);
    const struct apply_result result = { .payload = payload, .bytes = payload_bytes(form) };
    const struct apply_step step = { .rate = 0.01f };
    assert_int_equal(result_apply(trainer->optimizer, &result, 1, &step, NULL), 0);
    result_adopt(trainer->optimizer);
    assert_int_equal(result_apply(follower->optimizer, &result, 1, &step, NULL), 0);
    assert_same_params(trainer, follower, all());
    assert_int_equal(optimizer_forget(follower->optimizer, NULL), 0);
    struct tags_item room[OPTIMIZER_ITEMS_MAX];
    struct tags tags;
    void *values[OPTIMIZER_ITEMS_MAX];
    tags_init(&tags, room, OPTIMIZER_ITEMS_MAX);
    assert_int_equal(optimizer_pull(follower->optimizer, OPTIMIZER_SHARED, &tags, NULL, values), 0);
    assert_int_equal(tags.count, 1);
    assert_true(room[0].tag == TAG_DROP && values[0] == NULL);
    free(payload);
    world_free(trainer);
    world_free(follower);
}

// A result says what it began with: nothing, the declared zero, until one has been adopted.
static void test_the_declared_zero(void **state)
{
    (void)state;
    struct world *world = world_of(&optimizer_distro, all(), true);
    uint8_t *payload = malloc(payload_bytes(result_form(world->optimizer)));
    uint32_t tokens[BATCH * (SEQ + 1)];
    struct hash from, to, again;
    double loss;
    assert_non_null(payload);
    fill_tokens(tokens);
    assert_int_equal(compute_gradient(world->compute, tokens, BATCH, NULL, &loss), 0);
    for (int i = 0; i < 2; i++) { // Not committed the first time
        assert_int_equal(result_make(world->optimizer, 0.01f, NULL, payload), 0);
        assert_int_equal(result_hashes(world->optimizer, NULL, &from, &to), 0);
        assert_true(hash_is_none(&from) && !hash_is_none(&to));
        if (i == 0) result_discard(world->optimizer);
    }
    result_adopt(world->optimizer);
    assert_false(result_has_candidate(world->optimizer));
    assert_int_equal(result_make(world->optimizer, 0.01f, NULL, payload), 0);
    assert_int_equal(result_hashes(world->optimizer, NULL, &from, &again), 0);
    assert_true(hash_equal(&from, &to));
    assert_non_null(result_residual(world->optimizer, &to));
    assert_int_equal(optimizer_forget(world->optimizer, NULL), 0);
    assert_false(result_has_candidate(world->optimizer));
    assert_int_equal(result_make(world->optimizer, 0.01f, NULL, payload), 0);
    assert_int_equal(result_hashes(world->optimizer, NULL, &from, &again), 0);
    assert_true(hash_is_none(&from) && hash_equal(&again, &to));
    free(payload);
    world_free(world);
}

// Neither the device nor the trainer alone knows its name.
static void test_a_third_optimizer_alone(void **state)
{
    (void)state;
    struct layout_tensor tensors[TENSORS_MAX];
    struct layout layout;
    struct compute_device device;
    uint32_t tokens[BATCH * (SEQ + 1)];
    solo_t *solo;
    struct solo_result first, last;
    assert_int_equal(model_tensors_layout(&shape, tensors, NULL, &layout), 0);
    assert_int_equal(compute_find("cpu", NULL, &device), 0);
    const struct solo_place place = { &device, &shape, &layout, NULL };
    const struct solo_options options = { .optimizer = &descent,
                                          .clip_norm = 1,
                                          .seq = SEQ,
                                          .batch_max = BATCH,
                                          .micro_batch = BATCH,
                                          .lanes = 1 };
    struct compute_memory with, without;
    struct solo_options two_vectors = options;
    two_vectors.optimizer = &optimizer_adamw, two_vectors.settings = settings;
    assert_int_equal(solo_memory(&place, &options, NULL, &without), 0);
    assert_int_equal(solo_memory(&place, &two_vectors, NULL, &with), 0);
    assert_int_equal(with.host - without.host, layout.total * sizeof(float));
    assert_int_equal(solo_new(&place, &options, NULL, &solo), 0);
    genesis_fill(&shape, 5, solo_params(solo));
    assert_int_equal(solo_push(solo, NULL), 0);
    fill_tokens(tokens);
    for (int i = 0; i < 20; i++)
        assert_int_equal(solo_step(solo, tokens, BATCH, 0.05f, NULL, i == 0 ? &first : &last), 0);
    assert_true(last.loss < first.loss - 0.1);
    struct state kept;
    assert_int_equal(solo_save_state(solo, NULL, &kept), 0);
    assert_int_equal(kept.tags.count, 1);
    assert_string_equal(kept.items[0].name, "descent-u");
    solo_destroy(&solo);
}

TESTS(TEST(test_names), TEST(test_state_goes_on), TEST(test_what_no_optimizer_leaves),
      TEST(test_shares), TEST(test_digest_and_scope), TEST(test_checkpoints),
      TEST(test_a_replica_that_only_applies), TEST(test_the_declared_zero),
      TEST(test_a_third_optimizer_alone))
