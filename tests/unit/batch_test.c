// batch_test -- the gradient of a step in lanes: whoever computes which nodes of the tree, the sum
// has the same bits; and it is the sum that lanes.h and batch.h define, formed here number by number.

#include "common/kernel/kernels.h"
#include "common/model/batch.h"
#include "common/model/genesis.h"
#include "tests/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEQ = 5, BATCH_MAX = 19, LANES_TRIED = 13, MICRO_MAX = 4, WORLDS = 8 };

static const struct model_shape shape = { .vocab = 19,
                                          .dim = 8,
                                          .layers = 1,
                                          .heads = 2,
                                          .kv_heads = 1,
                                          .head_dim = 4,
                                          .ffn = 200,
                                          .seq_len_max = SEQ,
                                          .rope_theta = 10000,
                                          .rms_eps = 1e-5 };

// A step, and the vectors to sum it in.
struct step {
    uint32_t lanes, batch, micro_batch;
    uint32_t tokens[BATCH_MAX * (SEQ + 1)];
    double losses[LANES_TRIED];
    model_t *model;
    pool_t *pool;
    float *params, *scratch;
    size_t floats;
};

static struct interval samples_of(const struct step *step, struct lane_node node)
{
    return lane_samples(step->lanes, step->batch, node);
}

static float *vector(const struct step *step) { return malloc(step->floats * sizeof(float)); }

static void begin(struct step *step, uint32_t threads)
{
    *step = (struct step){ .floats = model_parameter_count(&shape), .pool = pool_new(threads) };
    const struct model_options options = { MICRO_MAX, SEQ, GEMM_BF16, false };
    assert_int_equal(model_new(&shape, &options, step->pool, NULL, &step->model), 0);
    step->params = vector(step);
    step->scratch = malloc(BATCH_SCRATCH_MAX * step->floats * sizeof *step->scratch);
    genesis_fill(&shape, 3, step->params);
}

static void end(struct step *step)
{
    model_destroy(&step->model);
    pool_destroy(&step->pool);
    free(step->params);
    free(step->scratch);
}

static void draw(struct step *step)
{
    step->lanes = 1 + (uint32_t)rand() % LANES_TRIED;
    step->batch = 1 + (uint32_t)rand() % BATCH_MAX;
    step->micro_batch = 1 + (uint32_t)rand() % MICRO_MAX;
    for (size_t i = 0; i < BATCH_MAX * (SEQ + 1); i++)
        step->tokens[i] = (uint32_t)rand() % shape.vocab;
}

// What was told to be final, as it was then.
struct told {
    float *to, *seen;
    uint64_t from;
};

static void take_final(void *arg, uint64_t from)
{
    struct told *told = arg;
    assert_true(from < told->from);
    memcpy(told->seen + from, told->to + from, (told->from - from) * sizeof(float));
    told->from = from;
}

// What a member computes. Nothing beyond the scratch that batch_lanes_scratch counts is touched.
static float *compute_node(struct step *step, struct lane_node node)
{
    const uint64_t first = samples_of(step, node).begin;
    float *to = vector(step);
    struct told told = { to, vector(step), step->floats };
    const struct batch_node batch = { .tokens = step->tokens + first * (SEQ + 1),
                                      .seq = SEQ,
                                      .micro_batch = step->micro_batch,
                                      .lanes = step->lanes,
                                      .batch = step->batch,
                                      .node = node,
                                      .final = take_final,
                                      .final_arg = &told };
    const size_t used = step->floats * batch_node_scratch(step->lanes, node.end - node.first,
                                                          step->batch, step->micro_batch);
    for (size_t i = used; i < BATCH_SCRATCH_MAX * step->floats; i++) step->scratch[i] = -7.0f;
    assert_int_equal(batch_gradient_lanes(step->model, step->params, &batch, step->pool,
                                          used ? step->scratch : NULL, NULL, to,
                                          step->losses + node.first),
                     0);
    for (size_t i = used; i < BATCH_SCRATCH_MAX * step->floats; i++)
        assert_true(step->scratch[i] == -7.0f);
    assert_true(told.from > 0 && told.from < step->floats / 2);
    assert_memory_equal(told.seen + told.from, to + told.from,
                        (step->floats - told.from) * sizeof *to);
    free(told.seen);
    return to;
}

// left + right; the right one is freed. NULL stands for a node without samples.
static float *add(const struct step *step, float *left, float *right)
{
    if (!left) return right;
    for (size_t i = 0; right && i < step->floats; i++) left[i] += right[i];
    free(right);
    return left;
}

// What the owner of a share does with the nodes of a world of members.
static float *add_up(struct step *step, uint32_t members, struct lane_node node)
{
    if (interval_empty(samples_of(step, node))) return NULL;
    for (uint32_t m = 0; m < members; m++) {
        struct lane_node nodes[LANE_NODES_MAX];
        const uint32_t count =
            lane_nodes(step->lanes, step->batch, lanes_of_member(step->lanes, members, m), nodes);
        for (uint32_t i = 0; i < count; i++)
            if (memcmp(&nodes[i], &node, sizeof node) == 0) return compute_node(step, node);
    }
    assert_true(node.end - node.first > 1);
    const uint32_t middle = lane_middle(node);
    float *left = add_up(step, members, (struct lane_node){ node.first, middle });
    return add(step, left, add_up(step, members, (struct lane_node){ middle, node.end }));
}

