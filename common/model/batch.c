// One portion after the other: its gradient goes to the scratch, and is added with the portion's
// share of the batch as weight. The first portion is computed in place. If it is the whole batch
// nothing is scaled, so the bits are those of model_loss_and_grad.
//
// A tree of lanes is walked from left to right. A node's left half is computed where the node goes,
// its right half in the first free vector of the scratch, with those behind it free in turn; then
// the right half is added to the left one. So the scratch is as deep as the tree.
#include "common/model/batch.h"
#include "common/base/ensure.h"
#include "common/kernel/kernels.h"

#include <inttypes.h>

enum { TASKS = 16, GRAIN = 16 };

// to = weight · from, or += it.
struct add_job {
    float weight;
    bool first;
    uint64_t count;
    const float *from;
    float *to;
};

static void add_task(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    const struct add_job *job = arg;
    const struct pool_share share = pool_share_of(job->count, GRAIN, TASKS, task);
    const uint64_t count = share.end - share.first;
    if (job->first) kernels_chosen()->scale(count, job->weight, job->to + share.first);
    else
        kernels_chosen()->add_scaled(count, job->weight, job->from + share.first,
                                     job->to + share.first);
}

static uint64_t floats_of(const model_t *model)
{
    return model_parameter_count(model_shape_of(model));
}

static int name_samples(int rc, uint64_t first, uint32_t count, struct why *why)
{
    return why_wrap(why, rc, "samples %" PRIu64 "..%" PRIu64 " of the batch", first,
                    first + count - 1);
}

static uint32_t portion(const struct batch *batch, uint32_t at)
{
    return batch->count - at < batch->micro_batch ? batch->count - at : batch->micro_batch;
}

static const uint32_t *tokens_at(const struct batch *batch, uint32_t at)
{
    return batch->tokens + (size_t)at * (batch->seq + 1);
}

// What a sum of portions is a part of: `whole` samples, its own from `first` on.
struct part {
    uint32_t whole;
    uint64_t first;
};

// The weighted sum over the portions of `batch`, and the sum of its samples' losses.
static int sum_portions(model_t *model, const float *params, const struct batch *batch,
                        struct part part, pool_t *pool, float *scratch, struct why *why,
                        float *ret_gradient, double *ret_sum)
{
    ensure(batch->count >= 1 && (scratch || batch->count <= batch->micro_batch));
    double total = 0.0, loss = 0.0;
    for (uint32_t at = 0; at < batch->count; at += batch->micro_batch) {
        const uint32_t count = portion(batch, at);
        float *to = at == 0 ? ret_gradient : scratch;
        const int rc = model_loss_and_grad(model, params, tokens_at(batch, at), count, batch->seq,
                                           why, to, &loss);
        if (rc < 0) return name_samples(rc, part.first + at, count, why);
        total += loss * count;
        struct add_job job = { (float)count / (float)part.whole, at == 0, floats_of(model), scratch,
                               ret_gradient };
        if (count < part.whole) pool_run(pool, TASKS, add_task, &job);
    }
    *ret_sum = total;
    return 0;
}

int batch_gradient(model_t *model, const float *params, const struct batch *batch, pool_t *pool,
                   float *scratch, struct why *why, float *ret_gradient, double *ret_loss)
{
    double total;
    const int rc = sum_portions(model, params, batch, (struct part){ batch->count, 0 }, pool,
                                scratch, why, ret_gradient, &total);
    if (rc == 0) *ret_loss = total / (double)batch->count;
    return rc;
}

int batch_loss(model_t *model, const float *params, const struct batch *batch, struct why *why,
               double *ret_loss)
{
    ensure(batch->count >= 1);
    double total = 0.0, loss = 0.0;
    for (uint32_t at = 0; at < batch->count; at += batch->micro_batch) {
        const uint32_t count = portion(batch, at);
        const int rc =
            model_loss(model, params, tokens_at(batch, at), count, batch->seq, why, &loss);
        if (rc < 0) return name_samples(rc, at, count, why);
        total += loss * count;
    }
    *ret_loss = total / (double)batch->count;
    return 0;
}

// ---- by lanes -----------------------------------------------------------------------------------

uint32_t batch_lanes_scratch(uint32_t lanes, uint32_t batch_max, uint32_t micro_batch)
{
    ensure(lanes >= 1 && lanes <= LANES_MAX && micro_batch >= 1);
    const bool portioned = batch_max == 0 || (batch_max + lanes - 1) / lanes > micro_batch;
    uint32_t depth = 0;
    while (lanes > 1u << depth) depth++;
    return depth + portioned;
}

// The walk through the tree, of which all but `node` and `to` stay the same.
struct walk {
    model_t *model;
    const float *params;
    const struct batch_node *batch;
    uint64_t first; // Sample of the step that the tokens begin with
    pool_t *pool;
    struct why *why;
    double *losses;
};

static bool is_empty(const struct walk *walk, struct lane_node node)
{
    return interval_empty(lane_samples(walk->batch->lanes, walk->batch->batch, node));
}

static int sum_lane(const struct walk *walk, struct lane_node node, float *scratch, float *to)
{
    const struct batch_node *all = walk->batch;
    const struct interval at = lane_samples(all->lanes, all->batch, node);
    const struct batch lane = { all->tokens + (at.begin - walk->first) * (all->seq + 1),
                                (uint32_t)interval_length(at), all->seq, all->micro_batch };
    return sum_portions(walk->model, walk->params, &lane, (struct part){ all->batch, at.begin },
                        walk->pool, scratch, walk->why, to,
                        &walk->losses[node.first - all->node.first]);
}

static void accumulate_task(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    const struct add_job *job = arg;
    const struct pool_share share = pool_share_of(job->count, GRAIN, TASKS, task);
    kernels_chosen()->accumulate(share.end - share.first, job->from + share.first,
                                 job->to + share.first);
}

static int sum_node(const struct walk *walk, struct lane_node node, float *scratch, float *to)
{
    const struct lane_node left = { node.first, lane_middle(node) };
    const struct lane_node right = { lane_middle(node), node.end };
    if (node.end - node.first == 1) return sum_lane(walk, node, scratch, to);
    if (is_empty(walk, left)) return sum_node(walk, right, scratch, to);
    int rc = sum_node(walk, left, scratch, to);
    if (rc < 0 || is_empty(walk, right)) return rc;
    const uint64_t floats = floats_of(walk->model);
    rc = sum_node(walk, right, scratch + floats, scratch);
    if (rc < 0) return rc;
    struct add_job job = { .count = floats, .from = scratch, .to = to };
    pool_run(walk->pool, TASKS, accumulate_task, &job);
    return 0;
}

int batch_gradient_lanes(model_t *model, const float *params, const struct batch_node *batch,
                         pool_t *pool, float *scratch, struct why *why, float *ret_gradient,
                         double *ret_losses)
{
    const struct interval at = lane_samples(batch->lanes, batch->batch, batch->node);
    const struct walk walk = { model, params, batch, at.begin, pool, why, ret_losses };
    ensure(!interval_empty(at));
    for (uint32_t i = 0; i < batch->node.end - batch->node.first; i++) ret_losses[i] = 0.0;
    return sum_node(&walk, batch->node, scratch, ret_gradient);
}

double batch_lanes_loss(const double *losses, uint32_t lanes, uint32_t batch)
{
    double total = 0.0;
    for (uint32_t i = 0; i < lanes; i++) total += losses[i];
    return total / (double)batch;
}
