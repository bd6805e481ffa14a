// solo_test -- one trainer alone: the same bits everywhere, and nothing changed by a step that
// fails.

#include "common/crypto/merkle.h"
#include "common/kernel/kernels.h"
#include "common/learner/solo.h"
#include "common/model/batch.h"
#include "common/model/genesis.h"
#include "common/model/model_tensors.h"
#include "tests/test.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SEQ = 12, BATCH = 7, STEPS = 3 };

static const struct model_shape shape = { .vocab = 40,
                                          .dim = 24,
                                          .layers = 2,
                                          .heads = 4,
                                          .kv_heads = 2,
                                          .head_dim = 6,
                                          .ffn = 40,
                                          .seq_len_max = SEQ,
                                          .rope_theta = 10000,
                                          .rms_eps = 1e-5 };

static const struct solo_options usual[] = {
    { .optimizer = &optimizer_adamw,
      .settings = { .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1 },
      .clip_norm = 1,
      .seq = SEQ,
      .batch_max = BATCH,
      .micro_batch = 3,
      .lanes = 4 },
    { .optimizer = &optimizer_distro,
      .settings = { .weight_decay = 0.1, .decay = 0.9f, .chunk = 8, .topk = 4, .one_bit = true },
      .seq = SEQ,
      .batch_max = BATCH,
      .micro_batch = 3,
      .lanes = 1,
      .precision = GEMM_BF16 },
};

struct world {
    struct layout_tensor *room;
    struct layout layout;
    uint64_t floats;
    struct compute_device device;
    float *params; // The solo's
    uint32_t tokens[BATCH * (SEQ + 1)];
    pool_t *pool;
    solo_t *solo;
};

static struct world *world_of(const struct solo_options *options, uint32_t threads)
{
    struct world *self = calloc(1, sizeof *self);
    assert_non_null(self);
    const uint32_t count = model_tensor_count(&shape);
    self->room = calloc(count, sizeof *self->room);
    assert_int_equal(model_tensors_layout(&shape, self->room, NULL, &self->layout), 0);
    self->floats = self->layout.total;
    for (size_t i = 0; i < BATCH * (SEQ + 1); i++)
        self->tokens[i] = (uint32_t)(i * i + i / 5) % shape.vocab;
    self->pool = pool_new(threads);
    assert_int_equal(compute_find("cpu", NULL, &self->device), 0);
    const struct solo_place place = { &self->device, &shape, &self->layout, self->pool };
    assert_int_equal(solo_new(&place, options, NULL, &self->solo), 0);
    self->params = solo_params(self->solo);
    genesis_fill(&shape, 5, self->params);
    assert_int_equal(solo_push(self->solo, NULL), 0);
    return self;
}

static void world_destroy(struct world *self)
{
    solo_destroy(&self->solo);
    pool_destroy(&self->pool);
    free(self->room);
    free(self);
}

static double run(struct world *self, uint32_t steps)
{
    struct solo_result result = { 0 };
    for (uint32_t i = 0; i < steps; i++)
        assert_int_equal(solo_step(self->solo, self->tokens, BATCH, 0.01f, NULL, &result), 0);
    return result.loss;
}

static void test_same_bits(void **state)
{
    static const char *const isas[] = { "base", "avx2", "avx512", "avx512bf16", "amx" };
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        learn_set_isa("base");
        struct world *first = world_of(&usual[k], 1);
        const double loss = run(first, STEPS);
        assert_true(loss < log(shape.vocab)); // It does learn
        for (size_t isa = 0; isa < sizeof isas / sizeof *isas; isa++) {
            if (!learn_set_isa(isas[isa])) continue;
            for (uint32_t threads = 1; threads <= 3; threads++) {
                struct world *world = world_of(&usual[k], threads);
                assert_true(run(world, STEPS) == loss);
                assert_memory_equal(world->params, first->params, world->floats * sizeof(float));
                world_destroy(world);
            }
        }
        world_destroy(first);
    }
    learn_set_isa("best");
}

