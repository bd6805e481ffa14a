// The CPU behind compute.h: the modules of this folder, each called by its name.
#include "common/base/ensure.h"
#include "common/compute/compute_device.h"
#include "common/crypto/merkle.h"
#include "common/model/batch.h"
#include "common/optimizer/distro.h"
#include "common/optimizer/gradient.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct cpu {
    struct compute base; // Its host vector is the parameters themselves
    model_t *model;
    distro_t *distro;
    float *gradient; // Of the batch; its room is pull_state's as well
    float *portion;  // Of one micro-batch, if a batch may have several
};

static struct cpu *cpu_of(compute_t *self) { return (struct cpu *)(void *)self; }

static struct model_options model_options_of(const struct compute_config *config)
{
    return (struct model_options){ config->micro_batch, config->seq,
                                   config->float32 ? GEMM_FLOAT32 : GEMM_BF16, config->recompute };
}

static bool is_portioned(const struct compute_config *config)
{
    return config->batch_max == 0 || config->batch_max > config->micro_batch;
}

struct compute_memory compute_cpu_memory(const struct compute_config *config)
{
    const uint64_t floats = model_parameter_count(&config->shape);
    const uint64_t vector = floats * sizeof(float);
    const struct model_options options = model_options_of(config);
    struct compute_memory memory = { .host = vector };
    if (!config->trains) return memory;
    memory.host += (is_portioned(config) ? 2 : 1) * vector;
    memory.host += model_memory_bytes(&config->shape, &options, pool_threads(config->pool));
    if (config->form) memory.host += 2 * vector;
    if (config->adamw) memory.host += adamw_memory_bytes(floats);
    return memory;
}

static void destroy(compute_t *base)
{
    struct cpu *self = cpu_of(base);
    adamw_destroy(&self->base.adamw);
    distro_destroy(&self->distro);
    model_destroy(&self->model);
    free(self->base.host);
    free(self->gradient);
    free(self->portion);
    free(self);
}

static int push(compute_t *base, struct why *why)
{
    struct cpu *self = cpu_of(base);
    return self->distro ? distro_set_residual(self->distro, NULL, why) : 0;
}

static int pull(compute_t *base, struct why *why)
{
    (void)base, (void)why; // There already
    return 0;
}

struct leaves_job {
    const struct compute *base;
    struct hash *leaves;
};

static void fill_leaf(void *arg, uint32_t task, uint32_t worker)
{
    (void)worker;
    const struct leaves_job *job = arg;
    digest_fill_leaves(job->base->host, job->base->floats, task, 1, job->leaves + task);
}

static int leaves(compute_t *base, struct why *why, struct hash *ret_leaves)
{
    (void)why; // Cannot fail here
    struct leaves_job job = { base, ret_leaves };
    pool_run(base->config.pool, (uint32_t)digest_leaf_count(base->floats), fill_leaf, &job);
    return 0;
}

static int gradient_on(struct cpu *self, const float *params, const uint32_t *tokens,
                       uint32_t count, struct why *why, double *ret_loss)
{
    const struct compute_config *config = &self->base.config;
    const struct batch batch = { tokens, count, config->seq, config->micro_batch };
    return batch_gradient(self->model, params, &batch, config->pool, self->portion, why,
                          self->gradient, ret_loss);
}

static int gradient(compute_t *base, const uint32_t *tokens, uint32_t count, struct why *why,
                    double *ret_loss)
{
    return gradient_on(cpu_of(base), base->host, tokens, count, why, ret_loss);
}

static int loss(compute_t *base, const uint32_t *tokens, uint32_t count, struct why *why,
                double *ret_loss)
{
    const struct batch batch = { tokens, count, base->config.seq, base->config.micro_batch };
    return batch_loss(cpu_of(base)->model, base->host, &batch, why, ret_loss);
}

static int clip(compute_t *base, double limit, struct why *why, double *ret_norm)
{
    return gradient_clip(base->config.pool, cpu_of(base)->gradient, base->floats, limit, why,
                         ret_norm);
}

static int compress(compute_t *base, float rate, struct why *why, uint8_t *ret_payload)
{
    struct cpu *self = cpu_of(base);
    return distro_compress(self->distro, self->gradient, rate, ret_payload, why);
}

