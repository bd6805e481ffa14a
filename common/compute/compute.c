#include "common/compute/compute.h"
#include "common/base/ensure.h"
#include "common/compute/compute_device.h"
#include "common/kernel/kernels.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int compute_find(const char *name, struct why *why, struct compute_device *ret_device)
{
    const bool is_auto = strcmp(name, "auto") == 0, is_cuda = strcmp(name, "cuda") == 0;
    if (!is_auto && !is_cuda && strcmp(name, "cpu") != 0)
        return why_set(why, FAULT_USAGE, "device \"%s\", allowed auto, cpu and cuda", name);
    struct why missing = { 0 };
    *ret_device = (struct compute_device){ .kind = COMPUTE_CPU };
    if (is_auto || is_cuda) {
        bool there = false;
        const int rc = compute_cuda_find(&missing, ret_device, &there);
        if (rc < 0) return why_set(why, rc, "%s", missing.text);
        if (there) return 0;
        if (is_cuda)
            return why_set(why, FAULT_UNREACHABLE,
                           "device cuda was asked for: %s; --device cpu or auto goes on without",
                           missing.text);
    }
    snprintf(ret_device->text, sizeof ret_device->text, "CPU (%s kernels)%s%.400s",
             kernels_chosen()->name, is_auto ? ", no GPU: " : "", missing.text);
    return 0;
}

struct compute_memory compute_memory(const struct compute_device *device,
                                     const struct compute_config *config)
{
    return device->kind == COMPUTE_CUDA ? compute_cuda_memory(device->plugin, config)
                                        : compute_cpu_memory(config);
}

int compute_new(const struct compute_device *device, const struct compute_config *config,
                struct why *why, compute_t **ret_compute)
{
    return device->kind == COMPUTE_CUDA ? compute_cuda_new(device->plugin, config, why, ret_compute)
                                        : compute_cpu_new(config, why, ret_compute);
}

void compute_destroy(compute_t **self)
{
    if (*self) (*self)->ops->destroy(*self);
    *self = NULL;
}

float *compute_host(compute_t *self) { return self->host; }

int compute_push(compute_t *self, struct why *why)
{
    self->candidate = self->adopted = false;
    if (self->adamw) adamw_reset(self->adamw);
    return self->ops->push(self, why);
}

int compute_pull(compute_t *self, struct why *why) { return self->ops->pull(self, why); }

int compute_leaves(compute_t *self, struct why *why, struct hash *ret_leaves)
{
    return self->ops->leaves(self, why, ret_leaves);
}

static int check_tokens(const compute_t *self, const uint32_t *tokens, uint32_t count,
                        struct why *why)
{
    ensure(self->config.trains && count >= 1);
    const size_t row = (size_t)self->config.seq + 1;
    for (size_t i = 0; i < count * row; i++)
        if (tokens[i] >= self->config.shape.vocab)
            return why_set(why, FAULT_RANGE,
                           "token %" PRIu32 " at position %zu of sample %zu of the batch, allowed"
                           " 0..%" PRIu32 "; nothing is computed",
                           tokens[i], i % row, i / row, self->config.shape.vocab - 1);
    return 0;
}

int compute_gradient(compute_t *self, const uint32_t *tokens, uint32_t count, struct why *why,
                     double *ret_loss)
{
    const uint32_t most = self->config.batch_max;
    ensure(most == 0 || count <= most);
    const int rc = check_tokens(self, tokens, count, why);
    return rc < 0 ? rc : self->ops->gradient(self, tokens, count, why, ret_loss);
}

int compute_loss(compute_t *self, const uint32_t *tokens, uint32_t count, struct why *why,
                 double *ret_loss)
{
    const int rc = check_tokens(self, tokens, count, why);
    return rc < 0 ? rc : self->ops->loss(self, tokens, count, why, ret_loss);
}

int compute_clip(compute_t *self, double limit, struct why *why, double *ret_norm)
{
    ensure(self->config.trains && limit > 0.0);
    return self->ops->clip(self, limit, why, ret_norm);
}

int compute_compress(compute_t *self, float rate, struct why *why, uint8_t *ret_payload)
{
    ensure(self->config.trains && self->config.form && rate >= 0.0f);
    compute_discard(self);
    const int rc = self->ops->compress(self, rate, why, ret_payload);
    self->candidate = rc == 0;
    return rc;
}

bool compute_has_candidate(const compute_t *self) { return self->candidate; }

void compute_adopt(compute_t *self)
{
    ensure(self->candidate);
    self->candidate = false;
    self->adopted = true;
    self->ops->adopt(self);
}

void compute_discard(compute_t *self)
{
    if (self->candidate) self->ops->discard(self);
    self->candidate = false;
}

int compute_residual_hashes(compute_t *self, struct why *why, struct hash *ret_from,
                            struct hash *ret_to)
{
    ensure(self->candidate);
    const int rc = self->ops->residual_hashes(self, why, ret_from, ret_to);
    if (rc == 0 && !self->adopted) *ret_from = (struct hash){ { 0 } };
    return rc;
}

const float *compute_residual_of(compute_t *self, const struct hash *digest)
{
    return self->ops->residual_of ? self->ops->residual_of(self, digest) : NULL;
}

int compute_again(compute_t *self, const struct compute_work *work, struct why *why,
                  uint8_t *ret_payload, struct hash *ret_to)
{
    if (!self->ops->again)
        return why_set(why, FAULT_UNSUPPORTED, "a GPU does not compute a CPU's bits again");
    const int rc = check_tokens(self, work->tokens, work->count, why);
    return rc < 0 ? rc : self->ops->again(self, work, why, ret_payload, ret_to);
}

int compute_apply(compute_t *self, const struct apply_result *results, uint32_t count,
                  const struct apply_step *step, struct why *why)
{
    ensure(self->config.form);
    return self->ops->apply(self, results, count, step, why);
}

int compute_adamw(compute_t *self, float rate, struct why *why)
{
    ensure(self->adamw && rate >= 0.0f);
    return self->ops->adamw(self, rate, why);
}

// ---- the optimizer's state

int compute_pull_state(compute_t *self, struct tags *tags, struct why *why,
                       void *ret_values[COMPUTE_ITEMS])
{
    ensure(self->config.trains && (self->adamw || self->config.form));
    const int rc = self->ops->pull_state(self, why);
    if (rc < 0) return rc;
    if (self->adamw) return adamw_add_state(self->adamw, tags, why, ret_values);
    ret_values[0] = self->residual;
    return tags_add(tags, "distro-residual", TAG_DROP, self->floats, sizeof(float), why);
}

int compute_push_state(compute_t *self, struct why *why)
{
    compute_discard(self);
    const int rc = self->adamw ? adamw_loaded(self->adamw, why) : 0;
    if (rc == 0) self->adopted = true; // No more the declared zero
    return rc < 0 ? rc : self->ops->push_state(self, why);
}
