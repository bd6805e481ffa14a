// The CPU behind compute.h: vectors are plain memory, and each call goes to model.h, batch.h or
// gradient.h. Large vectors ask for large pages; a refusal costs speed only.
#include "common/base/large_pages.h"
#include "common/compute/compute_device.h"
#include "common/kernel/digest.h"
#include "common/kernel/gradient.h"
#include "common/model/batch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct cpu {
    struct compute base; // Its host vector is the parameters themselves
    model_t *model;
    float *scratch; // Vectors for parts of a sum: scratch_count of them
};

static struct cpu *cpu_of(compute_t *self) { return (struct cpu *)(void *)self; }

static struct model_options model_options_of(const struct compute_config *config)
{
    return (struct model_options){ config->micro_batch, config->seq, config->precision,
                                   config->recompute };
}

static uint32_t node_lanes(const struct compute_config *config)
{
    return config->node_lanes ? config->node_lanes : config->lanes;
}

// For the gradient of one micro-batch, if a batch may have several; and for a tree of lanes. With
// lanes alone compute_gradient still works, as the first vector of theirs is such a one.
static uint32_t scratch_count(const struct compute_config *config)
{
    const uint32_t portions = config->batch_max == 0 || config->batch_max > config->micro_batch;
    const uint32_t lanes = config->lanes
                               ? batch_node_scratch(config->lanes, node_lanes(config),
                                                    config->batch_max, config->micro_batch)
                               : 0;
    const uint32_t most = lanes > portions ? lanes : portions;
    if (!config->trains || config->serves) return 0;
    return most == 1 && config->lends ? 0 : most; // One can be lent
}

// For a gradient: vectors of its own, or the one that is lent.
static float *scratch_of(const struct cpu *self)
{
    return self->scratch ? self->scratch : self->base.lent;
}

struct compute_memory compute_cpu_memory(const struct compute_config *config)
{
    const uint64_t vector = model_parameter_count(&config->shape) * sizeof(float);
    const struct model_options options = model_options_of(config);
    struct compute_memory memory = { .host = vector };
    memory.host += config->vectors * interval_length(config->state) * sizeof(float);
    if (!config->trains) return memory;
    memory.host += (1 + scratch_count(config)) * vector;
    if (config->serves) return memory;
    memory.host += model_memory_bytes(&config->shape, &options, pool_threads(config->pool));
    return memory;
}

static void destroy(compute_t *base)
{
    struct cpu *self = cpu_of(base);
    model_destroy(&self->model);
    for (size_t i = 0; i < sizeof base->at / sizeof *base->at; i++) free(base->at[i]);
    free(self->scratch);
    free(self);
}

// Vectors that are filled soon are touched now: a step does not wait for their pages.
static void zero(const compute_t *base, float *to, size_t bytes)
{
    if (base->config.sparse) large_pages_zero(to, bytes);
    else memset(to, 0, bytes);
}

static int put(compute_t *base, uint32_t vector, const float *from, struct why *why)
{
    (void)why; // Cannot fail here, nor can get
    float *to = base->at[vector];
    const size_t bytes = compute_floats(base, vector) * sizeof *to;
    if (!from) zero(base, to, bytes);
    else if (from != to) memcpy(to, from, bytes);
    return 0;
}

static int get(compute_t *base, uint32_t vector, struct why *why, float *ret_floats)
{
    (void)why;
    const float *from = base->at[vector];
    if (from != ret_floats) memcpy(ret_floats, from, compute_floats(base, vector) * sizeof *from);
    return 0;
}

static int leaves(compute_t *base, uint32_t vector, struct why *why, struct hash *ret_leaves)
{
    (void)why; // Cannot fail here
    digest_leaves(base->at[vector], compute_floats(base, vector), base->config.pool, ret_leaves);
    return 0;
}

