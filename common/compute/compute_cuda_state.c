// AdamW on the device, and what an optimizer remembers there, to be saved and loaded on the host.
#include "common/compute/compute_cuda.h"
#include "common/optimizer/distro.h"

#include <inttypes.h>
#include <stdlib.h>

uint32_t cuda_list_bare(const struct layout *layout, uint64_t *ret_bare)
{
    uint32_t count = 0;
    for (size_t i = 0; i < layout->count; i++) {
        const struct interval interval = layout_interval(&layout->tensors[i]);
        if (layout->tensors[i].dims == 2) continue;
        if (ret_bare) ret_bare[2 * count] = interval.begin, ret_bare[2 * count + 1] = interval.end;
        count++;
    }
    return count;
}

int cuda_take_adamw(struct cuda *self, struct why *why)
{
    const struct compute_config *config = &self->base.config;
    self->bare_count = cuda_list_bare(config->layout, NULL);
    self->bare = malloc(2 * self->bare_count * sizeof *self->bare);
    if (!self->bare) return why_set(why, FAULT_MEMORY, "%" PRIu32 " intervals", self->bare_count);
    cuda_list_bare(config->layout, self->bare);
    return adamw_new(config->layout, config->adamw, config->pool, why, &self->base.adamw);
}

int cuda_adamw(compute_t *base, float rate, struct why *why)
{
    struct cuda *self = cuda_of(base);
    const struct adamw_factors by = adamw_begin(base->adamw, rate);
    return self->plugin->adamw(self->replica, &by, why);
}

static int pull_residual(struct cuda *self, struct why *why)
{
    compute_t *base = &self->base;
    if (!base->residual) base->residual = malloc(base->floats * sizeof(float));
    if (!base->residual)
        return why_set(why, FAULT_MEMORY, "a copy of the residual, %" PRIu64 " floats",
                       base->floats);
    return self->plugin->get(self->replica, CUDA_RESIDUAL, base->residual, why);
}

int cuda_pull_state(compute_t *base, struct why *why)
{
    struct cuda *self = cuda_of(base);
    if (!base->adamw) return pull_residual(self, why);
    const int rc =
        self->plugin->get(self->replica, CUDA_FIRST_MOMENT, adamw_first_moment(base->adamw), why);
    if (rc < 0) return rc;
    return self->plugin->get(self->replica, CUDA_SECOND_MOMENT, adamw_second_moment(base->adamw),
                             why);
}

static int push_residual(struct cuda *self, struct why *why)
{
    const int rc = distro_check_residual(self->base.residual, self->base.floats, why);
    if (rc < 0) return rc;
    self->residual = (struct hash){ 0 };
    return self->plugin->put(self->replica, CUDA_RESIDUAL, self->base.residual, why);
}

int cuda_push_state(compute_t *base, struct why *why)
{
    struct cuda *self = cuda_of(base);
    if (!base->adamw) return push_residual(self, why);
    const int rc =
        self->plugin->put(self->replica, CUDA_FIRST_MOMENT, adamw_first_moment(base->adamw), why);
    if (rc < 0) return rc;
    return self->plugin->put(self->replica, CUDA_SECOND_MOMENT, adamw_second_moment(base->adamw),
                             why);
}