// The definition: portions of a lane in order, each weighed; then the tree.
static float *define(struct step *step, struct lane_node node)
{
    const struct interval at = samples_of(step, node);
    if (interval_empty(at)) return NULL;
    if (node.end - node.first > 1) {
        const uint32_t middle = lane_middle(node);
        float *left = define(step, (struct lane_node){ node.first, middle });
        return add(step, left, define(step, (struct lane_node){ middle, node.end }));
    }
    float *sum = vector(step), *one = vector(step);
    step->losses[node.first] = 0;
    for (uint64_t i = at.begin; i < at.end; i += step->micro_batch) {
        const uint64_t left = at.end - i;
        const uint32_t count = left < step->micro_batch ? (uint32_t)left : step->micro_batch;
        const float weight = (float)count / (float)step->batch;
        double loss;
        assert_int_equal(model_loss_and_grad(step->model, step->params,
                                             step->tokens + i * (SEQ + 1), count, SEQ, NULL, one,
                                             &loss),
                         0);
        step->losses[node.first] += loss * count;
        for (size_t k = 0; k < step->floats; k++)
            sum[k] = i == at.begin ? weight * one[k] : fmaf(weight, one[k], sum[k]);
    }
    free(one);
    return sum;
}

static void every_world_computes_the_same_bits(void **state)
{
    static const char *const isas[] = { "base", "avx2", "avx512", "avx512bf16", "amx" };
    (void)state;
    for (uint32_t turn = 0; turn < 30; turn++) {
        struct step step;
        begin(&step, 1 + turn % 3);
        draw(&step);
        if (!learn_set_isa(isas[turn / 3 % 5])) learn_set_isa("base");
        const struct lane_node root = { 0, step.lanes };
        float *defined = define(&step, root);
        const double loss = batch_lanes_loss(step.losses, step.lanes, step.batch);
        learn_set_isa("best");
        for (uint32_t members = 1; members <= WORLDS; members++) {
            for (uint32_t i = 0; i < step.lanes; i++) step.losses[i] = 0;
            float *sum = add_up(&step, members, root);
            assert_memory_equal(sum, defined, step.floats * sizeof *sum);
            assert_true(batch_lanes_loss(step.losses, step.lanes, step.batch) == loss);
            free(sum);
        }
        free(defined);
        end(&step);
    }
}

static void one_lane_is_the_batch(void **state)
{
    struct step step;
    (void)state;
    begin(&step, 2);
    for (uint32_t turn = 0; turn < 8; turn++) {
        double loss;
        draw(&step);
        step.lanes = 1;
        const struct batch batch = { step.tokens, step.batch, SEQ, step.micro_batch };
        float *whole = vector(&step), *lane = compute_node(&step, (struct lane_node){ 0, 1 });
        assert_int_equal(batch_gradient(step.model, step.params, &batch, step.pool, step.scratch,
                                        NULL, whole, &loss),
                         0);
        assert_memory_equal(whole, lane, step.floats * sizeof *whole);
        assert_true(batch_lanes_loss(step.losses, 1, step.batch) == loss);
        free(whole);
        free(lane);
    }
    end(&step);
}

static void a_fault_names_the_samples_of_the_step(void **state)
{
    struct step step;
    struct why why = { 0 };
    (void)state;
    begin(&step, 1);
    draw(&step);
    step.lanes = 4, step.batch = 12, step.micro_batch = 2;
    step.tokens[11 * (SEQ + 1) + 2] = shape.vocab;
    const struct batch_node batch = { .tokens = step.tokens + 6 * (SEQ + 1),
                                      .seq = SEQ,
                                      .micro_batch = 2,
                                      .lanes = 4,
                                      .batch = 12,
                                      .node = { 2, 4 } };
    float *to = vector(&step);
    assert_int_equal(batch_gradient_lanes(step.model, step.params, &batch, NULL, step.scratch, &why,
                                          to, step.losses),
                     FAULT_RANGE);
    assert_non_null(strstr(why.text, "samples 11..11 of the batch"));
    free(to);
    end(&step);
}

static void the_scratch_is_as_deep_as_the_tree(void **state)
{
    (void)state;
    assert_int_equal(batch_lanes_scratch(1, 16, 16), 0);
    assert_int_equal(batch_lanes_scratch(1, 16, 15), 1);
    assert_int_equal(batch_lanes_scratch(8, 16, 2), 3);
    assert_int_equal(batch_lanes_scratch(8, 17, 2), 4);
    assert_int_equal(batch_lanes_scratch(9, 9, 1), 4);
    assert_int_equal(batch_lanes_scratch(LANES_MAX, 0, 4), BATCH_SCRATCH_MAX);
    assert_int_equal(batch_node_scratch(8, 1, 16, 2), 0);
    assert_int_equal(batch_node_scratch(8, 2, 17, 2), 2);
}

TESTS(TEST(every_world_computes_the_same_bits), TEST(one_lane_is_the_batch),
      TEST(a_fault_names_the_samples_of_the_step), TEST(the_scratch_is_as_deep_as_the_tree))