static void adopt(compute_t *base) { distro_adopt(cpu_of(base)->distro); }
static void discard(compute_t *base) { distro_discard(cpu_of(base)->distro); }

static int residual_hashes(compute_t *base, struct why *why, struct hash *ret_from,
                           struct hash *ret_to)
{
    (void)why; // Cannot fail here
    *ret_from = distro_residual_hash(cpu_of(base)->distro);
    *ret_to = distro_candidate_hash(cpu_of(base)->distro);
    return 0;
}

static const float *residual_of(compute_t *base, const struct hash *digest)
{
    struct cpu *self = cpu_of(base);
    return self->distro ? distro_residual_of(self->distro, digest) : NULL;
}

// A residual of its own, so that this replica's is left as it is; it takes two vectors for as long.
static int again(compute_t *base, const struct compute_work *work, struct why *why,
                 uint8_t *ret_payload, struct hash *ret_to)
{
    struct cpu *self = cpu_of(base);
    const struct compute_config *config = &base->config;
    distro_t *distro = NULL;
    double loss, norm;
    int rc = gradient_on(self, work->params, work->tokens, work->count, why, &loss);
    if (rc == 0 && work->clip > 0.0)
        rc = gradient_clip(config->pool, self->gradient, base->floats, work->clip, why, &norm);
    if (rc == 0) rc = distro_new(config->form, config->decay, config->pool, why, &distro);
    if (rc == 0) rc = distro_set_residual(distro, work->residual, why);
    if (rc == 0) rc = distro_compress(distro, self->gradient, work->rate, ret_payload, why);
    if (rc == 0) *ret_to = distro_candidate_hash(distro);
    distro_destroy(&distro);
    return rc;
}

static int apply(compute_t *base, const struct apply_result *results, uint32_t count,
                 const struct apply_step *step, struct why *why)
{
    return apply_commit(base->config.form, results, count, step, base->config.pool, base->host,
                        why);
}

static int adamw(compute_t *base, float rate, struct why *why)
{
    (void)why; // Cannot fail here
    adamw_step(base->adamw, cpu_of(base)->gradient, rate, base->host);
    return 0;
}

static int pull_state(compute_t *base, struct why *why)
{
    (void)why; // Likewise
    if (!base->adamw)
        memcpy(base->residual, distro_residual(cpu_of(base)->distro), base->floats * sizeof(float));
    return 0;
}

static int push_state(compute_t *base, struct why *why)
{
    return base->adamw ? 0 : distro_set_residual(cpu_of(base)->distro, base->residual, why);
}

static const struct compute_ops ops = {
    .destroy = destroy,
    .push = push,
    .pull = pull,
    .leaves = leaves,
    .gradient = gradient,
    .loss = loss,
    .clip = clip,
    .compress = compress,
    .adopt = adopt,
    .discard = discard,
    .residual_hashes = residual_hashes,
    .residual_of = residual_of,
    .again = again,
    .apply = apply,
    .adamw = adamw,
    .pull_state = pull_state,
    .push_state = push_state,
};

static float *vector_new(uint64_t floats)
{
    return aligned_alloc(64, (floats * sizeof(float) + 63) / 64 * 64);
}

static int take_memory(struct cpu *self, struct why *why)
{
    const struct compute_config *config = &self->base.config;
    self->base.host = vector_new(self->base.floats);
    if (config->trains) self->gradient = self->base.residual = vector_new(self->base.floats);
    const bool portioned = config->trains && is_portioned(config);
    if (portioned) self->portion = vector_new(self->base.floats);
    if (!self->base.host || (config->trains && !self->gradient) || (portioned && !self->portion))
        return why_set(why, FAULT_MEMORY,
                       "the model needs %" PRIu64 " MiB more than there is; a smaller micro-batch"
                       " takes less",
                       compute_cpu_memory(config).host >> 20);
    if (!config->trains) return 0;
    const struct model_options options = model_options_of(config);
    int rc = model_new(&config->shape, &options, config->pool, why, &self->model);
    if (rc == 0 && config->form)
        rc = distro_new(config->form, config->decay, config->pool, why, &self->distro);
    if (rc == 0 && config->adamw)
        rc = adamw_new(config->layout, config->adamw, config->pool, why, &self->base.adamw);
    return rc;
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
