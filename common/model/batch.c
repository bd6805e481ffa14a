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
#include "common/model/batch.h"
#include "common/base/ensure.h"
#include "common/kernel/kernels.h"

#include <inttypes.h>

enum { TASKS = 16, GRAIN = 16 };

// The walk through the tree: all that stays the same at each of its nodes.
struct walk {
    model_t *model;
    const float *params;
    const struct batch_node *batch;
    uint64_t first, floats; // The sample that the tokens begin with; N
    pool_t *pool;
    struct why *why;
    double *losses; // Of the lanes of the whole node
};

// ---- sums of vectors

struct add_job {
    uint64_t count;
    struct kernels_weights by;
    const float *from; // NULL: only multiplies by by.to
    float *to;
};

static void add_task(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    const struct add_job *job = arg;
    const struct pool_share share = pool_share_of(job->count, GRAIN, TASKS, task);
    const uint64_t count = share.end - share.first;
    if (!job->from) kernels_chosen()->scale(count, job->by.to, job->to + share.first);
    else
        kernels_chosen()->add_weighed(count, &job->by, job->from + share.first,
                                      job->to + share.first);
}

static void add(const struct walk *walk, struct kernels_weights by, const float *from, float *to)
{
    struct add_job job = { walk->floats, by, from, to };
    pool_run(walk->pool, TASKS, add_task, &job);
}

// ---- the tree

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

// The lane's sum is *ret_weight times what is in `to`.
static int sum_lane(const struct walk *walk, struct lane_node lane, float *scratch, float *to,
                    float *ret_weight)
{
    const struct batch_node *all = walk->batch;
    const struct interval at = samples_of(walk, lane);
    double *total = &walk->losses[lane.first - all->node.first], loss = 0.0;
    for (uint64_t i = at.begin; i < at.end; i += all->micro_batch) {
        const uint32_t count = portion(at.end - i, all->micro_batch);
        const uint32_t *tokens = all->tokens + (i - walk->first) * (all->seq + 1);
        const float weight = (float)count / (float)all->batch;
        float *into = i == at.begin ? to : scratch;
        ensure(into);
        const int rc = model_loss_and_grad(walk->model, walk->params, tokens, count, all->seq,
                                           walk->why, into, &loss);
        if (rc < 0) return name_samples(rc, i, count, walk->why);
        *total += loss * count;
        if (into == scratch)
            add(walk, (struct kernels_weights){ weight, 1.0f, *ret_weight }, scratch, to);
        *ret_weight = into == to ? weight : 1.0f;
    }
    return 0;
}

static int sum_node(const struct walk *walk, struct lane_node node, float *scratch, float *to,
                    float *ret_weight)
{
    const struct lane_node left = { node.first, lane_middle(node) };
    const struct lane_node right = { lane_middle(node), node.end };
    float weight;
    if (node.end - node.first == 1) return sum_lane(walk, node, scratch, to, ret_weight);
    if (interval_empty(samples_of(walk, left)))
        return sum_node(walk, right, scratch, to, ret_weight);
    int rc = sum_node(walk, left, scratch, to, ret_weight);
    if (rc < 0 || interval_empty(samples_of(walk, right))) return rc;
    rc = sum_node(walk, right, scratch + walk->floats, scratch, &weight);
    if (rc < 0) return rc;
    add(walk, (struct kernels_weights){ 1.0f, weight, *ret_weight }, scratch, to);
    *ret_weight = 1.0f;
    return 0;
}

// ---- batch.h

uint32_t batch_lanes_scratch(uint32_t lanes, uint32_t batch_max, uint32_t micro_batch)
{
    ensure(lanes >= 1 && lanes <= LANES_MAX && micro_batch >= 1);
    const bool portioned = batch_max == 0 || (batch_max + lanes - 1) / lanes > micro_batch;
    uint32_t depth = 0;
    while (lanes > 1u << depth) depth++;
    return depth + portioned;
}

int batch_gradient_lanes(model_t *model, const float *params, const struct batch_node *batch,
                         pool_t *pool, float *scratch, struct why *why, float *ret_gradient,
                         double *ret_losses)
{
    const struct interval at = lane_samples(batch->lanes, batch->batch, batch->node);
    const uint64_t floats = model_parameter_count(model_shape_of(model));
    const struct walk walk = { model, params, batch, at.begin, floats, pool, why, ret_losses };
    float weight = 1.0f;
    ensure(!interval_empty(at));
    for (uint32_t i = 0; i < batch->node.end - batch->node.first; i++) ret_losses[i] = 0.0;
    const int rc = sum_node(&walk, batch->node, scratch, ret_gradient, &weight);
    if (rc == 0 && weight != 1.0f)
        add(&walk, (struct kernels_weights){ .to = weight }, NULL, ret_gradient);
    return rc;
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
    const struct batch_node lane = { batch->tokens, batch->seq, batch->micro_batch, 1,
                                     batch->count,  { 0, 1 } };
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
