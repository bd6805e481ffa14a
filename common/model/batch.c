// One portion after the other: its gradient goes to the scratch, and is added with the portion's
// share of the batch as weight. The first portion is computed in place. A batch is one lane.
//
// A tree of lanes is walked from left to right. A node's left half is computed where the node goes,
// its right half in the first free vector of the scratch, with those behind it free in turn; then
// the right half is added to the left one. So the scratch is as deep as the tree.
//
// A vector is not scaled by its weight at once, as that is a walk through all of it: the weight
// goes along, and the next addition multiplies by it. The roundings are the same. What is the whole
// batch in one portion has weight 1 and the bits of model_loss_and_grad.
//
// The last portion of the last lane is the last thing that is computed, and all additions above it
// are known by then. Its backward pass makes the gradient final from the end down; what is final is
// carried up through these additions at once, while it is in the cache, and `final` hears of it.
#include "common/model/batch.h"
#include "common/base/ensure.h"
#include "common/kernel/kernels.h"

#include <inttypes.h>

enum { TASKS = 16, GRAIN = 16, CARRY_MIN = 1 << 12 };

// to = factor * from + to, each weighed (kernels.h); without `from` only to is.
struct addition {
    struct kernels_weights by;
    const float *from;
    float *to;
};

// The walk through the tree.
struct walk {
    model_t *model;
    const float *params;
    const struct batch_node *batch;
    uint64_t first, floats; // The sample that the tokens begin with; N
    pool_t *pool;
    struct why *why;
    double *losses; // Of the lanes of the whole node
    // Above the last portion, the topmost first; and from which number on they are done.
    struct addition above[BATCH_SCRATCH_MAX + 1];
    uint32_t above_count;
    uint64_t carried;
};

// ---- sums of vectors ----------------------------------------------------------------------------

struct add_job {
    const struct addition *addition;
    uint64_t first, count;
};

static void add_task(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    const struct add_job *job = arg;
    const struct addition *addition = job->addition;
    const struct pool_share share = pool_share_of(job->count, GRAIN, TASKS, task);
    const uint64_t count = share.end - share.first, at = job->first + share.first;
    if (!addition->from) kernels_chosen()->scale(count, addition->by.to, addition->to + at);
    else
        kernels_chosen()->add_weighed(count, &addition->by, addition->from + at, addition->to + at);
}

static void add(const struct walk *walk, const struct addition *addition, uint64_t first,
                uint64_t end)
{
    struct add_job job = { addition, first, end - first };
    if (end > first) pool_run(walk->pool, TASKS, add_task, &job);
}

// ---- the last portion ---------------------------------------------------------------------------

static void put_above(struct walk *walk, struct kernels_weights by, const float *from, float *to)
{
    ensure(walk->above_count <= BATCH_SCRATCH_MAX);
    walk->above[walk->above_count++] = (struct addition){ by, from, to };
}

// The lane's sum will be `weight` times what is in `to`: so each addition above it knows the weight of
// what it adds.
static void weigh_above(struct walk *walk, uint32_t count, float weight, float *to)
{
    for (uint32_t i = count; i-- > 0; weight = 1.0f) walk->above[i].by.from = weight;
    if (walk->above_count == 0 && weight != 1.0f)
        put_above(walk, (struct kernels_weights){ .to = weight }, NULL, to);
}

static void carry(struct walk *walk, uint64_t from)
{
    for (uint32_t i = walk->above_count; i-- > 0;) add(walk, &walk->above[i], from, walk->carried);
    walk->carried = from;
}

static void portion_is_final(void *arg, uint64_t from)
{
    struct walk *walk = arg;
    if (walk->carried - from < CARRY_MIN) return;
    carry(walk, from);
    if (walk->batch->final) walk->batch->final(walk->batch->final_arg, from);
}

// ---- the tree -----------------------------------------------------------------------------------

static int name_samples(int rc, uint64_t first, uint32_t count, struct why *why)
{
    return why_wrap(why, rc, "samples %" PRIu64 "..%" PRIu64 " of the batch", first,
                    first + count - 1);
}

static uint32_t portion(uint64_t left, uint32_t micro_batch)
{
    return left < micro_batch ? (uint32_t)left : micro_batch;
}

static struct interval samples_of(const struct walk *walk, struct lane_node node)
{
    return lane_samples(walk->batch->lanes, walk->batch->batch, node);
}

