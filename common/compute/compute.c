// Finds the device, and stands before both of them: it checks vectors, counts and tokens, so that a
// device gets valid work only, and then calls the device's function.
#include "common/compute/compute.h"
#include "common/base/ensure.h"
#include "common/base/large_pages.h"
#include "common/compute/compute_device.h"
#include "common/kernel/kernels.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
            return why_set(why, FAULT_UNAVAILABLE,
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
    ensure(config->vectors <= COMPUTE_VECTORS_MAX);
    return device->kind == COMPUTE_CUDA ? compute_cuda_new(device->plugin, config, why, ret_compute)
                                        : compute_cpu_new(config, why, ret_compute);
}

void compute_destroy(compute_t **self)
{
    if (*self) (*self)->ops->destroy(*self);
    *self = NULL;
}

const struct compute_config *compute_config(const compute_t *self) { return &self->config; }

// ---- vectors

static void check_vector(const compute_t *self, uint32_t vector)
{
    ensure(vector < COMPUTE_STATE + self->config.vectors);
    ensure(vector != COMPUTE_GRADIENT || self->config.trains);
}

float *compute_host(compute_t *self) { return self->host; }

int compute_push(compute_t *self, struct why *why)
{
    return compute_put(self, COMPUTE_PARAMETERS, self->host, why);
}

int compute_pull(compute_t *self, struct why *why)
{
    return compute_get(self, COMPUTE_PARAMETERS, why, self->host);
}

float *compute_at(compute_t *self, uint32_t vector)
{
    check_vector(self, vector);
    return self->at[vector];
}

int compute_put(compute_t *self, uint32_t vector, const float *from, struct why *why)
{
    check_vector(self, vector);
    return self->ops->put(self, vector, from, why);
}

int compute_get(compute_t *self, uint32_t vector, struct why *why, float *ret_floats)
{
    check_vector(self, vector);
    return self->ops->get(self, vector, why, ret_floats);
}

void compute_lend(compute_t *self, uint32_t vector)
{
    check_vector(self, vector);
    ensure(vector >= COMPUTE_STATE && self->config.lends);
    self->lent = self->at[vector];
}

void compute_release(compute_t *self, uint32_t vector, struct interval part)
{
    check_vector(self, vector);
    float *floats = self->at[vector];
    const uint64_t count =
        vector >= COMPUTE_STATE ? interval_length(self->config.state) : self->floats;
    ensure(part.begin <= part.end && part.end <= count);
    if (!floats) return;
    large_pages_release(floats, part.begin * sizeof *floats);
    large_pages_release(floats + part.end, (count - part.end) * sizeof *floats);
}

int compute_leaves(compute_t *self, uint32_t vector, struct why *why, struct hash *ret_leaves)
{
    check_vector(self, vector);
    return self->ops->leaves(self, vector, why, ret_leaves);
}

// ---- the gradient

// `first` is the sample of the batch that the tokens begin with.
static int check_tokens(const compute_t *self, const uint32_t *tokens, uint32_t count,
                        uint64_t first, struct why *why)
{
    ensure(self->config.trains && !self->config.serves && count >= 1);
    const size_t row = (size_t)self->config.seq + 1;
    for (size_t i = 0; i < count * row; i++)
        if (tokens[i] >= self->config.shape.vocab)
            return why_set(why, FAULT_RANGE,
                           "token %" PRIu32 " at position %zu of sample %" PRIu64
                           " of the batch, allowed"
                           " 0..%" PRIu32 "; nothing is computed",
                           tokens[i], i % row, first + i / row, self->config.shape.vocab - 1);
    return 0;
}

static int gradient(compute_t *self, const float *params, const uint32_t *tokens, uint32_t count,
                    struct why *why, double *ret_loss)
{
    const uint32_t most = self->config.batch_max;
    ensure(most == 0 || count <= most);
    const int rc = check_tokens(self, tokens, count, 0, why);
    return rc < 0 ? rc : self->ops->gradient(self, params, tokens, count, why, ret_loss);
}

int compute_gradient(compute_t *self, const uint32_t *tokens, uint32_t count, struct why *why,
                     double *ret_loss)
{
    return gradient(self, NULL, tokens, count, why, ret_loss);
}

void compute_between(compute_t *self, void (*between)(void *arg), void *arg)
{
    self->between = between;
    self->between_arg = arg;
}

int compute_gradient_at(compute_t *self, const float *params, const uint32_t *tokens,
                        uint32_t count, struct why *why, double *ret_loss)
{
    ensure(params);
    return gradient(self, params, tokens, count, why, ret_loss);
}

int compute_gradient_lanes(compute_t *self, const struct compute_lanes *lanes, struct why *why,
                           double *ret_losses)
{
    const struct interval at = lane_samples(self->config.lanes, lanes->batch, lanes->node);
    const uint32_t most = self->config.batch_max;
    ensure(most == 0 || lanes->batch <= most);
    const int rc = check_tokens(self, lanes->tokens, (uint32_t)interval_length(at), at.begin, why);
    return rc < 0 ? rc : self->ops->gradient_lanes(self, lanes, why, ret_losses);
}

int compute_loss(compute_t *self, const uint32_t *tokens, uint32_t count, struct why *why,
                 double *ret_loss)
{
    const int rc = check_tokens(self, tokens, count, 0, why);
    return rc < 0 ? rc : self->ops->loss(self, tokens, count, why, ret_loss);
}

int compute_clip(compute_t *self, double limit, struct why *why, double *ret_norm)
{
    ensure(self->config.trains && limit > 0.0);
    return self->ops->clip(self, limit, why, ret_norm);
}

const struct compute_far *compute_far(const compute_t *self)
{
    return self->far.plugin ? &self->far : NULL;
}