static int gradient(compute_t *base, const float *params, const uint32_t *tokens, uint32_t count,
                    struct why *why, double *ret_loss)
{
    struct cpu *self = cpu_of(base);
    const struct compute_config *config = &base->config;
    // One lane, as batch_gradient has it
    const struct batch_node batch = { .tokens = tokens,
                                      .seq = config->seq,
                                      .micro_batch = config->micro_batch,
                                      .lanes = 1,
                                      .batch = count,
                                      .node = { 0, 1 },
                                      .between = base->between,
                                      .between_arg = base->between_arg };
    double sum;
    const int rc =
        batch_gradient_lanes(self->model, params ? params : base->host, &batch, config->pool,
                             scratch_of(self), why, base->at[COMPUTE_GRADIENT], &sum);
    if (rc == 0) *ret_loss = batch_lanes_loss(&sum, 1, count);
    return rc;
}

static int gradient_lanes(compute_t *base, const struct compute_lanes *lanes, struct why *why,
                          double *ret_losses)
{
    struct cpu *self = cpu_of(base);
    const struct compute_config *config = &base->config;
    const struct batch_node batch = { .tokens = lanes->tokens,
                                      .seq = config->seq,
                                      .micro_batch = config->micro_batch,
                                      .lanes = config->lanes,
                                      .batch = lanes->batch,
                                      .node = lanes->node,
                                      .final = lanes->final,
                                      .final_arg = lanes->final_arg };
    return batch_gradient_lanes(self->model, base->host, &batch, config->pool, scratch_of(self),
                                why, lanes->sum ? lanes->sum : base->at[COMPUTE_GRADIENT],
                                ret_losses);
}

static int loss(compute_t *base, const uint32_t *tokens, uint32_t count, struct why *why,
                double *ret_loss)
{
    const struct batch batch = { tokens, count, base->config.seq, base->config.micro_batch };
    return batch_loss(cpu_of(base)->model, base->host, &batch, why, ret_loss);
}

static int clip(compute_t *base, double limit, struct why *why, double *ret_norm)
{
    return gradient_clip(base->config.pool, base->at[COMPUTE_GRADIENT], base->floats, limit, why,
                         ret_norm);
}

static const struct compute_ops ops = {
    .destroy = destroy,
    .put = put,
    .get = get,
    .leaves = leaves,
    .gradient = gradient,
    .gradient_lanes = gradient_lanes,
    .loss = loss,
    .clip = clip,
};

// In large pages where the system has them, since a step walks through all of it.
static float *vector_new(uint64_t floats) { return large_pages_new(floats * sizeof(float)); }

static bool take_vectors(struct cpu *self)
{
    struct compute *base = &self->base;
    const struct compute_config *config = &base->config;
    const uint32_t scratch = scratch_count(config);
    base->host = base->at[COMPUTE_PARAMETERS] = vector_new(base->floats);
    if (config->trains) base->at[COMPUTE_GRADIENT] = vector_new(base->floats);
    if (scratch) self->scratch = vector_new(scratch * base->floats);
    bool all = base->host && (base->at[COMPUTE_GRADIENT] || !config->trains);
    for (uint32_t i = 0; i < config->vectors; i++) {
        const uint64_t floats = interval_length(config->state);
        float *state = base->at[COMPUTE_STATE + i] = vector_new(floats);
        if (state) zero(base, state, floats * sizeof *state);
        all = all && state;
    }
    return all && (self->scratch || !scratch);
}

static int take_memory(struct cpu *self, struct why *why)
{
    const struct compute_config *config = &self->base.config;
    if (!take_vectors(self))
        return why_set(why, FAULT_MEMORY,
                       "the model needs %" PRIu64 " MiB more than there is; a smaller micro-batch"
                       " takes less",
                       compute_cpu_memory(config).host >> 20);
    const struct model_options options = model_options_of(config);
    return config->trains && !config->serves
               ? model_new(&config->shape, &options, config->pool, why, &self->model)
               : 0;
}

int compute_cpu_new(const struct compute_config *config, struct why *why, compute_t **ret_compute)
{
    struct cpu *self = calloc(1, sizeof *self);
    if (!self) return why_set(why, FAULT_MEMORY, "a replica");
    self->base = (struct compute){ .ops = &ops,
                                   .config = *config,
                                   .floats = model_parameter_count(&config->shape) };
    const int rc = take_memory(self, why);
    if (rc < 0) destroy(&self->base);
    else *ret_compute = &self->base;
    return rc;
}