// The lane's sum is *ret_weight times what is in `to`. Of the last lane, all above it is added, too.
static int sum_lane(struct walk *walk, struct lane_node lane, bool last, float *scratch, float *to,
                    float *ret_weight)
{
    const struct batch_node *all = walk->batch;
    const struct interval at = samples_of(walk, lane);
    double *total = &walk->losses[lane.first - all->node.first], loss = 0.0;
    for (uint64_t i = at.begin; i < at.end; i += all->micro_batch) {
        const uint32_t count = portion(at.end - i, all->micro_batch);
        const uint32_t *tokens = all->tokens + (i - walk->first) * (all->seq + 1);
        const float weight = (float)count / (float)all->batch;
        const bool is_first = i == at.begin, is_last = last && i + count == at.end;
        const struct addition own = { { weight, 1.0f, *ret_weight }, scratch, to };
        float *into = is_first ? to : scratch;
        ensure(into);
        if (!is_first && all->between) all->between(all->between_arg);
        if (is_last) {
            const uint32_t above = walk->above_count;
            if (!is_first) put_above(walk, own.by, own.from, own.to);
            weigh_above(walk, above, is_first ? weight : 1.0f, to);
            model_tell_final(walk->model, portion_is_final, walk);
        }
        const int rc = model_loss_and_grad(walk->model, walk->params, tokens, count, all->seq,
                                           walk->why, into, &loss);
        model_tell_final(walk->model, NULL, NULL);
        if (rc < 0) return name_samples(rc, i, count, walk->why);
        *total += loss * count;
        if (is_last) carry(walk, 0);
        else if (!is_first) add(walk, &own, 0, walk->floats);
        *ret_weight = is_first ? weight : 1.0f;
    }
    return 0;
}

static int sum_node(struct walk *walk, struct lane_node node, bool last, float *scratch, float *to,
                    float *ret_weight)
{
    const struct lane_node left = { node.first, lane_middle(node) };
    const struct lane_node right = { lane_middle(node), node.end };
    struct addition both = { { 1.0f, 1.0f, 1.0f }, scratch, to };
    if (node.end - node.first == 1) return sum_lane(walk, node, last, scratch, to, ret_weight);
    if (interval_empty(samples_of(walk, left)))
        return sum_node(walk, right, last, scratch, to, ret_weight);
    if (interval_empty(samples_of(walk, right)))
        return sum_node(walk, left, last, scratch, to, ret_weight);
    int rc = sum_node(walk, left, false, scratch, to, &both.by.to);
    if (rc < 0) return rc;
    if (last) put_above(walk, both.by, both.from, both.to);
    rc = sum_node(walk, right, last, scratch + walk->floats, scratch, &both.by.from);
    if (rc < 0) return rc;
    if (!last) add(walk, &both, 0, walk->floats);
    *ret_weight = 1.0f;
    return 0;
}

// ---- batch.h

uint32_t batch_node_scratch(uint32_t lanes, uint32_t node_lanes, uint32_t batch_max,
                            uint32_t micro_batch)
{
    ensure(lanes >= 1 && lanes <= LANES_MAX && node_lanes <= lanes && micro_batch >= 1);
    const bool portioned = batch_max == 0 || (batch_max + lanes - 1) / lanes > micro_batch;
    uint32_t depth = 0;
    while (node_lanes > 1u << depth) depth++;
    return depth + portioned;
}

uint32_t batch_lanes_scratch(uint32_t lanes, uint32_t batch_max, uint32_t micro_batch)
{
    return batch_node_scratch(lanes, lanes, batch_max, micro_batch);
}

int batch_gradient_lanes(model_t *model, const float *params, const struct batch_node *batch,
                         pool_t *pool, float *scratch, struct why *why, float *ret_gradient,
                         double *ret_losses)
{
    const struct interval at = lane_samples(batch->lanes, batch->batch, batch->node);
    const uint64_t floats = model_parameter_count(model_shape_of(model));
    struct walk walk = { .model = model,
                         .params = params,
                         .batch = batch,
                         .first = at.begin,
                         .floats = floats,
                         .pool = pool,
                         .why = why,
                         .losses = ret_losses,
                         .carried = floats };
    float weight = 1.0f;
    ensure(!interval_empty(at));
    for (uint32_t i = 0; i < batch->node.end - batch->node.first; i++) ret_losses[i] = 0.0;
    return sum_node(&walk, batch->node, true, scratch, ret_gradient, &weight);
}

double batch_lanes_loss(const double *losses, uint32_t lanes, uint32_t batch)
{
    double total = 0.0;
    for (uint32_t i = 0; i < lanes; i++) total += losses[i];
    return total / (double)batch;
}

int batch_gradient(model_t *model, const float *params, const struct batch *batch, pool_t *pool,
                   float *scratch, struct why *why, float *ret_gradient, double *ret_loss)
{
    const struct batch_node lane = { .tokens = batch->tokens,
                                     .seq = batch->seq,
                                     .micro_batch = batch->micro_batch,
                                     .lanes = 1,
                                     .batch = batch->count,
                                     .node = { 0, 1 } };
    double loss;
    ensure(batch->count >= 1);
    const int rc =
        batch_gradient_lanes(model, params, &lane, pool, scratch, why, ret_gradient, &loss);
    if (rc == 0) *ret_loss = batch_lanes_loss(&loss, 1, batch->count);
    return rc;
}

int batch_loss(model_t *model, const float *params, const struct batch *batch, struct why *why,
               double *ret_loss)
{
    ensure(batch->count >= 1);
    double total = 0.0, loss = 0.0;
    for (uint32_t at = 0; at < batch->count; at += batch->micro_batch) {
        const uint32_t count = portion(batch->count - at, batch->micro_batch);
        const uint32_t *tokens = batch->tokens + (size_t)at * (batch->seq + 1);
        const int rc = model_loss(model, params, tokens, count, batch->seq, why, &loss);
        if (rc < 0) return name_samples(rc, at, count, why);
        total += loss * count;
    }
    *ret_loss = total / (double)batch->count;
    return 0;
}