// The optimizer's items, one after the other.
static uint8_t *state_of(struct world *self, size_t *ret_count)
{
    struct state state;
    size_t count = 0;
    uint8_t *bytes = malloc(4 * self->floats * sizeof(float) + 64);
    assert_non_null(bytes);
    assert_int_equal(solo_save_state(self->solo, NULL, &state), 0);
    for (size_t i = 0; i < state.tags.count; i++) {
        const size_t size = state.items[i].elements * state.items[i].element_bytes;
        memcpy(bytes + count, state.values[i], size);
        count += size;
    }
    *ret_count = count;
    return bytes;
}

static void test_a_failed_step_changes_nothing(void **state)
{
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        struct world *world = world_of(&usual[k], 2);
        struct solo_result result = { -1, -1 };
        struct why why = { 0 };
        size_t count, count_after;
        run(world, 2);
        uint8_t *before = state_of(world, &count);
        const float kept = world->params[3];
        float *params = malloc(world->floats * sizeof *params);
        world->params[3] = NAN; // In the embedding
        memcpy(params, world->params, world->floats * sizeof *params);
        world->tokens[0] = 0;
        assert_int_equal(solo_step(world->solo, world->tokens, BATCH, 0.01f, &why, &result),
                         FAULT_NAN);
        assert_non_null(strstr(why.text, k == 0 ? "samples 0..0 of" : "samples 0..2 of"));
        assert_true(result.loss == -1);
        uint32_t foreign[SEQ + 1] = { [4] = 40 };
        assert_int_equal(solo_step(world->solo, foreign, 1, 0.01f, &why, &result), FAULT_RANGE);
        uint8_t *after = state_of(world, &count_after);
        assert_int_equal(count, count_after);
        assert_memory_equal(before, after, count);
        assert_memory_equal(params, world->params, world->floats * sizeof *params);
        world->params[3] = kept;
        run(world, 1);
        free(before);
        free(after);
        free(params);
        world_destroy(world);
    }
}

// A batch in portions has the mean and the gradient of the batch in one.
static void test_portions_are_a_mean(void **state)
{
    (void)state;
    struct world *world = world_of(&usual[0], 1);
    model_t *model;
    assert_int_equal(
        model_new(&shape, &(struct model_options){ BATCH, SEQ, 0, false }, NULL, NULL, &model), 0);
    float *rooms = malloc(3 * world->floats * sizeof *rooms), *scratch = rooms + world->floats;
    float *whole = scratch + world->floats;
    double loss, whole_loss, measured;
    struct batch batch = { world->tokens, BATCH, SEQ, BATCH };
    assert_int_equal(
        batch_gradient(model, world->params, &batch, NULL, NULL, NULL, whole, &whole_loss), 0);
    batch.micro_batch = 3;
    assert_int_equal(
        batch_gradient(model, world->params, &batch, NULL, scratch, NULL, rooms, &loss), 0);
    assert_int_equal(batch_loss(model, world->params, &batch, NULL, &measured), 0);
    assert_true(measured == loss && fabs(loss - whole_loss) < 1e-6);
    double apart = 0, length = 0;
    for (uint64_t i = 0; i < world->floats; i++) {
        apart += pow((double)rooms[i] - (double)whole[i], 2);
        length += pow((double)whole[i], 2);
    }
    assert_true(sqrt(apart / length) < 1e-5);
    free(rooms);
    model_destroy(&model);
    world_destroy(world);
}

// The digest that a run names: of parameters and moments with AdamW, of the parameters with DisTrO. A
// checkpoint of the same state has it too.
static void test_digest_of_the_state(void **state)
{
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        struct world *world = world_of(&usual[k], 2);
        struct hash params, all, saved;
        struct state of_all;
        run(world, 1);
        const struct hash alone = digest_of(world->params, world->floats);
        assert_int_equal(solo_digest(world->solo, NULL, &params, &all), 0);
        assert_true(hash_equal(&params, &alone));
        assert_true(hash_equal(&params, &all) == (usual[k].optimizer == &optimizer_distro));
        assert_int_equal(solo_save_state(world->solo, NULL, &of_all), 0);
        const struct checkpoint_parts parts = { .state = &of_all.tags, .values = of_all.values };
        assert_int_equal(checkpoint_digest(&parts, &world->layout, world->params, NULL, &saved), 0);
        assert_true(hash_equal(&saved, &all));
        world_destroy(world);
    }
}

TESTS(TEST(test_same_bits), TEST(test_a_failed_step_changes_nothing),
      TEST(test_digest_of_the_state), TEST(test_portions_are_a_mean))
